"""Sessions that end at a failure: how many requests they still send, and how many must fail for stations to keep up.

The requests of a session are sent one after another, and one that is dropped ends it. If each is dropped with the
probability d, a session of n requests sends (1 - (1 - d)^n) / d of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from capplan.models.language.network import Network
from capplan.models.language.step import Acquire, ForkJoin, Step, Visit, children
from capplan.models.language.units import FloatArray
from capplan.models.solver.flow_analysis import ServiceDemand

_HALVINGS = 40  # bisection steps of a drop rate


@dataclass(frozen=True)
class Chain:
    """Requests that are sent one after another.

    Attributes
    ----------
    weight : float
        Number of such chains for each request of the traffic, when nothing fails.
    classes : tuple of str
        Request classes, in order.
    """

    weight: float
    classes: tuple[str, ...]


def chains(network: Network) -> tuple[Chain, ...]:
    """Return the sessions of the traffic; a request outside a session is a chain of one."""
    sessions = {session.name: session.classes for session in network.sessions}
    mix = [(sessions.get(name, (name,)), share) for name, share in network.traffic.mix.items() if share]
    total = sum(share * len(classes) for classes, share in mix)
    return tuple(Chain(share / total, classes) for classes, share in mix)


def sent(parts: Sequence[Chain], dropped: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the share of requests that are sent, and its slope over the drop rate, both as logarithms.

    Parameters
    ----------
    parts : sequence of Chain
        The traffic.
    dropped : array
        Drop rate of a request that is sent.

    Returns
    -------
    tuple of array
        The share, and the derivative of its logarithm with respect to that of the drop rate.
    """
    share, slope, passed = np.zeros_like(dropped), np.zeros_like(dropped), 1 - dropped
    for part in parts:
        here, before = np.ones_like(dropped), np.ones_like(dropped)
        for place in range(len(part.classes)):
            share = share + part.weight * here
            slope = slope - part.weight * place * before
            here, before = here * passed, here
    return share, dropped * slope / share


def pushed_back(
    parts: Sequence[Chain], demands: Mapping[str, Mapping[str, ServiceDemand]], limits: Mapping[str, FloatArray]
) -> Sequence[tuple[FloatArray, ...]]:
    """Return for each station the load of a chain's requests, by position in the chain, relative to its speed.

    Parameters
    ----------
    parts : sequence of Chain
        The traffic.
    demands : mapping
        Service demands by request class and station.
    limits : mapping of array (draws,)
        Seconds of demand that the members of a station can serve in one second.

    Returns
    -------
    sequence of tuples of array (draws,)
        By station and by place.
    """
    longest = max(len(part.classes) for part in parts)
    found = []
    for station, limit in limits.items():
        places = []
        for place in range(longest):
            classes = [(part.weight, part.classes[place]) for part in parts if place < len(part.classes)]
            asked = (weight * demands[name].get(station, ServiceDemand()).mean_s for weight, name in classes)
            places.append(np.asarray(sum(asked, np.zeros(1)) / limit))
        found.append(tuple(places))
    return found


def least_drop_rate(loads: Sequence[tuple[FloatArray, ...]], rate_per_s: FloatArray) -> FloatArray:
    """Return the lowest drop rate at which stations keep up with the remaining requests.

    Parameters
    ----------
    loads : sequence of tuples of array (draws,)
        See `pushed_back`.
    rate_per_s : array (..., draws)
        Rate of requests that would be sent if none were dropped, per second.

    Returns
    -------
    array (..., draws)
    """
    low, high = np.zeros_like(rate_per_s), np.ones_like(rate_per_s)

    def too_low(dropped: FloatArray) -> FloatArray:
        asked = [
            sum((load * (1 - dropped) ** (place + 1) for place, load in enumerate(places)), np.zeros(1))
            for places in loads
        ]
        return np.asarray(rate_per_s * np.max(asked, axis=0) > 1)

    if not len(loads) or not np.any(too_low(low)):
        return low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        beyond = too_low(middle)
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return np.where(high < 2.0**-30, 0.0, high)


def stations_held(step: Step) -> set[str]:
    """Return the stations that requests visit while they hold a unit of a pool.

    If such a station cannot keep up, the pool's units run out and further requests wait.
    """
    known: dict[tuple[int, bool], set[str]] = {}

    def found(step: Step, held: bool) -> set[str]:
        key = (id(step), held)
        if key not in known:
            if isinstance(step, Visit):
                known[key] = {step.station} if held else set()
            else:
                inside = held or isinstance(step, Acquire)
                inside = inside and not (isinstance(step, ForkJoin) and step.needed == 0)
                known[key] = set[str]().union(*(found(child, inside) for child in children(step)))
        return known[key]

    return found(step, False)
