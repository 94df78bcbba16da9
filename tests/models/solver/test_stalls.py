"""The wait for a server that stalls, in closed form: against known queues, the compiled engine and integration."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import special
from tests.oracles.single_station import mg1_mean_wait_s
from tests.simulator.agreement import assert_agrees

from capplan.models.errors import InputError
from capplan.models.language.distribution import Deterministic, Exponential, Mixture
from capplan.models.language.network import Network
from capplan.models.language.station import Station
from capplan.models.language.step import Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.solver.single_station import (
    Stalls,
    longest_wait_s,
    relaxation_s,
    response_quantile_s,
    response_tail,
    wait_tail,
)
from capplan.simulator.compiled.engine import simulate

TIMES_S = np.array([0.0, 0.01, 0.1, 0.5])


def tail_at(wait: tuple[np.ndarray, np.ndarray], time_s: float) -> float:
    weight, decay = wait
    return float((weight * np.exp(-decay * time_s)).sum())


@pytest.mark.parametrize("other", [Stalls(0.0, 0.02), Stalls(0.0, 0.05)])
def test_stalls_of_one_kind_are_an_mm1_queue(other: Stalls) -> None:
    rate, mean = 8.0, 0.05
    for wait in (wait_tail(0.0, Stalls(rate, mean), other), wait_tail(0.0, other, Stalls(rate, mean))):
        expected = [rate * mean * np.exp(-(1 / mean - rate) * time) for time in TIMES_S]
        assert [tail_at(wait, time) for time in TIMES_S] == pytest.approx(expected, rel=5e-4)


def test_two_kinds_of_one_length_are_one_kind() -> None:
    wait = wait_tail(0.2, Stalls(5.0, 0.03), Stalls(3.0, 0.03))
    one = wait_tail(0.2, Stalls(8.0, 0.03), Stalls(0.0, 1.0))

    assert [tail_at(wait, time) for time in TIMES_S] == pytest.approx(
        [tail_at(one, time) for time in TIMES_S], rel=1e-4
    )


def test_the_mean_wait_is_pollaczek_and_khinchines() -> None:
    short, long, drained = Stalls(9.0, 0.012), Stalls(0.5, 0.07), 0.6
    weight, decay = wait_tail(drained, short, long)
    law = Mixture((9 / 9.5, 0.5 / 9.5), (Exponential(0.012), Exponential(0.07)))

    # The work ahead falls at 1 - drained; by its own clock, in which it falls at 1, stalls come that much more often.
    expected = float(mg1_mean_wait_s(9.5 / (1 - drained), law.mean, law.scv))
    assert float((weight / decay).sum()) == pytest.approx(expected, rel=1e-9)


def test_draws_are_independent_of_one_another() -> None:
    both = wait_tail(np.array([0.1, 0.6]), Stalls(9.0, 0.012), Stalls(np.array([0.5, 0.7]), 0.07))
    second = wait_tail(0.6, Stalls(9.0, 0.012), Stalls(0.7, 0.07))

    assert np.allclose(np.stack(both)[..., 1:], np.stack(second))
    levels = response_quantile_s(both, 0.004, 0.05, 0.99)
    assert levels.shape == (2,)
    assert levels[1] == pytest.approx(float(response_quantile_s(second, 0.004, 0.05, 0.99)[0]))


def test_the_sum_with_the_path_is_the_integral() -> None:
    wait, mean, scv = wait_tail(0.5, Stalls(10.0, 0.012), Stalls(0.5, 0.07)), 0.004, 0.05
    path = np.linspace(0, 0.03, 20001)
    density = path ** (1 / scv - 1) * np.exp(-path / (mean * scv))
    density /= np.trapezoid(density, path)
    for time in (0.003, 0.005, 0.02, 0.2):
        above = np.where(path > time, 1.0, [tail_at(wait, max(time - each, 0.0)) for each in path])
        expected = float(np.trapezoid(density * above, path))
        assert float(response_tail(wait, mean, scv, np.array(time))[0]) == pytest.approx(expected, rel=5e-4)


def test_without_stalls_the_response_is_the_path() -> None:
    wait = wait_tail(0.3, Stalls(1e-12, 0.012), Stalls(1e-12, 0.07))

    median = 0.004 * 0.05 * special.gammaincinv(20.0, 0.5)
    assert float(response_quantile_s(wait, 0.004, 0.05, 0.5)[0]) == pytest.approx(median, rel=1e-6)


@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.99, 1 - 1e-6])
def test_a_quantile_is_where_the_tail_says(level: float) -> None:
    wait = wait_tail(0.7, Stalls(9.0, 0.012), Stalls(0.6, 0.07))

    time = response_quantile_s(wait, 0.004, 0.05, level)
    assert float(response_tail(wait, 0.004, 0.05, time)[0]) == pytest.approx(1 - level, rel=1e-5)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_more_of_anything_never_shortens_a_response(level: float) -> None:
    """Small services, rates and lengths of stalls, and the path."""
    usual = np.array([0.4, 9.0, 0.012, 0.5, 0.07, 0.004])

    def response(numbers: np.ndarray) -> float:
        drained, often, short, seldom, long, path = numbers
        wait = wait_tail(drained, Stalls(often, short), Stalls(seldom, long))
        return float(response_quantile_s(wait, path, 0.05, level)[0])

    longer = [response(usual * np.where(np.arange(6) == place, 1.05, 1.0)) for place in range(6)]
    assert min(longer) > response(usual)


def test_a_server_without_a_steady_state_is_refused() -> None:
    with pytest.raises(InputError, match=r"1\.05"):
        wait_tail(0.8, Stalls(10.0, 0.015), Stalls(2.0, 0.05))


def test_a_path_with_a_longer_tail_than_the_wait_is_refused() -> None:
    wait = wait_tail(0.1, Stalls(1.0, 0.001), Stalls(1.0, 0.002))
    with pytest.raises(InputError, match="tail"):
        response_tail(wait, 1.0, 1.0, np.array(0.5))


@pytest.mark.slow
def test_the_compiled_engine_waits_as_long() -> None:
    """The share of requests that wait longer than 20 and 50 ms, where stalls take 10 % and services 50 % of the time.

    Two comparisons, each with the error rates of `agreement`. Services are short (0.25 ms), so that they are a drain.
    """
    rate, drained, short, long = 2000.0, 0.5, 0.012, 0.07
    chance_short, chance_long = 1 / 400, 1 / 3500
    small = Deterministic(drained / rate / (1 - chance_short - chance_long))
    service = Mixture(
        (1 - chance_short - chance_long, chance_short, chance_long), (small, Exponential(short), Exponential(long))
    )
    network = Network(
        name="stalling",
        stations=(Station("server", 1),),
        classes=(RequestClass("request", Visit("server", service)),),
        traffic=Open(rate, {"request": 1.0}),
    )
    runs = [simulate(network, 300.0, seed=11, replication=number, warmup_s=2.0) for number in range(40)]
    wait = wait_tail(drained, Stalls(rate * chance_short, short), Stalls(rate * chance_long, long))
    for time in (0.02, 0.05):
        longer = []
        for run in runs:
            ends, shares = run.report("request").intended.cdf()
            longer.append(1 - float(np.interp(time, ends, shares)))
        assert_agrees(longer, tail_at(wait, time), detects=0.2)


SHORT, LONG = Stalls(9.0, 0.012), Stalls(0.5, 0.07)
STALLED = 9.0 * 0.012 + 0.5 * 0.07  # of the time


def longest_waits_s(left: float, horizon_s: float, runs: int) -> np.ndarray:
    """Return the longest wait of each run, by Lindley's recursion over the stalls: the wait just after each."""
    random, rate = np.random.default_rng(1), SHORT.rate_per_s + LONG.rate_per_s
    wait, longest = np.zeros(runs), np.zeros(runs)
    for _ in range(int(horizon_s * rate)):
        mean = np.where(random.random(runs) < SHORT.rate_per_s / rate, SHORT.mean_s, LONG.mean_s)
        wait = np.maximum(wait - left * random.exponential(1 / rate, runs), 0.0) + random.exponential(1.0, runs) * mean
        longest = np.maximum(longest, wait)
    return longest


@pytest.mark.parametrize("busy", [0.4, 0.9])
def test_the_longest_wait_is_that_of_lindleys_recursion(busy: float) -> None:
    """The median of 400 maxima has a standard error of 0.07 of their scale; counting crossings for clumps is 0.5 off.

    Five standard errors: a correct formula fails one seed in a million; a tenth of the scale is left to its limit.
    """
    left = STALLED / busy
    wait = wait_tail(1 - left, SHORT, LONG)
    scale = 1 / float(wait.decay_per_s.min())
    said, seen = float(longest_wait_s(wait, left, 1500.0)[0]), longest_waits_s(left, 1500.0, 400)

    assert abs(said - float(np.median(seen))) < (5 * 0.072 + 0.1) * scale


def test_the_relaxation_time_grows_as_the_square_towards_saturation() -> None:
    times = [relaxation_s(wait_tail(1 - STALLED / busy, SHORT, LONG), STALLED / busy) for busy in (0.98, 0.99, 0.995)]

    ratios = [float(later[0] / earlier[0]) for earlier, later in pairwise(times)]
    assert ratios == pytest.approx([4.0, 4.0], rel=0.05)
