"""Latencies as the solver says them, without a simulation."""

from __future__ import annotations

from capplan.calibration.case.solution import Figures
from capplan.calibration.case.uncertainty import Uncertainty
from capplan.models.results import STATISTICS, Latency
from capplan.planner.predict.percentile_order import in_order


def solved_latency(figures: Figures, uncertainty: Uncertainty) -> dict[str, Latency]:
    """Return the latencies by reported class, in ms, with the bands of the parameters and the discrepancy."""
    return {name: _of_class(figures, uncertainty, name) for name in figures.asked}


def _of_class(figures: Figures, uncertainty: Uncertainty, name: str) -> Latency:
    latencies = zip(STATISTICS, figures.latencies_s(name), strict=True)
    bands = {statistic: uncertainty.of_time(each * 1e3, name, statistic) for statistic, each in latencies}
    return in_order(Latency(**bands))
