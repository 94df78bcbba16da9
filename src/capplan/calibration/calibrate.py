"""Calibrating a system: fit each choice left open, draw an ensemble under the default, refit without each scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

import numpy as np

from capplan.calibration.evidence_table import data_hash
from capplan.calibration.fit import Ensemble, Maximum, Problem, Scatter, ensemble, maximum, rows_to_fit
from capplan.calibration.fitted_file import Fitted, FittedFigure, Hypothesis, rounded
from capplan.calibration.stages import Stages, digest
from capplan.calibration.studies import study
from capplan.calibration.study import Experiment, Study
from capplan.models.parameter import from_log
from capplan.models.quantity import FloatArray

DRAWS = 240
_PROPOSALS = 2500
_PROPOSALS_LEFT_OUT = 1000

Progress = Callable[[str], None]


def problem(its: Study, tests: Sequence[Experiment]) -> Problem:
    """Return the fitting problem of some experiments; the model is asked for the fitted figures only."""
    fitted = [replace(test, rows=rows_to_fit(test.rows)) for test in tests]
    asked = [test for test in fitted if test.rows]
    return Problem(
        its.system.parameters,
        tuple(row for test in asked for row in test.rows),
        lambda values: its.predicted(asked, values),
        lambda row: Scatter(its.repeatability(row), its.logarithmic),
    )


def start_of(its: Study) -> FloatArray | None:
    """Return where the search for the maximum starts, logarithms of the free parameters; None: at the priors."""
    if not its.start:
        return None
    return np.log([its.start[parameter.name] for parameter in its.system.parameters if parameter.free])


def stages_of(its: Study) -> int:
    """Return how often `calibrate` tells its progress."""
    return max(len(its.choices), 1) + 2 + len(_folds(its.experiments()))


def calibrate(
    system: str | Study,
    seed: int = 1,
    version: str | None = None,
    progress: Progress = lambda _: None,
    output: Path | None = None,
) -> Fitted:
    """Fit a system to its evidence.

    Parameters
    ----------
    system : str or Study
        The system, or how it is calibrated.
    seed : int
        Seed of the draws; the same seed gives the same file.
    version : str, optional
        Version of capplan, for the file; the installed one when left out.
    progress : function
        Told in words what is being done.
    output : Path, optional
        File that the result is for. What is finished is kept beside it, so that an interrupted calibration goes on,
        each seed and evidence in a file of its own; it is gone at the end.

    Returns
    -------
    Fitted
        Ready to be written.
    """
    its = study(system) if isinstance(system, str) else system
    name = its.system.name
    stages = Stages(digest(name, seed, data_hash(name), DRAWS, _PROPOSALS), progress, output)
    fitted = _Calibration(its, seed, stages).fitted(version or installed("capplan"))
    stages.end()
    return fitted


class _Calibration:
    """A calibration under way."""

    def __init__(self, its: Study, seed: int, stages: Stages) -> None:
        self.study, self.seed, self.stages = its, seed, stages
        self.tests = its.experiments()
        self.problem = problem(its, self.tests)

    def fitted(self, version: str) -> Fitted:
        """Go through the stages and put the fitted file together."""
        hypotheses, best = self.choices()
        drawn = _ensemble(self.stages.of("drawing from the posterior", lambda: _plain(self.draw(best))))
        free = [parameter for parameter in self.study.system.parameters if parameter.free]
        return Fitted(
            system=self.study.system.name,
            version=version,
            seed=self.seed,
            data_hash=data_hash(self.study.system.name),
            names=tuple(parameter.name for parameter in free),
            most_probable=tuple(rounded(float(value)) for value in np.exp(best.log_point)),
            draws=tuple(tuple(rounded(float(value)) for value in row) for row in np.exp(drawn.log_points)),
            fitted_parameters=sum(parameter.kind == "fitted" for parameter in free),
            effective_parameters=rounded(best.effective_parameters),
            effective_sample_size=rounded(drawn.effective_size),
            hypotheses=hypotheses,
            figures=_read(self.stages.of("predicting", lambda: self.figures(self.tests, drawn))),
            left_out=tuple(each for fold in self.left_out(best) for each in fold),
        )

    def choices(self) -> tuple[tuple[Hypothesis, ...], Maximum]:
        """Fit each choice that is left open; return them, the best first, and the fit of the scenario's defaults."""
        if not self.study.choices:
            return (), _maximum(self.stages.of("fitting", lambda: _plain(maximum(self.problem, start_of(self.study)))))
        usual = vars(self.tests[0].scenario)
        fits, best = [], None
        for choice in self.study.choices:
            words = " and ".join(f"{name.replace('_', ' ')} {value}" for name, value in choice.items())
            found = _maximum(self.stages.of(f"fitting with {words}", partial(self.fit, choice)))
            fits.append(Hypothesis(choice, rounded(found.misfit)))
            if all(usual[name] == value for name, value in choice.items()):
                best = found
        if best is None:
            raise ValueError("the scenario's own choice must be among the choices")
        return tuple(sorted(fits, key=lambda each: each.misfit)), best

    def fit(self, choice: Mapping[str, str]) -> dict[str, Any]:
        """Fit a choice."""
        return _plain(maximum(problem(self.study, self.study.experiments(choice)), start_of(self.study)))

    def draw(self, best: Maximum) -> Ensemble:
        """Draw the ensemble."""
        return ensemble(self.problem, best, DRAWS, _PROPOSALS, self.seed)

    def left_out(self, best: Maximum) -> list[tuple[FittedFigure, ...]]:
        """Predict each independent scenario by a fit without it."""
        return [
            _read(self.stages.of(f"refitting without {fold}", partial(self.without, fold, number, best)))
            for number, fold in enumerate(_folds(self.tests))
        ]

    def without(self, fold: str, number: int, best: Maximum) -> list[list[Any]]:
        """Predict a scenario by a fit without it."""
        left = [test for test in self.tests if test.fold == fold]
        seed = self.seed + 1 + number
        others = problem(self.study, [test for test in self.tests if test.fold != fold])
        fit = maximum(others, best.log_point)
        return self.figures(left, ensemble(others, fit, DRAWS, _PROPOSALS_LEFT_OUT, seed))

    def figures(self, tests: Sequence[Experiment], drawn: Ensemble) -> list[list[Any]]:
        """Return what the model says of the figures of some experiments: the fields of `FittedFigure`."""
        said = self.study.predicted(tests, from_log(self.study.system.parameters, drawn.log_points))
        return [
            [row.id, row.fold, row.value, *(rounded(float(v)) for v in np.quantile(said[row.id], [0.5, 0.05, 0.95]))]
            for test in tests
            for row in test.rows
        ]


def _folds(tests: Sequence[Experiment]) -> list[str]:
    return list(dict.fromkeys(test.fold for test in tests))


def _read(figures: Sequence[Sequence[Any]]) -> tuple[FittedFigure, ...]:
    return tuple(FittedFigure(*each) for each in figures)


def _plain(found: Maximum | Ensemble) -> dict[str, Any]:
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(found).items()}


def _maximum(found: Mapping[str, Any]) -> Maximum:
    return Maximum(**_arrays(found))


def _ensemble(found: Mapping[str, Any]) -> Ensemble:
    return Ensemble(**_arrays(found))


def _arrays(found: Mapping[str, Any]) -> dict[str, Any]:
    arrays: dict[str, FloatArray | float] = {
        name: np.array(value) if isinstance(value, list) else value for name, value in found.items()
    }
    return arrays
