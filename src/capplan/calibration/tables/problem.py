"""The figures of a table, their predictions and priors, as the problem that a fit solves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capplan.calibration.fit import student_priors
from capplan.calibration.fit.posterior import Maximum
from capplan.calibration.tables import errors as solver_error
from capplan.calibration.tables.errors import Effects, chance_errors
from capplan.calibration.tables.figures import Figure, figures_of
from capplan.calibration.tables.sampler import Coordinates
from capplan.calibration.tables.solved_rows import solved_rows
from capplan.layout.layout_factors import correlation, name_of
from capplan.layout.table_components import ClosedLoadTests, LayoutFactors, Search
from capplan.layout.table_rows import (
    TableRow,
)
from capplan.layout.table_system import TableSystem
from capplan.models.language.parameter import Parameter, Values
from capplan.models.language.units import FloatArray, Number

_TRIED, _LIKELIEST = 256, 2  # prior draws; the search also starts from the most probable ones
_EFFECT_STEP = 0.02  # in the logarithm of a factor of a layout
_STEP = 0.5  # step, in prior standard deviations, that tests whether a parameter matters
_MOVES = 0.02  # standard deviations of a figure
_CHUNK = 256  # draws solved at once: limits memory


class Problem:
    """Figures of a table, their predictions, and priors, for `maximum` and `resampled`.

    Parameters that move no figure keep the medians of their priors, which saves time and draws.
    """

    def __init__(
        self,
        system: TableSystem[Any],
        rows: Sequence[TableRow],
        figures: Sequence[Figure],
        parameters: Sequence[Parameter],
        *,
        straight: bool = False,
    ) -> None:
        self.system, self.rows, self.figures_to_fit, self.parameters = system, rows, figures, parameters
        self.factors = system.component(LayoutFactors)
        self.free = [each for each in parameters if each.free]
        self.fixed = {each.name: each.value for each in parameters if not each.free}
        self.centre = np.log([each.value for each in self.free])
        own = np.array([each.log_sd for each in self.free])
        search, compose = system.component(Search), system.component(ClosedLoadTests).network or system.network
        loadings = np.array([[each.get(p.name, 0.0) for p in self.free] for each in search.shared])
        self.prior = np.diag(own**2) + (loadings.T @ loadings if len(loadings) else 0.0)
        self.spread, self.degrees = np.sqrt(np.diag(self.prior)), student_priors.degrees(parameters)
        self.room = student_priors.room(self.degrees) * self.spread
        self.prior_whitening = np.linalg.inv(np.linalg.cholesky(self.prior))
        layout = rows[figures[0].row].layout
        self.straight = Coordinates(
            [each.name for each in self.free],
            search.times if straight else (),
            search.unseen if straight else "",
            self.centre,
            lambda values: compose(layout, system.values_in(layout, values), 1.0),
            self.fixed,
        )
        self.sd = np.array([each.log_sd for each in figures])
        self.effects: Effects | None = None
        self.of_solver = solver_error.covariance(rows, figures)
        self.of_chance = self._chance_errors(self.straight.points(self.centre[None])[0])
        self.whitening = self._whitening()
        self.logs = np.log([each.value for each in figures])
        wanted: list[list[str]] = [[] for _ in rows]
        for each in figures:
            wanted[each.row].append(each.quantity)
        self.used = [number for number, names in enumerate(wanted) if names]
        self.wanted = [wanted[number] for number in self.used]

    def with_scatter(
        self, scatter: Mapping[str, float], effects: Effects | None, log_point: FloatArray | None = None
    ) -> Problem:
        """Return the problem with new scatter, errors that rows of one layout share, and errors by chance at a point.

        The errors by chance stay as they are without a point.
        """
        found = copy(self)
        if log_point is not None:
            found.of_chance = self._chance_errors(log_point)
        found.figures_to_fit = figures_of(self.rows, scatter)
        found.sd = np.array([each.log_sd for each in found.figures_to_fit])
        found.effects = effects
        found.whitening = found._whitening()
        return found

    def _chance_errors(self, log_point: FloatArray) -> FloatArray:
        wanted = [(each.row, each.quantity) for each in self.figures_to_fit]
        return chance_errors(self.system, self.rows, wanted, self.values(log_point[None]))

    def layouts(self) -> tuple[list[Any], NDArray[np.intp]]:
        """Return the layouts that have factors of their own, and the index of each figure's layout (figures,)."""
        own = [self.factors.alike(self.rows[each.row].layout) for each in self.figures_to_fit]
        layouts = list(dict.fromkeys(own))
        return layouts, np.array([layouts.index(each) for each in own])

    def effects_at(self, log_point: FloatArray) -> Effects | None:
        """Return the layout effects, linearised at a point; None for a single layout or a system without effects."""
        layouts, group = self.layouts()
        names = tuple(self.factors.log_sd)
        if len(layouts) < 2 or not names:
            return None
        values: dict[str, Number] = self.values(np.repeat(log_point[None], 2 * len(names), axis=0))
        for at, name in enumerate(names):
            steps = np.zeros(2 * len(names))
            steps[2 * at : 2 * at + 2] = (_EFFECT_STEP, -_EFFECT_STEP)
            values.update({name_of(name, layout): np.exp(steps) for layout in layouts})
        found = self._predicted_with(values)
        slopes = ((found[::2] - found[1::2]) / (2 * _EFFECT_STEP)).T
        log_sd = np.array([self.factors.log_sd[name] for name in names])
        return Effects(slopes, group, log_sd, correlation(layouts, self.factors.scaled))

    def of(self, names: Sequence[str]) -> Problem:
        """Return the problem with only the named parameters free."""
        held = [each if each.name in names else replace(each, log_sd=0.0) for each in self.parameters]
        return Problem(self.system, self.rows, self.figures_to_fit, held, straight=True)

    def prior_draws(self, count: int) -> FloatArray:
        """Return prior draws of the free parameters' logarithms (count, free), the same ones in every call."""
        return self.straight.points(np.random.default_rng(0).multivariate_normal(self.centre, self.prior, count))

    def moving(self, points: FloatArray) -> list[str]:
        """Return the parameters that change a figure at one or more of the points (points, free)."""
        step = np.diag(_STEP * self.spread)
        found = self.predicted(np.concatenate([points, *(point + step for point in points)]))
        base, moved = found[: len(points)], found[len(points) :].reshape(len(points), len(self.free), -1)
        most = np.abs(np.nan_to_num(moved - base[:, None], posinf=0.0, neginf=0.0)) / self.sd
        return [each.name for at, each in enumerate(self.free) if float(np.max(most[:, at])) > _MOVES]

    def likeliest(self, count: int) -> FloatArray:
        """Return the most probable of many prior draws (count, free), as logarithms."""
        drawn = self.prior_draws(_TRIED)
        return drawn[np.argsort(-self.log_posterior(drawn))[:count]]

    def values(self, log_points: FloatArray) -> dict[str, Number]:
        """Return parameter values by name at points (draws, free)."""
        logs = self.straight.logs(log_points)
        return {**self.fixed, **{each.name: np.exp(logs[:, at]) for at, each in enumerate(self.free)}}

    def predicted(self, log_points: FloatArray) -> FloatArray:
        """Return the logarithms of the predictions (draws, figures)."""
        starts = range(0, len(log_points), _CHUNK)
        return np.concatenate([self._predicted_with(self.values(log_points[at : at + _CHUNK])) for at in starts])

    def _predicted_with(self, values: Values) -> FloatArray:
        solved = solved_rows(self.system, [self.rows[number] for number in self.used], values, self.wanted)
        by_row = dict(zip(self.used, solved, strict=True))
        return np.stack([np.log(by_row[f.row].figures[f.quantity]) for f in self.figures_to_fit], axis=-1)

    def residuals(self, log_points: FloatArray) -> FloatArray:
        """Return standardised residuals of the figures, then of the priors (draws, figures + free)."""
        errors = self.predicted(log_points) - self.logs
        data = errors @ self.whitening.T
        return np.concatenate(
            [
                np.nan_to_num(data, nan=1e3, posinf=1e3, neginf=-1e3),
                student_priors.residuals(
                    (self.straight.logs(log_points) - self.centre) @ self.prior_whitening.T, self.degrees
                ),
            ],
            axis=-1,
        )

    def other_errors(self) -> FloatArray:
        """Return the covariance (figures, figures) of all errors except those of the layout factors."""
        return np.diag(self.sd**2 + self.of_chance**2) + self.of_solver

    def covariance(self) -> FloatArray:
        """Return the covariance of all errors (figures, figures)."""
        other = self.other_errors()
        return other if self.effects is None else other + self.effects.covariance

    def _whitening(self) -> FloatArray:
        """Return the whitening matrix (figures, figures), which makes the errors independent with unit variance."""
        return np.asarray(np.linalg.inv(np.linalg.cholesky(self.covariance())))

    def log_evidence(self, best: Maximum) -> float:
        """Return the logarithm of the probability of the figures up to a constant, by Laplace's approximation."""
        curvature = np.linalg.slogdet(best.jacobian.T @ best.jacobian)[1]
        return float(np.log(np.diag(self.whitening)).sum() - (best.deviance + curvature) / 2)

    def slopes(self, best: Maximum) -> FloatArray:
        """Return the derivatives of the logarithms of the predictions at the maximum (figures, free)."""
        return np.asarray(np.linalg.solve(self.whitening, best.jacobian[: len(self.sd)]))

    def log_posterior(self, log_points: FloatArray) -> FloatArray:
        """Return the log posterior up to a constant (draws,)."""
        return np.asarray(-(self.residuals(log_points) ** 2).sum(axis=-1) / 2)
