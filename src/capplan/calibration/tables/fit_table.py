"""Fit a generic system to a user's load-test table, and predict rows of such a table.

The fit finds the most probable parameters from several starts, then an ensemble of others that explain the table about
as well. Priors are wide, and centred on what the table shows at a glance, such as its shortest latency. A prediction's
band has the spread of the ensemble and the scatter of a repeat, which the residuals of the fit may enlarge.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from capplan.calibration.fit import student_priors
from capplan.calibration.fit.posterior import Maximum, best_of, laplace_distance, maximum
from capplan.calibration.tables.errors import Effects, learnt_scatter
from capplan.calibration.tables.figures import figures_of, scatter_of
from capplan.calibration.tables.priors import unseen
from capplan.calibration.tables.problem import _LIKELIEST, Problem
from capplan.calibration.tables.sampler import ensemble
from capplan.errors import InputError
from capplan.evidence.load_test_row import LoadTestRow
from capplan.layout.fitted_file import DRAWS, Fitted, FittedTable, Posterior, rounded
from capplan.layout.layout_factors import name_of
from capplan.layout.table_components import LayoutFactors, Rows, Search
from capplan.layout.table_rows import (
    NODE_CPU,
    ON_CURVES,
    QUANTITIES,
    cells_of,
    check_requests,
)
from capplan.layout.table_system import TableSystem, hash_of
from capplan.models.language.units import FloatArray

_PROPOSALS = 256  # in each round
_FEWEST, _MOST, _SOLVED = 3, 7, 42  # rounds at least and at most, and layouts solved in all of them, which take time
_SEARCHED = 8  # evaluations from each start; the best one is then improved
_REFINED = 8  # evaluations of a search after the errors that rows share or their scatter have changed
_ROOM = 0.975  # distance of a start from the medians over that which a search may go, at most
_BETTER = 1.0  # log of how much more probable a structure must be than one nearer to the usual one
_FREED = 2  # rounds that free parameters which begin to change a figure at the most probable point


def fit_table(system: TableSystem[Any], rows: Sequence[LoadTestRow], *, seed: int = 1) -> Fitted:
    """Fit a system to rows of a load-test table.

    Parameters
    ----------
    system : TableSystem
        The system.
    rows : sequence of LoadTestRow
        The rows.
    seed : int
        Seed of the ensemble.

    Returns
    -------
    Fitted
        The calibration, which holds the rows.

    Raises
    ------
    InputError
        If no row has a figure to fit, or a column is missing or wrong.
    """
    check_requests(rows)
    _check_groups(system, rows)
    read = system.read(rows)
    most = max((row.measured[NODE_CPU] for row in read if NODE_CPU in row.measured), default=100.0)
    if most <= 1:
        raise InputError(f"node_cpu_percent is at most {most:g}: give percent, such as 30, and no share")
    scatter = scatter_of(read)
    figures = figures_of(read, scatter)
    if not figures:
        raise InputError(
            f"the table has no figure to fit: fill one of the columns {', '.join((*QUANTITIES, NODE_CPU))}"
        )
    search = system.component(Search)
    parameters = unseen(
        system.parameters if search.priors is None else search.priors(read), (row.source for row in rows)
    )
    first = Problem(system, read, figures, parameters)
    found = _with_structure(_with_effects(first, *_searched(first, search.starts(read)), _REFINED))
    whole, problem, best, effects, scatter = found.whole, found.problem, found.best, found.effects, found.scatter
    errors = problem.logs - problem.predicted(best.log_point[None])[0]
    if effects is not None:
        effects = replace(effects, log_sd=effects.learnt(errors, problem.other_errors()))
    scatter = _learnt(problem.with_scatter(scatter, effects), best, problem.slopes(best), errors, scatter)
    problem = problem.with_scatter(scatter, effects)
    best = maximum(problem, best.log_point, _REFINED)
    rounds = min(max(_SOLVED // len({row.layout for row in read}), _FEWEST), _MOST)
    drawn = ensemble(problem, best, DRAWS, rounds, _PROPOSALS, seed)
    of_layouts = _of_layouts(problem, effects, drawn.log_points, seed)
    cells = tuple(cells_of(row) for row in rows)
    points = _with_the_others(whole, problem, drawn.log_points, seed)
    points = np.concatenate([points, *(each[:, None] for each in of_layouts.values())], axis=-1)
    draws = tuple(tuple(rounded(float(value)) for value in row) for row in np.exp(points))
    logs = problem.straight.logs(best.log_point[None])[0]
    probable = dict(zip((each.name for each in problem.free), np.exp(logs).tolist(), strict=True))
    return Fitted(
        system=system.name,
        version=version("capplan"),
        seed=seed,
        data_hash=hash_of(cells),
        code="",
        names=(*(each.name for each in whole.free), *of_layouts),
        most_probable=(
            *(rounded(probable.get(each.name, each.value)) for each in whole.free),
            *(rounded(float(np.exp(np.median(each)))) for each in of_layouts.values()),
        ),
        draws=draws,
        fitted_parameters=sum(each.kind == "fitted" for each in whole.free),
        effective_parameters=rounded(max(best.effective_parameters, 0.0)),
        posterior=Posterior(rounded(drawn.effective_size), 0, 0.0, 0.0, rounded(laplace_distance(best, drawn))),
        hypotheses=(),
        figures=(),
        left_out=(),
        nested=(),
        table=FittedTable(
            cells,
            {name: rounded(value) for name, value in scatter.items()},
            {
                **{
                    each.name: (each.value, rounded(float(sd)))
                    for each, sd in zip(whole.free, whole.spread, strict=True)
                },
                **_scatter_of_layouts(system, effects),
            },
        ),
    )


@dataclass(frozen=True)
class _Found:
    """The most probable point of a problem with layout factors; `whole` has all parameters."""

    whole: Problem
    problem: Problem
    best: Maximum
    effects: Effects | None
    scatter: dict[str, float]


def _with_effects(whole: Problem, problem: Problem, best: Maximum, most: int) -> _Found:
    """Search again with layout factors and errors by chance; return the most probable point."""
    effects = problem.effects_at(best.log_point)
    scatter = scatter_of(problem.rows, None if effects is None else ON_CURVES)
    problem = problem.with_scatter(scatter, effects, best.log_point)
    return _Found(whole, problem, maximum(problem, best.log_point, most), effects, scatter)


def _with_structure(found: _Found) -> _Found:
    """Climb to the model structure that the figures make most probable; return its most probable point."""
    for name, values in found.whole.system.component(Search).structures.items():
        usual = next(each.value for each in found.whole.parameters if each.name == name)
        at = int(np.argmin(np.abs(np.log(np.array(values) / usual))))  # a backtest displaces priors
        for step in (1, -1):
            began = at
            while 0 <= at + step < len(values):
                other = _structured(found, name, values[at + step])
                if other.problem.log_evidence(other.best) < found.problem.log_evidence(found.best) + _BETTER:
                    break
                found, at = other, at + step
            if at != began:
                break
    return found


def _structured(found: _Found, name: str, value: float) -> _Found:
    """Return the most probable point under another structure; the search starts at the known point."""
    parameters = [replace(each, value=value) if each.name == name else each for each in found.whole.parameters]
    whole = Problem(found.whole.system, found.whole.rows, found.whole.figures_to_fit, parameters)
    problem = whole.of([each.name for each in found.problem.free])
    start = problem.straight.points(found.problem.straight.logs(found.best.log_point[None]))[0]
    return _with_effects(whole, problem, maximum(problem, start, _SEARCHED), _REFINED)


def _with_the_others(whole: Problem, problem: Problem, points: FloatArray, seed: int) -> FloatArray:
    """Return draws of all parameters' logarithms; parameters that change no figure are drawn from their priors.

    The draws respect the priors' correlations with the other parameters.
    """
    random, count = np.random.default_rng([seed, 1]), len(points)
    names = [each.name for each in whole.free]
    moving = [names.index(each.name) for each in problem.free]
    others = [at for at in range(len(names)) if at not in moving]
    found = np.empty((count, len(names)))
    found[:, moving] = problem.straight.logs(points)
    known = whole.prior[np.ix_(moving, moving)]
    gain = np.linalg.solve(known, whole.prior[np.ix_(moving, others)]).T
    left = whole.prior[np.ix_(others, others)] - gain @ whole.prior[np.ix_(moving, others)]
    levels = [(random.permutation(count) + 0.5) / count for _ in others]
    if others:
        means = whole.centre[others] + (found[:, moving] - whole.centre[moving]) @ gain.T
        standard = student_priors.quantiles(np.stack(levels, axis=-1), whole.degrees[others])
        found[:, others] = means + standard @ np.linalg.cholesky(left).T
    return found


def _check_groups(system: TableSystem[Any], rows: Sequence[LoadTestRow]) -> None:
    groups = list(dict.fromkeys(map(system.component(Rows).group, rows)))
    if len(groups) > 1:
        raise InputError(
            f"the table has rows of {len(groups)} workloads or versions, {groups[0]!r} and {groups[1]!r} among them, "
            f'and {system.name} fits one at a time: keep one by --train, such as "{_what_differs(rows)}"'
        )


def _what_differs(rows: Sequence[LoadTestRow]) -> str:
    """Return a comparison that keeps some of the rows: of a column in which they differ."""
    columns = ("version", "request_class", "row_bytes", "read_fraction")
    values = {each: [value for row in rows if (value := getattr(row, each)) is not None] for each in columns}
    column = next((each for each in columns if len(set(values[each])) > 1), "run_id")
    return f"{column} == {next(iter(values.get(column, [rows[0].run_id])))!r}"


def _searched(whole: Problem, starts: Sequence[Mapping[str, float]]) -> tuple[Problem, Maximum]:
    """Return the problem with the parameters that move a figure, and its most probable point.

    The check runs at the prior medians, at likely prior draws, and again at the point found: a parameter such as the
    length of pauses changes nothing where pauses are rare.
    """
    likely = whole.likeliest(_LIKELIEST)
    moving = whole.moving(np.stack([whole.centre, *likely]))
    problem = whole.of(moving)
    best = _best(problem, starts, likely[:, [at for at, each in enumerate(whole.free) if each.name in moving]])
    for _ in range(_FREED):
        found = whole.centre.copy()
        found[[each.name in moving for each in whole.free]] = problem.straight.logs(best.log_point[None])[0]
        more = {*moving, *whole.moving(found[None])}
        if len(more) == len(moving):
            break
        moving = [each.name for each in whole.free if each.name in more]
        problem = whole.of(moving)
        known = [at for at, each in enumerate(whole.free) if each.name in more]
        best = maximum(problem, problem.straight.points(found[None, known])[0])
    return problem, best


def _best(problem: Problem, starts: Sequence[Mapping[str, float]], likely: FloatArray) -> Maximum:
    """Search from the prior medians, from `starts` (factors on the medians), and from likely points (n, free)."""
    moves = np.log([[start.get(each.name, 1.0) for each in problem.free] for start in ({}, *starts)])
    starts_of = problem.straight.points(np.concatenate([problem.centre + moves, likely]))
    room = _ROOM * problem.room
    return best_of(problem, list(np.clip(starts_of, problem.centre - room, problem.centre + room)), _SEARCHED)


def _of_layouts(problem: Problem, effects: Effects | None, log_points: FloatArray, seed: int) -> dict[str, FloatArray]:
    """Return draws of each layout's log factors by name; the factors of a single layout are 1."""
    layouts, _ = problem.layouts()
    if effects is None:
        drawn = np.zeros((len(log_points), len(layouts), len(problem.factors.log_sd)))
    else:
        points, copies = np.unique(log_points, axis=0, return_inverse=True)  # resampling repeats points
        errors = (problem.logs - problem.predicted(points))[copies]
        drawn = effects.drawn(errors, problem.other_errors(), np.random.default_rng([seed, 2]))
    return {
        name_of(name, layout): drawn[:, number, at]
        for number, layout in enumerate(layouts)
        for at, name in enumerate(problem.factors.log_sd)
    }


def _scatter_of_layouts(system: TableSystem[Any], effects: Effects | None) -> dict[str, tuple[float, float]]:
    """Return how layout factors scatter; relative to a single fitted layout, other layouts scatter more.

    The logarithm of the ratio of two factors has twice the variance of each.
    """
    usual_sd = system.component(LayoutFactors).log_sd
    usual = math.sqrt(2) * np.array(list(usual_sd.values())) if effects is None else effects.log_sd
    return {name_of(name): (1.0, rounded(float(sd))) for name, sd in zip(usual_sd, usual, strict=True)}


def _learnt(
    problem: Problem, best: Maximum, slopes: FloatArray, errors: FloatArray, scatter: Mapping[str, float]
) -> dict[str, float]:
    """Return the scatter, updated from the fit's errors (figures,); slopes are those of `Problem.slopes`."""
    of_priors = best.jacobian[len(errors) :]
    quantities = [each.quantity for each in problem.figures_to_fit]
    return learnt_scatter(
        quantities, errors, problem.sd, problem.covariance(), slopes, of_priors.T @ of_priors, scatter
    )
