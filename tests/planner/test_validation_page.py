"""The report of a validation: its tables and figures agree with the validation."""

import math
import re
from dataclasses import replace

import pytest
from tests.calibration.documented_reports import every, reported

from capplan.calibration.validation.backtest import IntervalEstimate
from capplan.calibration.validation.validation import Score, Validation
from capplan.reports.validation import (
    BEYOND,
    MISSED,
    best_rule,
    environment,
    figures,
    html,
    judged_of,
    not_counted,
    page,
    predicted_over_documented,
)
from capplan.systems.registry import documented_names

SYSTEMS = documented_names()
BLANK = "\u00a0"


def shown(name: str, about: str) -> str:
    return f"![{about}](figures/{name}.svg)"


def tables_of(text: str) -> list[list[list[str]]]:
    """Return the tables of a page, as cells."""
    blocks = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    return [[[cell.strip() for cell in line[1:-1].split("|")] for line in block.splitlines()] for block in blocks]


def rows_under(text: str, head: str) -> list[list[str]]:
    return [row for block in tables_of(text) if head in block[0] for row in block[2:]]


def saying(found: Validation, *estimate: float) -> Validation:
    """Return a validation of one figure of 1.0, left out, with this estimate and band."""
    (each,) = [each for each in found.left_out if each.id == "ts4-ldap.incoming"]
    said = replace(each, documented=1.0, estimates={"capplan": IntervalEstimate(*estimate)})
    alone = tuple(replace(figure, documented=1.0) for figure in found.figures if figure.id == each.id)
    return replace(found, figures=alone, left_out=(said,), own=None, scores={})


@pytest.mark.parametrize(
    ("estimate", "cell"),
    [
        ((1.1, 0.9, 1.2), "held"),
        ((1.0, 1.0, 1.0), "held"),
        ((1.2, 1.1, 1.3), "**too high**"),
        ((0.8, 0.7, 0.9), "**too low**"),
        ((1.0, math.nan, math.nan), "no band"),
        ((1.0, 0.0, math.inf), "no band"),
    ],
)
@pytest.mark.parametrize("reason", ["", "a reason"])
def test_a_band_holds_or_misses_one_way(estimate: tuple[float, ...], cell: str, reason: str) -> None:
    found = saying(reported("openprovider"), *estimate)
    text = page([replace(found, left_out=(replace(found.left_out[0], not_scored=reason),))], shown)
    (row,) = rows_under(text, "band")

    assert row[-1] == cell + (", not counted" if reason else "")


def test_the_best_rule_is_never_capplan_and_has_what_it_is_best_by() -> None:
    scores = {"capplan": Score(0.01, 0.1, 0.1), "one": Score(0.02, math.nan, math.nan), "two": Score(0.03, 2.0, 0.5)}

    assert best_rule(scores) == "one"
    assert best_rule(scores, "interval_score") == "two"
    assert best_rule({}) is None
    assert best_rule({"capplan": scores["capplan"], "one": scores["one"]}, "interval_score") is None


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("name", SYSTEMS)
def test_every_missed_target_is_listed_first(name: str, terminal: bool) -> None:
    single = reported(name)
    text = page([single], shown, terminal=terminal)
    listed = [line for line in text.partition(f"## {name}\n")[0].splitlines() if line.startswith("- ")]

    assert len(listed) == judged_of(single).count(False)
    for goal in single.goals:
        assert any(goal.name in line.replace(BLANK, " ") for line in listed) is not goal.met


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_figure_counts_or_a_reason_is_given(name: str) -> None:
    single = reported(name)
    excused = {each for _, _, ids in not_counted(single) for each in ids}
    counted = {each.id for each in single.left_out if each.counts}
    given = {each: why for _, why, ids in not_counted(single) for each in ids}

    assert {figure.id for figure in single.figures} == excused | counted
    assert all(each.not_scored[1:] in given[each.id] for each in single.left_out if not each.counts)
    text = "".join(page([single], shown).replace(BLANK, "").split())
    assert all("".join(why.split()) in text for why in given.values())


def test_tables_are_whole_and_narrow() -> None:
    """Six columns at most: as many as a telephone shows."""
    for block in tables_of(page(every(), shown)):
        assert len({len(row) for row in block}) == 1
        assert len(block[0]) <= 6


NAME = "<b>|&\"'"


def test_a_name_cannot_end_a_cell_or_open_a_tag() -> None:
    single = reported("openprovider")
    renamed = replace(single, figures=tuple(replace(each, scenario=f"{NAME}{each.id}") for each in single.figures))
    text = html([renamed])
    body = text.partition("</head>")[2]

    assert "&lt;b&gt;|&amp;" in body
    assert "<b>" not in re.sub("<script.*?</script>", "", body, flags=re.DOTALL)
    assert body.count("<td") == html([single]).partition("</head>")[2].count("<td")


def test_a_title_cannot_open_a_tag() -> None:
    text = environment().get_template("page.html.jinja").render(title=NAME, plotly="", body="<p>")

    assert "<b>" not in text
    assert "<p>" in text


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_figure_shows_every_left_out_figure_and_which_its_band_missed(name: str) -> None:
    single = reported(name)
    figure = predicted_over_documented(single)
    assert figure is not None
    missed = sum(len(trace.x) for trace in figure.data if MISSED in trace.name)

    assert sum(len(trace.x) for trace in figure.data) == len(single.left_out)
    assert missed == sum(not each.estimates["capplan"].holds(each.documented) for each in single.left_out)


def test_without_left_out_figures_there_is_none_to_draw() -> None:
    bare = replace(reported("openprovider"), left_out=(), own=None, scores={})

    assert figures([bare]) == {}
    assert rows_under(page([bare], shown), "interval score") == []


def test_a_figure_far_off_is_drawn_at_the_edge() -> None:
    single = reported("openprovider")
    first = single.left_out[0]
    estimate = IntervalEstimate(first.documented * 9, first.documented, first.documented * 90)
    said = replace(first, estimates={**first.estimates, "capplan": estimate})
    figure = predicted_over_documented(replace(single, left_out=(said,)))
    assert figure is not None

    assert list(figure.data[0].y) == [BEYOND]
    assert list(figure.data[0].error_y.array) == [0]
    assert figure.data[0].error_y.arrayminus[0] == pytest.approx(BEYOND - 1)
