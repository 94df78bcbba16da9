"""Calibration of a system: fit every open choice, draw an ensemble under the default, refit without each scenario.

Refits without some scenarios, which show how well the model predicts what it was not fitted to.

One refit per scenario leaves that scenario out and predicts it with an ensemble, which gives the error and the
parameters' part of the band. One refit per pair of scenarios leaves out both and predicts them. With these, the model
error that scores a scenario's band depends on that scenario in no way: neither through its error nor through a fit
(nested leave-one-out).

Every prediction is the median over an ensemble from the posterior, as it is for users.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version as installed
from itertools import combinations, count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from capplan.calibration.fit.posterior import (
    Ensemble,
    Maximum,
    laplace_distance,
    maximum,
    moved,
    problem,
    resampled,
    start_of,
)
from capplan.calibration.fit.stages import Progress, Stages, digest, refit_code
from capplan.calibration.tables.fit_table import TableSystem, fit_table
from capplan.evidence.load_test_row import LOAD_TESTS
from capplan.layout.fitted_file import DRAWS, Fitted, FittedFigure, Hypothesis, NestedFigure, Posterior, rounded
from capplan.layout.observations import LoadTest
from capplan.layout.system import System
from capplan.models.errors import InputError
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
    """Predict each independent scenario with a fit that leaves the scenario out.

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


_PROPOSALS = 2500
_STEPS = 20


def stages_of(system: System[Any]) -> int:
    """Return how many times `calibrate` reports progress."""
    return max(len(system.observations.choices), 1) + 3 + refits_of(system)


def calibrate(
    system: System[Any],
    seed: int = 1,
    version: str | None = None,
    progress: Progress = lambda _: None,
    output: Path | None = None,
    evidence: pd.DataFrame | None = None,
) -> Fitted:
    """Fit a system to its evidence.

    Parameters
    ----------
    system : System
        The system.
    seed : int
        Seed of the draws; the same seed gives the same file.
    version : str, optional
        Version of capplan to record in the file; the installed one by default.
    progress : function
        Called with the name of each stage as it starts.
    output : Path, optional
        Finished stages are saved beside this file, one file per seed and evidence, so that an interrupted calibration
        can resume; the file is deleted at the end.
    evidence : pandas.DataFrame, optional
        A load-test table, for systems that are fitted to one, such as `cassandra`.

    Returns
    -------
    Fitted
        The calibration; `fitted_file.write` stores it.
    """
    if isinstance(system, TableSystem):
        if evidence is None:
            raise InputError(f"{system.name} is fitted to your load tests: give a load-test table as evidence")
        return fit_table(system, list(LOAD_TESTS.rows(evidence)), seed=seed)
    if evidence is not None:
        raise InputError(f"{system.name} has documents of its own, and is not fitted to load-test tables")
    stages = Stages(digest(system, seed, system.data_hash, DRAWS, _PROPOSALS, PROPOSALS, _STEPS), progress, output)
    with stages.owned():
        fitted = _Calibration(system, seed, stages).fitted(version or installed("capplan"))
        stages.end()
    return fitted


class _Calibration:
    """A calibration in progress."""

    def __init__(self, system: System[Any], seed: int, stages: Stages) -> None:
        self.system, self.seed, self.stages = system, seed, stages
        self.tests = system.observations.load_tests()
        self.problem = problem(system, self.tests)

    def fitted(self, version: str) -> Fitted:
        """Run all stages and return the result."""
        hypotheses, best = self.choices()
        first = _ensemble(self.stages.of("locating the posterior", lambda: _plain(self.resampled(best))))
        drawn = _ensemble(self.stages.of("drawing from the posterior", lambda: _plain(self.moved(first))))
        draws = tuple(tuple(rounded(float(value)) for value in row) for row in np.exp(drawn.log_points))
        kept = replace(drawn, log_points=np.log(np.array(draws)))  # figures in the file must match its rounded draws
        predicted = self.stages.of("predicting", lambda: figures(self.system, self.tests, kept))
        most_probable = tuple(rounded(float(value)) for value in np.exp(best.log_point))
        refits = refitted(self.system, most_probable, self.seed, self.stages)
        free = [parameter for parameter in self.system.parameters if parameter.free]
        return Fitted(
            system=self.system.name,
            version=version,
            seed=self.seed,
            data_hash=self.system.data_hash,
            code=refit_code(self.system),
            names=tuple(parameter.name for parameter in free),
            most_probable=most_probable,
            draws=draws,
            fitted_parameters=sum(parameter.kind == "fitted" for parameter in free),
            effective_parameters=rounded(best.effective_parameters),
            posterior=_posterior(best, drawn),
            hypotheses=hypotheses,
            figures=tuple(FittedFigure(*each) for each in predicted),
            left_out=refits.left_out,
            nested=refits.nested,
        )

    def choices(self) -> tuple[tuple[Hypothesis, ...], Maximum]:
        """Fit every open choice; return the hypotheses (best first) and the fit of the default choice."""
        if not self.system.observations.choices:
            return (), _maximum(self.stages.of("fitting", lambda: _plain(maximum(self.problem, start_of(self.system)))))
        default = vars(self.tests[0].scenario)
        fits, best = [], None
        for choice in self.system.observations.choices:
            words = " and ".join(f"{name.replace('_', ' ')} {value}" for name, value in choice.items())
            fit = _maximum(self.stages.of(f"fitting with {words}", partial(self.fit, choice)))
            fits.append(Hypothesis(choice, rounded(fit.deviance)))
            if all(default[name] == value for name, value in choice.items()):
                best = fit
        if best is None:
            raise ValueError("the scenario's default choice must be among the choices")
        return tuple(sorted(fits, key=lambda each: each.deviance)), best

    def fit(self, choice: Mapping[str, str]) -> dict[str, Any]:
        """Fit the system under one choice."""
        return _plain(maximum(problem(self.system, self.system.observations.load_tests(choice)), start_of(self.system)))

    def resampled(self, best: Maximum) -> Ensemble:
        """Draw the ensemble by importance sampling."""
        return resampled(self.problem, best, DRAWS, _PROPOSALS, self.seed)

    def moved(self, first: Ensemble) -> Ensemble:
        """Move the draws by steps of the sampler."""
        return moved(self.problem, first, _STEPS, self.seed)


def _posterior(best: Maximum, drawn: Ensemble) -> Posterior:
    diagnostics = (drawn.effective_size, drawn.acceptance, drawn.shift, laplace_distance(best, drawn))
    size, acceptance, shift, laplace = (rounded(each) for each in diagnostics)
    return Posterior(size, drawn.steps, acceptance, shift, laplace)


def _plain(result: Maximum | Ensemble) -> dict[str, Any]:
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(result).items()}


def _maximum(stored: Mapping[str, Any]) -> Maximum:
    return Maximum(**_arrays(stored))


def _ensemble(stored: Mapping[str, Any]) -> Ensemble:
    return Ensemble(**_arrays(stored))


def _arrays(stored: Mapping[str, Any]) -> dict[str, Any]:
    arrays: dict[str, FloatArray | float] = {
        name: np.array(value) if isinstance(value, list) else value for name, value in stored.items()
    }
    return arrays
