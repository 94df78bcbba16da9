"""What a prediction needs to know of `rhino-shcm` beside its model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from capplan.calibration.evidence_table import by_id, load
from capplan.calibration.study import Experiment
from capplan.models.quantity import FloatArray
from capplan.models.rhino_shcm import CORES, application_cores, disk_bytes, two_hour_maximum_s
from capplan.models.rhino_shcm_scenario import SESSION_REQUESTS, RhinoShcmScenario
from capplan.planner.about import About, Case, Outside
from capplan.planner.prediction import Band, Capacity, Outage
from capplan.planner.system_figures import Figures

_BESIDE = 0.5  # doublings, of a cluster with one of its nodes on the application's server: measured only alone
_UNCACHED = 0.3  # of a layout apart without caches: they were switched off beside the application only


def _outside(scenario: RhinoShcmScenario, tests: Sequence[Experiment]) -> Outside:
    found: Outside = []
    if scenario.colocated and scenario.nodes > 1:
        found.append(
            (_BESIDE, "one Cassandra node beside the application and others apart: measured only one or other")
        )
    if not scenario.cache and not scenario.colocated:
        found.append((_UNCACHED, "no caches with Cassandra apart: measured with Cassandra beside the application only"))
    if scenario.tps is not None:
        found += _load(scenario, tests)
    return found


def _load(scenario: RhinoShcmScenario, tests: Sequence[Experiment]) -> Outside:
    """Return how far the offered rate lies outside those of the tests with Cassandra in the same place."""
    same = [float(np.max(each.scenario.tps)) for each in tests if each.scenario.colocated == scenario.colocated]
    offered = float(np.max(scenario.tps or 0.0))
    for edge, word in ((max(same), "above"), (min(same), "below")):
        if (offered - edge) * (1 if word == "above" else -1) > 0:
            words = f"{offered:,.0f} requests per second: none measured {word} {edge:,.0f} with Cassandra so placed"
            return [(abs(math.log2(offered / edge)), words)]
    return []


def _claims(scenario: RhinoShcmScenario) -> tuple[str, ...]:
    if scenario.colocated or not scenario.cache:
        return ()
    rows = by_id(load("rhino-shcm"))
    rate = rows["t5.sustained_rate"].value
    return (
        f"The document concludes that one application server with three Cassandra nodes handles {rate:,.0f} requests "
        "per second sustainably; it measured that rate for two hours.",
    )


def _notes(case: Case, capacity: Capacity, figures: Figures) -> list[str]:
    del capacity
    scenario: RhinoShcmScenario = case.scenario
    values, offered = case.fitted.values(), figures.peak_rate
    cores = case.uncertainty.of_rate(_every(application_cores(scenario, values, offered), offered))
    notes = [
        f"At that rate the application's JVM keeps {cores.value:.1f} of {CORES} cores busy ({cores.low:.1f} to "
        f"{cores.high:.1f}), beside what stalls cost; `server` is its machine, stalls included."
    ]
    longest = case.uncertainty.of_time(_every(two_hour_maximum_s(scenario, values, offered), offered) * 1e3)
    if math.isfinite(longest.value):
        notes.append(
            f"The longest answer of a run of two hours is likely to be about {longest.value:,.0f} ms "
            f"({longest.low:,.0f} to {longest.high:,.0f}): a figure of that length of run, not of the system."
        )
    return [*notes, _disk_note(), *_doubts(scenario)]


def _every(value: object, like: FloatArray) -> FloatArray:
    return np.broadcast_to(np.asarray(value, dtype=float), like.shape)


def _disk_note() -> str:
    return (
        f"Each Cassandra node needs {disk_bytes() / 1e9:.0f} GB of disk for a million subscribers: the commit log "
        "grows to its limit of 8 GB whatever the layout, and each test had about 1 GB beside it."
    )


def _doubts(scenario: RhinoShcmScenario) -> list[str]:
    doubts = [
        "That stalls of the virtual machines make the tail (a short one in some hundred requests, a long one in some "
        "thousand) is a hypothesis that fits; the document does not say what stalled."
    ]
    if scenario.nodes > 1:
        doubts.append(
            "The application server saturates long before Cassandra: more nodes carry no more, but a quorum does not "
            "see the stall of one replica, and survives its loss."
        )
    return doubts


def _outages(case: Case, offered_tps: float) -> tuple[Outage, ...]:
    """Return what is left without one Cassandra node: a quorum of each row's replicas, or nothing."""
    scenario: RhinoShcmScenario = case.scenario
    lost, needed = {"Cassandra node": 1}, scenario.replicas // 2 + 1
    if scenario.replicas - 1 < needed:
        why = f"a quorum of {scenario.replicas} {'replica' if scenario.replicas == 1 else 'replicas'} needs them all"
        return (Outage(lost, False, why, Band.exactly(0.0), False),)
    capacity = case.uncertainty.of_rate(case.layout.capacity)
    return (Outage(lost, True, "quorum of replicas", capacity, capacity.low >= offered_tps),)


ABOUT = About(
    resources=("server", "cassandra"),
    axes={"nodes": "Cassandra nodes", "replicas": "replicas"},
    rates=f"Rates are requests per second, {SESSION_REQUESTS:g} for each session; latencies are of all requests.",
    claims=_claims,
    notes=_notes,
    outside=_outside,
    outages=_outages,
    budget_s=0.7,
)
