"""From a sample of runs to the estimates of a simulation, their intervals, and the precision that these must reach."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache, reduce
from typing import cast

import numpy as np

from capplan.layout.solution import kind_of
from capplan.models.errors import InputError, RefusedError, nearest
from capplan.models.language.network import Network
from capplan.models.language.traffic import Open, Trace
from capplan.models.language.units import FloatArray
from capplan.models.results import STATISTICS
from capplan.models.solver.analytic import Analysis
from capplan.planner.simulate.simulation import (
    EVERY_CLASS,
    ClassFigures,
    Estimate,
    LatencyByClock,
    LatencyFigures,
    Little,
    PoolFigures,
    PoolKind,
    StationFigures,
    StationKind,
)
from capplan.simulator.output import ConfidenceInterval, controlled
from capplan.simulator.results.run import ClassReport, Clock, PoolReport, Run, StationReport
from capplan.simulator.sample import FIRST, Sample, Statistic, parse_precision

FINEST = 1 / 256  # relative error of a percentile that is read from a histogram


@dataclass(frozen=True)
class PrecisionTarget:
    """A precision that was asked for.

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
    if statistic not in STATISTICS:
        raise InputError(f"{statistic!r} in the precision {text!r} is not a statistic{nearest(statistic, STATISTICS)}")
    if subject and subject not in classes:
        raise InputError(f"{subject!r} in the precision {text!r} is not a request class{nearest(subject, classes)}")
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
    """Report the classes of a network by their own names."""
    return {name: (name,) for name in classes}


def report(run: Run, reported: Reported, name: str) -> ClassReport:
    """Return the report of a reported class (`*`: of all together)."""
    if name == EVERY_CLASS:
        return run.report()
    parts = reported[name]
    return run.report(parts[0]) if len(parts) == 1 else _merged(run, name, parts)


@lru_cache(maxsize=1000)  # every figure asks again
def _merged(run: Run, name: str, parts: tuple[str, ...]) -> ClassReport:
    return replace(reduce(_added, (run.report(part) for part in parts)), name=name)


def _added(one: ClassReport, other: ClassReport) -> ClassReport:
    return replace(one, **{field: getattr(one, field) + getattr(other, field) for field in _SUMS})


QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
FEWEST = 5  # requests (latencies beyond a percentile) in the mean part: with fewer their variance is unknown
RULE_OF_THREE = 3.0  # nothing in n independent trials: with 95 % confidence the share is at most 3 / n
IMPOSSIBLE = 4.0  # standard errors: with ten replications that happens once in 300 samples
SMALLEST_LOAD = 0.05  # of a station that may tell anything about latencies
Control = tuple[str, FloatArray, float]


@dataclass(frozen=True, eq=False)
class Controls:
    """Control variates: what every run measured of quantities with known means.

    Attributes
    ----------
    names
        What they are, in plain words.
    seen
        Shape (replications, controls).
    expected
        Their means; shape (controls,).
    """

    names: tuple[str, ...]
    seen: FloatArray
    expected: FloatArray


@dataclass(frozen=True, eq=False)
class SampleEstimates:
    """Figures of a sample.

    Attributes
    ----------
    sample
        The runs.
    controls
        Control variates for latencies; None where there are none.
    reported
        The reported classes; None where they are those of the network.
    """

    sample: Sample
    controls: Controls | None = None
    reported: Reported | None = None

    def _report(self, run: Run, name: str) -> ClassReport:
        return report(run, self.reported or as_they_are(run.classes), name)

    def of_class(self, name: str) -> ClassFigures:
        """Return the outcome of the requests of a class (`*`: of all)."""
        found = self._report(self.sample.together, name)

        def estimate(figure: Callable[[ClassReport], float]) -> Estimate:
            return self.estimate(lambda run: figure(self._report(run, name)), found.started)

        drop_rate = estimate(lambda each: each.drop_rate)
        if found.started and not drop_rate.value:
            drop_rate = Estimate(0.0, RULE_OF_THREE / found.started)
        return ClassFigures(
            started=found.started,
            completed=found.completed,
            dropped=found.dropped,
            timed_out=found.timed_out,
            unfinished=found.unfinished,
            retries=found.retries,
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
            **{statistic: self.latency(name, statistic, clock) for statistic in ("mean", *QUANTILES)},
            max=longest,
            hdr_histogram=latency.encoded(),
        )

    def latency(self, name: str, statistic: str, clock: Clock = "intended") -> Estimate:
        """Return the mean or a percentile of the latencies of a class (`*`: of all), in milliseconds."""
        if statistic == "mean":
            completed = self._report(self.sample.together, name).completed
            return self._controlled(lambda run: self._report(run, name).latency(clock).mean_s * 1e3, completed)
        figure = self._quantile_ms(name, QUANTILES[statistic], clock)
        if not self._tells(name, QUANTILES[statistic]):
            value = self.sample.interval(figure).value  # too few beyond it for an interval, not for a look
            return Estimate(value, None)
        found = self._controlled(figure, self._report(self.sample.together, name).completed)
        if found.half_width is None:
            return found
        return replace(found, half_width=max(found.half_width, found.value * FINEST))  # runs may share a bin

    def _quantile_ms(self, name: str, probability: float, clock: Clock) -> Statistic:
        """Return a percentile as a figure of a run."""
        return lambda run: self._report(run, name).latency(clock).quantile_s(probability) * 1e3

    def _tells(self, name: str, probability: float) -> bool:
        """Return whether enough latencies lie beyond a percentile, on average over the parts.

        This holds for all runs together: leaving out runs with few latencies would keep the busy ones.
        """
        completed = self._report(self.sample.together, name).completed
        return completed / self.sample.parts * (1 - probability) >= FEWEST

    def estimate(self, figure: Statistic, seen: int | None = None) -> Estimate:
        """Return any figure of a run, without an interval where it rests on too few requests.

        Parameters
        ----------
        figure
            Takes it from a run.
        seen
            How many requests it rests on, in all runs; left out, all that started.
        """
        found = _estimate(self.sample.interval(figure))
        count = self.sample.together.report().started if seen is None else seen
        return found if count >= FEWEST * self.sample.parts else replace(found, half_width=None)

    def _controlled(self, figure: Statistic, seen: int) -> Estimate:
        if self.controls is None:
            return self.estimate(figure, seen)
        value = figure(self.sample.together)
        found = controlled(self.sample.each(figure), self.controls.seen, self.controls.expected, value=value)
        return replace(_estimate(found.interval), variance_ratio=found.variance_ratio)

    def of_station(self, name: str) -> StationFigures:
        """Return the estimates of a station."""
        station = self.sample.together.stations[name]

        def estimate(figure: Callable[[StationReport], float]) -> Estimate:
            return self.estimate(lambda run: figure(run.stations[name]))

        return StationFigures(
            servers=station.servers,
            utilisation=estimate(lambda each: each.utilisation),
            mean_queue=estimate(lambda each: each.mean_queue),
            mean_number=estimate(lambda each: each.mean_number),
            visits=station.visits,
            mean_wait_ms=estimate(lambda each: each.mean_wait_s * 1e3),
            mean_response_ms=estimate(lambda each: each.mean_response_s * 1e3),
            drops=station.drops,
            paused_share=estimate(lambda each: each.paused_share),
        )

    def of_pool(self, name: str) -> PoolFigures:
        """Return the estimates of a pool."""
        pool = self.sample.together.pools[name]

        def estimate(figure: Callable[[PoolReport], float]) -> Estimate:
            return self.estimate(lambda run: figure(run.pools[name]))

        return PoolFigures(
            size=pool.size,
            mean_busy=estimate(lambda each: each.mean_busy),
            p99_busy=estimate(lambda each: each.busy_quantile(0.99)),
            mean_queue=estimate(lambda each: each.mean_queue),
            taken=pool.taken,
            drops=pool.drops,
            mean_wait_ms=estimate(lambda each: each.mean_wait_s * 1e3),
            mean_hold_ms=estimate(lambda each: each.mean_hold_s * 1e3),
        )

    def station_kinds(self) -> dict[str, StationKind]:
        """Return the kinds of stations, that with the most loaded one first."""
        kinds = {kind: self._station_kind(names) for kind, names in by_kind(self.sample.together.stations).items()}
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
        """Return the kinds of pools, the most used one first."""
        kinds = {kind: self._pool_kind(names) for kind, names in by_kind(self.sample.together.pools).items()}
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


def _estimate(interval: ConfidenceInterval) -> Estimate:
    return Estimate(interval.value, interval.half_width)


def by_kind(names: Iterable[str]) -> dict[str, list[str]]:
    """Sort names of stations or pools by their kind: `cassandra/dc1/1` is a `cassandra`."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(kind_of(name), []).append(name)
    return found


def _mean(figures: Iterable[float]) -> float:
    every = list(figures)
    return sum(every) / len(every)


def _weighted(pairs: Iterable[tuple[float, int]]) -> float:
    """Return the weighted mean; nan without any weight."""
    seen = [(figure, count) for figure, count in pairs if count]
    return sum(figure * count for figure, count in seen) / sum(count for _, count in seen) if seen else math.nan


def controls_of(sample: Sample, network: Network) -> Controls | None:
    """Return the control variates of a sample; None where no mean is known exactly, or there are too few replications.

    There is one: the utilisation of the busiest kind of station that requests wait for, which reflects both rate and
    service demand, or the offered rate where the analytic solver does not know that utilisation exactly. A second one
    would cost a degree of freedom and add next to nothing.

    No mean is known exactly where requests failed or were retried (a failed request ends its session), where background
    work was dropped, where a timeline or a trace drives the traffic, or over a finite horizon, which starts empty. A
    control is also rejected when its own mean is impossibly far off, as with sessions as long as the runs.
    """
    traffic = network.traffic
    if sample.horizon != "steady" or len(sample.runs) < FIRST or not _is_stationary(network):
        return None
    if _lost_anything(sample.together):
        return None
    rate = float(np.max(cast("Open", traffic).rate_per_s))
    name, each, expected = _utilisation(sample, network, rate) or _offered(sample, rate)
    error = float(each.std(ddof=1)) / len(each) ** 0.5
    if not abs(each.mean() - expected) <= IMPOSSIBLE * error:
        return None
    return Controls((name,), each[:, np.newaxis], np.array([expected]))


def _is_stationary(network: Network) -> bool:
    traffic = network.traffic
    return isinstance(traffic, Open) and not isinstance(traffic.arrivals, Trace) and not network.timeline.events


def _lost_anything(seen: Run) -> bool:
    requests = seen.report()
    drops = sum(each.drops for each in seen.stations.values()) + sum(each.drops for each in seen.pools.values())
    return requests.completed < requests.started or requests.retries > 0 or drops > 0


def _offered(sample: Sample, rate: float) -> Control:
    return "offered rate", sample.each(lambda run: run.report().started / run.window_s), rate


def _utilisation(sample: Sample, network: Network, rate: float) -> Control | None:
    try:
        analysis = Analysis(network)
        felt = by_kind(name for names, time in analysis.path_times_s.items() if np.median(time) > 0 for name in names)
    except RefusedError:
        return None
    kinds, loads = by_kind(sample.together.stations), by_kind(analysis.demands)
    known = {
        kind: sum(float(analysis.load(name)[0]) * analysis.members[name] for name in loads[kind]) / len(kinds[kind])
        for kind in felt
    }
    busiest = max(known, key=lambda kind: known[kind], default="")
    if not SMALLEST_LOAD < (expected := known.get(busiest, 0.0) * rate) < 1:
        return None

    def mean(run: Run) -> float:
        return float(np.mean([run.stations[name].utilisation for name in kinds[busiest]]))

    return f"utilisation of {busiest}", sample.each(mean), expected
