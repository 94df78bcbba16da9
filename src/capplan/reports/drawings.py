"""Pictures of a proposal as SVG: identical in the page and the PDF, and byte for byte in each run.

Text is drawn as outlines, so that it looks the same on every machine and in print.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from capplan.answers.number_words import as_given, rate
from capplan.layout.components import Machines
from capplan.planner.proposal.proposal import LatencyCurve, Proposal
from capplan.planner.rule_names import statistic
from capplan.reports import figure as look
from capplan.reports import sizing as words
from capplan.systems.registry import system

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LAYOUT, CAPACITY, GROWTH, LATENCY = "layout", "capacity", "growth", "latency"
"""Names of the pictures."""
WIDE, NARROW = 6.7, 3.6  # inches: the text of an A4 page, and of a telephone
MOST_SQUARES = 120  # machines of a kind in a data centre that are drawn one by one
_LOOK: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.edgecolor": look.NEUTRAL,
    "axes.labelcolor": look.INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "grid.color": look.GRID,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "text.color": look.INK,
    "xtick.color": look.INK,
    "ytick.color": look.INK,
    "svg.fonttype": "path",
    "svg.hashsalt": "capplan",
}


def drawings(proposal: Proposal, width: float = WIDE) -> dict[str, str]:
    """Return the pictures of a proposal as SVG, by name.

    Parameters
    ----------
    proposal : Proposal
        The proposal.
    width : float
        Their width, inches.
    """
    import matplotlib as mpl

    drawn: dict[str, Callable[[Proposal, float], Figure]] = {LAYOUT: _layout, CAPACITY: _capacity, LATENCY: _latency}
    if proposal.sizing.growth_per_year:
        drawn[GROWTH] = _growth
    with mpl.rc_context(_LOOK):
        return {name: _svg(draw(proposal, width)) for name, draw in drawn.items()}


def _svg(figure: Figure) -> str:
    target = io.StringIO()
    figure.savefig(target, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return target.getvalue()


def _figure(width: float, height: float, rows: int = 1) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure((width, height), layout="constrained")
    return figure, list(figure.subplots(rows, 1, squeeze=False)[:, 0])


# The layout


def _layout(proposal: Proposal, width: float) -> Figure:
    """Draw data centres as boxes with a square per machine, side by side, or stacked if the space is narrow."""
    from matplotlib.patches import FancyBboxPatch, Rectangle

    its, places = system(proposal.sizing.system), proposal.places
    columns = min(len(places), 4 if width > NARROW else 1)
    rows = math.ceil(len(places) / columns)
    box = min((width - 0.1 - 0.2 * (columns - 1)) / columns, 2.6)
    deep = max(_box_height(each.machines, box) for each in places)
    step, gap = deep + 0.42, 0.2
    figure, (axes,) = _figure(width, rows * step + (0.25 if len(places) > 1 else 0))
    axes.set(xlim=(0, width), ylim=(-rows * step - (0.25 if len(places) > 1 else 0), 0), aspect="equal")
    axes.axis("off")
    for place, each in enumerate(places):
        left = 0.05 + (place % columns) * (box + gap)
        top = -(place // columns) * step - 0.24
        height = _box_height(each.machines, box)
        corner, rounded = (left, top - height), "round,pad=0,rounding_size=0.06"
        axes.add_patch(FancyBboxPatch(corner, box, height, boxstyle=rounded, fc=look.BOX, ec=look.NEUTRAL))
        axes.text(left, top + 0.06, each.name, fontweight="bold", va="bottom")
        y = top - 0.12
        for kind, (name, count) in enumerate(each.machines.items()):
            axes.text(
                left + 0.1, y, f"{count} {its.component(Machines).kinds[name].name}{'s' * (count != 1)}", va="top"
            )
            y -= 0.2
            across, colour = _across(box), look.COLOURS[kind % len(look.COLOURS)]
            for square in range(count if count <= MOST_SQUARES else 0):
                corner = (left + 0.1 + (square % across) * 0.13, y - 0.1 - (square // across) * 0.13)
                axes.add_patch(Rectangle(corner, 0.1, 0.1, fc=colour, ec="none"))
            y -= 0.13 * _rows_of_squares(count, box) + 0.1
    if len(places) > 1:
        axes.text(0.05, -rows * step - 0.05, _round_trips(proposal), va="top", fontsize=7.5)
    return figure


def _across(box: float) -> int:
    return max(int((box - 0.2) / 0.13), 1)


def _rows_of_squares(count: int, box: float) -> int:
    return math.ceil(count / _across(box)) if count <= MOST_SQUARES else 0


def _box_height(machines: Mapping[str, int], box: float) -> float:
    return 0.12 + sum(0.3 + 0.13 * _rows_of_squares(count, box) for count in machines.values())


def _round_trips(proposal: Proposal) -> str:
    """Return the round trips between all pairs of data centres, in words."""
    trips = proposal.round_trips_ms
    pairs = {f"{b + 1} to {a + 1}": f"{as_given(trips[a][b])} ms" for a in range(len(trips)) for b in range(a)}
    if len(set(pairs.values())) == 1:
        return f"Round trip between any two data centres: {next(iter(pairs.values()))}"
    return f"Round trips: {', '.join(f'{pair}: {time}' for pair, time in pairs.items())}" if pairs else ""


# Capacity and growth


def _capacity(proposal: Proposal, width: float) -> Figure:
    """Draw one row per situation: the capacity's band and median, and the rate held at the confidence."""
    its = system(proposal.sizing.system)
    safety = [each for each in proposal.chosen.safety if math.isfinite(each.capacity_tps.high)]
    figure, (axes,) = _figure(width, 0.95 + 0.36 * len(safety) + (0.55 if width <= NARROW else 0.1))
    end = 1.08 * max(proposal.sizing.planned_tps, *(each.capacity_tps.high for each in safety))
    for place, each in enumerate(safety):
        band, y = each.capacity_tps, -place
        shade: dict[str, Any] = {"color": look.COLOURS[0], "alpha": look.BAND_OPACITY, "lw": 0}
        axes.barh(y, band.high - band.low, 0.34, band.low, label="90 % band" * (not place), **shade)
        axes.plot([band.value] * 2, [y - 0.17, y + 0.17], color=look.COLOURS[0], lw=2, label="median" * (not place))
        axes.plot(each.held_tps, y, "D", color=look.COLOURS[1], ms=5, label="held with confidence" * (not place))
    axes.axvline(proposal.sizing.planned_tps, color=look.ASKED, lw=1.6, label="planned rate")
    names = [words.situation(each.conditions, its) for each in safety]
    labels = ["\n".join(textwrap.wrap(name, 26 if width > NARROW else 16)) for name in names]
    axes.set_yticks([-place for place in range(len(names))], labels)
    axes.set(xlim=(0, end), ylim=(-len(names) + 0.4, 0.6), xlabel="peak rate, requests per second")
    axes.grid(axis="y", visible=False)
    _rates(axes)
    _legend_below(figure, axes, width)
    return figure


def _growth(proposal: Proposal, width: float) -> Figure:
    """Draw the offered rate over the years, and the rate that is held in every situation."""
    from matplotlib.ticker import MaxNLocator

    sizing, chosen = proposal.sizing, proposal.chosen
    last = proposal.growth[-1].year
    figure, (axes,) = _figure(width, 2.6 if width > NARROW else 3.0)
    years = [last * step / 240 for step in range(241)]
    offered = [sizing.offered_tps * (1 + sizing.growth_per_year) ** year for year in years]
    axes.plot(years, offered, color=look.ASKED, lw=2, label="offered rate")
    held = [words.held(sizing, chosen, words.MONTHS * year) for year in years]
    axes.plot(years, held, color=look.COLOURS[0], lw=2, drawstyle="steps-post", label="held with confidence")
    axes.axvline(sizing.years, color=look.NEUTRAL, lw=1, ls=":", label="planned time")
    axes.set(xlim=(0, last), ylim=(0, 1.1 * max(*offered, *held)), xlabel="years from now")
    axes.set_ylabel("requests per second")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    _legend_below(figure, axes, width)
    return figure


# Latency


def _latency(proposal: Proposal, width: float) -> Figure:
    """Draw one panel per request class: curves with bands, objectives, the planned rate and the answer at it."""
    classes = list(dict.fromkeys(each.request_class for each in proposal.latency_curves))
    tall = 2.6 if width > NARROW else 2.4
    figure, panels = _figure(width, tall * max(len(classes), 1) + 0.4, max(len(classes), 1))
    for axes, name in zip(panels, classes, strict=False):
        curves = [each for each in proposal.latency_curves if each.request_class == name]
        for place, curve in enumerate(curves):
            _curve(axes, proposal, curve, look.COLOURS[place])
        planned = _planned(proposal)
        axes.axvline(planned, color=look.ASKED, lw=1.6, label="planned rate")
        if proposal.prediction.capacity is not None:
            band, grey = proposal.prediction.capacity.overload_tps, look.NEUTRAL
            axes.axvline(band.value, color=grey, lw=1.3, ls=":", label="overload, with its band")
            axes.axvspan(band.low, band.high, color=grey, alpha=look.CAPACITY_OPACITY, lw=0)
        axes.set_title(f"{name} requests")
        bottom, top = _heights(curves, planned)
        axes.set(yscale="log", ylabel="latency, ms", xlim=(0, curves[0].offered_tps[-1]), ylim=(bottom, top))
        axes.set_yticks([tick for tick in look.TICKS_MS if bottom <= tick <= top])
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axes.minorticks_off()
        _rates(axes)
    of = " of one cell" if proposal.chosen.cells > 1 else ""
    panels[-1].set_xlabel(f"peak rate{of}, requests per second")
    _legend_below(figure, panels[0], width)
    return figure


def _curve(axes: Axes, proposal: Proposal, curve: LatencyCurve, colour: str) -> None:
    value, low = (np.array(each, dtype=float) for each in (curve.value_ms, curve.low_ms))  # None: not a number
    high = [1e6 if each is None else each for each in curve.high_ms]
    axes.plot(curve.offered_tps, value, color=colour, lw=1.8, label=statistic(curve.statistic))
    axes.fill_between(curve.offered_tps, low, high, color=colour, alpha=look.BAND_OPACITY, lw=0)
    answered = getattr(proposal.prediction.latency_ms.get(curve.request_class), curve.statistic, None)
    if answered is not None and math.isfinite(answered.high):
        spread = [[answered.value - answered.low], [answered.high - answered.value]]
        axes.errorbar(_planned(proposal), answered.value, spread, fmt="o", color=colour, ms=5, capsize=3)
    for limit in curve.limits_ms:
        axes.axhline(limit, color=look.LIMIT, lw=1.6, ls="--", label="objective")


def _heights(curves: Sequence[LatencyCurve], planned: float) -> tuple[float, float]:
    """Return the axis range: it includes the planned rate and the objectives, but not the steep ends of curves."""
    shown = [1.0]
    for curve in curves:
        shown += curve.limits_ms
        for offered, *ends in zip(curve.offered_tps, curve.low_ms, curve.value_ms, curve.high_ms, strict=True):
            if offered <= 1.02 * planned:
                shown += [each for each in ends if each is not None]
    return 0.7 * min(shown), 2.5 * max(shown)


def _rates(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(lambda value, _: rate(value) if value else "0")


def _legend_below(figure: Figure, axes: Axes, width: float) -> None:
    handles, labels = axes.get_legend_handles_labels()
    named = {label: handle for handle, label in zip(handles, labels, strict=True) if label}
    columns = 3 if width > NARROW else 1
    figure.legend(named.values(), named.keys(), loc="outside lower left", ncols=columns, handlelength=2.4)


def _planned(proposal: Proposal) -> float:
    """Return the planned rate of the layout, or of one of its cells."""
    return proposal.sizing.planned_tps / proposal.chosen.cells
