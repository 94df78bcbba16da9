"""Rows of a load-test table as layouts of two tiers, and what the fitted rows leave open about others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from capplan.calibration.evidence.load_test_row import ALL, LoadTestRow
from capplan.calibration.tables.row_checks import check_pace, unmixed, unwaited
from capplan.calibration.tables.rows import TableRow, load_of, rate_per_s
from capplan.models.errors import InputError
from capplan.systems.two_tier.network import LAN_S
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
    """Return what was tested: rows of other software, versions or workloads say nothing of a row.

    The classes `read`, `write` and `all` are one workload; any other name is one of its own.
    """
    name = row.request_class
    workload = None if name in (*_CLASSES, ALL) else name
    return " ".join(each for each in (row.system, row.version, workload) if each)


def undecided(row: TableRow, trained: Sequence[TableRow]) -> str:
    """Return what no fitted row tells of a row's layout, and which row would decide it; empty if nothing."""
    layouts = [each.layout for each in trained]
    found = unmixed(row.layout, layouts) or next(_open_questions(row.layout, layouts), "")
    return found or unwaited(trained, 2 * LAN_S) or _idle(row, trained)


def _idle(row: TableRow, trained: Sequence[TableRow]) -> str:
    """Return that every fitted row was much busier than this one, so that none shows a request without queueing."""
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
    for field, what in (("front_cores", "a front node"), ("node_cores", "a store node")):
        values = {getattr(each, field) for each in known}
        wanted = getattr(layout, field)
        if len(values) == 1 and wanted not in values and (field == "node_cores" or layout.front_nodes):
            yield f"all had {values.pop()} cores on {what}; a row with {wanted} would decide how work scales with cores"
    copies = {each.rf for each in writes}
    if layout.read_fraction < 1 and len(copies) == 1 and layout.rf not in copies:
        yield f"all had rf {copies.pop()}; a row with rf {layout.rf} would decide the cost of a copy"
