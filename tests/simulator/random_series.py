"""Series of known distributions for tests of output analysis, and random bounds of a share."""

from itertools import pairwise

import numpy as np
from scipy import special

from capplan.models.language.units import FloatArray


def chance_limits(experiments: int, share: float, error: float = 1e-4) -> tuple[int, int]:
    """Fewest and most successes: a count beyond them has a probability of at most `error` on either side."""
    counts = np.arange(experiments + 1)
    below = special.bdtr(counts, experiments, share)
    return int(counts[below > error][0]), int(counts[below >= 1 - error][0])


def autoregressive(random: np.random.Generator, shape: tuple[int, int], memory: float) -> FloatArray:
    """Stationary AR(1) with mean 0 and variance 1 along the second axis: the autocorrelation is memory^lag."""
    noise = random.standard_normal((shape[1], shape[0]))
    noise[1:] *= np.sqrt(1 - memory**2)
    for before, now in pairwise(noise):
        now += memory * before
    return noise.T


def lindley(gaps: FloatArray, services: FloatArray) -> FloatArray:
    """Response times at a single server in order, which the first job finds empty (Lindley 1952)."""
    walk = np.concatenate([[0.0], services[:-1] - gaps[1:]])
    np.cumsum(walk, out=walk)
    return np.asarray(walk - np.minimum.accumulate(walk) + services)


def single_server(random: np.random.Generator, load: float, jobs: int) -> FloatArray:
    """Response times of M/M/1 with mean service 1, stationary: the first wait is drawn from its distribution."""
    gaps, services = random.exponential(1 / load, jobs + 1), random.standard_exponential(jobs + 1)
    services[0] = random.exponential(1 / (1 - load))  # a response time, so that what the next job finds is stationary
    return lindley(gaps, services)[1:]


def backlogs(
    random: np.random.Generator, load: float, arrivals: int, intervals: int, empty: bool = False
) -> tuple[FloatArray, float]:
    """Mean number in M/M/1 with mean service 1, by equal intervals, and their length; stationary unless `empty`."""
    end = arrivals / load
    waiting = 0 if empty or load >= 1 else random.geometric(1 - load) - 1
    coming = np.cumsum(random.exponential(1 / load, arrivals + int(10 * np.sqrt(arrivals)) + 10))
    assert coming[-1] > end
    starts = np.concatenate([np.zeros(waiting), coming])
    ends = starts + lindley(np.diff(starts, prepend=0.0), random.standard_exponential(len(starts)))
    edges = np.linspace(0.0, end, intervals + 1)
    return np.diff(_area(starts, edges) - _area(ends, edges)) / (end / intervals), end / intervals


def _area(moments: FloatArray, edges: FloatArray) -> FloatArray:
    """Integral of the number of (sorted) moments that have passed, up to every edge."""
    passed = np.searchsorted(moments, edges, side="right")
    sums = np.concatenate([[0.0], np.cumsum(moments)])
    return np.asarray(edges * passed - sums[passed])
