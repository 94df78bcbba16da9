"""Closed forms for one station: M/M/c, finite queues and sources, M/G/1, M/D/1, GI/G/m and processor sharing.

Arguments may be arrays (of posterior draws, say) and broadcast. A station that is offered more than it can carry waits
for ever: the answer is `inf`, not an error. Every function raises `InputError`, naming the argument and its rule, when
a rate is negative, a time is not positive, a count is not whole or a probability is not below 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import factorial

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from capplan.models.errors import InputError
from capplan.models.language.units import FloatArray
from capplan.models.solver.erlang import checked, erlang_c, probability, whole

RATE, TIME, SERVERS = "rate of arrivals per second", "service time in seconds", "number of servers"
SCV = "squared coefficient of variation"


@dataclass(frozen=True)
class MMc:
    """M/M/c, first come first served. Every field is an array of the broadcast shape; infinite where overloaded."""

    arrival_rate_per_s: FloatArray
    mean_service_s: FloatArray
    servers: FloatArray
    waiting_probability: FloatArray

    @property
    def utilisation(self) -> FloatArray:
        """Offered load per server; at least 1 means overload."""
        return self.arrival_rate_per_s * self.mean_service_s / self.servers

    @property
    def _wait_decay_per_s(self) -> FloatArray:
        """Rate of the exponential law of a wait, given that there is one: `c/s - lambda`, at least 0."""
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
        """Mean number of requests in the station (Little's law)."""
        return self.arrival_rate_per_s * self.mean_response_s

    def wait_tail(self, time_s: ArrayLike) -> FloatArray:
        """Probability that the wait exceeds `time_s` seconds."""
        time = checked(time_s, "time in seconds")
        return np.asarray(self.waiting_probability * np.exp(-self._wait_decay_per_s * time))

    def response_tail(self, time_s: ArrayLike) -> FloatArray:
        """Probability that the response time exceeds `time_s` seconds (exact; no digits cancel at equal rates)."""
        time = checked(time_s, "time in seconds")
        service, wait = 1.0 / self.mean_service_s, self._wait_decay_per_s
        slower, gap = np.minimum(service, wait), np.abs(service - wait)
        both = service * time * np.exp(-slower * time) * special.exprel(-gap * time)
        return np.asarray(np.minimum(np.exp(-service * time) + self.waiting_probability * both, 1.0))

    def wait_quantile_s(self, level: ArrayLike) -> FloatArray:
        """Wait that a share `level` (from 0, below 1) of requests does not exceed, in seconds."""
        miss = 1.0 - probability(level, "quantile level")
        excess = np.maximum(np.log(np.maximum(self.waiting_probability, np.finfo(float).tiny) / miss), 0.0)
        return np.where(excess > 0, _ratio(excess, self._wait_decay_per_s), 0.0)

    def response_quantile_s(self, level: ArrayLike) -> FloatArray:
        """Response time that a share `level` (from 0, below 1) of requests does not exceed, in seconds."""
        miss = 1.0 - probability(level, "quantile level")
        # Either the service or the wait exceeds its own quantile at half the miss: a bracket by the union bound.
        high = -np.log(miss / 2) * self.mean_service_s + self.wait_quantile_s(1.0 - miss / 2)
        return _invert_tail(self.response_tail, miss, high)


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """`numerator / denominator`, infinite where the denominator is 0."""
    return np.where(denominator > 0, numerator / np.where(denominator > 0, denominator, 1.0), np.inf)


def _invert_tail(tail: Callable[[FloatArray], FloatArray], miss: FloatArray, high: FloatArray) -> FloatArray:
    """Bisect for the smallest time whose tail probability is at most `miss`, below `high`; `inf` where `high` is."""
    high = np.asarray(np.broadcast_to(high, np.broadcast_shapes(np.shape(miss), np.shape(high))))
    endless = np.isinf(high)
    low, high = np.zeros(high.shape), np.where(endless, 0.0, high)
    for _ in range(54):
        middle = (low + high) / 2
        enough = tail(middle) <= miss
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(endless, np.inf, np.where(tail(np.zeros(high.shape)) <= miss, 0.0, high))


def mmc(arrival_rate_per_s: ArrayLike, mean_service_s: ArrayLike, servers: ArrayLike) -> MMc:
    """M/M/c: Poisson arrivals, exponential service, `servers` servers (Kleinrock 1975, section 3.5).

    Parameters
    ----------
    arrival_rate_per_s, mean_service_s, servers : number or array
        Broadcast against each other; service above 0, servers whole from 1.

    Returns
    -------
    MMc
        Means, tails and quantiles of wait and response, all exact.
    """
    rate, service, count = np.broadcast_arrays(
        checked(arrival_rate_per_s, RATE), checked(mean_service_s, TIME, above=0.0), whole(servers, SERVERS, 1)
    )
    return MMc(rate, service, count, erlang_c(count, rate * service))


def birth_death(birth_rate_per_s: ArrayLike, death_rate_per_s: ArrayLike) -> FloatArray:
    """Stationary probabilities of a finite birth-death chain (Kleinrock 1975, section 3.1).

    Parameters
    ----------
    birth_rate_per_s : array (..., n)
        Rate from state k to k + 1 for k = 0 .. n - 1; a 0 cuts the chain off there.
    death_rate_per_s : array (..., n)
        Rate from state k + 1 to k; above 0. Broadcast against the births.

    Returns
    -------
    array (..., n + 1)
        Probabilities of the states 0 .. n; computed in log space, so chains of thousands of states do not overflow.
    """
    birth, death = np.broadcast_arrays(
        np.atleast_1d(checked(birth_rate_per_s, "rate of births per second")),
        np.atleast_1d(checked(death_rate_per_s, "rate of deaths per second", above=0.0)),
    )
    with np.errstate(divide="ignore"):
        logs = np.cumsum(np.log(birth) - np.log(death), axis=-1)
    return in_proportion(np.concatenate([np.zeros((*logs.shape[:-1], 1)), logs], axis=-1))


def in_proportion(logs: FloatArray) -> FloatArray:
    """Return probabilities (..., n) in proportion to what `logs` are the logarithms of."""
    shares = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


@dataclass(frozen=True)
class FiniteStation:
    """A station with finitely many states, in steady state. Every field is an array of the broadcast shape.

    `throughput_per_s` counts completions; `mean_number` are the requests inside, `mean_response_s` the time they
    stay (of those accepted); `blocking_probability` is the share of arrivals that is refused (0 for a finite source).
    """

    throughput_per_s: FloatArray
    mean_number: FloatArray
    mean_response_s: FloatArray
    utilisation: FloatArray
    blocking_probability: FloatArray


def mmck(
    arrival_rate_per_s: ArrayLike, mean_service_s: ArrayLike, servers: ArrayLike, capacity: ArrayLike
) -> FiniteStation:
    """M/M/c/K: a queue that refuses arrivals when `capacity` requests are inside, those in service included.

    Parameters
    ----------
    arrival_rate_per_s, mean_service_s : number or array
        Arrivals and service, both above 0.
    servers, capacity : whole number or array
        Capacity at least the number of servers. All arguments broadcast.

    Returns
    -------
    FiniteStation
        Exact (Gross & Harris, section 2.5); the cost grows with the capacity, thousands are fine.
    """
    rate, service, count, limit = np.broadcast_arrays(
        checked(arrival_rate_per_s, RATE, above=0.0),
        checked(mean_service_s, TIME, above=0.0),
        whole(servers, SERVERS, 1),
        whole(capacity, "capacity", 1),
    )
    if (limit < count).any():
        raise InputError(f"{limit[limit < count].flat[0]:g} is not a capacity: it must be at least the servers")
    states = np.arange(limit.max(initial=1))
    station, shares = _finite_station(rate[..., None] * (states < limit[..., None]), service, count)
    loss = np.take_along_axis(shares, limit[..., None].astype(np.int64), axis=-1)[..., 0]
    return replace(station, blocking_probability=loss)


def _finite_station(birth: FloatArray, service: FloatArray, count: FloatArray) -> tuple[FiniteStation, FloatArray]:
    """Solve a finite chain of exponential servers; throughput is accepted arrivals, where 1 - loss would cancel."""
    states = np.arange(1, birth.shape[-1] + 1)
    shares = birth_death(birth, np.minimum(states, count[..., None]) / service[..., None])
    throughput, number = (shares[..., :-1] * birth).sum(axis=-1), shares[..., 1:] @ states.astype(np.float64)
    utilisation = throughput * service / count
    return FiniteStation(throughput, number, number / throughput, utilisation, np.zeros(count.shape)), shares


def machine_repair(
    population: ArrayLike, think_time_s: ArrayLike, mean_service_s: ArrayLike, servers: ArrayLike
) -> FiniteStation:
    """M/M/c//N, the machine-repair model: `population` clients that think, then wait for one of the servers.

    Parameters
    ----------
    population, servers : whole number or array
        Clients and servers, each at least 1.
    think_time_s, mean_service_s : number or array
        Mean time between an answer and the next request, and mean service; both above 0. All broadcast.

    Returns
    -------
    FiniteStation
        Exact for any law of think time (Gross & Harris, section 2.7).
    """
    clients, think, service, count = np.broadcast_arrays(
        whole(population, "population", 1),
        checked(think_time_s, "think time in seconds", above=0.0),
        checked(mean_service_s, TIME, above=0.0),
        whole(servers, SERVERS, 1),
    )
    births = np.maximum(clients[..., None] - np.arange(clients.max(initial=1)), 0.0) / think[..., None]
    return _finite_station(births, service, count)[0]


def mg1_mean_wait_s(arrival_rate_per_s: ArrayLike, mean_service_s: ArrayLike, service_scv: ArrayLike) -> FloatArray:
    """Mean wait in M/G/1, in seconds (Pollaczek-Khinchine; Kleinrock 1975, section 5.6).

    Parameters
    ----------
    arrival_rate_per_s, mean_service_s : number or array
        Arrivals and mean service.
    service_scv : number or array
        Squared coefficient of variation of service, at least 0. All broadcast.

    Returns
    -------
    array
        Seconds; `inf` from full load on.
    """
    service, scv = checked(mean_service_s, TIME), checked(service_scv, SCV)
    load = checked(arrival_rate_per_s, RATE) * service
    return _ratio(load * service * (1 + scv) / 2, np.maximum(1 - load, 0.0))


def mm1_ps_response_s(arrival_rate_per_s: ArrayLike, mean_service_s: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the response time under processor sharing by one server, in seconds and s².

    Parameters
    ----------
    arrival_rate_per_s, mean_service_s : number or array
        Broadcast against each other.

    Returns
    -------
    tuple of arrays
        The mean holds for any law of service (M/G/1-PS is insensitive), the variance for the exponential one
        (Coffman, Muntz & Trotter 1970). `inf` from full load on.
    """
    service = checked(mean_service_s, TIME)
    load = checked(arrival_rate_per_s, RATE) * service
    mean = _ratio(service + 0.0 * load, np.maximum(1 - load, 0.0))
    return mean, np.where(load < 1, mean**2 * (2 + load) / np.maximum(2 - load, 1.0), np.inf)


def md1_wait_tail(arrival_rate_per_s: ArrayLike, service_s: ArrayLike, time_s: ArrayLike) -> FloatArray:
    """Probability that the wait in M/D/1 exceeds `time_s`; absolute error below 1e-9.

    Parameters
    ----------
    arrival_rate_per_s, service_s, time_s : number or array
        Arrivals, the fixed service time (above 0) and the wait. All broadcast.
    The answer is 1 from full load on.

    Notes
    -----
    Erlang's alternating sum (1909; Gross & Harris, section 5.1.5) below six service times, where its terms are small;
    beyond, the residues of the Pollaczek-Khinchine transform: over the roots of ``v exp(-v) = rho exp(-rho)`` but rho,
    ``P(W > t) = sum (1 - rho) / (v - 1) exp((rho - v) t)``, t in service times.
    """
    service = checked(service_s, TIME, above=0.0)
    load, time = np.broadcast_arrays(
        checked(arrival_rate_per_s, RATE) * service, checked(time_s, "time in seconds") / service
    )
    return _md1_tail(load)(time)


def _md1_tail(load: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Tail of the wait as a function of time in service times; the poles are found once."""
    safe = np.clip(load, 1e-12, np.where(load < 1, load + 1e-12, 0.5))
    decay = _md1_decay(safe)
    poles = [-special.lambertw(-safe * np.exp(-safe), branch) for branch in range(1, 9)]
    weights = [2 * (1 - safe) / (pole - 1) for pole in poles]

    def tail(time: FloatArray) -> FloatArray:
        late = (1 - safe) / (decay - (1 - safe)) * np.exp(-decay * time)
        for pole, weight in zip(poles, weights, strict=True):
            late = late + np.real(weight * np.exp((safe - pole) * np.maximum(time, 6)))
        return np.where(load < 1, np.clip(np.where(time < 6, _md1_early_tail(safe, time), late), 0.0, 1.0), 1.0)

    return tail


def _md1_early_tail(load: FloatArray, time: FloatArray) -> FloatArray:
    """Erlang's sum, for times below six service times."""
    total = np.zeros(np.broadcast_shapes(load.shape, time.shape))
    for j in range(6):
        later = load * np.clip(time - j, 0.0, 6.0)
        total += np.where(time >= j, (-later) ** j * np.exp(later) / factorial(j), 0.0)
    return np.asarray(1 - (1 - load) * total)


def _md1_decay(load: FloatArray) -> FloatArray:
    """Rate at which the tail of the M/D/1 wait dies out, per service time: `load * (exp(y) - 1) = y`, y > 0.

    Newton on `log(exprel(y)) + log(load)`, convex with slopes from 1/2 to 1: from the right it never overshoots.
    """
    decay = -2 * np.log(load)
    for _ in range(12):
        slope = np.where(decay > 1e-3, 1 / -np.expm1(-decay) - 1 / np.maximum(decay, 1e-3), 0.5 + decay / 12)
        decay = decay - (np.log(special.exprel(decay)) + np.log(load)) / slope
    return np.asarray(decay)


def md1_wait_quantile_s(arrival_rate_per_s: ArrayLike, service_s: ArrayLike, level: ArrayLike) -> FloatArray:
    """Wait in M/D/1 that a share `level` (from 0, below 1) of requests does not exceed, in seconds.

    Parameters and errors as for `md1_wait_tail`; `inf` from full load on. Accurate for levels up to 1 - 1e-8.
    """
    service, miss = checked(service_s, TIME, above=0.0), 1.0 - probability(level, "quantile level")
    load, miss = np.broadcast_arrays(checked(arrival_rate_per_s, RATE) * service, miss)
    decay = _md1_decay(np.where((load > 0) & (load < 1), load, 0.5))
    high = np.where(load < 1, -np.log(miss) / decay, np.inf)  # Kingman's exponential bound
    return service * _invert_tail(_md1_tail(load), miss, high)


def gigm_mean_wait_allen_cunneen_s(
    arrival_rate_per_s: ArrayLike,
    mean_service_s: ArrayLike,
    servers: ArrayLike,
    arrival_scv: ArrayLike,
    service_scv: ArrayLike,
) -> FloatArray:
    """Mean wait in GI/G/m after Allen & Cunneen (Allen 1990; Bolch et al. 2006, section 6.3.6), in seconds.

    The M/M/m wait times the mean of the two SCV. An approximation: exact for M/M/m and M/G/1.

    Parameters
    ----------
    arrival_rate_per_s, mean_service_s, servers : number or array
        As for `mmc`.
    arrival_scv, service_scv : number or array
        Squared coefficients of variation between arrivals and of service, at least 0. All broadcast.

    Returns
    -------
    array
        Seconds; `inf` from full load on.
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
    """Mean wait in GI/G/m by Kimura's (1986) interpolation between D/M/m, M/D/m and M/M/m, in seconds.

    Parameters, returns and errors as for `gigm_mean_wait_allen_cunneen_s`.

    Notes
    -----
    An approximation: exact for M/M/m and M/G/1. The waits of the two deterministic corners are themselves Cosmetatos'
    approximations, as given by Whitt (1993, equations 2.14-2.17). The interpolation is for `arrival_scv` up to 1;
    above, the D/M/m corner has a negative weight, so there the M/G/m interpolation is scaled by the SCV.
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
