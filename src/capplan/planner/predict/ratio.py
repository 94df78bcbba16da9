"""Predictions for systems that are documented as ratios only: throughput over that of a reference, and nothing else."""

from __future__ import annotations

from importlib.metadata import version

from capplan.calibration.about import About, Case
from capplan.calibration.case.extrapolation import Reach
from capplan.calibration.evidence.table import cited
from capplan.calibration.system import System
from capplan.planner.predict.prediction import Basis, Prediction


def predicted_ratio(its: System, about: About, case: Case, far: Reach) -> Prediction:
    """Predict the throughput of a layout over that of each reference; the reference that was asked about comes first.

    No capacity, latency or outage: nothing absolute is documented of such a system.
    """
    if its.ratios is None:
        raise ValueError(f"{its.name} is documented with rates and times, not as ratios")
    said = its.ratios(case.scenario, case.values)
    ratios = {reference: case.uncertainty.of_rate(draws) for reference, draws in said.items()}
    notes = (about.rates, *about.notes(case))
    return Prediction(
        scenario=case.scenario.given(),
        capacity_tps=None,
        bottleneck=None,
        offered_tps=None,
        offered_source="default",
        latency_ms={},
        utilisation={},
        busy_workers={},
        throughput_ratio=next(iter(ratios.values())),
        throughput_ratios=ratios,
        evidence=Basis(cited(its.name), far.verdict, far.why, about.claims(case.scenario), notes),
        engine="analytic",
        seed=case.uncertainty.seed,
        version=version("capplan"),
    )
