"""Rows of a user's load-test table as a fit reads them, and checks that all table systems share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal

from capplan.errors import InputError
from capplan.evidence.load_test_row import ALL, PERCENTILES, LoadTestRow
from capplan.grouped import grouped
from capplan.layout.fitted_file import Fitted
from capplan.models.language.scenario import changed

THROUGHPUT, MEAN = "throughput_tps", "latency_mean_ms"
LEVELS: Mapping[str, float] = {name: level for name, level in PERCENTILES.items() if name != "latency_p999_ms"}
"""The percentiles that are predicted, as shares of the requests; those beyond the 99th are not."""
_AWAY = 2.0  # standard errors of a level at which the percentiles beside it are taken


QUANTITIES = (THROUGHPUT, MEAN, *LEVELS)
"""The columns that are fitted and predicted."""
NODE_CPU = "node_cpu_percent"
"""A column that is fitted, if the system has a model of it, and not predicted."""
ON_CURVES, ACROSS_LAYOUTS = 0.05, 0.12
"""Scatter of a repeat, as a standard deviation of the logarithm, where no layout was measured twice: guesses. That
across layouts stands for their factors in systems without any, and in the first search."""
_FULL = 100.0  # percent
READS, WRITES = ("read", "select"), ("write", "insert", "update", "delete")
"""What load generators call reads and writes."""

Kind = Literal["open", "closed", "throttled"]


@dataclass(frozen=True)
class Load:
    """What the clients of a row do.

    Attributes
    ----------
    kind : str
        `open`, `closed` or `throttled`.
    clients : int
        Number of clients; 0 for open traffic.
    rate_per_s : float
        Offered rate over all classes; 0 for closed clients.
    think_s : float
        Mean time between an answer and the next request.
    """

    kind: Kind
    clients: int = 0
    rate_per_s: float = 0.0
    think_s: float = 0.0


@dataclass(frozen=True)
class TableRow:
    """A row of a load-test table, read for one system.

    Attributes
    ----------
    run_id : str
        Name of the run.
    request_class : str or None
        Its request class; None for all requests of the run.
    layout : Scenario
        The layout, without a load.
    load : Load
        The load.
    measured : mapping of float
        Measured figures by column, in the column's unit.
    data_gib : float or None
        Data on each node, GiB, where the row states it. No part of the layout, as it grows from run to run.
    """

    run_id: str
    request_class: str | None
    layout: Any
    load: Load
    measured: Mapping[str, float] = field(hash=False)
    data_gib: float | None = None

    @cached_property
    def tested_layout(self) -> Any:
        """The layout without the pauses of its nodes, which repeats of a run do not have in common."""
        return without_pauses(self.layout)


def without_pauses(layout: Any) -> Any:
    """Return a layout that does not state the pauses of its nodes."""
    return changed(layout, gc=None) if getattr(layout, "gc", None) else layout


def cells_of(row: LoadTestRow) -> dict[str, Any]:
    """Return the cells of a row that have a value, by column."""
    return {each.name: value for each in fields(row) if (value := getattr(row, each.name)) is not None}


def row_of(cells: Mapping[str, Any]) -> LoadTestRow:
    """Return a row from its cells, as JSON has them."""
    found: dict[str, Any] = {name: tuple(each) if isinstance(each, list) else each for name, each in cells.items()}
    return LoadTestRow(**found)


def rows_of(fitted: Fitted) -> tuple[LoadTestRow, ...]:
    """Return the rows that a calibration was fitted to."""
    return () if fitted.table is None else tuple(map(row_of, fitted.table.rows))


def request_class(row: LoadTestRow) -> str | None:
    """Return whether a row is one of reads or of writes, whatever its load generator calls them; None: of both."""
    name = (row.request_class or ALL).lower()
    return "read" if name in READS else "write" if name in WRITES else None


def kind_of(row: LoadTestRow) -> Kind:
    """Return the kind of load of a row: clients to whom a rate was offered are throttled."""
    if row.load_kind is not None:
        return row.load_kind
    if not row.clients:
        return "open"
    return "throttled" if row.offered_tps else "closed"


def load_of(row: LoadTestRow) -> Load:
    """Return the load of a row; its rate is that of the row's class.

    Raises
    ------
    InputError
        If it has neither clients nor a rate.
    """
    where = f"run {row.run_id!r}" if row.run_id else "a row"
    rate = row.offered_tps or row.throughput_tps or 0.0
    kind = kind_of(row)
    if kind in ("closed", "throttled") and not row.clients:
        raise InputError(f"{where} has load_kind {kind} and no clients: fill the column clients")
    if kind in ("open", "throttled") and not rate:
        raise InputError(
            f"{where} has load_kind {kind} and no rate: fill the column offered_tps, or clients for closed clients"
        )
    if kind == "closed":
        return Load("closed", int(row.clients or 0), 0.0, (row.think_time_ms or 0.0) * 1e-3)
    return Load(kind, int(row.clients or 0) if kind == "throttled" else 0, rate)


def measured_of(row: LoadTestRow) -> dict[str, float]:
    """Return the figures of a row that are predicted, by column."""
    found = {name: getattr(row, name) for name in QUANTITIES}
    return {name: float(value) for name, value in found.items() if value is not None and value > 0}


def node_cpu_of(row: LoadTestRow, nodes: int) -> dict[str, float]:
    """Return the CPU of a row's nodes, percent by column; none if it is unknown or impossible.

    Parameters
    ----------
    row : LoadTestRow
        The row.
    nodes : int
        Nodes of all data centres. On one host they share the cores, so the CPU is the sum.
    """
    used: float | None = row.node_cpu_percent
    if row.one_host and used is not None:
        used *= nodes
    return {NODE_CPU: float(used)} if used is not None and 0 < used <= _FULL else {}


def without_cpu(rows: Sequence[LoadTestRow]) -> int:
    """Return how many rows have a CPU that no node can have, so that the fit leaves it out."""
    stated = [row for row in rows if row.node_cpu_percent is not None and not row.one_host]
    return sum(not node_cpu_of(row, 1) for row in stated)


def with_mix(rows: Sequence[LoadTestRow]) -> list[LoadTestRow]:
    """Return the rows with their run's share of reads, where the request classes of the run determine it."""
    runs = grouped(rows, lambda row: (row.run_id, row.repeat))
    return [_completed(row, runs[row.run_id, row.repeat]) if row.read_fraction is None else row for row in rows]


def _completed(row: LoadTestRow, run: Sequence[LoadTestRow]) -> LoadTestRow:
    known = {request_class(each): each.throughput_tps for each in run if each.run_id is not None}
    reads, writes = known.get("read"), known.get("write")
    return replace(row, read_fraction=reads / (reads + writes)) if reads and writes else row


def response_s(row: TableRow) -> float:
    """Estimate the response time directly from a row, in seconds; 0 if the row has no such figure."""
    if row.load.kind == "closed" and THROUGHPUT in row.measured and row.request_class is None:
        return row.load.clients / row.measured[THROUGHPUT] - row.load.think_s
    if MEAN in row.measured:
        return row.measured[MEAN] * 1e-3
    return min((value for name, value in row.measured.items() if name in LEVELS), default=0.0) * 1e-3


def share_of(row: TableRow) -> float:
    """Return a row's share of all requests of its run."""
    return 1.0 if row.request_class is None else row.layout.mix().get(row.request_class, 0.0)


def of_run(row: TableRow) -> TableRow:
    """Return a row with the offered rate of all requests of its run, instead of that of its class."""
    return replace(row, load=replace(row.load, rate_per_s=row.load.rate_per_s / (share_of(row) or 1.0)))


def rate_per_s(row: TableRow) -> float:
    """Return the rate of all requests of a row's run, per second; 0 if the row has no throughput."""
    if row.load.kind != "closed":
        return row.load.rate_per_s
    share = share_of(row)
    return row.measured.get(THROUGHPUT, 0.0) / share if share else 0.0


_OTHER_UNIT = 20.0  # a mean this many times off Little's law is in a wrong unit
_SESSION = "session"  # the request class of whole sessions
_KEPT_UP = 0.95  # share of open traffic that is answered, below which queues grow


def check_pace(row: LoadTestRow, where: str) -> None:
    """Refuse closed clients that send faster than their think time allows, or a mean latency in the wrong unit.

    Parameters
    ----------
    row : LoadTestRow
        The row.
    where : str
        The row in words, for the message.

    Raises
    ------
    InputError
        Names both numbers, and what to check.
    """
    if kind_of(row) != "closed" or not row.clients or not row.throughput_tps:
        return
    cycle_ms, think_ms = 1e3 * row.clients / row.throughput_tps, row.think_time_ms or 0.0
    rate = f"{row.clients:,.0f} clients at {row.throughput_tps:,.0f} per second"
    if think_ms >= cycle_ms:
        raise InputError(
            f"{where}: {rate} send one every {cycle_ms:.3g} ms each, and think_time_ms is {think_ms:g}: check both"
        )
    if row.latency_mean_ms is None:
        return
    found = row.latency_mean_ms / (cycle_ms - think_ms)
    whole = (row.request_class or ALL).lower() == ALL or row.read_fraction in (0.0, 1.0)
    if found > _OTHER_UNIT or (whole and 0 < found < 1 / _OTHER_UNIT and not think_ms):
        raise InputError(
            f"{where}: {rate} wait {cycle_ms - think_ms:.3g} ms for an answer (Little's law), and latency_mean_ms is "
            f"{row.latency_mean_ms:.3g}: check its unit"
        )


def check_requests(rows: Sequence[LoadTestRow]) -> None:
    """Refuse rows of sessions, whose requests wait for one another, and two kinds of writes or reads of one run.

    Raises
    ------
    InputError
        Names such a run, and what can be fitted instead.
    """
    found = next((row for row in rows if (row.request_class or ALL).lower() == _SESSION), None)
    if found is not None:
        raise InputError(
            f"the table is one of sessions, such as run {found.run_id!r}, and a fit is to independent requests: give a "
            "table of those, such as small.csv beside the sessions.csv of a live validation"
        )
    named = grouped([row for row in rows if row.run_id], lambda row: (row.run_id, row.repeat, request_class(row)))
    for (run, _, its), same in named.items():
        names = sorted({str(row.request_class) for row in same})
        if its is not None and len(names) > 1:
            raise InputError(
                f"run {run!r} has rows of {' and of '.join(names)}, and all are {its}s to a fit: give one row of all "
                f"{its}s, or leave these out beside a row of all requests"
            )


def steady(row: TableRow) -> TableRow:
    """Return the row without latencies if it could not keep up with open traffic; they would grow with the run time."""
    load, done, share = row.load, row.measured.get(THROUGHPUT, 0.0), share_of(row)
    if load.kind != "open" or not share or not 0 < done / share < _KEPT_UP * load.rate_per_s:
        return row
    kept = {name: value for name, value in row.measured.items() if name in {THROUGHPUT, NODE_CPU}}
    return replace(row, load=replace(load, rate_per_s=done / share), measured=kept)


def unmixed(layout: Any, known: Sequence[Any]) -> str:
    """Return which of reads, writes and mixed traffic the fitted layouts lack and another layout has; empty if none."""
    if layout.read_fraction > 0 and not any(each.read_fraction > 0 for each in known):
        return "they have no reads; a row with reads would decide it"
    if layout.read_fraction < 1 and not any(each.read_fraction < 1 for each in known):
        return "they have no writes; a row with writes would decide it"
    if 0 < layout.read_fraction < 1 and not any(0 < each.read_fraction < 1 for each in known):
        return "none has both reads and writes; a row with both would decide what they cost each other"
    return ""


def unwaited(trained: Sequence[TableRow], round_trip_s: float) -> str:
    """Return a reason if closed clients of a fitted row answer faster than a round trip; empty otherwise."""
    for row in trained:
        rate = rate_per_s(row)
        if row.load.kind == "closed" and rate and (cycle_s := row.load.clients / rate) < round_trip_s:
            return (
                f"a client of run {row.run_id!r} has an answer every {1e6 * cycle_s:.2g} us, less than a round trip, "
                "so it does not wait for them; rows with the requests under way as clients would decide it"
            )
    return ""
