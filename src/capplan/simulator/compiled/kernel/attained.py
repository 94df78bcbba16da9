"""Arithmetic of the service attained, in whole ticks and parts of one, without leaving 64 bits.

`sigma` parts are attained a tick, at most 512 * `PARTS` < 2**46. Products that might not fit are made limb by limb;
that is rare, so these stay functions of their own.
"""

from __future__ import annotations

import math

from capplan.simulator.compiled.kernel.compiling import called
from capplan.simulator.specification.clock import LONGEST_TICKS

PARTS = math.lcm(*range(1, 29))  # 80 313 433 200, a little above 2**36: thirds, quarters, ... 28ths are whole
LIMB, LIMBS = 16, 4
_MASK = (1 << LIMB) - 1
_FITS = 4.0e18  # below 2**62, with room for rounding


@called
def grown(whole: int, parts: int, sigma: int, elapsed: int) -> tuple[int, int]:
    """Return what is attained `elapsed` ticks later."""
    if float(sigma) * elapsed < _FITS:
        parts += sigma * elapsed
        return whole + parts // PARTS, parts % PARTS
    each, rest = sigma // PARTS, sigma % PARTS
    high, low = 0, 0  # rest * elapsed, in whole ticks and parts
    for limb in range(LIMBS - 1, -1, -1):
        low = (low << LIMB) + rest * (elapsed >> LIMB * limb & _MASK)
        high = (high << LIMB) + low // PARTS
        low %= PARTS
    parts += low
    return whole + each * elapsed + high + parts // PARTS, parts % PARTS


@called
def ticks_until(whole: int, parts: int, sigma: int) -> int:
    """Return the fewest ticks in which `whole` ticks and `parts` (or less, if negative) are attained, within limits."""
    if parts < 0:
        whole, parts = whole - 1, parts + PARTS
    if float(whole) * PARTS < _FITS:
        return (whole * PARTS + parts + sigma - 1) // sigma
    if whole / sigma * PARTS > LONGEST_TICKS:
        return LONGEST_TICKS
    each, rest = PARTS // sigma, PARTS % sigma
    ticks, left = 0, 0  # whole * rest, divided by sigma
    for limb in range(LIMBS - 1, -1, -1):
        left = (left << LIMB) + rest * (whole >> LIMB * limb & _MASK)
        ticks = (ticks << LIMB) + left // sigma
        left %= sigma
    return ticks + each * whole + (left + parts + sigma - 1) // sigma
