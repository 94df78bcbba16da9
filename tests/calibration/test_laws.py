"""Laws of a series: values that must not fall, values that must be constant."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from capplan.calibration.audit.checks import deepest_fall, farthest_apart
from capplan.calibration.audit.expression import Figure
from capplan.calibration.audit.finding import at_least, judge
from capplan.calibration.evidence.interval import Interval

HALF_WIDTH = 0.5
whole_numbers = st.lists(st.integers(0, 20), min_size=2, max_size=6)


def _series(values: list[int]) -> list[Figure]:
    """Make figures of whole numbers, each rounded to half a unit."""
    return [Figure(Interval(value, value - HALF_WIDTH, value + HALF_WIDTH)) for value in values]


@given(whole_numbers)
def test_a_series_breaks_the_law_exactly_when_it_falls_by_more_than_its_rounding(values: list[int]) -> None:
    before, after = deepest_fall(_series(values))
    deepest = max(one - other for one, other in combinations(values, 2))
    verdict = judge(at_least(before.interval), after.interval)
    assert before.value - after.value == deepest
    # A fall of 1 lets the intervals touch: [v - 0.5, ...] and [..., v - 0.5].
    assert (verdict == "contradicted") == (deepest > 2 * HALF_WIDTH)
    assert (verdict == "consistent") == (deepest <= HALF_WIDTH)


@given(whole_numbers)
def test_one_constant_is_refuted_exactly_when_the_intervals_share_no_point(values: list[int]) -> None:
    least, most = farthest_apart(_series(values))
    refuted = judge(least.interval, most.interval) == "contradicted"
    assert refuted == (max(values) - HALF_WIDTH > min(values) + HALF_WIDTH)
