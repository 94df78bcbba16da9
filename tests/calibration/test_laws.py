"""Laws that more than one system's figures take the shape of: what must not fall, what must be one constant."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from capplan.calibration.audit.laws import Candidate, never_falls, one_constant
from capplan.calibration.evidence.interval import Interval
from capplan.calibration.evidence.table import load

ROW = load("fedora4")[0]
HALF_WIDTH = 0.5


def _candidates(values: list[int]) -> list[Candidate]:
    """Make candidates of whole numbers, each rounded to half a unit, with a row of its own."""
    return [
        Candidate(
            f"number {place}", Interval(value, value - HALF_WIDTH, value + HALF_WIDTH), (replace(ROW, id=str(place)),)
        )
        for place, value in enumerate(values)
    ]


whole_numbers = st.lists(st.integers(0, 20), min_size=2, max_size=6)


@given(whole_numbers)
def test_a_series_breaks_the_law_exactly_when_it_falls_by_more_than_its_rounding(values: list[int]) -> None:
    finding = never_falls("x", "x", _candidates(values), "it", "1")
    deepest = max(values[i] - values[j] for i in range(len(values)) for j in range(i + 1, len(values)))
    # A fall of 1 lets the intervals touch: [v - 0.5, ...] and [..., v - 0.5].
    assert (finding.verdict == "contradicted") == (deepest > 2 * HALF_WIDTH)
    assert (finding.verdict == "consistent") == (deepest <= HALF_WIDTH)


@given(whole_numbers)
def test_the_deepest_fall_is_the_one_that_is_named(values: list[int]) -> None:
    finding = never_falls("x", "x", _candidates(values), "it", "1")
    before, after = (values[int(name)] for name in finding.rows)
    assert finding.documented is not None
    assert finding.documented.value == after
    assert finding.expected.low == before - HALF_WIDTH
    assert before - after == max(values[i] - values[j] for i in range(len(values)) for j in range(i + 1, len(values)))
    assert finding.sentence.startswith(f"From number {finding.rows[0]} to number {finding.rows[1]} it should be")


@given(whole_numbers)
def test_one_constant_is_refuted_exactly_when_the_intervals_share_no_point(values: list[int]) -> None:
    finding = one_constant("x", "x", _candidates(values), "One", "1")
    least, most = max(values) - HALF_WIDTH, min(values) + HALF_WIDTH
    assert (finding.verdict == "contradicted") == (least > most)


def test_candidates_that_share_rows_name_each_once() -> None:
    shared = [Candidate(label, Interval(1, 0, 2), (ROW,)) for label in ("one", "two")]
    finding = one_constant("x", "x", shared, "One", "s")
    assert finding.rows == (ROW.id,)
    assert finding.sentence == "One: 1000 ms [0, 2000] from one, 1000 ms [0, 2000] from two."
