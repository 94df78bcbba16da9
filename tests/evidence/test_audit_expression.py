"""The arithmetic of the audits: exact cases, intervals that contain the result, and a grammar that refuses all else."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.evidence.audit.expression import Figure, Names, evaluate, figure, fill
from capplan.evidence.interval import Interval
from capplan.evidence.table import by_id
from capplan.models.errors import InputError
from capplan.systems import registry

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
