"""Closed forms for one station: M/M/c exactly, GI/G/m by approximations.

Arguments may be arrays, such as posterior draws, and broadcast. An overloaded station has infinite waits; that is a
result, not an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from capplan.models.language.units import FloatArray
from capplan.models.solver.stations.erlang import checked, erlang_c, probability, whole

RATE, TIME, SERVERS = "rate of arrivals per second", "service time in seconds", "number of servers"
SCV = "squared coefficient of variation"
_HALVINGS = 54  # of the bracket of a quantile: the full precision of a double


@dataclass(frozen=True)
class MMc:
    """An M/M/c queue in steady state, first come first served.

    Every result has the broadcast shape of the attributes, and is infinite where the station is overloaded.

    Attributes
    ----------
    arrival_rate_per_s : array
        Poisson arrivals per second.
    mean_service_s : array
        Mean of the exponential service time, in seconds.
    servers : array
        Number of servers.
    waiting_probability : array
        Probability that an arrival waits: Erlang C.
    """

    arrival_rate_per_s: FloatArray
    mean_service_s: FloatArray
    servers: FloatArray
    waiting_probability: FloatArray

    @property
    def utilisation(self) -> FloatArray:
        """Offered load per server; 1 or more means overload."""
        return self.arrival_rate_per_s * self.mean_service_s / self.servers

    @property
    def _wait_decay_per_s(self) -> FloatArray:
        """Rate of the exponential wait of those who wait, `c/s - lambda`; 0 under overload."""
        return np.maximum(self.servers / self.mean_service_s - self.arrival_rate_per_s, 0.0)

    @property
    def mean_wait_s(self) -> FloatArray:
        """Mean time in the queue, in seconds."""
        return _ratio(self.waiting_probability, self._wait_decay_per_s)

    @property
    def mean_response_s(self) -> FloatArray:
        """Mean time in the station, in seconds."""
        return self.mean_wait_s + self.mean_service_s

    @property
    def mean_number(self) -> FloatArray:
        """Mean number of requests in the station, by Little's law."""
        return self.arrival_rate_per_s * self.mean_response_s

    def response_tail(self, time_s: ArrayLike) -> FloatArray:
        """Return the probability that the response takes longer than a given time.

        Parameters
        ----------
        time_s : number or array
            Time in seconds, at least 0; broadcasts.

        Returns
        -------
        array
            Exact; no digits cancel where the rates of service and wait are equal.

        Raises
        ------
        InputError
            If a time is negative or not finite.
        """
        time = checked(time_s, "time in seconds")
        service, wait = 1.0 / self.mean_service_s, self._wait_decay_per_s
        slower, gap = np.minimum(service, wait), np.abs(service - wait)
        both = service * time * np.exp(-slower * time) * special.exprel(-gap * time)
        return np.asarray(np.minimum(np.exp(-service * time) + self.waiting_probability * both, 1.0))

    def wait_quantile_s(self, level: ArrayLike) -> FloatArray:
        """Return the wait that a share `level` of the requests does not exceed.

        Parameters
        ----------
        level : number or array
            Probability from 0, below 1; broadcasts.

        Returns
        -------
        array
            Seconds.

        Raises
        ------
        InputError
            If a level is outside these bounds.
        """
        miss = 1.0 - probability(level, "quantile level")
        excess = np.maximum(np.log(np.maximum(self.waiting_probability, np.finfo(float).tiny) / miss), 0.0)
        return np.where(excess > 0, _ratio(excess, self._wait_decay_per_s), 0.0)

    def response_quantile_s(self, level: ArrayLike) -> FloatArray:
        """Return the response time that a share `level` of the requests does not exceed.

        Parameters
        ----------
        level : number or array
            Probability from 0, below 1; broadcasts.

        Returns
        -------
        array
            Seconds.

        Raises
        ------
        InputError
            If a level is outside these bounds.
        """
        miss = 1.0 - probability(level, "quantile level")
        # By the union bound, the sum of the quantiles of service and wait at half the miss is an upper bound.
        high = -np.log(miss / 2) * self.mean_service_s + self.wait_quantile_s(1.0 - miss / 2)
        return _invert_tail(self.response_tail, miss, high)


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Divide; infinite where the denominator is 0."""
    return np.where(denominator > 0, numerator / np.where(denominator > 0, denominator, 1.0), np.inf)


def _invert_tail(tail: Callable[[FloatArray], FloatArray], miss: FloatArray, high: FloatArray) -> FloatArray:
    """Return the smallest time up to `high` whose tail probability is at most `miss`; `inf` where `high` is."""
    high = np.asarray(np.broadcast_to(high, np.broadcast_shapes(np.shape(miss), np.shape(high))))
    endless = np.isinf(high)
    low, high = np.zeros(high.shape), np.where(endless, 0.0, high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = tail(middle) <= miss
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(endless, np.inf, np.where(tail(np.zeros(high.shape)) <= miss, 0.0, high))


def mmc(arrival_rate_per_s: ArrayLike, mean_service_s: ArrayLike, servers: ArrayLike) -> MMc:
    """Solve M/M/c: Poisson arrivals, exponential service, c servers.

    Parameters
    ----------
    arrival_rate_per_s : number or array
        Arrivals per second, at least 0.
    mean_service_s : number or array
        Mean service time in seconds, above 0.
    servers : whole number or array
        Number of servers, at least 1. All arguments broadcast.

    Returns
    -------
    MMc
        Exact means, tails and quantiles.

    Raises
    ------
    InputError
        If an argument is out of bounds.

    References
    ----------
    L. Kleinrock, *Queueing Systems*, vol. 1, Wiley, 1975, section 3.5.
    """
    rate, service, count = np.broadcast_arrays(
        checked(arrival_rate_per_s, RATE), checked(mean_service_s, TIME, above=0.0), whole(servers, SERVERS, 1)
    )
    return MMc(rate, service, count, erlang_c(count, rate * service))


def in_proportion(logs: FloatArray) -> FloatArray:
    """Normalise weights given as logarithms (..., n) to probabilities."""
    shares = logs - logs.max(axis=-1, keepdims=True)
    np.exp(shares, out=shares)
    shares /= shares.sum(axis=-1, keepdims=True)
    return np.asarray(shares)


def gigm_mean_wait_allen_cunneen_s(
    arrival_rate_per_s: ArrayLike,
    mean_service_s: ArrayLike,
    servers: ArrayLike,
    arrival_scv: ArrayLike,
    service_scv: ArrayLike,
) -> FloatArray:
    """Return the mean wait in GI/G/m by the approximation of Allen and Cunneen.

    It is the mean wait of M/M/m times the mean of the two squared coefficients of variation: exact for M/M/m and M/G/1.

    Parameters
    ----------
    arrival_rate_per_s, mean_service_s, servers : number or array
        As for `mmc`.
    arrival_scv, service_scv : number or array
        Squared coefficients of variation of interarrival and service times, at least 0. All arguments broadcast.

    Returns
    -------
    array
        Seconds; `inf` from full load on.

    Raises
    ------
    InputError
        If an argument is out of bounds.

    References
    ----------
    A. O. Allen, *Probability, Statistics, and Queueing Theory*, 2nd ed., Academic Press, 1990; G. Bolch et al.,
    *Queueing Networks and Markov Chains*, 2nd ed., Wiley, 2006, section 6.3.6.
    """
    scv = checked(arrival_scv, SCV) + checked(service_scv, SCV)
    waits = mmc(arrival_rate_per_s, mean_service_s, servers).mean_wait_s
    return np.asarray(np.where(np.isinf(waits), np.inf, scv / 2 * np.where(np.isinf(waits), 0.0, waits)))


def gigm_mean_wait_kimura_s(
    arrival_rate_per_s: ArrayLike,
    mean_service_s: ArrayLike,
    servers: ArrayLike,
    arrival_scv: ArrayLike,
    service_scv: ArrayLike,
) -> FloatArray:
    """Return the mean wait in GI/G/m by Kimura's interpolation between D/M/m, M/D/m and M/M/m.

    It is exact for M/M/m and M/G/1.

    Parameters
    ----------
    arrival_rate_per_s, mean_service_s, servers, arrival_scv, service_scv : number or array
        As for `gigm_mean_wait_allen_cunneen_s`.

    Returns
    -------
    array
        Seconds; `inf` from full load on.

    Raises
    ------
    InputError
        If an argument is out of bounds.

    Notes
    -----
    The waits of D/M/m and M/D/m are Cosmetatos' approximations as given by Whitt. The interpolation is for
    `arrival_scv` up to 1. Above 1 the weight of D/M/m would be negative, so the SCV scales the M/G/m interpolation.

    References
    ----------
    T. Kimura, "A two-moment approximation for the mean waiting time in the GI/G/s queue", *Management Science* 32,
    1986; W. Whitt, "Approximations for the GI/G/m queue", *Production and Operations Management* 2, 1993, equations
    2.14-2.17.
    """
    station = mmc(arrival_rate_per_s, mean_service_s, servers)
    load, count = np.minimum(station.utilisation, 1.0), station.servers
    arrivals, service = checked(arrival_scv, SCV), checked(service_scv, SCV)
    shape = (1 - load) * (count - 1) * (np.sqrt(4 + 5 * count) - 2) / np.maximum(16 * count * load, 1e-9)
    gamma = np.minimum(shape, 0.24)
    decay = np.minimum(2 * (1 - load) / np.maximum(3 * load, 1e-9), 500.0)
    fixed_arrivals = (1 - 4 * gamma) * np.exp(-decay)
    weight = np.maximum(1 - arrivals, 0.0) * (1 / fixed_arrivals - 1) + (1 - service) / (1 + gamma) + service
    rough = gigm_mean_wait_allen_cunneen_s(station.arrival_rate_per_s, mean_service_s, count, arrivals, service)
    return np.asarray(rough / weight)
