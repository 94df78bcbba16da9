"""Poisson and bursty arrivals against theory; a correct engine fails a comparison with probability 1e-3."""

from collections.abc import Iterator
from itertools import takewhile

import numpy as np
import pytest
from scipy import stats
from tests.simulator.agreement import assert_agrees

from capplan.models.language.traffic import Bursty, Poisson, Timeline
from capplan.simulator.specification.clock import TICKS_PER_S
from capplan.simulator.specification.streams import root_key, source_key
from capplan.simulator.specification.timeline import arrival_ticks, segments

ALPHA = 1e-3
STEADY = segments({"job": 1.0}, Timeline())


def times_s(ticks: Iterator[int], until_s: float) -> np.ndarray:
    return np.array(list(takewhile(lambda tick: tick < until_s * TICKS_PER_S, ticks))) / TICKS_PER_S


def key(replication: int) -> int:
    return source_key(root_key(11, replication), "traffic")


def test_poisson_gaps_are_exponential_and_independent() -> None:
    gaps = np.diff(times_s(arrival_ticks(key(0), 20.0, Poisson(), STEADY), 1_000))
    assert stats.kstest(gaps, "expon", args=(0, 0.05)).pvalue > ALPHA
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) * gaps.size**0.5 < stats.norm.ppf(1 - ALPHA / 2)


def test_no_rate_no_arrivals() -> None:
    for law in (Poisson(), Bursty(2.0, 0.1, 1.0)):
        assert list(arrival_ticks(key(0), 0.0, law, STEADY)) == []


@pytest.mark.slow
def test_bursty_counts_have_the_mean_and_variance_of_an_mmpp() -> None:
    """Fischer and Meier-Hellstern, *The MMPP cookbook* (1993): variance of the count in a given time."""
    rate, law, length_s = 20.0, Bursty(4.0, 0.2, 0.5), 5.0
    burst, quiet = 80.0, 20.0 * (1 - 0.8) / 0.8
    decay = 1 / 0.5 + 1 / 2.0  # leaving bursts of 0.5 s and quiet times of 2 s
    growth = 2 * 0.2 * 0.8 * (burst - quiet) ** 2 / decay**2
    variance = rate * length_s + growth * (decay * length_s - 1 + np.exp(-decay * length_s))
    counts = [times_s(arrival_ticks(key(n), rate, law, STEADY), length_s).size for n in range(4_000)]
    assert_agrees([float(count) for count in counts], rate * length_s, detects=0.1)
    assert_agrees([(count - rate * length_s) ** 2 for count in counts], variance, detects=0.2)


def test_bursts_alone() -> None:
    """All arrivals in bursts: the quiet rate is 0, and the number of phases without arrivals does no harm."""
    arrivals = times_s(arrival_ticks(key(0), 5.0, Bursty(10.0, 0.1, 0.01), STEADY), 2_000)
    assert abs(arrivals.size - 10_000) < 1_000  # variance per second: 5 + 2 * 0.1 * 0.9 * 50² * 0.009 = 9
    assert (np.diff(arrivals) >= 0).all()
