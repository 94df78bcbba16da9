"""The integer clock of the simulation engines: int64 ticks of one nanosecond.

An integer clock makes equal times equal: ties are exact, sums do not depend on their order, and two engines can agree
tick by tick. One nanosecond is fine enough (a service of 10 µs is rounded by at most 0.005 %, without bias) and int64
reaches 292 years. float64 represents every tick of the first 104 days exactly, so results in seconds lose nothing.
"""

from __future__ import annotations

import math

from capplan.errors import InputError

TICKS_PER_S = 1_000_000_000
# Thirty-six years. A longer draw (of a Pareto tail) is cut here, so that sums stay within int64.
LONGEST_TICKS = 2**60


def to_ticks(seconds: float) -> int:
    """Round a duration in seconds to the nearest tick (a half to the even one), at most `LONGEST_TICKS`.

    Raises
    ------
    InputError
        When it is negative or not a number.
    """
    if not seconds >= 0:
        raise InputError(f"{seconds:g} s is not a duration: it must be at least 0")
    scaled = seconds * TICKS_PER_S
    return LONGEST_TICKS if scaled >= LONGEST_TICKS else round(scaled)


def to_seconds(ticks: float) -> float:
    """Return ticks (or a mean of ticks) in seconds."""
    return ticks / TICKS_PER_S if math.isfinite(ticks) else ticks
