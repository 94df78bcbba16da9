"""A sweep for people: one line per point, with the columns in which points differ."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from capplan.calibration.system import System
from capplan.models.number_words import rate, share, significant
from capplan.models.solver.operating_point import MAX_DROP_RATE
from capplan.planner.explore.sweep_closed import CLIENTS
from capplan.planner.explore.sweep_table import SweepPoint, band_columns, column_of, layout_options
from capplan.reports.document import Block, Cell, Column, Line, Paragraph, Table, ruled, texts
from capplan.reports.numbers import Format, given

HEADING = 9  # columns of a line of a heading


def describe(points: Sequence[SweepPoint], system: System[Any]) -> Iterator[Block]:
    """Yield the description of the points of a sweep."""
    answered = [point for point in points if point["refused"] is None]
    columns = {column_of(name, option): option.label for name, option in layout_options(system.scenario).items()}
    swept = {name: label for name, label in columns.items() if len({str(point[name]) for point in points}) > 1}
    classes = [name for name in system.reported if any(point[f"{name}_p99_ms"] is not None for point in answered)]
    lines = _closed_lines if _closed(answered) else _lines
    yield lines(answered, swept, classes, banded=True)
    yield Line()
    for text in _notes(points, answered):
        yield Paragraph(text)


def _notes(points: Sequence[SweepPoint], answered: Sequence[SweepPoint]) -> Iterator[str]:
    """Yield the sentences below the table."""
    for why in dict.fromkeys(point["refused"] for point in points if point["refused"] is not None):
        yield f"refused: {why}"
    yield "Rates are totals over the whole layout; in parentheses the 5th to the 95th percentile."
    yield "Basis: whether such a layout was measured, lies between measured ones, or beyond them; ask predict why."
    if not _closed(answered):
        yield "Carried, with the objectives met: yes if the risk of a miss is at most 10 %, no from 90 % on."
    if any(_fails(point) for point in answered):
        yield (
            "Done: mean rate of completed requests, which latencies count. A percentage is the share dropped; if "
            "nothing is dropped, the queue grows without limit."
        )
    parts = [point["simulation"] for point in answered if point["simulation"] is not None]
    if not parts:
        yield "Latencies are those of the analytic solver."
    else:
        most = f"{max(parts):.1%}".replace("%", " %")
        yield f"Latencies are simulated; at most {most} of a figure is the simulation's part of its band."


def _fails(point: SweepPoint) -> bool:
    """Whether not all requests complete, or none does in time."""
    unbounded = any(isinstance(cell, float) and math.isinf(cell) for cell in point.values())
    return bool(point["drop_rate"] > MAX_DROP_RATE) or unbounded


def _closed(points: Sequence[SweepPoint]) -> bool:
    """Whether closed clients determine the rates."""
    return any(point.get(CLIENTS) is not None for point in points)


def _heads(swept: dict[str, str]) -> list[Column]:
    """Return the columns of what was swept."""
    return [
        Column("\n".join(textwrap.wrap(label, HEADING, break_long_words=False)), right=True) for label in swept.values()
    ]


def _p99(classes: Sequence[str]) -> list[Column]:
    return [Column(f"{name}\np99 ms", right=True) for name in classes]


def _closed_lines(
    points: Sequence[SweepPoint], swept: dict[str, str], classes: Sequence[str], *, banded: bool
) -> Table:
    """Return a line for each number of clients, without bands where they do not fit."""
    heads = [Column(head, right=True) for head in ("clients", "throughput")]
    rows = []
    for point in points:
        bands = [
            _band(point, "throughput_tps", rate),
            *(_band(point, f"{name}_p99_ms", significant) for name in classes),
        ]
        cells = (" ".join(each) if banded else each[0] for each in bands)
        rows.append([*(_cell(point[column]) for column in swept), given(point[CLIENTS]), *cells, point["basis"]])
    narrow = [_closed_lines(points, swept, classes, banded=False)] if banded else None
    return ruled([*_heads(swept), *heads, *_p99(classes), Column("basis")], texts(rows), whole=True, narrow=narrow)


def _lines(points: Sequence[SweepPoint], swept: dict[str, str], classes: Sequence[str], *, banded: bool) -> Table:
    """Return a line for each point; where that is too wide two, what completes, the basis and bands on the second."""
    done = ("done",) if any(_fails(point) for point in points) else ()
    both = [",\n".join(each) for each in (("TPS", *done), ("carried", "basis"))]
    heads = ("TPS", *done, "carried", "basis") if banded else both
    columns = [*_heads(swept), *(Column(head, right=head.startswith(("TPS", "done"))) for head in heads)]
    rows: list[list[Cell]] = []
    for point in points:
        own = [_cell(point[column]) for column in swept]
        rates = (given(point["offered_tps"]), *([rate(point["throughput_tps"])] if done else []))
        answer, dropped, basis = _cell(point["answer"]), _dropped(point), point["basis"]
        bands = [_band(point, "capacity_tps", rate), *(_band(point, f"{name}_p99_ms", significant) for name in classes)]
        if banded:
            first = [*own, *rates, f"{answer} {dropped}".rstrip(), basis, *(" ".join(each) for each in bands)]
            rows.append(list(map(Cell, first)))
        else:
            pairs = [rates, (answer, f"{basis}\n{dropped}".rstrip()), *bands]
            second = [*("" for _ in own), *(cells[1] if len(cells) > 1 else "" for cells in pairs)]
            rows.append(list(map(Cell, [*own, *(cells[0] for cells in pairs)])))
            rows.append([Cell(each, style="dim") for each in second])
    narrow = [_lines(points, swept, classes, banded=False)] if banded else None
    return ruled([*columns, Column("capacity", right=True), *_p99(classes)], rows, whole=True, narrow=narrow)


def _dropped(point: SweepPoint) -> str:
    """Return what share is dropped: `(12 %)`; nothing if so little is that the rate is carried."""
    dropped = point["drop_rate"]
    return f"({share(dropped)})" if dropped > MAX_DROP_RATE else ""


def _band(point: SweepPoint, name: str, form: Format) -> tuple[str, str]:
    """Return a figure and its band, in parentheses."""
    value, low, high = (point[column] for column in band_columns(name))
    if value is None:
        return "", ""
    return form(value), "" if low == high else f"({form(low)}-{form(high)})"


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return significant(value) if isinstance(value, float) else str(value)
