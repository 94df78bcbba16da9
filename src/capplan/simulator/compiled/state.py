"""The state of a run of the compiled engine: how it is made, and how its arrays grow when they are nearly full."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np

from capplan.models.errors import RefusedError
from capplan.models.language.network import Network
from capplan.models.language.station import Assignment
from capplan.models.language.step import RoutePolicy
from capplan.simulator.compiled.kernel import layout as at
from capplan.simulator.compiled.kernel.layout import Ints, Records, State
from capplan.simulator.compiled.lowering import Lowered
from capplan.simulator.results.tally import COUNTED, MOST_MARKS, Tally, units_shift
from capplan.simulator.specification.clock import to_ticks
from capplan.simulator.specification.streams import name_key, source_key
from capplan.simulator.specification.timeline import numbered_changes

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
    """Return checks that never come: the tick of each slot, then (tick, slot) of each block, level by level."""
    words, size = slots, slots // at.BLOCK
    while size > 1:
        size = -(-size // at.BLOCK) * at.BLOCK
        words += 2 * size
        size //= at.BLOCK
    checks = np.full(words + 2, at.NEVER, dtype=np.int64)
    checks[slots + 1 :: 2] = 0
    return checks


def _completions(stations: Records, rooms: Ints, numbers: Ints) -> Records:
    """Return empty lists with so much room for the stations of these numbers, which learn their places."""
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
    """Return how many events there may be beside one for each thread and session."""
    return len(lowered.processes) + len(lowered.network.classes) + len(lowered.network.each_pool) + CHILDREN + 1


def _lists(count: int) -> Records:
    lists = np.zeros(count, dtype=at.LIST)
    lists["head"] = lists["tail"] = at.NONE
    return lists


def grown(state: State, lowered: Lowered) -> State:
    """Return the state with twice the room wherever it is nearly full.

    Raises
    ------
    RefusedError
        When more would be in progress at once than the kernel's records have numbers for.
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
    """Return the completions of all stations, with twice the room where it is nearly full."""
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
    if 2 * len(rows) > MOST_RECORDS:
        raise RefusedError(
            f"more than {len(rows):,} {name} are in progress at once, the most that the compiled engine holds: "
            "shorten the run, or lower its load"
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
    """Tell stations how visits choose a lane. Lanes whose visits are counted must know when one ends."""
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
        row["sticky"] = sticky.get(route.sticky, at.NONE)
        first += route.count
    return rows


def _targets(lowered: Lowered) -> Records:
    rows = np.zeros(sum(route.count for route in lowered.routes), dtype=at.TARGET)
    rows["smoothed"] = -1  # a target that has not been tried counts as the fastest
    return rows
