"""The unit of latencies in formats that do not name it: given, or the only one in which they are possible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from capplan.errors import InputError, one_of

PER_MS = {"ns": 1e6, "us": 1e3, "ms": 1.0}
"""Units in a millisecond, by the unit that tools record."""
USUAL_MS = 0.1
"""What the median of requests that cross a network exceeds."""
_MOST_MS = 1e4


def given_unit(unit: str, where: str = "--unit") -> str:
    """Return a unit that the user, or a file, has given.

    Raises
    ------
    InputError
        If it is none in which tools record.
    """
    return one_of(PER_MS, unit.replace("µ", "u"), f"{where} {unit!r} is no unit in which tools record latencies")


def possible_units(
    median: float, longest: float = 0.0, span_s: float = math.inf, least_ms: float = USUAL_MS
) -> list[str]:
    """Return the units in which latencies are those of requests, and no longer than the run."""
    return [
        unit
        for unit, per_ms in PER_MS.items()
        if least_ms <= median / per_ms <= _MOST_MS and longest / per_ms <= 1000 * span_s
    ]


def unit_of(
    path: Path, given: str, stated: str, median: float, possible: Sequence[str], shown: str = ""
) -> tuple[str, tuple[str, ...]]:
    """Return the unit of a file's latencies, and a remark if it is inferred.

    Parameters
    ----------
    path : Path
        The file.
    given, stated : str
        What the user and the file say; empty for nothing.
    median : float
        Of its latencies, in the unit.
    possible : sequence of str
        The units in which its latencies are possible.
    shown : str
        A possible unit that another figure of the file shows.

    Raises
    ------
    InputError
        If nothing shows the unit.
    """
    if given or stated:
        return given_unit(given) if given else given_unit(stated, f"{path}: unit"), ()
    if not shown and len(possible) != 1:
        raise InputError(
            f"{path} does not say the unit of its latencies, and nothing in it shows in which unit their median of "
            f"{median:g} is: give it by --unit ns, us or ms"
        )
    unit, why = (shown, "its column Interval_Max shows") if shown else (possible[0], "no other is possible")
    return unit, (f"its unit is taken for {unit}, as {why}: --unit gives another",)
