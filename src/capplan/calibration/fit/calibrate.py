"""Calibration of a system: fit every open choice, draw an ensemble under the default, refit without each scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import version as installed
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
from capplan.calibration.fit.refits import PROPOSALS, figures, refits_of, refitted
from capplan.calibration.fit.stages import Progress, Stages, digest, refit_code
from capplan.calibration.tables.fit_table import fit_table
from capplan.errors import InputError
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.layout.fitted_file import DRAWS, Fitted, FittedFigure, Hypothesis, Posterior, rounded
from capplan.layout.system import System
from capplan.layout.table_system import table_of

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
    table = table_of(system)
    if table is not None:
        if evidence is None:
            raise InputError(f"{system.name} is fitted to your load tests: give a load-test table as evidence")
        return fit_table(table, list(LOAD_TESTS.rows(evidence)), seed=seed)
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
        sampled = partial(resampled, self.problem, best, DRAWS, _PROPOSALS, self.seed)
        first = _ensemble(self.stages.of("locating the posterior", lambda: _plain(sampled())))
        stepped = partial(moved, self.problem, first, _STEPS, self.seed)
        drawn = _ensemble(self.stages.of("drawing from the posterior", lambda: _plain(stepped())))
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
    return {name: np.array(value) if isinstance(value, list) else value for name, value in stored.items()}
