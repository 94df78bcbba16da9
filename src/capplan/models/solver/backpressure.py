"""Lasting overload of a station that pushes back: requests wait in front of it until enough of them fail.

Requests do not wait for the station itself, but their work there holds units of an inner pool, as mutations hold space
in the memtables of a Cassandra node until its storage path has taken them. In a lasting overload all units are taken,
so whoever needs one waits. The outermost pools fill up, and drop what the station cannot take.

How long requests stay follows from the share that is dropped: the outermost pools are an Erlang loss system with a
queue, which drops that share at one offered load only. What is left of the stay beside queueing at other stations is
the wait for room; a class that does not visit the station does not wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.failing_sessions import Chain
from capplan.models.solver.pools import FlowEquivalent, state_grid

_HALVINGS = 40  # bisection steps of an offered load


_MOST = 1e3  # offered load over the places, at most


@dataclass(frozen=True)
class Blocked:
    """Requests in a lasting overload; arrays (..., draws).

    Attributes
    ----------
    busy_units
        Mean number of units of the outermost pools in use.
    mean_s, variance_s2, third_s3
        Mean (s), variance (s²) and third cumulant (s³) of the response, by class.
    """

    busy_units: FloatArray
    mean_s: Mapping[str, FloatArray]
    variance_s2: Mapping[str, FloatArray]
    third_s3: Mapping[str, FloatArray]


def blocked(analysis: Analysis, sent_per_s: FloatArray, dropped: FloatArray) -> Blocked:
    """Return the steady state at a given drop rate, however long requests must wait until enough of them fail.

    Parameters
    ----------
    analysis : Analysis
        A network with outermost pools.
    sent_per_s : array (..., draws)
        Mean rate at which requests are sent, per second.
    dropped : array (..., draws)
        Share of them that is dropped.
    """
    done = np.maximum(sent_per_s * (1 - dropped), 1e-300)
    units, waiting, scv = _occupancy(analysis, dropped)
    # Where sessions end early, the mix takes less work: other stations are as busy as at the rate of a growing backlog.
    times = analysis.response_at(np.minimum(done, analysis.drift_per_s))
    mix = _mix(analysis.chains, dropped)
    stay = units / done + analysis.outside_s
    alone = sum((mix[name] * each[0] for name, each in times.items()), np.zeros(1))
    less = np.minimum(stay / alone, 1.0)  # where other stations are full, too, the pools bound the stay
    need = _need_of_room(analysis)
    each = np.maximum(stay - alone, 0.0) / sum((mix[name] * need[name] for name in times), np.zeros(1))
    room = {name: each * need[name] for name in times}
    return Blocked(
        units,
        {name: less * each[0] + room[name] + waiting / done for name, each in times.items()},
        {name: less**2 * each[1] + scv * room[name] ** 2 for name, each in times.items()},
        {name: less**3 * each[2] + 2 * scv**2 * room[name] ** 3 for name, each in times.items()},
    )


def _occupancy(analysis: Analysis, dropped: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mean number of units in use, the mean number of waiting requests, and the SCV of the units in use."""
    if analysis.pool is None or analysis.server is None:
        raise ValueError("the network has no pool")
    size, queue = analysis.pool
    states = state_grid(size, size + queue)
    held = np.minimum(states[1:], size)
    stays = FlowEquivalent(states, np.broadcast_to(held, (analysis.draws, len(held))), size, analysis.server.peakedness)
    low, high = np.full(dropped.shape, 1e-9), np.full(dropped.shape, _MOST * states[-1])
    for _ in range(_HALVINGS):
        load = np.sqrt(low * high)
        over = stays.drop_rate(stays.chances(load)) > dropped
        low, high = np.where(over, low, load), np.where(over, load, high)
    chance = stays.chances(low)[..., 1:]
    units = np.sum(chance * held, axis=-1)
    spread = np.sum(chance * held**2, axis=-1) / units**2 - 1
    return units, np.sum(chance * (states[1:] - held), axis=-1), np.maximum(spread, 0.0)


def _mix(chains: Sequence[Chain], dropped: FloatArray) -> dict[str, FloatArray]:
    """Return the share of each class in the requests sent: few requests reach the end of a session."""
    found: dict[str, FloatArray] = {}
    for chain in chains:
        for place, name in enumerate(chain.classes):
            found[name] = found.get(name, np.zeros(1)) + chain.weight * (1 - dropped) ** place
    total = sum(found.values(), np.zeros(1))
    return {name: each / total for name, each in found.items()}


def _need_of_room(analysis: Analysis) -> dict[str, Number]:
    """Return each class's demand on the station that pushes back, in seconds."""
    name = max(analysis.held_stations, key=lambda each: float(np.median(analysis.load(each))))
    demands = {request: of.get(name) for request, of in analysis.class_demands.items()}
    return {request: 0.0 if demand is None else demand.mean_s for request, demand in demands.items()}
