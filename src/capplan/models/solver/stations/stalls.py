"""Closed forms for response times behind a station that stalls.

Poisson arrivals come to one server with short service times. Occasionally a service includes a stall (a stop of the
whole virtual machine) of one of two kinds with exponential lengths. Requests that arrive during a stall wait for its
end and for the requests before them. After the station a request needs a further gamma distributed time, its path.

If the short services are approximated by a constant drain, the wait is that of an M/G/1 queue whose services are the
stalls, at a server slowed by the drain. Its Pollaczek-Khinchine transform has two poles, so the wait is 0 or a mixture
of two exponentials. The sum of wait and path is exact.

References
----------
L. Kleinrock, *Queueing Systems*, vol. 1, Wiley, 1975, section 5.7; H. White and L. S. Christie, "Queuing with
preemptive priorities or with breakdown", *Operations Research* 6, 1958.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from capplan.models.errors import InputError
from capplan.models.language.units import FloatArray, Number

_HALVINGS = 34  # bisection steps of a quantile, in its logarithm: a relative error below 1e-9
_MIN_OFFSET = 1e-6  # smallest relative difference of the two mean lengths; the formula needs two distinct poles


class Stalls(NamedTuple):
    """One kind of stall: its rate per second and its mean length in seconds, numbers or arrays (draws,)."""

    rate_per_s: Number
    mean_s: Number


class WaitTail(NamedTuple):
    """P(wait > t) = sum of `weight` * exp(-`decay_per_s` * t); arrays (2, draws)."""

    weight: FloatArray
    decay_per_s: FloatArray


def wait_tail(drained: Number, short: Stalls, long: Stalls) -> WaitTail:
    """Return the distribution of the wait at a station that stalls.

    Parameters
    ----------
    drained : number or array (draws,)
        Utilisation of the server by the short services.
    short, long : Stalls
        The two kinds of stalls, in any order.

    Returns
    -------
    WaitTail

    Raises
    ------
    InputError
        If services and stalls together saturate the server.
    """
    left, rate, mean = _arrays(drained, short, long)
    stalled = (rate * mean).sum(axis=0)
    if not np.all(stalled < left):
        share = float(np.max(stalled + 1 - left))
        raise InputError(
            f"a station with a utilisation of {share:.4g}, stalls included, has no steady state: lower the rate"
        )
    product = mean[0] * mean[1]
    quadratic, linear = left * product, rate.sum(axis=0) * product - left * mean.sum(axis=0)
    root = np.sqrt(np.maximum(linear**2 - 4 * quadratic * (left - stalled), 0.0))
    fast = (root - linear) / (2 * quadratic)
    slow = (left - stalled) / (quadratic * fast)  # avoids the difference of two large numbers
    busy, mean_wait = stalled / left, (rate * mean**2).sum(axis=0) / (left - stalled)
    slow_weight = (mean_wait - busy / fast) / (1 / slow - 1 / fast)
    return WaitTail(np.stack([slow_weight, busy - slow_weight]), np.stack([slow, fast]))


def _arrays(drained: Number, short: Stalls, long: Stalls) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the free share of the server, and rates and mean lengths of the stalls (2, draws)."""
    numbers = np.broadcast_arrays(*(np.atleast_1d(np.asarray(each, dtype=float)) for each in (drained, *short, *long)))
    left, rate, mean = 1 - numbers[0], np.stack([numbers[1], numbers[3]]), np.stack([numbers[2], numbers[4]])
    close = np.abs(mean[1] / mean[0] - 1) < _MIN_OFFSET
    return left, rate, np.stack([mean[0], np.where(close, mean[0] * (1 + _MIN_OFFSET), mean[1])])


def response_tail(wait: WaitTail, path_mean_s: Number, path_scv: Number, time_s: FloatArray) -> FloatArray:
    """Return the probability that wait and path together exceed a time.

    Parameters
    ----------
    wait : WaitTail
        Distribution of the wait.
    path_mean_s, path_scv : number or array (draws,)
        Mean (s) and squared coefficient of variation of the gamma distributed path.
    time_s : array
        Time in seconds; broadcasts against (draws,).

    Returns
    -------
    array

    Raises
    ------
    InputError
        If the path has a heavier tail than the wait; there is no closed form then.
    """
    shape, scale = 1 / np.asarray(path_scv), np.asarray(path_mean_s) * path_scv
    tail: FloatArray = special.gammaincc(shape, time_s / scale)
    for weight, decay in zip(*wait, strict=True):
        tilt = 1 - decay * scale
        if not np.all(tilt > 0):
            raise InputError(
                "the path has a heavier tail than the wait, so that there is no closed form: simulate the network"
            )
        ended = special.gammainc(shape, time_s * tilt / scale)
        tail = tail + weight * np.exp(-decay * time_s - shape * np.log(tilt)) * ended
    return tail


def response_quantile_s(wait: WaitTail, path_mean_s: Number, path_scv: Number, level: float) -> FloatArray:
    """Return the quantile of wait and path together at `level`, in seconds (draws,)."""
    mean = np.asarray(path_mean_s)
    low = np.broadcast_to(mean * 1e-3, np.shape(wait.weight[0] * mean))
    high = mean * (10 + 40 * path_scv) - 2 * np.log(1 - level) / wait.decay_per_s.min(axis=0)
    for _ in range(_HALVINGS):
        middle = np.sqrt(low * high)
        beyond = response_tail(wait, path_mean_s, path_scv, middle) > 1 - level
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return np.asarray(np.sqrt(low * high))


def longest_wait_s(wait: WaitTail, left: Number, horizon_s: float) -> FloatArray:
    """Return the median of the longest wait within a horizon.

    The wait crosses a level downwards at the rate `left` times its density there. Crossings come in clumps: from a high
    level the wait rises above it again with the probability of waiting at all. Clumps are rare and nearly independent,
    so their number is Poisson. At high levels only the slower exponential counts.

    Parameters
    ----------
    wait : WaitTail
        Distribution of the wait.
    left : number or array (draws,)
        Share of the server that the short services leave: the slope of the wait, in seconds per second.
    horizon_s : float
        Length of the horizon in seconds; much longer than `relaxation_s`.

    Returns
    -------
    array (draws,)
        Seconds.

    References
    ----------
    P. H. Brill, *Level Crossing Methods in Stochastic Models*, Springer, 2008; D. Aldous, *Probability Approximations
    via the Poisson Clumping Heuristic*, Springer, 1989.
    """
    slow = np.argmin(wait.decay_per_s, axis=0)[None]
    weight, decay = (np.take_along_axis(np.asarray(each), slow, axis=0)[0] for each in wait)
    alone = 1 - wait.weight.sum(axis=0)
    return np.asarray(np.log(np.maximum(horizon_s * left * weight * decay * alone / np.log(2), 1.0)) / decay)


def relaxation_s(wait: WaitTail, left: Number) -> FloatArray:
    """Return the relaxation time of the wait.

    It is that of a reflected Brownian motion with the drift and the slower tail of the wait: 4 / (decay x drift). Its
    spectral gap is drift^2 / (2 variance rate).

    Parameters
    ----------
    wait, left
        As for `longest_wait_s`.

    Returns
    -------
    array (draws,)
        Seconds.

    References
    ----------
    S. Asmussen, *Applied Probability and Queues*, 2nd ed., Springer, 2003, section IX.2.
    """
    drift = left * (1 - wait.weight.sum(axis=0))
    return np.asarray(4 / (wait.decay_per_s.min(axis=0) * drift))
