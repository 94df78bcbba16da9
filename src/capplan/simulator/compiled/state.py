"""The state of a run of the compiled engine: how it is made, and how its arrays grow when they are nearly full."""

from __future__ import annotations

from typing import Any

import numpy as np

from capplan.models.language.step import RoutePolicy
from capplan.simulator.compiled.kernel import layout as at
from capplan.simulator.compiled.kernel.layout import Ints, Records, State
from capplan.simulator.compiled.lowering import Lowered, signed
from capplan.simulator.results.tally import COUNTED, MOST_MARKS, Tally
from capplan.simulator.specification.clock import to_ticks
from capplan.simulator.specification.streams import name_key, source_key

POLICIES: dict[RoutePolicy, int] = {
    "round_robin": at.ROUND_ROBIN,
    "random": at.RANDOM,
    "least_loaded": at.LEAST_LOADED,
    "token_aware": at.TOKEN_AWARE,
    "latency_ranked": at.LATENCY_RANKED,
}
# Records that are allocated and freed: their type, where the header has the first free one and how many are left, and
# the array with as many rows that belongs to them.
RECORDS: dict[str, tuple[np.dtype[np.void], int, int, str | None]] = {
    "threads": (at.THREAD, at.FREE_THREADS, at.LEFT_THREADS, "locals"),
    "requests": (at.REQUEST, at.FREE_REQUESTS, at.LEFT_REQUESTS, None),
    "talks": (at.TALK, at.FREE_TALKS, at.LEFT_TALKS, "sticky"),
    "joins": (at.JOIN_RECORD, at.FREE_JOINS, at.LEFT_JOINS, None),
    "latches": (at.LATCH_RECORD, at.FREE_LATCHES, at.LEFT_LATCHES, "missing"),
    "batches": (at.BATCH_RECORD, at.FREE_BATCHES, at.LEFT_BATCHES, None),
    "nodes": (at.NODE, at.FREE_NODES, at.LEFT_NODES, None),
}
CHILDREN = 4  # of a node of the future event list; all of them are compared
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
    network, header = lowered.network, _header(lowered, most_requests)
    room = ROOM + 2 * lowered.most_records + 2 * clients
    return State(
        header=header,
        heap=_event_heap(2 * room + _permanent_events(lowered)),
        look=np.full(2 * header[at.LEAVES], at.NEVER),
        **{name: _free_records(header, name, room) for name in RECORDS},
        locals=np.zeros((room, lowered.locals), dtype=np.int64),
        sticky=np.zeros((room, len(_sticky(lowered))), dtype=np.int64),
        missing=np.zeros((room, lowered.groups), dtype=np.int64),
        lists=_lists(header[at.BATCH_LISTS] + room),
        stations=_stations(lowered),
        paces=np.ones((len(network.stations), at.PACES)),
        finishes=np.zeros((max(1, len(lowered.base.leaves)), room), dtype=at.FINISH),
        free=np.zeros(sum(station.servers for station in network.stations), dtype=np.int64),
        hosts=_hosts(lowered),
        processes=_processes(lowered, root),
        pools=_pools(lowered),
        routes=_routes(lowered),
        targets=_targets(lowered),
        beats=np.zeros(clients, dtype=np.int64),
        gathering=np.full(lowered.batches, at.NONE),
        scales=np.ones(len(lowered.delay_scales)),
        **_counted(tally),
        trace=np.zeros((trace_rows, 10), dtype=np.int64),
        marks=np.zeros((MOST_MARKS if lowered.processes else 0, 3), dtype=np.int64),
    )


def _header(lowered: Lowered, most_requests: int) -> Ints:
    network, header = lowered.network, np.zeros(at.HEADER, dtype=np.int64)
    header[at.MARGIN], header[at.READY], header[at.MOST_ROWS] = lowered.most_records, at.NONE, most_requests
    header[at.ARRIVAL_AT] = at.NEVER
    header[at.LEAVES] = 1 << max(1, (len(lowered.base.leaves) - 1).bit_length())
    header[at.POOL_LISTS] = len(network.stations)
    header[at.CLASS_LISTS] = header[at.POOL_LISTS] + len(network.pools)
    header[at.WAIT_LISTS] = header[at.CLASS_LISTS] + len(network.classes)
    header[at.BATCH_LISTS] = header[at.WAIT_LISTS] + lowered.wait_lists
    return header


def _counted(tally: Tally) -> dict[str, Any]:
    return {name: getattr(tally, name) for name in (*COUNTED, "histograms")}


def _free_records(header: Ints, name: str, count: int) -> Records:
    dtype, free, left, _ = RECORDS[name]
    rows = np.zeros(count, dtype=dtype)
    rows["next"] = np.arange(1, count + 1)
    header[free], header[left] = 0, count
    return rows


def _event_heap(size: int) -> Records:
    heap = np.zeros(size, dtype=at.EVENT)
    heap["tick"] = at.NEVER
    return heap


def _permanent_events(lowered: Lowered) -> int:
    """Return how many events there may be beside one for each thread and session."""
    return len(lowered.processes) + len(lowered.network.classes) + CHILDREN + 1


def _lists(count: int) -> Records:
    lists = np.zeros(count, dtype=at.LIST)
    lists["head"] = lists["tail"] = at.NONE
    return lists


def grown(state: State, lowered: Lowered) -> State:
    """Return the state with twice the room wherever it is nearly full."""
    header = state.header
    larger: dict[str, Any] = {}
    for name, (_, _, left, beside) in RECORDS.items():
        if header[left] < 2 * header[at.MARGIN]:
            larger[name] = _more_records(state, name)
            if beside is not None:
                larger[beside] = _doubled(getattr(state, beside))
    if state.stations["served"].max(initial=0) + 2 * header[at.MARGIN] >= state.finishes.shape[1]:
        larger["finishes"] = np.concatenate([state.finishes, np.zeros_like(state.finishes)], axis=1)
    state = state._replace(**larger)
    lists, heap = (
        _lists(header[at.BATCH_LISTS] + len(state.batches)),
        _event_heap(max(len(state.threads) + len(state.talks) + _permanent_events(lowered), len(state.heap))),
    )
    lists[: len(state.lists)], heap[: len(state.heap)] = state.lists, state.heap
    header[at.SHORT] = 0
    return state._replace(lists=lists, heap=heap)


def _doubled(rows: Ints) -> Ints:
    return np.concatenate([rows, np.zeros_like(rows)])


def _more_records(state: State, name: str) -> Records:
    rows: Records = getattr(state, name)
    _, free, left, _ = RECORDS[name]
    added = np.zeros_like(rows)
    added["next"] = np.arange(len(rows) + 1, 2 * len(rows) + 1)
    added["next"][-1] = state.header[free]
    state.header[free] = len(rows)
    state.header[left] += len(rows)
    return np.concatenate([rows, added])


def _stations(lowered: Lowered) -> Records:
    network = lowered.network
    rows = np.zeros(len(network.stations), dtype=at.STATION)
    named = {event.target for event in network.timeline.events}
    hosts = {host.name: number for number, host in enumerate(network.hosts)}
    leaf = free = 0
    for number, (row, station) in enumerate(zip(rows, network.stations, strict=True)):
        processor_sharing = lowered.processor_sharing[number]
        mine = [place for place, process in enumerate(lowered.processes) if process.station == number]
        row["kind"] = (at.SHARED if station.discipline == "ps" else at.QUEUED) if processor_sharing else at.RIGID
        row["servers"], row["leaf"], row["free"] = station.servers, leaf, free
        row["host"] = at.NONE if station.host is None else hosts[station.host]
        row["expiry"] = at.NEVER if station.expiry_s is None else to_ticks(float(station.expiry_s))
        row["rates"] = lowered.rate_tables.get(number, at.NONE)
        row["rate_count"] = len(station.rate.speeds) if station.rate else 0
        row["processes"], row["process_count"] = mine[0] if mine else 0, len(mine)
        changes = station.rate or station.host is not None or mine or station.name in named
        row["plain"] = not changes
        leaf, free = leaf + processor_sharing, free + station.servers
    return rows


def _hosts(lowered: Lowered) -> Records:
    hosts, on = lowered.network.hosts, lowered.base.host_stations
    counts = [int(np.count_nonzero(mine != at.NONE)) for mine in on]
    return np.array([(host.cores, 0, count) for host, count in zip(hosts, counts, strict=True)], dtype=at.HOST)


def _processes(lowered: Lowered, root: int) -> Records:
    rows = np.zeros(len(lowered.processes), dtype=at.STATION_PROCESS)
    for row, each in zip(rows, lowered.processes, strict=True):
        name = each.what.name
        key = source_key(root, "station", lowered.network.stations[each.station].name)
        row["station"], row["background"], row["every"], row["length"] = (
            each.station,
            each.share,
            each.every,
            each.length,
        )
        row["key"] = signed(key)
        row["every_key"], row["length_key"] = signed(name_key("every", name)), signed(name_key("length", name))
        row["rank"] = at.PROCESS << at.KIND_SHIFT | each.station << at.STEP_BITS | each.number
    return rows


def _pools(lowered: Lowered) -> Records:
    rows = np.zeros(len(lowered.network.pools), dtype=at.POOL)
    for row, pool in zip(rows, lowered.network.pools, strict=True):
        row["size"] = row["free"] = pool.size
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
        row["policy"], row["count"], row["first"] = POLICIES[route.policy], len(route.entries), first
        row["sticky"] = sticky.get(route.sticky, at.NONE)
        first += len(route.entries)
    return rows


def _targets(lowered: Lowered) -> Records:
    rows = np.zeros(sum(len(route.entries) for route in lowered.routes), dtype=at.TARGET)
    rows["smoothed"] = -1  # a target that has not been tried counts as the fastest
    return rows
