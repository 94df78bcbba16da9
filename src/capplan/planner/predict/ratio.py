"""Predictions for systems that are documented as ratios only: throughput over that of a reference, and nothing else."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from capplan.calibration.system import Case
from capplan.planner.predict.prediction import Basis, Prediction


def predicted_ratio(case: Case[Any]) -> Prediction:
    """Return the band of each ratio, the reference that was asked about first.

    No capacity, latency or outage: nothing absolute is documented of such a system.
    """
    draws = case.system.ratios(case.scenario, case.values)
    ratios = {reference: case.uncertainty.of_rate(each) for reference, each in draws.items()}
    its, far = case.system.notes, case.extrapolation
    notes = (its.rates, *its.notes_on_ratios(case))
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
        evidence=Basis(case.system.citations(), far.basis, far.why, its.claims(case.scenario), notes),
        engine="analytic",
        seed=case.seed,
        version=version("capplan"),
    )
