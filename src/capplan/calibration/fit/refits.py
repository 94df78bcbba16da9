"""Refits without some scenarios, which show how well the model predicts what it was not fitted to.

One refit per scenario leaves that scenario out and predicts it with an ensemble, which gives the error and the
parameters' part of the band. One refit per pair of scenarios leaves out both and predicts them with the most probable
parameters. With these, the model error that scores a scenario's band depends on that scenario in no way: neither
through its error nor through a fit (nested leave-one-out).
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
    """Predictions by refits.

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
    """Return the independent scenarios of load tests."""
    return list(dict.fromkeys(test.fold for test in tests))


def refits_of(system: System[Any]) -> int:
    """Return how many stages `refitted` has."""
    return len(folds(system.observations.load_tests())) + 1


def refitted(system: System[Any], most_probable: Sequence[float], seed: int, stages: Stages) -> Refits:
    """Predict each independent scenario by fits without it.

    Parameters
    ----------
    system : System
        The system.
    most_probable : sequence of float
        Free parameters fitted to all figures, SI; the searches start there.
    seed : int
        Seed of the draws.
    stages : Stages
        Reports progress and keeps finished stages.

    Returns
    -------
    Refits
        The predictions.
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
    """Return the predictions of every figure of some load tests, as fields of `FittedFigure`."""
    predicted = system.observations.predicted(tests, from_log(system.parameters, drawn.log_points))
    return [
        [row.id, row.fold, row.value, *(rounded(float(v)) for v in np.quantile(predicted[row.id], [0.5, 0.05, 0.95]))]
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
    predictions = []
    for pair in combinations(folds(tests), 2):
        fit = maximum(problem(system, [test for test in tests if test.fold not in pair]), start)
        for fold, other in (pair, pair[::-1]):
            left = [test for test in tests if test.fold == fold]
            predictions += [[name, fold, other, value] for name, value in _at(system, left, fit.log_point).items()]
    return predictions


def _at(system: System[Any], tests: Sequence[LoadTest[Any]], log_point: FloatArray) -> dict[str, float]:
    predicted = system.observations.predicted(tests, from_log(system.parameters, log_point[None]))
    return {row.id: rounded(float(np.ravel(predicted[row.id])[0])) for test in tests for row in test.rows}
