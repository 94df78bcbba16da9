"""The SimPy engine: a direct implementation of the queueing-network language, with its timeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from capplan.models.language.network import Network
from capplan.models.language.traffic import Closed, Event, Open, RequestClass, Throttled
from capplan.simulator.reference.events import EventKind, OrderedEnvironment, OrderedEvent, request_rank, step_rank
from capplan.simulator.reference.pauses import begin_processes
from capplan.simulator.reference.stations import (
    FixedRateStation,
    ProcessorSharingStation,
    RunningLane,
    RunningStation,
    SharedHost,
    StationRecord,
    UnitPool,
    Window,
)
from capplan.simulator.reference.steps import FlowContext, compile_flow
from capplan.simulator.reference.traffic import (
    Clients,
    CompiledFlow,
    RequestLog,
    TrafficMix,
    TrafficSource,
    begin_closed,
    begin_open,
    begin_throttled,
)
from capplan.simulator.results.run import Run, report
from capplan.simulator.results.tally import Requests, Tally, intervals, tally_of_requests
from capplan.simulator.specification.clock import to_ticks
from capplan.simulator.specification.network_facts import (
    backoff_ticks,
    check_run,
    check_scope,
    is_fixed_rate,
    lanes,
    session_of,
)
from capplan.simulator.specification.sampling import tick_sampler
from capplan.simulator.specification.streams import root_key, source_key
from capplan.simulator.specification.timeline import Stage, initial_states, numbered_changes, segments


@dataclass
class TimelineProcess:
    """Applies the events of a timeline to `targets`, stations and hosts by name.

    `delay_factors` holds the current factor of each delay that the timeline changes, by name.
    """

    network: Network
    env: OrderedEnvironment
    targets: Mapping[str, RunningStation | SharedHost]
    delay_factors: dict[str, float] = field(default_factory=dict)

    def begin(self) -> None:
        """Schedule all events except those that scale the traffic."""
        for number, (tick, event) in enumerate(numbered_changes(self.network)):
            if event.action == "scale_delay":
                self.delay_factors[event.target] = 1.0
            if event.action != "scale_traffic":
                self._schedule(tick, number, Stage.EVENT, event)

    def _schedule(self, tick: int, number: int, stage: Stage, event: Event) -> None:
        rank = request_rank(number) + step_rank(EventKind.CHANGE, stage)
        OrderedEvent(self.env, lambda _: self._apply(number, stage, event)).at(tick, rank)

    def _apply(self, number: int, stage: Stage, event: Event) -> None:
        if event.action == "scale_delay":
            self.delay_factors[event.target] = float(event.factor)
            return
        target = self.targets[event.target]
        target.settle()
        following = target.state.apply(stage, event, number, self.network.timeline)
        if following is not None:
            ticks, next_stage = following
            self._schedule(self.env.tick + ticks, number, next_stage, event)
        target.changed()


def simulate(
    network: Network,
    duration_s: float,
    *,
    seed: int,
    replication: int = 0,
    warmup_s: float = 0.0,
    max_requests: int | None = None,
) -> Run:
    """Run a network once.

    Parameters
    ----------
    network : Network
        The network; it must hold no arrays of parameter draws.
    duration_s : float
        How long the traffic lasts, in seconds. Statistics cover the time from `warmup_s` to `duration_s`. Requests that
        have started run to their end, so that latencies are not censored.
    seed, replication : int
        Select the random numbers: equal ones give equal runs, different ones independent runs.
    warmup_s : float
        The time at the start that statistics leave out, in seconds.
    max_requests : int, optional
        The largest number of requests, retries not counted; no limit when left out.

    Returns
    -------
    Run
        The run with its trace.

    Raises
    ------
    RefusedError
        When the network holds an array of parameter draws, or a flow is too long. Nothing has been run then.
    InputError
        When the durations, the seed or the number of requests are invalid.
    """
    check_scope(network)
    check_run(duration_s, warmup_s, seed, replication, max_requests)
    root, warmup, end = root_key(seed, replication), to_ticks(warmup_s), to_ticks(duration_s)
    system, log = _system(network, Window(intervals(warmup, end))), RequestLog()
    _begin(system, log, root, max_requests)
    system.env.run_all(end, system.service_continues)
    requests, events = log.requests(), system.env.count
    tally = system.tally(requests)
    return report(network, tally, warmup, seed=seed, replication=replication, events=events, requests=requests)


@dataclass(frozen=True)
class _System:
    """A network with its stations, hosts and pools, ready to run."""

    network: Network
    env: OrderedEnvironment
    window: Window
    hosts: dict[str, SharedHost]
    stations: dict[str, RunningStation]
    pools: dict[str, UnitPool]

    def service_continues(self) -> bool:
        """Return whether a visit may still complete if only the processes of stations still run."""
        return any(station.service_continues for station in self.stations.values())

    def failing(self) -> frozenset[str]:
        """Return the stations that may be down, alone or with their host."""
        down = {event.target for _, event in numbered_changes(self.network) if event.action == "down"}
        down |= {name for name, state in initial_states(self.network).items() if state.down}
        return frozenset(each.name for each in self.network.each_station if each.name in down or each.host in down)

    def tally(self, requests: Requests) -> Tally:
        """Return the counts of the run."""
        boundaries = np.array(self.window.boundaries, dtype=np.int64)
        tally = tally_of_requests(requests, self.network, boundaries)
        for index, station in enumerate(self.stations.values()):
            station.fill(tally, index)
        for index, pool in enumerate(self.pools.values()):
            pool.fill(tally, index)
        tally.marks.extend(self.window.marks)
        return tally


def _system(network: Network, window: Window) -> _System:
    env = OrderedEnvironment()
    states = initial_states(network)
    hosts = {host.name: SharedHost(host) for host in network.each_host}
    fixed_rate = {each.name for group in network.stations if is_fixed_rate(group, network) for each in group.members}
    each_station = network.each_station
    records = [StationRecord(window) for _ in each_station]
    running: list[list[RunningLane]] = [[] for _ in each_station]
    for number, (lane, of) in enumerate(lanes(network)):
        running[of].append(
            FixedRateStation(lane, env, records[of])
            if lane.name in fixed_rate
            else ProcessorSharingStation(lane, number, env, records[of], hosts.get(lane.host or ""))
        )
    stations = {
        each.name: RunningStation(each, mine, states[each.name])
        for each, mine in zip(each_station, running, strict=True)
    }
    pools = {pool.name: UnitPool(pool, env, window) for pool in network.each_pool}
    return _System(network, env, window, hosts, stations, pools)


def _flow(request: RequestClass, context: FlowContext) -> CompiledFlow:
    run = compile_flow(request.flow, context)
    timeout = None if request.timeout_s is None else to_ticks(float(request.timeout_s))
    return CompiledFlow(lambda attempt: run(attempt, None), timeout, tuple(backoff_ticks(request.retry)))


def _begin(system: _System, log: RequestLog, root: int, max_requests: int | None) -> None:
    """Schedule everything that starts by itself: the timeline, the processes of stations, the traffic."""
    network, env = system.network, system.env
    changes = TimelineProcess(network, env, {**system.stations, **system.hosts})
    changes.begin()
    for number, station in enumerate(system.stations.values()):
        begin_processes(station, number, root, env, system.window)
    context = FlowContext(network, env, system.stations, system.pools, changes.delay_factors, system.failing())
    flows = [_flow(each, context) for each in network.classes]
    _begin_traffic(network, Clients(env, log, flows, system.window.end, max_requests), root)


def _begin_traffic(network: Network, clients: Clients, root: int) -> None:
    """Look up the sources of the traffic and start it."""
    traffic = network.traffic
    sources = [_source(network, name, index, root) for index, name in enumerate(traffic.mix)]
    parts = segments(traffic.mix, network.timeline)
    mix = TrafficMix(traffic.mix, sources, parts, source_key(root, "traffic"))
    match traffic:
        case Open():
            begin_open(clients, traffic, mix)
        case Closed():
            begin_closed(clients, traffic, mix)
        case Throttled():
            begin_throttled(clients, traffic, mix)


def _source(network: Network, name: str, index: int, root: int) -> TrafficSource:
    numbers = {each.name: number for number, each in enumerate(network.classes)}
    session = session_of(network, name)
    return TrafficSource(
        index,
        source_key(root, "source", name),
        classes=tuple(numbers[request] for request in session.classes),
        gaps=tuple(tick_sampler(gap) for gap in session.gaps),
        sticky=session.route == "sticky",
    )
