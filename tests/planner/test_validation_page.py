"""The report of a validation: its words, its tables and its figures say what the validation says."""

import math
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import plotly.graph_objects as go
import pytest
from capplan.systems.studies import STUDIES
from plotly.offline import get_plotlyjs

from capplan.calibration.fit.fitted_file import load
from capplan.calibration.validation.estimate import Said
from capplan.calibration.validation.validate import report
from capplan.calibration.validation.validation import Coverage, Score, Validation
from capplan.models.number_words import share
from capplan.planner.reports.validation_page import apart, page, table
from capplan.planner.reports.validation_plot import RINGED, digest, errors_of_all, predicted_against_documented
from capplan.planner.reports.validation_report import HTML, MARKDOWN, figures, html, write_report
from capplan.planner.reports.validation_words import (
    banded,
    best_rule,
    covered,
    held,
    judged,
    missed,
    names,
    sharpest_rule,
    with_unit,
)

SYSTEMS = tuple(STUDIES)
BLANK = "\u00a0"


@cache
def reported(system: str) -> Validation:
    return report(load(system))


def every() -> list[Validation]:
    return [reported(system) for system in SYSTEMS]


def shown(name: str, about: str) -> str:
    return f"![{about}](figures/{name}.svg)"


def tables_of(text: str) -> list[list[list[str]]]:
    """Return the tables of a page, as cells."""
    blocks = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    return [[[cell.strip() for cell in line[1:-1].split("|")] for line in block.splitlines()] for block in blocks]


def rows_under(text: str, head: str) -> list[list[str]]:
    return [row for block in tables_of(text) if head in block[0] for row in block[2:]]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(0.004, "s", "4.00 ms"), (1.21, "s", "1,210 ms"), (7061.1, "1/s", "7,060/s"), (0.95851, "1", "0.959")],
)
def test_figures_have_three_digits_and_the_unit_that_people_read(value: float, unit: str, text: str) -> None:
    assert with_unit(value, unit) == text


def test_a_band_is_read_in_one_unit() -> None:
    assert banded(0.00298, 0.00126, 0.00706, "s") == "2.98 (1.26 to 7.06)"


@pytest.mark.parametrize(
    ("documented", "text"), [(1.0, "held"), (0.9, "held"), (0.8, "**too high**"), (1.2, "**too low**")]
)
def test_a_band_holds_or_misses_one_way(documented: float, text: str) -> None:
    assert held(Said(1.0, 0.9, 1.1), documented) == text
    assert held(Said(1.0, 0.9, 1.1), documented, counts=False) == f"{text}, not counted"
    assert held(Said(1.0, math.nan, math.nan), documented) == "no band"


def test_the_best_rule_is_never_capplan_and_the_sharpest_has_bands() -> None:
    scores = {"capplan": Score(0.01, 0.1, 0.1), "one": Score(0.02, math.nan, math.nan), "two": Score(0.03, 2.0, 0.5)}

    assert best_rule(scores) == "one"
    assert sharpest_rule(scores) == "two"
    assert best_rule({}) is None
    assert sharpest_rule({"capplan": scores["capplan"], "one": scores["one"]}) is None


def test_coverage_says_how_little_few_scenarios_prove() -> None:
    assert covered(Coverage(0, 0, 0, 0.0, 1.0)) == "No scenario has a band of its own."
    assert covered(Coverage(12, 11, 4, 0.3874, 0.99998)) == (
        "Capplan's 90 % bands held 11 of 12 figures: 92 %. With 4 independent scenarios the true share lies between "
        "39 % and 100 % (Clopper and Pearson, 90 %)."
    )


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_missed_target_is_a_sentence(system: str) -> None:
    single = reported(system)

    assert len(missed([single])) == judged(single).count(False)
    assert all(sentence.startswith(f"**{system}**") for sentence in missed([single]))


def test_a_figure_that_misses_its_goal_is_told_with_its_numbers() -> None:
    single = reported("openprovider")
    wrong = replace(single.figures[0], predicted=8000.0, error=1 / 7, met=False)
    found = missed([replace(single, figures=(wrong, *single.figures[1:]))])

    assert found[0] == (
        "**openprovider**, TS1 incoming rate peak: documented 7,000/s, capplan says 8,000/s (+14 %); the goal is 6,790 "
        "to 7,210/s."
    )


def test_what_is_missed_stands_before_everything_else() -> None:
    text = page(every(), shown)
    sentences = [line for line in text.splitlines() if line.startswith("- **")]

    assert len(sentences) == len(missed(every()))
    assert text.index("## What is missed") < text.index("## In short") < text.index(f"## {SYSTEMS[0]}\n")


def test_nothing_missed_is_said_too() -> None:
    single = reported("openprovider")
    met = replace(single, figures=tuple(replace(each, met=None) for each in single.figures), goals=())

    assert "Nothing: every target is met." in page([met], shown)


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_figure_has_a_row_in_the_table_of_its_scenario(system: str) -> None:
    single = reported(system)
    text, named = page([single], shown), names(single.figures)
    part = text.partition("figures as fitted")[2].partition("scenarios that were left out")[0]
    blocks = re.findall(r"<summary>(.*?): \d+ figures?, .*</summary>\n\n((?:\|.*\n)+)", part)
    if not blocks:  # few: one table
        assert [row[0] for row in rows_under(part, "error")] == list(named.values())
    for scenario, block in blocks:
        those = [named[figure.id] for figure in single.figures if figure.scenario == scenario]
        assert [row[0] for row in rows_under(block, "error")] == [name.removeprefix(f"{scenario} ") for name in those]
    assert [scenario for scenario, _ in blocks] in ([], list(dict.fromkeys(f.scenario for f in single.figures)))


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_left_out_figure_has_a_row_with_its_band(system: str) -> None:
    single = reported(system)
    named = names(single.figures)
    rows = rows_under(page([single], shown), f"predicted without it (90{BLANK}% band)")
    held_by_band = {named[each.id] for each in single.left_out if each.said["capplan"].holds(each.documented)}

    assert sorted(row[0] for row in rows) == sorted(named[each.id] for each in single.left_out)
    assert {row[0] for row in rows if row[-1].startswith("held")} == held_by_band


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_figure_counts_or_a_reason_is_given(system: str) -> None:
    single = reported(system)
    excused = {each for ids in apart(single).values() for each in ids}
    counted = {each.id for each in single.left_out if each.counts}

    assert {figure.id for figure in single.figures} == excused | counted
    text = page([single], shown)
    assert all(f"- {what}: " in text for what, _ in apart(single))
    for each in single.left_out:
        reasons = [
            why for (what, why), ids in apart(single).items() if what == "Left out, not scored" and each.id in ids
        ]
        assert [why.casefold() for why in reasons] == ([] if each.counts else [f"{each.uncounted}.".casefold()])
        assert all(why.replace(" ", "") in "".join(text.replace(BLANK, "").split()) for why in reasons)


def test_tables_are_whole_and_narrow() -> None:
    """Six columns at most: as many as a telephone shows."""
    for block in tables_of(page(every(), shown)):
        assert len({len(row) for row in block}) == 1
        assert len(block[0]) <= 6


def test_a_cell_cannot_end_its_table() -> None:
    assert table(("a", "b"), [("x|y", "1")]).splitlines()[-1] == "| x&#124;y | 1 |"


def points_of(figure: go.Figure) -> list[go.Scatter]:
    return [trace for trace in figure.data if trace.customdata is not None]


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_figure_shows_every_left_out_figure_with_its_band(system: str) -> None:
    single = reported(system)
    figure = predicted_against_documented(single)
    assert figure is not None
    rings = [x for trace in figure.data if trace.name == RINGED for x in trace.x]

    assert sum(len(trace.x) for trace in points_of(figure)) == len(single.left_out)
    assert len(rings) == sum(not each.said["capplan"].holds(each.documented) for each in single.left_out)
    for trace in points_of(figure):
        axis = figure.layout["xaxis" + (trace.xaxis or "x")[1:]]
        low, high = (10**end for end in axis.range)
        assert all(low < value < high for value in (*trace.x, *trace.y))
        assert len(axis.tickvals) >= 3
        assert all(low <= tick <= high for tick in axis.tickvals)
        assert list(axis.tickvals) == sorted(set(axis.tickvals))


def test_bars_reach_from_end_to_end_of_the_band() -> None:
    single = reported("openprovider")
    figure = predicted_against_documented(single)
    assert figure is not None
    trace = points_of(figure)[0]
    said = single.left_out[0].said["capplan"]

    assert trace.y[0] + trace.error_y.array[0] == pytest.approx(said.high, rel=1e-3)
    assert trace.y[0] - trace.error_y.arrayminus[0] == pytest.approx(said.low, rel=1e-3)


def test_without_left_out_figures_there_is_none_to_draw() -> None:
    bare = replace(reported("openprovider"), left_out=(), own=None, scores={})

    assert predicted_against_documented(bare) is None
    assert errors_of_all([bare]) is None
    assert figures([bare]) == {}
    assert "No figure is scored." in page([bare], shown)


def test_scores_are_capplan_alone_then_beside_the_rules() -> None:
    for single in every():
        assert single.own is not None
        (block,) = [each for each in tables_of(page([single], shown)) if each[0][2:3] == ["interval score"]]
        assert [row[0] for row in block[2:]] == ["capplan, all figures", *single.scores]
        assert block[2][1] == share(single.own.error).replace(" ", BLANK)


def test_errors_beyond_the_edge_become_triangles_and_are_counted() -> None:
    single = reported("openprovider")
    first = single.left_out[0]
    said = {**first.said, "capplan": Said(first.documented * 3, first.documented, first.documented * 4)}
    figure = errors_of_all([replace(single, left_out=(replace(first, said=said), *single.left_out[1:]))])
    assert figure is not None

    assert figure.data[1].marker.symbol[0] == "triangle-right"
    assert max(figure.data[1].x) == 0.6
    assert "triangles: errors beyond 60 % (1)" in figure.layout.title.text


@pytest.mark.parametrize(("system", "counted"), [("arion", "numbers of clients"), ("vcider", "ratios")])
def test_panels_are_named_by_what_they_count(system: str, counted: str) -> None:
    figure = predicted_against_documented(reported(system))
    assert figure is not None

    assert counted in [each.text for each in figure.layout.annotations]


def test_a_digest_hangs_on_the_content_alone() -> None:
    single = reported("openprovider")
    figure, again = predicted_against_documented(single), predicted_against_documented(single)
    assert figure is not None
    assert again is not None
    moved = replace(single.left_out[0], documented=single.left_out[0].documented * 1.01)
    other = predicted_against_documented(replace(single, left_out=(moved, *single.left_out[1:])))
    assert other is not None
    again.update_layout(template="plotly_dark")

    assert digest(figure) == digest(again)
    assert digest(figure) != digest(other)


def test_the_page_of_html_holds_words_tables_figures_and_what_draws_them() -> None:
    single = reported("openprovider")
    text = html([single])

    assert text.partition("</head>")[2].count("Plotly.newPlot(") == 2
    assert text.count("<table>") == len(tables_of(page([single], shown)))
    assert 'id="openprovider"' in text
    assert "<!-- figure" not in text
    assert get_plotlyjs() in text.partition("</head>")[0]
    assert len(text) < 1.1 * len(get_plotlyjs())  # it is there once


def test_a_report_is_two_files(tmp_path: Path) -> None:
    written = write_report([reported("openprovider")], tmp_path)

    assert [path.name for path in written] == [MARKDOWN, HTML]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([MARKDOWN, HTML])
    assert f"]({HTML}#openprovider)" in written[0].read_text(encoding="utf-8")
