"""Checks as data: how a file becomes checks, which are refused, what a small audit finds, and laws of a series."""

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.evidence.audit.audit import Audit, audit_documents
from capplan.evidence.audit.checks import deepest_fall, farthest_apart, parse_checks
from capplan.evidence.audit.expression import Figure
from capplan.evidence.audit.finding import at_least, judge
from capplan.evidence.interval import Interval
from capplan.models.errors import InputError
from capplan.systems import registry

ROW = registry.system("fedora4").evidence[0]
CHECK = """
[[laws]]
name = "x"
law = "x"
sentence = "{expected}, {documented}."
"""


def audited(text: str, **figures: float) -> Audit:
    """Audit rows `r.<name>` of the figures, each rounded to half a unit."""
    rows = [
        replace(ROW, id=f"r.{name}", value=value, low=value - 0.5, high=value + 0.5) for name, value in figures.items()
    ]
    return audit_documents(parse_checks(text), rows)


@pytest.mark.parametrize(
    ("documented", "verdict"), [(6.0, "consistent"), (6.4, "consistent"), (6.8, "rounding"), (7.2, "contradicted")]
)
def test_a_planted_contradiction_is_found_and_what_fits_is_not_accused(documented: float, verdict: str) -> None:
    report = audited(CHECK + 'expected = "[r.a] + 1"\ndocumented = "[r.b]"', a=5, b=documented)
    (finding,) = report.laws
    assert finding.verdict == verdict
    assert finding.figures == ("r.a", "r.b")
    assert report.refused == ((finding,) if verdict == "contradicted" else ())


def test_a_claim_that_no_figure_speaks_to_is_untested() -> None:
    (finding,) = audited(CHECK.replace(", {documented}", "") + 'expected = "[r.a]"\ncites = ["r.b"]', a=5, b=1).laws
    assert (finding.verdict, finding.documented) == ("untested", None)
    assert finding.figures == ("r.b", "r.a")


def test_a_check_is_made_for_each_combination_of_its_lists() -> None:
    text = """
    [let]
    double = "2 * [r.{n.id}]"
    [lists]
    numbers = [{ id = "a", words = "first" }, { id = "b", words = "second" }]
    [[claims]]
    each.n = "numbers"
    each.limit = ["10", "20"]
    name = "{n.id}.{limit}"
    law = "the {n.words}"
    expected = "at_most({limit})"
    documented = "double"
    sentence = "The {n.words} is {documented}."
    """
    found = audited(text, a=4, b=8).claims
    assert [each.rule for each in found] == ["a.10", "a.20", "b.10", "b.20"]
    assert [each.verdict for each in found] == ["consistent", "consistent", "contradicted", "consistent"]
    assert found[2].means == "the second"
    assert found[2].sentence == "The second is 16 [15, 17]."


@pytest.mark.parametrize(
    ("rule", "rows", "verdict"),
    [("never falls", ("r.b", "r.c"), "contradicted"), ("constant", ("r.a", "r.b"), "contradicted")],
)
def test_a_law_about_a_series_names_the_figures_that_break_it(rule: str, rows: tuple[str, str], verdict: str) -> None:
    text = f"""
    [[readings]]
    name = "x"
    law = "x"
    rule = "{rule}"
    over.n = ["a", "b", "c"]
    value = "[r.{{n}}]"
    label = "{{n}}"
    sentence = "{{first}} {{second}}"
    """
    (finding,) = audited(text, a=2, b=9, c=5).readings
    assert (finding.figures, finding.verdict) == (rows, verdict)
    assert finding.sentence == " ".join(row[-1] for row in rows)


@pytest.mark.parametrize(
    "text",
    [
        "laws = ",  # no TOML
        "laws = " + "9" * 5000,
        CHECK,  # nothing expected
        CHECK + 'expected = "1"\nexpects = "1"',
        CHECK + 'expected = "1"\neach.n = "numbers"',
        CHECK + 'rule = "constant"',
        CHECK + 'rule = "rises"\nover.n = ["a"]\nvalue = "1"',
        CHECK + 'expected = "1"\nover.n = ["a"]',
        CHECK + "expected = 1",
        '[functions]\nf = "capplan.nothing:f"',
        '[functions]\nf = "no function"',
    ],
)
def test_a_file_that_breaks_a_rule_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^mine\.toml"):
        parse_checks(text, "mine.toml")


@pytest.mark.parametrize("expected", ["[r.z]", "1 / ([r.a] - [r.a])", "import os"])
def test_a_check_that_cannot_be_computed_is_refused_by_its_name(expected: str) -> None:
    with pytest.raises(InputError, match=r"^check 'x': "):
        audited(CHECK + f'expected = "{expected}"\ndocumented = "1"', a=1)


def test_an_audit_without_rows_is_refused() -> None:
    with pytest.raises(InputError):
        audited("")


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
