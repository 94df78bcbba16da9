"""Samples of runs: warm-up, what an interval rests on, and when to stop."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.overlapping_batches import of_overlapping_batches
from tests.simulator.random_series import chance_limits
from tests.simulator.small_networks import network

from capplan.errors import InputError
from capplan.models.language.distribution import Deterministic, Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Station
from capplan.models.language.step import Delay, ForkJoin, Sequence, Visit
from capplan.models.language.traffic import Closed, Open, RequestClass
from capplan.simulator.engine import simulate
from capplan.simulator.output import ConfidenceInterval, batch_length, of_replications
from capplan.simulator.results.run import Run, windowed
from capplan.simulator.sample import (
    ENOUGH,
    FIRST,
    GROWTH,
    NOTHING,
    Sample,
    observe,
    parse_precision,
    replications_needed,
    warmup_of,
)


def queue(load: float = 0.8) -> Network:
    """M/M/1 with a mean service of 1 s."""
    return replace(network(Visit("server", Exponential(1.0))), traffic=Open(load, {"ask": 1.0}))


QUEUE = queue()


@cache
def run(replication: int = 0, duration_s: float = 5000.0, warmup_s: float = 0.0) -> Run:
    return simulate(QUEUE, duration_s, seed=11, replication=replication, warmup_s=warmup_s)


def mean_s(each: Run) -> float:
    return each.latency_mean_s()


def sample(count: int, *, parts: bool = True, find_warmup: bool = False) -> Sample:
    runs = [run(n) for n in range(count)]
    left_out = warmup_of(runs, rising=True) if find_warmup else NOTHING
    return Sample(tuple(observe(each, left_out, parts=parts) for each in runs), "steady")


def test_all_runs_together_are_weighted_by_their_requests() -> None:
    found = sample(3).interval(mean_s)
    totals = [run(n).report() for n in range(3)]

    assert found.value == pytest.approx(
        sum(each.intended.total_ticks for each in totals) / sum(each.completed for each in totals) / 1e9
    )


def test_enough_replications_speak_for_themselves() -> None:
    found = sample(ENOUGH)
    expected = of_replications([mean_s(run(n)) for n in range(ENOUGH)], value=found.together.latency_mean_s())

    assert found.interval(mean_s) == expected


def test_one_run_is_told_by_its_parts() -> None:
    length = batch_length(120)
    figures = [mean_s(windowed(run(), first, first + length)) for first in range(120 - length + 1)]
    expected = of_overlapping_batches(figures, batches_length=length, total_length=120, value=mean_s(run()))

    assert sample(1).interval(mean_s) == expected


def test_three_runs_know_more_than_one() -> None:
    """The variance falls by a factor of about three, and three times the degrees of freedom make t smaller."""
    one, three = (sample(count).interval(mean_s).half_width for count in (1, 3))

    assert one is not None
    assert three is not None
    assert three < one


def test_a_run_may_be_kept_small() -> None:
    whole, small = (sample(ENOUGH, parts=parts, find_warmup=True) for parts in (True, False))

    for figure in (mean_s, lambda each: each.latency_quantile_s(0.99), lambda each: each.stations["server"].mean_queue):
        assert small.interval(figure) == whole.interval(figure)
    assert small.drift(0.8) == whole.drift(0.8)
    assert small.runs[0].tally.class_totals.nbytes < whole.runs[0].tally.class_totals.nbytes / 20


def test_a_finite_horizon_is_the_mean_over_runs() -> None:
    runs = [run(n, 50.0) for n in range(4)]
    found = Sample(tuple(observe(each, parts=True) for each in runs), "finite")

    assert found.interval(mean_s) == of_replications([mean_s(each) for each in runs])
    assert found.interval(mean_s).value != found.together.latency_mean_s()
    one = Sample((observe(runs[0], parts=True),), "finite")
    assert one.interval(mean_s).half_width is None


def slow_start() -> Network:
    """Every request waits for 40 s without a queue: the number in the system needs 40 s to settle."""
    flow = Sequence((Delay(Exponential(40.0)), Visit("server", Exponential(0.1))))
    return replace(network(flow), traffic=Open(4.0, {"ask": 1.0}))


def test_the_warm_up_that_is_found_is_left_out() -> None:
    """Of an exponential approach with time constant 40 s nine tenths are over after 92 s, 99 % after 184 s."""
    made = simulate(slow_start(), 2000.0, seed=4)
    seen = observe(made, warmup_of([made], rising=True), parts=True)

    assert seen.settled
    assert 60 < seen.warmup_s < 400
    assert seen.run.report().started == windowed(made, *seen.run.window).report().started < made.report().started


@pytest.mark.slow
def test_a_burst_is_no_warm_up() -> None:
    """M/M/1 at 0.8 with 4,000 requests a run: the empty start takes 0.3 % off the mean.

    The standard deviation of a run's mean is some 15 %, of that of 400 runs 0.75 %; what a rule leaves out changes it
    by less. The plain rule takes some 5 % off run by run, so both bounds are missed with a probability below 0.001.
    """
    runs = [simulate(QUEUE, 5000.0, seed=12, replication=n) for n in range(400)]
    tens = [runs[first : first + 10] for first in range(0, 400, 10)]
    none = sum(mean_s(run) for run in runs)

    def bias(groups: list[list[Run]], rising: bool) -> float:
        left = [(run, warmup_of(group, rising=rising)) for group in groups for run in group]
        return sum(mean_s(observe(run, left_out, parts=True).run) for run, left_out in left) / none - 1

    alone = [[run] for run in runs]
    assert abs(bias(tens, rising=True)) < 0.01
    assert abs(bias(alone, rising=True)) < 0.02
    assert bias(alone, rising=False) < -0.03


def test_a_high_beginning_is_a_warm_up_where_clients_begin_at_once() -> None:
    """A thousand clients ask after 20 s all at once, and each again 20 s after its answer: the peak decays to half."""
    clients = Closed(1000, Deterministic(20.0), {"ask": 1.0})
    made = simulate(replace(network(Delay(Exponential(20.0))), traffic=clients), 200.0, seed=3, warmup_s=20.0)
    found = warmup_of([made], rising=False)

    assert made.series.number[slice(*made.window)].sum(axis=1)[: found.count].mean() > 550
    assert found.settled
    assert warmup_of([made], rising=True).count == 0


def test_a_run_shorter_than_its_warm_up_says_so() -> None:
    assert not warmup_of([simulate(slow_start(), 40.0, seed=4)], rising=True).settled


def test_a_given_warm_up_is_kept() -> None:
    seen = observe(run(0, 5000.0, 300.0), parts=True)

    assert (seen.warmup_s, seen.settled) == (300.0, True)
    assert seen.backlogs.shape[1] == seen.run.window[1] - seen.run.window[0]


def test_work_that_nobody_waits_for_may_pile_up() -> None:
    """Two stations get each request; it is done after the first. The second is 10 % too slow."""
    flow = ForkJoin((Visit("server", Exponential(0.1)), Visit("slow", Exponential(1.1))), 1)
    stations = (Station("server", 1), Station("slow", 1))
    made = Network("two", stations, (RequestClass("ask", flow),), Open(1.0, {"ask": 1.0}))
    runs = [observe(simulate(made, 5000.0, seed=1, replication=n), parts=False) for n in range(2)]

    drift = Sample(tuple(runs), "steady").drift(1.0)
    assert drift.verdict == "overloaded"
    assert drift.growth.value == pytest.approx(1 - 1 / 1.1, abs=0.02)


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """M/M/1 at 0.8: mean 5 s. 200 experiments of one run of 32,000 requests each, by batches.

    With a coverage of 0.92 to 0.95, fewer than 170 happen with a probability below 0.001, and so do 200 of 200.
    """
    inside = 0
    for number in range(200):
        made = simulate(QUEUE, 4e4, seed=77, replication=number)
        seen = observe(made, warmup_of([made], rising=True), parts=True)
        found = Sample((seen,), "steady").interval(mean_s)
        inside += found.low < 5.0 < found.high
    assert 170 <= inside < 200


def test_only_replications_are_a_sample() -> None:
    one = observe(run(), parts=False)
    another = replace(one, run=replace(one.run, network="other", replication=1))
    for wrong in ((), (one, one), (one, another)):
        with pytest.raises(InputError):
            Sample(wrong, "steady")


HALF_WIDTHS = st.none() | st.floats(0.0, 10.0)
COUNTS, SHARES = st.integers(FIRST, 500), st.floats(1e-4, 0.5)


@pytest.mark.parametrize(
    ("text", "precision"),
    [
        ("p99<2%", ("p99", 0.02)),
        ("mean<0.5%", ("mean", 0.005)),
        (" acct.p99 < .1 % ", ("acct.p99", 0.001)),
    ],
)
def test_what_a_precision_says(text: str, precision: tuple[str, float]) -> None:
    assert parse_precision(text) == precision


NO_PRECISION = "p99 p99<2 <2% p99<=2% p99>2% p99<two% p99<-2% p99<0% p99<100% p99<1000%"


@pytest.mark.parametrize("text", ["", "a b<2%", *NO_PRECISION.split()])
def test_what_is_no_precision(text: str) -> None:
    with pytest.raises(InputError):
        parse_precision(text)


@pytest.mark.parametrize(
    ("half_width", "count", "most", "needed"),
    [
        (None, 0, 100, 10),  # nothing is there
        (0.0, 4, 100, 10),  # too few to believe
        (None, 0, 6, 6),
        (0.02, 10, 100, 10),  # precise enough
        (0.0, 10, 100, 10),
        (0.03, 10, 100, 23),  # 10 times 1.5 squared
        (0.0201, 10, 100, 11),
        (0.5, 10, 100, 30),  # far away: three times as many
        (None, 10, 100, 30),
        (0.5, 50, 100, 100),
        (0.5, 100, 100, 100),
        (0.5, 120, 100, 120),
    ],
)
def test_how_many_are_next(half_width: float | None, count: int, most: int, needed: int) -> None:
    assert replications_needed(ConfidenceInterval(1.0, half_width), count, 0.02, most) == needed


@pytest.mark.parametrize(("count", "relative", "most"), [(0, 0.0, 9), (0, math.nan, 9), (-1, 0.1, 9), (0, 0.1, -9)])
def test_numbers_that_make_no_sense(count: int, relative: float, most: int) -> None:
    with pytest.raises(InputError):
        replications_needed(ConfidenceInterval(1.0, 0.1), count, relative, most)


@given(HALF_WIDTHS, COUNTS, SHARES)
def test_a_round_is_neither_empty_nor_too_large(half_width: float | None, count: int, relative: float) -> None:
    figure = ConfidenceInterval(1.0, half_width)
    needed = replications_needed(figure, count, relative, 10_000)

    assert (needed == count) == (figure.relative <= relative)
    assert needed <= GROWTH * count


@given(st.floats(0.0, 10.0), st.floats(0.0, 10.0), COUNTS, SHARES, SHARES)
def test_more_is_asked_for_a_wider_interval_or_a_tighter_goal(
    one: float, other: float, count: int, goal: float, tighter: float
) -> None:
    narrow, wide = ConfidenceInterval(1.0, min(one, other)), ConfidenceInterval(1.0, max(one, other))
    loose, tight = max(goal, tighter), min(goal, tighter)

    assert replications_needed(narrow, count, goal, 800) <= replications_needed(wide, count, goal, 800)
    assert replications_needed(wide, count, loose, 800) <= replications_needed(wide, count, tight, 800)


def test_stopping_costs_little_coverage() -> None:
    """Normal figures that need about 15 replications, where the documented coverage is least: 93.7 %.

    Of 3,000 experiments, the limits are for 93 % and 95 % with 1e-4 beyond; stopping without a first round of ten
    covers less than 85 %.
    """
    random, relative, hits = np.random.default_rng(1), 0.02, 0
    for figures in 1 + relative * math.sqrt(15) / 1.96 * random.standard_normal((3000, 400)):
        count, found = 0, ConfidenceInterval(1.0, None)
        while (needed := replications_needed(found, count, relative, 400)) > count:
            count, found = needed, of_replications(figures[:needed])
        assert found.relative <= relative
        hits += found.low <= 1.0 <= found.high

    assert chance_limits(3000, 0.93)[0] <= hits <= chance_limits(3000, 0.95)[1]
