"""The longest latency of a long run, from the longest ones of its parts: a statistic of the horizon, not of the system.

The maximum over a block of time is nearly Gumbel distributed when latencies have an exponential tail and blocks are
long beside the time to forget; over n blocks the location grows by the scale times log n (Coles, *An Introduction to
Statistical Modeling of Extreme Values*, 2001, chapter 3). Location and scale come from the first two L-moments
(Hosking, *Journal of the Royal Statistical Society B* 52, 1990).
"""

from __future__ import annotations

import numpy as np

from capplan.models.errors import InputError
from capplan.models.language.units import FloatArray
from capplan.simulator.results.run import Run
from capplan.simulator.results.tally import LONGEST_INTENDED
from capplan.simulator.specification.clock import TICKS_PER_S

_EULER = 0.5772156649015329
FEWEST_BLOCKS = 10


def block_maxima_s(run: Run) -> FloatArray:
    """Return the longest latency, from the intended start, of each interval of the run's window; seconds."""
    first, last = run.window
    longest = run.tally.class_totals[first:last, :, LONGEST_INTENDED].max(axis=1)
    return np.asarray(longest / TICKS_PER_S)


def maximum_over_s(maxima_s: FloatArray, blocks: float, level: float = 0.5) -> float:
    """Return what the maximum over a number of blocks does not exceed with probability `level`; seconds.

    Parameters
    ----------
    maxima_s
        Longest latencies of equal blocks, seconds; shape (observed,).
    blocks
        How many such blocks the horizon has, at least 1; they need not have been observed.
    level
        The probability; 0.5 gives the median.

    Raises
    ------
    InputError
        When there are fewer than ten blocks.
    """
    if maxima_s.size < FEWEST_BLOCKS:
        raise InputError(f"{maxima_s.size} blocks say too little of a maximum: give at least {FEWEST_BLOCKS}")
    rising = np.sort(maxima_s)
    count = rising.size
    half_difference = float(rising @ (2 * np.arange(1, count + 1) - count - 1)) / (count * (count - 1))
    scale = half_difference / np.log(2)
    return float(rising.mean() + scale * (np.log(blocks) - np.log(-np.log(level)) - _EULER))
