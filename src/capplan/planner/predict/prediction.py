"""What `predict` answers: the contract `capplan.prediction/1`, as frozen data and as JSON.

Everything in front of this value computes it, everything behind it only shows it. Latencies are in milliseconds, rates
per second, utilisations are shares from 0 to 1. Nothing heavy is imported, so a prediction can be read and shown fast.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal

SCHEMA = "capplan.prediction/1"
STATISTICS = ("mean", "p50", "p90", "p95", "p99", "p999")
SIGNIFICANT = 4  # digits of a figure in JSON: more would claim what no load test can tell

Extrapolation = Literal["inside", "near", "far"]
OfferedSource = Literal["given", "default"]


@dataclass(frozen=True)
class Parts:
    """Half-widths of a band by their cause, in the unit of the figure; null is not modelled, never 0.

    Attributes
    ----------
    parameter
        Half-width due to what the evidence leaves open about the parameters.
    discrepancy
        Half-width due to what the model gets wrong at its best.
    simulation
        Half-width due to the finite length of the simulation.
    """

    parameter: float | None = None
    discrepancy: float | None = None
    simulation: float | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            part = getattr(self, each.name)
            if part is not None and not part >= 0:
                raise ValueError(f"half-width {each.name} is {part}: it must be at least 0, or None if not modelled")


@dataclass(frozen=True)
class Band:
    """A figure with its 90 % band: the 5th to 95th percentile of what a repeat of the load test would measure.

    Attributes
    ----------
    value
        The median; null where it is unbounded (the load is beyond capacity).
    low
        The 5th percentile; null where it is unbounded.
    high
        The 95th percentile; null where it is unbounded.
    parts
        Half-widths of the band by their cause.
    """

    value: float
    low: float
    high: float
    parts: Parts = Parts()

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"a band must have low <= value <= high, not {self.low}, {self.value}, {self.high}")

    @classmethod
    def exactly(cls, value: float) -> Band:
        """Take `value` as certain, such as the capacity of a cluster that refuses every request."""
        return cls(value, value, value)


@dataclass(frozen=True, kw_only=True)
class Capacity(Band):
    """Requests per second over all data centres that the layout carries, by a criterion.

    Attributes
    ----------
    criterion
        What "carries" means: the drop rate, the backlog and the objectives that had to hold.
    """

    criterion: str


@dataclass(frozen=True)
class Latency:
    """Response times of one request class in milliseconds, from the intended start; null is not modelled.

    Attributes
    ----------
    mean
        The mean.
    p50
        The median: half of the requests are faster.
    p90
        The 90th percentile.
    p95
        The 95th percentile.
    p99
        The 99th percentile.
    p999
        The 99.9th percentile.
    """

    mean: Band | None = None
    p50: Band | None = None
    p90: Band | None = None
    p95: Band | None = None
    p99: Band | None = None
    p999: Band | None = None


@dataclass(frozen=True)
class Outage:
    """What is left when part of the layout is lost, for one assumption about the consistency level.

    Attributes
    ----------
    lost
        How many of what: `dc` whole data centres, `node` Cassandra nodes in each (remaining) data centre.
    available
        Whether requests can succeed at all: availability comes before capacity.
    assumed
        The consistency level or the change of keyspace that this row assumes.
    capacity_tps
        What the survivors carry, requests per second over all data centres; 0 when not available, null when not
        modelled.
    carries_offered
        Whether the low end of that capacity is at least the whole offered rate; null when not modelled.
    """

    lost: Mapping[str, int]
    available: bool
    assumed: str
    capacity_tps: Band | None
    carries_offered: bool | None


LEAST_PROBABILITY = 1e-4
"""Of a session that is not found: what other causes than ways and queues do more often than that is not modelled."""


@dataclass(frozen=True)
class SessionNotFound:
    """How likely an interim message that goes to another data centre than the accounting start finds no session there.

    Attributes
    ----------
    consistency_read
        The consistency level of reads.
    consistency_write
        The consistency level of writes.
    rtt_ms
        Round trip between two data centres, milliseconds; the mean over pairs.
    gap_ms
        Milliseconds from the answer to the start until the interim message is at a policing node of the other data
        centre. The way of the messages between client and policing nodes is part of it.
    probability
        Probability that the row is not found. Below 0.0001 other causes decide, which are not modelled, so nothing
        smaller is told: a value, a low end or a part of 0 is less than that, and the high end is then at least 0.0001.
        A high end of 0 is exactly never, as reads and writes always share a replica.
    """

    consistency_read: str
    consistency_write: str
    rtt_ms: float
    gap_ms: float
    probability: Band


@dataclass(frozen=True)
class ComparisonVerdict:
    """One comparison of an objective, judged.

    Attributes
    ----------
    text
        The comparison as it was written.
    metric
        The figure that it is about, such as `acct.p99`.
    unit
        The unit of `value`.
    value
        The predicted figure; null is not modelled.
    met
        Whether the median satisfies the comparison; null is not modelled.
    """

    text: str
    metric: str
    unit: str
    value: Band | None
    met: bool | None


@dataclass(frozen=True)
class ObjectiveVerdict:
    """An objective, judged at the offered rate.

    Attributes
    ----------
    text
        The objective as it was written.
    met
        Whether the medians satisfy it; null when that hangs on a figure that is not modelled.
    sure
        Whether the verdict is the same anywhere in the bands.
    comparisons
        Each of its comparisons with the figure that decided it.
    """

    text: str
    met: bool | None
    sure: bool
    comparisons: tuple[ComparisonVerdict, ...]


@dataclass(frozen=True)
class Basis:
    """What a prediction rests on.

    Attributes
    ----------
    sources
        Sources of the evidence used, as they are to be cited.
    extrapolation
        Whether the layout is among the measured ones, near them, or far from every measurement.
    why
        Why, in one plain sentence.
    claims
        What documents claim about the figure without a measurement, in plain sentences, to stand beside it.
    notes
        What else a reader must know, in plain sentences.
    """

    sources: tuple[str, ...]
    extrapolation: Extrapolation
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

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON has it: plain tables, lists and finite numbers; bands to 4 significant digits."""
        return {"schema": SCHEMA, **plain(self)}


def plain(value: Any) -> Any:
    """Return frozen data as JSON has it: tables, lists, texts, finite numbers; an unbounded or missing number is None.

    Raises
    ------
    TypeError
        When it holds something that JSON has no form for.
    """
    if is_dataclass(value) and not isinstance(value, type):
        figure = isinstance(value, (Band, Parts))
        cells = {each.name: plain(getattr(value, each.name)) for each in fields(value)}
        return {name: rounded(cell) if figure else cell for name, cell in cells.items()}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if hasattr(value, "item"):  # a scalar of numpy
        return plain(value.item())
    raise TypeError(f"{value!r} has no form in JSON")


def rounded(cell: Any) -> Any:
    """Round a number to the digits that a figure deserves; leave anything else alone."""
    return float(f"{cell:.{SIGNIFICANT}g}") if isinstance(cell, float) else cell


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
