"""The answer of `predict`: the contract `capplan.prediction/5`, as frozen data and as JSON, with its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from capplan.answers.condition import Condition
from capplan.answers.number_words import as_given
from capplan.answers.objective import Lookup, Metric, Objective, scaled
from capplan.answers.results import (
    STATISTICS,
    Band,
    Basis,
    Capacity,
    Latency,
    ObjectiveVerdict,
    Outage,
    SessionNotFound,
    rounded,
)
from capplan.answers.verb_answer import UNBOUNDED_BANDS, VerbAnswer
from capplan.answers.verdict import CONFIDENCE, NORMAL, OVERLOAD, JudgedSituation, Verdict, answer, verdict
from capplan.calibration.tables.identifiability import Judge
from capplan.calibration.tables.solved_rows import Solved
from capplan.layout.basis import FigureBasis
from capplan.layout.case import Case
from capplan.layout.solution import Figures
from capplan.layout.table_rows import Load, TableRow
from capplan.layout.table_system import table_of, unloaded
from capplan.models.solver.known_errors import KnownError
from capplan.planner.population import rests_on
from capplan.planner.predict.promises import Promise

if TYPE_CHECKING:
    from pandas import DataFrame


COLUMNS = ("quantity", "request_class", "statistic", "value", "low", "high", "unit", "basis")

OfferedSource = Literal["given", "default"]


@dataclass(frozen=True)
class Limit:
    """A resource that limits the capacity.

    Attributes
    ----------
    resource
        Its name in objectives and in `utilisation`; `workers`, `driver` or `native-transport` for pools.
    name
        What it is, in words.
    assumed
        Whether no measurement shows that it limits the capacity: that it does is the model's assumption.
    utilisation_at_capacity
        Mean share of it that is busy at the capacity; null for a pool.
    """

    resource: str
    name: str
    assumed: bool
    utilisation_at_capacity: Band | None


@dataclass(frozen=True, kw_only=True)
class OneMore:
    """What one more machine of a kind in each data centre adds.

    Attributes
    ----------
    field
        The field of the scenario that says how many there are.
    value
        How many there would be, as given on a command line.
    capacity_tps
        The capacity then, requests per second: the median of the layout, times what the solver finds that it grows.
    """

    field: str
    value: str
    capacity_tps: float


@dataclass(frozen=True, kw_only=True)
class Offered:
    """The offered rate, requests per second over all data centres, and whether it is carried.

    Attributes
    ----------
    peak_tps
        The peak rate, at which latency and utilisation hold.
    mean_tps
        The mean rate of the same traffic.
    source
        `given` by the user, or the `default`, 80 % of the capacity.
    overload_risk
        Probability that the layout does not carry it, whatever the objectives.
    throughput_tps
        Mean rate of the requests that complete, at most `mean_tps`.
    drop_rate
        Share of the requests that are dropped. A failed request ends its session, whose others are never sent.
    """

    peak_tps: float
    mean_tps: float
    source: OfferedSource
    overload_risk: float
    throughput_tps: Band
    drop_rate: Band


@dataclass(frozen=True)
class EvidenceSummary:
    """The evidence behind a prediction.

    Attributes
    ----------
    sources
        Citations of the evidence.
    basis
        Whether the layout was `measured`, is `interpolated` between measured ones, or `extrapolated` beyond them;
        `model only` for a network, of which no evidence is known. Each figure has its own basis beside it.
    why
        Why, in one sentence.
    claims
        What documents claim about such a layout without a measurement.
    cautions
        What may change a decision.
    notes
        What else a reader must know.
    """

    sources: tuple[str, ...]
    basis: Basis
    why: str
    claims: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Prediction(VerbAnswer):
    """The rate that a layout carries, its latencies, and how certain they are.

    Attributes
    ----------
    system
        The name of the system, or of the network.
    layout
        The layout in words.
    scenario
        The layout and the load that were asked about; keys are those of a scenario file. For a network: its file, what
        it was taken for, and the rate and the objectives that were given.
    verdict
        Whether it carries the offered rate with the objectives met; null where neither was given, so that there is
        nothing to judge. Exit code 0 without a verdict and for *yes*, 1 otherwise.
    conditions
        What nobody measured: its value in all figures and in the verdict, up to which value the verdict holds (without
        one, that the rate stays below the median capacity), and the capacity at the expected values.
    capacity
        The rate that the layout carries; of closed traffic, the throughput of its clients. Null for systems that are
        documented as ratios only.
    limits
        The resources in the order in which they saturate, the bottleneck first; empty when no capacity is modelled.
    one_more
        What one more machine of each kind adds; empty where an objective limits the capacity.
    offered
        The offered rate; null when no capacity is modelled, and for closed traffic, which has no rate.
    lasts_months
        Months until the offered rate reaches the capacity, if it grows as asked; the capacity after the worst of the
        losses if the question names some. Null if no growth is asked about.
    latency_ms
        Response times by request class, at the offered rate.
    promises
        What can be promised of each percentile at the asked confidence; empty for systems whose nodes do not pause.
    tails_guessed
        Mechanisms that make tails and are in the percentiles as guesses.
    tails_not_modelled
        Mechanisms that are known to make tails of latency and that the model lacks.
    solver_errors
        Conditions that hold here and under which latencies of the analytic solver are off by more than elsewhere (mean
        5 %, 99th percentile 15 %), as measured; empty if there are none, or latencies are simulated.
    utilisation
        Share of each resource that is busy at the offered rate.
    busy_workers
        Mean number of busy workers of one node, by tier.
    throughput_ratios
        Throughput over that of a reference layout, for systems that are documented as ratios only: by documented
        reference, the requested one first; else empty.
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

    SCHEMA = "capplan.prediction/5"
    UNBOUNDED = (
        *UNBOUNDED_BANDS,
        *(("Promise", each) for each in ("promise_ms", "without_pauses_ms", "promise_without_pauses_ms")),
    )

    system: str
    layout: str
    scenario: Mapping[str, Any]
    verdict: Verdict | None = None
    conditions: tuple[Condition, ...] = ()
    capacity: Capacity | None = None
    limits: tuple[Limit, ...] = ()
    one_more: tuple[OneMore, ...] = ()
    offered: Offered | None = None
    lasts_months: Band | None = None
    latency_ms: Mapping[str, Latency] = field(default_factory=dict)
    promises: tuple[Promise, ...] = ()
    tails_guessed: tuple[str, ...] = ()
    tails_not_modelled: tuple[str, ...] = ()
    solver_errors: tuple[KnownError, ...] = ()
    utilisation: Mapping[str, Band] = field(default_factory=dict)
    busy_workers: Mapping[str, Band] = field(default_factory=dict)
    throughput_ratios: Mapping[str, Band] = field(default_factory=dict)
    outages: tuple[Outage, ...] = ()
    session_not_found: tuple[SessionNotFound, ...] = ()
    objectives: tuple[ObjectiveVerdict, ...] = ()
    evidence: EvidenceSummary
    engine: str
    seed: int
    version: str

    @property
    def bottleneck(self) -> str | None:
        """The resource that saturates first; None when no capacity is modelled."""
        return self.limits[0].resource if self.limits else None

    @property
    def peak_tps(self) -> Band | None:
        """The highest peak rate; None when no capacity is modelled."""
        return None if self.capacity is None else self.capacity.peak_tps

    def figure(self, metric: Metric) -> Band | None:
        """Return an objective's figure in SI, None if it is not modelled; not for the drop rate."""
        if metric.name == "capacity":
            return self.peak_tps
        if metric.statistic == "utilisation":
            return self.utilisation.get(metric.subject)
        if metric.statistic == "busy_workers":
            return self.busy_workers.get(metric.subject)
        band = getattr(self.latency_ms.get(metric.subject), metric.statistic, None)
        return None if band is None else scaled(band, 1e-3)

    def to_frame(self) -> DataFrame:
        """Return the figures in tidy form, one statistic per row; figures that are not modelled have no row.

        Returns
        -------
        DataFrame
            Columns `quantity`, `request_class`, `statistic`, `value`, `low`, `high`, `unit`, `basis`; figures to 4
            significant digits, an unbounded one is infinite.
        """
        from pandas import DataFrame  # slow to import

        rows = [(*key, *_rounded(band), unit, band.basis or "") for *key, band, unit in self._rows()]
        if self.offered is not None:  # not rounded: it is what was asked for
            peak, mean = self.offered.peak_tps, self.offered.mean_tps
            rows[2:2] = [
                ("offered.peak", "", self.offered.source, peak, peak, peak, "1/s", ""),
                ("offered.mean", "", self.offered.source, mean, mean, mean, "1/s", ""),
            ]
        return DataFrame(rows, columns=list(COLUMNS))

    def _rows_of_conditions(self) -> Iterator[tuple[str, str, str, Band, str]]:
        for each in self.conditions:
            name = f"condition.{each.option.removeprefix('--').replace('-', '_')}"
            if each.break_even is not None:
                yield f"{name}.break_even", "", "maximum", Band.exactly(each.break_even), "%" if each.drawn else "1"
            for at in (each.at_low, each.at_high):
                if at is not None and at.capacity_tps is not None:
                    yield f"{name}.{at.value:g}.capacity", "", "maximum", Band.exactly(at.capacity_tps), "1/s"

    def _rows(self) -> Iterator[tuple[str, str, str, Band, str]]:
        if self.capacity is not None:
            yield "capacity.peak", "", "maximum", self.capacity.peak_tps, "1/s"
            yield "capacity.mean", "", "maximum", self.capacity.mean_tps, "1/s"
            yield "capacity.overload", "", "maximum", self.capacity.overload_tps, "1/s"
            yield "capacity.burst_ratio", "", "mean", self.capacity.burst_ratio, "1"
        yield from self._rows_of_conditions()
        if self.offered is not None:
            yield "offered.overload_risk", "", "mean", Band.exactly(self.offered.overload_risk), "1"
            yield "offered.throughput", "", "mean", self.offered.throughput_tps, "1/s"
            yield "offered.drop_rate", "", "mean", self.offered.drop_rate, "1"
        if self.lasts_months is not None:
            yield "lasts", "", "mean", self.lasts_months, "months"
        for reference, band in self.throughput_ratios.items():
            yield f"throughput_ratio.{reference}", "", "mean", band, "1"
        for name, latency in self.latency_ms.items():
            for statistic, band in statistics(latency):
                yield "latency", name, statistic, band, "ms"
        for resource, band in self.utilisation.items():
            yield f"{resource}.utilisation", "", "mean", band, "1"
        for tier, band in self.busy_workers.items():
            yield f"{tier}.busy_workers", "", "mean", band, "1"
        for outage in self.outages:
            yield from _outage_rows(outage)
        yield from self._verdict_rows()

    def _verdict_rows(self) -> Iterator[tuple[str, str, str, Band, str]]:
        """Yield sessions and objectives; `statistic` says which one."""
        for session in self.session_not_found:
            levels = f"reads {session.consistency_read}, writes {session.consistency_write}"
            case = f"{levels}; gap {session.gap_ms:g} ms, RTT {as_given(session.rtt_ms)} ms"
            yield "session_not_found", "", case, session.probability, "1"
        for objective in self.objectives:
            if objective.risk is not None:
                yield "objective.risk", "", objective.text, Band.exactly(objective.risk), "1"
        for each in () if self.verdict is None else self.verdict.situations:
            yield "verdict.risk", "", each.situation, Band.exactly(each.risk), "1"


def _outage_rows(outage: Outage) -> Iterator[tuple[str, str, str, Band, str]]:
    """Yield the figures of an outage; `statistic` says which outage, after the statistic of a latency."""
    case = f"without {outage.name}; {outage.assumed}"
    yield "outage.available", "", case, Band.exactly(outage.available), "1"
    if outage.capacity_tps is not None:
        yield "outage.capacity", "", case, outage.capacity_tps, "1/s"
    if outage.risk is not None:
        yield "outage.risk", "", case, Band.exactly(outage.risk), "1"
    for name, latency in outage.latency_ms.items():
        for statistic, band in statistics(latency):
            yield "outage.latency", name, f"{statistic} {case}", band, "ms"
    for resource, band in outage.utilisation.items():
        yield f"outage.{resource}.utilisation", "", case, band, "1"


def statistics(latency: Latency) -> Iterator[tuple[str, Band]]:
    """Yield the statistics of a latency that are modelled, by name."""
    for statistic in STATISTICS:
        if (band := getattr(latency, statistic)) is not None:
            yield statistic, band


def _rounded(band: Band) -> tuple[float, ...]:
    return tuple(rounded(float(number)) for number in (band.value, band.low, band.high))


B = TypeVar("B", bound=Band)


def with_basis(band: B, basis: Basis) -> B:
    """Return a figure with its basis."""
    return replace(band, basis=basis)


def model_only(band: Band) -> Band:
    """Return a figure that was never measured, in any layout."""
    return with_basis(band, "model only")


def latencies_with_basis(
    latency_ms: Mapping[str, Latency], basis: FigureBasis, rate_per_s: float
) -> dict[str, Latency]:
    """Return latencies at a peak rate with the basis of each statistic."""

    def based(name: str, latency: Latency) -> Latency:
        bands = statistics(latency)
        return Latency(**{each: with_basis(band, basis.of_latency(name, each, rate_per_s)) for each, band in bands})

    return {name: based(name, latency) for name, latency in latency_ms.items()}


def judged_by_bands(
    prediction: Prediction,
    objectives: Sequence[Objective],
    lookup: Lookup,
    confidence: float = CONFIDENCE,
    left_out: tuple[str, ...] = (),
) -> Prediction:
    """Return a prediction with its verdict.

    Figures of one run are high or low together, so the likeliest miss is the risk.

    Parameters
    ----------
    prediction : Prediction
        The prediction, without objectives; its risk of overload counts if a rate was given.
    objectives : sequence of Objective
        The objectives.
    lookup : function
        Gives the band of a metric, SI; None where it is not modelled.
    confidence : float
        Confidence of the verdict.
    left_out : tuple of str
        What the figures leave out of what was described, such as retries: it makes a *yes* uncertain.
    """
    found = tuple(each.judged(lookup, each.risk(lookup), confidence) for each in objectives)
    risks = {each.text: each.risk for each in found if each.risk is not None}
    if prediction.offered is not None:
        risks = {OVERLOAD: prediction.offered.overload_risk, **risks}
    given = prediction.offered is not None and prediction.offered.source == "given"
    if not objectives and not given:
        return prediction
    limit = max(risks, key=lambda name: risks[name], default="")
    risk = risks.get(limit, 0.0)
    normal = JudgedSituation(situation=NORMAL, answer=answer(risk, confidence), risk=risk, limit=limit)
    missing = tuple(each.text for each in found if each.risk is None)
    return replace(
        prediction, objectives=found, verdict=verdict([normal], confidence, not_modelled=(*left_out, *missing))
    )


def left_open(case: Case[Any], load: Load, solved: Solved) -> tuple[str, ...]:
    """Return a sentence on what the fitted rows leave undetermined for a layout under a load; none if nothing.

    Parameters
    ----------
    case : Case
        The layout with its calibration.
    load : Load
        The load that is asked about.
    solved : Solved
        The layout under it.
    """
    table = table_of(case.system)
    if table is None:
        return ()
    if case.fitted.clusters:
        return rests_on(case)
    why = Judge(table, case.fitted).reason(TableRow("asked", None, unloaded(case.scenario), load, {}), solved)
    return (why[0].upper() + why[1:] + ".",) if why else ()


def left_open_at_a_rate(case: Case[Any], figures: Figures) -> tuple[str, ...]:
    """Return the same sentence for open traffic, from the figures at its rate."""
    solution = case.solution
    busy = {name: figures.utilisation(name) for name in solution.resources}
    load = Load("open", rate_per_s=float(np.median(figures.peak_rate)))
    return left_open(case, load, Solved({}, solution.capacity, busy, {}, uneven=False))
