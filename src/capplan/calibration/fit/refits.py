"""Refitting a system without some of its scenarios, and predicting those: how far off it is where it was not fitted.

Without each scenario: with an ensemble, for the error and the parameters' part of the band. Without each pair of
scenarios: at the most probable parameters, so that the discrepancy that a band is scored with has seen neither the
scenario that it is scored on nor errors made with its help (nested leave-one-out).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from capplan.calibration.fit.fitted_file import DRAWS, FittedFigure, NestedFigure, rounded
from capplan.calibration.fit.maximum import maximum
from capplan.calibration.fit.posterior import Ensemble, resampled
from capplan.calibration.fit.problem import problem
from capplan.calibration.fit.stages import Stages
from capplan.calibration.observations import LoadTest
from capplan.calibration.system import System
from capplan.models.language.parameter import from_log
from capplan.models.language.units import FloatArray

PROPOSALS = 1000


@dataclass(frozen=True)
class Refits:
    """What the refits of a system say.

    Attributes
    ----------
    left_out : tuple of FittedFigure
        Every figure, predicted by a fit without its scenario.
    nested : tuple of NestedFigure
        Every figure, predicted by fits without its scenario and another one.
    """

    left_out: tuple[FittedFigure, ...]
    nested: tuple[NestedFigure, ...]


def folds(tests: Sequence[LoadTest[Any]]) -> list[str]:
    """Return the independent scenarios of some experiments."""
    return list(dict.fromkeys(test.fold for test in tests))


def refits_of(system: System[Any]) -> int:
    """Return how often `refitted` tells its progress."""
    return len(folds(system.observations.load_tests())) + 1


def refitted(system: System[Any], most_probable: Sequence[float], seed: int, stages: Stages) -> Refits:
    """Predict each independent scenario by fits without it.

    Parameters
    ----------
    system : System
        The system.
    most_probable : sequence of float
        The free parameters as fitted to all figures, SI: where the searches start.
    seed : int
        Seed of the draws.
    stages : Stages
        Told of the progress; keeps what is finished.
    """
    tests, start = system.observations.load_tests(), np.log(most_probable)
    left_out = [
        stages.of(f"refitting without {fold}", partial(_without, system, tests, fold, start, seed + 1 + number))
        for number, fold in enumerate(folds(tests))
    ]
    nested = stages.of("refitting without pairs of scenarios", partial(_without_pairs, system, tests, start))
    return Refits(
        tuple(FittedFigure(*figure) for fold in left_out for figure in fold),
        tuple(NestedFigure(*figure) for figure in nested),
    )


def figures(system: System[Any], tests: Sequence[LoadTest[Any]], drawn: Ensemble) -> list[list[Any]]:
    """Return what the model says of the figures of some experiments: the fields of `FittedFigure`."""
    said = system.observations.predicted(tests, from_log(system.parameters, drawn.log_points))
    return [
        [row.id, row.fold, row.value, *(rounded(float(v)) for v in np.quantile(said[row.id], [0.5, 0.05, 0.95]))]
        for test in tests
        for row in test.rows
    ]


def _without(
    system: System[Any], tests: Sequence[LoadTest[Any]], fold: str, start: FloatArray, seed: int
) -> list[list[Any]]:
    others = problem(system, [test for test in tests if test.fold != fold])
    fit = maximum(others, start)
    drawn = resampled(others, fit, DRAWS, PROPOSALS, seed)
    return figures(system, [test for test in tests if test.fold == fold], drawn)


def _without_pairs(system: System[Any], tests: Sequence[LoadTest[Any]], start: FloatArray) -> list[list[Any]]:
    found = []
    for pair in combinations(folds(tests), 2):
        fit = maximum(problem(system, [test for test in tests if test.fold not in pair]), start)
        for fold, other in (pair, pair[::-1]):
            left = [test for test in tests if test.fold == fold]
            found += [[name, fold, other, value] for name, value in _at(system, left, fit.log_point).items()]
    return found


def _at(system: System[Any], tests: Sequence[LoadTest[Any]], log_point: FloatArray) -> dict[str, float]:
    said = system.observations.predicted(tests, from_log(system.parameters, log_point[None]))
    return {row.id: rounded(float(np.ravel(said[row.id])[0])) for test in tests for row in test.rows}
