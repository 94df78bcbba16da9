"""Sensitivity of fits to the prior medians: how close the fit is to them, and how predictions change when they move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from capplan.calibration.fit.posterior import Maximum, maximum, problem, start_of
from capplan.calibration.fit.refits import folds
from capplan.calibration.validation.backtest import left_out
from capplan.layout.fitted_file import Fitted, rounded
from capplan.layout.observations import LoadTest
from capplan.layout.system import System
from capplan.models.language.parameter import Parameter, from_log, log_values
from capplan.models.language.units import FloatArray

PATTERNS = 2  # sign patterns; each also runs with all signs reversed


@dataclass(frozen=True)
class Nearness:
    """Distance of fitted parameters from the medians of their priors.

    Attributes
    ----------
    parameters : int
        Number of free parameters.
    squares : float
        Sum of the squared distances, in standard deviations of the priors.
    """

    parameters: int
    squares: float

    @property
    def root_mean_square(self) -> float:
        """Root mean square distance, in standard deviations; 1 is expected of medians set without knowing the fit."""
        return float(np.sqrt(self.squares / self.parameters))

    @property
    def probability(self) -> float:
        """Probability that a sum of squares this small arises by chance (chi-squared)."""
        from scipy.stats import chi2  # slow to import, and only validation needs it

        return float(chi2.cdf(self.squares, self.parameters))

    def __add__(self, other: Nearness) -> Nearness:
        return Nearness(self.parameters + other.parameters, self.squares + other.squares)


def nearness(parameters: Sequence[Parameter], most_probable: Sequence[float]) -> Nearness:
    """Return how near the most probable parameters are to the medians of their priors.

    Parameters
    ----------
    parameters : sequence of Parameter
        Parameters of a system.
    most_probable : sequence of float (free,)
        Most probable values of the free ones, SI.
    """
    free = [parameter for parameter in parameters if parameter.free]
    centre, spread = log_values(tuple(free)), np.array([parameter.log_sd for parameter in free])
    return Nearness(len(free), float((((np.log(most_probable) - centre) / spread) ** 2).sum()))


def displaced(parameters: Sequence[Parameter], signs: Sequence[int]) -> tuple[Parameter, ...]:
    """Return the parameters with each free prior median moved up or down by its standard deviation.

    Parameters
    ----------
    parameters : sequence of Parameter
        The parameters.
    signs : sequence of int (free,)
        1: up; -1: down; 0: not moved.
    """
    remaining = iter(signs)
    return tuple(
        replace(each, value=each.value * float(np.exp(next(remaining) * each.log_sd))) if each.free else each
        for each in parameters
    )


def sign_patterns(parameters: Sequence[Parameter], seed: int) -> list[list[int]]:
    """Return no move, then `PATTERNS` random patterns of signs, each followed by its reverse."""
    free = sum(parameter.free for parameter in parameters)
    drawn = np.random.default_rng(seed).choice([-1, 1], (PATTERNS, free))
    return [[0] * free, *(row.tolist() for pattern in drawn for row in (pattern, -pattern))]


def scored(system: System[Any], fitted: Fitted) -> dict[str, float]:
    """Return the documented figures that are scored when left out, by row id, SI."""
    return {each.id: each.documented for each in left_out(system, fitted) if each.counts}


def refitted_from(system: System[Any], fitted: Fitted, signs: Sequence[int]) -> dict[str, Any]:
    """Refit a system, as a whole and without each scenario, with every prior median moved by its standard deviation.

    Parameters
    ----------
    system : System
        The system.
    fitted : Fitted
        Its calibration, near which the searches start.
    signs : sequence of int (free,)
        Directions of the moves; see `displaced`.

    Returns
    -------
    dict
        Predictions at the most probable parameters, as JSON types, SI: `fitted` and `left_out` by row id, and the
        `capacity` of the default layout (its first ratio, if the system has only these).
    """
    parameters = displaced(system.parameters, signs)
    tests, near, given = system.observations.load_tests(), np.log(fitted.most_probable), start_of(system)
    starts = (near, log_values(parameters) if given is None else given)
    best = min((_fit(system, parameters, tests, start) for start in starts), key=lambda fit: fit.deviance)
    without: dict[str, float] = {}
    for fold in folds(tests):
        fit = _fit(system, parameters, [test for test in tests if test.fold != fold], best.log_point)
        without |= _predicted(system, [test for test in tests if test.fold == fold], fit.log_point)
    return {
        "fitted": _predicted(system, tests, best.log_point),
        "left_out": without,
        "capacity": _capacity(system, best.log_point),
    }


def _fit(
    system: System[Any], parameters: tuple[Parameter, ...], tests: Sequence[LoadTest[Any]], start: FloatArray
) -> Maximum:
    own = replace(problem(system, tests), parameters=parameters)
    limits = own.centre - 3.9 * own.spread, own.centre + 3.9 * own.spread  # the search stays within four
    return maximum(own, np.clip(start, *limits))


def _predicted(system: System[Any], tests: Sequence[LoadTest[Any]], log_point: FloatArray) -> dict[str, float]:
    values = system.observations.predicted(tests, from_log(system.parameters, log_point[None]))
    return {row.id: rounded(float(np.ravel(values[row.id])[0])) for test in tests for row in test.rows}


def _capacity(system: System[Any], log_point: FloatArray) -> float:
    scenario, values = system.scenario(), from_log(system.parameters, log_point[None])
    if system.ratios_only:
        return rounded(float(np.ravel(next(iter(system.ratios(scenario, values).values())))[0]))
    return rounded(float(np.ravel(system.solution(scenario, values).capacity)[0]))
