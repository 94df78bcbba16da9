"""A calibration that takes a moment: three scenarios of `vcider`, few draws."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from capplan.calibration.fit import calibrate, posterior, refits
from capplan.calibration.study import Experiment
from capplan.systems.vcider.observations import STUDY, experiments

FOLDS = ("r1.none", "r1.both", "r3.both")


def three(choice: Mapping[str, str] = MappingProxyType({})) -> tuple[Experiment, ...]:
    return tuple(test for test in experiments(choice) if test.fold in FOLDS)


SMALL = replace(STUDY, experiments=three)


def few_draws(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(calibrate, "DRAWS", 16)
    patched.setattr(calibrate, "_PROPOSALS", 80)
    patched.setattr(calibrate, "_STEPS", 2)
    patched.setattr(refits, "DRAWS", 12)
    patched.setattr(refits, "PROPOSALS", 60)
    patched.setattr(posterior, "_ROUNDS", 2)
