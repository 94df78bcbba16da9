"""The answer of `proposal`: a sizing with everything a customer asks about it, the contract `capplan.proposal/2`.

All computation ends in this value. The page, the PDF and the workbook show it, and `verify` computes it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from capplan.answers.results import Band, Basis
from capplan.answers.verb_answer import VerbAnswer
from capplan.calibration.tables.backtest import Accuracy
from capplan.planner.next_test import NextTest
from capplan.planner.predict.prediction import Prediction
from capplan.planner.proposal.details import Details
from capplan.planner.size.sizing import Safety, SizedLayout, Sizing

RATE = "rate"
"""What runs out when growth reaches the held rate."""
DISKS = "data"
"""What runs out when growth fills the disks."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The complete question, from which the answer can be recomputed.

    Attributes
    ----------
    scenario
        The fields that are not sized, with the system, the offered rate and the objectives.
    survive
        What the layout must survive.
    confidence
        Probability with which the objectives must hold in each situation.
    growth_per_year
        Growth of the offered rate, 0.3 for 30 % a year.
    years
        Planned time.
    sized
        Lowest and highest numbers of machines that were searched, by field; the system's own where a field is missing.
    families
        Values of other fields that were searched, by field.
    currency
        Currency of the prices; `machines` where each machine counts as one.
    period
        What they are for: `once`, `hour`, `month` or `year`; empty where each machine counts as one.
    prices
        Price of a machine, by kind; null where each counts as one.
    shapes
        Shapes of machines to choose from, as in their file; null where machines are as the scenario says.
    cells
        Numbers of equal cells to choose from.
    demand
        The demand that the rate comes from, as in its file; null without one.
    engine
        What confirms layouts: `compiled`, or `analytic` where none is simulated.
    seed
        The seed of every random number.
    command
        The command line; empty where the question came from elsewhere.
    """

    scenario: Mapping[str, Any]
    survive: tuple[str, ...]
    confidence: float
    growth_per_year: float
    years: float
    sized: Mapping[str, tuple[int, int]]
    families: Mapping[str, tuple[Any, ...]]
    currency: str
    period: str
    prices: Mapping[str, float] | None
    shapes: Mapping[str, Any] | None
    cells: tuple[int, ...]
    demand: Mapping[str, Any] | None
    engine: str
    seed: int
    command: str = ""


@dataclass(frozen=True)
class Place:
    """A data centre of the layout.

    Attributes
    ----------
    name
        Its name, such as `DC 1`.
    machines
        Numbers of machines by kind; those of one cell.
    """

    name: str
    machines: Mapping[str, int]


@dataclass(frozen=True)
class MachineCount:
    """The machines of one kind.

    Attributes
    ----------
    kind
        The kind, as in a price list.
    name
        What it is, in words.
    count
        How many there are over all data centres and cells.
    price
        Price of one, in the currency of the proposal.
    shape
        Name of its shape; empty where no shapes were chosen from.
    """

    kind: str
    name: str
    count: int
    price: float
    shape: str = ""


@dataclass(frozen=True)
class FitsUntil:
    """The time at which growth exhausts a resource of the layout.

    Attributes
    ----------
    what
        What runs out: `rate`, the offered rate reaches the held one, or `data`, the data fill the disks.
    conditions
        The situation in which it does, by the words of `--survive`.
    limit
        The peak rate at which it does, requests per second.
    months
        Time until then, with its band where the growth is uncertain; null without growth.
    """

    what: str
    conditions: str
    limit: float
    months: Band | None


@dataclass(frozen=True)
class YearOfGrowth:
    """The offered rate after a number of years.

    Attributes
    ----------
    year
        Years from today.
    offered_tps
        Offered peak rate, requests per second.
    """

    year: float
    offered_tps: float


@dataclass(frozen=True)
class LatencyCurve:
    """A latency as a function of load, by the analytic solver.

    Attributes
    ----------
    request_class, statistic
        Request class and statistic.
    offered_tps
        Offered peak rates, requests per second.
    value_ms, low_ms, high_ms
        Median latency and the ends of its 90 % band at each rate, milliseconds; null where it is not bounded.
    limits_ms
        Limits that objectives set.
    """

    request_class: str
    statistic: str
    offered_tps: tuple[float, ...]
    value_ms: tuple[float | None, ...]
    low_ms: tuple[float | None, ...]
    high_ms: tuple[float | None, ...]
    limits_ms: tuple[float, ...]


@dataclass(frozen=True)
class Option:
    """The cheapest layout that survives more or less.

    Attributes
    ----------
    survive
        What it survives.
    machines
        Numbers of machines by kind; empty if there is no layout.
    cost
        What they cost; null if there is no layout.
    why_not
        Why there is no layout; empty if there is one.
    proposed
        Whether it is the layout of this proposal.
    """

    survive: tuple[str, ...]
    machines: Mapping[str, int]
    cost: float | None
    why_not: str = ""
    proposed: bool = False


@dataclass(frozen=True)
class Assumption:
    """A value that the answer assumes, beside the tested values.

    Attributes
    ----------
    field
        Its field of the scenario; `rate` for the offered rate.
    label
        What it is, in words.
    value
        The value, as text.
    tested
        What the load tests had: a value, a range, or `never tested`.
    basis
        `measured` if a load test had this value, `interpolated` between tested ones, `extrapolated` beyond; null where
        the load tests cannot tell.
    """

    field: str
    label: str
    value: str
    tested: str
    basis: Basis | None


@dataclass(frozen=True)
class MetricName:
    """A metric of a running system.

    Attributes
    ----------
    name
        Its name, as the tool has it.
    source
        What documents it.
    """

    name: str
    source: str


@dataclass(frozen=True)
class MeasuredInput:
    """An input that a customer can measure.

    Attributes
    ----------
    name
        What it is.
    how
        How to measure it, in sentences.
    metrics
        Where to read it.
    """

    name: str
    how: str
    metrics: tuple[MetricName, ...]


@dataclass(frozen=True)
class UnseenRows:
    """How well a refit predicts left-out rows of the user's load tests.

    Attributes
    ----------
    left_out
        What the refit left out, in words; empty if the table has too few loads for that.
    answer
        How good the predictions of each quantity were, beside the hardest simple rule.
    remarks
        What the other rows do not determine, in sentences; such figures are not scored.
    """

    left_out: str
    answer: Mapping[str, Accuracy]
    remarks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class EvidenceUsed:
    """The evidence behind the answer, and how well it predicts left-out figures.

    Attributes
    ----------
    rows, fitted_rows
        Documented figures, and of those the ones that the model was fitted to.
    load_tests
        Load tests that they come from.
    scenarios
        Independent scenarios among them, which the backtest leaves out one at a time.
    sources
        How to cite the sources.
    defects
        What is wrong with them.
    basis
        Whether the layout was measured, lies between measured ones, or beyond them.
    why
        Why, in one sentence.
    half_width
        Half-width of the 90 % band of the capacity without objectives, as a share of the capacity.
    unmeasured
        Figures in objectives that no load test reports, in words.
    left_out_figures
        Figures that the backtest predicted without their scenario.
    left_out_error
        Their median relative error; null if there are none.
    left_out_held
        How many of their 90 % bands contain the figure.
    left_out_banded
        How many of them have a band.
    verdict
        Whether the model beats simple rules on them.
    unseen
        The backtest of a calibration by the user's load tests; null for a system with documents.
    next_test
        What to measure next, the most useful first; null where nothing would help.
    """

    rows: int
    fitted_rows: int
    load_tests: int
    scenarios: int = 0
    sources: tuple[str, ...]
    defects: tuple[str, ...] = ()
    basis: Basis
    why: str
    half_width: float
    unmeasured: tuple[str, ...]
    left_out_figures: int = 0
    left_out_error: float | None = None
    left_out_held: int = 0
    left_out_banded: int = 0
    verdict: str = ""
    unseen: UnseenRows | None = None
    next_test: NextTest | None = None


@dataclass(frozen=True)
class FirstMinute:
    """The simulated first minute of a loss that nobody announces, at the mean of the planned rate.

    Attributes
    ----------
    loss
        What is lost, by a word of `--survive`.
    noticed_after_s
        Time for which clients and peers still send to it.
    lasts_s
        How long it is lost.
    completed_until_noticed
        Requests that complete in that time, as a share of those before the loss.
    completed_afterwards
        The same from then on, until it returns; above 1 where a backlog is served.
    unanswered
        Share of all requests from the loss on that end without an answer, after all attempts.
    back_after_s
        Time from the loss until rate and 99th percentile are within 10 % of those before; null if they never are.
    keeps_writes
        Whether every acknowledged write has a replica that is not lost; null for a system without levels.
    """

    loss: str
    noticed_after_s: float
    lasts_s: float
    completed_until_noticed: float
    completed_afterwards: float
    unanswered: float
    back_after_s: float | None
    keeps_writes: bool | None


@dataclass(frozen=True)
class MassReturn:
    """Subscribers that all come back after an outage of power or network.

    Attributes
    ----------
    peak_tps
        Their highest rate, requests per second.
    times_busy_hour
        That rate over that of the busy hour.
    served_after_s
        When the layout has served all of them at the earliest, seconds after the outage; null if it never has.
    """

    peak_tps: float
    times_busy_hour: float
    served_after_s: float | None


@dataclass(frozen=True)
class AcceptanceRun:
    """A run of the acceptance test.

    Attributes
    ----------
    conditions
        The situation, by the words of `--survive`.
    offered_tps
        Offered peak rate, requests per second.
    chance
        Probability that the run meets every objective.
    """

    conditions: str
    offered_tps: float
    chance: float


@dataclass(frozen=True)
class AcceptanceTest:
    """The load test that checks the promise.

    Attributes
    ----------
    runs
        A run for each situation that the layout was sized for.
    minutes
        Length of a run.
    most_dropped
        Share of the requests that may be dropped.
    repeats_within
        Difference between a repeat and the mean of many, as a share that 90 % of the repeats keep, by latency.
    """

    runs: tuple[AcceptanceRun, ...]
    minutes: float
    most_dropped: float
    repeats_within: Mapping[str, float]


@dataclass(frozen=True)
class Provenance:
    """The program and data that produced the figures.

    Attributes
    ----------
    version
        The version of capplan.
    seed
        The seed of every random number.
    evidence
        SHA-256 of the evidence.
    calibration
        SHA-256 of the fitted parameters.
    """

    version: str
    seed: int
    evidence: str
    calibration: str


@dataclass(frozen=True, kw_only=True)
class Proposal(VerbAnswer):
    """A layout to buy, with its supporting evidence.

    Attributes
    ----------
    details
        Who it is for and who makes it.
    asked
        The question, complete.
    sizing
        The layout, its safety in every situation, and its alternatives.
    prediction
        Capacity, latency and outages of the layout, or of one of its cells, at the planned rate.
    places
        Its data centres.
    round_trips_ms
        Round trips between them, milliseconds; empty with one data centre.
    bill
        Its machines and their prices.
    growth
        The offered rate, year by year.
    fits_until
        When growth reaches the limit, by situation.
    latency_curves
        Latency against load; that of one cell.
    failures
        How safe the layout is under each loss, asked or not, and under what else it must survive.
    first_minutes
        The first minute of each loss; empty where nothing is simulated.
    mass_return
        What subscribers ask who come back after an outage; null without a demand.
    acceptance
        The load test that checks the promise.
    survival_options
        The cheapest layout that survives less or more.
    assumptions
        What the answer assumes, with what was tested.
    inputs
        How the customer measures the inputs himself.
    evidence
        What the answer rests on.
    limits
        What the answer does not cover, in sentences.
    provenance
        What the figures were computed with.
    """

    SCHEMA = "capplan.proposal/2"
    UNBOUNDED = (*Prediction.UNBOUNDED, ("Safety", "held_tps"), ("Accuracy", "median_abs_error"), ("Accuracy", "bias"))

    details: Details
    asked: Asked
    sizing: Sizing
    prediction: Prediction
    places: tuple[Place, ...]
    round_trips_ms: tuple[tuple[float, ...], ...]
    bill: tuple[MachineCount, ...]
    growth: tuple[YearOfGrowth, ...]
    fits_until: tuple[FitsUntil, ...]
    latency_curves: tuple[LatencyCurve, ...]
    failures: tuple[Safety, ...]
    first_minutes: tuple[FirstMinute, ...]
    mass_return: MassReturn | None
    acceptance: AcceptanceTest
    survival_options: tuple[Option, ...]
    assumptions: tuple[Assumption, ...]
    inputs: tuple[MeasuredInput, ...]
    evidence: EvidenceUsed
    limits: tuple[str, ...]
    provenance: Provenance

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON types, with the digest of its content."""
        content = super().to_json()
        return {**content, "digest": digest(content)}

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON schema (draft 2020-12) of `to_json`."""
        published = super().json_schema()
        published["properties"]["digest"] = {
            "type": "string",
            "pattern": "^[0-9a-f]{64}$",
            "description": "SHA-256 of the rest, as JSON with sorted keys and without blanks.",
        }
        published["required"].append("digest")
        return published

    @property
    def chosen(self) -> SizedLayout:
        """The proposed layout."""
        if self.sizing.chosen is None:
            raise ValueError("this proposal has no layout")
        return self.sizing.chosen

    @property
    def digest(self) -> str:
        """SHA-256 of the JSON without this digest."""
        return str(self.to_json()["digest"])


def digest(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a proposal in JSON, without its own `digest`."""
    rest = {name: value for name, value in content.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
