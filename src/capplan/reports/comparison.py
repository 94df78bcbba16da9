"""A comparison for people: differences of two layouts with their intervals, and the drivers of one difference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from capplan.models.number_words import rate, share, significant
from capplan.planner.compare import Comparison, Difference, Driver, Interval
from capplan.reports import Later
from capplan.reports.document import Block, Fact, Line, Paragraph, more, stacked, table, title

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from capplan.reports import figure as look
else:
    go, look = Later("plotly.graph_objects"), Later("capplan.reports.figure")

_ROW, _GAP = 28, 96  # pixels
_DRAWN_DRIVERS = 8

_MOST_DRIVERS = 6
_NONE = 0.002  # of a figure: a smaller difference is none


def describe(found: Comparison, drivers: bool = False) -> Iterator[Block]:
    """Yield the description of a comparison, on request with the drivers of a difference."""
    yield title(f"{found.system}, two layouts at {rate(found.offered_tps)} TPS peak")
    yield Line()
    for label, words in zip(("First", "Second"), found.layouts, strict=True):
        yield Fact(label, words)
    yield Fact("Changed", ", ".join(found.changed) or "nothing")
    for label, name, verdict in zip(("Answer", ""), ("first", "second"), found.verdicts, strict=False):
        yield Fact(label, f"{name} {verdict.in_words()}")
    yield Line()
    heads = ["Figure", "first", "second", "second - first"]
    rows = [
        [each.figure, _number(each.first.value, each.unit), _number(each.second.value, each.unit), _gap(each)]
        for each in found.differences
    ]
    yield table(heads, rows, stacked(heads, rows))
    if drivers:
        yield Line()
        yield _drivers(found)
    yield Line()
    yield more([*([] if drivers else ["--drivers"]), "--plot FILE", "--json"])


def _number(value: float, unit: str) -> str:
    if not math.isfinite(value):
        return "unbounded"
    if unit == "1/s":
        return f"{rate(value)} TPS"
    return share(value) if unit == "1" else f"{significant(value)} ms"


def _gap(each: Difference) -> str:
    """Return a signed difference with its interval; `none` if it is too small to matter."""
    gap, base = each.difference, abs(each.first.value)
    if not any(math.isfinite(value) for value in (gap.value, gap.low, gap.high)):
        return "unbounded"
    if max(abs(gap.low), abs(gap.high)) <= _NONE * base:
        return "none"
    value, low, high = (_signed(one, each.unit, _step(gap)) for one in (gap.value, gap.low, gap.high))
    return f"{value} ({low} to {high})"


def _step(gap: Interval) -> float:
    """Return the last digit to show of a difference: the second digit of its larger end."""
    ends = [abs(end) for end in (gap.value, gap.low, gap.high) if math.isfinite(end)]
    return 10.0 ** (math.floor(math.log10(max(*ends, 1e-12))) - 1)


def _signed(value: float, unit: str, step: float) -> str:
    if not math.isfinite(value):
        return f"{'+' if value > 0 else '-'}unbounded"
    factor = 100 if unit == "1" else 1
    last = max(-math.floor(math.log10(step * factor) + 1e-9), 0)
    rounded = round(value / step) * step * factor
    return f"{rounded:+,.{last}f}{' %' if unit == '1' else ''}"


def _drivers(found: Comparison) -> Block:
    driven = next(each for each in found.differences if each.figure == found.driven)
    if not found.drivers:
        return Paragraph(f"No parameter moves the difference of {found.driven}.")
    rows = [_driver(each, driven) for each in found.drivers[:_MOST_DRIVERS]]
    heads = [f"What drives {found.driven}", "variance", "difference where it is low, high"]
    return table(heads, rows, [Paragraph("  ".join(row), hanging=2) for row in rows])


def _driver(each: Driver, driven: Difference) -> list[str]:
    low, high = (_signed(value, driven.unit, _step(driven.difference)) for value in (each.low, each.high))
    return [each.parameter, share(each.share), f"{low}, {high}"]


def write_plot(found: Comparison, path: Path) -> None:
    """Write the plot to a page, an SVG or a PNG; see `capplan.reports.figure.write`."""
    look.write(path, f"{found.system}: comparison", lambda page: plot(found, page))


def plot(found: Comparison, page: bool = True) -> go.Figure:
    """Return the figure: differences in per cent with their intervals, and below them the drivers of one."""
    shown = [each for each in found.differences if _is_shown(each)]
    drivers = found.drivers[:_DRAWN_DRIVERS]
    heights = [_ROW * max(len(shown), 2), *([_ROW * len(drivers)] if drivers else [])]
    inner = sum(heights) + _GAP * (len(heights) - 1)
    headings = ["second less first, % of the first", f"what drives the difference of {found.driven}"]
    figure = look.make_subplots(
        rows=len(heights),
        cols=1,
        row_heights=heights,
        vertical_spacing=_GAP / inner,
        subplot_titles=headings[: len(heights)],
    )
    figure.add_trace(_differences(shown), row=1, col=1)
    figure.add_vline(x=0, row=1, col=1, line={"color": look.NEUTRAL, "width": 1})
    if drivers:
        _add_drivers(figure, found, drivers)
    first, second = found.layouts
    text = look.wrapped(
        f"First: {first}",
        f"Second: {second}",
        f"At {rate(found.offered_tps)} per second. Bars: 90 % intervals. Grey: the sign is not certain.",
    )
    figure.update_yaxes(autorange="reversed", automargin=True, tickfont={"size": look.SMALL_SIZE})
    figure.update_annotations(font={"size": look.HEADING_SIZE}, x=0, xanchor="left")
    legend = look.above(x=1, xanchor="right", y=0.0, yanchor="bottom")
    look.frame(figure, f"{found.system}: comparison", text, inner, page, above=34, below=56, legend=legend)
    return figure


def _is_shown(each: Difference) -> bool:
    ends = (each.difference.low, each.difference.high, each.first.value)
    return all(math.isfinite(value) for value in ends) and each.first.value > 0


def _differences(shown: Sequence[Difference]) -> go.Scatter:
    values, lows, highs = (
        [100 * getattr(each.difference, end) / each.first.value for each in shown] for end in ("value", "low", "high")
    )
    certain = [min(low, high) > 0 or max(low, high) < 0 for low, high in zip(lows, highs, strict=True)]
    return go.Scatter(
        x=values,
        y=[each.figure for each in shown],
        mode="markers",
        marker={"size": 9, "color": [look.COLOURS[0] if each else look.NEUTRAL for each in certain]},
        error_x={
            "array": [high - value for high, value in zip(highs, values, strict=True)],
            "arrayminus": [value - low for low, value in zip(lows, values, strict=True)],
            "color": look.NEUTRAL,
            "thickness": 1.5,
        },
        showlegend=False,
        hovertemplate="%{y}: %{x:+.1f} %<extra></extra>",
    )


def _add_drivers(figure: go.Figure, found: Comparison, drivers: Sequence[Driver]) -> None:
    """Add a tornado plot: one bar per driver, between the differences at its low and at its high end."""
    driven = next(each for each in found.differences if each.figure == found.driven)
    middle = driven.difference.value
    for end, colour in (("low", look.COLOURS[1]), ("high", look.COLOURS[0])):
        bar = go.Bar(
            x=[getattr(each, end) - middle for each in drivers],
            base=middle,
            y=[each.parameter for each in drivers],
            orientation="h",
            name=f"where it is {end}",
            marker={"color": colour},
            customdata=[round(100 * each.share, 1) for each in drivers],
            hovertemplate="%{y}: %{x:,.3~g}, %{customdata} % of the variance<extra></extra>",
        )
        figure.add_trace(bar, row=2, col=1)
    words = {"1/s": "per second", "ms": "ms", "1": "share"}[driven.unit]
    figure.update_xaxes(title_text=f"difference of {found.driven} [{words}]", row=2, col=1)
    figure.update_layout(barmode="overlay")
