"""What a prediction needs to know of `fedora4` beside its model."""

from __future__ import annotations

from collections.abc import Mapping

from capplan.calibration.evidence_table import by_id, load
from capplan.models.fedora4 import MEASURED_NODES, THREADS
from capplan.models.fedora4_scenario import Fedora4Scenario
from capplan.models.quantity import Number
from capplan.models.scenario import changed
from capplan.planner.about import About, Case
from capplan.planner.prediction import Band, Capacity, Outage
from capplan.planner.system_figures import Figures, Layout

_PACED = 0.5  # of the capacity: below it queues add little, as in the document's own tests


def _claims(scenario: Fedora4Scenario) -> tuple[str, ...]:
    """Return what the document says without a measurement, or against its own."""
    rows = by_id(load("fedora4"))
    one, four = (rows[f"capacity.n{nodes}.read"].value for nodes in (1, MEASURED_NODES))
    if scenario.nodes == 1:
        return ()
    return (
        f"The document says that the read load grows linearly with the nodes: {one:,.0f} requests per second on one "
        f"would be {one * scenario.nodes:,.0f} on {scenario.nodes}. Its own {MEASURED_NODES} nodes carried "
        f"{four:,.0f}, {four / one:.2f} times one.",
    )


def _notes(case: Case, capacity: Capacity, figures: Figures) -> list[str]:
    scenario: Fedora4Scenario = case.scenario
    notes = [
        "The document's test objectives contradict one another (capplan evidence audit fedora4), so they are fitted as "
        "separate experiments that share the costs of a read, of the cluster and of a write."
    ]
    if scenario.nodes > MEASURED_NODES:
        notes.append(
            f"Other laws of the cluster's cost fit the {MEASURED_NODES} measured sizes as well and say up to 15 % more "
            "on six nodes: docs/decisions/0009 lists them."
        )
    if float(figures.peak_rate.max()) > _PACED * capacity.value:
        notes.append(
            "Requests that come at random queue, as here. The document's clients paced theirs and saw no time rise "
            "with the load, up to rates that its own cluster did not carry."
        )
    if scenario.write_share > 0 and scenario.nodes > MEASURED_NODES:
        notes.append(
            "How long a delete waits on more than four nodes is a wide guess: on four it is thrice that on three."
        )
    return notes


def _outages(case: Case, offered_tps: float) -> tuple[Outage, ...]:
    """Return what is left without one node: each has all the data."""
    lost = {"repository node": 1}
    if case.scenario.nodes == 1:
        return (Outage(lost, False, "it is the only one", Band.exactly(0.0), False),)
    fewer = changed(case.scenario, nodes=case.scenario.nodes - 1)
    capacity = case.uncertainty.of_rate(Layout(fewer, case.fitted.values(), folded=True).capacity)
    return (Outage(lost, True, "each node has all the data", capacity, capacity.low >= offered_tps),)


def _workers(scenario: Fedora4Scenario) -> Mapping[str, Number]:
    del scenario
    return {"repository": THREADS}


ABOUT = About(
    resources=("repository",),
    axes={"nodes": "repository nodes"},
    rates="Rates are mean rates over all nodes; latencies include the round trip from the clients' region.",
    claims=_claims,
    notes=_notes,
    outages=_outages,
    budget_s=0.5,
    workers=_workers,
)
