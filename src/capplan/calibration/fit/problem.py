"""The fitting problem of a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from capplan.calibration.fit.maximum import Problem, Scatter, rows_to_fit
from capplan.calibration.study import Experiment, Study
from capplan.models.language.units import FloatArray


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
