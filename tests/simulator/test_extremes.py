"""The longest latency of a long run, from the longest latencies of its parts."""

import numpy as np
import pytest

from capplan.models.errors import InputError
from capplan.models.language.distribution import Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Station
from capplan.models.language.step import Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.simulator.compiled.engine import simulate
from capplan.simulator.output import block_maxima_s, maximum_over_s

IN_A_BLOCK = 1000


def test_exponential_times_have_a_known_maximum() -> None:
    """Blocks of 1,000 exponential times: over n blocks the median maximum is -log(1 - 0.5^(1/(1000 n))).

    Error rates: of 4,000 blocks the location has a standard error of 0.02 and the scale one of 0.012 (times log 100 =
    4.6, so 0.06 together); 0.25 is four of them (a right program fails once in 16,000 seeds), and an error of the scale
    by 10 % (0.46) passes once in 2,000.
    """
    times = np.random.default_rng(5).exponential(1.0, (4000, IN_A_BLOCK)).max(axis=1)
    for blocks in (1, 10, 100):
        expected = -np.log(-np.expm1(np.log(0.5) / (IN_A_BLOCK * blocks)))
        assert maximum_over_s(times, blocks) == pytest.approx(expected, abs=0.25)


def test_equal_maxima_stay_what_they_are() -> None:
    assert maximum_over_s(np.full(10, 0.25), 1000.0) == 0.25


def test_the_level_and_the_horizon_raise_it() -> None:
    maxima = np.random.default_rng(1).gumbel(1.0, 0.1, 50)

    rising = [maximum_over_s(maxima, 120, level) for level in (0.05, 0.5, 0.95)]
    assert rising == sorted(rising)
    assert maximum_over_s(maxima, 240) > maximum_over_s(maxima, 120)


def test_nine_blocks_are_too_few() -> None:
    with pytest.raises(InputError, match="9"):
        maximum_over_s(np.ones(9), 10.0)


def test_block_maxima_are_those_of_the_requests() -> None:
    network = Network(
        name="one station",
        stations=(Station("server", 1),),
        classes=(RequestClass("request", Visit("server", Exponential(0.01))),),
        traffic=Open(50.0, {"request": 1.0}),
    )
    run = simulate(network, 120.0, seed=3, warmup_s=20.0, trace=True)
    maxima = block_maxima_s(run)
    bounds = run.tally.boundaries[run.window[0] : run.window[1] + 1] / 1e9

    starts, ends = run.requests.start_ticks / 1e9, run.requests.end_ticks / 1e9
    place = np.searchsorted(bounds, starts, side="right") - 1
    assert len(maxima) == len(bounds) - 1
    for number in range(0, len(maxima), 17):
        assert maxima[number] == pytest.approx((ends - starts)[place == number].max(), abs=1e-9)
    assert maxima.max() == run.report("request").intended.max_s
