"""Whether both engines follow one sample path: what is compared, for how long, which constructs a network has."""

from collections.abc import Container, Iterator
from dataclasses import fields

import numpy as np

from capplan.models.language.network import Network, member_of
from capplan.models.language.station import Host, Station
from capplan.models.language.step import Acquire, FanOut, Pick, ReplicaSet, Route, Step, Visit, walk
from capplan.models.language.traffic import Closed, Open
from capplan.simulator.compiled import engine as compiled
from capplan.simulator.reference import engine as reference
from capplan.simulator.results.run import Run
from capplan.simulator.results.tally import Requests
from capplan.simulator.specification.network_facts import flow_facts

LONGEST_S = 40.0  # of traffic: slow networks have fewer requests


def constructs(network: Network) -> Iterator[str]:
    """Name the constructs that a network uses."""
    yield from _of_stations(network)
    for request in network.classes:
        yield from (name for name in ("timeout_s", "retry") if getattr(request, name) is not None)
        facts = flow_facts(request.flow)
        for step, sets in zip(facts.steps, facts.sets, strict=True):
            yield step.kind
            yield from _details(step, sets, network)
    yield network.traffic.kind
    if isinstance(network.traffic, Open):
        yield network.traffic.arrivals.kind
    for session in network.sessions:
        if session.name in network.traffic.mix:
            yield from ("session", f"{session.route} session")
    yield from _of_timeline(network)


def _of_stations(network: Network) -> Iterator[str]:
    used = {place for request in network.classes for step in walk(request.flow) for place in _places(step)}
    counted = {host.name for host in network.hosts if host.count is not None}
    for station in network.stations:
        yield station.discipline
        yield from (name for name in ("rate", "pauses", "background", "host") if getattr(station, name))
        if station.expiry_s is not None:
            yield "expiry"
        if station.has_lanes and station.servers > 1 and station.name in used:
            yield f"{station.assignment} lanes"
        if station.count is not None and station.name in used:
            yield "station with a count"
            yield from _differences(station)
            if station.host in counted:
                yield "host with a count"


def _of_timeline(network: Network) -> Iterator[str]:
    places: tuple[Station | Host, ...] = (*network.stations, *network.hosts)
    groups = {each.name for each in places if each.count is not None}
    for event in network.timeline.events:
        yield event.action
        if event.target in groups:
            yield "event of all members"
        if member_of(event.target, places) is not None:
            yield "event of a member"
    yield from (name for name in ("detection_s", "cold_start_s") if getattr(network.timeline, name) > 0)


def _places(step: Step) -> Iterator[str]:
    """Yield the stations and pools that a step names."""
    if isinstance(step, Visit):
        yield step.station
    if isinstance(step, Pick | ReplicaSet):
        yield step.among


def _differences(station: Station) -> Iterator[str]:
    """Name the ways in which members differ from the others."""
    for each in station.exceptions:
        yield from (name for name, differs in (("other servers", each.servers), ("member down", each.down)) if differs)
        if each.speed != 1:
            yield "other speed"


def _details(step: Step, sets: Container[str], network: Network) -> Iterator[str]:
    """Name the options that a step uses."""
    match step:
        case Route():
            yield f"{step.policy} by weight" if step.weights else step.policy
        case Acquire():
            yield "queue_limit" if any(pool.queue_limit is not None for pool in network.pools) else "no limit"
            if step.member is not None:
                yield "pool with a count"
        case Pick():
            yield step.policy
            yield "pick from a set" if step.among in sets else "pick from all members"
        case ReplicaSet():
            yield f"{step.placement} replicas"
            if step.first is not None:
                yield "first replica"
        case FanOut():
            yield "all contacted" if step.contacted is None else "some contacted"
        case _:
            pass


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
