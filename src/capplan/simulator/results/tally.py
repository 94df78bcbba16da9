"""The statistics that every engine collects in a run, by interval, so that the window can be chosen afterwards.

A tally is a set of int64 arrays, which a compiled engine fills as well as Python does. Its size does not depend on the
number of requests. Columns are named here. Times are ticks; a time integral (of waiting visits, of busy servers) is a
sum of ticks, exact in any order of addition. The first axis of all arrays but the boundaries is the interval, with one
more at its end for what starts or happens after the last.

Sums that may exceed 63 bits are pairs of columns, the named one and the next, with the value
``first * 2**40 + second``. Sums of the series are single columns, which stop at ``2**63 - 1`` ticks: 292 years.

`tally_of_requests` counts single requests: the plain reading of the columns, which checks what engines count.

Single requests: the table of a run's trace, and its Parquet or CSV file.

A file has one row per request; times are nanoseconds since the start of the run, which are the engines' ticks.
`request` numbers the requests of a replication in the order of starting; rows need not be in that order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from capplan.errors import InputError
from capplan.files import check_replaceable, replacing
from capplan.models.language.network import Network
from capplan.models.language.traffic import Throttled
from capplan.simulator.results.histogram import BINS, IntArray, bin_of

SCHEMA = "capplan.trace/1"


class Status(IntEnum):
    """The outcome of a request for its client."""

    UNFINISHED = 0
    COMPLETED = 1
    DROPPED = 2
    TIMED_OUT = 3


@dataclass(frozen=True, eq=False)
class Requests:
    """One row per request in the order of starting; times in ticks.

    Attributes
    ----------
    source, request_class
        Indices into the names of the run.
    session
        Number of the arrival (open traffic) or of the client (closed).
    position
        Position among the requests of the session.
    intended_ticks, start_ticks, end_ticks
        Times of the request, from its first attempt to its last; `end_ticks` is -1 for unfinished requests.
    status
        A `Status`.
    attempts
        Number of attempts.
    """

    source: IntArray
    request_class: IntArray
    session: IntArray
    position: IntArray
    intended_ticks: IntArray
    start_ticks: IntArray
    end_ticks: IntArray
    status: IntArray
    attempts: IntArray


STATUSES = [status.name.lower() for status in Status]


class TraceWriter:
    """Writes a trace, piece by piece, so that it need not fit into memory; a context manager.

    The file appears under its name when it is complete; after an error nothing is left of it.

    Parameters
    ----------
    path : Path
        Where to write, as CSV if it ends in .csv, otherwise as Parquet; an existing file is replaced.
    network, seed
        What is run. The names of its classes and sources go into the rows, its own name and the seed into the metadata,
        which CSV does not have.

    Raises
    ------
    InputError
        When the folder does not exist, or the file cannot be written there.
    """

    def __init__(self, path: Path, network: Network, seed: int) -> None:
        import pyarrow as pa  # only a trace needs it
        from pyarrow import csv, parquet

        self._arrow, self._path = pa, path
        self._classes = pa.array([each.name for each in network.classes])
        self._sources = pa.array(list(network.traffic.mix))
        metadata = {"schema": SCHEMA, "network": network.name, "seed": str(seed)}
        self._open = csv.CSVWriter if path.suffix.lower() == ".csv" else parquet.ParquetWriter
        self._schema = _schema(pa).with_metadata(metadata)
        check_replaceable(path)

    def write(self, requests: Requests, replication: int = 0, numbers: IntArray | None = None) -> None:
        """Write a row group.

        Parameters
        ----------
        requests : Requests
            The rows.
        replication : int
            Their replication.
        numbers : array of int, optional
            Their numbers in the order of starting; without them, they are all requests of the replication, from 0 on.
        """
        rows = len(requests.start_ticks)
        if rows == 0:
            return
        pa, named = self._arrow, self._named
        ended = requests.status != Status.UNFINISHED
        columns = {
            "request": np.arange(rows) if numbers is None else numbers,
            "replication": np.full(rows, replication),
            "class": named(requests.request_class, self._classes),
            "source": named(requests.source, self._sources),
            "session": requests.session,
            "position": requests.position,
            "attempts": requests.attempts,
            "intended_ns": requests.intended_ticks,
            "start_ns": requests.start_ticks,
            "end_ns": pa.array(requests.end_ticks, mask=~ended),
            "status": named(requests.status, pa.array(STATUSES)),
        }
        with self._written():
            self._writer.write_table(pa.table(columns, schema=self._schema))

    def _named(self, indices: IntArray, names: Any) -> Any:
        return self._arrow.DictionaryArray.from_arrays(self._arrow.array(indices, self._arrow.int32()), names)

    @contextmanager
    def _written(self) -> Iterator[None]:
        """Refuse in one sentence if the disk cannot be written."""
        try:
            yield
        except OSError as error:
            raise InputError(f"{self._path} cannot be written: {error.strerror or error}") from None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            part = stack.enter_context(replacing(self._path))
            with self._written():
                self._writer = self._open(part, self._schema)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if kind is not None:
            with suppress(OSError):  # a full disk
                self._writer.close()
            self._stack.__exit__(kind, error, where)
            return
        with self._stack, self._written():
            self._writer.close()


def _schema(pa: Any) -> Any:
    name = pa.dictionary(pa.int32(), pa.string())
    whole = dict.fromkeys(("session", "position", "attempts", "intended_ns", "start_ns", "end_ns"), pa.int64())
    first = {"request": pa.int64(), "replication": pa.int64(), "class": name, "source": name}
    fields = {**first, **whole, "status": name}
    return pa.schema([pa.field(column, kind, nullable=column == "end_ns") for column, kind in fields.items()])


PAIR_BITS = 40
_UNITS_EXACT, _UNITS_BITS = 2048, 8  # pools with more units have 128 to 255 columns of `pool_busy`: under 1 % each
_LOW = (1 << PAIR_BITS) - 1
INTERVALS = 120
MOST_MARKS = 20_000  # of pauses and background work

# Columns of `class_series`. The numbers of `Status` are those of the three ends of a request, here and in the totals.
STARTED, COMPLETED, DROPPED, TIMED_OUT, LATENCY, CLASS_SERIES = range(6)
# Columns of `class_totals`, after the first four of `class_series`.
RETRIES, RESPONSE, _, NUMBER, _, INTENDED, _, ACTUAL, _, LONGEST_INTENDED, LONGEST_ACTUAL, CLASS_TOTALS = range(4, 16)
# Columns of `station_series` and `pool_series`.
QUEUED, BUSY, PLACE_SERIES = range(3)
# Columns of `station_totals`; WAITED and RESPONDED are pairs.
VISITS, WAITED, _, RESPONDED, _, STATION_DROPS, PAUSED, STATION_TOTALS = range(8)
# Columns of `pool_totals`; POOL_WAITED and HELD are pairs.
TAKEN, POOL_DROPS, POOL_WAITED, _, HELD, _, POOL_TOTALS = range(7)
# The arrays whose first axis is the interval; histograms have bins of their own.
COUNTED = (
    *("class_series", "class_totals", "station_series", "station_totals"),
    *("pool_series", "pool_totals", "pool_busy"),
)


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts and sums of one run.

    Attributes
    ----------
    boundaries
        Ticks at which intervals start, and the end of the last one, which is the end of the traffic; shape (K + 1,).
        What happens later belongs to no interval.
    class_series
        Shape (K + 1, classes, 5): requests that STARTED, COMPLETED, were DROPPED or TIMED_OUT for good in the interval,
        and the sum of the LATENCY of those that completed, from the intended start.
    class_totals
        Shape (K + 1, classes, 15), for requests whose actual start is in the interval: STARTED and how they ended,
        whenever that was; RETRIES, attempts beyond the first of those that have ended; the pair RESPONSE, actual start
        to end of those that have ended; the pairs INTENDED and ACTUAL, latencies of those that completed, and the
        longest ones. The pair NUMBER alone covers all requests: their time in the interval, between actual start and
        end; requests that have not ended count up to the end of the traffic.
    histograms
        Shape (K + 1, classes, clocks, bins): latencies of the completed requests that started in the interval, from the
        intended and from the actual start; see `histogram` for the bins. There is one clock only where both are the
        same, that is unless the traffic is throttled.
    station_series, pool_series
        Shape (K + 1, stations, 2) and (K + 1, pools, 2): time integrals of the number QUEUED and of BUSY servers or
        units. Under processor sharing min(visits inside, servers) are busy, and the rest is queued.
    station_totals
        Shape (K + 1, stations, 7), for visits that joined in the interval and have been served: VISITS, and the sums of
        the times that they WAITED (under processor sharing, response less demand) and RESPONDED; STATION_DROPS, visits
        that expired or were refused in it; PAUSED, its ticks in which the station paused.
    pool_totals
        Shape (K + 1, pools, 6), for units acquired in the interval: TAKEN, their number, and the sums of the times that
        requests waited for them (POOL_WAITED) and that released units were HELD; POOL_DROPS, requests that found the
        queue full in it.
    pool_busy
        Shape (K + 1, pools, columns): ticks of the interval with that many busy units, shifted by `units_shift`.
    first_bin
        Number of the first bin that `histograms` holds.
    marks
        (start, end, "pause" or "background", "station: process") of pauses and background work that have ended, the
        first `MOST_MARKS`.
    """

    boundaries: IntArray
    class_series: IntArray
    class_totals: IntArray
    histograms: IntArray
    station_series: IntArray
    station_totals: IntArray
    pool_series: IntArray
    pool_totals: IntArray
    pool_busy: IntArray
    first_bin: int = 0
    marks: list[tuple[int, int, str, str]] = field(default_factory=list)

    @property
    def end_ticks(self) -> int:
        """The end of the traffic."""
        return int(self.boundaries[-1])

    def place(self, tick: int) -> int:
        """Return the number of the interval that starts at a tick, or the number of intervals before it."""
        return int(np.searchsorted(self.boundaries, tick))


def intervals(warmup_ticks: int, end_ticks: int, count: int = INTERVALS) -> IntArray:
    """Return about `count` + 1 boundaries from 0 to `end_ticks`, among them the end of the warm-up.

    Warm-up and window are each cut into equal intervals, up to a tick; fewer when there are not enough ticks.
    """
    warm = min(max(round(count * warmup_ticks / end_ticks), 1), warmup_ticks)
    rest = max(min(count - warm, end_ticks - warmup_ticks), 1)
    before = [warmup_ticks * place // warm for place in range(warm)]
    after = [warmup_ticks + (end_ticks - warmup_ticks) * place // rest for place in range(rest + 1)]
    return np.array(before + after, dtype=np.int64)


def empty_tally(network: Network, boundaries: IntArray) -> Tally:
    """Return a tally of zeros."""
    k, classes = len(boundaries), len(network.classes)
    stations, pools = len(network.each_station), len(network.each_pool)
    columns = max((pool.size >> units_shift(pool.size) for pool in network.each_pool), default=0) + 1
    clocks = 2 if isinstance(network.traffic, Throttled) else 1
    return Tally(
        boundaries,
        class_series=_zeros(k, classes, CLASS_SERIES),
        class_totals=_zeros(k, classes, CLASS_TOTALS),
        histograms=_zeros(k, classes, clocks, BINS),
        station_series=_zeros(k, stations, PLACE_SERIES),
        station_totals=_zeros(k, stations, STATION_TOTALS),
        pool_series=_zeros(k, pools, PLACE_SERIES),
        pool_totals=_zeros(k, pools, POOL_TOTALS),
        pool_busy=_zeros(k, pools, columns),
    )


def units_shift(size: int) -> int:
    """Return the right shift for numbers of busy units that limits the columns for a pool of this size."""
    return size.bit_length() - _UNITS_BITS if size >= _UNITS_EXACT else 0


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


def saturated(high: IntArray, low: IntArray) -> IntArray:
    """Return pairs as single numbers, capped at the largest one."""
    high = high + (low >> PAIR_BITS)
    fits = high < 1 << (63 - PAIR_BITS)
    return np.where(fits, (np.where(fits, high, 0) << PAIR_BITS) + (low & _LOW), np.iinfo(np.int64).max)


def _saturated_sum(values: IntArray) -> IntArray:
    return saturated((values >> PAIR_BITS).sum(axis=0), (values & _LOW).sum(axis=0))


def overlaps(boundaries: IntArray, since: int, until: int) -> Iterator[tuple[int, int]]:
    """Yield each interval that a period overlaps, and the number of common ticks."""
    until = min(until, int(boundaries[-1]))
    place = int(np.searchsorted(boundaries, since, side="right")) - 1
    while since < until:
        end = min(until, int(boundaries[place + 1]))
        yield place, end - since
        since, place = end, place + 1


def condensed(tally: Tally, first: int, last: int) -> Tally:
    """Return the intervals from `first` to before `last` as a single one, which starts at tick 0."""
    sums: dict[str, Any] = {name: getattr(tally, name)[first:last].sum(axis=0) for name in (*COUNTED, "histograms")}
    for name in ("class_series", "station_series", "pool_series"):
        sums[name] = _saturated_sum(getattr(tally, name)[first:last])
    longest = [LONGEST_INTENDED, LONGEST_ACTUAL]
    sums["class_totals"][:, longest] = tally.class_totals[first:last][:, :, longest].max(axis=0)
    ends = tally.boundaries[[first, last]]
    arrays: dict[str, Any] = {name: np.stack([each, each * 0]) for name, each in sums.items()}
    return replace(tally, boundaries=ends - ends[0], **arrays)


def compacted(tally: Tally) -> Tally:
    """Return the tally without the empty bins at both ends."""
    longest = int(tally.class_totals[:, :, [LONGEST_INTENDED, LONGEST_ACTUAL]].max(initial=0))
    last = int(bin_of(np.array([longest]))[0]) + 1
    used = np.flatnonzero(tally.histograms[..., :last].any(axis=(0, 1, 2)))
    first = int(used[0]) if len(used) else 0
    return replace(tally, histograms=tally.histograms[..., first:last].copy(), first_bin=tally.first_bin + first)


def tally_of_requests(requests: Requests, network: Network, boundaries: IntArray) -> Tally:
    """Return the tally that an engine should produce for these requests; stations and pools are zero."""
    tally = empty_tally(network, boundaries)
    started = _interval(requests.start_ticks, boundaries)
    _count_series(requests, started, tally)
    _count_totals(requests, started, tally)
    _count_number(requests, tally)
    _count_latencies(requests, started, tally)
    return tally


def _interval(ticks: IntArray, boundaries: IntArray) -> IntArray:
    return np.asarray(np.searchsorted(boundaries, ticks, side="right") - 1, dtype=np.int64)


def _count_series(requests: Requests, started: IntArray, tally: Tally) -> None:
    series, ended = tally.class_series, _interval(requests.end_ticks, tally.boundaries)
    np.add.at(series[:, :, STARTED], (started, requests.request_class), 1)
    rows = requests.status != Status.UNFINISHED
    np.add.at(series, (ended[rows], requests.request_class[rows], requests.status[rows]), 1)
    rows = requests.status == Status.COMPLETED
    latency = (requests.end_ticks - requests.intended_ticks)[rows]
    sums = np.zeros((*series.shape[:2], 2), dtype=np.int64)
    _add_pairs(sums, 0, (ended[rows], requests.request_class[rows]), latency)
    series[:, :, LATENCY] = saturated(sums[..., 0], sums[..., 1])


def _count_totals(requests: Requests, started: IntArray, tally: Tally) -> None:
    totals, classes = tally.class_totals, requests.request_class
    np.add.at(totals[:, :, STARTED], (started, classes), 1)
    ended = requests.status != Status.UNFINISHED
    np.add.at(totals, (started[ended], classes[ended], requests.status[ended]), 1)
    np.add.at(totals[:, :, RETRIES], (started[ended], classes[ended]), requests.attempts[ended] - 1)
    response = (requests.end_ticks - requests.start_ticks)[ended]
    _add_pairs(totals, RESPONSE, (started[ended], classes[ended]), response)


def _count_number(requests: Requests, tally: Tally) -> None:
    ends = np.where(requests.status == Status.UNFINISHED, tally.end_ticks, requests.end_ticks)
    rows = zip(requests.request_class.tolist(), requests.start_ticks.tolist(), ends.tolist(), strict=True)
    number = np.zeros(tally.class_totals.shape[:2], dtype=object)  # Python's integers, which never overflow
    for request_class, start, end in rows:
        for interval, ticks in overlaps(tally.boundaries, start, end):
            number[interval, request_class] += ticks
    tally.class_totals[:, :, NUMBER] = number >> PAIR_BITS
    tally.class_totals[:, :, NUMBER + 1] = number & _LOW


def _count_latencies(requests: Requests, started: IntArray, tally: Tally) -> None:
    rows = requests.status == Status.COMPLETED
    places = started[rows], requests.request_class[rows]
    for clock in range(tally.histograms.shape[2]):
        since = (requests.intended_ticks, requests.start_ticks)[clock]
        latency = (requests.end_ticks - since)[rows]
        _add_pairs(tally.class_totals, (INTENDED, ACTUAL)[clock], places, latency)
        np.maximum.at(tally.class_totals[:, :, (LONGEST_INTENDED, LONGEST_ACTUAL)[clock]], places, latency)
        np.add.at(tally.histograms, (*places, np.full(len(latency), clock), bin_of(latency)), 1)


def _add_pairs(totals: IntArray, column: int, places: tuple[NDArray[np.int64], ...], values: IntArray) -> None:
    low = np.zeros(totals.shape[:2], dtype=np.int64)
    np.add.at(totals[:, :, column], places, values >> PAIR_BITS)
    np.add.at(low, places, values & _LOW)
    low += totals[:, :, column + 1]
    totals[:, :, column] += low >> PAIR_BITS
    totals[:, :, column + 1] = low & _LOW
