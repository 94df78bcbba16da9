"""From a sample of runs to the figures of a simulation, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from capplan.calibration.case.solution import kind_of
from capplan.models.language.units import FloatArray
from capplan.planner.simulate.parts import (
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
from capplan.planner.simulate.precision_target import FINEST
from capplan.planner.simulate.simulation import EVERY_CLASS
from capplan.simulator.analysis.control_variates import controlled
from capplan.simulator.analysis.output import ConfidenceInterval
from capplan.simulator.analysis.sample import Sample, Statistic
from capplan.simulator.results.run import ClassReport, Clock, PoolReport, Run, StationReport

T = TypeVar("T")
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
FEWEST = 5  # requests (latencies beyond a percentile) in the mean part: with fewer nobody can tell how they scatter
RULE_OF_THREE = 3.0  # nothing in n independent trials: with 95 % confidence the share is at most 3 / n


@dataclass(frozen=True, eq=False)
class Controls:
    """What every run has measured of quantities whose mean is known.

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
class Figures:
    """Figures of a sample.

    Attributes
    ----------
    sample
        The runs.
    controls
        Control variates for latencies; None where there are none.
    """

    sample: Sample
    controls: Controls | None = None

    def of_class(self, name: str) -> ClassFigures:
        """Return what became of the requests of a class (`*`: of all)."""
        report = _report(self.sample.together, name)

        def estimate(figure: Callable[[ClassReport], float]) -> Estimate:
            return self.estimate(lambda run: figure(_report(run, name)), report.started)

        drop_rate = estimate(lambda each: each.drop_rate)
        if report.started and not drop_rate.value:
            drop_rate = Estimate(0.0, RULE_OF_THREE / report.started)
        return ClassFigures(
            started=report.started,
            completed=report.completed,
            dropped=report.dropped,
            timed_out=report.timed_out,
            unfinished=report.unfinished,
            retries=report.retries,
            offered_per_s=estimate(lambda each: each.started / each.window_s),
            throughput_per_s=estimate(lambda each: each.throughput_per_s),
            drop_rate=drop_rate,
            latency_ms=self._by_clock(name),
            little=Little(
                number=estimate(lambda each: each.little().number),
                rate_per_s=estimate(lambda each: each.little().rate_per_s),
                response_s=estimate(lambda each: each.little().response_s),
                error=report.little().error,
            ),
        )

    def _by_clock(self, name: str) -> LatencyByClock:
        intended = self._latency(name, "intended")
        report = _report(self.sample.together, name)
        same = report.actual is report.intended or np.array_equal(report.actual.counts, report.intended.counts)
        return LatencyByClock(intended=intended, actual=intended if same else self._latency(name, "actual"))

    def _latency(self, name: str, clock: Clock) -> LatencyFigures:
        latency = _report(self.sample.together, name).latency(clock)
        longest = Estimate(latency.max_s * 1e3, None)
        if self.sample.horizon == "finite":
            longest = self.estimate(lambda run: _report(run, name).latency(clock).max_s * 1e3)
        return LatencyFigures(
            **{statistic: self.latency(name, statistic, clock) for statistic in ("mean", *QUANTILES)},
            max=longest,
            hdr_histogram=latency.encoded(),
        )

    def latency(self, name: str, statistic: str, clock: Clock = "intended") -> Estimate:
        """Return the mean or a percentile of the latencies of a class (`*`: of all), in milliseconds."""
        if statistic == "mean":
            completed = _report(self.sample.together, name).completed
            return self._controlled(lambda run: _report(run, name).latency(clock).mean_s * 1e3, completed)
        figure = _quantile_ms(name, QUANTILES[statistic], clock)
        if not self._tells(name, QUANTILES[statistic]):
            value = self.sample.interval(figure).value  # too few beyond it for an interval, not for a look
            return Estimate(value, None)
        found = self._controlled(figure, _report(self.sample.together, name).completed)
        if found.half_width is None:
            return found
        return replace(found, half_width=max(found.half_width, found.value * FINEST))  # runs may share a bin

    def _tells(self, name: str, probability: float) -> bool:
        """Tell whether so many latencies lie beyond a percentile, in the mean of what is compared, that it says much.

        It is asked of all runs together: leaving out those that saw few would keep the busy ones.
        """
        completed = _report(self.sample.together, name).completed
        return completed / self.sample.parts * (1 - probability) >= FEWEST

    def estimate(self, figure: Statistic, seen: int | None = None) -> Estimate:
        """Return any figure of a run, without an interval where it rests on next to nothing.

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
        """Return what a station did."""
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
        """Return what a pool did."""
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


def _report(run: Run, name: str) -> ClassReport:
    return run.report(None if name == EVERY_CLASS else name)


def _quantile_ms(name: str, probability: float, clock: Clock) -> Statistic:
    """Return a percentile as a figure of a run."""
    return lambda run: _report(run, name).latency(clock).quantile_s(probability) * 1e3


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
    """Return the mean over all, where some may have seen none."""
    seen = [(figure, count) for figure, count in pairs if count]
    return sum(figure * count for figure, count in seen) / sum(count for _, count in seen) if seen else math.nan
