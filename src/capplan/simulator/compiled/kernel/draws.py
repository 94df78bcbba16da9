"""Random numbers of the kernel: the same keys, laws and roundings as `streams` and `sampling`, in machine code."""

from __future__ import annotations

import numpy as np

from capplan.simulator.compiled.kernel.compiling import part
from capplan.simulator.compiled.kernel.layout import A_EXPONENTIAL, Program
from capplan.simulator.specification.clock import LONGEST_TICKS
from capplan.simulator.specification.quantile_table import BELOW_HALF, OCTAVES, ORDER
from capplan.simulator.specification.sampling import LARGEST, SMALLEST
from capplan.simulator.specification.streams import FIRST, GAMMA, SECOND

_GAMMA, _FIRST, _SECOND = np.uint64(GAMMA), np.uint64(FIRST), np.uint64(SECOND)
_12, _27, _30, _31 = np.uint64(12), np.uint64(27), np.uint64(30), np.uint64(31)
CONSTANT, TABLE, EMPIRICAL, MIXTURE = range(4)
_LONGEST = float(LONGEST_TICKS)
# A double's bits: the exponent stands above 52 bits of the fraction; that of numbers from 1/4 to 1/2 is 1021.
_FRACTION_BITS, _UPPER_OCTAVE = 52, 1021
_ONE, _EXPONENT_OF_ONE = 1 << _FRACTION_BITS, 1023 << _FRACTION_BITS


@part
def mix(word: np.uint64) -> np.uint64:
    """Repeat `streams.mix`."""
    word = (word ^ (word >> _30)) * _FIRST
    word = (word ^ (word >> _27)) * _SECOND
    return word ^ (word >> _31)


@part
def fold(key: np.uint64, field: int) -> np.uint64:
    """Repeat `streams.fold`."""
    return mix(key + np.uint64(field + 1) * _GAMMA)


@part
def request_key(source: np.uint64, unit: int, position: int, attempt: int) -> np.uint64:
    """Repeat `streams.request_key`."""
    return fold(fold(fold(source, unit), position), attempt)


@part
def uniform(request: np.uint64, draw: np.uint64) -> float:
    """Repeat `streams.uniform`."""
    return (np.float64(np.int64(mix(request + draw) >> _12)) + 0.5) * 2.0**-52


@part
def exponential(p: Program, request: np.uint64, draw: np.uint64) -> float:
    """Return a standard exponential number."""
    return max(0.0, _from_table(p, p.traffic[A_EXPONENTIAL], uniform(request, draw)))


@part
def rounded(duration: float) -> int:
    """Round a number of ticks to the nearest, a half to the even one, at most the longest duration."""
    if duration >= _LONGEST:
        return LONGEST_TICKS
    return max(int(np.rint(duration)), 0)


@part
def ticks(p: Program, law: int, u: float) -> int:
    """Return the quantile of a law at `u`, in ticks."""
    kind = p.laws[law].kind
    while kind == MIXTURE:
        first, count = p.laws[law].first, p.laws[law].count
        chosen = pick(p, first + 1, count - 1, u)
        within = (u - p.numbers[first + chosen]) / p.numbers[first + count + chosen]
        u = min(max(within, SMALLEST), LARGEST)
        law = p.parts[p.laws[law].ticks + chosen]
        kind = p.laws[law].kind
    if kind == CONSTANT:
        return p.laws[law].ticks
    if kind == TABLE:
        return rounded(_from_table(p, law, u) * p.laws[law].scale)
    return _empirical(p, p.laws[law].first, p.laws[law].count, u)


@part
def pick(p: Program, first: int, edges: int, u: float) -> int:
    """Return how many of the edges that start at `first` are not above `u` (`bisect_right`)."""
    chosen = 0
    while chosen < edges and p.numbers[first + chosen] <= u:
        chosen += 1
    return chosen


@part
def _from_table(p: Program, law: int, u: float) -> float:
    """Return the value of a law's table; octave, piece and place in it are read from the bits of the number."""
    first, piece_bits = p.laws[law].first, p.laws[law].ticks
    upper = u > 0.5
    bits = np.float64(1.0 - u if upper else min(u, BELOW_HALF)).view(np.int64)
    fraction = bits & (_ONE - 1)
    piece = (_UPPER_OCTAVE - (bits >> _FRACTION_BITS) + (OCTAVES if upper else 0) << piece_bits) + (
        fraction >> _FRACTION_BITS - piece_bits
    )
    rest = fraction << piece_bits & (_ONE - 1)
    t = np.int64(rest | _EXPONENT_OF_ONE).view(np.float64) - 1.0
    c = first + ORDER * piece
    n = p.numbers
    return ((((n[c + 5] * t + n[c + 4]) * t + n[c + 3]) * t + n[c + 2]) * t + n[c + 1]) * t + n[c]


@part
def _empirical(p: Program, first: int, count: int, u: float) -> int:
    place = u * (count - 1)
    index = np.int64(place)
    low = p.numbers[first + index]
    return rounded((low + (place - index) * (p.numbers[first + index + 1] - low)) * 1e9)
