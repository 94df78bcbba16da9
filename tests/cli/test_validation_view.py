"""A validation for people: scenarios that were left out, their bands and scores, goals in words."""

import math
import re
from dataclasses import replace
from functools import cache

import pytest
from capplan.calibration.study import Goal
from capplan.systems.studies import STUDIES

from capplan.calibration.fit.fitted_file import load
from capplan.calibration.validation.validate import median_errors, report
from capplan.calibration.validation.validation import Validation
from capplan.cli.terminal import Screen
from capplan.cli.validation_view import goal_line, show
from capplan.planner.reports.validation_words import covered


@cache
def reported(system: str) -> Validation:
    return report(load(system), "From the fitted file.")


def shown(system: str, capsys: pytest.CaptureFixture[str]) -> str:
    show(reported(system), Screen())
    return capsys.readouterr().out


def words(out: str) -> str:
    return " ".join(out.split())


def test_medians_of_many_families_count_scenarios_not_figures(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown("vcider", capsys).splitlines()
    (row,) = [line.split() for line in lines if line.startswith("client+internode ")]

    assert row[1] == "2"  # replication factors; ten figures
    assert len(row) == 2 + len(["capplan", "persistence", "linear", "affine", "USL"])


def test_a_left_out_scenario_has_its_band(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown("openprovider", capsys)

    for each in reported("openprovider").left_out:
        said = each.said["capplan"]
        if each.family == "capacity":
            assert f"{each.fold} {said.value:,.0f} ({said.low:,.0f}-{said.high:,.0f})" in words(out)
        elif each.family:
            value, low, high = (f"{figure * 1e3:.3g}" for figure in (said.value, said.low, said.high))
            assert f"{each.fold} {value} ({low}-{high}) ms" in words(out)
    for family in ("capacity", "auth mean time", "acct mean time"):
        assert f"\n\n{family}\nscenario " in out


def test_what_is_not_scored_stands_in_no_median(capsys: pytest.CaptureFixture[str]) -> None:
    """T7 of rhino-shcm is the only test without caches: six others have cores."""
    found = reported("rhino-shcm")
    errors = median_errors([each for each in found.left_out if each.family == "cores" and each.fold != "T7"])
    (row,) = [line.split() for line in shown("rhino-shcm", capsys).splitlines() if line.startswith("cores ")]

    assert row[1:3] == ["6", f"{errors['capplan']:.1%}"]


@pytest.mark.parametrize("system", ["openprovider", "rhino-shcm", "fedora4"])
def test_why_figures_are_not_scored_is_told(system: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = words(shown(system, capsys))
    reasons = {each.uncounted for each in reported(system).left_out if not each.counts}

    assert reasons
    assert all(f", since {reason}." in out for reason in reasons)


@pytest.mark.parametrize("system", list(STUDIES))
def test_capplan_is_scored_on_all_figures_then_beside_the_rules(
    system: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = reported(system)
    out = words(shown(system, capsys))

    assert found.own is not None
    own = f"{found.own.error:.1%} {found.own.interval_score:.2f} {found.own.half_width:.0%}"
    assert f"half-width ─── capplan, all figures {own} " in re.sub("─+", "───", out)
    assert out.count("capplan, all figures") == 1
    for name, score in found.scores.items():
        assert f" {name} {score.error:.1%} {score.interval_score:.2f} {score.half_width:.0%} " in out


def test_without_a_scored_figure_there_is_no_table_of_scores(capsys: pytest.CaptureFixture[str]) -> None:
    show(replace(reported("openprovider"), left_out=(), own=None, scores={}), Screen())
    out = words(capsys.readouterr().out)

    assert "Bands of scenarios that were left out No figure is scored. Parameters" in out


def test_errors_as_large_as_the_figure_have_no_decimals(capsys: pytest.CaptureFixture[str]) -> None:
    found = reported("vcider")
    errors = median_errors([each for each in found.left_out if each.family == "none"])
    (row,) = [line.split() for line in shown("vcider", capsys).splitlines() if line.startswith("none ")]

    assert errors["linear"] >= 1 > errors["affine"]
    assert row[2:] == [f"{each:.0%}" if each >= 1 else f"{each:.1%}" for each in errors.values()]


def test_scores_and_coverage_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    found, out = reported("openprovider"), words(shown("openprovider", capsys))

    for name, score in found.scores.items():
        assert f"{name} {score.error:.1%} {score.interval_score:.2f} {score.half_width:.0%}" in out
    assert words(covered(found.coverage)) in out
    assert f"{found.draws} draws, moved by {found.posterior.steps} steps of emcee" in out
    assert f"at most {found.posterior.laplace:.2f} (Kolmogorov-Smirnov)" in out


def test_a_rule_without_a_band_has_no_score(capsys: pytest.CaptureFixture[str]) -> None:
    found = reported("vcider")
    bandless = replace(found.scores["linear"], interval_score=math.nan, half_width=math.nan)
    show(replace(found, scores={**found.scores, "linear": bandless}), Screen())

    assert f"linear {bandless.error:.1%} none none" in words(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("goal", "line"),
    [
        (Goal("median error", 0.031, 0.1), "median error: 3.1% of at most 10%: met"),
        (Goal("median error", 0.131, 0.125), "median error: 13.1% of at most 12.5%: MISSED"),
        (Goal("score", 0.5, 0.6, share=False), "score: 0.50 of at most 0.60: met"),
    ],
)
def test_a_goal_in_words(goal: Goal, line: str) -> None:
    assert goal_line(goal) == line
