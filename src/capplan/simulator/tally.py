"""What every engine counts while it runs, and the one function that makes a `Run` of it.

A tally is a set of int64 arrays, so a compiled engine fills it as well as one in Python does. Its size does not depend
on the number of requests. Columns are named here. Times are ticks; a time integral (of visits that wait, of servers
that are busy) is a sum of ticks, exact in whatever order it is made.

Some sums may outgrow 63 bits and are kept as pairs of columns, the named one and the next, with the value
``first * 2**40 + second``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from capplan.models.network import Network
from capplan.models.quantity import FloatArray
from capplan.models.station import Pool, Station
from capplan.simulator.clock import TICKS_PER_S, to_seconds
from capplan.simulator.histogram import BINS, Histogram, IntArray, bin_of
from capplan.simulator.run import ClassReport, Mark, PoolReport, Requests, Run, Series, StationReport, Status

PAIR_BITS = 40
INTERVALS = 120
MOST_MARKS = 20_000  # of pauses and background work

# Columns of `class_series`; those of the three ends of a request are the numbers of `Status`, here and in the totals.
STARTED, COMPLETED, DROPPED, TIMED_OUT, LATENCY, CLASS_SERIES = range(6)
# Columns of `class_totals`, after the first four of `class_series`.
RETRIES, RESPONSE, _, NUMBER, _, INTENDED, _, ACTUAL, _, LONGEST_INTENDED, LONGEST_ACTUAL, CLASS_TOTALS = range(4, 16)
# Columns of `station_series` and `pool_series`.
QUEUED, BUSY, PLACE_SERIES = range(3)
# Columns of `station_totals`; what is waited and responded are pairs.
VISITS, WAITED, _, RESPONDED, _, STATION_DROPS, PAUSED, STATION_TOTALS = range(8)
# Columns of `pool_totals`; what is waited and held are pairs.
TAKEN, POOL_DROPS, POOL_WAITED, _, HELD, _, POOL_TOTALS = range(7)


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts and sums of one run.

    Attributes
    ----------
    boundaries
        Ticks at which intervals begin, and the end of the last one, which is the end of the traffic; shape (K + 1,).
        What happens later belongs to no interval.
    warmup_ticks
        The end of the warm-up, one of the boundaries; the window reaches from it to the last boundary.
    class_series
        Shape (K, classes, 5): requests that STARTED, COMPLETED, were DROPPED or TIMED_OUT for good in the interval,
        and the sum of the LATENCY of those that completed, from the intended start.
    class_totals
        Shape (classes, 15), of requests whose actual start is in the window: STARTED and what became of them, whenever
        that was; RETRIES, attempts beyond the first of those that have ended; the pair RESPONSE, actual start to end
        of those that have ended; the pairs INTENDED and ACTUAL, latencies of those that completed, and the longest
        ones. The pair NUMBER alone is of all requests: what of actual start to end lies in the window; those that have
        not ended count up to its end.
    histograms
        Shape (classes, 2, 7296): latencies of the measured requests that completed, from the intended and from the
        actual start; for the bins see `histogram`.
    station_series, pool_series
        Shape (K, stations, 2) and (K, pools, 2): time integrals of those QUEUED and of BUSY servers or units. Under
        processor sharing min(visits inside, servers) are busy, and the rest is queued.
    station_totals
        Shape (stations, 7): of visits that joined in the window and have been served, VISITS, and the sums of what
        they WAITED (under processor sharing, response less demand) and RESPONDED; STATION_DROPS, visits that expired
        or were refused in the window; PAUSED, the ticks of the window in which the station paused.
    pool_totals
        Shape (pools, 6): of units taken in the window, TAKEN, and the sums of what was waited for them (POOL_WAITED)
        and how long those given back were HELD; POOL_DROPS, requests that found the queue full in the window.
    pool_busy
        Shape (pools, largest size + 1): ticks of the window in which so many units were busy.
    marks
        (start, end, "pause" or "background", "station: process") of pauses and background work that have ended, the
        first `MOST_MARKS`.
    """

    boundaries: IntArray
    warmup_ticks: int
    class_series: IntArray
    class_totals: IntArray
    histograms: IntArray
    station_series: IntArray
    station_totals: IntArray
    pool_series: IntArray
    pool_totals: IntArray
    pool_busy: IntArray
    marks: list[tuple[int, int, str, str]] = field(default_factory=list)

    @property
    def end_ticks(self) -> int:
        """The end of the traffic and of the window."""
        return int(self.boundaries[-1])

    @property
    def window_ticks(self) -> int:
        """Length of the window."""
        return self.end_ticks - self.warmup_ticks

    @property
    def measured_intervals(self) -> slice:
        """The intervals of the window."""
        return slice(int(np.searchsorted(self.boundaries, self.warmup_ticks)), None)


def intervals(warmup_ticks: int, end_ticks: int, count: int = INTERVALS) -> IntArray:
    """Return about `count` + 1 boundaries from 0 to `end_ticks`, among them the end of the warm-up.

    Warm-up and window are each cut into equal intervals, up to a tick; fewer when there are not so many ticks.
    """
    warm = min(max(round(count * warmup_ticks / end_ticks), 1), warmup_ticks)
    rest = max(min(count - warm, end_ticks - warmup_ticks), 1)
    before = [warmup_ticks * place // warm for place in range(warm)]
    after = [warmup_ticks + (end_ticks - warmup_ticks) * place // rest for place in range(rest + 1)]
    return np.array(before + after, dtype=np.int64)


def empty_tally(network: Network, boundaries: IntArray, warmup_ticks: int) -> Tally:
    """Return a tally of zeros."""
    k, classes = len(boundaries) - 1, len(network.classes)
    stations, pools = len(network.stations), len(network.pools)
    most_units = max((pool.size for pool in network.pools), default=0)
    return Tally(
        boundaries,
        warmup_ticks,
        class_series=_zeros(k, classes, CLASS_SERIES),
        class_totals=_zeros(classes, CLASS_TOTALS),
        histograms=_zeros(classes, 2, BINS),
        station_series=_zeros(k, stations, PLACE_SERIES),
        station_totals=_zeros(stations, STATION_TOTALS),
        pool_series=_zeros(k, pools, PLACE_SERIES),
        pool_totals=_zeros(pools, POOL_TOTALS),
        pool_busy=_zeros(pools, most_units + 1),
    )


def _zeros(*shape: int) -> IntArray:
    return np.zeros(shape, dtype=np.int64)


def add_pair(totals: IntArray, column: int, value: int) -> None:
    """Add `value` to the pair of columns that begins at `column` of one row of totals."""
    low = int(totals[column + 1]) + value
    totals[column] += low >> PAIR_BITS
    totals[column + 1] = low & ((1 << PAIR_BITS) - 1)


def pair(totals: IntArray, column: int) -> int:
    """Return the value of the pair of columns that begins at `column`."""
    return (int(totals[column]) << PAIR_BITS) + int(totals[column + 1])


def tally_of_requests(requests: Requests, network: Network, boundaries: IntArray, warmup_ticks: int) -> Tally:
    """Return what an engine should have counted of these requests; stations and pools are left at zero.

    It is the plain reading of what the columns say, and so the check of what engines count as they run.
    """
    tally = empty_tally(network, boundaries, warmup_ticks)
    _count_series(requests, tally)
    for index in range(len(network.classes)):
        _count_totals(requests, requests.request_class == index, index, tally)
    return tally


def _count_series(requests: Requests, tally: Tally) -> None:
    last, series = len(tally.boundaries) - 2, tally.class_series

    def interval(ticks: IntArray) -> IntArray:
        return np.asarray(np.searchsorted(tally.boundaries, ticks, side="right") - 1, dtype=np.int64)

    started, ended = interval(requests.start_ticks), interval(requests.end_ticks)
    np.add.at(series[:, :, STARTED], (started, requests.request_class), 1)
    rows = (requests.status != Status.UNFINISHED) & (ended <= last)
    np.add.at(series, (ended[rows], requests.request_class[rows], requests.status[rows]), 1)
    rows &= requests.status == Status.COMPLETED
    latency = (requests.end_ticks - requests.intended_ticks)[rows]
    np.add.at(series[:, :, LATENCY], (ended[rows], requests.request_class[rows]), latency)


def _count_totals(requests: Requests, mine: np.ndarray, index: int, tally: Tally) -> None:
    first, last, totals = tally.warmup_ticks, tally.end_ticks, tally.class_totals[index]
    start, status = requests.start_ticks, requests.status
    end = np.where(status == Status.UNFINISHED, last, requests.end_ticks)
    _add_all(totals, NUMBER, np.maximum(np.minimum(end, last) - np.maximum(start, first), 0)[mine])
    measured = mine & (start >= first)
    totals[STARTED] = np.count_nonzero(measured)
    for each in (Status.COMPLETED, Status.DROPPED, Status.TIMED_OUT):
        totals[each] = np.count_nonzero(measured & (status == each))
    ended = measured & (status != Status.UNFINISHED)
    totals[RETRIES] = (requests.attempts[ended] - 1).sum()
    _add_all(totals, RESPONSE, (end - start)[ended])
    completed = measured & (status == Status.COMPLETED)
    for clock, since in enumerate((requests.intended_ticks, start)):
        latency = (end - since)[completed]
        _add_all(totals, (INTENDED, ACTUAL)[clock], latency)
        totals[(LONGEST_INTENDED, LONGEST_ACTUAL)[clock]] = latency.max(initial=0)
        tally.histograms[index, clock] = np.bincount(bin_of(latency), minlength=BINS)


def _add_all(totals: IntArray, column: int, values: IntArray) -> None:
    add_pair(totals, column, (int((values >> PAIR_BITS).sum()) << PAIR_BITS))
    add_pair(totals, column, int((values & ((1 << PAIR_BITS) - 1)).sum()))


def report(
    network: Network, tally: Tally, *, seed: int, replication: int, events: int, requests: Requests | None = None
) -> Run:
    """Sum up a run.

    Parameters
    ----------
    network
        What was run.
    tally
        What the engine has counted.
    seed, replication
        Whose random numbers it had.
    events
        How many events happened.
    requests
        Every request, if the engine has kept them.
    """
    return Run(
        network=network.name,
        seed=seed,
        replication=replication,
        warmup_s=to_seconds(tally.warmup_ticks),
        duration_s=to_seconds(tally.end_ticks),
        classes=tuple(each.name for each in network.classes),
        sources=tuple(network.traffic.mix),
        reports={each.name: _class_report(each.name, index, tally) for index, each in enumerate(network.classes)},
        stations={each.name: _station_report(each, index, tally) for index, each in enumerate(network.stations)},
        pools={each.name: _pool_report(each, index, tally) for index, each in enumerate(network.pools)},
        series=_series(network, tally),
        marks=_marks(network, tally),
        events=events,
        trace=requests,
    )


def _marks(network: Network, tally: Tally) -> tuple[Mark, ...]:
    """Return the marks of the tally and the events of the timeline, in the order of time."""
    processes = (Mark(to_seconds(start), to_seconds(end), kind, name) for start, end, kind, name in tally.marks)
    timed = ((float(event.at_s), event) for event in network.timeline.events)
    events = (Mark(at_s, at_s, event.action, event.target) for at_s, event in timed)
    return tuple(sorted((*processes, *events)))


def _class_report(name: str, index: int, tally: Tally) -> ClassReport:
    totals, histograms = tally.class_totals[index], tally.histograms[index]
    return ClassReport(
        name=name,
        window_ticks=tally.window_ticks,
        started=int(totals[STARTED]),
        completed=int(totals[COMPLETED]),
        dropped=int(totals[DROPPED]),
        timed_out=int(totals[TIMED_OUT]),
        retries=int(totals[RETRIES]),
        completions=int(tally.class_series[tally.measured_intervals, index, COMPLETED].sum()),
        response_ticks=pair(totals, RESPONSE),
        number_ticks=pair(totals, NUMBER),
        intended=Histogram(histograms[0], pair(totals, INTENDED), int(totals[LONGEST_INTENDED])),
        actual=Histogram(histograms[1], pair(totals, ACTUAL), int(totals[LONGEST_ACTUAL])),
    )


def _station_report(station: Station, index: int, tally: Tally) -> StationReport:
    queued, busy = (
        tally.station_series[tally.measured_intervals, index].sum(axis=0, dtype=np.float64) / tally.window_ticks
    )
    totals = tally.station_totals[index]
    return StationReport(
        name=station.name,
        servers=station.servers,
        utilisation=float(busy / station.servers),
        mean_queue=float(queued),
        mean_number=float(queued + busy),
        visits=int(totals[VISITS]),
        mean_wait_s=_mean_s(pair(totals, WAITED), totals[VISITS]),
        mean_response_s=_mean_s(pair(totals, RESPONDED), totals[VISITS]),
        drops=int(totals[STATION_DROPS]),
        paused_share=float(totals[PAUSED] / tally.window_ticks),
    )


def _pool_report(pool: Pool, index: int, tally: Tally) -> PoolReport:
    totals, busy_share = tally.pool_totals[index], tally.pool_busy[index, : pool.size + 1] / tally.window_ticks
    return PoolReport(
        name=pool.name,
        size=pool.size,
        mean_busy=float(busy_share @ np.arange(pool.size + 1)),
        mean_queue=float(
            tally.pool_series[tally.measured_intervals, index, QUEUED].sum(dtype=np.float64) / tally.window_ticks
        ),
        taken=int(totals[TAKEN]),
        drops=int(totals[POOL_DROPS]),
        mean_wait_s=_mean_s(pair(totals, POOL_WAITED), totals[TAKEN]),
        mean_hold_s=_mean_s(pair(totals, HELD), totals[TAKEN]),
        busy_share=busy_share,
    )


def _mean_s(total: int, count: np.int64) -> float:
    return to_seconds(total / int(count)) if count else float("nan")


def _series(network: Network, tally: Tally) -> Series:
    length = np.diff(tally.boundaries)[:, None]
    counts, servers = tally.class_series, np.array([station.servers for station in network.stations])
    completed = counts[:, :, COMPLETED]
    latency = np.full(completed.shape, np.nan)
    np.divide(counts[:, :, LATENCY], completed * TICKS_PER_S, out=latency, where=completed > 0)
    return Series(
        boundaries_s=tally.boundaries / TICKS_PER_S,
        offered_per_s=_per_s(counts[:, :, STARTED], length),
        throughput_per_s=_per_s(completed, length),
        loss_per_s=_per_s(counts[:, :, DROPPED] + counts[:, :, TIMED_OUT], length),
        latency_mean_s=latency,
        station_queue=tally.station_series[:, :, QUEUED] / length,
        station_utilisation=tally.station_series[:, :, BUSY] / length / servers,
        pool_queue=tally.pool_series[:, :, QUEUED] / length,
        pool_busy=tally.pool_series[:, :, BUSY] / length,
    )


def _per_s(counts: IntArray, length_ticks: IntArray) -> FloatArray:
    return counts * TICKS_PER_S / length_ticks
