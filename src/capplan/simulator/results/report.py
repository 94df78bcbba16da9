"""What an engine has counted, summed up over a window: the one way from a `Tally` to a `Run`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from capplan.models.language.network import Network
from capplan.models.language.units import FloatArray
from capplan.simulator.results.histogram import BINS, Histogram, IntArray
from capplan.simulator.results.run import ClassReport, Mark, PoolReport, Requests, Run, Series, StationReport
from capplan.simulator.results.tally import (
    ACTUAL,
    BUSY,
    COMPLETED,
    COUNTED,
    DROPPED,
    HELD,
    INTENDED,
    LATENCY,
    LONGEST_ACTUAL,
    LONGEST_INTENDED,
    NUMBER,
    PAUSED,
    POOL_DROPS,
    POOL_WAITED,
    QUEUED,
    RESPONDED,
    RESPONSE,
    RETRIES,
    STARTED,
    STATION_DROPS,
    TAKEN,
    TIMED_OUT,
    VISITS,
    WAITED,
    Tally,
    compacted,
    condensed,
    pair,
)
from capplan.simulator.specification.clock import TICKS_PER_S, to_seconds

_LONGEST = (LONGEST_INTENDED, LONGEST_ACTUAL)


def report(
    network: Network,
    tally: Tally,
    warmup_ticks: int,
    *,
    seed: int,
    replication: int,
    events: int,
    requests: Requests | None = None,
) -> Run:
    """Sum up a run.

    Parameters
    ----------
    network
        What was run.
    tally
        What the engine has counted.
    warmup_ticks
        Where the window begins, which must be one of the boundaries; it reaches to the end of the traffic.
    seed, replication
        Whose random numbers the run had.
    events
        How many events happened.
    requests
        Every request, if the engine has kept them.
    """
    tally = compacted(tally)
    window = slice(tally.place(warmup_ticks), len(tally.boundaries) - 1)
    places = _Window(tally, window)
    return Run(
        network=network.name,
        seed=seed,
        replication=replication,
        window=(window.start, window.stop),
        classes=tuple(each.name for each in network.classes),
        sources=tuple(network.traffic.mix),
        reports={each.name: places.of_class(each.name, index) for index, each in enumerate(network.classes)},
        stations={
            each.name: places.of_station(each.name, each.servers, index) for index, each in enumerate(network.stations)
        },
        pools={each.name: places.of_pool(each.name, each.size, index) for index, each in enumerate(network.pools)},
        series=_series(tally, np.array([station.servers for station in network.stations])),
        marks=_marks(network, tally),
        events=events,
        tally=tally,
        trace=requests,
    )


def windowed(run: Run, first: int, last: int) -> Run:
    """Return the run with another window: from the beginning of interval `first` to that of `last`.

    Requests, visits and units count where they start, join and are taken; so the windows of a run add up.

    Raises
    ------
    ValueError
        When there are no such intervals.
    """
    if not 0 <= first < last < len(run.tally.boundaries):
        raise ValueError(f"intervals {first} to {last} are none of a run of {len(run.tally.boundaries) - 1}")
    places = _Window(run.tally, slice(first, last))
    return replace(
        run,
        window=(first, last),
        reports={name: places.of_class(name, index) for index, name in enumerate(run.classes)},
        stations={
            name: places.of_station(name, old.servers, index) for index, (name, old) in enumerate(run.stations.items())
        },
        pools={name: places.of_pool(name, old.size, index) for index, (name, old) in enumerate(run.pools.items())},
    )


def condensed_run(run: Run) -> Run:
    """Return the run with its window as the only interval: the same figures, in a fraction of the memory.

    The series over time are those of the window.
    """
    first, last = run.window
    rows = {
        each.name: getattr(run.series, each.name)[first : last + (each.name == "boundaries_s")]
        for each in fields(Series)
    }
    return replace(run, tally=condensed(run.tally, first, last), window=(0, 1), series=Series(**rows), trace=None)


def concatenated(runs: Sequence[Run]) -> Run:
    """Return runs of one network as one run, whose intervals are those of their windows one after another.

    Its figures are those of all runs together: sums, means weighted with the length of the windows, quantiles of all
    latencies. Requests are not kept; marks and numbers are those of the first run.
    """
    first, *_ = runs
    low = min(run.tally.first_bin for run in runs)
    high = max(run.tally.first_bin + run.tally.histograms.shape[-1] for run in runs)
    arrays = {
        name: np.concatenate([getattr(run.tally, name)[slice(*run.window)] for run in runs] + [array[-1:] * 0])
        for name, array in vars(first.tally).items()
        if name in COUNTED
    }
    histograms = [_in_bins(run, low, high) for run in runs]
    lengths = np.concatenate([np.diff(run.tally.boundaries)[slice(*run.window)] for run in runs])
    tally = Tally(
        boundaries=np.append(0, np.cumsum(lengths)),
        **arrays,
        histograms=np.concatenate([*histograms, histograms[0][-1:] * 0]),
        first_bin=low,
        marks=first.tally.marks,
    )
    servers = np.array([station.servers for station in first.stations.values()])
    whole = replace(first, tally=tally, series=_series(tally, servers), trace=None, events=sum(r.events for r in runs))
    return windowed(whole, 0, len(lengths))


def _in_bins(run: Run, low: int, high: int) -> IntArray:
    first, counts = run.tally.first_bin, run.tally.histograms[slice(*run.window)]
    return np.pad(counts, [(0, 0)] * 3 + [(first - low, high - first - counts.shape[-1])])


class _Window:
    """The intervals of a tally that figures are about, and their sums."""

    def __init__(self, tally: Tally, window: slice) -> None:
        self.tally, self.window = tally, window
        self.ticks = int(tally.boundaries[window.stop] - tally.boundaries[window.start])
        self.classes = tally.class_totals[window].sum(axis=0)
        self.classes[:, _LONGEST] = tally.class_totals[window][:, :, _LONGEST].max(axis=0)
        self.histograms = tally.histograms[window].sum(axis=0)
        self.completions = tally.class_series[window, :, COMPLETED].sum(axis=0)
        self.stations = tally.station_totals[window].sum(axis=0)
        self.station_times = tally.station_series[window].sum(axis=0, dtype=np.float64) / self.ticks
        self.pools = tally.pool_totals[window].sum(axis=0)
        self.pool_queues = tally.pool_series[window, :, QUEUED].sum(axis=0, dtype=np.float64) / self.ticks
        self.pool_busy = tally.pool_busy[window].sum(axis=0) / self.ticks

    def of_class(self, name: str, index: int) -> ClassReport:
        """Return what became of the requests of a class that started in the window."""
        totals = self.classes[index]
        intended = self._histogram(index, 0)
        return ClassReport(
            name=name,
            window_ticks=self.ticks,
            started=int(totals[STARTED]),
            completed=int(totals[COMPLETED]),
            dropped=int(totals[DROPPED]),
            timed_out=int(totals[TIMED_OUT]),
            retries=int(totals[RETRIES]),
            completions=int(self.completions[index]),
            response_ticks=pair(totals, RESPONSE),
            number_ticks=pair(totals, NUMBER),
            intended=intended,
            actual=self._histogram(index, 1) if self.histograms.shape[1] > 1 else intended,
        )

    def _histogram(self, index: int, clock: int) -> Histogram:
        counts = np.zeros(BINS, dtype=np.int64)
        first, used = self.tally.first_bin, self.histograms[index, clock]
        counts[first : first + len(used)] = used
        totals = self.classes[index]
        return Histogram(counts, pair(totals, (INTENDED, ACTUAL)[clock]), int(totals[_LONGEST[clock]]))

    def of_station(self, name: str, servers: int, index: int) -> StationReport:
        """Return what a station did in the window."""
        queued, busy = self.station_times[index]
        totals = self.stations[index]
        return StationReport(
            name=name,
            servers=servers,
            utilisation=float(busy / servers),
            mean_queue=float(queued),
            mean_number=float(queued + busy),
            visits=int(totals[VISITS]),
            mean_wait_s=_mean_s(pair(totals, WAITED), totals[VISITS]),
            mean_response_s=_mean_s(pair(totals, RESPONDED), totals[VISITS]),
            drops=int(totals[STATION_DROPS]),
            paused_share=float(totals[PAUSED] / self.ticks),
        )

    def of_pool(self, name: str, size: int, index: int) -> PoolReport:
        """Return what a pool did in the window."""
        totals, busy_share = self.pools[index], self.pool_busy[index, : size + 1]
        return PoolReport(
            name=name,
            size=size,
            mean_busy=float(busy_share @ np.arange(size + 1)),
            mean_queue=float(self.pool_queues[index]),
            taken=int(totals[TAKEN]),
            drops=int(totals[POOL_DROPS]),
            mean_wait_s=_mean_s(pair(totals, POOL_WAITED), totals[TAKEN]),
            mean_hold_s=_mean_s(pair(totals, HELD), totals[TAKEN]),
            busy_share=busy_share,
        )


def _mean_s(total: int, count: np.int64) -> float:
    return to_seconds(total / int(count)) if count else float("nan")


def _marks(network: Network, tally: Tally) -> tuple[Mark, ...]:
    """Return the marks of the tally and the events of the timeline, in the order of time."""
    processes = (Mark(to_seconds(start), to_seconds(end), kind, name) for start, end, kind, name in tally.marks)
    timed = ((float(event.at_s), event) for event in network.timeline.events)
    events = (Mark(at_s, at_s, event.action, event.target) for at_s, event in timed)
    return tuple(sorted((*processes, *events)))


def _series(tally: Tally, servers: IntArray) -> Series:
    length = np.diff(tally.boundaries)[:, None]
    counts = tally.class_series[:-1]
    completed = counts[:, :, COMPLETED]
    latency = np.full(completed.shape, np.nan)
    np.divide(counts[:, :, LATENCY], completed * TICKS_PER_S, out=latency, where=completed > 0)
    number = tally.class_totals[:-1, :, NUMBER] * 2.0**40 + tally.class_totals[:-1, :, NUMBER + 1]
    return Series(
        boundaries_s=tally.boundaries / TICKS_PER_S,
        offered_per_s=_per_s(counts[:, :, STARTED], length),
        throughput_per_s=_per_s(completed, length),
        drops_per_s=_per_s(counts[:, :, DROPPED] + counts[:, :, TIMED_OUT], length),
        latency_mean_s=latency,
        number=number / length,
        station_queue=tally.station_series[:-1, :, QUEUED] / length,
        station_utilisation=tally.station_series[:-1, :, BUSY] / length / servers,
        pool_queue=tally.pool_series[:-1, :, QUEUED] / length,
        pool_busy=tally.pool_series[:-1, :, BUSY] / length,
    )


def _per_s(counts: IntArray, length_ticks: IntArray) -> FloatArray:
    return counts * TICKS_PER_S / length_ticks
