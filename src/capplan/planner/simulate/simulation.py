"""The answer of `simulate`: the contract `capplan.simulation/4`, as frozen data and as JSON.

Latencies are in milliseconds, rates per second, utilisations are shares from 0 to 1. The figures are those of one set
of parameters, and the same for both engines, so neither the engine nor its speed stands here.

From a sample of runs to the estimates of a simulation, their intervals, and the precision that these must reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from capplan.answers.results import STATISTICS
from capplan.answers.verb_answer import VerbAnswer
from capplan.errors import InputError, one_of
from capplan.grouped import grouped
from capplan.layout.solution import LEVELS, kind_of
from capplan.simulator.output import ConfidenceInterval
from capplan.simulator.results.run import ClassReport, Clock, PoolReport, Run, StationReport
from capplan.simulator.sample import Sample, Statistic, parse_precision

if TYPE_CHECKING:
    from pandas import DataFrame


EVERY_CLASS = "*"
COUNTS = ("started", "completed", "dropped", "timed_out", "unfinished", "retries")
"""What is counted of the requests of a class."""
COLUMNS = ("kind", "name", "quantity", "statistic", "value", "half_width", "unit")

OfferedSource = Literal["given", "default", "network"]
Horizon = Literal["steady", "finite"]
WarmupSource = Literal["given", "mser", "none"]
Verdict = Literal["steady", "overloaded", "unclear"]


@dataclass(frozen=True)
class Estimate:
    """A figure, with the half-width of its 95 % interval.

    Attributes
    ----------
    value
        The figure; null without observations. In steady state it is that of all replications together, over a finite
        horizon the mean over replications.
    half_width
        Half-width of the 95 % interval (Student's t): between replications, or where there are fewer than five of the
        steady state, between overlapping batches of their time. Of a percentile it is at least 0.4 %, the resolution
        of the histogram. Null where there are too few observations.
    """

    value: float
    half_width: float | None

    @classmethod
    def of(cls, interval: ConfidenceInterval) -> Estimate:
        """Return the estimate with this interval."""
        return cls(interval.value, interval.half_width)


@dataclass(frozen=True, kw_only=True)
class LatencyFigures:
    """Latencies of the measured requests that completed, in milliseconds.

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
    max
        The longest; null when no request completed. In steady state it is what was seen and has no interval: the
        longer one looks, the longer it is. Over a finite horizon it is the mean of the longest of each replication.
    hdr_histogram
        All of them as an encoded HdrHistogram (V2, compressed, base64), in nanoseconds.
    """

    mean: Estimate
    p50: Estimate
    p90: Estimate
    p95: Estimate
    p99: Estimate
    p999: Estimate
    max: Estimate
    hdr_histogram: str


@dataclass(frozen=True, kw_only=True)
class LatencyByClock:
    """Latencies from the intended and from the actual start.

    Attributes
    ----------
    intended
        From the intended start: includes waiting before the request is sent.
    actual
        From the actual start, as many load generators report. Equal unless the traffic is throttled.
    """

    intended: LatencyFigures
    actual: LatencyFigures


@dataclass(frozen=True, kw_only=True)
class Little:
    """Little's law for the requests that clients wait for: `number` is about `rate_per_s` times `response_s`.

    Attributes
    ----------
    number
        Mean number of requests that clients wait for.
    rate_per_s
        Requests that start, per second.
    response_s
        Mean time from the actual start to the end, however a request ended.
    error
        Relative error; what remains are the requests that cross an end of the window.
    """

    number: Estimate
    rate_per_s: Estimate
    response_s: Estimate
    error: float


@dataclass(frozen=True, kw_only=True)
class ClassFigures:
    """Outcome of the measured requests of one class: those that started after the warm-up.

    Attributes
    ----------
    started
        How many there are, in all replications.
    completed
        How many were answered.
    dropped
        How many were dropped, after their last attempt.
    timed_out
        How many clients gave up, after their last attempt.
    unfinished
        How many never ended, because a station or pool stood still.
    retries
        Attempts beyond the first.
    offered_per_s
        Requests that started, per second.
    throughput_per_s
        Requests that completed after the warm-up and before the end of the traffic, per second.
    drop_rate
        Share that was dropped or timed out. Where there was none, the half-width is what independent losses could be
        at most (3 over the number of requests); losses that come in clusters are rarer and larger.
    latency_ms
        Latencies of those that completed.
    little
        The check by Little's law.
    """

    started: int
    completed: int
    dropped: int
    timed_out: int
    unfinished: int
    retries: int
    offered_per_s: Estimate
    throughput_per_s: Estimate
    drop_rate: Estimate
    latency_ms: LatencyByClock
    little: Little


@dataclass(frozen=True, kw_only=True)
class StationFigures:
    """Statistics of a station after the warm-up, over all replications.

    Attributes
    ----------
    servers
        How many servers it has.
    utilisation
        Share of its servers that was busy.
    mean_queue
        Mean number of visits that waited; under processor sharing, of those beyond the servers.
    mean_number
        Mean number of visits, waiting or served.
    visits
        How many visits were served.
    mean_wait_ms
        Mean wait before service; under processor sharing, the response beyond the demand. Null without visits.
    mean_response_ms
        Mean time from joining to leaving; null without visits.
    drops
        Visits that expired or were refused.
    paused_share
        Share of the time in which it stood still for a pause.
    """

    servers: int
    utilisation: Estimate
    mean_queue: Estimate
    mean_number: Estimate
    visits: int
    mean_wait_ms: Estimate
    mean_response_ms: Estimate
    drops: int
    paused_share: Estimate


@dataclass(frozen=True, kw_only=True)
class StationKind:
    """Stations of one kind combined: `cassandra/dc1/1`, `cassandra/dc1/2`, ... are `cassandra`.

    Attributes
    ----------
    count
        How many there are.
    utilisation
        Mean over them of the share of busy servers.
    least_utilisation
        That of the least loaded one.
    most_utilisation
        That of the most loaded one.
    mean_queue
        Mean over them of the mean number that waited.
    mean_wait_ms
        Mean wait over all visits; null without visits.
    paused_share
        Mean share of the time in which one stood still for a pause.
    visits
        How many visits were served by all of them.
    drops
        Visits that expired or were refused.
    """

    count: int
    utilisation: Estimate
    least_utilisation: Estimate
    most_utilisation: Estimate
    mean_queue: Estimate
    mean_wait_ms: Estimate
    paused_share: Estimate
    visits: int
    drops: int


@dataclass(frozen=True, kw_only=True)
class PoolFigures:
    """Statistics of a pool after the warm-up, over all replications.

    Attributes
    ----------
    size
        How many units it has.
    mean_busy
        Mean number of busy units.
    p99_busy
        Number of busy units that was not exceeded for 99 % of the time.
    mean_queue
        Mean number of requests that waited for a unit.
    taken
        How many units were handed out.
    drops
        Requests that found its queue full.
    mean_wait_ms
        Mean wait for a unit; null when none was taken.
    mean_hold_ms
        Mean time for which a unit was held; null when none was taken.
    """

    size: int
    mean_busy: Estimate
    p99_busy: Estimate
    mean_queue: Estimate
    taken: int
    drops: int
    mean_wait_ms: Estimate
    mean_hold_ms: Estimate


@dataclass(frozen=True, kw_only=True)
class PoolKind:
    """Pools of one kind combined.

    Attributes
    ----------
    count
        How many there are.
    size
        Mean number of units of one.
    mean_busy
        Mean over them of the mean number of busy units.
    most_p99_busy
        Number of busy units that was not exceeded for 99 % of the time, of the pool where it is largest.
    mean_queue
        Mean over them of the mean number that waited.
    mean_wait_ms
        Mean wait over all units taken; null when none was taken.
    drops
        Requests that found a queue full.
    """

    count: int
    size: float
    mean_busy: Estimate
    most_p99_busy: Estimate
    mean_queue: Estimate
    mean_wait_ms: Estimate
    drops: int


@dataclass(frozen=True)
class Backlog:
    """Whether work piles up.

    Attributes
    ----------
    verdict
        `steady`, `overloaded` (then there is no steady state, and the figures depend on how long was simulated), or
        `unclear` where that was too short to tell.
    growth
        What the backlog gains per second, as a share of the offered rate.
    """

    verdict: Verdict
    growth: Estimate


@dataclass(frozen=True)
class PrecisionReached:
    """The requested precision, and whether it was reached.

    Attributes
    ----------
    asked
        In the user's words, such as `p99<2%`.
    relative
        Half-width of that statistic's interval, as a share of its value; null where it has none.
    reached
        Whether that is narrow enough.
    """

    asked: str
    relative: float
    reached: bool


@dataclass(frozen=True, kw_only=True)
class Simulation(VerbAnswer):
    """Estimates from replications of a system with one set of parameters.

    Attributes
    ----------
    target
        The target: a system or a file.
    network
        Name of the network that was run.
    scenario
        The layout; keys are those of a scenario file. Null when the target is a network.
    offered_tps
        Offered rate, requests per second: of a system the peak rate, as in a prediction; of a network its mean rate.
        Null for closed traffic, which has none.
    mean_tps
        Mean rate of the traffic, requests per second; less than the peak rate where it comes in bursts. Null for
        closed traffic.
    offered_source
        `given` by the user, the `default`, 80 % of the predicted capacity, or as the `network` has it.
    duration_s
        How long traffic came, in seconds.
    horizon
        `steady`: the figures are those of the steady state. `finite`: they are means over replications of what one such
        run measures.
    warmup_s
        How much of the beginning of every replication is left out, in seconds.
    warmup_source
        `given` by the user, found by `mser` in the first ten replications together, or `none` is left out.
    settled
        Whether replications were long enough to tell their warm-up.
    backlog
        Whether work piles up; null where no open traffic comes, and over a finite horizon.
    precision
        The requested precision; null when none was requested.
    seed
        The seed of every random number.
    replications
        How many independent runs there are.
    classes
        Outcome of requests by class; `*` is all of them.
    reported
        Classes that are made of others in the network, with the names of these.
    stations
        What stations did, by name.
    station_kinds
        What stations of a kind did, that with the most loaded one first.
    pools
        What pools did, by name.
    pool_kinds
        What pools of a kind did, the most used one first.
    version
        The version of capplan.
    """

    SCHEMA = "capplan.simulation/4"
    UNBOUNDED = (("Estimate", "value"), ("PrecisionReached", "relative"))

    target: str
    network: str
    scenario: Mapping[str, Any] | None
    offered_tps: float | None
    mean_tps: float | None
    offered_source: OfferedSource
    duration_s: float
    horizon: Horizon
    warmup_s: float
    warmup_source: WarmupSource
    settled: bool
    backlog: Backlog | None
    precision: PrecisionReached | None
    seed: int
    replications: int
    classes: Mapping[str, ClassFigures]
    reported: Mapping[str, tuple[str, ...]]
    stations: Mapping[str, StationFigures]
    station_kinds: Mapping[str, StationKind]
    pools: Mapping[str, PoolFigures]
    pool_kinds: Mapping[str, PoolKind]
    version: str

    def to_frame(self) -> DataFrame:
        """Return the figures in tidy form, one statistic per row; times are in milliseconds.

        Returns
        -------
        DataFrame
            Columns `kind` (`class`, `station`, `station_kind`, `pool` or `pool_kind`), `name`, `quantity`,
            `statistic`, `value`, `half_width` (nan where there is no interval) and `unit`.
        """
        from pandas import DataFrame  # slow to import

        found = DataFrame(self._rows(), columns=list(COLUMNS))
        return found.astype({"value": float, "half_width": float})

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        for name, figures in self.classes.items():
            yield from _class_rows(name, figures)
        for kind in ("station", "station_kind", "pool", "pool_kind"):
            for name, place in getattr(self, f"{kind}s").items():
                for each in fields(place):
                    unit, quantity = "ms" if each.name.endswith("_ms") else "1", each.name.removesuffix("_ms")
                    yield kind, name, quantity, "", *_cells(getattr(place, each.name)), unit


def _class_rows(name: str, figures: ClassFigures) -> Iterator[tuple[Any, ...]]:
    for count in COUNTS:
        yield "class", name, "requests", count, getattr(figures, count), None, "1"
    yield "class", name, "offered", "mean", *_cells(figures.offered_per_s), "1/s"
    yield "class", name, "throughput", "mean", *_cells(figures.throughput_per_s), "1/s"
    yield "class", name, "drop_rate", "mean", *_cells(figures.drop_rate), "1"
    for clock in ("intended", "actual"):
        for statistic, figure in vars(getattr(figures.latency_ms, clock)).items():
            if isinstance(figure, Estimate):
                yield "class", name, f"latency_{clock}", statistic, *_cells(figure), "ms"


def _cells(figure: Estimate | float) -> tuple[float, float | None]:
    return (figure.value, figure.half_width) if isinstance(figure, Estimate) else (figure, None)


FINEST = 1 / 256  # relative error of a percentile that is read from a histogram


@dataclass(frozen=True)
class PrecisionTarget:
    """A requested precision.

    Attributes
    ----------
    text
        In the user's words.
    classes
        The classes that it is about.
    statistic
        `mean` or a percentile.
    relative
        Half-width of an interval, as a share of its value.
    """

    text: str
    classes: tuple[str, ...]
    statistic: str
    relative: float


def read_precision_target(text: str, classes: Sequence[str], everything: Sequence[str]) -> PrecisionTarget:
    """Read a precision.

    Parameters
    ----------
    text
        Such as `p99<2%` or `acct.p99<1%`.
    classes
        The request classes that it may name.
    everything
        What it is about when it names none.

    Raises
    ------
    InputError
        When it is not a precision, names no class or statistic, or is finer than the resolution of percentiles.
    """
    asked = parse_precision(text)
    subject, _, statistic = asked.statistic.rpartition(".")
    one_of(STATISTICS, statistic, f"{statistic!r} in the precision {text!r} is not a statistic")
    if subject:
        one_of(classes, subject, f"{subject!r} in the precision {text!r} is not a request class")
    if statistic != "mean" and asked.relative < FINEST:
        raise InputError(
            f"the precision {text!r} is finer than the resolution of percentiles: ask for {FINEST:.1%} or more, or a "
            "mean"
        )
    return PrecisionTarget(text, (subject,) if subject else tuple(everything), statistic, asked.relative)


_NO_SUMS = ("name", "window_ticks")
_SUMS = tuple(each.name for each in fields(ClassReport) if each.name not in _NO_SUMS)

Reported = Mapping[str, tuple[str, ...]]
"""By reported class, the classes of the network."""


def as_they_are(classes: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return a mapping that reports every network class under its own name."""
    return {name: (name,) for name in classes}


def report(run: Run, reported: Reported, name: str) -> ClassReport:
    """Return the report of a reported class, or of all classes together (`*`)."""
    if name == EVERY_CLASS:
        return run.report()
    parts = reported[name]
    return run.report(parts[0]) if len(parts) == 1 else _merged(run, name, parts)


_merged_reports: WeakKeyDictionary[Run, dict[tuple[str, ...], ClassReport]] = WeakKeyDictionary()
"""Reports by run, because each is needed once per figure; they end with their run, which holds megabytes."""


def _merged(run: Run, name: str, parts: tuple[str, ...]) -> ClassReport:
    reports = _merged_reports.setdefault(run, {})
    if (name, *parts) not in reports:
        reports[name, *parts] = replace(reduce(_added, (run.report(part) for part in parts)), name=name)
    return reports[name, *parts]


def _added(one: ClassReport, other: ClassReport) -> ClassReport:
    return replace(one, **{field: getattr(one, field) + getattr(other, field) for field in _SUMS})


FEWEST = 5  # requests (latencies beyond a percentile) in the mean part: with fewer their variance is unknown
RULE_OF_THREE = 3.0  # nothing in n independent trials: with 95 % confidence the share is at most 3 / n


@dataclass(frozen=True, eq=False)
class SampleEstimates:
    """Estimates from a sample.

    Attributes
    ----------
    sample
        The runs.
    reported
        The reported classes; None where they are those of the network.
    """

    sample: Sample
    reported: Reported | None = None

    def _report(self, run: Run, name: str) -> ClassReport:
        return report(run, self.reported or as_they_are(run.classes), name)

    def of_class(self, name: str) -> ClassFigures:
        """Return the results for the requests of a class, or of all classes (`*`)."""
        found = self._report(self.sample.together, name)

        def estimate(figure: Callable[[ClassReport], float]) -> Estimate:
            return self.estimate(lambda run: figure(self._report(run, name)), found.started)

        drop_rate = estimate(lambda each: each.drop_rate)
        if found.started and not drop_rate.value:
            drop_rate = Estimate(0.0, RULE_OF_THREE / found.started)
        return ClassFigures(
            **{count: getattr(found, count) for count in COUNTS},
            offered_per_s=estimate(lambda each: each.started / each.window_s),
            throughput_per_s=estimate(lambda each: each.throughput_per_s),
            drop_rate=drop_rate,
            latency_ms=self._by_clock(name),
            little=Little(
                number=estimate(lambda each: each.little().number),
                rate_per_s=estimate(lambda each: each.little().rate_per_s),
                response_s=estimate(lambda each: each.little().response_s),
                error=found.little().error,
            ),
        )

    def _by_clock(self, name: str) -> LatencyByClock:
        intended = self._latency(name, "intended")
        found = self._report(self.sample.together, name)
        same = found.actual is found.intended or np.array_equal(found.actual.counts, found.intended.counts)
        return LatencyByClock(intended=intended, actual=intended if same else self._latency(name, "actual"))

    def _latency(self, name: str, clock: Clock) -> LatencyFigures:
        latency = self._report(self.sample.together, name).latency(clock)
        longest = Estimate(latency.max_s * 1e3, None)
        if self.sample.horizon == "finite":
            longest = self.estimate(lambda run: self._report(run, name).latency(clock).max_s * 1e3)
        return LatencyFigures(
            **{statistic: self.latency(name, statistic, clock) for statistic in STATISTICS},
            max=longest,
            hdr_histogram=latency.encoded(),
        )

    def latency(self, name: str, statistic: str, clock: Clock = "intended") -> Estimate:
        """Return the mean or a percentile of a class's latencies (`*`: all classes), in milliseconds."""
        if statistic == "mean":
            completed = self._report(self.sample.together, name).completed
            return self.estimate(lambda run: self._report(run, name).latency(clock).mean_s * 1e3, completed)

        def figure(run: Run) -> float:
            return self._report(run, name).latency(clock).quantile_s(LEVELS[statistic]) * 1e3

        if not self._tells(name, LEVELS[statistic]):
            value = self.sample.interval(figure).value  # too few beyond it for an interval, not for a look
            return Estimate(value, None)
        found = self.estimate(figure, self._report(self.sample.together, name).completed)
        if found.half_width is None:
            return found
        return replace(found, half_width=max(found.half_width, found.value * FINEST))  # runs may share a bin

    def _tells(self, name: str, probability: float) -> bool:
        """Return whether enough latencies lie above a percentile, on average over the parts.

        This holds for all runs together: leaving out runs with few latencies would keep the busy ones.
        """
        completed = self._report(self.sample.together, name).completed
        return completed / self.sample.parts * (1 - probability) >= FEWEST

    def estimate(self, figure: Statistic, seen: int | None = None) -> Estimate:
        """Return the estimate of a run's statistic, without an interval if it rests on too few requests.

        Parameters
        ----------
        figure
            Takes it from a run.
        seen
            How many requests it rests on, in all runs; left out, all that started.
        """
        found = Estimate.of(self.sample.interval(figure))
        count = self.sample.together.report().started if seen is None else seen
        return found if count >= FEWEST * self.sample.parts else replace(found, half_width=None)

    def of_station(self, name: str) -> StationFigures:
        """Return the estimates of a station."""
        return StationFigures(**self._of_place(StationFigures, lambda run: run.stations[name]))

    def of_pool(self, name: str) -> PoolFigures:
        """Return the estimates of a pool."""
        return PoolFigures(**self._of_place(PoolFigures, lambda run: run.pools[name]))

    def _of_place(self, kind: type[StationFigures | PoolFigures], of: Callable[[Run], Any]) -> dict[str, Any]:
        """Return the figures of a station or pool by field: counts of all runs together, and estimates."""
        whole = of(self.sample.together)
        return {
            each.name: self.estimate(partial(_figure, of, each.name))
            if each.type == "Estimate"
            else getattr(whole, each.name)
            for each in fields(kind)
        }

    def station_kinds(self) -> dict[str, StationKind]:
        """Return the kinds of stations; the kind with the most loaded station comes first."""
        kinds = {
            kind: self._station_kind(names) for kind, names in grouped(self.sample.together.stations, kind_of).items()
        }
        return dict(sorted(kinds.items(), key=lambda each: -each[1].most_utilisation.value))

    def _station_kind(self, names: Sequence[str]) -> StationKind:
        def estimate(figure: Callable[[list[StationReport]], float]) -> Estimate:
            return self.estimate(lambda run: figure([run.stations[name] for name in names]))

        members = [self.sample.together.stations[name] for name in names]
        return StationKind(
            count=len(names),
            utilisation=estimate(lambda every: _mean(each.utilisation for each in every)),
            least_utilisation=estimate(lambda every: min(each.utilisation for each in every)),
            most_utilisation=estimate(lambda every: max(each.utilisation for each in every)),
            mean_queue=estimate(lambda every: _mean(each.mean_queue for each in every)),
            mean_wait_ms=estimate(lambda every: _weighted((each.mean_wait_s * 1e3, each.visits) for each in every)),
            paused_share=estimate(lambda every: _mean(each.paused_share for each in every)),
            visits=sum(each.visits for each in members),
            drops=sum(each.drops for each in members),
        )

    def pool_kinds(self) -> dict[str, PoolKind]:
        """Return the kinds of pools; the most used kind comes first."""
        kinds = {kind: self._pool_kind(names) for kind, names in grouped(self.sample.together.pools, kind_of).items()}
        return dict(sorted(kinds.items(), key=lambda each: -each[1].mean_busy.value / each[1].size))

    def _pool_kind(self, names: Sequence[str]) -> PoolKind:
        def estimate(figure: Callable[[list[PoolReport]], float]) -> Estimate:
            return self.estimate(lambda run: figure([run.pools[name] for name in names]))

        members = [self.sample.together.pools[name] for name in names]
        return PoolKind(
            count=len(names),
            size=_mean(each.size for each in members),
            mean_busy=estimate(lambda every: _mean(each.mean_busy for each in every)),
            most_p99_busy=estimate(lambda every: max(each.busy_quantile(0.99) for each in every)),
            mean_queue=estimate(lambda every: _mean(each.mean_queue for each in every)),
            mean_wait_ms=estimate(lambda every: _weighted((each.mean_wait_s * 1e3, each.taken) for each in every)),
            drops=sum(each.drops for each in members),
        )


def _figure(of: Callable[[Run], Any], name: str, run: Run) -> float:
    """Return a figure of a station or pool in a run by its field; reports have times in seconds."""
    found = of(run)
    if name == "p99_busy":
        return float(found.busy_quantile(0.99))
    time = name.removesuffix("_ms")
    return float(getattr(found, name) if time == name else getattr(found, f"{time}_s") * 1e3)


def _mean(figures: Iterable[float]) -> float:
    every = list(figures)
    return sum(every) / len(every)


def _weighted(pairs: Iterable[tuple[float, int]]) -> float:
    """Return the weighted mean; nan if all weights are 0."""
    seen = [(figure, count) for figure, count in pairs if count]
    return sum(figure * count for figure, count in seen) / sum(count for _, count in seen) if seen else math.nan
