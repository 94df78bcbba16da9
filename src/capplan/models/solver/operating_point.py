"""Solve an analysed network at given rates: drop rates, response times, percentiles and capacities, for all draws.

Bursts are treated as quasi-static: a share of the time has the burst rate and the rest the low rate, each in its own
steady state. This is accurate if bursts last longer than the queues need to settle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capplan.models.language.traffic import Bursty
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.analytic import Analysis, Inside
from capplan.models.solver.backpressure import Blocked, blocked
from capplan.models.solver.failing_sessions import Chain, sent
from capplan.models.solver.pauses import RareDelay
from capplan.models.solver.pools import FlowEquivalent
from capplan.models.solver.random_times import GammaMixture, quantiles_of_groups_s

Parts = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
Indices = tuple[NDArray[np.intp], ...]

MAX_DROP_RATE = 1e-3
"""Drop rate up to which a rate counts as sustained: a guess; the documents give only the rates where drops begin."""
_CLOSE = 1e-6  # relative Newton step of the capacity that leaves an error below 1e-9
_EXACT = 1e-11  # distance between logarithms of rates at which they are equal
_STEPS = 60  # Newton steps at most; two to five are usual
_PILOTS = 8  # draws whose capacities are solved first, to start the others nearby
_MANY = 4  # times as many draws as pilots from which pilots save time
_BACKGROUNDS, _SETTLED = 5, 1e-3  # rates of the others tried for the capacity of several groups, and their accuracy
_STEEPEST = 20.0  # slope of a group's capacity over the rate of the others, at most
_RELIEF = 0.01  # drop rate above which what is dropped relieves the others
_STATES = 9  # states of the system in the mixture for percentiles


@dataclass(frozen=True)
class SteadyState:
    """The network in steady state at a constant rate.

    Attributes
    ----------
    drop_rate : array (..., draws)
        Share of the requests that are dropped.
    busy_units : array (..., draws)
        Mean number of units of the outermost pools in use.
    response_s : dict of arrays (..., draws)
        Mean response by class, in seconds.
    weight : dict of arrays (..., draws, parts)
        Weights of the mixture that approximates the response, by class.
    mean_s, variance_s2, third_s3 : dict of arrays (..., draws, parts)
        Means (s), variances (s²) and third cumulants (s³) of the parts of the mixture, by class.
    delays : dict of arrays (..., draws, parts, 3)
        The same three of what the parts spend at no station, by class.
    """

    drop_rate: FloatArray
    busy_units: FloatArray
    response_s: dict[str, FloatArray]
    weight: dict[str, FloatArray]
    mean_s: dict[str, FloatArray]
    variance_s2: dict[str, FloatArray]
    third_s3: dict[str, FloatArray]
    delays: dict[str, FloatArray]

    def parts(self, name: str) -> Parts:
        """Return weight, mean, variance and third cumulant of the parts of a class."""
        return self.weight[name], self.mean_s[name], self.variance_s2[name], self.third_s3[name]


@dataclass(frozen=True)
class OperatingPoint:
    """The solution of a network at mean offered rates: a mixture of steady states, one per phase of the traffic.

    Attributes
    ----------
    rate_per_s : array (..., draws)
        Mean rate at which requests are sent, per second: the offered one, less what failed sessions no longer send.
    shares : tuple of arrays (..., draws)
        Share of the requests that arrive in each state.
    durations : tuple of float
        Share of the time in each state.
    states : tuple of SteadyState
        The states.
    request_shares : mapping of float
        Share of each request class in the traffic.
    """

    rate_per_s: FloatArray
    shares: tuple[FloatArray, ...]
    durations: tuple[float, ...]
    states: tuple[SteadyState, ...]
    request_shares: Mapping[str, Number]

    @property
    def drop_rate(self) -> FloatArray:
        """Share of all requests that are dropped (..., draws)."""
        return self._mixed([state.drop_rate for state in self.states])

    @property
    def busy_units(self) -> FloatArray:
        """Time average of the units of the outermost pools in use (..., draws)."""
        return np.asarray(sum(d * s.busy_units for d, s in zip(self.durations, self.states, strict=True)))

    def response_s(self, *requests: str) -> FloatArray:
        """Return the mean response over the requests of some classes.

        Parameters
        ----------
        *requests : str
            Names of the request classes.

        Returns
        -------
        array (..., draws)
            Seconds.
        """
        shares = self._class_shares(requests)
        parts = [
            share * self._mixed([state.response_s[name] for state in self.states]) for name, share in shares.items()
        ]
        return np.asarray(np.sum(parts, axis=0))

    def quantile_s(self, level: float, *requests: str) -> FloatArray:
        """Return one approximate quantile of the response; see `quantiles_s`."""
        return np.asarray(self.quantiles_s((level,), *requests)[0])

    def quantiles_s(
        self,
        levels: Sequence[float],
        *requests: str,
        delays: Mapping[str, Sequence[RareDelay]] | None = None,
        place: NDArray[np.intp] | None = None,
        at: Indices | None = None,
    ) -> FloatArray:
        """Return approximate quantiles of the response over the requests of some classes.

        Parameters
        ----------
        levels : sequence of float
            Probabilities above 0 and below 1.
        *requests : str
            Names of the request classes.
        delays : mapping of sequences of RareDelay, optional
            Delays that some requests have in addition, by request class; a request has one of a sequence at most.
        place : array of int (further draws,), optional
            For draws whose delays differ, but that are alike otherwise: the draw here that each of them is like.
        at : tuple of arrays of int (values,), optional
            Where in (..., draws) values are asked for; everywhere by default.

        Returns
        -------
        array (levels, ..., draws), or (levels, values)
            Seconds.
        """
        solved = self.rate_per_s.shape
        shape = solved if place is None else (*solved[:-1], len(place))

        def chosen(values: FloatArray) -> FloatArray:
            if at is None:
                return values if place is None else values[..., place, :]
            every = np.broadcast_to(values, (*solved, values.shape[-1]))
            return np.asarray(every[*at[:-1], at[-1] if place is None else place[at[-1]]])

        groups = [
            GammaMixture(*map(_rows, mixed))
            for name, share in self._class_shares(requests).items()
            for part, state in zip(self.shares, self.states, strict=True)
            for mixed in _with_delay(
                _of_draws(state.parts(name), share * part[..., None], chosen),
                [
                    each if at is None else each.at(at, shape)
                    for each in (() if delays is None else delays.get(name, ()))
                ],
            )
        ]
        return quantiles_of_groups_s(groups, levels).reshape(-1, *(shape if at is None else at[-1].shape))

    def _class_shares(self, requests: tuple[str, ...]) -> dict[str, Number]:
        sent = [name for name in requests if name in self.request_shares]
        total = sum((self.request_shares[name] for name in sent), 0.0)
        return {name: self.request_shares[name] / total for name in sent}

    def _mixed(self, by_state: list[FloatArray]) -> FloatArray:
        parts = [share * value for share, value in zip(self.shares, by_state, strict=True)]
        return np.asarray(np.sum(parts, axis=0))


def _of_draws(parts: Parts, share: FloatArray, chosen: Callable[[FloatArray], FloatArray]) -> Parts:
    """Return the mixture for some draws, as a share of all requests."""
    weight, mean, variance, third = map(chosen, parts)
    return chosen(share) * weight, mean, variance, third


def _with_delay(parts: Parts, delays: Sequence[RareDelay]) -> list[Parts]:
    """Split a mixture (weight, mean, variance) into requests without a delay and requests with each delay.

    A delay is gamma-distributed and mostly longer than anything else, so the delayed requests are one part.
    """
    if not delays:
        return [parts]
    weight, mean, variance, third = parts
    share = weight.sum(axis=-1, keepdims=True)
    of = weight / np.maximum(share, 1e-300)
    middle = np.vecdot(of, mean)[..., None]
    with np.errstate(invalid="ignore"):  # beyond the capacity a mean is infinite
        gap = mean - middle
        spread = np.vecdot(of, variance + gap**2)[..., None]
        skew = np.vecdot(of, third + 3 * gap * variance + gap**3)[..., None]
    found, left = [], np.ones(1)
    for delay in delays:
        chance, more, scatter = (np.asarray(each)[..., None] for each in delay)
        found.append(
            (chance * share, middle + more, spread + scatter, skew + 2 * scatter**2 / np.maximum(more, 1e-300))
        )
        left = left - chance
    return [(left * weight, mean, variance, third), *found]


def solve(analysis: Analysis, rate_per_s: FloatArray | float) -> OperatingPoint:
    """Solve a network at given rates.

    Parameters
    ----------
    analysis : Analysis
        The analysed network.
    rate_per_s : float or array (..., draws)
        Mean offered rates, in requests per second.

    Returns
    -------
    OperatingPoint
    """
    given = np.asarray(rate_per_s, dtype=float)
    rate = np.broadcast_to(given, np.broadcast_shapes(given.shape, (analysis.draws,)))
    parts = phases(analysis)
    durations = tuple(time for time, _ in parts)
    rates, of_groups = _sent_per_s(analysis, np.stack([rate * ratio for _, ratio in parts]))
    total = sum((time * each for time, each in zip(durations, rates, strict=True)), np.zeros(1))
    shares = tuple(
        np.where(total > 0, time * each / np.maximum(total, 1e-300), time * ratio)
        for (time, ratio), each in zip(parts, rates, strict=True)
    )
    state = _state(analysis, rates, of_groups)
    states = tuple(_by_array(itemgetter(place), state) for place in range(len(parts)))
    return _pushed_back(analysis, OperatingPoint(total, shares, durations, states, analysis.share), rate)


def idle_point(analysis: Analysis) -> OperatingPoint:
    """Return the limit at low rates: requests that are alone in the system and find no queue.

    Parameters
    ----------
    analysis : Analysis
        The analysed network.

    Returns
    -------
    OperatingPoint
    """
    nothing, every = np.zeros(analysis.draws), np.ones(analysis.draws)
    mean, variance, third = (
        {name: every * getattr(time, part) for name, time in analysis.unloaded.items()}
        for part in ("total", "variance", "third_s3")
    )
    state = SteadyState(
        nothing,
        nothing,
        mean,
        dict.fromkeys(mean, every[:, None]),
        *({name: each[:, None] for name, each in part.items()} for part in (mean, variance, third, analysis.delays)),
    )
    return OperatingPoint(nothing, (every,), (1.0,), (state,), analysis.share)


def _pushed_back(analysis: Analysis, point: OperatingPoint, rate: FloatArray) -> OperatingPoint:
    """Limit completions to the rate that all stations visited with a pool unit can sustain."""
    dropped = analysis.least_drop_rate(rate) if analysis.pool is not None else np.zeros(1)
    slow = dropped > point.drop_rate
    if not np.any(slow):
        return point
    total = rate * sent(analysis.chains, dropped)[0]
    lasting = blocked(analysis, total, dropped)
    states = tuple(_with_lasting(state, slow, dropped, lasting) for state in point.states)
    return replace(point, rate_per_s=np.where(slow, total, point.rate_per_s), states=states)


def _with_lasting(state: SteadyState, slow: NDArray[np.bool_], dropped: FloatArray, lasting: Blocked) -> SteadyState:
    """Return a steady state, replaced by that of a lasting overload where stations push back."""

    def parts(of: Mapping[str, FloatArray], own: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        return {name: np.where(slow[..., None], of[name][..., None], value) for name, value in own.items()}

    return SteadyState(
        np.where(slow, dropped, state.drop_rate),
        np.where(slow, lasting.busy_units, state.busy_units),
        {name: np.where(slow, lasting.mean_s[name], time) for name, time in state.response_s.items()},
        state.weight,
        parts(lasting.mean_s, state.mean_s),
        parts(lasting.variance_s2, state.variance_s2),
        parts(lasting.third_s3, state.third_s3),
        state.delays,
    )


def _sent_per_s(analysis: Analysis, rate: FloatArray) -> tuple[FloatArray, list[Number]]:
    """Return the rate at which requests are sent (..., draws), and in it the share of each group of alike pools.

    Sessions end at a failure. With pools that are not alike, those of each group are taken as sessions of their own.
    """
    shares = [group.share for group in analysis.groups]
    if analysis.pool is None or all(len(part.classes) == 1 for part in analysis.chains):
        return rate, shares
    if len(shares) < 2:
        return _sent_to_part(analysis, rate), shares
    rows = [[row * share for share in shares] for row in _batches(analysis, rate)]
    near = analysis.near_capacity
    parts = [
        [_sent_to_part(part, own) for part, own in zip(_parts(analysis, row, near), row, strict=True)] for row in rows
    ]
    each = np.swapaxes(parts, 0, 1).reshape(-1, *rate.shape)
    total = np.asarray(np.sum(each, axis=0))
    return total, list(each / np.maximum(total, 1e-300))


def _sent_to_part(analysis: Analysis, rate: FloatArray) -> FloatArray:
    if analysis.server is None:
        return rate
    draws = np.broadcast_to(np.arange(analysis.draws), rate.shape).ravel()
    return _sent(analysis.server, analysis.chains, rate.ravel(), draws)[0].reshape(rate.shape)


def _sent(
    server: FlowEquivalent,
    parts: Sequence[Chain],
    rate: FloatArray,
    draws: NDArray[np.intp],
    start: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the rate of requests sent, the logarithm of their drop rate, and its elasticity over `rate`.

    `rate` is the rate at which requests would be sent if none were dropped; the mix of the classes is taken as fixed.
    Newton's method finds both; `start` is the logarithm of a rate at which requests may be sent.
    """
    if all(len(part.classes) == 1 for part in parts):
        return (rate, *server.blocking(rate, draws))
    log_rate = np.log(np.maximum(rate, 1e-300))
    low, high = log_rate + np.log(sent(parts, np.ones(1))[0]), log_rate.copy()
    log_sent = log_rate.copy() if start is None else np.clip(start, low, high)
    log_dropped, elasticity, left = np.empty_like(rate), np.empty_like(rate), np.arange(len(rate))
    for step in range(_STEPS):
        here = log_sent[left]
        log_dropped[left], slope = server.blocking(np.exp(here), draws[left])
        share, fall = sent(parts, np.exp(log_dropped[left]))
        elasticity[left] = slope / (1 - fall * slope)
        gap = here - log_rate[left] - np.log(share)
        low[left], high[left] = np.where(gap < 0, here, low[left]), np.where(gap > 0, here, high[left])
        wanted = here - gap / (1 - fall * slope)
        # Beyond the knee Newton's steps can alternate between two points, so each fourth one halves the interval.
        inside = (wanted >= low[left]) & (wanted <= high[left]) & (step % 4 < 3)
        going = np.abs(gap) > _EXACT
        log_sent[left[going]] = np.where(inside, wanted, (low[left] + high[left]) / 2)[going]
        left = left[going]
        if not len(left):
            break
    return np.exp(log_sent), log_dropped, elasticity


def peak_ratio(analysis: Analysis) -> FloatArray:
    """Return the rate in a burst over the mean rate (draws,); 1 for Poisson traffic."""
    arrivals = analysis.arrivals
    ratio = arrivals.burst_ratio if isinstance(arrivals, Bursty) else 1.0
    return np.broadcast_to(np.asarray(ratio, dtype=float), (analysis.draws,))


def capacity_per_s(analysis: Analysis, max_drop_rate: float) -> FloatArray:
    """Return the largest sustained rate: drop rates are within a limit and no backlog grows without bound.

    The first class of alike pools whose drop rate exceeds the limit determines the rate.

    Parameters
    ----------
    analysis : Analysis
        The analysed network.
    max_drop_rate : float
        Largest acceptable share of dropped requests.

    Returns
    -------
    array (draws,)
        Mean offered rate, in requests per second.
    """
    groups, high = analysis.groups, analysis.drift_per_s
    if len(groups) < 2:
        return _capacity_per_s(analysis, high, max_drop_rate)
    peak, rate, before, parts = peak_ratio(analysis), high, None, None
    for _ in range(_BACKGROUNDS):
        parts = analysis.parts([rate * peak * group.share for group in groups], parts)
        pairs = zip(groups, parts, strict=True)
        each = [_capacity_per_s(part, high * group.share, max_drop_rate) / group.share for group, part in pairs]
        found = np.min(each, axis=0)
        if np.all(np.abs(found - rate) <= _SETTLED * rate):
            return np.asarray(found)
        here = np.log(rate), np.log(found)
        rate, before = np.exp(_meeting(here, before)), here
    return np.minimum(rate, high)


def _meeting(here: tuple[FloatArray, FloatArray], before: tuple[FloatArray, FloatArray] | None) -> FloatArray:
    """Return where a falling function equals its argument, by a secant; with one point only, by the midpoint."""
    at, value = here
    if before is None:
        return (at + value) / 2
    run = at - before[0]
    slope = np.where(np.abs(run) > 1e-9, (value - before[1]) / np.where(np.abs(run) > 1e-9, run, 1.0), 0.0)
    slope = np.clip(slope, -_STEEPEST, 0.0)
    return np.asarray((value - slope * at) / (1 - slope))


def _capacity_per_s(analysis: Analysis, high: FloatArray, max_drop_rate: float) -> FloatArray:
    """Return the largest sustained rate of a network with alike outermost pools, at most `high`."""
    server = analysis.server
    if server is None:
        return high
    blocked = _DropRates(server, analysis.chains, phases(analysis))
    high = np.minimum(high, 1.2 * analysis.saturation_per_s)
    every = np.arange(analysis.draws)
    if analysis.draws <= _MANY * _PILOTS:
        return _capacity(blocked, max_drop_rate, high, high, every)
    pilots = every[:: analysis.draws // _PILOTS]
    found = _capacity(blocked, max_drop_rate, high, high, pilots)
    return _capacity(blocked, max_drop_rate, high, high * np.median(found / high[pilots]), every)


def _capacity(
    log_drop_rate_and_slope: Callable[[FloatArray, NDArray[np.intp]], tuple[FloatArray, FloatArray]],
    max_drop_rate: float,
    highest: FloatArray,
    start: FloatArray,
    draws: NDArray[np.intp],
) -> FloatArray:
    """Return the largest sustained rates of some draws, at most `highest`, by Newton's method on logarithms.

    In one phase, the logarithm of the drop rate is a concave function of that of the rate, so steps do not diverge.
    With two phases, bounds make sure of that.
    """
    low, high, rate = np.zeros(len(draws)), highest[draws], start[draws]
    for _ in range(_STEPS):
        missing, slope = log_drop_rate_and_slope(rate, draws)
        missing = np.log(max_drop_rate) - missing
        sustained = missing >= 0
        low, high = np.where(sustained, rate, low), np.where(sustained, high, rate)
        step = missing / np.maximum(slope, 1e-9)
        wanted = rate * np.exp(np.clip(step, -1.0, 1.0))
        inside = (wanted >= low) & (wanted <= high)
        following = np.where(inside, wanted, np.where(step > 0, high, (low + high) / 2))
        change, rate = np.abs(following - rate), following
        if np.all(change <= _CLOSE * rate):
            break
    return rate


class _DropRates:
    """Logarithms of drop rates at a rate, and their slopes over the logarithm of the rate, for some draws.

    Remembers the last rate of each draw in each phase, the rate at which requests were sent and its slope, all as
    logarithms: the next solution is near that line.
    """

    def __init__(
        self, server: FlowEquivalent, sessions: Sequence[Chain], parts: Sequence[tuple[float, FloatArray]]
    ) -> None:
        self.server, self.sessions, self.parts = server, sessions, parts
        self.lines = [np.stack([np.zeros_like(ratio), np.zeros_like(ratio), np.ones_like(ratio)]) for _, ratio in parts]

    def __call__(self, rate_per_s: FloatArray, draws: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        rates, growths, logs, slopes = [], [], [], []
        for (time, ratio), line in zip(self.parts, self.lines, strict=True):
            whole = rate_per_s * ratio[draws]
            log_whole, (before, sent_before, rise) = np.log(np.maximum(whole, 1e-300)), line[:, draws]
            start = sent_before + rise * (log_whole - before)
            each, log_dropped, slope = _sent(self.server, self.sessions, whole, draws, start)
            growth = 1 + sent(self.sessions, np.exp(log_dropped))[1] * slope
            line[:, draws] = log_whole, np.log(np.maximum(each, 1e-300)), growth
            rates.append(np.maximum(time * each, 1e-300))
            growths.append(growth)
            logs.append(log_dropped + np.log(rates[-1]))
            slopes.append(slope + growth)
        dropped, total = np.logaddexp.reduce(logs, axis=0), np.sum(rates, axis=0)
        rise = np.sum(np.exp(np.array(logs) - dropped) * slopes, axis=0)
        return dropped - np.log(total), rise - np.sum(np.array(rates) * growths, axis=0) / total


def phases(analysis: Analysis) -> list[tuple[float, FloatArray]]:
    """Return the phases of the traffic.

    Parameters
    ----------
    analysis : Analysis
        The analysed network.

    Returns
    -------
    list of (float, array (draws,))
        Share of the time, and rate relative to the mean, of each phase.
    """
    arrivals, ratio = analysis.arrivals, peak_ratio(analysis)
    if not isinstance(arrivals, Bursty):
        return [(1.0, ratio)]
    burst = float(np.median(arrivals.burst_fraction))
    return [(1 - burst, np.maximum(1 - burst * ratio, 0.0) / (1 - burst)), (burst, ratio)]


def _state(analysis: Analysis, rate: FloatArray, shares: Sequence[Number]) -> SteadyState:
    if len(shares) < 2:
        return _state_of_part(analysis, rate)
    of_group = [_batches(analysis, np.broadcast_to(share, rate.shape)) for share in shares]
    states = []
    for row, *each in zip(_batches(analysis, rate), *of_group, strict=True):
        own = [row * share for share in each]
        parts = _parts(analysis, own)
        states.append(_together(list(zip(each, parts, map(_state_of_part, parts, own), strict=True))))
    return stacked(states, rate.shape)


def _batches(analysis: Analysis, rate: FloatArray) -> FloatArray:
    """Return rates (..., draws) as rows, each solved at once: all rates together if there is one draw."""
    return rate.reshape(1, -1) if analysis.draws == 1 else rate.reshape(-1, analysis.draws)


def _parts(
    analysis: Analysis, rates: Sequence[FloatArray], like: Sequence[Analysis] | None = None
) -> tuple[Analysis, ...]:
    """Return the parts of a network with several groups of pools, at rates of each (draws,), or (n,) of one draw.

    Each part is next to the requests of other parts that are not dropped. `like` is that of `Analysis.parts`.
    """
    parts = analysis.parts(rates, like)
    every = np.arange(parts[0].draws)
    lost = [
        np.zeros(len(every)) if part.server is None else np.exp(part.server.blocking(each, every)[0])
        for part, each in zip(parts, rates, strict=True)
    ]
    relieved = np.max(lost, axis=0) > _RELIEF
    if not np.any(relieved):
        return parts
    left = [each * np.where(relieved, 1 - dropped, 1.0) for each, dropped in zip(rates, lost, strict=True)]
    return analysis.parts(left, like)


def stacked(states: Sequence[SteadyState], shape: tuple[int, ...]) -> SteadyState:
    """Stack steady states, each of a row of rates, into one for rates of a given shape (..., draws)."""
    return _by_array(lambda *values: np.stack(values).reshape(*shape, *values[0].shape[1:]), *states)


def _by_array(function: Callable[..., FloatArray], *states: SteadyState) -> SteadyState:
    """Apply a function to each array of some steady states; return the steady state of the results."""

    def of(*values: Any) -> Any:
        if isinstance(values[0], dict):
            return {name: function(*(each[name] for each in values)) for name in values[0]}
        return function(*values)

    return SteadyState(*(of(*(getattr(state, each.name) for state in states)) for each in fields(SteadyState)))


def _state_of_part(analysis: Analysis, rate: FloatArray) -> SteadyState:
    """Solve a network with alike outermost pools."""
    if analysis.server is None:
        return _open_state(analysis, rate)
    chance = analysis.server.chances(rate)
    dropped = analysis.server.drop_rate(chance)
    return steady_state(analysis.server, analysis.inside, chance, dropped, analysis.delays)


def _together(parts: Sequence[tuple[Number, Analysis, SteadyState]]) -> SteadyState:
    """Combine the steady states of parts of the traffic, weighted by completed requests."""
    response: dict[str, FloatArray] = {}
    weight, mean, variance, third, delays = (dict[str, FloatArray]() for _ in range(5))
    for name in dict.fromkeys(name for _, part, _ in parts for name in part.share):
        done = [
            (share * part.share[name] * (1 - each.drop_rate), each) for share, part, each in parts if name in part.share
        ]
        total = np.maximum(sum((rate for rate, _ in done), np.zeros(1)), 1e-300)
        response[name] = np.asarray(sum((rate / total * each.response_s[name] for rate, each in done), np.zeros(1)))
        weight[name] = np.concatenate([(rate / total)[..., None] * each.weight[name] for rate, each in done], axis=-1)
        mean[name] = np.concatenate([each.mean_s[name] for _, each in done], axis=-1)
        variance[name] = np.concatenate([each.variance_s2[name] for _, each in done], axis=-1)
        third[name] = np.concatenate([each.third_s3[name] for _, each in done], axis=-1)
        delays[name] = np.concatenate([each.delays[name] for _, each in done], axis=-2)
    dropped = np.asarray(sum((share * each.drop_rate for share, _, each in parts), np.zeros(1)))
    held = (each.busy_units for _, part, each in parts if part.server is not None)
    busy = np.asarray(sum(held, np.zeros_like(dropped)))
    return SteadyState(dropped, busy, response, weight, mean, variance, third, delays)


def steady_state(
    server: FlowEquivalent,
    inside: Inside,
    chance: FloatArray,
    drop_rate: FloatArray,
    delays: Mapping[str, FloatArray],
) -> SteadyState:
    """Return the steady state of a chain.

    Parameters
    ----------
    server : FlowEquivalent
        The flow-equivalent server.
    inside : Inside
        Conditions in its states.
    chance : array (..., draws, states)
        Probabilities of its states.
    drop_rate : array (..., draws)
        Share of the requests that are dropped.
    delays : mapping of arrays (draws, 3)
        As `Analysis.delays`.

    Returns
    -------
    SteadyState
    """
    done = chance[..., 1:] * server.throughput_per_s  # completions per second, by the number inside
    total = np.maximum(done.sum(axis=-1), 1e-300)
    columns, weight = _representative(done)
    # BLAS would use all processors for each of many long rows, which costs more than it saves.
    waiting_s = np.einsum("...n,...n->...", done, inside.waiting_s) / total
    passed = inside.mean_passed(done) / total[..., None]
    draw = np.arange(done.shape[-2])[:, None]
    waiting_there_s, (mean_s, variance_s2, third_s3) = inside.waiting_s[draw, columns], inside.there(draw, columns)
    return SteadyState(
        drop_rate,
        np.einsum("...n,n->...", chance[..., 1:], inside.held),
        {name: _interpolated(ends, passed) + waiting_s for name, ends in inside.mean_s.items()},
        dict.fromkeys(inside.mean_s, weight),
        {name: mean + waiting_there_s for name, mean in mean_s.items()},
        variance_s2,
        third_s3,
        _of_parts(delays, weight.shape),
    )


def _of_parts(delays: Mapping[str, FloatArray], shape: tuple[int, ...]) -> dict[str, FloatArray]:
    """Give every part of a mixture (..., draws, parts) the same delays (draws, 3)."""
    return {name: np.broadcast_to(each[:, None], (*shape, 3)) for name, each in delays.items()}


def _interpolated(ends: FloatArray, passed: FloatArray) -> FloatArray:
    """Interpolate values at the ends of segments (..., segments + 1) by the share of each segment that is passed."""
    return np.asarray(ends[..., 0] + np.vecdot(np.diff(ends, axis=-1), passed))


def _open_state(analysis: Analysis, rate: FloatArray) -> SteadyState:
    """Solve an open network without pools; there is no steady state beyond saturation."""
    share = np.minimum(rate / analysis.saturation_per_s, 0.9999)
    stable = rate < analysis.saturation_per_s
    times = analysis.response_at(share * analysis.saturation_per_s)
    mean = {name: np.where(stable, time[0], np.inf) for name, time in times.items()}
    busy = rate * sum((analysis.share[name] * mean[name] for name in mean), np.zeros(analysis.draws))
    return SteadyState(
        np.where(stable, 0.0, 1 - 1 / np.maximum(rate / analysis.saturation_per_s, 1.0)),
        busy,
        mean,
        dict.fromkeys(mean, np.ones((*rate.shape, 1))),
        {name: value[..., None] for name, value in mean.items()},
        {name: time[1][..., None] for name, time in times.items()},
        {name: time[2][..., None] for name, time in times.items()},
        _of_parts(analysis.delays, (*rate.shape, 1)),
    )


def _representative(done: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """Pick representative states as completions see them, at Gauss-Legendre levels, and their weights."""
    nodes, weights = _gauss_legendre()
    below = np.cumsum(_rows(done), axis=-1)
    below /= np.maximum(below[:, -1:], 1e-300)
    start = np.arange(len(below))[:, None]  # one search in all rows, each in its own unit interval
    found = (below + start).ravel().searchsorted((start + (nodes + 1) / 2).ravel()).reshape(len(below), -1)
    columns = np.minimum(found - start * below.shape[-1], done.shape[-1] - 1).reshape(*done.shape[:-1], -1)
    return columns, np.broadcast_to(weights / 2, columns.shape)


def _rows(values: FloatArray) -> FloatArray:
    """Reshape (..., n) to (rows, n)."""
    return values.reshape(-1, values.shape[-1])


@lru_cache
def _gauss_legendre() -> tuple[FloatArray, FloatArray]:
    nodes, weights = np.polynomial.legendre.leggauss(_STATES)
    return np.asarray(nodes), np.asarray(weights)
