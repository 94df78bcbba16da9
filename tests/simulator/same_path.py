"""Whether both engines follow one sample path: what is compared, for how long, which constructs a network has."""

from collections.abc import Iterator
from dataclasses import fields

import numpy as np

from capplan.models.language.network import Network
from capplan.models.language.step import Acquire, Route, walk
from capplan.models.language.traffic import Closed, Open
from capplan.simulator.compiled import engine as compiled
from capplan.simulator.reference import engine as reference
from capplan.simulator.results.run import Run
from capplan.simulator.results.trace import Requests

LONGEST_S = 40.0  # of traffic: slow networks have fewer requests


def constructs(network: Network) -> Iterator[str]:
    """Name the constructs that a network uses."""
    for station in network.stations:
        yield station.discipline
        yield from (name for name in ("rate", "pauses", "background", "host") if getattr(station, name))
        if station.expiry_s is not None:
            yield "expiry"
    for request in network.classes:
        yield from (name for name in ("timeout_s", "retry") if getattr(request, name) is not None)
        for step in walk(request.flow):
            yield step.kind
            if isinstance(step, Route):
                yield step.policy
            if isinstance(step, Acquire):
                yield "queue_limit" if any(pool.queue_limit is not None for pool in network.pools) else "no limit"
    yield network.traffic.kind
    if isinstance(network.traffic, Open):
        yield network.traffic.arrivals.kind
    for session in network.sessions:
        if session.name in network.traffic.mix:
            yield from ("session", f"{session.route} session")
    yield from (event.action for event in network.timeline.events)
    yield from (name for name in ("detection_s", "cold_start_s") if getattr(network.timeline, name) > 0)


def duration_s(network: Network, requests: int) -> float:
    """Return how long traffic must come for about so many requests (closed clients may take less or more)."""
    traffic = network.traffic
    if isinstance(traffic, Closed):
        return LONGEST_S
    rate = float(traffic.rate_per_s)
    return min(LONGEST_S, 1.3 * requests / rate)


def both(network: Network, seed: int, requests: int) -> tuple[Run, Run]:
    """Run a network in both engines."""
    until = duration_s(network, requests)
    plain = reference.simulate(network, until, seed=seed, warmup_s=until / 8, max_requests=requests)
    fast = compiled.simulate(network, until, seed=seed, warmup_s=until / 8, max_requests=requests, trace=True)
    return plain, fast


def assert_same(plain: Run, fast: Run) -> None:
    """Compare every request, tick by tick, and every sum; only the number of events is an engine's own affair."""
    for column in fields(Requests):
        one, other = (getattr(run.requests, column.name) for run in (plain, fast))
        assert len(one) == len(other), f"{len(one)} and {len(other)} requests"
        assert np.array_equal(one, other), f"{column.name} differs, first for request {np.flatnonzero(one != other)[0]}"
    for name in ("reports", "stations", "pools", "series"):
        _assert_equal(name, getattr(plain, name), getattr(fast, name))
    for name, counted in vars(plain.tally).items():
        if isinstance(counted, np.ndarray):  # interval by interval; what comes after the last is in no report
            assert np.array_equal(counted[:-1], getattr(fast.tally, name)[:-1]), f"{name} of intervals differ"
    assert plain.marks == fast.marks


def _assert_equal(place: str, one: object, other: object) -> None:
    if isinstance(one, dict) and isinstance(other, dict):
        assert one.keys() == other.keys(), place
        for key in one:
            _assert_equal(f"{place}[{key}]", one[key], other[key])
    elif hasattr(one, "__dataclass_fields__"):
        for name in one.__dataclass_fields__:
            _assert_equal(f"{place}.{name}", getattr(one, name), getattr(other, name))
    else:
        assert np.array_equal(np.asarray(one), np.asarray(other), equal_nan=not isinstance(one, str)), place
