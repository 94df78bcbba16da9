"""Validations of the documented systems by their packaged refits; each takes seconds, so a process makes it once."""

from functools import cache

from capplan.calibration.validation.validation import Validation, report
from capplan.systems.registry import documented_names, system


@cache
def reported(name: str) -> Validation:
    """Return the validation of a documented system."""
    return report(system(name), system(name).fitted())


def every() -> list[Validation]:
    """Return those of all documented systems."""
    return [reported(name) for name in documented_names()]
