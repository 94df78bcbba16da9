"""Backlog drift: lines by hand, and M/M/1 below and above its capacity."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulator.random_series import backlogs, chance_limits

from capplan.models.errors import InputError
from capplan.simulator.output import Drift, backlog_drift


def lines(slopes: list[float], intervals: int = 20) -> list[list[float]]:
    return [[7 + slope * place for place in range(intervals)] for slope in slopes]


def verdicts(seed: int, load: float, arrivals: int, replications: int, times: int, empty: bool = False) -> Counter[str]:
    """Count the verdicts on `times` experiments with M/M/1, of 100 intervals a run."""
    random = np.random.default_rng(seed)
    found: Counter[str] = Counter(steady=0, overloaded=0, unclear=0)
    for _ in range(times):
        runs = [backlogs(random, load, arrivals, 100, empty) for _ in range(replications)]
        found[backlog_drift([run for run, _ in runs], runs[0][1], load).verdict] += 1
    return found


def test_growth_by_hand() -> None:
    """Ten lines that rise 1.0 or 3.0 every 2 s, at 10/s: 2 / (2 x 10) in the mean, standard error 1 / 3 / 20."""
    found = backlog_drift(lines([1.0, 3.0] * 5), 2.0, 10.0)

    assert found.verdict == "overloaded"
    assert found.growth.value == pytest.approx(0.1)
    assert found.growth.half_width == pytest.approx(2.2621571628 / 60)  # Student's table, nine degrees


@pytest.mark.parametrize(
    ("slopes", "verdict"),
    [
        ([0.0] * 10, "steady"),
        ([1e-4, 2e-4] * 5, "steady"),  # grows for sure, by too little to matter
        ([-1.0, -1.1] * 5, "steady"),
        ([0.006] * 10, "overloaded"),
        ([0.5, -0.5] * 5, "unclear"),
        ([0.0, 0.011] * 5, "overloaded"),
        ([0.0, 0.009] * 5, "unclear"),
    ],
)
def test_a_verdict_by_hand(slopes: list[float], verdict: str) -> None:
    """At one request per interval a slope is a share of the offered rate; the tolerance is 0.005."""
    assert backlog_drift(lines(slopes), 1.0, 1.0).verdict == verdict


def test_a_backlog_that_has_stopped_growing_is_no_overload() -> None:
    """It rises for the first half: growth is significant, but none is left late."""
    rows = [[float(min(place, 10)) + shift for place in range(20)] for shift in range(10)]
    found = backlog_drift(rows, 1.0, 1.0)

    assert found.growth.low > 0.1
    assert found.verdict == "unclear"


def test_one_replication_is_cut_into_pieces() -> None:
    """A line has the same slope in every piece, whatever the remainder."""
    found = backlog_drift(lines([0.25], intervals=37), 1.0, 1.0)

    assert found.growth.value == pytest.approx(0.25)
    assert found.growth.half_width == pytest.approx(0.0, abs=1e-12)
    assert found.verdict == "overloaded"


@pytest.mark.parametrize("rows", [[[1.0, 2.0, 3.0]], [[1.0]], [[]], [[1.0, math.nan] * 10], np.zeros((0, 9))])
def test_too_little_to_tell(rows: list[list[float]]) -> None:
    found = backlog_drift(rows, 1.0, 1.0)

    assert found.verdict == "unclear"
    assert found.growth.half_width is None


@pytest.mark.parametrize(("interval_s", "rate", "tolerance"), [(0.0, 1.0, 0.1), (1.0, 0.0, 0.1), (1.0, 1.0, math.nan)])
def test_numbers_that_make_no_sense(interval_s: float, rate: float, tolerance: float) -> None:
    with pytest.raises(InputError):
        backlog_drift(lines([1.0]), interval_s, rate, tolerance=tolerance)


def test_backlogs_are_a_table() -> None:
    with pytest.raises(InputError):
        backlog_drift([1.0, 2.0], 1.0, 1.0)


@given(st.integers(1, 12), st.integers(6, 40), st.integers(0, 10**6), st.floats(0.1, 10.0))
def test_growth_does_not_depend_on_level_order_or_unit_of_time(
    replications: int, intervals: int, seed: int, unit: float
) -> None:
    rows = np.random.default_rng(seed).standard_normal((replications, intervals)).cumsum(axis=1)
    plain, other = backlog_drift(rows, 1.0, 2.0), backlog_drift(rows[::-1] + 100, unit, 2.0 / unit)

    assert isinstance(other, Drift)
    assert other.growth.value == pytest.approx(plain.growth.value, abs=1e-9)
    assert other.growth.half_width == pytest.approx(plain.growth.half_width, abs=1e-9)
    assert other.verdict == plain.verdict


@pytest.mark.parametrize("load", [0.5, 0.8, 0.95])
@pytest.mark.parametrize(("replications", "arrivals"), [(1, 3000), (10, 1000)])
def test_a_noisy_system_is_hardly_called_overloaded(load: float, replications: int, arrivals: int) -> None:
    """At most 2.5 % of the cases; the limit lets that fail with 1e-4, and 7 % pass with less than 1 %."""
    found = verdicts(1, load, arrivals, replications, 400)

    assert found["overloaded"] <= chance_limits(400, 0.025)[1]


@pytest.mark.parametrize("load", [0.5, 0.8, 0.95])
def test_a_long_noisy_run_is_steady(load: float) -> None:
    """With 100,000 arrivals the growth of M/M/1 at load 0.95 has a standard error of 0.065 % (measured), and the
    tolerance is 0.5 %: steady in at least 98 % of the cases (error 1e-4 beyond), and never overloaded (less than 1e-9).
    """
    found = verdicts(2, load, 100_000, 1, 100)

    assert found["overloaded"] == 0
    assert found["steady"] >= chance_limits(100, 0.98)[0]


@pytest.mark.parametrize(("replications", "arrivals"), [(1, 100_000), (10, 10_000)])
def test_an_overload_of_two_percent_is_found(replications: int, arrivals: int) -> None:
    """95 % of the cases are found with 100,000 arrivals in all; the limit has an error of 1e-4, 75 % would pass with
    less than 5 %. None is called steady in more than 2.5 %, likewise."""
    found = verdicts(3, 1.02, arrivals, replications, 120, empty=True)

    assert found["overloaded"] >= chance_limits(120, 0.95)[0]
    assert found["steady"] <= chance_limits(120, 0.025)[1]


def test_an_overload_of_a_tenth_is_found_early() -> None:
    """10,000 arrivals: the growth of 9.1 % is six standard errors."""
    assert verdicts(4, 1.1, 10_000, 1, 200, empty=True)["overloaded"] >= chance_limits(200, 0.99)[0]
