"""Rows of a load-test table as layouts of a Cassandra cluster, their priors, and what they leave undetermined."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from capplan.answers.number_words import share
from capplan.calibration.tables.figures import scatter_of
from capplan.calibration.tables.node_cpu import observed
from capplan.calibration.tables.priors import OVERHEAD, ceiling_over, median_unloaded_s, overhead
from capplan.errors import InputError, RefusedError, nearest
from capplan.evidence.load_test_row import ALL, LoadTestRow
from capplan.layout.extrapolation import Excess
from capplan.layout.observations import LoadTest
from capplan.layout.table_rows import (
    READS,
    THROUGHPUT,
    WRITES,
    TableRow,
    check_pace,
    load_of,
    rate_per_s,
    request_class,
    response_s,
    unmixed,
    unwaited,
)
from capplan.models.cassandra.consistency import need
from capplan.models.language.parameter import Parameter
from capplan.models.language.per_dc import per_dc_text
from capplan.systems.cassandra.network import (
    GENERATOR_LANES,
    LAN_S,
    SENT_AT_ONCE,
    USUAL_CORES,
    limit_in_words,
    may_wait,
    network,
)
from capplan.systems.cassandra.priors import PARAMETERS
from capplan.systems.cassandra.scenario import USUAL_ROW_BYTES, CassandraScenario

_MIXED = (ALL, "mixed", "total")
_REFUSED = {
    "lwt": "lightweight transactions (four round trips) are not modelled",
    "cas": "lightweight transactions (four round trips) are not modelled",
    "serial": "lightweight transactions (four round trips) are not modelled",
    "batch": "logged batches are not modelled",
    "counter": "counters, which read before they write, are not modelled",
}
_ALIKE = 1.5  # data volumes within this ratio count as equal, because they grow during a run
USUAL_LEVEL = "LOCAL_ONE"


def row_scenario(row: LoadTestRow) -> CassandraScenario:
    """Return the layout and the load of a row.

    Raises
    ------
    InputError
        If a column is missing or wrong; the message names it.
    """
    where = f"run {row.run_id!r}" if row.run_id else "a row"
    _refuse(row, where)
    load = load_of(row)
    check_pace(row, where)
    if row.rf is None:
        raise InputError(f"{where} has no rf: fill the column with the replicas of a row per data centre")
    reads = _read_fraction(row, where)
    dcs = data_centres(row)
    nodes = row.cass_nodes if row.cass_nodes is not None else _usual_nodes(row.rf)
    fields: dict[str, Any] = {
        "dcs": dcs,
        "cass_nodes": nodes,
        "rf": row.rf,
        "node_cores": max(round(row.node_cores or USUAL_CORES), 1),
        "one_host": bool(row.one_host),
        "consistency_read": row.consistency_read or USUAL_LEVEL,
        "consistency_write": row.consistency_write or USUAL_LEVEL,
        "read_fraction": reads,
        "row_bytes": row.row_bytes or USUAL_ROW_BYTES,
        "cache_state": row.cache_state or "warm",
        "token_aware": True if row.token_aware is None else row.token_aware,
        "encryption": _links(row),
        "tcp_nodelay": bool(row.inter_dc_tcp_nodelay),
        "gc": row.gc,
        "cluster": " ".join(filter(None, (row.system, row.version))) or None,
        "client_share": row.client_share or in_proportion_to_nodes(nodes),
        **({"clients": load.clients} if load.clients else {"tps": load.rate_per_s}),
    }
    if dcs > 1 and row.rtt_ms is not None:
        fields["rtt"] = f"{row.rtt_ms:g}ms"
    try:
        return CassandraScenario(**fields)
    except InputError as error:
        raise InputError(f"{where}: {str(error).removeprefix('CassandraScenario: ')}") from None


def data_centres(row: LoadTestRow) -> int:
    """Return the number of data centres of a row: as stated, or from its counts by data centre."""
    each = (row.rf, row.cass_nodes, row.client_share)
    return row.dcs or max(len(value) if isinstance(value, tuple) else 1 for value in each)


def in_proportion_to_nodes(nodes: int | tuple[int, ...]) -> tuple[float, ...] | None:
    """Return the assumed client shares, in proportion to each data centre's nodes; None if these are equal.

    The parameter has the nodes of each data centre, all of which coordinate requests.
    """
    if not isinstance(nodes, tuple) or not any(nodes):
        return None
    return tuple(each / sum(nodes) for each in nodes)


def unstated(rows: Iterable[LoadTestRow]) -> tuple[str, ...]:
    """Return what the rows do not state and the model has to assume, in sentences."""
    count = sum(data_centres(row) > 1 and row.client_share is None for row in rows)
    if not count:
        return ()
    return (
        f"{count} {'row does' if count == 1 else 'rows do'} not say where clients were: they are taken as spread over "
        "the data centres in proportion to nodes. Fill the column client_share, such as 100%/0%.",
    )


def _refuse(row: LoadTestRow, where: str) -> None:
    name = (row.request_class or ALL).lower()
    for word, why in _REFUSED.items():
        if word in name.replace("-", "_").split("_"):
            raise RefusedError(f"{where}: request class {row.request_class!r} is refused: {why}; leave its rows out")
    if name not in (*READS, *WRITES, *_MIXED):
        raise InputError(
            f"{where}: request class {row.request_class!r} is no class of Cassandra"
            f"{nearest(name, (*READS, *WRITES, ALL))}"
        )


def _read_fraction(row: LoadTestRow, where: str) -> float:
    if row.read_fraction is not None:
        return row.read_fraction
    own = request_class(row)
    if own is not None:
        return 1.0 if own == "read" else 0.0
    if row.consistency_read is not None and row.consistency_write is None:
        return 1.0
    if row.consistency_write is not None and row.consistency_read is None:
        return 0.0
    raise InputError(f"{where} has no read_fraction: fill the column with the share of reads, 0 to 1")


def _usual_nodes(rf: int | tuple[int, ...]) -> int | tuple[int, ...]:
    """Return the assumed number of nodes if a table states none: as many as replicas, at least three."""
    return tuple(max(each, 3) if each else 0 for each in rf) if isinstance(rf, tuple) else max(rf, 3)


def _links(row: LoadTestRow) -> str | None:
    links = [name for name, on in (("client", row.encryption_client), ("internode", row.encryption_internode)) if on]
    return "+".join(links) or None


def excess(scenario: CassandraScenario, tests: Sequence[LoadTest[CassandraScenario]]) -> Sequence[Excess]:
    """Return how a layout differs from all rows: client locations, limits that may bind, a page cache that overflows.

    The distances are 0, so bands stay as wide. With n requests under way, a cluster completes what n closed clients do,
    and the prior of what a miss takes is wide.
    """
    found = []
    known = {each.scenario.client_share for each in tests if each.scenario.dcs == scenario.dcs}
    if known and scenario.client_share not in known:
        found.append(Excess(0.0, f"clients at {per_dc_text(scenario.shares_by_dc())}: no load test had them there"))
    if may_wait(scenario):
        found.append(Excess(0.0, f"{limit_in_words(scenario)}: no load test states such a limit"))
    if scenario.retries_reads():
        found.append(Excess(0.0, f"speculative retries at {scenario.speculative_retry}: no load test states any"))
    if scenario.read_fraction and scenario.cache_state != "cold" and (beyond := scenario.beyond_cache()):
        words = f"{share(beyond)} of the data do not fit into the page cache: no load test states its size"
        found.append(Excess(0.0, words))
    return found


def undecided(row: TableRow, trained: Sequence[TableRow]) -> str:
    """Return what the fitted rows leave undetermined about a row's layout, and which row would help; or empty."""
    layout, known = row.layout, [each.layout for each in trained]
    reading = [each for each in trained if each.layout.read_fraction > 0]
    found = unmixed(layout, known) or (_cache_undecided(row, reading) if layout.read_fraction > 0 else "")
    if found:
        return found
    links = _all_links(layout)
    missing = links - frozenset().union(*(_all_links(each) for each in known))
    if missing:
        return f"none had TLS on {' and '.join(sorted(missing))} links; a row with it would decide its cost"
    if layout.cluster not in {each.cluster for each in known}:
        return f"none is of cluster or version {layout.cluster!r}; a row of it would decide its speed"
    if any(_far_waits(layout)) and not any(any(_far_waits(each)) for each in known):
        return "none waited for another data centre; a row that does would decide how many round trips an answer takes"
    return unwaited(trained, 2 * LAN_S)


def _cache_undecided(row: TableRow, trained: Sequence[TableRow]) -> str:
    """Return what the read rows leave undetermined about page-cache misses: how many there are, or their duration."""
    state, states = row.layout.cache_state, {each.layout.cache_state for each in trained}
    if state not in states:
        return f"their page cache was never {state}; a row with cache_state {state} would decide it"
    asked, cache = row.layout.data_gib or row.data_gib, row.layout.cache_gib
    known = sorted(each.data_gib for each in trained if each.data_gib)
    if asked is None or (not known and row.layout.data_gib is None):
        return ""
    if state != "cold" and row.layout.beyond_cache():
        if known and cache is not None and known[-1] > cache:
            return (
                f"they had up to {known[-1]:g} GiB of data per node and {cache:g} GiB are cached, so misses are in "
                f"their reads; a row with at most {cache:g} GiB would decide what a read without a miss takes"
            )
        if states == {"warm"}:
            return (
                "none of their reads missed the page cache; a row with cache_state cold would decide what a miss takes"
            )
    if not known:
        return (
            f"none states its data_gib; a row with {asked:g} GiB of data per node would decide how many reads go to "
            "disk"
        )
    if not known[0] / _ALIKE <= asked <= known[-1] * _ALIKE:
        return (
            f"they had {_ends(known)} GiB of data per node; a row with {asked:g} GiB would decide how many reads go to "
            "disk"
        )
    return ""


def _ends(numbers: Sequence[float]) -> str:
    low, high = f"{numbers[0]:g}", f"{numbers[-1]:g}"
    return low if low == high else f"{low} to {high}"


def _far_waits(layout: CassandraScenario) -> Iterator[bool]:
    """Yield for each operation and data centre with clients whether requests wait for a remote data centre."""
    replicas = layout.rf_by_dc()
    for level in layout.levels().values():
        for dc, clients in enumerate(layout.shares_by_dc()):
            if clients:
                wanted = need(level, replicas, dc)
                yield wanted.total > replicas[dc] or bool(set(wanted.by_dc) - {dc})


def _all_links(layout: CassandraScenario) -> frozenset[str]:
    return frozenset((layout.encryption or "").split("+")) - {""}


_GENERATOR_OVER, _GENERATOR_SHARE = 4.0, 0.1
# The middle of the load generator's prior: its ceiling over the cluster's, or its work over an unloaded request,
# whichever means less work.
_SOON, _UNKNOWN_LOG_SD = 1.4, 2.0  # round trips; where rows show that messages were not held, or not all
_FALLEN = 1.5  # a fall of throughput with more clients counts from this multiple of a repeat's scatter
# As shares of the shortest time, in the middle of the prior: guesses after what record 28 saw on a lab.
_ON_ONE_HOST = {"wake_s": 0.5, "exchange_s": 1.0, "neighbour_s": 0.3}
TIMES = ("delay_s", "coordinator_s", "mutation_s", "read_s")
"""The times of an unloaded request, which are scaled together."""


def priors(rows: Sequence[TableRow]) -> tuple[Parameter, ...]:
    """Return the parameters with priors for a table.

    The times are scaled so that an unloaded request takes as long as the shortest one measured. Clients contend only
    where throughput fell. On one host a part of the shortest time is that of wake-ups.
    """
    found = {each.name: each for each in (*PARAMETERS, *observed(rows))}
    shortest = min(((response_s(row), row) for row in rows if response_s(row)), key=lambda each: each[0], default=None)
    if shortest is None:
        return tuple(found.values())
    unloaded, row = shortest
    found["wan_extra"] = _of_far_answers(rows, found["wan_extra"])
    if row.layout.one_host:
        unloaded *= 1 - _ON_ONE_HOST["wake_s"]
    apart = _round_trip_s(row)
    usual = median_unloaded_s(
        PARAMETERS, TIMES, lambda values: network(row.layout, {**values, "generator_s": 1e-9, "wan_extra": 1e-9}, 1.0)
    )
    at_once = row.layout.tcp_nodelay or unloaded < _SOON * apart
    beyond = apart * (SENT_AT_ONCE if at_once else found["wan_extra"].value)
    scale = max(unloaded - apart - beyond, 0.1 * unloaded) / max(usual - apart, 1e-9)
    for name in TIMES:
        found[name] = replace(found[name], value=found[name].value * scale)
    found[OVERHEAD] = overhead(rows, shortest[0])
    rates = [(rate_per_s(each), each) for each in rows if rate_per_s(each)]
    if rates:
        highest, fastest = max(rates, key=lambda each: each[0])
        ceiling = ceiling_over(rows, fastest) * highest
        busy = min(GENERATOR_LANES / (_GENERATOR_OVER * ceiling), _GENERATOR_SHARE * unloaded)
        found["generator_s"] = replace(found["generator_s"], value=busy)
    most = _falls_at(rows)
    if most:
        found["contention"] = replace(found["contention"], value=0.3 / most, log_sd=1.0)
    for name, value in _ON_ONE_HOST.items():
        if any(each.layout.one_host for each in rows):
            found[name] = replace(found[name], value=value * shortest[0], log_sd=0.7)
    return (*found.values(), *_of_clusters(rows))


def _of_far_answers(rows: Sequence[TableRow], prior: Parameter) -> Parameter:
    """Return the prior of what far answers take beyond their round trip, by those that came within 1.4 round trips.

    Where every connection has more than a message in a round trip, none that Nagle's algorithm held comes so soon.
    Where there are fewer, it holds few of them, and the prior is wide.
    """
    soon = [
        row
        for row in rows
        if all(_far_waits(row.layout)) and 1 <= response_s(row) / max(_round_trip_s(row), 1e-9) < _SOON
    ]
    if not soon or any(row.layout.tcp_nodelay for row in rows):
        return prior
    held = all(_round_trip_s(row) * rate_per_s(row) <= _connections(row) for row in soon)
    return replace(prior, value=prior.value if held else prior.value * SENT_AT_ONCE, log_sd=_UNKNOWN_LOG_SD)


def _connections(row: TableRow) -> int:
    """Return the connections between the nodes of the two largest data centres."""
    *_, second, first = sorted(row.layout.nodes_by_dc())
    return int(first * second)


def _of_clusters(rows: Sequence[TableRow]) -> list[Parameter]:
    """Return the parameters of each cluster or version except the one with the most rows."""
    counts = Counter(row.layout.cluster for row in rows)
    first = max(counts, key=lambda name: (counts[name], str(name)))
    return [
        replace(known, name=f"{known.name}[{name}]", log_sd=sd)
        for name in sorted(map(str, counts.keys() - {first}))
        for known, sd in ((_named("cluster_work"), 0.5), (_named("cluster_delay"), 0.3))
    ]


def _named(name: str) -> Parameter:
    return next(each for each in PARAMETERS if each.name == name)


def _round_trip_s(row: TableRow) -> float:
    """Return the round trip that a row's requests wait for; 0 if the local data centre is enough."""
    layout = row.layout
    if layout.dcs == 1 or all(level.startswith("LOCAL") or level == "ONE" for level in layout.levels().values()):
        return 0.0
    return float(max(max(each) for each in layout.round_trips_s()))


def _falls_at(rows: Sequence[TableRow]) -> int:
    """Return the most clients of a layout whose throughput fell after its peak; 0 if none fell."""
    curves: dict[object, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.load.kind == "closed" and THROUGHPUT in row.measured:
            curves[row.tested_layout, row.request_class][row.load.clients].append(row.measured[THROUGHPUT])
    found, least = 0, math.exp(-_FALLEN * scatter_of(rows)[THROUGHPUT])
    for curve in curves.values():
        means = {clients: float(np.mean(each)) for clients, each in curve.items()}
        most = max(means)
        if len(means) > 2 and means[most] < least * max(means.values()):
            found = max(found, most)
    return found
