"""The SimPy engine: the plain reading of the queueing-network language.

One SimPy process per request and per branch of a fork does what the flow says; stations and pools are queues that
wake processes. Time is an integer (`clock`), events have a total order (`reference_events`), random numbers are
functions of their keys (`streams`), so the same network, seed and replication give the same run, tick by tick.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from capplan.models.language.network import Network
from capplan.models.language.station import Station
from capplan.models.language.traffic import Closed, Open, RequestClass, Retry, Throttled
from capplan.simulator.reference.events import Clockwork
from capplan.simulator.reference.hosts import Machine
from capplan.simulator.reference.processes import begin_processes
from capplan.simulator.reference.processor_sharing import ElasticStation
from capplan.simulator.reference.records import Window
from capplan.simulator.reference.requests import Book, Source
from capplan.simulator.reference.stations import HeldPool, RigidStation
from capplan.simulator.reference.steps import Served, Surroundings, compile_flow
from capplan.simulator.reference.timeline import Changes
from capplan.simulator.reference.traffic import Clients, Demand, Flow, begin_closed, begin_open, begin_throttled
from capplan.simulator.results.report import report
from capplan.simulator.results.run import Requests, Run
from capplan.simulator.results.tally import Tally, intervals
from capplan.simulator.results.tally_of_requests import tally_of_requests
from capplan.simulator.specification.clock import to_ticks
from capplan.simulator.specification.sampling import tick_sampler
from capplan.simulator.specification.scope import check_run, check_scope
from capplan.simulator.specification.streams import root_key, source_key
from capplan.simulator.specification.traffic_time import segments


def simulate(
    network: Network,
    duration_s: float,
    *,
    seed: int,
    replication: int = 0,
    warmup_s: float = 0.0,
    drain: bool = True,
    max_requests: int | None = None,
) -> Run:
    """Run a network once.

    Parameters
    ----------
    network
        What to run.
    duration_s
        How long traffic comes, in seconds; statistics are about the time from `warmup_s` to `duration_s`.
    seed, replication
        The random numbers: equal ones give equal runs, others give independent ones.
    warmup_s
        How much of the beginning is left out of the statistics, in seconds.
    drain
        Run requests that have started to their end, so that latencies are not censored (the default); a session does
        not start further requests after `duration_s`. Without it the run stops at `duration_s` and what is under way
        stays unfinished.
    max_requests
        How many requests start at most, further attempts at one not counted; left out, no limit.

    Raises
    ------
    RefusedError
        When the network holds an array of parameter draws, or a flow is too long; nothing has been run then.
    InputError
        When the durations, the seed or the number of requests make no sense.
    """
    check_scope(network)
    check_run(duration_s, warmup_s, seed, replication, max_requests)
    root, warmup, end = root_key(seed, replication), to_ticks(warmup_s), to_ticks(duration_s)
    system, book = _system(network, Window(intervals(warmup, end))), Book()
    _begin(system, book, root, max_requests)
    system.clockwork.work_off(None if drain else end, end, system.moves)
    requests, events = book.requests(), system.clockwork.count
    tally = system.tally(requests)
    return report(network, tally, warmup, seed=seed, replication=replication, events=events, requests=requests)


@dataclass(frozen=True)
class _System:
    """A network with everything in it, ready to run."""

    network: Network
    clockwork: Clockwork
    window: Window
    machines: dict[str, Machine]
    stations: dict[str, Served]
    pools: dict[str, HeldPool]

    def elastic(self) -> Iterator[tuple[int, ElasticStation]]:
        """Yield the elastic stations with their numbers."""
        for number, station in enumerate(self.stations.values()):
            if isinstance(station, ElasticStation):
                yield number, station

    def moves(self) -> bool:
        """Tell whether a visit may still end, if only processes of stations go on."""
        return any(station.moves for _, station in self.elastic())

    def failing(self) -> frozenset[str]:
        """Return the stations that the timeline takes down, alone or with their host."""
        down = {event.target for event in self.network.timeline.events if event.action == "down"}
        return frozenset(each.name for each in self.network.stations if each.name in down or each.host in down)

    def tally(self, requests: Requests) -> Tally:
        """Sum up what has happened."""
        boundaries = np.array(self.window.boundaries, dtype=np.int64)
        tally = tally_of_requests(requests, self.network, boundaries)
        for index, station in enumerate(self.stations.values()):
            station.fill(tally, index)
        for index, pool in enumerate(self.pools.values()):
            pool.fill(tally, index)
        tally.marks.extend(self.window.marks)
        return tally


def _system(network: Network, window: Window) -> _System:
    clockwork = Clockwork()
    machines = {host.name: Machine(host) for host in network.hosts}
    stations: dict[str, Served] = {
        station.name: RigidStation(station, clockwork, window)
        if is_rigid(station, network)
        else ElasticStation(station, number, clockwork, window, machines.get(station.host or ""))
        for number, station in enumerate(network.stations)
    }
    pools = {pool.name: HeldPool(pool, clockwork, window) for pool in network.pools}
    return _System(network, clockwork, window, machines, stations, pools)


def is_rigid(station: Station, network: Network) -> bool:
    """Tell whether nothing ever changes the speed of a station, and it serves first come, first served."""
    events = (event for event in network.timeline.events if event.action in ("down", "up", "speed"))
    changed = station.pauses or station.background or any(event.target == station.name for event in events)
    plain = station.rate is None and station.expiry_s is None and station.host is None
    return station.discipline == "fcfs" and plain and not changed


def _flow(request: RequestClass, around: Surroundings) -> Flow:
    run = compile_flow(request.flow, around)
    timeout = None if request.timeout_s is None else to_ticks(float(request.timeout_s))
    return Flow(lambda attempt: run(attempt, None), timeout, backoffs(request.retry))


def backoffs(retry: Retry | None) -> tuple[int, ...]:
    """Return how long, in ticks, a client waits before each further attempt."""
    if retry is None:
        return ()
    wait_s, factor = float(retry.backoff_s), float(retry.factor)
    return tuple(to_ticks(wait_s * factor**number) for number in range(retry.attempts - 1))


def _begin(system: _System, book: Book, root: int, max_requests: int | None) -> None:
    """Put everything on the agenda that begins by itself: the timeline, the processes of stations, the traffic."""
    network, clockwork = system.network, system.clockwork
    places = {station.station.name: station for _, station in system.elastic()}
    changes = Changes(network.timeline, clockwork, {**places, **system.machines})
    changes.begin()
    for number, station in system.elastic():
        begin_processes(station, number, root)
    around = Surroundings(clockwork, system.stations, system.pools, changes.delays, system.failing())
    flows = [_flow(each, around) for each in network.classes]
    _begin_traffic(network, Clients(clockwork, book, flows, system.window.end, max_requests), root)


def _begin_traffic(network: Network, clients: Clients, root: int) -> None:
    """Look up the sources of the traffic and let it begin."""
    traffic = network.traffic
    sources = [_source(network, name, index, root) for index, name in enumerate(traffic.mix)]
    parts = segments(traffic.mix, network.timeline)
    demand = Demand(traffic.mix, sources, parts, source_key(root, "traffic"))
    match traffic:
        case Open():
            begin_open(clients, traffic, demand)
        case Closed():
            begin_closed(clients, traffic, demand)
        case Throttled():
            begin_throttled(clients, traffic, demand)


def _source(network: Network, name: str, index: int, root: int) -> Source:
    numbers = {each.name: number for number, each in enumerate(network.classes)}
    key = source_key(root, "source", name)
    session = next((session for session in network.sessions if session.name == name), None)
    if session is None:
        return Source(index, key, (numbers[name],))
    return Source(
        index,
        key,
        classes=tuple(numbers[request] for request in session.classes),
        gaps=tuple(tick_sampler(gap) for gap in session.gaps),
        sticky=session.route == "sticky",
    )
