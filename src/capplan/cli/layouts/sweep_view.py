"""A sweep for people: one line per point, with the columns in which points differ."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from capplan.calibration.system import System
from capplan.cli.views.figures import Format, given
from capplan.cli.views.lines import paragraph, put
from capplan.cli.views.tables import table
from capplan.models.number_words import rate, share, significant
from capplan.models.solver.operating_point import MAX_DROP_RATE
from capplan.planner.explore.sweep_closed import CLIENTS
from capplan.planner.explore.sweep_table import SweepPoint, band_columns, column_of, layout_options

MAX_WIDTH = 500  # columns
HEADING = 9  # columns of a line of a heading


def render(points: Sequence[SweepPoint], system: System[Any], screen: Console) -> None:
    """Print the points of a sweep."""
    answered = [point for point in points if point["refused"] is None]
    columns = {column_of(name, option): option.label for name, option in layout_options(system.scenario).items()}
    swept = {name: label for name, label in columns.items() if len({str(point[name]) for point in points}) > 1}
    narrow = screen.width
    classes = [name for name in system.reported if any(point[f"{name}_p99_ms"] is not None for point in answered)]
    lines = _lines(answered, swept, classes, banded=True)
    if _width(lines, screen) > screen.width:
        lines = _lines(answered, swept, classes, banded=False)
    screen.width = max(screen.width, _width(lines, screen))  # a table that is wrapped or cut cannot be read
    with screen.capture() as printed:
        screen.print(lines)
    screen.width = narrow
    for line in Text.from_ansi(printed.get()).split():
        line.rstrip()
        screen.print(line, soft_wrap=True)
    put(screen)
    for text in _notes(points, answered):
        paragraph(screen, text)


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
    yield _engine(answered)


def _fails(point: SweepPoint) -> bool:
    """Whether not all requests complete, or none does in time."""
    unbounded = any(isinstance(cell, float) and math.isinf(cell) for cell in point.values())
    return bool(point["drop_rate"] > MAX_DROP_RATE) or unbounded


def _engine(points: Sequence[SweepPoint]) -> str:
    parts = [point["simulation"] for point in points if point["simulation"] is not None]
    if not parts:
        return "Latencies are those of the analytic solver."
    most = f"{max(parts):.1%}".replace("%", " %")
    return f"Latencies are simulated; at most {most} of a figure is the simulation's part of its band."


def _width(lines: Table, screen: Console) -> int:
    """Return the columns of the terminal that a table takes when it takes what it needs."""
    return screen.measure(lines, options=screen.options.update(width=MAX_WIDTH)).maximum


def _closed(points: Sequence[SweepPoint]) -> bool:
    """Whether closed clients determine the rates."""
    return any(point.get(CLIENTS) is not None for point in points)


def _closed_lines(points: Sequence[SweepPoint], swept: dict[str, str], classes: Sequence[str], banded: bool) -> Table:
    """Return a line for each number of clients."""
    lines = table(
        *(("\n".join(textwrap.wrap(label, HEADING, break_long_words=False)), "right") for label in swept.values()),
        *((head, "right") for head in ("clients", "throughput")),
        *((f"{name}\np99 ms", "right") for name in classes),
        ("basis", "left"),
    )
    for point in points:
        bands = [
            _band(point, "throughput_tps", rate),
            *(_band(point, f"{name}_p99_ms", significant) for name in classes),
        ]
        cells = (" ".join(each) if banded else each[0] for each in bands)
        lines.add_row(*(_cell(point[column]) for column in swept), given(point[CLIENTS]), *cells, point["basis"])
    return lines


def _lines(points: Sequence[SweepPoint], swept: dict[str, str], classes: Sequence[str], *, banded: bool) -> Table:
    """Return a line for each point; or two, with what completes, the basis and the bands on the second."""
    if _closed(points):
        return _closed_lines(points, swept, classes, banded)
    done = ("done",) if any(_fails(point) for point in points) else ()
    both = [",\n".join(each) for each in (("TPS", *done), ("carried", "basis"))]
    heads = ("TPS", *done, "carried", "basis") if banded else both
    lines = table(
        *(("\n".join(textwrap.wrap(label, HEADING, break_long_words=False)), "right") for label in swept.values()),
        *((head, "right" if head.startswith(("TPS", "done")) else "left") for head in heads),
        ("capacity", "right"),
        *((f"{name}\np99 ms", "right") for name in classes),
    )
    for point in points:
        own = [_cell(point[column]) for column in swept]
        rates = (given(point["offered_tps"]), *([rate(point["throughput_tps"])] if done else []))
        answer, dropped, basis = _cell(point["answer"]), _dropped(point), point["basis"]
        bands = [_band(point, "capacity_tps", rate), *(_band(point, f"{name}_p99_ms", significant) for name in classes)]
        if banded:
            lines.add_row(*own, *rates, f"{answer} {dropped}".rstrip(), basis, *(" ".join(each) for each in bands))
        else:
            pairs = [rates, (answer, f"{basis}\n{dropped}".rstrip()), *bands]
            lines.add_row(*own, *(cells[0] for cells in pairs))
            lines.add_row(*("" for _ in own), *(cells[1] if len(cells) > 1 else "" for cells in pairs), style="dim")
    return lines


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
