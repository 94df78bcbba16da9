"""Closed and throttled clients: their throughput and response times, also next to detached work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from capplan.errors import InputError, RefusedError
from capplan.models.language.traffic import Closed, Open, Throttled
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.closed_throughput import rows_interpolated
from capplan.models.solver.operating_point import OperatingPoint, SteadyState, stacked, steady_state
from capplan.models.solver.pools import FlowEquivalent, state_grid
from capplan.models.solver.random_times import rare_wait
from capplan.models.solver.single_station import in_proportion

_SHARES = np.array([1e-6, 0.35, 0.65, 0.87, 1.0])  # of saturation: rates of the left work
_NEWTON = 4  # steps


def with_detached_per_s(analysis: Analysis, population: FloatArray) -> FloatArray:
    """Return the throughput with a constant number of requests inside the outermost pools, next to detached work.

    Parameters
    ----------
    analysis : Analysis
        The analysed network.
    population : array (n,)
        Numbers of requests: whole numbers from 1, in ascending order.

    Returns
    -------
    array (draws, n)
        Requests per second.
    """
    if not analysis.detached:
        return analysis.throughput_per_s(population)
    most = analysis.saturation_per_s
    completed = [analysis.beside_detached(share * most).throughput_per_s(population) for share in _SHARES]
    return most[:, None] * _fixed_point(np.stack(completed) / most[:, None])


def _fixed_point(values: FloatArray) -> FloatArray:
    """Return the fixed point of a falling function (...), from its values at `_SHARES` (shares, ...)."""
    slopes = np.gradient(values, _SHARES, axis=0)
    above = (values > _SHARES.reshape(-1, *(1,) * (values.ndim - 1))).sum(axis=0)
    left = np.clip(above - 1, 0, len(_SHARES) - 2)
    begin, width = _SHARES[left], np.diff(_SHARES)[left]
    ends = np.stack([left, left + 1])
    first, last = np.take_along_axis(values, ends, axis=0)
    before, after = np.take_along_axis(slopes, ends, axis=0) * width
    rise = last - first
    where = np.clip((first - begin) / np.maximum(width - rise, 1e-12), 0.0, 1.0)
    for _ in range(_NEWTON):
        square, bend = before + after - 2 * rise, 3 * rise - 2 * before - after
        found = first + where * (before + where * (bend + where * square))
        slope = before + where * (2 * bend + 3 * where * square)
        where = np.clip(where + (found - begin - where * width) / np.maximum(width - slope, 1e-12), 0.0, 1.0)
    return np.asarray(begin + where * width)


_BRIEFEST = 1e-9  # pause of clients that never pause, over the response of a single request
_CLOSE = 1e-6  # relative error of a rate, or of a pause that is almost none
_NEGLIGIBLE = 1e-15  # probability of a state
_STEPS = 60  # Newton steps, or halvings of a bracket, at most; five are usual


def solve_clients(
    analysis: Analysis, clients: Sequence[int] | None = None, *, clock: Literal["intended", "actual"] = "intended"
) -> OperatingPoint:
    """Solve a network with closed or throttled clients.

    Parameters
    ----------
    analysis : Analysis
        The analysed network.
    clients : sequence of int, optional
        Numbers of clients; by default that of the traffic. The rate of throttled clients stays that of the traffic.
    clock : {"intended", "actual"}
        Start of the latencies of throttled clients: when a request should have started, or when it did.

    Returns
    -------
    OperatingPoint
        Arrays (numbers, draws). `rate_per_s` is the rate of all requests, the dropped ones included. From the intended
        start, response times of saturated throttled clients are infinite.

    Raises
    ------
    InputError
        If the traffic is open, or a number of clients is below 1.
    RefusedError
        If the outermost pools are not alike and clients can fill one.
    """
    traffic = analysis.traffic
    if isinstance(traffic, Open):
        raise InputError("open traffic has no clients: solve it at a rate, or give closed or throttled traffic")
    numbers = [traffic.clients] if clients is None else list(clients)
    if not numbers or min(numbers) < 1:
        raise InputError(f"clients = {numbers} has a number below 1: give at least one client")
    _refuse_unlike_pools(analysis, max(numbers))
    chains = [_chain(analysis, count, *known) for known in [_table(analysis, max(numbers))] for count in numbers]
    rows = [
        _throttled(analysis, chain, count, traffic, clock)
        if isinstance(traffic, Throttled)
        else _closed(analysis, chain, count, _pause_s(analysis, traffic))
        for chain, count in zip(chains, numbers, strict=True)
    ]
    rate = np.stack([each for each, _ in rows])
    states = stacked([state for _, state in rows], rate.shape)
    return OperatingPoint(rate, (np.ones(analysis.draws),), (1.0,), (states,), analysis.share)


def _refuse_unlike_pools(analysis: Analysis, most: int) -> None:
    if len(analysis.groups) < 2:
        return
    limits = {pool.name: analysis.pool_size(pool.name) for pool in analysis.outer_pools}
    sizes = [sum(limits[name] for name in group.pools & limits.keys()) for group in analysis.groups]
    smallest = min(filter(None, sizes), default=most)
    if most > smallest:
        raise RefusedError(
            f"the analytic solver does not support more clients ({most}) than units of the smallest pool ({smallest}) "
            "if the outermost pools differ: simulate the network"
        )


def _table(analysis: Analysis, most: int) -> tuple[FloatArray, FloatArray]:
    """Return a grid of numbers inside and the throughput at each (draws, numbers); all chains interpolate in it."""
    size = most if analysis.pool is None else min(most, analysis.pool[0])
    numbers = state_grid(size, size, size)[1:]
    limit = analysis.inner_pools_per_s
    if all(station.rate is None for station in analysis.stations.values()):
        limit = np.minimum(limit, _fastest_per_s(analysis))
    return numbers, np.minimum(with_detached_per_s(analysis, numbers), limit[:, None])


def _fastest_per_s(analysis: Analysis) -> FloatArray:
    """Return the largest throughput of the chain that stands for the network (draws,): its saturation.

    Clients that keep their pace find the short queues of an open network. A chain with Poisson arrivals has them, where
    services or arrivals are regular, only if it works faster than the stations.
    """
    traffic, saturation = analysis.traffic, analysis.saturation_per_s
    keep_pace = isinstance(traffic, Throttled) and np.less(traffic.rate_per_s, saturation)
    return np.where(keep_pace, np.inf, saturation)


def _chain(analysis: Analysis, clients: int, numbers: FloatArray, with_detached_per_s: FloatArray) -> FlowEquivalent:
    size, queue = (clients, 0) if analysis.pool is None else analysis.pool
    if analysis.pool is not None and any(pool.queue_limit is None for pool in analysis.outer_pools):
        queue = clients
    size, places = min(size, clients), min(size + queue, clients)
    states = state_grid(size, places, clients)
    if len(numbers) == 1:
        return FlowEquivalent(states, np.repeat(with_detached_per_s, len(states) - 1, axis=1), size)
    return FlowEquivalent(states, rows_interpolated(np.minimum(states[1:], size), numbers, with_detached_per_s), size)


def _pause_s(analysis: Analysis, traffic: Closed) -> Number:
    """Return the mean pause of a client per request: its think time, and the gaps of its session."""
    sessions = {session.name: session for session in analysis.network.sessions}
    pause: Number = 0.0
    requests = 0.0
    for name, share in traffic.mix.items():
        gaps = sessions[name].gaps if name in sessions else ()
        pause = pause + share * (traffic.think.mean + sum((gap.mean for gap in gaps), 0.0))
        requests += share * (len(gaps) + 1)
    return pause / requests


def _closed(analysis: Analysis, chain: FlowEquivalent, clients: int, pause_s: Number) -> tuple[FloatArray, SteadyState]:
    """Return the rate of requests, and the steady state."""
    pause = np.maximum(pause_s + analysis.outside_s, _BRIEFEST * analysis.averaged(analysis.unloaded))
    chance = _chances(chain, clients, pause)
    rate = (chance @ (clients - chain.states)) / pause
    dropped = chance[:, -1] * (clients - chain.places) / pause / rate
    part, chance = _probable(chain, chance)
    return rate, steady_state(part, analysis.conditions(part), chance, dropped, analysis.delays)


def _probable(chain: FlowEquivalent, chance: FloatArray) -> tuple[FlowEquivalent, FloatArray]:
    """Remove the states at both ends without weight in any draw; the first remaining state completes nothing."""
    probable = np.flatnonzero(~(chance.max(axis=0) <= _NEGLIGIBLE))
    first, last = max(int(probable[0]) - 1, 0), max(int(probable[-1]), 1)
    part = FlowEquivalent(chain.states[first : last + 1], chain.throughput_per_s[:, first:last], chain.pool)
    return part, chance[:, first : last + 1]


def _chances(
    chain: FlowEquivalent, clients: int, pause_s: FloatArray, draws: NDArray[np.intp] | slice = slice(None)
) -> FloatArray:
    """Return the probability of each grid state, for all numbers inside that it represents (chosen draws, states)."""
    outside = clients - chain.states
    ways = special.gammaln(clients + 1.0) - special.gammaln(outside + 1.0) + np.log(chain.weight)
    return in_proportion(ways - chain.states * np.log(pause_s)[:, None] - chain.log_work[draws])


def _throttled(
    analysis: Analysis, chain: FlowEquivalent, clients: int, traffic: Throttled, clock: str
) -> tuple[FloatArray, SteadyState]:
    """Return the rate of requests, and the steady state from a start of the request."""
    alone = analysis.averaged(analysis.unloaded)
    wanted = np.broadcast_to(np.asarray(traffic.rate_per_s, dtype=float), alone.shape)
    low = np.log(_BRIEFEST * alone)
    high = np.log(np.maximum(clients / wanted, 2 * _BRIEFEST * alone))  # the pause if requests took no time
    at = np.log(np.maximum(clients / wanted - alone, 2 * _BRIEFEST * alone))
    left, outside = np.arange(len(at)), clients - chain.states
    for _ in range(_STEPS):
        here, pause = at[left], np.exp(at[left])
        chance = _chances(chain, clients, pause, left)
        mean, square = chance @ outside, chance @ outside**2
        missing = np.log(np.maximum(mean, 1e-300) / pause / wanted[left])
        low[left], high[left] = np.where(missing > 0, here, low[left]), np.where(missing > 0, high[left], here)
        step = missing / np.maximum(1 - (square / np.maximum(mean, 1e-300) - mean), 1e-3)
        inside = (here + step > low[left]) & (here + step < high[left])
        at[left] = np.where(inside, here + step, (low[left] + high[left]) / 2)
        left = left[(np.abs(missing) >= _CLOSE) & (high[left] - low[left] >= _CLOSE)]
        if not len(left):
            break
    rate, state = _closed(analysis, chain, clients, np.maximum(np.exp(at) - analysis.outside_s, 0.0))
    return rate, state if clock == "actual" else _late(analysis, state, clients / wanted, rate < 0.999 * wanted)


def _late(analysis: Analysis, state: SteadyState, period_s: FloatArray, saturated: NDArray[np.bool_]) -> SteadyState:
    """Add the delay of requests that start late."""
    share, weight = analysis.share, state.weight
    mean = sum((share[name] * state.response_s[name] for name in share), np.zeros(1))
    second = sum(
        (
            share[name] * np.sum(weight[name] * (state.variance_s2[name] + state.mean_s[name] ** 2), axis=-1)
            for name in share
        ),
        np.zeros(1),
    )
    scv = np.maximum(second / mean**2 - 1, 1e-9)
    busy = np.minimum(mean / period_s, 1 - 1e-9)
    reduced = np.exp(-2 * (1 - busy) / (3 * busy * scv))
    wait = np.where(saturated, np.inf, mean * busy / (1 - busy) * scv / 2 * reduced)
    late = np.where(saturated, 0.0, wait)
    delay = rare_wait(late, late**2 * np.maximum(2 / np.maximum(busy, 1e-9) - 1, 1.0))
    return replace(
        state,
        response_s={name: value + wait for name, value in state.response_s.items()},
        mean_s={name: value + wait[..., None] for name, value in state.mean_s.items()},
        variance_s2={name: value + np.asarray(delay.variance)[..., None] for name, value in state.variance_s2.items()},
        third_s3={name: value + np.asarray(delay.third_s3)[..., None] for name, value in state.third_s3.items()},
    )
