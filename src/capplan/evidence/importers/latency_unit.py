"""The unit of latencies in formats that do not name it: given, or the only one in which they are possible."""

from __future__ import annotations

import math
from pathlib import Path

from capplan.models.errors import InputError, one_of

PER_MS = {"ns": 1e6, "us": 1e3, "ms": 1.0}
"""Units in a millisecond, by the unit that tools record."""
USUAL_MS = 0.1
"""What the median of requests that cross a network exceeds."""
_MOST_MS = 1e4


def given_unit(unit: str) -> str:
    """Return a unit that the user has given.

    Raises
    ------
    InputError
        If it is none in which tools record.
    """
    return one_of(PER_MS, unit.replace("µ", "u"), f"--unit {unit!r} is no unit in which tools record latencies")


def possible_units(
    median: float, longest: float = 0.0, span_s: float = math.inf, least_ms: float = USUAL_MS
) -> list[str]:
    """Return the units in which latencies are those of requests, and no longer than the run."""
    return [
        unit
        for unit, per_ms in PER_MS.items()
        if least_ms <= median / per_ms <= _MOST_MS and longest / per_ms <= 1000 * span_s
    ]


def unstated(path: Path, median: float) -> InputError:
    """Return the refusal of a file whose unit nothing shows."""
    return InputError(
        f"{path} does not say the unit of its latencies, and nothing in it shows in which unit their median of "
        f"{median:g} is: give it by --unit ns, us or ms"
    )
