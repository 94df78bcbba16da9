"""Calibrating `openprovider`: fit each hypothesis, draw an ensemble under the best, refit without each scenario."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from capplan.calibration.evidence_table import data_hash
from capplan.calibration.fit import Ensemble, Maximum, Problem, ensemble, maximum, rows_to_fit
from capplan.calibration.fitted_file import Fitted, FittedFigure, Hypothesis, rounded
from capplan.calibration.openprovider_figures import Experiment, experiments, predicted_all
from capplan.models.openprovider import PARAMETERS
from capplan.models.parameter import from_log
from capplan.models.quantity import FloatArray
from capplan.models.scenario import Scenario, changed

DRAWS = 240
_PROPOSALS = 2500
_PROPOSALS_LEFT_OUT = 1000
CHOICES = tuple((read, write) for read in ("LOCAL_QUORUM", "LOCAL_ONE") for write in ("QUORUM", "EACH_QUORUM"))
"""Consistency levels (read, write) that the document leaves open: it names none, but wants data consistent over DCs."""

FOLDS = 4
STAGES = len(CHOICES) + 1 + FOLDS
"""How often `calibrate` tells its progress."""

Progress = Callable[[str], None]


def problem(tests: Sequence[Experiment]) -> Problem:
    """Return the fitting problem of some experiments."""
    rows = rows_to_fit([row for test in tests for row in test.rows])
    return Problem(PARAMETERS, rows, lambda values: predicted_all(tests, values))


def calibrate(seed: int, version: str, progress: Progress = lambda _: None) -> Fitted:
    """Fit the system to its evidence.

    Parameters
    ----------
    seed : int
        Seed of the resampling; the same seed gives the same file.
    version : str
        Version of capplan, for the file.
    progress : function
        Told in words what is being done.

    Returns
    -------
    Fitted
        Ready to be written.
    """
    bases = [changed(Scenario(), consistency_read=read, consistency_write=write) for read, write in CHOICES]
    fits: list[Maximum] = []
    for base in bases:
        progress(f"fitting with reads at {base.consistency_read} and writes at {base.consistency_write}")
        fits.append(maximum(problem(experiments(base))))
    ranked = sorted(range(len(bases)), key=lambda i: fits[i].misfit)
    default = CHOICES.index((Scenario().consistency_read, Scenario().consistency_write))
    best, tests = fits[default], experiments(bases[default])
    progress("drawing from the posterior")
    drawn = ensemble(problem(tests), best, DRAWS, _PROPOSALS, seed)
    free = [parameter for parameter in PARAMETERS if parameter.free]
    return Fitted(
        system="openprovider",
        version=version,
        seed=seed,
        data_hash=data_hash("openprovider"),
        names=tuple(parameter.name for parameter in free),
        most_probable=tuple(rounded(float(value)) for value in np.exp(best.log_point)),
        draws=tuple(tuple(rounded(float(value)) for value in row) for row in np.exp(drawn.log_points)),
        fitted_parameters=sum(parameter.kind == "fitted" for parameter in free),
        effective_parameters=rounded(best.effective_parameters),
        effective_sample_size=rounded(drawn.effective_size),
        hypotheses=tuple(Hypothesis(*CHOICES[i], rounded(fits[i].misfit)) for i in ranked),
        figures=_figures(tests, drawn.log_points),
        left_out=_left_out(tests, best, seed, progress),
    )


def _left_out(tests: Sequence[Experiment], best: Maximum, seed: int, progress: Progress) -> tuple[FittedFigure, ...]:
    found: list[FittedFigure] = []
    for number, fold in enumerate(dict.fromkeys(test.fold for test in tests)):
        progress(f"refitting without {fold}")
        kept = [test for test in tests if test.fold != fold]
        without = problem(kept)
        fit = maximum(without, best.log_point)
        drawn: Ensemble = ensemble(without, fit, DRAWS, _PROPOSALS_LEFT_OUT, seed + 1 + number)
        found.extend(_figures([test for test in tests if test.fold == fold], drawn.log_points))
    return tuple(found)


def _figures(tests: Sequence[Experiment], log_points: FloatArray) -> tuple[FittedFigure, ...]:
    said = predicted_all(tests, from_log(PARAMETERS, log_points))
    return tuple(
        FittedFigure(
            row.id,
            row.fold,
            row.value,
            *(rounded(float(value)) for value in np.quantile(said[row.id], [0.5, 0.05, 0.95])),
        )
        for test in tests
        for row in test.rows
    )
