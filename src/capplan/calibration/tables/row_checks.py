"""What a row of closed clients or of open traffic cannot be: checks that all systems of tables share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from capplan.calibration.evidence.load_test_row import ALL, LoadTestRow
from capplan.calibration.tables.rows import THROUGHPUT, TableRow, rate_per_s
from capplan.models.errors import InputError

_OTHER_UNIT = 20.0  # ratio of a mean to what Little's law says from which it is in another unit
_SESSION = "session"  # the request class of whole sessions
_KEPT_UP = 0.95  # share of open traffic that is answered, below which queues grow


def check_pace(row: LoadTestRow, where: str) -> None:
    """Refuse closed clients that are faster than their think time, or whose mean latency has another unit.

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
    if row.load_kind not in (None, "closed") or not row.clients or not row.throughput_tps:
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
    """Refuse rows of sessions: each request of one waits for the last and for the client to think.

    Raises
    ------
    InputError
        Names a run of sessions, and what can be fitted instead.
    """
    found = next((row for row in rows if (row.request_class or ALL).lower() == _SESSION), None)
    if found is not None:
        raise InputError(
            f"the table is one of sessions, such as run {found.run_id!r}, and a fit is to independent requests: give a "
            "table of those, such as small.csv beside the sessions.csv of a live validation"
        )


def steady(row: TableRow) -> TableRow:
    """Return a row without latencies if open traffic was too much for it: they grow for as long as it lasts."""
    load, done = row.load, row.measured.get(THROUGHPUT, 0.0)
    share = 1.0 if row.request_class is None else row.layout.mix().get(row.request_class, 0.0)
    if load.kind != "open" or not share or not 0 < done / share < _KEPT_UP * load.rate_per_s:
        return row
    return replace(row, load=replace(load, rate_per_s=done / share), measured={THROUGHPUT: done})


def unmixed(layout: Any, known: Sequence[Any]) -> str:
    """Return that fitted layouts have no reads, no writes, or not both, and another layout has; empty if they have."""
    if layout.read_fraction > 0 and not any(each.read_fraction > 0 for each in known):
        return "they have no reads; a row with reads would decide it"
    if layout.read_fraction < 1 and not any(each.read_fraction < 1 for each in known):
        return "they have no writes; a row with writes would decide it"
    if 0 < layout.read_fraction < 1 and not any(0 < each.read_fraction < 1 for each in known):
        return "none has both reads and writes; a row with both would decide what they cost each other"
    return ""


def unwaited(trained: Sequence[TableRow], round_trip_s: float) -> str:
    """Return that closed clients of a fitted row have answers faster than a round trip; empty if none has."""
    for row in trained:
        rate = rate_per_s(row)
        if row.load.kind == "closed" and rate and (cycle_s := row.load.clients / rate) < round_trip_s:
            return (
                f"a client of run {row.run_id!r} has an answer every {1e6 * cycle_s:.2g} us, less than a round trip, "
                "so it does not wait for them; rows with the requests under way as clients would decide it"
            )
    return ""
