"""What `predict` answers: the contract `capplan.prediction/1`, as frozen data and as JSON.

Everything in front of this value computes it, everything behind it only shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from capplan.models.objective import Metric, scaled
from capplan.models.results import Band, Capacity, Latency, ObjectiveVerdict, Outage, SessionNotFound, plain

SCHEMA = "capplan.prediction/1"

OfferedSource = Literal["given", "default"]


@dataclass(frozen=True)
class Basis:
    """What a prediction rests on.

    Attributes
    ----------
    sources
        Sources of the evidence used, as they are to be cited.
    basis
        Whether the layout was `measured`, is `interpolated` between measured ones, or `extrapolated` beyond them.
    why
        Why, in one plain sentence.
    claims
        What documents claim about the figure without a measurement, in plain sentences, to stand beside it.
    notes
        What else a reader must know, in plain sentences.
    """

    sources: tuple[str, ...]
    basis: Literal["measured", "interpolated", "extrapolated"]
    why: str
    claims: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a layout carries, how fast it answers, and how sure that is.

    Attributes
    ----------
    scenario
        The layout and the load that were asked about; keys are those of a scenario file.
    capacity_tps
        What the layout carries; null for systems that are documented as ratios only.
    bottleneck
        The resource that saturates first; null when no capacity is modelled.
    offered_tps
        Requests per second over all data centres at which latency and utilisation hold; null when no capacity is
        modelled and no rate was given.
    offered_source
        `given` by the user, or the `default`, 80 % of capacity.
    latency_ms
        Response times by request class.
    utilisation
        Share of each resource that is busy at the offered rate.
    busy_workers
        Mean number of busy workers of one node, by tier.
    throughput_ratio
        Throughput over that of the reference layout, for systems that are documented as ratios only; else null.
    throughput_ratios
        The same beside each reference that the documents have, the one that was asked about first; else empty.
    outages
        What is left when parts of the layout are lost.
    session_not_found
        How likely a session that was just started is not found in another data centre, by consistency levels and gap,
        those asked for first; empty with one data centre, beyond capacity, and for systems without such sessions.
    objectives
        The objectives that were given, judged.
    evidence
        What the prediction rests on.
    engine
        The solver: `analytic`, `simpy` or `compiled`.
    seed
        The seed of every random number.
    version
        The version of capplan.
    """

    scenario: Mapping[str, Any]
    capacity_tps: Capacity | None
    bottleneck: str | None
    offered_tps: float | None
    offered_source: OfferedSource
    latency_ms: Mapping[str, Latency]
    utilisation: Mapping[str, Band]
    busy_workers: Mapping[str, Band]
    throughput_ratio: Band | None = None
    throughput_ratios: Mapping[str, Band] = field(default_factory=dict)
    outages: tuple[Outage, ...] = ()
    session_not_found: tuple[SessionNotFound, ...] = ()
    objectives: tuple[ObjectiveVerdict, ...] = ()
    evidence: Basis
    engine: str
    seed: int
    version: str

    def figure(self, metric: Metric) -> Band | None:
        """Return the figure that an objective is about in SI, None where it is not modelled; not the drop rate."""
        if metric.name == "capacity":
            return self.capacity_tps
        if metric.statistic == "utilisation":
            return self.utilisation.get(metric.subject)
        if metric.statistic == "busy_workers":
            return self.busy_workers.get(metric.subject)
        band = getattr(self.latency_ms.get(metric.subject), metric.statistic, None)
        return None if band is None else scaled(band, 1e-3)

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON has it: plain tables, lists and finite numbers; bands to 4 significant digits."""
        return {"schema": SCHEMA, **plain(self)}


def prediction_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of what `Prediction.to_json` returns; every key is required."""
    from capplan.models.language.document import schema  # pydantic takes longer to import than all the rest

    published = schema(Prediction)
    published["properties"] = {"schema": {"const": SCHEMA, "type": "string"}, **published["properties"]}
    for part in (published, *published["$defs"].values()):
        part["additionalProperties"] = False
        part["required"] = list(part["properties"])
        for its in part["properties"].values():
            its.pop("default", None)  # what stands in a document, not what Python may leave out
    for name in ("Band", "Capacity"):
        for number in ("value", "low", "high"):
            its = published["$defs"][name]["properties"][number]
            its["type"] = ["number", "null"]  # JSON has no infinity
    return published
