"""The load test that accepts a proposed layout, from the situations of the sizing and the scatter of repeats."""

from __future__ import annotations

from typing import Any

from capplan.answers.results import rounded
from capplan.answers.verdict import RESOURCES
from capplan.layout.case import Case
from capplan.models.solver.operating_point import MAX_DROP_RATE
from capplan.planner.measured import REPEAT
from capplan.planner.next_test import Hours
from capplan.planner.proposal.proposal import AcceptanceRun, AcceptanceTest
from capplan.planner.size.sizing import SizedLayout, steady

_NORMAL = 1.645  # standard deviations to an end of a 90 % band


def acceptance_test(case: Case[Any], planned_tps: float, layout: SizedLayout) -> AcceptanceTest:
    """Return one run for each situation that the layout was sized for.

    Parameters
    ----------
    case : Case
        The layout with its calibration and objectives.
    planned_tps : float
        The planned peak rate, requests per second.
    layout : SizedLayout
        The layout.
    """
    known = {} if case.fitted.table is None else case.fitted.table.scatter
    metrics = [metric for each in case.objectives for metric in each.metrics() if metric.kind == "duration"]
    scatter = {
        f"{each.subject}.{each.statistic}": known.get(
            f"latency_{each.statistic}_ms", REPEAT.get(each.statistic, max(REPEAT.values()))
        )
        for each in metrics
    }
    return AcceptanceTest(
        runs=tuple(
            AcceptanceRun(each.conditions, planned_tps, steady(1 - each.risk))
            for each in layout.safety
            if each.conditions not in RESOURCES
        ),
        minutes=60 * Hours().run,
        most_dropped=MAX_DROP_RATE,
        repeats_within={name: rounded(_NORMAL * each) for name, each in scatter.items()},
    )
