"""Throughput of a network with a constant number of requests inside, from its response with open traffic.

In a product-form network, the number inside under open traffic at the rate r has the probabilities r^n G(n) / Z(r),
where Z is their sum, and the closed network completes X(n) = G(n - 1) / G(n) requests per second. The mean number r
R(r) is the derivative of log Z with respect to log r. So the open response R determines X. The second-order
saddle-point approximation of G(n) makes this cheap for any number of stations and requests. A chain with these X(n)
and Poisson arrivals has the response R again, whether or not the network has product form.

References
----------
H. E. Daniels, "Saddlepoint approximations in statistics", *Annals of Mathematical Statistics* 25, 1954; E. D. Lazowska
et al., *Quantitative System Performance*, Prentice-Hall, 1984, chapters 8 and 9.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from capplan.models.language.units import FloatArray
from capplan.models.solver.single_station import closed_throughputs_per_s

_STEP = 0.1  # of the logit of the rate over its saturation
_FEWEST = 0.05  # mean number at the lowest rate
_NEAREST = 0.9998  # highest rate over saturation
_LEAST_RISE = 0.5  # of the logarithms of the number inside over the rate, which is at least 1 if responses rise
_MOST_FASTER = 5.0  # logarithm of the throughput over that without queueing, which is at most 0 in theory
_POINTS = 48  # populations at which machine repair is computed exactly; values between are interpolated


def rate_logits(saturated_number: FloatArray, most: int) -> FloatArray:
    """Return logits of rates over saturation at which `throughput_per_s` needs the open network.

    Parameters
    ----------
    saturated_number : array (draws,)
        Rate of saturation times the response of a single request.
    most : int
        Largest number of requests inside.

    Returns
    -------
    array (points,)
        Multiples of one step, so that draws do not depend on each other.
    """
    low = _STEP * np.floor(np.log(_FEWEST / max(float(np.max(saturated_number)), 2 * _FEWEST)) / _STEP)
    high = min(np.log(3.0 * most + 50.0), np.log(_NEAREST / (1 - _NEAREST)))
    return np.asarray(_STEP * np.arange(np.round(low / _STEP), np.ceil(high / _STEP) + 1))


def throughput_per_s(
    population: FloatArray, logit: FloatArray, saturation_per_s: FloatArray, response_s: FloatArray, alone_s: FloatArray
) -> FloatArray:
    """Return the throughput of the network with a constant number of requests inside.

    Parameters
    ----------
    population : array (n,)
        Numbers of requests, at least 1, in ascending order.
    logit : array (points,)
        Logits of the rates over saturation, from `rate_logits`.
    saturation_per_s : array (draws,)
        Rate of saturation, per second.
    response_s : array (points, draws)
        Mean response of the open network at these rates, in seconds.
    alone_s : array (draws,)
        Mean response of a single request, in seconds.

    Returns
    -------
    array (draws, n)
        Requests per second.
    """
    share = special.expit(logit)[:, None]
    rate = saturation_per_s * share
    number = rate * response_s
    # Derivatives with respect to the logarithm of the rate: cumulants of the number inside. Those of logarithms are
    # exact for few requests, whose number is in proportion to a power of the rate.
    idle = 1 - share
    rise = np.maximum(_derivative(np.log(number)) / idle, _LEAST_RISE)
    second = number * rise
    skew = rise + _derivative(np.log(rise)) / idle
    third = second * skew
    fourth = skew * third + second * _derivative(skew) / idle
    # The saddle point gives log G(n) relative to a network without queueing, and so X(n) relative to it half a request
    # on.
    correction = fourth / second**2 / 8 - 5 / 24 * third**2 / second**3 + 1 / (12 * number)
    least = _LEAST_RISE * number * idle  # as for the rise
    slope = _derivative(correction - 0.5 * np.log(rise)) / np.maximum(_derivative(number), least)
    # At most of the order of the number's relative spread. More of it is an error: derivatives jump where a response
    # stays finite nearly up to saturation, as where quorums do without the station that saturates.
    most = 1 / np.sqrt(number)
    slowed = np.clip(slope, -most, most) - np.log(rate * alone_s / number)
    log_number = np.log(number + 0.5)
    slopes = _derivative(slowed) / np.maximum(_derivative(log_number), least / (number + 0.5))
    found = _rows_hermite(np.log(population), log_number.T, slowed.T, slopes.T)
    found[:, population == 1.0] = 0.0
    result = population / alone_s[:, None] * np.exp(np.minimum(-found, _MOST_FASTER))
    beyond = population > number[-3][:, None] + 0.5
    return np.where(beyond, np.minimum(result, saturation_per_s[:, None]), result)


def _derivative(values: FloatArray) -> FloatArray:
    return np.asarray(np.gradient(values, _STEP, axis=0, edge_order=2))


def _rows_hermite(at: FloatArray, grid: FloatArray, values: FloatArray, slopes: FloatArray) -> FloatArray:
    """Interpolate rows of tables (rows, points) by cubics at the same places (n,); constant beyond the grid."""
    width = grid.shape[-1]
    right = np.stack([row.searchsorted(at) for row in grid])
    np.clip(right, 1, width - 1, out=right)
    right += np.arange(len(grid))[:, None] * width
    x, y, slope = (np.ascontiguousarray(part).ravel() for part in (grid, values, slopes))
    left = right - 1
    begin, step = x[left], x[right] - x[left]
    t = np.clip((at - begin) / step, 0.0, 1.0)
    before, after = y[left], y[right]
    rise = after - before
    first, last = slope[left] * step - rise, rise - slope[right] * step
    return np.asarray(before + t * rise + t * (1 - t) * ((1 - t) * first + t * last))


def machine_repair_per_s(population: FloatArray, busy_s: FloatArray, idle_s: FloatArray, servers: int) -> FloatArray:
    """Return the exact throughput of one station and a delay, interpolated where the populations are many.

    Parameters
    ----------
    population : array (n,)
        Numbers of requests: whole numbers in ascending order.
    busy_s, idle_s : array (draws,)
        Mean time of a request at the station and elsewhere, without queueing, in seconds.
    servers : int
        Number of servers.

    Returns
    -------
    array (draws, n)
        Requests per second.
    """
    numbers = np.unique(np.round(np.geomspace(1.0, float(population[-1]), _POINTS)))
    speed, idle_s = np.arange(1.0, servers + 1)[None], np.maximum(idle_s, 1e-9)
    exact = closed_throughputs_per_s(busy_s, speed, idle_s, numbers.astype(int).tolist())
    return rows_interpolated(population, numbers, exact)


def rows_interpolated(at: FloatArray, grid: FloatArray, values: FloatArray) -> FloatArray:
    """Interpolate each row of a table linearly; extrapolate beyond the grid.

    Parameters
    ----------
    at : array (n,)
        Where to interpolate.
    grid : array (points,)
        Grid of all rows, in ascending order.
    values : array (rows, points)
        Values on the grid.

    Returns
    -------
    array (rows, n)
    """
    right = np.clip(np.searchsorted(grid, at), 1, len(grid) - 1)
    share = (at - grid[right - 1]) / np.maximum(grid[right] - grid[right - 1], 1e-300)
    below, above = (np.take(values, index, axis=1) for index in (right - 1, right))  # [:, index] would be slow to use
    return np.asarray(below + share * (above - below))
