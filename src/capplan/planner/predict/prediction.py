"""What `predict` answers: the contract `capplan.prediction/2`, as frozen data and as JSON.

All computation ends in this value; views and reports only show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from capplan.models.objective import Metric, scaled
from capplan.models.results import (
    STATISTICS,
    Band,
    Capacity,
    Latency,
    ObjectiveVerdict,
    Outage,
    SessionNotFound,
    plain,
    rounded,
)

if TYPE_CHECKING:
    from pandas import DataFrame

SCHEMA = "capplan.prediction/2"
COLUMNS = ("quantity", "request_class", "statistic", "value", "low", "high", "unit")

OfferedSource = Literal["given", "default"]


@dataclass(frozen=True)
class EvidenceSummary:
    """What a prediction rests on.

    Attributes
    ----------
    sources
        Citations of the evidence.
    basis
        Whether the layout was `measured`, is `interpolated` between measured ones, or `extrapolated` beyond them.
    why
        Why, in one sentence.
    claims
        What documents claim about such a layout without a measurement.
    notes
        What else a reader must know.
    """

    sources: tuple[str, ...]
    basis: Literal["measured", "interpolated", "extrapolated"]
    why: str
    claims: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a layout sustains, how fast it responds, and how certain that is.

    Attributes
    ----------
    scenario
        The layout and the load that were asked about; keys are those of a scenario file.
    capacity_tps
        The rate that the layout sustains; null for systems that are documented as ratios only.
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
        The same for each documented reference, the requested one first; else empty.
    outages
        What remains when parts of the layout are lost.
    session_not_found
        How likely a session that just started is not found in another data centre, by consistency levels and gap,
        the requested levels first; empty with one data centre, beyond capacity, and for systems without sessions.
    objectives
        Verdicts on the given objectives.
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
    evidence: EvidenceSummary
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

    def to_frame(self) -> DataFrame:
        """Return the figures in tidy form, one statistic a row; what is not modelled has no row.

        Returns
        -------
        DataFrame
            Columns `quantity`, `request_class`, `statistic`, `value`, `low`, `high`, `unit`; figures to 4 significant
            digits, an unbounded one is infinite. Yes is 1 and no is 0.
        """
        from pandas import DataFrame  # slow to import

        rows = [(*key, *_rounded(band), unit) for *key, band, unit in self._rows()]
        if self.offered_tps is not None:  # not rounded: it is what was asked for
            rows.insert(
                self.capacity_tps is not None,
                ("offered", "", self.offered_source, self.offered_tps, self.offered_tps, self.offered_tps, "1/s"),
            )
        return DataFrame(rows, columns=list(COLUMNS))

    def _rows(self) -> Iterator[tuple[str, str, str, Band, str]]:
        if self.capacity_tps is not None:
            yield "capacity", "", "maximum", self.capacity_tps, "1/s"
        if self.throughput_ratio is not None:
            yield "throughput_ratio", "", "mean", self.throughput_ratio, "1"
        for reference, band in self.throughput_ratios.items():
            yield f"throughput_ratio.{reference}", "", "mean", band, "1"
        for name, latency in self.latency_ms.items():
            for statistic in STATISTICS:
                if (band := getattr(latency, statistic)) is not None:
                    yield "latency", name, statistic, band, "ms"
        for resource, band in self.utilisation.items():
            yield f"{resource}.utilisation", "", "mean", band, "1"
        for tier, band in self.busy_workers.items():
            yield f"{tier}.busy_workers", "", "mean", band, "1"
        yield from self._verdict_rows()

    def _verdict_rows(self) -> Iterator[tuple[str, str, str, Band, str]]:
        """Yield outages, sessions and objectives; `statistic` says which one."""
        for outage in self.outages:
            case = f"without {lost_in_words(outage.lost)}; {outage.assumed}"
            yield "outage.available", "", case, Band.exactly(outage.available), "1"
            if outage.capacity_tps is not None:
                yield "outage.capacity", "", case, outage.capacity_tps, "1/s"
            if outage.carries_offered is not None:
                yield "outage.carries_offered", "", case, Band.exactly(outage.carries_offered), "1"
        for session in self.session_not_found:
            levels = f"reads {session.consistency_read}, writes {session.consistency_write}"
            case = f"{levels}; gap {session.gap_ms:g} ms, RTT {session.rtt_ms:.3g} ms"
            yield "session_not_found", "", case, session.probability, "1"
        for objective in self.objectives:
            if objective.met is not None:
                yield "objective.met", "", objective.text, Band.exactly(objective.met), "1"


def _rounded(band: Band) -> tuple[float, ...]:
    return tuple(rounded(float(number)) for number in (band.value, band.low, band.high))


def lost_in_words(lost: Mapping[str, int]) -> str:
    """Return what an outage takes: `1 DC`, `2 DCs`, `1 node per DC`, `1 DC and 1 node per DC`."""
    words = {"dc": ("DC", "DCs"), "node": ("node per DC", "nodes per DC")}
    names = ((count, *words.get(name, (name, f"{name}s"))) for name, count in lost.items())
    return " and ".join(f"{count} {one if count == 1 else many}" for count, one, many in names) or "nothing"
