"""The longest latency of a long run, from the longest ones of its parts: a statistic of the horizon, not of the system.

The maximum over a block of time is nearly Gumbel distributed when latencies have an exponential tail and blocks are
long compared with the memory of the system. Over n blocks the location grows by the scale times log n (Coles, *An
Introduction to Statistical Modeling of Extreme Values*, 2001, chapter 3). Location and scale come from the first two
L-moments (Hosking, *Journal of the Royal Statistical Society B* 52, 1990).
"""

from __future__ import annotations

import numpy as np

from capplan.models.errors import InputError
from capplan.models.language.units import FloatArray
from capplan.simulator.results.run import Run
from capplan.simulator.results.tally import LONGEST_INTENDED
from capplan.simulator.specification.clock import TICKS_PER_S

FEWEST_BLOCKS = 10


def block_maxima_s(run: Run) -> FloatArray:
    """Return the longest latency, from the intended start, of each interval of the run's window; in seconds."""
    first, last = run.window
    longest = run.tally.class_totals[first:last, :, LONGEST_INTENDED].max(axis=1)
    return np.asarray(longest / TICKS_PER_S)


def maximum_over_s(maxima_s: FloatArray, blocks: float, level: float = 0.5) -> float:
    """Return the value that the maximum over a number of blocks does not exceed with probability `level`.

    Parameters
    ----------
    maxima_s : array of shape (observed,)
        Longest latencies of equal blocks, in seconds.
    blocks : float
        Number of such blocks in the horizon, at least 1; they need not have been observed.
    level : float
        The probability; 0.5 gives the median.

    Returns
    -------
    float
        In seconds.

    Raises
    ------
    InputError
        When there are fewer than ten blocks.
    """
    if maxima_s.size < FEWEST_BLOCKS:
        raise InputError(f"{maxima_s.size} blocks are too few to estimate a maximum: give at least {FEWEST_BLOCKS}")
    rising = np.sort(maxima_s)
    count = rising.size
    half_difference = float(rising @ (2 * np.arange(1, count + 1) - count - 1)) / (count * (count - 1))
    scale = half_difference / np.log(2)
    return float(rising.mean() + scale * (np.log(blocks) - np.log(-np.log(level)) - np.euler_gamma))
