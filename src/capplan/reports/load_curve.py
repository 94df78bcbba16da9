"""The plot of an answer in a notebook: for a what-if, one latency against load, with its band."""

from __future__ import annotations

import math

import plotly.graph_objects as go

from capplan.answers.condition import capacities
from capplan.answers.number_words import rate
from capplan.planner.conditions import of_prediction
from capplan.planner.predict.predict import cautions
from capplan.planner.size.sizing import Sizing
from capplan.planner.what_if import WhatIf
from capplan.reports import figure as look
from capplan.reports import sizing
from capplan.systems.registry import system


def figure(answer: WhatIf | Sizing) -> go.Figure:
    """Return an answer as a plotly figure.

    Parameters
    ----------
    answer : WhatIf or Sizing
        Of a what-if, the latency against the rate with its band, the capacity, the offered rate and the objectives; of
        a sizing, what each layout holds in each situation, and the rate that it must.

    Returns
    -------
    plotly.graph_objects.Figure
        The figure.
    """
    if isinstance(answer, Sizing):
        return sizing.plot(answer, system(answer.system)).update_layout(template=look.either())
    curve, capacity, name = answer.curve, answer.capacity, answer.metric.name
    limits, offered_tps = list(answer.limits_ms()), answer.offered_tps
    rates, colour = curve["rate_tps"].tolist(), look.COLOURS[0]
    figure = go.Figure()
    ends = [curve["low_ms"].tolist(), curve["high_ms"].tolist()]
    values, line = curve["value_ms"].tolist(), {"color": colour, "shape": "spline"}
    hover = "%{x:,.0f} per second: %{y:.3g} ms<extra></extra>"
    named = {"name": f"{name}, 90 % band", "hovertemplate": hover}
    figure.add_traces(list(look.curve(rates, values, ends, line, middle=values, **named)))
    figure.add_trace(look.legend_entry("capacity", mode="lines", line={"color": look.NEUTRAL, "dash": "dot"}))
    figure.add_trace(look.legend_entry(f"asked: {rate(offered_tps)}", mode="lines", line={"color": look.ASKED}))
    shapes = [*look.capacity_lines(capacity), look.asked_line(offered_tps)]
    shapes += [look.objective_line(limit) for limit in limits]
    if limits:
        figure.add_trace(look.legend_entry("objective", mode="lines", line={"color": look.LIMIT, "dash": "dash"}))
    highest = max([*(each for each in ends[1] if math.isfinite(each)), *limits], default=1.0)
    lowest = min((each for each in ends[0] if each > 0), default=0.1)
    figure.update_xaxes(title_text="peak rate [per second]", **look.RATE_AXIS)
    shown = [math.log10(lowest / 1.5), math.log10(highest * 1.5)]
    figure.update_yaxes(**look.latency_axis(f"{name} [ms]"), range=shown)
    margin = {"l": 60, "r": 16, "t": 40, "b": 56}
    legend = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": look.SMALL_SIZE}}
    return figure.update_layout(template=look.either(), height=420, shapes=shapes, margin=margin, legend=legend)


def sentences(answer: WhatIf | Sizing) -> tuple[str, ...]:
    """Return an answer in sentences, with the doubts that it has on a terminal.

    Parameters
    ----------
    answer : WhatIf or Sizing
        Of a what-if, the verdict, what it rests on, and cautions; of a sizing, what to buy, how it performs, how
        certain that is, and which single machine stops it.

    Returns
    -------
    tuple of str
        The sentences, the answer first.
    """
    if isinstance(answer, Sizing):
        return sizing.sentences(answer)
    case, metric, verdict = answer.whole, answer.metric, answer.verdict
    words = "no rate and no objective to judge" if verdict is None else verdict.in_words()
    lost = [f"Not asked: loss of {', '.join(verdict.not_asked)}."] if verdict and verdict.not_asked else []
    rests = f"{case.extrapolation.basis.capitalize()}: {case.extrapolation.why}"
    basis = case.basis.of_latency(metric.subject, metric.statistic, answer.offered_tps)
    warned = cautions(case, answer.capacity, case.solution.at(answer.offered_tps))
    conditions = of_prediction(case, answer.offered_tps, verdict)
    under = [f"Capacity: {rate(answer.capacity.value)} per second{capacities(conditions)}."] if conditions else []
    return (f"Answer: {words}.", *under, f"{rests} Of {metric.name}: {basis}.", *warned, *lost)
