"""Refits without some scenarios, which show how well the model predicts what it was not fitted to.

One refit per scenario leaves that scenario out and predicts it with an ensemble, which gives the error and the
parameters' part of the band. One refit per pair of scenarios leaves out both and predicts them. With these, the model
error that scores a scenario's band depends on that scenario in no way: neither through its error nor through a fit
(nested leave-one-out).

Every prediction is the median over an ensemble from the posterior, as it is for users.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, count
from typing import Any

import numpy as np

from capplan.calibration.fit.posterior import Ensemble, maximum, problem, resampled
from capplan.calibration.fit.stages import Stages
from capplan.layout.fitted_file import DRAWS, FittedFigure, NestedFigure, rounded
from capplan.layout.observations import LoadTest
from capplan.layout.system import System
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
    scenarios = len(folds(system.observations.load_tests()))
    return scenarios + math.comb(scenarios, 2)


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
    scenarios, seeds = folds(tests), count(seed + 1)
    left_out = [
        stages.of(f"refitting without {fold}", partial(_without, system, tests, fold, start, next(seeds)))
        for fold in scenarios
    ]
    nested = [
        stages.of(
            f"refitting without {' and '.join(pair)}", partial(_without_pair, system, tests, pair, start, next(seeds))
        )
        for pair in combinations(scenarios, 2)
    ]
    return Refits(
        tuple(FittedFigure(*figure) for fold in left_out for figure in fold),
        tuple(NestedFigure(*figure) for pair in nested for figure in pair),
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
    drawn = resampled(others, maximum(others, start), DRAWS, PROPOSALS, seed)
    return figures(system, [test for test in tests if test.fold == fold], drawn)


def _without_pair(
    system: System[Any], tests: Sequence[LoadTest[Any]], pair: tuple[str, str], start: FloatArray, seed: int
) -> list[list[Any]]:
    others = problem(system, [test for test in tests if test.fold not in pair])
    drawn = resampled(others, maximum(others, start), DRAWS, PROPOSALS, seed)
    other = dict(zip(pair, pair[::-1], strict=True))
    left = [test for test in tests if test.fold in pair]
    return [[name, fold, other[fold], predicted] for name, fold, _, predicted, *_ in figures(system, left, drawn)]
