"""The answer of a live validation: each predicted figure beside its measurement, with a verdict, and in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from capplan.answers.results import Band
from capplan.answers.verb_answer import VerbAnswer
from capplan.calibration.tables.bias import KindOfFigure, Outcome, half_width_of_mean, scored
from capplan.calibration.tables.scores import relative_error
from capplan.evidence.load_test_row import LoadTestRow
from capplan.lab.collectors.cassandra import Load
from capplan.lab.collectors.load import load_in_words
from capplan.planner.live.protocol import MOST, Stage

Verdict = Literal["within", "off", "inconclusive", "not judged"]
Quantity = Literal["capacity", "p50", "p99", "added p50", "not found"]


@dataclass(frozen=True)
class LiveFigure:
    """A figure, predicted and then measured.

    Attributes
    ----------
    stage
        Short name of the cluster.
    cluster
        The cluster, in words.
    operation
        `read` or `write`; of sessions the request class `auth`, `start` or `update`, or `session` for all of them.
    level
        Consistency level; those of reads and of writes, joined by `and`, where a message has both and they differ.
    row_bytes
        Bytes of a row's value.
    tls
        Whether clients used TLS.
    rtt_ms
        Round trip that was asked for between data centres; null with one data centre.
    load
        The load, in words.
    clients
        Closed clients; null with open requests.
    offered_per_s
        Rate of open requests, or of sessions for `session`; null with closed clients.
    quantity
        `capacity`: throughput of the most clients, per second. `p50`, `p99`: latency, ms. `added p50`: median latency
        of one client beyond that at LOCAL_ONE, ms. `not found`: sessions whose first message after the start found no
        row, per cent.
    unit
        `/s`, `ms` or `%`.
    predicted
        The prediction: its median.
    low
        5th percentile of what a repeat would measure.
    high
        95th percentile of the same.
    measured
        Mean of the repeats (of their logarithms, but for `added p50` and `not found`); null if none is believed.
    half_width
        How far above that mean its 90 % interval ends (Student's t), in the unit; null if there are fewer than two
        repeats.
    repeats
        Runs that are believed.
    error
        Predicted over measured, less 1; null if nothing was measured.
    threshold
        Error that is accepted, as a share.
    round_trips
        Added latency over the round trip, as it was measured by an echo; null elsewhere.
    verdict
        `within`: within the threshold of every value in the interval of the mean. `off`: beyond the threshold of the
        mean, and outside its interval. `inconclusive`: neither. Or `not judged`.
    reason
        Why it is not judged, or what else must be known.
    """

    stage: str
    cluster: str
    operation: str
    level: str
    row_bytes: int
    tls: bool
    rtt_ms: float | None
    load: str
    clients: int | None
    offered_per_s: float | None
    quantity: Quantity
    unit: str
    predicted: float
    low: float
    high: float
    measured: float | None
    half_width: float | None
    repeats: int
    error: float | None
    threshold: float
    round_trips: float | None
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class LiveValidation(VerbAnswer):
    """A live validation.

    Attributes
    ----------
    protocol
        Name of the protocol.
    one_host
        Whether nodes and load generator ran on one machine, as in a lab.
    version
        Version of capplan.
    cassandra
        Release of Cassandra.
    machine
        The machine.
    predicted_at
        When the predictions were written, ISO 8601.
    measured_from
        When the first of the predicted runs began, ISO 8601.
    predictions
        The file with the predictions.
    sha256
        Its SHA-256.
    fitted_runs
        Runs that the model was calibrated from.
    left_out_runs
        Runs that were not believed, as the load generator was their bottleneck.
    disturbed_runs
        Runs during which other processes used more than a tenth of the CPU.
    audit
        What the audit found in the runs that the model was calibrated from.
    kinds
        Bias and calibration of each kind of figure; clusters with something that the model has not are left out.
    figures
        The figures.
    """

    SCHEMA = "capplan.live-validation/4"

    protocol: str
    one_host: bool
    version: str
    cassandra: str
    machine: str
    predicted_at: str
    measured_from: str
    predictions: str
    sha256: str
    fitted_runs: int
    left_out_runs: int
    disturbed_runs: int
    audit: tuple[str, ...]
    kinds: tuple[KindOfFigure, ...]
    figures: tuple[LiveFigure, ...]

    @property
    def answer(self) -> bool:
        """Whether figures were judged, none is off, and no kind of figure is biased."""
        biased = any(each.verdict in {"low", "high"} for each in self.kinds)
        return any(each.verdict != "not judged" for each in self.figures) and self.count("off") == 0 and not biased

    def count(self, verdict: Verdict) -> int:
        """Return the number of figures with a given verdict."""
        return sum(each.verdict == verdict for each in self.figures)


# What is measured beside what was predicted

THRESHOLDS: Mapping[Quantity, float] = {
    "capacity": 0.10,
    "p50": 0.15,
    "p99": 0.30,
    "added p50": 0.10,
    "not found": 0.10,
}
"""Errors that are accepted."""
HIGHEST_LOAD = 0.8
"""Share of the measured capacity up to which latencies are judged."""
NEAR = "LOCAL_ONE"
"""The level to which other levels add latency."""
_ROUNDING = 0.005  # of a rate of three digits
_POINT = 1.0
"""Percentage points of sessions not found that are always accepted: an error of a small share says nothing."""
_UNITS: Mapping[Quantity, str] = {"capacity": "/s", "not found": "%"}
COLUMNS: Mapping[Quantity, str] = {"p50": "latency_p50_ms", "p99": "latency_p99_ms"}
BOTTLENECK = "the load generator was the bottleneck in every run"


@dataclass(frozen=True)
class Measured:
    """Repeated measurements of a figure.

    Attributes
    ----------
    value : float
        Their mean.
    half_width : float or None
        How far above it its 90 % interval ends; None for a single repeat.
    by_factor : bool
        Whether the interval begins below by the same factor; otherwise by the same difference.
    """

    value: float
    half_width: float | None
    by_factor: bool = True

    @property
    def interval(self) -> tuple[float, float]:
        """The 90 % interval of the mean; all numbers for a single repeat."""
        if self.half_width is None:
            return -math.inf, math.inf
        high = self.value + self.half_width
        return (self.value**2 / high if self.by_factor else self.value - self.half_width), high


def believed(row: LoadTestRow) -> bool:
    """Whether a run is believed: the generator was not the bottleneck, and requests were answered."""
    return not row.generator_limited and bool(row.throughput_tps)


def repeats_of(values: Sequence[float], *, logarithms: bool = True) -> Measured | None:
    """Return the mean of repeats and the half-width of its interval; None without repeats.

    The interval is that of the mean of a normal distribution with unknown variance: t s / sqrt(n).

    Parameters
    ----------
    values : sequence of float
        The repeats.
    logarithms : bool
        Whether they scatter by factors, so that means and intervals are those of their logarithms.
    """
    if not values:
        return None
    found = np.log(values) if logarithms else np.asarray(values, dtype=float)
    mean, width = float(found.mean()), half_width_of_mean(found)
    if not logarithms:
        return Measured(mean, width, by_factor=False)
    value = math.exp(mean)
    return Measured(value, None if width is None else value * math.expm1(min(width, 50.0)))


def verdict_of(predicted: float, measured: Measured, threshold: float, least: float = 0.0) -> Verdict:
    """Return whether a prediction is within the threshold of the true mean, off, or whether the repeats leave it open.

    `within` is the equivalence test by two one-sided tests at 5 % each.

    Parameters
    ----------
    predicted : float
        The prediction.
    measured : Measured
        The repeats.
    threshold : float
        Error that is accepted, as a share of the mean.
    least : float
        Error that is always accepted, in the unit.

    References
    ----------
    D. J. Schuirmann, A comparison of the two one-sided tests procedure and the power approach for assessing the
    equivalence of average bioavailability, Journal of Pharmacokinetics and Biopharmaceutics 15(6), 1987.
    """

    def near(value: float) -> bool:
        return abs(predicted - value) <= max(threshold * abs(value), least)

    low, high = measured.interval
    if measured.half_width is not None and near(low) and near(high):
        return "within"
    return "inconclusive" if near(measured.value) or low <= predicted <= high else "off"


@dataclass(frozen=True)
class Case:
    """One load on one cluster: predictions by column, runs, and the measured round trip, ms."""

    stage: Stage
    load: Load
    predicted: Mapping[str, Band]
    rows: Sequence[LoadTestRow]
    reason: str = ""
    round_trip_ms: float | None = None

    @property
    def kept(self) -> list[LoadTestRow]:
        """The runs that are believed."""
        return [row for row in self.rows if believed(row)]


def figures_of(cases: Sequence[Case]) -> tuple[LiveFigure, ...]:
    """Return the figures of all cases, stage by stage."""
    capacities = {_layout(each): each for each in cases if each.load.clients == MOST}
    near = {_beside(each): each for each in cases if each.load.clients == 1 and each.load.level == NEAR}
    found: list[LiveFigure] = []
    for each in cases:
        if each.load.clients == MOST:
            found.append(_capacity(each))
            continue
        beside = near.get(_beside(each)) if each.load.clients == 1 and each.load.level != NEAR else None
        found += [_latency(each, quantity, capacities.get(_layout(each))) for quantity in COLUMNS]
        if beside is not None and each.load.rtt_ms is not None:
            found.append(_added(each, beside))
    return tuple(sorted(found, key=_place(cases)))


def _place(cases: Sequence[Case]) -> Callable[[LiveFigure], tuple[int, ...]]:
    """Return the sort key of figures: by cluster, then by statement, then by quantity."""
    stages = list(dict.fromkeys(each.stage.name for each in cases))
    statements = dict.fromkeys(each.load.statement for each in cases)
    places: dict[tuple[str, str, int, bool], int] = {each: place for place, each in enumerate(statements)}
    quantities = list(THRESHOLDS)

    def place(each: LiveFigure) -> tuple[int, ...]:
        statement = (each.operation, each.level, each.row_bytes, each.tls)
        return stages.index(each.stage), places[statement], quantities.index(each.quantity)

    return place


def _layout(case: Case) -> tuple[object, ...]:
    return case.stage.name, case.load.statement, case.load.rtt_ms


def _beside(case: Case) -> tuple[object, ...]:
    its = case.load
    return case.stage.name, its.operation, its.row_bytes, its.tls, its.rtt_ms


def _capacity(case: Case) -> LiveFigure:
    values = [row.throughput_tps for row in case.kept if row.throughput_tps]
    return _figure(case, "capacity", case.predicted["throughput_tps"], values)


def values_of(rows: Sequence[LoadTestRow], quantity: Quantity) -> tuple[list[float], str]:
    """Return a latency's values in believed runs, and the reason if runs exist but none has the figure."""
    values = [value for row in rows if (value := getattr(row, COLUMNS[quantity])) is not None]
    return values, "too few requests for this percentile" if rows and not values else ""


def _latency(case: Case, quantity: Quantity, full: Case | None) -> LiveFigure:
    kept = case.kept
    values, reason = values_of(kept, quantity)
    capacity = None if full is None else repeats_of([row.throughput_tps for row in full.kept if row.throughput_tps])
    if capacity is not None and kept:
        load = case.load.rate_per_s or float(np.mean([row.throughput_tps or 0.0 for row in kept]))
        share = load / capacity.value
        if share > HIGHEST_LOAD * (1 + _ROUNDING):
            reason = f"beyond {100 * HIGHEST_LOAD:.0f} % of the measured capacity nothing is promised"
    return _figure(case, quantity, case.predicted[COLUMNS[quantity]], values, reason=reason)


def _added(case: Case, near: Case) -> LiveFigure:
    """Return the added latency of a level over the nearest replica, repeat by repeat."""
    own, other = ({row.repeat: row.latency_p50_ms for row in each.kept} for each in (case, near))
    pairs = [(value, other.get(repeat)) for repeat, value in own.items()]
    values = [value - beside for value, beside in pairs if value is not None and beside is not None]
    far, local = case.predicted["latency_p50_ms"], near.predicted["latency_p50_ms"]
    width = math.hypot(far.high - far.low, local.high - local.low) / 2
    value = far.value - local.value
    found = _figure(case, "added p50", Band(value, value - width, value + width), values, logarithms=False)
    if not case.load.rtt_ms:  # without a round trip, no share of it is defined
        return replace(found, verdict="inconclusive") if found.verdict == "within" else found
    trips = None if found.measured is None else found.measured / (case.round_trip_ms or case.load.rtt_ms)
    return replace(found, round_trips=trips)


def _figure(
    case: Case,
    quantity: Quantity,
    predicted: Band,
    values: Sequence[float],
    *,
    reason: str = "",
    logarithms: bool = True,
) -> LiveFigure:
    its = case.load
    alike = ("operation", "level", "row_bytes", "tls", "rtt_ms", "clients")
    asked: dict[str, Any] = {name: getattr(its, name) for name in alike}
    asked |= {"load": load_in_words(its.clients, its.rate_per_s), "offered_per_s": its.rate_per_s}
    if not values and not reason:
        reason = BOTTLENECK if case.rows else "it was not measured"
    measured = repeats_of(values, logarithms=logarithms)
    found = judged(case.stage, asked, quantity, predicted, measured, len(values), reason=reason)
    return replace(found, reason=found.reason or case.reason or case.stage.note)


def judged(  # what a line of the table has
    stage: Stage,
    asked: Mapping[str, Any],
    quantity: Quantity,
    predicted: Band,
    measured: Measured | None,
    repeats: int,
    *,
    reason: str = "",
) -> LiveFigure:
    """Return a figure with its verdict.

    Parameters
    ----------
    stage : Stage
        The cluster.
    asked : mapping
        What clients asked for: the fields of a `LiveFigure` from `operation` to `offered_per_s`.
    quantity : str
        What the figure is.
    predicted : Band
        What was predicted.
    measured : Measured or None
        The repeats; None if none is believed.
    repeats : int
        How many there are.
    reason : str
        Why it cannot be judged; empty if it can.
    """
    verdict: Verdict = "not judged"
    if measured is not None and not reason:
        least = _POINT if quantity == "not found" else 0.0
        verdict = verdict_of(predicted.value, measured, THRESHOLDS[quantity], least)
    return LiveFigure(
        stage=stage.name,
        cluster=stage.title,
        **asked,
        quantity=quantity,
        unit=_UNITS.get(quantity, "ms"),
        predicted=predicted.value,
        low=predicted.low,
        high=predicted.high,
        measured=None if measured is None else measured.value,
        half_width=None if measured is None else measured.half_width,
        repeats=repeats,
        error=None if measured is None or not measured.value else relative_error(predicted.value, measured.value),
        threshold=THRESHOLDS[quantity],
        round_trips=None,
        verdict=verdict,
        reason=reason,
    )


# Bias and calibration, by kind of figure

TOLERATED: Mapping[Quantity, float] = {"capacity": 1.15, "p50": 1.18, "p99": 1.33, "added p50": 1.15, "not found": 1.33}
"""Factors within which the ratio of a kind is called unbiased."""
_MESSAGES = ("read", "write")


def kinds_of(figures: Sequence[LiveFigure], unmodelled: Sequence[str] = ()) -> tuple[KindOfFigure, ...]:
    """Return the score of each kind of figure.

    Parameters
    ----------
    figures : sequence of LiveFigure
        All figures; those that were not judged, or that are no positive number, do not count.
    unmodelled : sequence of str
        Clusters with something that the model is known not to have.
    """
    quantities = list(TOLERATED)
    found: dict[tuple[Quantity, str], list[Outcome]] = {}
    for each in sorted(figures, key=lambda figure: (quantities.index(figure.quantity), _kind(figure))):
        if each.verdict == "not judged" or each.stage in unmodelled or each.measured is None:
            continue
        if min(each.predicted, each.measured) > 0:
            outcome = Outcome(each.stage, each.predicted, each.low, each.high, each.measured)
            found.setdefault((each.quantity, _kind(each)), []).append(outcome)
    return tuple(scored(kind, own, TOLERATED[quantity]) for (quantity, kind), own in found.items())


def _kind(figure: LiveFigure) -> str:
    if figure.quantity == "added p50":
        return "added p50" if figure.rtt_ms else "added p50, no round trip"
    if figure.quantity in {"capacity", "not found"}:
        return figure.quantity
    if figure.operation not in _MESSAGES:
        return f"{figure.quantity}, sessions"
    return f"{figure.quantity}, {'open requests' if figure.clients is None else 'closed clients'}"


# In words, the same on the screen and on the page

USUAL_BYTES = 100
VERDICTS: Mapping[Verdict, str] = {"within": "yes", "off": "OFF", "inconclusive": "?", "not judged": "-"}
MESSAGES = {"auth": "authorizations", "update": "updates and stops"}
LEGEND = (
    "Capacity in requests/s, latencies, think and RTT in ms, sessions not found in per cent; ± is the 90 % interval of "
    "the mean. Thresholds: capacity 10 %, p50 15 %, p99 30 % up to 80 % of the capacity, added p50 and not found 10 %. "
    "Right: yes, within the threshold of every value in the interval; OFF, beyond the threshold and outside the "
    "interval; ?, the repeats do not decide; -, not judged."
)
_HUNDRED, _TEN = 100, 10
_MOST_PERCENT = 999


KIND_HEADS = (
    "kind",
    "figures",
    "clusters",
    "predicted / measured",
    "too low",
    "50 %",
    "80 %",
    "90 %",
    "95 %",
    "PIT",
    "verdict",
)
KIND_LEGEND = (
    "Predicted / measured: geometric mean of the clusters' medians, with its 90 % interval by cluster. Too low: "
    "figures predicted below the measured. 50 to 95 %: share of figures in those bands, the last two with their "
    "intervals. PIT: figures in each fifth of the predicted distribution, from the lowest; equal counts are right."
)


def kind_cells(kind: KindOfFigure) -> tuple[str, ...]:
    """Return the cells of a kind of figure, as `KIND_HEADS`."""
    ratio = f"{kind.ratio:.2f}"
    if kind.ratio_low is not None and kind.ratio_high is not None:
        ratio += f" ({kind.ratio_low:.2f} to {kind.ratio_high:.2f})"
    *inner, wide, widest = kind.bands
    return (
        kind.kind,
        str(kind.figures),
        str(kind.clusters),
        ratio,
        f"{kind.below} of {kind.figures}",
        *(f"{each.held:.0%}" for each in inner),
        *(f"{each.held:.0%} ({each.low:.0%} to {each.high:.0%})" for each in (wide, widest)),
        " ".join(map(str, kind.pit)),
        _bias(kind),
    )


def _bias(kind: KindOfFigure) -> str:
    if kind.verdict == "not decided":
        least = "at least " if kind.clusters == 1 else ""
        return f"not decided: {least}{kind.more_clusters} more cluster{'s' * (kind.more_clusters > 1)}"
    return "unbiased" if kind.verdict == "unbiased" else f"{kind.verdict} by {abs(kind.ratio - 1):.0%}"


def cells(figure: LiveFigure) -> tuple[str, ...]:
    """Return a figure's cells: load, quantity, prediction, measurement, error and verdict."""
    return (
        load(figure),
        figure.quantity,
        f"{number(figure.predicted)} ({number(figure.low)} to {number(figure.high)})",
        measured(figure),
        "" if figure.error is None else _percent(100 * figure.error),
        VERDICTS[figure.verdict],
    )


def statement(figure: LiveFigure) -> str:
    """Return the statement of a figure in words, such as `reads at LOCAL_ONE`."""
    parts = [f"{MESSAGES.get(figure.operation, f'{figure.operation}s')} at {figure.level}"]
    parts += [f"rows of {figure.row_bytes:,} B"] if figure.row_bytes != USUAL_BYTES else []
    parts += ["TLS"] if figure.tls else []
    return ", ".join(parts)


def load(figure: LiveFigure) -> str:
    """Return the load of a figure, in a few words."""
    return figure.load if figure.rtt_ms is None else f"{figure.load}, RTT {figure.rtt_ms:g}"


def measured(figure: LiveFigure) -> str:
    """Return the measured value with the interval of its mean."""
    if figure.measured is None:
        return ""
    if figure.half_width is None or not figure.measured:
        return number(figure.measured)
    share = 100 * figure.half_width / abs(figure.measured)
    return f"{number(figure.measured)} ± {f'{share:.0f} %' if share <= _MOST_PERCENT else 'any'}"


def _percent(value: float) -> str:
    return f"{value:+.0f} %" if abs(value) <= _MOST_PERCENT else f"x {1 + value / 100:.0f}"


def number(value: float) -> str:
    """Return a figure with two or three digits."""
    if abs(value) >= _HUNDRED:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= _TEN else f"{value:.2g}"


def round_trips(figures: Sequence[LiveFigure]) -> list[str]:
    """Return the number of round trips that each level waits for, as sentences."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in figures:
        if each.round_trips is not None:
            found.setdefault((each.operation, each.level), []).append(f"{each.round_trips:.2f} at {each.rtt_ms:g} ms")
    return [
        f"Round trips that a {operation} at {level} waits for: {', '.join(said)}."
        for (operation, level), said in found.items()
    ]


def sessions(figures: Sequence[LiveFigure]) -> list[str]:
    """Return explanations of the session figures, as sentences; none without such figures."""
    if not any(each.quantity == "not found" for each in figures):
        return []
    return [
        "A session has the eight messages of openprovider, each in the next data centre: an authorization (read), the "
        "start (write), five updates and the stop (read, then write). The rate is that of sessions.",
        "Think is the mean time from an answer to the next message, and latency counts from the end of that time. Not "
        "found: sessions whose first update found no row, as it came before the row did.",
        "The costs are those of the fitted runs. There are no RADIUS servers and no pool of workers.",
    ]


def reasons(figures: Sequence[LiveFigure]) -> list[str]:
    """Return why figures are not judged and further remarks, each with the figures concerned."""
    found: dict[str, list[str]] = {}
    for each in figures:
        if each.reason:
            found.setdefault(each.reason, []).append(f"{each.quantity} of {statement(each)}, {load(each)}")
    return [f"{reason[0].upper()}{reason[1:]} ({_few(names)})." for reason, names in found.items()]


def _few(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} figures, such as {names[0]}"
