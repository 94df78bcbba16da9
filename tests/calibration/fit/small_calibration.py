"""A calibration that takes a moment: three scenarios of `vcider`, few draws."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.calibration.altered_systems import observing

from capplan.calibration.fit import calibrate, posterior, refits
from capplan.layout.observations import LoadTest
from capplan.systems.registry import system

FOLDS = ("r1.none", "r1.both", "r3.both")
VCIDER = system("vcider")


def three(choice: Mapping[str, str] | None = None) -> tuple[LoadTest[Any], ...]:
    return tuple(test for test in VCIDER.observations.load_tests(choice) if test.fold in FOLDS)


SMALL = observing(VCIDER, load_tests=three)


def few_draws(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(calibrate, "DRAWS", 16)
    patched.setattr(calibrate, "_PROPOSALS", 80)
    patched.setattr(calibrate, "_STEPS", 2)
    patched.setattr(refits, "DRAWS", 12)
    patched.setattr(refits, "PROPOSALS", 60)
    patched.setattr(posterior, "_ROUNDS", 2)
