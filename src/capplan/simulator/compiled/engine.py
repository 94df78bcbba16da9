"""The compiled engine: the whole language in machine code, on the same sample path as the SimPy engine."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from itertools import accumulate
from threading import Lock
from typing import Any

import numpy as np

from capplan.errors import CrowdedError
from capplan.models.language.network import Network
from capplan.models.language.station import Assignment
from capplan.models.language.step import RoutePolicy
from capplan.models.language.traffic import Event, Open
from capplan.simulator.compiled.kernel import layout as at
from capplan.simulator.compiled.kernel.layout import Ints, Program, Records, State
from capplan.simulator.compiled.kernel.library import Kernel
from capplan.simulator.compiled.lowering import Lowered, lower
from capplan.simulator.results.histogram import IntArray
from capplan.simulator.results.run import Run, report
from capplan.simulator.results.tally import (
    COUNTED,
    MOST_MARKS,
    NUMBER,
    PAUSED,
    Requests,
    Status,
    Tally,
    add_pair,
    empty_tally,
    intervals,
    overlaps,
    units_shift,
)
from capplan.simulator.specification.clock import to_seconds, to_ticks
from capplan.simulator.specification.network_facts import check_run, check_scope
from capplan.simulator.specification.streams import name_key, root_key, source_key
from capplan.simulator.specification.timeline import OperatingState, Stage, initial_states, numbered_changes

POLICIES: dict[RoutePolicy | Assignment, int] = {
    "round_robin": at.ROUND_ROBIN,
    "random": at.RANDOM,
    "least_loaded": at.LEAST_LOADED,
    "token_aware": at.TOKEN_AWARE,
    "latency_ranked": at.LATENCY_RANKED,
    "first": at.FIRST,
}
# Records that are allocated and freed: their type, and the array with as many rows that belongs to them.
RECORDS: dict[str, tuple[np.dtype[np.void], str | None]] = {
    "threads": (at.THREAD, "locals"),
    "attempts": (at.ATTEMPT, None),
    "sessions": (at.SESSION, "sticky"),
    "joins": (at.FORK_JOIN, None),
    "latches": (at.COUNTDOWN_LATCH, "missing"),
    "batches": (at.BATCH_RECORD, None),
    "nodes": (at.NODE, None),
    "visits": (at.VISIT, None),
}
CHILDREN = 4  # of a node of the future event list; all of them are compared
MOST_RECORDS = 1 << 27  # of a kind: completions keep the number of a visit in so many bits
MOST_BYTES = 3 << 29  # of all records of a run: some three million requests in progress
ROOM = 64  # records at the start, beyond what one event can use


def new_state(lowered: Lowered, root: int, tally: Tally, *, clients: int, trace_rows: int, most_requests: int) -> State:
    """Return the state at tick 0.

    Parameters
    ----------
    lowered, root
        The network, and the root key of the replication.
    tally
        Where the kernel counts; series get one interval more, for what comes after the end.
    clients
        Number of clients of closed or throttled traffic.
    trace_rows
        Rows of the buffer for single requests; 0 keeps none.
    most_requests
        How many requests may start.
    """
    header = _header(lowered, tally, most_requests)
    room = ROOM + 2 * lowered.most_records + 2 * clients
    stations = _stations(lowered)
    return State(
        header=header,
        events=_event_heap(2 * room + _permanent_events(lowered)),
        checks=_checks(int(header["ps_slots"])),
        **{name: _free_records(header, name, room) for name in RECORDS},
        locals=np.zeros((room, lowered.locals), dtype=np.int64),
        sticky=np.zeros((room, len(_sticky(lowered))), dtype=np.int64),
        missing=np.zeros((room, lowered.groups), dtype=np.int64),
        lists=_lists(int(header["batch_lists"]) + room),
        stations=stations,
        speeds=np.ones((len(stations), at.SPEEDS)),
        completions=_completions(stations, np.full(len(lowered.base.ps_stations), room), lowered.base.ps_stations),
        server_free=np.zeros(sum(lane.station.servers for lane in lowered.lanes), dtype=np.int64),
        hosts=_hosts(lowered),
        processes=_processes(lowered, root),
        pools=_pools(lowered),
        routes=_routes(lowered),
        targets=_targets(lowered),
        pacing_ticks=np.zeros(clients, dtype=np.int64),
        gathering=np.full(lowered.batches, at.NONE),
        scales=np.ones(len(lowered.delay_scales)),
        **_counted(tally),
        trace=np.zeros((trace_rows, at.TRACE_COLUMNS), dtype=np.int64),
        marks=np.zeros((MOST_MARKS if lowered.processes else 0, 3), dtype=np.int64),
    )


def _header(lowered: Lowered, tally: Tally, most_requests: int) -> Records:
    network, header = lowered.network, np.zeros((), dtype=at.HEADER)
    header["margin"], header["ready"], header["most_requests"] = lowered.most_records, at.NONE, most_requests
    header["arrival_at"] = at.NEVER
    header["clocks"] = tally.histograms.shape[2]
    header["ps_slots"] = max(1, -(-len(lowered.base.ps_stations) // at.BLOCK)) * at.BLOCK
    header["station_rows"] = len(network.each_station)
    pools = len(network.each_pool)
    lists = (len(lowered.lanes), pools, pools, len(network.classes), lowered.wait_lists)
    starts = ("pool_lists", "kept_lists", "class_lists", "wait_lists", "batch_lists")
    for name, start in zip(starts, accumulate(lists), strict=True):
        header[name] = start
    return header


def _checks(slots: int) -> Ints:
    """Return an empty tree of completion checks: each slot's tick, then (tick, slot) per block, level by level."""
    words, size = slots, slots // at.BLOCK
    while size > 1:
        size = -(-size // at.BLOCK) * at.BLOCK
        words += 2 * size
        size //= at.BLOCK
    checks = np.full(words + 2, at.NEVER, dtype=np.int64)
    checks[slots + 1 :: 2] = 0
    return checks


def _completions(stations: Records, rooms: Ints, numbers: Ints) -> Records:
    """Return empty completion lists with the given room for some stations; set the stations' references to them."""
    ends = np.cumsum(np.repeat(rooms, 2))
    starts = ends - np.repeat(rooms, 2)
    completions = np.zeros(int(ends[-1]) if len(ends) else 0, dtype=at.COMPLETION)
    completions["whole"][starts] = at.NO_COMPLETION
    stations["room"][numbers], stations["list_at"][numbers] = rooms, starts.reshape(-1, 2)
    return completions


def _counted(tally: Tally) -> dict[str, Any]:
    return {name: getattr(tally, name) for name in (*COUNTED, "histograms")}


def _free_records(header: Records, name: str, count: int) -> Records:
    rows = np.zeros(count, dtype=RECORDS[name][0])
    rows["next"] = np.arange(1, count + 1)
    header[name]["left"] = count
    return rows


def _event_heap(size: int) -> Records:
    heap = np.zeros(size, dtype=at.EVENT)
    heap["tick"] = at.NEVER
    return heap


def _permanent_events(lowered: Lowered) -> int:
    """Return the maximum number of events besides one per thread and session."""
    return len(lowered.processes) + len(lowered.network.classes) + len(lowered.network.each_pool) + CHILDREN + 1


def _lists(count: int) -> Records:
    lists = np.zeros(count, dtype=at.LIST)
    lists["head"] = lists["tail"] = at.NONE
    return lists


def grown(state: State, lowered: Lowered) -> State:
    """Return the state with twice the room in every array that is nearly full.

    Raises
    ------
    CrowdedError
        When more would be in progress at once than the kernel's records have numbers for, or than memory may hold.
    """
    header = state.header
    larger: dict[str, Any] = {}
    for name, (_, beside) in RECORDS.items():
        if header[name]["left"] < 2 * header["margin"]:
            larger[name] = _more_records(state, name)
            if beside is not None:
                larger[beside] = _doubled(getattr(state, beside))
    state = state._replace(**larger, completions=_more_completions(state, lowered.base.ps_stations))
    lists, events = (
        _lists(int(header["batch_lists"]) + len(state.batches)),
        _event_heap(max(len(state.threads) + len(state.sessions) + _permanent_events(lowered), len(state.events))),
    )
    lists[: len(state.lists)], events[: len(state.events)] = state.lists, state.events
    header["room_needed"] = 0
    return state._replace(lists=lists, events=events)


def _more_completions(state: State, numbers: Ints) -> Records:
    """Return the completions of all stations, with twice the room for those that are nearly full."""
    mine = state.stations[numbers]
    short = mine["served"] + 2 * state.header["margin"] + 2 >= mine["room"]
    if not short.any():
        return state.completions
    larger = _completions(state.stations, np.where(short, 2, 1) * mine["room"], numbers)
    for old, new in zip(mine, state.stations[numbers], strict=True):
        for which, count in enumerate(old["count"]):
            before, after = old["list_at"][which], new["list_at"][which]
            larger[after : after + count + 1] = state.completions[before : before + count + 1]
    return larger


def _doubled(rows: Ints) -> Ints:
    return np.concatenate([rows, np.zeros_like(rows)])


def _more_records(state: State, name: str) -> Records:
    rows: Records = getattr(state, name)
    held = sum(getattr(state, each).nbytes for each in RECORDS)
    if 2 * len(rows) > MOST_RECORDS or held + rows.nbytes > MOST_BYTES:
        raise CrowdedError(
            f"requests come so much faster than they end that those in progress fill {held / 1e9:.1f} GB of memory: "
            "lower the load, or shorten the run"
        )
    free, added = state.header[name], np.zeros_like(rows)
    added["next"] = np.arange(len(rows) + 1, 2 * len(rows) + 1)
    added["next"][-1] = free["first"]
    free["first"] = len(rows)
    free["left"] += len(rows)
    return np.concatenate([rows, added])


def _stations(lowered: Lowered) -> Records:
    network = lowered.network
    rows = np.zeros(len(lowered.lanes), dtype=at.STATION)
    named = {event.target for _, event in numbered_changes(network)}
    down = {group.members[number].name for group in network.stations for number in group.down}
    hosts = {host.name: number for number, host in enumerate(network.each_host)}
    slot = free = 0
    for number, (row, (station, of)) in enumerate(zip(rows, lowered.lanes, strict=True)):
        processor_sharing = lowered.processor_sharing[number]
        mine = [place for place, process in enumerate(lowered.processes) if process.station == of]
        row["kind"] = (at.SHARED if station.discipline == "ps" else at.QUEUED) if processor_sharing else at.FIXED_RATE
        row["servers"], row["slot"], row["server_free"] = station.servers, slot, free
        row["host"] = at.NONE if station.host is None else hosts[station.host]
        row["expiry"] = at.NEVER if station.expiry_s is None else to_ticks(float(station.expiry_s))
        row["rates"] = lowered.rate_tables.get(number, at.NONE)
        row["rate_count"] = len(station.rate.speeds) if station.rate else 0
        row["processes"], row["process_count"] = mine[0] if mine else 0, len(mine)
        changes = station.rate or station.host is not None or mine or station.name in named or station.name in down
        row["plain"] = not changes
        row["lazy"] = not changes and processor_sharing and station.discipline == "ps"
        row["row"] = of
        slot, free = slot + processor_sharing, free + station.servers
    _set_lanes(rows, network)
    return rows


def _set_lanes(rows: Records, network: Network) -> None:
    """Set in the station records how visits choose a lane; a lane whose visits are counted must report each end."""
    further = len(network.each_station)
    for row, station in zip(rows, network.each_station, strict=False):
        row["lanes"], row["further_lanes"] = len(station.lanes), further
        if station.has_lanes:
            row["assignment"] = POLICIES[station.assignment]
        if station.assignment == "least_loaded":
            row["lazy"] = 0
            rows["lazy"][further : further + len(station.lanes) - 1] = 0
        further += len(station.lanes) - 1


def _hosts(lowered: Lowered) -> Records:
    hosts, on = lowered.network.each_host, lowered.base.host_stations
    counts = [int(np.count_nonzero(mine != at.NONE)) for mine in on]
    return np.array([(host.cores, 0, count) for host, count in zip(hosts, counts, strict=True)], dtype=at.HOST)


def _processes(lowered: Lowered, root: int) -> Records:
    rows = np.zeros(len(lowered.processes), dtype=at.STATION_PROCESS)
    for row, each in zip(rows, lowered.processes, strict=True):
        name = each.what.name
        key = source_key(root, "station", lowered.network.each_station[each.station].name)
        row["station"], row["background"], row["every"], row["length"] = (
            each.station,
            each.share,
            each.every,
            each.length,
        )
        row["key"], row["every_key"], row["length_key"] = key, name_key("every", name), name_key("length", name)
        row["rank"] = at.PROCESS << at.KIND_SHIFT | each.station << at.STEP_BITS | each.number
    return rows


def _pools(lowered: Lowered) -> Records:
    rows = np.zeros(len(lowered.network.each_pool), dtype=at.POOL)
    for row, pool in zip(rows, lowered.network.each_pool, strict=True):
        row["size"] = row["free"] = pool.size
        row["shift"] = units_shift(pool.size)
        row["limit"] = at.NEVER if pool.queue_limit is None else pool.queue_limit
    return rows


def _sticky(lowered: Lowered) -> dict[tuple[int, int], int]:
    """Return the numbers under which sticky sessions remember targets.

    Routes of one name with equally many targets share one.
    """
    if all(session.route != "sticky" for session in lowered.network.sessions):
        return {}
    return {key: number for number, key in enumerate(dict.fromkeys(route.sticky for route in lowered.routes))}


def _routes(lowered: Lowered) -> Records:
    rows, sticky, first = np.zeros(len(lowered.routes), dtype=at.ROUTE_RECORD), _sticky(lowered), 0
    for row, route in zip(rows, lowered.routes, strict=True):
        row["policy"], row["count"], row["first"] = POLICIES[route.policy], route.count, first
        row["sticky"], row["weighted"] = sticky.get(route.sticky, at.NONE), bool(route.weights)
        first += route.count
    return rows


def _targets(lowered: Lowered) -> Records:
    rows = np.zeros(sum(route.count for route in lowered.routes), dtype=at.TARGET)
    rows["smoothed"] = -1  # a target that has not been tried counts as the fastest
    rows["weight"] = [weight for route in lowered.routes for weight in route.weights or (1.0,) * route.count]
    return rows


@dataclass
class CompiledTimeline:
    """The pending stages of timeline events, a heap of (tick, event number, stage), and the state of their targets."""

    lowered: Lowered
    pending: list[tuple[int, int, Stage]] = field(init=False)
    events: list[Event] = field(init=False)
    states: dict[str, OperatingState] = field(init=False)

    def __post_init__(self) -> None:
        network = self.lowered.network
        numbered = numbered_changes(network)
        self.events = [event for _, event in numbered]
        self.pending = [
            (tick, number, Stage.EVENT)
            for number, (tick, event) in enumerate(numbered)
            if event.action != "scale_traffic"
        ]
        heapify(self.pending)
        self.states = initial_states(network)

    def next_key(self) -> tuple[int, int]:
        """Return the tick and rank of the next change; `NEVER` when there is none."""
        if not self.pending:
            return at.NEVER, 0
        tick, number, stage = self.pending[0]
        return tick, at.CHANGE << at.KIND_SHIFT | number << at.STEP_BITS | stage

    def apply_next(self, state: State) -> None:
        """Apply the next change; the caller settles the kernel's state up to its tick before, and again afterwards."""
        tick, number, stage = heappop(self.pending)
        event, network = self.events[number], self.lowered.network
        if event.action == "scale_delay":
            state.scales[self.lowered.delay_scales[event.target]] = float(event.factor)
            return
        following = self.states[event.target].apply(stage, event, number, network.timeline)
        if following is not None:
            ticks, next_stage = following
            heappush(self.pending, (tick + ticks, number, next_stage))
        self.update(state)

    def update(self, state: State) -> None:
        """Pass the state of all stations to the kernel."""
        _update_stations(self.lowered, self.states, state)
        _update_routes(self.lowered, state)


def _update_stations(lowered: Lowered, states: dict[str, OperatingState], state: State) -> None:
    for number, (station, _) in enumerate(lowered.lanes):
        own = states[station.name]
        host = states[station.host] if station.host is not None else OperatingState()
        state.stations["down"][number] = own.down or host.down
        state.stations["known_down"][number] = own.known_down or host.known_down
        state.speeds[number] = own.speed, own.cold_factor, host.speed, host.cold_factor


def _update_routes(lowered: Lowered, state: State) -> None:
    network = lowered.network
    known = {
        each.name: bool(down)
        for (each, _), down in zip(lowered.lanes, state.stations["known_down"].tolist(), strict=True)
    }
    state.header["some_known_down"] = any(known.values())
    members = {group.name: [known[each.name] for each in group.members] for group in network.stations}
    for row, route in zip(state.routes, lowered.routes, strict=True):
        if route.group is None:
            down = [entry is not None and entry.is_down(known.__getitem__) for entry in route.entries]
        else:
            down = members.get(route.group, [False] * route.count)
        row["avoid"] = any(down)
        state.targets["down"][row["first"] : row["first"] + len(down)] = down


def unfinished(program: Program, state: State) -> list[tuple[Records, int]]:
    """Return the sessions whose request has not ended, each with its class number."""
    live = state.sessions[state.sessions["open"] > 0]
    places = program.sources["classes"][live["source"]] + live["place"]
    return list(zip(live, program.table[places].tolist(), strict=True))


def unfinished_rows(program: Program, state: State) -> Ints:
    """Return rows of the requests that have not ended, in the format of the kernel's buffer."""
    rows = [
        [
            *(each["row"], each["source"], number, each["unit"], each["first"] + each["place"], each["attempt"] + 1),
            *(each["intended"], each["start"], -1, Status.UNFINISHED),
        ]
        for each, number in unfinished(program, state)
    ]
    return np.array(rows, dtype=np.int64).reshape(-1, at.TRACE_COLUMNS)


def joined(parts: list[Ints]) -> Requests:
    """Return all requests in their starting order."""
    rows = np.concatenate([np.zeros((0, at.TRACE_COLUMNS), dtype=np.int64), *parts])
    return requests_of(rows[np.argsort(rows[:, 0])])


def requests_of(rows: Ints) -> Requests:
    """Return rows as requests, in the same order."""
    return Requests(
        source=rows[:, 1],
        request_class=rows[:, 2],
        session=rows[:, 3],
        position=rows[:, 4],
        attempts=rows[:, 5],
        intended_ticks=rows[:, 6],
        start_ticks=rows[:, 7],
        end_ticks=rows[:, 8],
        status=rows[:, 9],
    )


TRACE_ROWS = 1 << 16  # size of the kernel's buffer for single requests
BEFORE = -1  # as a rank: before all events of a tick
Progress = Callable[[float, int], None]
Sink = Callable[[Requests, IntArray], None]


def simulate(  # noqa: PLR0913 - the options of a run are the arguments of its function
    network: Network,
    duration_s: float,
    *,
    seed: int,
    replication: int = 0,
    warmup_s: float = 0.0,
    max_requests: int | None = None,
    trace: bool = False,
    progress: Progress | None = None,
    sink: Sink | None = None,
) -> Run:
    """Run a network once; see `capplan.simulator.engine.simulate`.

    Parameters
    ----------
    network : Network
        The network; it must hold no arrays of parameter draws.
    duration_s : float
        How long the traffic lasts, in seconds. Statistics cover the time from `warmup_s` to `duration_s`. Requests that
        have started run to their end.
    seed, replication : int
        Select the random numbers: equal ones give equal runs, different ones independent runs.
    warmup_s : float
        The time at the start that statistics leave out, in seconds.
    max_requests : int, optional
        The largest number of requests, retries not counted; no limit when left out.
    trace : bool
        Keep every request.
    progress : callable, optional
        Called from time to time with the simulated seconds and the number of requests that have started.
    sink : callable, optional
        Receives every request with its number in the order of starting, many at a time, in the order of ending.

    Returns
    -------
    Run
        The run.

    Raises
    ------
    RefusedError
        When the network holds an array of parameter draws, a flow is too long or a distribution too extreme.
    InputError
        When the durations, the seed or the number of requests are invalid.
    """
    check_run(duration_s, warmup_s, seed, replication, max_requests)
    window = to_ticks(warmup_s), to_ticks(duration_s)
    active = begin(lowered(network), window, (seed, replication), max_requests=max_requests)
    return run(active, trace=trace, progress=progress, sink=sink)


_last_lowered: deque[Lowered] = deque(maxlen=4)
_lowering = Lock()


def lowered(network: Network) -> Lowered:
    """Lower a network, or reuse an earlier result: replications and different traffic rates need only one lowering.

    Raises
    ------
    RefusedError
        When the network holds an array of parameter draws, a flow is too long or a distribution too extreme.
    """
    with _lowering:
        for known in _last_lowered:
            if known.network is network:
                return known
        check_scope(network)
        like = (known.with_rate_of(network) for known in _last_lowered)
        _last_lowered.append(next((program for program in like if program is not None), None) or lower(network))
        return _last_lowered[-1]


@dataclass
class ActiveRun:
    """A run in progress: its arrays, and its Python state."""

    lowered: Lowered
    window: tuple[int, int]
    numbers: tuple[int, int]
    tally: Tally
    program: Program
    state: State
    timeline: CompiledTimeline
    sink: Callable[[Ints], None] | None = None
    _kernel: Kernel | None = None

    @property
    def kernel(self) -> Kernel:
        """The kernel, bound to the current arrays."""
        if self._kernel is None or self._kernel.state is not self.state:
            self._kernel = Kernel(self.program, self.state)
        return self._kernel

    def until(self, tick: int, rank: int) -> None:
        """Run all events before a key, including timeline changes."""
        while self.timeline.next_key() < (tick, rank):
            self.change()
        self.advance(tick, rank)

    def change(self) -> None:
        """Run all events up to and including the next timeline change."""
        key = self.timeline.next_key()
        self.advance(*key)
        self.settle(key[0])
        self.timeline.apply_next(self.state)
        self.settle(key[0])

    def advance(self, tick: int, rank: int) -> None:
        """Run all events before a key; no change of the timeline may come before it."""
        while (why := self.kernel.advance(tick, rank)) in (at.ROOM_NEEDED, at.TRACE_FULL):
            if why == at.ROOM_NEEDED:
                self.state = grown(self.state, self.lowered)
            else:
                self.take_rows()

    def settle(self, tick: int) -> None:
        """Update the sums up to a tick, and the speeds from there."""
        self.kernel.settle(tick)

    def take_rows(self) -> None:
        """Pass on the requests in the kernel's buffer."""
        if self.sink is not None:
            self.sink(self.state.trace[: self.state.header["traced"]].copy())
        self.state.header["traced"] = 0

    def idle(self) -> bool:
        """Return whether nothing is in progress any more."""
        header, state = self.state.header, self.state
        if state.stations["served"].any():  # visits that no request waits for count, too
            return False
        no_threads = header["threads"]["left"] == len(state.threads)
        return bool(no_threads and header["event_count"] <= len(self.lowered.processes))


def begin(
    lowered: Lowered, window: tuple[int, int], numbers: tuple[int, int], *, max_requests: int | None = None
) -> ActiveRun:
    """Return a run at its start: `window` contains the ends of the warm-up and of the traffic in ticks.

    `numbers` are the seed and the replication.
    """
    network, bounds = lowered.network, intervals(*window)
    tally, root = empty_tally(network, bounds), root_key(*numbers)
    state = new_state(
        lowered,
        root,
        tally,
        clients=0 if isinstance(network.traffic, Open) else network.traffic.clients,
        trace_rows=TRACE_ROWS,
        most_requests=at.NEVER if max_requests is None else max_requests,
    )
    timeline = CompiledTimeline(lowered)
    if any(station.down for station in network.stations):
        timeline.update(state)
    return ActiveRun(lowered, window, numbers, tally, lowered.program(root, bounds), state, timeline)


def run(active: ActiveRun, *, trace: bool, progress: Progress | None, sink: Sink | None) -> Run:
    """Complete a run and report it; see `simulate`."""
    kept: list[Ints] = []
    _connect_sinks(active, kept if trace else None, sink)
    _run(active, progress)
    rest = unfinished_rows(active.program, active.state)
    active.take_rows()
    if active.sink is not None:
        active.sink(rest)
    return report(
        active.lowered.network,
        _tally(active),
        active.window[0],
        seed=active.numbers[0],
        replication=active.numbers[1],
        events=int(active.state.header["events"]),
        requests=joined(kept) if trace else None,
    )


def _connect_sinks(active: ActiveRun, kept: list[Ints] | None, sink: Sink | None) -> None:
    """Send individual requests to the list and to the sink; without either, the kernel does not collect them."""
    if kept is None and sink is None:
        active.state = active.state._replace(trace=active.state.trace[:0])
        return

    def take(rows: Ints) -> None:
        if kept is not None:
            kept.append(rows)
        if sink is not None:
            sink(requests_of(rows), rows[:, 0])

    active.sink = take


def _run(active: ActiveRun, progress: Progress | None) -> None:
    bounds = active.tally.boundaries
    header = active.state.header
    for interval, end in enumerate(bounds[1:].tolist()):
        header["interval"], header["interval_end"] = interval, end
        if interval == 0:
            active.kernel.begin()
        active.until(end, BEFORE)
        active.settle(end)
        if progress is not None:
            progress(to_seconds(end), int(header["requests_started"]))
    header["interval"], header["interval_end"] = len(bounds) - 1, at.NEVER
    while not active.idle() and active.timeline.pending:
        active.change()
    header["stop_idle"] = 1
    active.advance(at.NEVER, 0)


def _tally(active: ActiveRun) -> Tally:
    """Return the kernel's counts plus the part of everything still in progress."""
    state, tally = active.state, active.tally
    for session, number in unfinished(active.program, state):
        for interval, ticks in overlaps(tally.boundaries, int(session["start"]), tally.end_ticks):
            add_pair(tally.class_totals[interval, number], NUMBER, ticks)
    first_lanes = state.stations[: state.header["station_rows"]]  # all lanes of a station pause together
    for station in first_lanes["paused"].nonzero()[0].tolist():
        since = int(state.stations["paused_since"][station])
        for interval, ticks in overlaps(tally.boundaries, since, tally.end_ticks):
            tally.station_totals[interval, station, PAUSED] += ticks
    return replace(tally, marks=_marks(active))


def _marks(active: ActiveRun) -> list[tuple[int, int, str, str]]:
    network, marks = active.lowered.network, []
    for start, end, process in active.state.marks[: active.state.header["marked"]].tolist():
        each = active.lowered.processes[process]
        kind = "pause" if each.share == at.NONE else "background"
        marks.append((start, end, kind, f"{network.each_station[each.station].name}: {each.what.name}"))
    return marks
