"""Rows of a load-test table as layouts of two tiers, their priors, and what they leave undetermined."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from capplan.calibration.tables.priors import OVERHEAD, ceiling_over, median_unloaded_s, overhead
from capplan.errors import InputError
from capplan.evidence.load_test_row import ALL, LoadTestRow
from capplan.layout.table_rows import TableRow, check_pace, load_of, rate_per_s, response_s, unmixed, unwaited
from capplan.models.language.parameter import Parameter
from capplan.models.language.scenario import changed
from capplan.systems.two_tier.network import LAN_S, network
from capplan.systems.two_tier.priors import PARAMETERS
from capplan.systems.two_tier.scenario import TwoTierScenario, Waits

_CLASSES = ("read", "write")
_BUSIER = 0.5  # share of the lowest fitted rate below which a row is in another regime
_WAITS: dict[str, Waits] = {"ONE": "one", "LOCAL_ONE": "one", "ALL": "all"}
_COUNTS = {
    "cass_nodes": "the nodes of the store",
    "node_cores": "the cores of a store node",
    "rf": "the copies of a row",
    "front_nodes": "the front nodes, 0 if the front runs on the store's nodes",
}


def row_scenario(row: LoadTestRow) -> TwoTierScenario:
    """Return the layout and the load of a row.

    Raises
    ------
    InputError
        If a column is missing or wrong; the message names it.
    """
    where = f"run {row.run_id!r}" if row.run_id else "a row"
    dcs = row.dcs or len(row.client_share or (1,))
    if dcs != 1:
        raise InputError(f"{where} has dcs {dcs}: two-tier knows one data centre, so leave its row out")
    counts = {name: _count(row, name, what, where) for name, what in _COUNTS.items()}
    if counts["front_nodes"] and row.front_cores is None:
        raise InputError(f"{where} has no front_cores: fill the column with the cores of a front node")
    load = load_of(row)
    check_pace(row, where)
    fields: dict[str, Any] = {
        "front_nodes": counts["front_nodes"],
        "front_cores": max(round(row.front_cores or counts["node_cores"]), 1),
        "store_nodes": counts["cass_nodes"],
        "node_cores": max(counts["node_cores"], 1),
        "rf": counts["rf"],
        "write_waits": _WAITS.get(row.consistency_write or "", "majority"),
        "read_fraction": _read_fraction(row, where),
        **({"clients": load.clients} if load.kind == "closed" else {"tps": load.rate_per_s}),
    }
    try:
        return TwoTierScenario(**fields)
    except InputError as error:
        raise InputError(f"{where}: {str(error).removeprefix('TwoTierScenario: ')}") from None


def _count(row: LoadTestRow, name: str, what: str, where: str) -> int:
    value: Any = getattr(row, name)
    if value is None:
        raise InputError(f"{where} has no {name}: fill the column with {what}")
    if isinstance(value, tuple):
        raise InputError(f"{where} has {name} by data centre: two-tier knows one data centre, so give one number")
    rounded: int = round(value)
    return rounded


def _read_fraction(row: LoadTestRow, where: str) -> float:
    if row.read_fraction is not None:
        return row.read_fraction
    if row.request_class in _CLASSES:
        return 1.0 if row.request_class == "read" else 0.0
    raise InputError(f"{where} has no read_fraction: fill the column with the share of reads, 0 to 1")


def group(row: LoadTestRow) -> str:
    """Return what a row tested: rows of other software, versions or workloads do not inform it.

    The classes `read`, `write` and `all` are one workload; any other name is one of its own.
    """
    name = row.request_class
    workload = None if name in (*_CLASSES, ALL) else name
    return " ".join(each for each in (row.system, row.version, workload) if each)


def undecided(row: TableRow, trained: Sequence[TableRow]) -> str:
    """Return what the fitted rows leave undetermined about a row's layout, and which row would help; or empty."""
    layouts = [each.layout for each in trained]
    found = unmixed(row.layout, layouts) or next(_open_questions(row.layout, layouts), "")
    return found or unwaited(trained, 2 * LAN_S) or _idle(row, trained)


def _idle(row: TableRow, trained: Sequence[TableRow]) -> str:
    """Return a reason if every fitted row was much busier than this one, so that none shows an unqueued request."""
    rates = [rate_per_s(each) for each in trained if rate_per_s(each)]
    own = row.load.rate_per_s
    if row.load.kind == "closed" or not rates or own >= _BUSIER * min(rates):
        return ""
    return (
        f"all had {min(rates):,.0f} requests per second or more; a row with about {own:,.0f} would decide the latency "
        "without queueing"
    )


def _open_questions(layout: TwoTierScenario, known: Sequence[TwoTierScenario]) -> Iterator[str]:
    if bool(layout.front_nodes) not in {bool(each.front_nodes) for each in known}:
        yield "the front and the store share their nodes in some layouts only; a row of this one would decide it"
    writes = [each for each in known if each.read_fraction < 1]
    if layout.read_fraction < 1 and layout.write_waits not in {each.write_waits for each in writes}:
        yield f"no write waited for {layout.write_waits}; a row with such writes would decide it"


_IDLE_LOG = 4.0  # ceiling of the logs over that of the nodes, where no curve shows that batches lengthen a write
_QUEUED = 0.1  # unloaded time over the shortest response where each layout was measured at one load: a guess
ROUNDS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""How often a request may take a lane in each tier: what the fit tries."""
TIMES = {
    "read": ("delay_s", "front_read_s", "store_read_s"),
    "write": ("front_write_s", "store_write_s", "commit_s"),
}
"""The times of an unloaded request of each class, which are scaled together."""


def priors(rows: Sequence[TableRow]) -> tuple[Parameter, ...]:
    """Return the parameters with priors for a table.

    The times of a class are scaled so that an unloaded request takes as long as the shortest one measured; of a write,
    the commit alone, as a flush may take long and the work hardly does. The ceiling of the logs, by what a write adds
    to its batch, is above the highest throughput measured: the less queueing that row shows, the further. Where no
    layout was measured at two loads, the nodes rather than the logs are taken as the limit.
    """
    found = {each.name: each for each in PARAMETERS}
    alone, curved = {name: _shortest(rows, name) for name in TIMES}, not _of_one_load(rows)
    for name, shortest in alone.items():
        if shortest is None:
            continue
        row, seconds = shortest
        seconds *= 1.0 if curved else _QUEUED
        usual = _unloaded_s(row, name)
        if name == "write" and curved and seconds > usual:  # a commit may take long, and work on a write hardly does
            found["commit_s"] = replace(found["commit_s"], value=PARAMETER["commit_s"] + seconds - usual)
            continue
        also = ("delay_s",) if name == "write" and alone["read"] is None else ()
        for each in (*TIMES[name], *also):
            found[each] = replace(found[each], value=PARAMETER[each] * seconds / usual)
    if responses := [response_s(row) for row in rows if response_s(row)]:
        found[OVERHEAD] = overhead(rows, min(responses))
    rates = [(rate_per_s(row), row) for row in rows if rate_per_s(row)]
    if rates:
        highest, fastest = max(rates, key=lambda each: each[0])
        ceiling = ceiling_over(rows, fastest) * highest
        most = max(_per_log(row, rate) for rate, row in rates)
        if most:
            full_s = highest / ceiling / most
            appended = full_s if curved else min(full_s / _IDLE_LOG, PARAMETER["append_s"])
            found["append_s"] = replace(found["append_s"], value=appended)
    return tuple(found.values())


PARAMETER = {each.name: each.value for each in PARAMETERS}


def _shortest(rows: Sequence[TableRow], name: str) -> tuple[TableRow, float] | None:
    """Return the row with a class's shortest response, and this response in seconds."""
    share = {"read": 1.0, "write": 0.0}[name]
    own = [row for row in rows if row.request_class == name or (row.layout.read_fraction == share)]
    mixed = own or [row for row in rows if 0 < row.layout.read_fraction < 1]
    known = [(row, response_s(row)) for row in mixed if response_s(row)]
    return min(known, key=lambda each: each[1], default=None)


def _per_log(row: TableRow, rate: float) -> float:
    """Return the write rate per log of a layout, per second."""
    layout: TwoTierScenario = row.layout
    return rate * (1 - layout.read_fraction) * layout.rf / layout.store_nodes


def _of_one_load(rows: Sequence[TableRow]) -> bool:
    """Whether every layout was measured at one load only, so that even the shortest response may be mostly queueing."""
    loads = defaultdict(set)
    for row in rows:
        loads[row.layout].add(row.load)
    return max(map(len, loads.values())) == 1


def _unloaded_s(row: TableRow, name: str) -> float:
    """Return the unloaded request time of a class, at the prior medians."""
    share = row.layout.read_fraction
    layout = row.layout if 0 < share < 1 else changed(row.layout, read_fraction={"read": 1.0, "write": 0.0}[name])
    return median_unloaded_s(PARAMETERS, sum(TIMES.values(), ()), lambda values: network(layout, values, 1.0))
