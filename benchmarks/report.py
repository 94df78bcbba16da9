"""The measurements as text: tables for the terminal, and the same tables as a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import experiments
import growth
import precision
import sizing
import sweeps
import verbs
from contenders import YARDSTICK

Row = dict[str, Any]
Table = list[list[str]]

TITLES = {
    "mm4": "M/M/4 at 80 % load",
    "quorum": "2-of-3 quorum of single servers at 70 % load",
    "flow_shared": "Three data centres (TS4) as calibrated: shared cores",
    "flow_queued": "The same flow with cores that serve first come, first served",
}
NOTES = {
    "mm4": "Right if the mean response time is that of Erlang C.",
    "quorum": "Every request goes to three replicas and completes with the second answer. Right if mean and 99th "
    "percentile are those of the Markov chain of the three queues. Ciw has no fork-join. LINE simulates a "
    "quorum join but does not report its response time.",
    "flow_shared": "Sessions of eight messages to three data centres, each with three Cassandra nodes and two policing "
    "nodes, with the fitted values, at the mean rate of traffic with a peak rate of 10,500 requests per "
    "second. A request takes about 90 SimPy events when written by hand, 50 with callbacks. Right if mean and"
    " 99th percentile of each class and the utilisations agree with SimPy by hand (means within 5 % for the "
    "analytic solver, which approximates).",
    "flow_queued": "Processor sharing costs SimPy more than queueing does; this is the flow without it.",
}
INTRODUCTION = """\
# Speed

Written by `just bench`; do not edit. Every contender ran in its own process, pinned to one core. They took turns, and a
rate is the median of {rounds} rounds (lowest and highest in the next column). A time only counts if the answer is
right. Rates exclude imports and a first small run; the column *start-up* has these. Figures of a shared machine scatter
by ten per cent or more: read the ratios.

Machine: {processor}, {cores} cores, {system}, load average {load_average} before the start;
Python {python}, numpy {numpy}, SimPy {simpy}.
"""


def tables(found: dict[str, Any]) -> Iterator[tuple[str, str, Table]]:
    """Yield title, note and cells (the first row is the head) of each table."""
    yield from verbs.tables(found.get("verbs"))
    for name, rows in found["sections"].items():
        yield TITLES[name], NOTES[name], _contest(rows)
    yield from precision.tables(found.get("precision", {}))
    if found.get("lengths"):
        note = "Cost of a request, and growth of memory, by the number of requests. One round each."
        yield "Long runs", note, _lengths(found["lengths"])
    yield from experiments.tables(found.get("experiments"))
    yield from sweeps.tables(found.get("sweeps"))
    yield from growth.tables(found.get("growth"))
    yield from sizing.tables(found.get("sizing"))


def _contest(rows: list[Row]) -> Table:
    base = next((row["per_s"] for row in rows if row["label"] == YARDSTICK and "per_s" in row), None)
    head = ["", "version", "requests/s", "lowest to highest", f"x {YARDSTICK}", "events/s", "start-up s", "peak MiB"]
    return [head, *(_contender(row, base) for row in rows)]


def _contender(row: Row, base: float | None) -> list[str]:
    if "wrong" in row:
        return [row["label"], "", "not counted: " + row["wrong"][0], "", "", "", "", ""]
    unit = " solutions" if row["analytic"] else ""
    return [
        row["label"],
        row["version"],
        f"{row['per_s']:,.0f}{unit}",
        f"{row['per_s_low']:,.0f} to {row['per_s_high']:,.0f}",
        "" if row["analytic"] or base is None else f"{row['per_s'] / base:,.2f}",
        f"{row['events_per_s']:,.0f}" if "events_per_s" in row else "",
        f"{row['start_up_s']:.1f}",
        f"{row['peak_mib']:.0f}",
    ]


def _lengths(rows: list[Row]) -> Table:
    table = [["", "requests", "us a request", "seconds", "peak MiB"]]
    for row in rows:
        if "failed" in row:
            table.append([row["label"], f"{row['asked']:,}", "not counted: " + row["failed"], "", ""])
            continue
        cost = row["seconds"] / row["requests"] * 1e6
        cells = [f"{row['requests']:,}", f"{cost:.2f}", f"{row['seconds']:.1f}", f"{row['peak_mib']:.0f}"]
        table.append([row["label"], *cells])
    return table


def as_text(found: dict[str, Any]) -> str:
    """Return the tables for a terminal."""
    return "\n".join(f"{title}\n{_aligned(table)}\n" for title, _, table in tables(found))


def _aligned(table: Table) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    # The first column reads from the left, numbers end on the right.
    lines = (
        "  ".join(cell.ljust(width) if place == 0 else cell.rjust(width) for place, (cell, width) in enumerate(cells))
        for cells in (list(zip(row, widths, strict=True)) for row in table)
    )
    return "\n".join("  " + line.rstrip() for line in lines)


def as_page(found: dict[str, Any]) -> str:
    """Return the page of the documentation."""
    parts = [INTRODUCTION.format(rounds=found["rounds"], **found["machine"])]
    parts += [f"## {title}\n\n{note}\n\n{_markdown(table)}\n" for title, note, table in tables(found)]
    return "\n".join(parts)


def _markdown(table: Table) -> str:
    head, *rows = table
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
