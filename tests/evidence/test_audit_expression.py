"""The arithmetic of the audits and the functions that some of them bring: exact cases, enclosures, and refusals."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from capplan.evidence.audit.audit import audit_documents
from capplan.evidence.audit.checks import read_checks
from capplan.evidence.audit.expression import Figure, Group, Names, evaluate, figure, fill
from capplan.evidence.interval import Interval
from capplan.evidence.table import by_id
from capplan.models.errors import InputError
from capplan.planner.audit import audit
from capplan.systems import registry
from capplan.systems.arion.network import rate_at, rate_at_s
from capplan.systems.vcider.observations import (
    column_effect,
    deviation,
    deviation_around_lines,
    mean_of,
    slope,
    slope_error,
)

ROW = replace(registry.system("fedora4").evidence[0], layout={"nodes": "3", "region": "asia"})
ROWS = by_id(
    replace(ROW, id=name, value=value, low=value - 1, high=value + 1, written=f"{value} ms")
    for name, value in (("a.one", 2.0), ("a.from", 4.0), ("b-c.one", 10.0))
)
SCOPE = Names(
    ROWS, let={"twice": "2 * [a.one]", "four": "twice + twice", "self": "self + 1", "ping": "pong", "pong": "ping"}
)


@pytest.mark.parametrize(
    ("text", "value", "low", "high"),
    [
        ("1 + 2 * 3", 7, 7, 7),
        ("(1 + 2) * 3", 9, 9, 9),
        ("-2 + 1", -1, -1, -1),
        ("2 ** 3", 8, 8, 8),
        ("1e3 / 4", 250, 250, 250),
        ("[a.one]", 2, 1, 3),
        ("[a.from] - [a.one]", 2, 0, 4),  # an id may have any part, `from` too
        ("[b-c.one] / [a.one]", 5, 3, 11),
        ("twice", 4, 2, 6),
        ("four", 8, 4, 12),
        ("-[a.one]", -2, -3, -1),
        ("at_least([a.one])", 2, 1, math.inf),
        ("at_most([a.one])", 2, -math.inf, 3),
        ("printed([a.one])", 2, 2, 2),
        ("low([a.one]) + high([a.from])", 6, 6, 6),
        ("interval(2, 1, [a.one])", 2, 1, 2),
        ("between([a.one], [a.from])", 3, 1, 5),
        ("log(1)", 0, 0, 0),
        ("period([a.from])", 1 / 4, 1 / 5, 1 / 3),
        ("period([a.one] - 1)", 1, 1 / 2, math.inf),  # a rate that may be zero
        ("sum([a.*])", 6, 4, 8),
        ("mean([a.one, b-c.one])", 6, 5, 7),
        ("highest([*])", 10, 9, 11),
        ("lowest([*])", 2, 1, 3),
        ("count([a.*])", 2, 2, 2),
        ("count_above([*], 2)", 2, 2, 2),  # whose whole interval is above
        ("count_below([*], 4)", 1, 1, 1),
        ("differing([a.one, a.from], [a.one, b-c.one])", 1, 1, 1),
        ("[a.one].nodes * 2", 6, 6, 6),
        ("mean_from_percentiles(1, 2, 3, 4, 5, 6)", 1.41, 0.91, 1.91),
    ],
)
def test_an_expression_has_the_value_and_the_bounds_worked_out_by_hand(
    text: str, value: float, low: float, high: float
) -> None:
    found = figure(text, SCOPE).interval
    assert (found.value, found.low, found.high) == pytest.approx((value, low, high))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("[a.one] * [b-c.one] + [a.one]", ["a.one", "b-c.one"]),
        ("four", ["a.one"]),
        ("highest([*])", ["b-c.one"]),
        ("printed([a.one]) + [a.from].nodes", ["a.one", "a.from"]),
        ("1 + 2", []),
    ],
)
def test_a_figure_knows_the_rows_that_it_comes_from(text: str, rows: list[str]) -> None:
    assert [row.id for row in figure(text, SCOPE).rows] == rows


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 +",
        "'text'",
        "True",
        "1j",
        "1 < 2",
        "1 if 2 else 3",
        "lambda: 1",
        "1, 2",
        "{1: 2}",
        "(x := 1)",
        "not 1",
        "1 // 2",
        "1 % 2",
        "1 @ 2",
        "f'{1}'",
        "__import__('os')",
        "log(1).real.__class__",
        "().__class__",
        "open('secret')",
        "log(x=1)",
        "log(*[a.one])",
        "(log)(1)(2)",
        "[x for x in [a.one]]",
        "[a.one][0]",
        "[]",
        "[a.two]",
        "[c.*]",
        "nothing",
        "self",
        "ping",
        "[a.one].colour",
        "([a.one] + [a.from]).nodes",
        "[a.one].region + 1",
        "[a.*] + 1",
        "[a.*]",
        "log()",
        "sum(1)",
        "log(0)",
        "1 / 0",
        "1 / ([a.one] - 1)",
        "(0 - 8) ** 0.5",
        "9 ** 9 ** 9",
        "[a.one] ** 2",
        "differing([a.one, a.from], [a.one, a.from, b-c.one])",
        "(" * 500 + "1" + ")" * 500,
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        figure(text, SCOPE)


@given(st.text(alphabet="ab1[]().*+-/ '_,:{}=<>", max_size=30))
def test_whatever_is_written_ends_in_a_figure_or_a_refusal(text: str) -> None:
    try:
        found = evaluate(text, SCOPE)
    except InputError:
        return
    assert isinstance(found, Figure | tuple)


finite = st.floats(-1e6, 1e6)
above_zero = st.floats(1e-3, 1e6)


@st.composite
def intervals(draw: st.DrawFn, numbers: st.SearchStrategy[float] = finite) -> tuple[Interval, float]:
    """Draw an interval and a number within it."""
    low, value, inside, high = sorted(draw(st.lists(numbers, min_size=4, max_size=4)))
    return Interval(value, low, high), inside


@given(intervals(), intervals(), intervals(above_zero), st.sampled_from(["x + y * z", "(x - y) / z", "x / z - y * y"]))
def test_the_interval_of_an_expression_encloses_what_its_figures_may_stand_for(
    x: tuple[Interval, float], y: tuple[Interval, float], z: tuple[Interval, float], text: str
) -> None:
    drawn = {"x": x, "y": y, "z": z}
    bounds = figure(text, Names({}, values={name: Figure(each) for name, (each, _) in drawn.items()})).interval
    point = figure(text, Names({}, values={name: Figure(inside) for name, (_, inside) in drawn.items()})).value
    width = 1e-9 * max(abs(bounds.low), abs(bounds.high), abs(point), 1.0)
    assert bounds.low - width <= point <= bounds.high + width
    assert bounds.low - width <= bounds.value <= bounds.high + width


@pytest.mark.parametrize(
    ("sentence", "filled"),
    [
        ("{[a.one]} of {[a.one].region}", "2.0 ms of asia"),
        ("{[a.one] * 2} against {[a.from] / 1000:s}", "4 [2, 6] against 4 ms [3, 5]"),
        ("{printed([a.from]) / 3:.2f}, {2:g}", "1.33, 2"),
        ("nothing {{to}} fill in", "nothing {to} fill in"),
    ],
)
def test_a_sentence_is_filled_in(sentence: str, filled: str) -> None:
    assert fill(sentence, SCOPE) == filled


@pytest.mark.parametrize("sentence", ["{", "{1", "{}", "{1:zz}", "{[a.two]}", "{[a.*]}"])
def test_a_sentence_that_cannot_be_filled_in_is_refused(sentence: str) -> None:
    with pytest.raises(InputError):
        fill(sentence, SCOPE)


def test_a_function_that_an_audit_brings_is_called_with_figures() -> None:
    scope = replace(SCOPE, functions={"triple": lambda found: 3 * found.value})
    assert figure("triple([a.one])", scope).value == 6
    assert figure("triple([a.one])", scope).rows == (ROWS["a.one"],)


WIDTHS = (32, 64, 128, 192, 256)
# The published cells, in %, over native: none, internode, both encrypted.
PUBLISHED = {
    "r1": [(-8.2, 0.8, -2.3, -2.3, -6.7), (-0.7, -5.0, 1.9, 5.4, 4.7), (63.8, 55.4, 60.0, 53.9, 61.7)],
    "r3": [(-4.5, -4.7, -5.8, -4.5, -1.5), (3.8, 3.9, 6.1, 8.3, 4.0), (31.5, 29.6, 31.4, 27.3, 29.9)],
}
CELLS = registry.system("vcider").evidence
CHECKS = read_checks(registry.system("vcider").folder)


def cells(factor: str) -> Group:
    """Return the cells of a replication factor by comparison and column width."""
    found = {row.id: Figure(row.interval, (row,)) for row in CELLS}
    return tuple(
        found[f"{factor}.{reference}.c{width}"] for reference in ("none", "internode", "both") for width in WIDTHS
    )


def test_an_m_m_1_station_takes_twice_its_service_at_half_its_load() -> None:
    assert rate_at_s(2e-3, 1, 1e-3) == pytest.approx(500)
    assert rate_at_s(10e-3, 1, 1e-3) == pytest.approx(900, rel=1e-4)


def test_24_servers_of_0_6_ms_take_1_ms_within_5_percent_of_their_limit() -> None:
    found = rate_at(Figure(Interval(1e-3, 0.95e-3, 1.05e-3)), Figure(24.2), Figure(0.6e-3))
    # Erlang's C is below one, so the load lies above that of c mu - X = 1 / 0.4 ms, and below the limit of 40,000/s.
    assert 40_000 - 2500 < found.low < found.value < found.high < 40_000


@pytest.mark.parametrize("factor", PUBLISHED)
def test_the_deviation_of_a_cell_is_pooled_over_the_comparisons(factor: str) -> None:
    found = deviation(cells(factor))
    squares = np.mean([np.var(row, ddof=1) for row in PUBLISHED[factor]])
    assert found.value * 100 == pytest.approx(float(squares) ** 0.5)
    tails = stats.chi2(12).cdf([12 * (found.value / end) ** 2 for end in (found.low, found.high)])
    assert tails == pytest.approx([0.95, 0.05])


@pytest.mark.parametrize("factor", PUBLISHED)
def test_slopes_over_the_column_width_are_those_of_least_squares(factor: str) -> None:
    found = cells(factor)
    fits = [stats.linregress(WIDTHS, np.array(row) / 100) for row in PUBLISHED[factor]]
    slopes = [slope(found, found[place : place + 5]) for place in (0, 5, 10)]
    assert slopes == pytest.approx([fit.slope * 100 for fit in fits])
    # Three lines of three degrees of freedom each, pooled.
    assert slope_error(found) ** 2 == pytest.approx(float(np.mean([fit.stderr**2 for fit in fits])) * 100**2)
    assert deviation_around_lines(found) == pytest.approx(deviation(found).value, rel=0.02)


@pytest.mark.parametrize("factor", PUBLISHED)
def test_what_cells_of_a_column_share_is_a_two_way_analysis_of_variance(factor: str) -> None:
    table = np.array(PUBLISHED[factor]) / 100
    rows, columns = table.mean(axis=1, keepdims=True), table.mean(axis=0, keepdims=True)
    left = table - rows - columns + table.mean()
    between = 3 * float(((columns - table.mean()) ** 2).sum()) / 4
    assert column_effect(cells(factor)) == pytest.approx(between / (float((left**2).sum()) / 8))


def test_the_interval_of_a_mean_is_students() -> None:
    found = cells("r1")
    mean = mean_of(found, found[:5])
    width = stats.t(12).ppf(0.95) * deviation(found).value / 5**0.5
    assert (mean.value, mean.high - mean.value) == pytest.approx((1 - 0.187 / 5, width))


def test_r1_scatters_more_than_r3_by_more_than_chance() -> None:
    ratio = (deviation(cells("r1")).value / deviation(cells("r3")).value) ** 2
    assert stats.f(12, 12).sf(ratio) < 0.01
    verdicts = {each.rule: each.verdict for each in audit("vcider").readings}
    assert verdicts["scatter.one"] == "contradicted"


def test_a_run_that_all_comparisons_share_is_told_from_runs_of_their_own() -> None:
    # A common up and down of three points over the columns, on top of the published cells.
    common = dict(zip(WIDTHS, (0.03, -0.03, 0.03, -0.03, 0.0), strict=True))
    rows = [
        replace(row, value=row.value + common[int(row.layout["column_bytes"])]) if row.use == "fit" else row
        for row in CELLS
    ]
    found = {finding.rule: finding.verdict for finding in audit_documents(CHECKS, rows).readings}
    assert (found["runs.shared.r3"], found["runs.independent.r3"]) == ("consistent", "contradicted")


def test_a_column_width_that_matters_is_seen() -> None:
    # Ten points more for each doubling of the width, over native without encryption with R3.
    rows = [
        replace(row, value=row.value + 0.1 * np.log2(int(row.layout["column_bytes"]) / 32))
        if row.id.startswith("r3.none.c")
        else row
        for row in CELLS
    ]
    found = {finding.rule: finding.verdict for finding in audit_documents(CHECKS, rows).readings}
    assert found["slope.r3.none"] == "contradicted"
