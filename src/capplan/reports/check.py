"""A check for people: the result for each objective in each situation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from capplan.models.number_words import rate, share
from capplan.planner.check import Checked, CheckedObjective
from capplan.reports import Later
from capplan.reports.document import Block, Fact, Line, Paragraph, title

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from capplan.reports import figure as look
else:
    go, look = Later("plotly.graph_objects"), Later("capplan.reports.figure")

_ROW, _BOTTOM = 34, 58  # pixels
_SHORT = 0.08  # a bar too short for its text


def describe(found: Checked, quiet: bool = False) -> Iterator[Block]:
    """Yield the description of a check; if quiet, only the failures."""
    if not quiet:
        yield title(f"{found.system}: {found.layout}, {rate(found.offered_tps)} TPS peak")
        yield Line()
    for each in found.objectives:
        if not (quiet and each.answer == "yes"):
            yield Paragraph(f"{each.answer:9s}  {each.in_words()}", hanging=11)
    if not quiet:
        yield Line()
        yield Fact("Answer", found.verdict.in_words())
        if found.verdict.not_asked:
            yield Fact("Not asked", f"loss of {', '.join(found.verdict.not_asked)}")


def write_plot(found: Checked, path: Path) -> None:
    """Write the plot to a page, an SVG or a PNG; see `capplan.reports.figure.write`."""
    look.write(path, f"{found.system}: check", lambda page: plot(found, page))


def plot(found: Checked, page: bool = True) -> go.Figure:
    """Return the figure: one bar per objective and situation, whose length is the risk."""
    figure = go.Figure()
    for answer, colour in zip(("yes", "uncertain", "no"), look.COLOURS, strict=False):
        chosen = [each for each in found.objectives if each.answer == answer]
        figure.add_trace(
            go.Bar(
                x=[100 * each.risk for each in chosen],
                y=[_label(each) for each in chosen],
                orientation="h",
                name=answer,
                marker={"color": colour},
                text=[each.why or f"{100 * each.risk:.1f} %" for each in chosen],
                textposition=["inside" if each.risk > _SHORT else "outside" for each in chosen],
                hovertemplate="%{y}: %{text}<extra></extra>",
            )
        )
    accepted = 1 - found.verdict.confidence
    figure.add_vline(x=100 * accepted, line={"color": look.LIMIT, "width": 2, "dash": "dash"})
    text = look.wrapped(
        found.layout,
        f"At {rate(found.offered_tps)} per second. Bars: risk that a repeat of the load test misses the objective. "
        f"Dashed line: the accepted risk, {share(accepted)}.",
    )
    figure.update_xaxes(title_text="risk [%]", range=[0, 100])
    figure.update_yaxes(
        categoryorder="array",
        categoryarray=[_label(each) for each in found.objectives],
        autorange="reversed",
        automargin=True,
        tickfont={"size": look.SMALL_SIZE},
    )
    legend = look.above(y=1, yanchor="bottom", font={"size": look.SMALL_SIZE, "color": look.NEUTRAL})
    inner, bars = _ROW * max(len(found.objectives), 3), {"bargap": 0.25, "barmode": "overlay"}
    look.frame(figure, f"{found.system}: check", text, inner, page, above=24, below=_BOTTOM, legend=legend, **bars)
    return figure


def _label(each: CheckedObjective) -> str:
    return f"{each.objective}<br>{look.small(each.conditions + (' (guessed)' if each.guessed else ''))}"
