"""Checks of documented figures: arithmetic with roundings, units and rows, what is found, and laws of a series."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.errors import InputError
from capplan.evidence.audit.audit import audit_documents
from capplan.evidence.audit.checks import (
    Check,
    Claim,
    Figure,
    Figures,
    Findings,
    Law,
    Reading,
    deepest_fall,
    farthest_apart,
    figure,
    total,
)
from capplan.evidence.audit.finding import judge
from capplan.evidence.interval import Interval
from capplan.systems import registry

ROW = replace(registry.system("fedora4").evidence[0], layout={"nodes": "3"}, unit="s")
ROWS = tuple(
    replace(ROW, id=name, value=value, low=value - 1, high=value + 1, written=f"{value} s")
    for name, value in (("a.one", 2.0), ("a.two", 4.0), ("b.one", 10.0))
)
FIGURES = Figures(ROWS)
ONE, TWO, TEN = (FIGURES[row.id] for row in ROWS)


@pytest.mark.parametrize(
    ("made", "value", "low", "high", "unit"),
    [
        (TWO - ONE, 2, 0, 4, "s"),
        (TEN / ONE, 5, 3, 11, "1"),
        (ONE / TEN * TWO, 0.8, 3 / 11, 5 / 3, "s"),
        (3 + 1 / TWO * ONE, 3.5, 3.2, 4, "1"),
        (1 / TWO, 1 / 4, 1 / 5, 1 / 3, "1/s"),
        (2 * ONE - TWO, 0, -3, 3, "s"),
        (5 - ONE / TWO, 4.5, 4, 4.8, "1"),
        (total([ONE, TWO, TEN]), 16, 13, 19, "s"),
        (ONE.or_more, 2, 1, math.inf, "s"),
        (ONE.or_less, 2, -math.inf, 3, "s"),
        (ONE.printed, 2, 2, 2, "s"),
        (ONE.cell("nodes") * ONE, 6, 3, 9, "s"),
    ],
)
def test_a_computed_figure_has_the_value_the_bounds_and_the_unit_worked_out_by_hand(
    made: Figure, value: float, low: float, high: float, unit: str
) -> None:
    assert (made.interval.value, made.interval.low, made.interval.high) == pytest.approx((value, low, high))
    assert made.unit == unit


@pytest.mark.parametrize(
    ("made", "rows"),
    [
        (ONE / TEN * ONE, ["a.one", "b.one"]),
        (ONE.printed + TWO.cell("nodes") * TEN.printed, ["a.one", "a.two", "b.one"]),
        (total(FIGURES.like("a.*")), ["a.one", "a.two"]),
        (figure(1) + 2, []),
    ],
)
def test_a_figure_knows_the_rows_that_it_comes_from(made: Figure, rows: list[str]) -> None:
    assert [row.id for row in made.rows] == rows


def test_seconds_are_not_added_to_numbers() -> None:
    with pytest.raises(ValueError, match="do not add up"):
        ONE + 1


def test_a_row_or_a_cell_that_is_not_there_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match=r"'a\.one'"):
        FIGURES["a.on"]
    with pytest.raises(InputError, match="'nodes'"):
        ONE.cell("node")


def test_a_figure_prints_with_its_interval_as_written_or_as_a_number() -> None:
    assert f"{ONE / 1000} of {ONE.written}, {TWO / 3:.2f}" == "2 ms [1, 3] of 2.0 s, 1.33"


finite = st.floats(-1e6, 1e6)
above_zero = st.floats(1e-3, 1e6)


@st.composite
def intervals(draw: st.DrawFn, numbers: st.SearchStrategy[float] = finite) -> tuple[Figure, Figure]:
    """Draw a figure with an interval, and a number within it."""
    low, value, inside, high = sorted(draw(st.lists(numbers, min_size=4, max_size=4)))
    return figure(Interval(value, low, high)), figure(inside)


EXPRESSIONS: tuple[Callable[[Figure, Figure, Figure], Figure], ...] = (
    lambda x, y, z: x + y * z,
    lambda x, y, z: (x - y) / z,
    lambda x, y, z: x / z - y * y,
)


@given(intervals(), intervals(), intervals(above_zero), st.sampled_from(EXPRESSIONS))
def test_the_interval_of_an_expression_encloses_what_its_figures_may_stand_for(
    x: tuple[Figure, Figure],
    y: tuple[Figure, Figure],
    z: tuple[Figure, Figure],
    compute: Callable[[Figure, Figure, Figure], Figure],
) -> None:
    bounds, point = (compute(*figures) for figures in zip(x, y, z, strict=True))
    low, high = bounds.interval.low, bounds.interval.high
    width = 1e-9 * max(abs(low), abs(high), abs(point.value), 1.0)
    assert low - width <= point.value <= high + width
    assert low - width <= bounds.value <= high + width


def figures_of(**values: float) -> Figures:
    """Return figures `r.<name>`, each rounded to half a unit."""
    return Figures(
        replace(ROW, id=f"r.{name}", value=value, low=value - 0.5, high=value + 0.5) for name, value in values.items()
    )


@pytest.mark.parametrize(
    ("documented", "verdict"), [(6.0, "consistent"), (6.4, "consistent"), (6.8, "rounding"), (7.2, "contradicted")]
)
@pytest.mark.parametrize("check", [Law, Claim, Reading])
def test_a_planted_contradiction_is_found_and_what_fits_is_not_accused(
    check: type[Check], documented: float, verdict: str
) -> None:
    figures = figures_of(a=3, b=documented)
    finding = check("x", "y").compare(figures["r.a"] + figure(3, unit="s"), figures["r.b"], "z")
    assert finding.verdict == verdict
    assert finding.figures == ("r.a", "r.b")
    assert (finding.severity == "refused") == (verdict == "contradicted" and check is not Reading)


def test_a_claim_that_no_figure_speaks_to_is_untested() -> None:
    figures = figures_of(a=5, b=1)
    finding = Claim("x", "y").compare(figures["r.a"], None, "z", figures["r.b"])
    assert (finding.verdict, finding.documented) == ("untested", None)
    assert finding.figures == ("r.b", "r.a")


def test_a_law_about_a_series_names_the_figures_that_break_it() -> None:
    figures = figures_of(a=2, b=9, c=5)
    series = {name: figures[f"r.{name}"] for name in "abc"}
    falls, differs = Law("x", "y").never_falls("it", series), Reading("x", "y").one_constant("it", series)
    assert (falls.figures, falls.verdict) == (("r.b", "r.c"), "contradicted")
    assert (differs.figures, differs.verdict) == (("r.a", "r.b"), "contradicted")


def test_an_audit_has_what_the_checks_of_its_figures_find() -> None:
    def checks(figures: Figures) -> Findings:
        yield Law("x", "y").compare(figures["a.one"], figures["b.one"], "z")

    (finding,) = audit_documents(checks, ROWS).refused
    assert (finding.rule, finding.means, finding.sentence) == ("x", "y", "z")


def test_an_audit_without_rows_is_refused() -> None:
    with pytest.raises(InputError):
        audit_documents(lambda _: (), [])


HALF_WIDTH = 0.5
whole_numbers = st.lists(st.integers(0, 20), min_size=2, max_size=6)


def _series(values: list[int]) -> dict[str, Figure]:
    """Make figures of whole numbers, each rounded to half a unit."""
    return {
        str(place): figure(Interval(value, value - HALF_WIDTH, value + HALF_WIDTH))
        for place, value in enumerate(values)
    }


@given(whole_numbers)
def test_a_series_breaks_the_law_exactly_when_it_falls_by_more_than_its_rounding(values: list[int]) -> None:
    series = _series(values)
    before, after = (series[name] for name in deepest_fall(series))
    deepest = max(one - other for one, other in combinations(values, 2))
    verdict = judge(before.or_more.interval, after.interval)
    assert before.value - after.value == deepest
    # A fall of 1 lets the intervals touch: [v - 0.5, ...] and [..., v - 0.5].
    assert (verdict == "contradicted") == (deepest > 2 * HALF_WIDTH)
    assert (verdict == "consistent") == (deepest <= HALF_WIDTH)


@given(whole_numbers)
def test_one_constant_is_refuted_exactly_when_the_intervals_share_no_point(values: list[int]) -> None:
    series = _series(values)
    least, most = (series[name] for name in farthest_apart(series))
    refuted = judge(least.interval, most.interval) == "contradicted"
    assert refuted == (max(values) - HALF_WIDTH > min(values) + HALF_WIDTH)
