"""The fitting problem of a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from capplan.calibration.fit.maximum import Problem, Scatter, rows_to_fit
from capplan.calibration.observations import LoadTest
from capplan.calibration.system import System
from capplan.models.language.units import FloatArray


def problem(system: System[Any], tests: Sequence[LoadTest[Any]]) -> Problem:
    """Return the fitting problem of some experiments; the model is asked for the fitted figures only."""
    fitted = [replace(test, rows=rows_to_fit(test.rows)) for test in tests]
    asked = [test for test in fitted if test.rows]
    return Problem(
        system.parameters,
        tuple(row for test in asked for row in test.rows),
        lambda values: system.observations.predicted(asked, values),
        lambda row: Scatter(system.observations.repeatability(row), system.observations.logarithmic),
    )


def start_of(system: System[Any]) -> FloatArray | None:
    """Return where the search for the maximum starts, logarithms of the free parameters; None: at the priors."""
    if not system.observations.start:
        return None
    return np.log([system.observations.start[parameter.name] for parameter in system.parameters if parameter.free])
