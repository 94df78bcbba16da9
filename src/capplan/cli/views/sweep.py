"""A sweep for people: one line per point, with the columns in which points differ."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from capplan.calibration.system import System
from capplan.cli.views.figures import Format, given
from capplan.cli.views.tables import table
from capplan.models.number_words import rate, significant
from capplan.planner.explore.sweep_table import SweepPoint, band_columns, column_of, latency_columns, layout_options

MAX_WIDTH = 500  # columns
HEADING = 9  # columns of a line of a heading


def render(points: Sequence[SweepPoint], system: System[Any], screen: Console) -> None:
    """Print the points of a sweep."""
    answered = [point for point in points if point["refused"] is None]
    columns = {column_of(name, option): option.label for name, option in layout_options(system.scenario).items()}
    swept = {name: label for name, label in columns.items() if len({str(point[name]) for point in points}) > 1}
    lines = _lines(answered, swept, tuple(system.reported), banded=True)
    if _width(lines, screen) > screen.width:
        lines = _lines(answered, swept, tuple(system.reported), banded=False)
    screen.width = max(screen.width, _width(lines, screen))  # a table that is wrapped or cut cannot be read
    screen.print(lines)
    for why in dict.fromkeys(point["refused"] for point in points if point["refused"] is not None):
        screen.print(f"refused: {why}")
    screen.print("\nRates are totals over the whole layout; in parentheses the 5th to the 95th percentile.")
    screen.print(
        "Basis: whether such a layout was measured, lies between measured ones, or beyond them; ask predict why."
    )
    screen.print("Sustained: even the low end of the capacity is at least the rate.")
    screen.print(_engine(answered))
    if any(all(point[name] is None for name in latency_columns(system)) for point in answered):
        screen.print("Beyond capacity no latency is given: queues grow, and requests are turned away.")


def _engine(points: Sequence[SweepPoint]) -> str:
    parts = [point["simulation"] for point in points if point["simulation"] is not None]
    if not parts:
        return "Latencies are those of the analytic solver."
    most = f"{max(parts):.1%}".replace("%", " %")
    return f"Latencies are simulated; at most {most} of a figure is the simulation's part of its band."


def _width(lines: Table, screen: Console) -> int:
    """Return the columns of the terminal that a table takes when it takes what it needs."""
    return screen.measure(lines, options=screen.options.update(width=MAX_WIDTH)).maximum


def _lines(points: Sequence[SweepPoint], swept: dict[str, str], classes: Sequence[str], *, banded: bool) -> Table:
    """Return a line for each point, or two with the bands and the basis on the second."""
    lines = table(
        *(("\n".join(textwrap.wrap(label, HEADING)), "right") for label in swept.values()),
        ("TPS", "right"),
        *((("sustained", "left"), ("basis", "left")) if banded else (("sustained,\nbasis", "left"),)),
        ("capacity", "right"),
        *((f"{name}\np99 ms", "right") for name in classes),
    )
    for point in points:
        cells = [_band(point, "capacity_tps", rate), *(_band(point, f"{name}_p99_ms", significant) for name in classes)]
        named = [*(_cell(point[column]) for column in swept), given(point["offered_tps"]), _cell(point["sustained"])]
        if banded:
            lines.add_row(*named, point["basis"], *(" ".join(cell) for cell in cells))
        else:
            lines.add_row(*named, *(value for value, _ in cells))
            lines.add_row(*("" for _ in named[:-1]), point["basis"], *(band for _, band in cells), style="dim")
    return lines


def _band(point: SweepPoint, name: str, form: Format) -> tuple[str, str]:
    """Return a figure and its band, in parentheses."""
    value, low, high = (point[column] for column in band_columns(name))
    if value is None:
        return "", ""
    return form(value), f"({_end(low, form)}-{_end(high, form)})"


def _end(value: float | None, form: Format) -> str:
    return "unbounded" if value is None else form(value)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return significant(value) if isinstance(value, float) else str(value)
