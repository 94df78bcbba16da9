"""Closed forms for one station: M/M/c exactly, M/G/m by approximation, speed by load, stalls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from capplan.errors import InputError
from capplan.models.language.station import Station
from capplan.models.language.units import FloatArray, Number, check_number

LOAD = "load (arrival rate times service time)"


def checked(value: ArrayLike, what: str, at_least: float = 0.0, above: float | None = None) -> FloatArray:
    """Turn an argument of a closed form into an array of finite numbers within bounds.

    Parameters
    ----------
    value : number or array
        The argument.
    what : str
        What the number is, for the message: `service time`.
    at_least, above : float
        Inclusive and strict lower bound.

    Returns
    -------
    array of float64
        With the shape of `value`.

    Raises
    ------
    InputError
        If an element is not a finite number within the bounds.
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{value!r} is not a {what}: give a number or an array of numbers") from None
    check_number(array, what, at_least, above)
    if np.isposinf(array).any():
        raise InputError(f"inf is not a {what}: give a finite number")
    return array


def whole(value: ArrayLike, what: str, at_least: int) -> FloatArray:
    """Turn a count into an array of whole numbers of at least `at_least`; raise `InputError` for anything else."""
    array = checked(value, what, at_least)
    if (array != np.floor(array)).any():
        raise InputError(f"{array[array != np.floor(array)].flat[0]:g} is not a {what}: it must be a whole number")
    return array


def probability(value: ArrayLike, what: str) -> FloatArray:
    """Turn an argument into an array of probabilities from 0, below 1; raise `InputError` for anything else."""
    array = checked(value, what)
    if (array >= 1).any():
        raise InputError(f"{array.max():g} is not a {what}: it must be below 1")
    return array


def erlang_b(servers: ArrayLike, offered_load: ArrayLike) -> FloatArray:
    """Return the probability that a Poisson arrival finds all servers busy and is blocked.

    Parameters
    ----------
    servers : whole number or array
        Number of servers, at least 0; broadcasts against `offered_load`.
    offered_load : number or array
        Arrival rate times mean service time, in erlangs.

    Returns
    -------
    array
        Blocking probability of M/G/c/c, whatever the distribution of service times.

    Raises
    ------
    InputError
        If a number of servers is not whole or negative, or a load is negative.

    Notes
    -----
    The recursion ``B(n) = a B(n-1) / (n + a B(n-1))`` has only positive terms. It keeps full relative precision for
    thousands of servers and any load, and costs one array operation per server.

    References
    ----------
    R. B. Cooper, *Introduction to Queueing Theory*, 2nd ed., North Holland, 1981, section 3.3.
    """
    count, load = np.broadcast_arrays(whole(servers, "number of servers", 0), checked(offered_load, LOAD))
    blocking = np.ones(count.shape)
    for n in range(1, int(count.max(initial=0)) + 1):
        blocked = load * blocking
        np.divide(blocked, n + blocked, out=blocking, where=n <= count)
    return blocking


def erlang_c(servers: ArrayLike, offered_load: ArrayLike) -> FloatArray:
    """Return the probability that an arrival waits in M/M/c.

    Parameters
    ----------
    servers : whole number or array
        Number of servers, at least 1; broadcasts against `offered_load`.
    offered_load : number or array
        Arrival rate times mean service time, in erlangs.

    Returns
    -------
    array
        Waiting probability; 1 where the load reaches the number of servers.

    Raises
    ------
    InputError
        If a number of servers is not whole or below 1, or a load is negative.

    Notes
    -----
    ``C = c B / (c - a + a B)``. In this form no digits cancel when a is near c.

    References
    ----------
    L. Kleinrock, *Queueing Systems*, vol. 1, Wiley, 1975, section 3.5.
    """
    count, load = whole(servers, "number of servers", 1), checked(offered_load, LOAD)
    blocking = erlang_b(count, load)
    spare = np.maximum(count - load, 0.0)
    busy = np.where(spare > 0, count * blocking, 1.0)
    return np.asarray(busy / np.where(spare > 0, spare + load * blocking, 1.0))


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
        """Decay rate of the exponential wait of requests that wait, `c/s - lambda`; 0 under overload."""
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


def mgm_mean_wait_s(
    arrival_rate_per_s: ArrayLike, mean_service_s: ArrayLike, servers: ArrayLike, service_scv: ArrayLike
) -> FloatArray:
    """Return the mean wait in M/G/m by Kimura's interpolation between M/D/m and M/M/m.

    It is exact for M/M/m and M/G/1.

    Parameters
    ----------
    arrival_rate_per_s, mean_service_s, servers : number or array
        As for `mmc`.
    service_scv : number or array
        Squared coefficient of variation of service times, at least 0. All arguments broadcast.

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
    The wait of M/D/m is Cosmetatos' approximation as given by Whitt.

    References
    ----------
    T. Kimura, "A two-moment approximation for the mean waiting time in the GI/G/s queue", *Management Science* 32,
    1986; W. Whitt, "Approximations for the GI/G/m queue", *Production and Operations Management* 2, 1993, equations
    2.14-2.17.
    """
    station = mmc(arrival_rate_per_s, mean_service_s, servers)
    load, count, scv = np.minimum(station.utilisation, 1.0), station.servers, checked(service_scv, SCV)
    shape = (1 - load) * (count - 1) * (np.sqrt(4 + 5 * count) - 2) / np.maximum(16 * count * load, 1e-9)
    weight = (1 - scv) / (1 + np.minimum(shape, 0.24)) + scv
    waits = np.where(np.isinf(station.mean_wait_s), 0.0, station.mean_wait_s)
    return np.asarray(np.where(np.isinf(station.mean_wait_s), np.inf, (1 + scv) / 2 * waits / weight))


_DIGITS = 12  # of the logarithm of a load


def first_speed(station: Station) -> Number:
    """Return the speed of a server with one request at the station."""
    return 1.0 if station.rate is None else station.rate.speeds[0]


def endless_speed(station: Station) -> Number:
    """Return a station's total speed with an infinite queue, in servers at speed 1: its sustained throughput."""
    return station.servers * (1.0 if station.rate is None else station.rate.speeds[-1])


def speeds(station: Station) -> FloatArray:
    """Return the total speed with 1 .. n requests, until it stays constant; (draws or 1, n)."""
    table: tuple[Number, ...] = (1.0,) if station.rate is None else station.rate.speeds
    places = max(len(table), station.servers)
    each = np.array(np.broadcast_arrays(*table), dtype=float).reshape(len(table), -1)
    each = np.concatenate([each, np.repeat(each[-1:], places - len(table), axis=0)])
    return np.asarray(each.T * np.minimum(np.arange(1.0, places + 1), station.servers))


def mean_number(offered: FloatArray, speed: FloatArray) -> FloatArray:
    """Return the mean number of requests at a station with Poisson arrivals.

    Parameters
    ----------
    offered : array (..., draws)
        Offered load: arrivals per second times mean service demand, in erlangs; above 0.
    speed : array (draws or 1, n)
        Total speed with 1 .. n requests; the last holds for all larger numbers.

    Returns
    -------
    array (..., draws)
        Infinite where the offered load reaches the last speed.
    """
    if len(speed) == 1 and np.ndim(offered) > 1:  # loads of the bottleneck are the same in all draws, but for rounding
        alike, place = np.unique(np.round(np.log(offered), _DIGITS), return_inverse=True)
        return mean_number(np.exp(alike), speed)[place.reshape(np.shape(offered))]
    chance, beyond, ratio = _chances(offered, speed)
    places = speed.shape[-1]
    number = chance @ np.arange(places + 1.0) + beyond * (places + 1 / (1 - ratio))
    return np.where(offered < speed[..., -1], number, np.inf)


def busy_share(offered: FloatArray, station: Station) -> FloatArray:
    """Return the utilisation of a station with Poisson arrivals; 1 if the load cannot be sustained.

    If waiting requests slow the servers down, it lies between the offered load over the highest speed and the offered
    load over the speed with an infinite queue.

    Parameters
    ----------
    offered : array (..., draws)
        Offered load, in erlangs; above 0.
    station : Station
        The station.

    Returns
    -------
    array (..., draws)
        Mean share of busy servers.
    """
    speed = speeds(station)
    chance, beyond, _ = _chances(offered, speed)
    busy = np.minimum(np.arange(speed.shape[-1] + 1.0) / station.servers, 1.0)
    return np.where(offered < speed[..., -1], np.minimum(chance @ busy + beyond, 1.0), 1.0)


def _chances(offered: FloatArray, speed: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the probabilities of 0 .. n requests and of more than n, and the ratio of the geometric tail.

    The ratio is 0 where the offered load reaches the last speed.
    """
    passed = np.pad(np.cumsum(np.log(speed), axis=-1), ((0, 0), (1, 0)))
    logs = np.arange(speed.shape[-1] + 1.0) * np.log(offered)[..., None] - passed
    weight = np.exp(logs - logs.max(axis=-1, keepdims=True))
    ratio = np.where(offered < speed[..., -1], offered / speed[..., -1], 0.0)
    beyond = weight[..., -1] * ratio / (1 - ratio)
    total = weight.sum(axis=-1) + beyond
    return weight / total[..., None], beyond / total, ratio


def closed_throughputs_per_s(
    demand_s: FloatArray, speed: FloatArray, delay_s: FloatArray, clients: Sequence[int]
) -> FloatArray:
    """Return the exact throughput of closed clients that each wait for their answer.

    Parameters
    ----------
    demand_s : array (draws,)
        Mean service demand, in seconds at speed 1.
    speed : array (draws or 1, n)
        Total speed with 1 .. n requests; the last holds for all larger numbers.
    delay_s : array (draws,)
        Mean time per cycle spent elsewhere without queueing (network, think time), in seconds; above 0.
    clients : sequence of int
        Numbers of clients, each at least 1.

    Returns
    -------
    array (draws, numbers)
        Requests per second.
    """
    most = max(clients)
    if speed.shape[-1] < most:
        speed = np.pad(speed, ((0, 0), (0, most - speed.shape[-1])), mode="edge")
    each = speed[:, :most] / demand_s[:, None]  # completions per second with 1 .. most at the station
    passed = np.pad(np.cumsum(np.log(each * delay_s[:, None]), axis=-1), ((0, 0), (1, 0)))
    found = []
    for count in clients:
        inside = np.arange(count + 1)
        ways = special.gammaln(count + 1.0) - special.gammaln(count - inside + 1.0)
        chance = in_proportion(ways - passed[:, : count + 1])
        found.append((chance[:, 1:] * each[:, :count]).sum(axis=-1))
    return np.stack(found, axis=-1)


_STALL_HALVINGS = 34  # bisection steps of a quantile, in its logarithm: a relative error below 1e-9
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
    for _ in range(_STALL_HALVINGS):
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
