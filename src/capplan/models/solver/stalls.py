"""Response times behind a station that stalls, in closed form.

Requests come as a Poisson stream to one server that needs little time for each. Now and then the service of a request
holds a stall (a stop of the whole virtual machine), of one of two kinds with exponential lengths. Everybody who comes
meanwhile waits, and then for those before. After the station a request takes a path of its own, a gamma time.

With the small services taken as a steady drain the wait is that of an M/G/1 queue whose services are the stalls and
whose server has what the small services leave. Its transform (Pollaczek and Khinchine; Kleinrock, *Queueing Systems*,
vol. 1, 1975, section 5.7) has two poles, so the wait is zero or a mixture of two exponential laws: see White and
Christie, *Operations Research* 6 (1958), on queues with breakdowns. The sum with the path is exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from capplan.models.errors import InputError
from capplan.models.language.units import FloatArray, Number

_HALVINGS = 34  # of the bracket of a quantile, in its logarithm: 1e-9 of it remains
_APART = 1e-6  # relative distance of two mean lengths below which they are moved apart: equal ones have one pole


class Stalls(NamedTuple):
    """One kind of stall: how often one begins, and its mean length; numbers or arrays over draws."""

    rate_per_s: Number
    mean_s: Number


class WaitTail(NamedTuple):
    """P(wait > t) = sum of `weight` * exp(-`decay_per_s` * t); arrays (2, draws)."""

    weight: FloatArray
    decay_per_s: FloatArray


def wait_tail(drained: Number, short: Stalls, long: Stalls) -> WaitTail:
    """Return the law of the wait for a station that stalls.

    Parameters
    ----------
    drained
        Share of the server that the small services take.
    short, long
        Both kinds of stalls, in any order.

    Raises
    ------
    InputError
        When the work is more than the server can do.
    """
    left, rate, mean = _arrays(drained, short, long)
    stalled = (rate * mean).sum(axis=0)
    if not np.all(stalled < left):
        share = float(np.max(stalled + 1 - left))
        raise InputError(f"a station that works or stalls {share:.4g} of the time has no steady state: lower the rate")
    product = mean[0] * mean[1]
    quadratic, linear = left * product, rate.sum(axis=0) * product - left * mean.sum(axis=0)
    root = np.sqrt(np.maximum(linear**2 - 4 * quadratic * (left - stalled), 0.0))
    fast = (root - linear) / (2 * quadratic)
    slow = (left - stalled) / (quadratic * fast)  # not the difference of two large numbers
    busy, mean_wait = stalled / left, (rate * mean**2).sum(axis=0) / (left - stalled)
    slow_weight = (mean_wait - busy / fast) / (1 / slow - 1 / fast)
    return WaitTail(np.stack([slow_weight, busy - slow_weight]), np.stack([slow, fast]))


def _arrays(drained: Number, short: Stalls, long: Stalls) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what is left of the server, and rates and mean lengths of the stalls (2, draws)."""
    numbers = np.broadcast_arrays(*(np.atleast_1d(np.asarray(each, dtype=float)) for each in (drained, *short, *long)))
    left, rate, mean = 1 - numbers[0], np.stack([numbers[1], numbers[3]]), np.stack([numbers[2], numbers[4]])
    close = np.abs(mean[1] / mean[0] - 1) < _APART
    return left, rate, np.stack([mean[0], np.where(close, mean[0] * (1 + _APART), mean[1])])


def response_tail(wait: WaitTail, path_mean_s: Number, path_scv: Number, time_s: FloatArray) -> FloatArray:
    """Return P(wait + path > `time_s`); `time_s` broadcasts against (draws,).

    Raises
    ------
    InputError
        When the path has a longer tail than the wait, which has no such form.
    """
    shape, scale = 1 / np.asarray(path_scv), np.asarray(path_mean_s) * path_scv
    tail: FloatArray = special.gammaincc(shape, time_s / scale)
    for weight, decay in zip(*wait, strict=True):
        tilt = 1 - decay * scale
        if not np.all(tilt > 0):
            raise InputError("a path that varies more than the wait for it has no closed form: simulate it")
        ended = special.gammainc(shape, time_s * tilt / scale)
        tail = tail + weight * np.exp(-decay * time_s - shape * np.log(tilt)) * ended
    return tail


def response_quantile_s(wait: WaitTail, path_mean_s: Number, path_scv: Number, level: float) -> FloatArray:
    """Return the time (draws,) that a share `level` of the requests does not exceed, wait and path; seconds."""
    mean = np.asarray(path_mean_s)
    low = np.broadcast_to(mean * 1e-3, np.shape(wait.weight[0] * mean))
    high = mean * (10 + 40 * path_scv) - 2 * np.log(1 - level) / wait.decay_per_s.min(axis=0)
    for _ in range(_HALVINGS):
        middle = np.sqrt(low * high)
        beyond = response_tail(wait, path_mean_s, path_scv, middle) > 1 - level
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return np.asarray(np.sqrt(low * high))


def longest_wait_s(wait: WaitTail, left: Number, horizon_s: float) -> FloatArray:
    """Return the median of the longest wait in a time, seconds (draws,).

    The wait falls through a level `left` times its density there a second (Brill, *Level Crossing Methods in Stochastic
    Models*, 2008). These crossings come in clumps: from a high level it rises above it again with the probability of
    waiting at all, as far as stalls come at random. Clumps are rare and nearly independent, so their number is Poisson
    (Aldous, *Probability Approximations via the Poisson Clumping Heuristic*, 1989). Only the slower tail reaches that
    far.

    Parameters
    ----------
    wait
        The law of the wait.
    left
        Share of the server that small services leave: how fast the wait falls, seconds per second.
    horizon_s
        The time, seconds; long beside `relaxation_s`.
    """
    slow = np.argmin(wait.decay_per_s, axis=0)[None]
    weight, decay = (np.take_along_axis(np.asarray(each), slow, axis=0)[0] for each in wait)
    alone = 1 - wait.weight.sum(axis=0)
    return np.asarray(np.log(np.maximum(horizon_s * left * weight * decay * alone / np.log(2), 1.0)) / decay)


def relaxation_s(wait: WaitTail, left: Number) -> FloatArray:
    """Return how long the wait takes to forget how it began, seconds (draws,).

    That of a Brownian motion with the wait's drift and slower tail, reflected at zero: 4 / (decay x drift) (Asmussen,
    *Applied Probability and Queues*, 2003, section IX.2; its spectral gap is drift^2 / (2 variance rate)).

    Parameters
    ----------
    wait, left
        As in `longest_wait_s`.
    """
    drift = left * (1 - wait.weight.sum(axis=0))
    return np.asarray(4 / (wait.decay_per_s.min(axis=0) * drift))
