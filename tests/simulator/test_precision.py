"""Sequential stopping: the grammar, the rule, and its effect on coverage."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulator.random_series import chance_limits

from capplan.models.errors import InputError
from capplan.simulator.output import ConfidenceInterval, of_replications
from capplan.simulator.sample import FIRST, GROWTH, parse_precision, replications_needed

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


@pytest.mark.parametrize("text", ["", "p99", "p99<2", "<2%", "p99<=2%", "p99>2%", "p99<two%", "p99<-2%", "a b<2%"])
def test_what_is_no_precision(text: str) -> None:
    with pytest.raises(InputError):
        parse_precision(text)


@pytest.mark.parametrize("text", ["p99<0%", "p99<100%", "p99<1000%"])
def test_a_precision_is_a_share(text: str) -> None:
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
