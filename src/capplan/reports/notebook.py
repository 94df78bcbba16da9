"""What a notebook shows of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capplan.planner.explore.what_if import WhatIf
from capplan.planner.size.sizing import Sizing
from capplan.reports import sizing
from capplan.systems.registry import system

if TYPE_CHECKING:
    import plotly.graph_objects as go


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
        return sizing.plot(answer, system(answer.system), page=False)
    from capplan.reports.load_curve import one_latency  # plotly is slow to import

    limits = list(answer.limits_ms())
    return one_latency(answer.metric.name, answer.curve, answer.capacity, answer.offered_tps, limits)
