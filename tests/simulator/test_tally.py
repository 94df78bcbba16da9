"""The summary of a run from its tally: by hand, and against plain definitions for random requests."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capplan.errors import InputError
from capplan.models.language.distribution import Deterministic
from capplan.models.language.network import Network
from capplan.models.language.station import Pool, Station
from capplan.models.language.step import Visit
from capplan.models.language.traffic import Event, RequestClass, Throttled, Timeline
from capplan.simulator.results.histogram import bin_of
from capplan.simulator.results.run import Mark, Run, concatenated, condensed_run, report, windowed
from capplan.simulator.results.tally import (
    BUSY,
    HELD,
    NUMBER,
    PAUSED,
    POOL_DROPS,
    POOL_WAITED,
    QUEUED,
    RESPONDED,
    STATION_DROPS,
    TAKEN,
    VISITS,
    WAITED,
    Requests,
    Status,
    Tally,
    add_pair,
    empty_tally,
    intervals,
    pair,
    tally_of_requests,
)

S = 1_000_000_000  # ticks
WARMUP, END = 2 * S, 10 * S
SERVER, FARM = Station("server", 1), Station("farm", 4)
NETWORK = Network(
    "two classes",
    (SERVER, FARM),
    (
        RequestClass("read", Visit("server", Deterministic(1.0))),
        RequestClass("write", Visit("farm", Deterministic(1.0))),
    ),
    Throttled(2, 1.0, {"read": 0.5, "write": 0.5}),  # so that requests may start late
    pools=(Pool("threads", 2), Pool("permits", 5)),
    timeline=Timeline((Event(3.0, "down", "farm"), Event(0.5, "scale_traffic", "*", 2.0))),
)


def requests_of(rows: list[tuple[int, int, int, int, Status, int]]) -> Requests:
    """Make requests of (class, intended, start, end, status, attempts)."""
    columns = np.array(sorted(rows, key=lambda row: row[2]), dtype=np.int64).reshape(-1, 6).T
    zeros = np.zeros(len(rows), dtype=np.int64)
    return Requests(zeros, columns[0], zeros, zeros, *columns[1:])


def summed_up(requests: Requests, trace: bool = True, replication: int = 0, network: Network = NETWORK) -> Run:
    tally = tally_of_requests(requests, network, intervals(WARMUP, END, 5))
    return report(
        network, tally, WARMUP, seed=1, replication=replication, events=0, requests=requests if trace else None
    )


BY_HAND = requests_of(
    [
        (0, 1 * S, 1 * S, 3 * S, Status.COMPLETED, 1),  # starts in the warm-up, ends in the window
        (0, 2 * S, 3 * S, 5 * S, Status.COMPLETED, 1),  # a second late
        (0, 9 * S, 9 * S, 13 * S, Status.COMPLETED, 3),  # ends after the window
        (0, 4 * S, 4 * S, 6 * S, Status.DROPPED, 2),
        (1, 5 * S, 5 * S, 6 * S, Status.TIMED_OUT, 1),
        (1, 8 * S, 8 * S, -1, Status.UNFINISHED, 1),
    ]
)


def test_classes_by_hand() -> None:
    read, write = (summed_up(BY_HAND).report(name) for name in ("read", "write"))
    assert (read.started, read.completed, read.dropped, read.timed_out, read.unfinished) == (3, 2, 1, 0, 0)
    assert (read.retries, read.completions, read.throughput_per_s) == (3, 2, 2 / 8)
    assert (read.intended.mean_s, read.intended.max_s, read.actual.mean_s, read.actual.max_s) == (3.5, 4, 3, 4)
    assert read.drop_rate == 1 / 3
    assert read.number_ticks == (1 + 2 + 1 + 2) * S
    assert read.response_ticks == (2 + 4 + 2) * S
    assert (write.started, write.completed, write.dropped, write.timed_out, write.unfinished) == (2, 0, 0, 1, 1)
    assert (write.number_ticks, write.response_ticks, write.drop_rate) == ((1 + 2) * S, S, 0.5)
    assert math.isnan(write.intended.mean_s)


def test_all_classes_together_have_one_window() -> None:
    run = summed_up(BY_HAND)
    both = run.report()
    assert (both.name, both.window_s, both.started, both.completions) == ("*", 8.0, 5, 2)
    assert run.throughput_per_s() == 0.25
    assert run.drop_rate() == 0.4
    assert [run.count(status) for status in Status] == [1, 2, 1, 1]
    assert run.latency_mean_s() == 3.5
    little = run.little()
    assert (little.number, little.rate_per_s, little.response_s) == (9 / 8, 5 / 8, 9 / 4)


def test_series_by_hand() -> None:
    """One interval of the warm-up, and four of 2 s."""
    series = summed_up(BY_HAND).series
    assert series.boundaries_s.tolist() == [0, 2, 4, 6, 8, 10]
    assert series.offered_per_s[:, 0].tolist() == [0.5, 0.5, 0.5, 0, 0.5]
    assert series.offered_per_s[:, 1].tolist() == [0, 0, 0.5, 0, 0.5]
    assert series.throughput_per_s[:, 0].tolist() == [0, 0.5, 0.5, 0, 0]
    assert series.drops_per_s.tolist() == [[0, 0], [0, 0], [0, 0], [0.5, 0.5], [0, 0]]
    assert series.latency_mean_s[:, 0].tolist() == pytest.approx([math.nan, 2, 3, math.nan, math.nan], nan_ok=True)


def filled() -> Tally:
    tally = empty_tally(NETWORK, intervals(WARMUP, END, 5))
    tally.station_series[:5, 1, QUEUED] = [9 * S, S, 0, 2 * S, S]
    tally.station_series[:5, 1, BUSY] = [8 * S, 8 * S, 4 * S, 2 * S, 2 * S]
    totals = [VISITS, WAITED + 1, RESPONDED + 1, STATION_DROPS, PAUSED]
    tally.station_totals[:, 1][:, totals] = 9 * S  # of the warm-up, and of what comes after the end
    tally.station_totals[1:5, 1] = 0
    tally.station_totals[1, 1][totals] = [3, S, 4 * S, 7, 0]
    tally.station_totals[4, 1][totals] = [1, S, 6 * S, 0, 2 * S]
    tally.pool_series[:5, 0, QUEUED] = [5 * S, 2 * S, 2 * S, 0, 0]
    tally.pool_series[:5, 0, BUSY] = [0, 2 * S, 3 * S, 0, 1 * S]
    tally.pool_totals[2, 0, [TAKEN, POOL_DROPS, POOL_WAITED + 1, HELD + 1]] = [2, 3, 5 * S, 6 * S]
    tally.pool_busy[0, 0, :3] = [0, 2 * S, 0]
    tally.pool_busy[1:5, 0, :3] = [S, 0, S], [S, S, 0], [2 * S, 0, 0], [0, S, S]
    tally.marks.append((S, 2 * S, "pause", "farm: gc"))
    return tally


def test_stations_pools_and_marks_by_hand() -> None:
    run = report(NETWORK, filled(), WARMUP, seed=1, replication=2, events=3)
    assert (run.network, run.seed, run.replication, run.events) == ("two classes", 1, 2, 3)
    assert (run.warmup_s, run.duration_s, run.window_s) == (2.0, 10.0, 8.0)
    farm, threads = run.stations["farm"], run.pools["threads"]
    assert (farm.mean_queue, farm.utilisation, farm.mean_number) == (0.5, 0.5, 2.5)
    assert (farm.visits, farm.mean_wait_s, farm.mean_response_s, farm.drops, farm.paused_share) == (
        4,
        0.5,
        2.5,
        7,
        0.25,
    )
    assert (threads.mean_queue, threads.mean_busy, threads.taken, threads.drops) == (0.5, 0.75, 2, 3)
    assert (threads.mean_wait_s, threads.mean_hold_s, threads.busy_share.tolist()) == (2.5, 3.0, [0.5, 0.25, 0.25])
    assert run.pools["permits"].busy_share.size == 6
    assert math.isnan(run.stations["server"].mean_wait_s)
    assert run.series.station_queue[:, 1].tolist() == [4.5, 0.5, 0, 1, 0.5]
    assert run.series.station_utilisation[:, 1].tolist() == [1, 1, 0.5, 0.25, 0.25]
    assert run.series.pool_queue[:, 0].tolist() == [2.5, 1, 1, 0, 0]
    assert run.series.pool_busy[:, 0].tolist() == [0, 1, 1.5, 0, 0.5]
    assert run.marks == (
        Mark(0.5, 0.5, "scale_traffic", "*"),
        Mark(1.0, 2.0, "pause", "farm: gc"),
        Mark(3.0, 3.0, "down", "farm"),
    )


@st.composite
def any_requests(draw: st.DrawFn) -> Requests:
    rows = []
    for _ in range(draw(st.integers(0, 25))):
        start = draw(st.integers(0, END - 1))
        status = draw(st.sampled_from(Status))
        end = start + draw(st.integers(0, 2**40)) if status else -1
        late = draw(st.integers(0, start))
        rows.append((draw(st.integers(0, 1)), start - late, start, end, status, draw(st.integers(1, 4))))
    return requests_of(rows)


@settings(max_examples=30)
@given(any_requests())
def test_sums_are_what_their_columns_say(requests: Requests) -> None:
    """One request at a time, with plain numbers."""
    tally = tally_of_requests(requests, NETWORK, intervals(WARMUP, END, 5))
    for index, name in enumerate(("read", "write")):
        rows = [
            row for row in zip(*(column.tolist() for column in vars(requests).values()), strict=True) if row[1] == index
        ]
        found = report(NETWORK, tally, WARMUP, seed=1, replication=0, events=0).report(name)
        ended = [row for row in rows if row[5] >= WARMUP and row[7] != Status.UNFINISHED]
        completed = [row for row in ended if row[7] == Status.COMPLETED]
        assert found.started == sum(row[5] >= WARMUP for row in rows)
        assert [found.completed, found.dropped, found.timed_out] == [
            sum(row[7] == status for row in ended) for status in (Status.COMPLETED, Status.DROPPED, Status.TIMED_OUT)
        ]
        assert found.retries == sum(row[8] - 1 for row in ended)
        assert found.completions == sum(WARMUP <= row[6] < END for row in rows if row[7] == Status.COMPLETED)
        assert found.response_ticks == sum(row[6] - row[5] for row in ended)
        until = [END if row[7] == Status.UNFINISHED else min(row[6], END) for row in rows]
        assert found.number_ticks == sum(
            max(end - max(row[5], WARMUP), 0) for row, end in zip(rows, until, strict=True)
        )
        assert found.intended.total_ticks == sum(row[6] - row[4] for row in completed)
        assert found.actual.largest_ticks == max((row[6] - row[5] for row in completed), default=0)
        bins = bin_of(np.array([row[6] - row[4] for row in completed], dtype=np.int64))
        assert np.array_equal(np.flatnonzero(found.intended.counts), np.unique(bins))
        assert found.intended.count == found.actual.count == len(completed)


@settings(max_examples=30)
@given(any_requests())
def test_intervals_add_up_to_the_run(requests: Requests) -> None:
    run = summed_up(requests)
    length_s = np.diff(run.series.boundaries_s)
    assert (length_s @ run.series.offered_per_s).sum() == pytest.approx(requests.start_ticks.size)
    in_window = (length_s @ run.series.throughput_per_s - length_s[0] * run.series.throughput_per_s[0]).sum()
    assert in_window == pytest.approx(run.report().completions, abs=1e-9)


@settings(max_examples=30)
@given(any_requests())
def test_without_a_trace_all_is_the_same_but_quantiles_to_half_a_percent(requests: Requests) -> None:
    full, lean = summed_up(requests), summed_up(requests, trace=False)
    assert full.latency_mean_s("read") == pytest.approx(lean.latency_mean_s("read"), rel=0, nan_ok=True)
    for share in (0.5, 0.99):
        exact = full.latency_quantile_s(share)
        assert lean.latency_quantile_s(share) == pytest.approx(exact, rel=1 / 256 + 1e-9, nan_ok=True)
    assert full.latencies_s("write", "actual").size == lean.count(Status.COMPLETED, "write")


def test_what_needs_a_trace_says_so() -> None:
    run = summed_up(BY_HAND, trace=False)
    for ask in (run.latencies_s, run.measured, lambda: run.requests):
        with pytest.raises(InputError, match="two classes"):
            ask()
    with pytest.raises(InputError, match="'read'"):
        run.throughput_per_s("raed")


@settings(max_examples=30)
@given(any_requests(), any_requests())
def test_replications_are_merged(one: Requests, other: Requests) -> None:
    runs = [summed_up(one), summed_up(other, replication=1)]
    both = concatenated(runs)
    for name in ("read", "write"):
        found, parts = both.reports[name], [run.report(name) for run in runs]
        assert found.window_s == 16
        assert found.started == sum(part.started for part in parts)
        assert found.throughput_per_s == pytest.approx(sum(part.throughput_per_s for part in parts) / 2)
        assert found.intended.total_ticks == sum(part.intended.total_ticks for part in parts)
        assert np.array_equal(found.actual.counts, parts[0].actual.counts + parts[1].actual.counts)
    assert both.window_s == sum(run.window_s for run in runs)


def test_a_condensed_run_has_the_same_figures() -> None:
    run = windowed(summed_up(BY_HAND), 1, 4)
    small = condensed_run(run)
    for name in ("read", "write"):
        one, other = run.reports[name], small.reports[name]
        assert (one.started, one.response_ticks, one.number_ticks) == (
            other.started,
            other.response_ticks,
            other.number_ticks,
        )
    assert small.tally.class_totals.shape[0] == 2
    assert concatenated([small]).reports["read"].intended.max_s == run.reports["read"].intended.max_s
    assert small.series.offered_per_s.tolist() == run.series.offered_per_s[1:4].tolist()


def test_stations_and_pools_of_several_runs() -> None:
    """Two windows of a run are the same as the whole of it."""
    run = report(NETWORK, filled(), WARMUP, seed=1, replication=2, events=3)
    both = concatenated([windowed(run, 1, 3), windowed(run, 3, 5)])
    for one, other in ((both.stations, run.stations), (both.pools, run.pools)):
        for name, figures in one.items():
            for field, value in vars(figures).items():
                assert np.array_equal(value, getattr(other[name], field), equal_nan=not isinstance(value, str)), field


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.integers(1, 200))
def test_intervals_end_where_the_window_does(warmup: int, length: int, count: int) -> None:
    boundaries = intervals(warmup, warmup + length, count)
    assert boundaries[0] == 0
    assert boundaries[-1] == warmup + length
    assert warmup in boundaries
    assert np.all(np.diff(boundaries) > 0)
    assert len(boundaries) - 1 <= count + 1


def test_intervals_by_hand() -> None:
    assert intervals(0, 12, 4).tolist() == [0, 3, 6, 9, 12]
    assert intervals(2, 12, 6).tolist() == [0, 2, 4, 6, 8, 10, 12]
    assert intervals(3, 5, 100).tolist() == [0, 1, 2, 3, 4, 5]
    assert len(intervals(30 * S, 330 * S)) == 121


@given(st.lists(st.integers(0, 2**62), max_size=20))
def test_pairs_outgrow_63_bits(values: list[int]) -> None:
    totals = np.zeros(15, dtype=np.int64)
    for value in values:
        add_pair(totals, NUMBER, value)
    assert pair(totals, NUMBER) == sum(values)
    assert 0 <= totals[NUMBER + 1] < 2**40


def test_windows_of_a_run_by_hand() -> None:
    """A request counts where it starts, what it has waited where that was."""
    run = summed_up(BY_HAND)
    first, second = windowed(run, 0, 2), windowed(run, 2, 5)
    assert (first.warmup_s, first.end_s, second.warmup_s, second.end_s) == (0, 4, 4, 10)
    assert (first.report("read").started, second.report("read").started) == (2, 2)
    assert (first.report("read").intended.max_s, second.report("read").intended.max_s) == (3, 4)
    assert (first.report("read").number_ticks, second.report("read").number_ticks) == (3 * S, 4 * S)
    assert (first.report("read").completions, second.report("read").completions) == (1, 1)
    assert first.measured().tolist() == [True, True, False, False, False, False]
    with pytest.raises(ValueError, match="3 to 6"):
        windowed(run, 3, 6)


@settings(max_examples=30)
@given(any_requests(), st.integers(1, 4))
def test_windows_add_up(requests: Requests, cut: int) -> None:
    run = summed_up(requests)
    whole, before, after = (windowed(run, *ends).report() for ends in ((0, 5), (0, cut), (cut, 5)))
    numbers = ("window_ticks", "started", "completed", "dropped", "timed_out", "retries", "completions")
    for column in (*numbers, "response_ticks", "number_ticks"):
        assert getattr(before, column) + getattr(after, column) == getattr(whole, column)
    for clock in ("intended", "actual"):
        one, other = getattr(before, clock) + getattr(after, clock), getattr(whole, clock)
        assert np.array_equal(one.counts, other.counts)
        assert (one.total_ticks, one.largest_ticks) == (other.total_ticks, other.largest_ticks)
