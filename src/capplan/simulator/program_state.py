"""Makes the state that a run of the compiled engine begins with, and makes its arrays larger when they get short."""

from __future__ import annotations

import numpy as np

from capplan.models.step import RoutePolicy
from capplan.simulator.clock import to_ticks
from capplan.simulator.kernel import layout as at
from capplan.simulator.kernel.layout import Ints, State
from capplan.simulator.program import Lowered, signed
from capplan.simulator.streams import name_key, source_key
from capplan.simulator.tally import Tally

POLICIES: dict[RoutePolicy, int] = {
    "round_robin": at.ROUND_ROBIN,
    "random": at.RANDOM,
    "least_loaded": at.LEAST_LOADED,
    "token_aware": at.TOKEN_AWARE,
    "latency_ranked": at.LATENCY_RANKED,
}
# The tables of records: the columns of the header that hold the first free one, and how many are left.
RECORDS = {
    "threads": (at.FREE_THREADS, at.LEFT_THREADS),
    "requests": (at.FREE_REQUESTS, at.LEFT_REQUESTS),
    "talks": (at.FREE_TALKS, at.LEFT_TALKS),
    "joins": (at.FREE_JOINS, at.LEFT_JOINS),
    "latches": (at.FREE_LATCHES, at.LEFT_LATCHES),
    "batches": (at.FREE_BATCHES, at.LEFT_BATCHES),
    "nodes": (at.FREE_NODES, at.LEFT_NODES),
}
ROOM = 64  # records at the beginning, beyond what one event can use


def new_state(lowered: Lowered, root: int, tally: Tally, *, clients: int, trace_rows: int, most_requests: int) -> State:
    """Return the state at tick 0.

    Parameters
    ----------
    lowered, root
        The network, and the root key of the replication.
    tally
        Where the kernel counts; series have one interval more, for what comes after the end.
    clients
        Number of clients of closed or throttled traffic.
    trace_rows
        Rows of the buffer for single requests; 0 keeps none.
    most_requests
        How many requests may start.
    """
    network = lowered.network
    room = ROOM + 2 * lowered.most_records + 2 * clients
    header = np.zeros(at.HEADER, dtype=np.int64)
    header[at.MARGIN], header[at.READY], header[at.MOST_ROWS] = lowered.most_records, at.NONE, most_requests
    header[at.ARRIVAL_AT] = at.NEVER
    widths = {
        "threads": at.T_LOCALS + lowered.locals,
        "requests": at.REQUEST,
        "talks": at.K_STICKY + 1 + len(_sticky(lowered)),
        "joins": at.JOIN_WIDTH,
        "latches": at.L_MISSING + lowered.groups,
        "batches": at.BATCH_WIDTH,
        "nodes": at.NODE_WIDTH,
    }
    records = {name: _free_records(header, name, room, width) for name, width in widths.items()}
    leaves = np.flatnonzero(lowered.elastic)
    header[at.LEAVES] = 1 << max(1, (len(leaves) - 1).bit_length())
    return State(
        header=header,
        heap=_agenda(lowered, room),
        look=np.full(2 * header[at.LEAVES], at.NEVER),
        **records,
        stations=np.array([_station(lowered, number) for number in range(len(network.stations))], dtype=np.int64),
        paces=np.ones((len(network.stations), at.PACES)),
        leaves=leaves,
        finishes=np.zeros((max(1, len(leaves)), room, at.FINISH), dtype=np.int64),
        free=np.zeros(sum(station.servers for station in network.stations), dtype=np.int64),
        hosts=_hosts(lowered),
        processes=_processes(lowered, root),
        pools=_pools(lowered),
        routes=_routes(lowered),
        beats=np.zeros(max(1, clients), dtype=np.int64),
        gathering=np.full(max(1, lowered.batches), at.NONE),
        scales=np.ones(max(1, len(lowered.delay_scales))),
        timeouts=np.full((len(network.classes), 2), at.NONE),
        class_series=_one_more(tally.class_series),
        class_totals=tally.class_totals,
        histograms=tally.histograms,
        station_series=_one_more(tally.station_series),
        station_totals=tally.station_totals,
        pool_series=_one_more(tally.pool_series),
        pool_totals=tally.pool_totals,
        pool_busy=tally.pool_busy,
        trace=np.zeros((trace_rows, 10), dtype=np.int64),
        marks=np.zeros((20_000 if lowered.processes else 1, 3), dtype=np.int64),
    )


def _one_more(series: Ints) -> Ints:
    return np.zeros((len(series) + 1, *series.shape[1:]), dtype=np.int64)


def _free_records(header: Ints, name: str, count: int, width: int) -> Ints:
    free, left = RECORDS[name]
    rows = np.full((count, width), at.NONE, dtype=np.int64)
    rows[:-1, 0] = np.arange(1, count)
    header[free], header[left] = 0, count
    return rows


def _agenda(lowered: Lowered, room: int) -> Ints:
    heap = np.zeros((2 * room + len(lowered.processes) + len(lowered.network.classes) + 8, 4), dtype=np.int64)
    heap[0, 0] = at.NEVER
    return heap


def grown(state: State, lowered: Lowered) -> State:
    """Return the state with twice the room wherever it is short."""
    header = state.header
    larger = {}
    for name, (_, left) in RECORDS.items():
        if header[left] < 2 * header[at.MARGIN]:
            larger[name] = _more_records(state, name)
    if (state.stations[:, at.S_SERVED].max(initial=0)) + 2 * header[at.MARGIN] >= state.finishes.shape[1]:
        larger["finishes"] = np.concatenate([state.finishes, np.zeros_like(state.finishes)], axis=1)
    threads = len(larger.get("threads", state.threads))
    talks = len(larger.get("talks", state.talks))
    most_events = threads + talks + len(lowered.processes) + len(lowered.network.classes) + 8
    heap = np.zeros((max(most_events, len(state.heap)), 4), dtype=np.int64)
    heap[: len(state.heap)] = state.heap
    header[at.SHORT] = 0
    return state._replace(heap=heap, **larger)


def _more_records(state: State, name: str) -> Ints:
    rows: Ints = getattr(state, name)
    free, left = RECORDS[name]
    added = np.full_like(rows, at.NONE)
    added[:, 0] = np.arange(len(rows) + 1, 2 * len(rows) + 1)
    added[-1, 0] = state.header[free]
    state.header[free] = len(rows)
    state.header[left] += len(rows)
    return np.concatenate([rows, added])


def _station(lowered: Lowered, number: int) -> list[int]:
    network = lowered.network
    station = network.stations[number]
    row = [0] * at.STATION
    elastic = lowered.elastic[number]
    hosts = [host.name for host in network.hosts]
    mine = [place for place, process in enumerate(lowered.processes) if process.station == number]
    named = {event.target for event in network.timeline.events} & {station.name}
    row[at.S_KIND] = (at.SHARED if station.discipline == "ps" else at.QUEUED) if elastic else at.RIGID
    row[at.S_SERVERS] = station.servers
    row[at.S_HOST] = hosts.index(station.host) if station.host is not None else at.NONE
    row[at.S_LEAF] = sum(lowered.elastic[:number])
    row[at.S_FREE] = sum(each.servers for each in network.stations[:number])
    row[at.S_HEAD] = row[at.S_TAIL] = at.NONE
    row[at.S_SIGMA] = at.NONE
    row[at.S_EXPIRY] = at.NEVER if station.expiry_s is None else _ticks(station.expiry_s)
    row[at.S_RATES] = lowered.rate_tables.get(number, at.NONE)
    row[at.S_RATE_COUNT] = len(station.rate.speeds) if station.rate else 0
    row[at.S_PROCESSES], row[at.S_PROCESS_COUNT] = (mine[0], len(mine)) if mine else (0, 0)
    row[at.S_PLAIN] = int(station.rate is None and station.host is None and not mine and not named)
    return row


def _ticks(seconds: object) -> int:
    return to_ticks(float(seconds))  # type: ignore[arg-type] # a number: arrays are refused before


def _hosts(lowered: Lowered) -> Ints:
    stations, hosts = lowered.network.stations, lowered.network.hosts
    on = [[number for number, each in enumerate(stations) if each.host == host.name] for host in hosts]
    rows = np.zeros((len(hosts), at.H_STATIONS + max((len(each) for each in on), default=0)), dtype=np.int64)
    for row, (host, mine) in enumerate(zip(hosts, on, strict=True)):
        rows[row, [at.H_CORES, at.H_COUNT]] = host.cores, len(mine)
        rows[row, at.H_STATIONS : at.H_STATIONS + len(mine)] = mine
    return rows


def _processes(lowered: Lowered, root: int) -> Ints:
    rows = np.zeros((len(lowered.processes), at.PROCESS_WIDTH), dtype=np.int64)
    for row, each in zip(rows, lowered.processes, strict=True):
        name = each.what.name
        key = source_key(root, "station", lowered.network.stations[each.station].name)
        row[[at.P_STATION, at.P_BACKGROUND, at.P_EVERY, at.P_LENGTH]] = (
            each.station,
            each.share,
            each.every,
            each.length,
        )
        row[[at.P_KEY, at.P_EVERY_KEY, at.P_LENGTH_KEY]] = [
            signed(word) for word in (key, name_key("every", name), name_key("length", name))
        ]
        row[at.P_RANK] = at.PROCESS << at.KIND_SHIFT | each.station << at.STEP_BITS | each.number
    return rows


def _pools(lowered: Lowered) -> Ints:
    rows = np.zeros((len(lowered.network.pools), at.POOL), dtype=np.int64)
    for row, pool in zip(rows, lowered.network.pools, strict=True):
        row[[at.Q_SIZE, at.Q_FREE]] = pool.size
        row[at.Q_LIMIT] = at.NEVER if pool.queue_limit is None else pool.queue_limit
        row[[at.Q_HEAD, at.Q_TAIL]] = at.NONE
    return rows


def _sticky(lowered: Lowered) -> dict[tuple[int, int], int]:
    """Number what sticky sessions remember: routes of one name and as many targets share it."""
    if all(session.route != "sticky" for session in lowered.network.sessions):
        return {}
    return {key: number for number, key in enumerate(dict.fromkeys(route.sticky for route in lowered.routes))}


def _routes(lowered: Lowered) -> Ints:
    cells, sticky = np.zeros(max(1, lowered.route_cells), dtype=np.int64), _sticky(lowered)
    for route in lowered.routes:
        head = cells[route.place : route.place + at.W_TARGETS]
        head[at.W_POLICY], head[at.W_COUNT] = POLICIES[route.policy], len(route.ways)
        head[at.W_STICKY] = sticky.get(route.sticky, at.NONE)
        first = route.place + at.W_TARGETS + at.W_SMOOTHED
        cells[first : first + at.W_TARGET * len(route.ways) : at.W_TARGET] = -1  # a target not tried yet is fastest
    return cells
