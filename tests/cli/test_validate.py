"""`capplan validate`: every documented figure next to the prediction; exit code 1 if a goal is missed."""

import io
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.calibration.documented_reports import reported
from tests.calibration.fit.small_calibration import few_draws
from tests.calibration.made_up_fits import as_documented

import capplan.cli.validate as face
from capplan.calibration.validation.validation import Validation, goals_of_all, median_errors, report, stages_of
from capplan.cli.main import main
from capplan.layout.fitted_file import Fitted, write
from capplan.layout.system import System
from capplan.models.number_words import share
from capplan.reports.validation import judged_of, rows_of
from capplan.systems.registry import documented_names, system

REPORTS: dict[str, Validation] = {}
SCENARIO = Path(__file__).parents[2] / "docs" / "examples" / "repository-of-six.toml"
Asked = list[tuple[str, bool]]


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What the command asks of the planner: reports by the kept refits, whatever code made them."""
    calls: Asked = []
    for name in documented_names():
        monkeypatch.setitem(REPORTS, name, replace(reported(name), refits="From the fitted file."))

    def fake(its: System[Any], fitted: Fitted, *, refit: bool, progress: Callable[[str], None]) -> Validation:
        calls.append((its.name, refit))
        for stage in range(stages_of(its)):
            progress(f"stage {stage}")
        return REPORTS[its.name] if fitted == its.fitted() else report(its, fitted)

    monkeypatch.setattr(face, "validate", fake)
    return calls


def ran(capsys: pytest.CaptureFixture[str], *arguments: str, code: int | None = None) -> str:
    wanted = code
    if wanted is None:
        system = next((name for name in arguments if name in REPORTS), "openprovider")
        wanted = 0 if REPORTS[system].passed else 1
    assert main(["validate", *arguments]) == wanted
    out, err = capsys.readouterr()
    assert err == ""
    return out


def words(out: str) -> str:
    """Return a text on one line, whether a blank stands before `%` or not."""
    return " ".join(out.split()).replace(" %", "%")


def missed_in(out: str) -> list[str]:
    """Return the list of missed targets, which comes first."""
    return [words(item) for item in out.partition("\n\n\n")[0].split(" • ")[1:]]


def passing(found: Validation) -> Validation:
    """The report as if it had met every goal."""
    figures = tuple(replace(each, met=None if each.met is None else True, predicted=each.documented, error=0.0)
                    for each in found.figures)  # fmt: skip
    return replace(found, figures=figures, goals=tuple(replace(goal, value=goal.limit) for goal in found.goals))


def missing_one(found: Validation, name: str) -> Validation:
    """A report that misses one figure by 4 %, and nothing else."""
    found = passing(found)
    off = tuple(
        replace(each, met=False, error=0.04, predicted=1.04 * each.documented) if each.id == name else each
        for each in found.figures
    )
    return replace(found, figures=off)


@pytest.fixture
def missed(monkeypatch: pytest.MonkeyPatch) -> str:
    """The system, as if its model said one rate 4 % too high and everything else as documented."""
    monkeypatch.setitem(REPORTS, "openprovider", missing_one(REPORTS["openprovider"], "ts2.incoming"))
    return "openprovider"


def test_where_every_goal_is_met_the_answer_is_yes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, found in list(REPORTS.items()):
        monkeypatch.setitem(REPORTS, name, passing(found))
    for name in (*REPORTS, "all"):
        assert missed_in(ran(capsys, name, code=0)) == []


@pytest.mark.parametrize("columns", ["80", "120"])
@pytest.mark.parametrize("target", ["openprovider", "rhino-shcm", "fedora4", "vcider", "arion", "all"])
def test_people_read_it_in_so_many_columns(
    target: str, columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["validate", target]) in (0, 1)
    out = capsys.readouterr().out

    assert max(map(len, out.splitlines())) <= int(columns)
    assert "\x1b" not in out
    assert "…" not in out


@pytest.mark.parametrize("system", list(documented_names()))
def test_every_figure_goal_rule_and_sentence_is_there(system: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = REPORTS[system]
    out = words(ran(capsys, system))

    for row in rows_of(found):
        assert row["name"].split()[0] in out
    for goal in found.goals:
        assert " ".join(goal.name.split()[:3]) in out  # the rest may be on the next line of its cell
    assert all(name in out for name in found.scores)
    assert all(words(text) in out for text in (found.verdict, found.refits, found.goals_in_words))


def test_ids_are_whole_in_narrow_terminals(capsys: pytest.CaptureFixture[str]) -> None:
    out = ran(capsys, "arion")

    for figure in REPORTS["arion"].figures:
        assert re.search(rf"^{re.escape(figure.id)} ", out, re.MULTILINE)


def test_medians_count_scenarios_not_figures(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ran(capsys, "vcider").splitlines()
    (row,) = [line.split() for line in lines if line.startswith("client+internode ")]

    assert row[1] == "2"  # replication factors; ten figures


def test_what_is_not_scored_stands_in_no_median(capsys: pytest.CaptureFixture[str]) -> None:
    """T7 of rhino-shcm is the only test without caches: six others have cores."""
    found = REPORTS["rhino-shcm"]
    errors = median_errors([each for each in found.left_out if each.family == "cores" and each.fold != "T7"])
    (row,) = [line.split() for line in ran(capsys, "rhino-shcm").splitlines() if line.startswith("cores ")]

    assert " ".join(row[1:4]) == f"6 {share(errors['capplan'])}"


def test_without_a_scored_figure_there_is_no_table_of_scores(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(REPORTS, "openprovider", replace(REPORTS["openprovider"], left_out=(), own=None, scores={}))

    assert "interval score" not in ran(capsys).partition(": left-out")[2]


def test_a_rule_without_a_band_has_no_score(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = REPORTS["vcider"]
    bandless = replace(found.scores["linear"], interval_score=math.nan, half_width=math.nan)
    monkeypatch.setitem(REPORTS, "vcider", replace(found, scores={**found.scores, "linear": bandless}))

    assert words(f"linear {share(bandless.error)} none none") in words(ran(capsys, "vcider"))


def test_a_missed_goal_is_a_no(missed: str, capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = missed_in(ran(capsys, missed, code=1))

    assert "TS2" in line
    assert "+4.0%" in line


@pytest.mark.parametrize("format_", ["--json", "--csv"])
def test_a_missed_goal_is_a_no_for_programs_too(missed: str, format_: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "ts2.incoming" in ran(capsys, missed, format_, code=1)


def test_a_missed_goal_that_figures_share_is_a_no(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = passing(REPORTS["vcider"])
    goal = found.goals[-1]
    off = replace(found, goals=(*found.goals[:-1], replace(goal, value=1.01 * goal.limit)))
    monkeypatch.setitem(REPORTS, "vcider", off)
    (line,) = missed_in(ran(capsys, "vcider", code=1))

    assert goal.name in line


def test_all_systems_side_by_side(capsys: pytest.CaptureFixture[str], asked: Asked) -> None:
    goals = goals_of_all(list(REPORTS.values()))
    met = [goal.met for goal in goals] + [each for found in REPORTS.values() for each in judged_of(found)]
    printed = ran(capsys, "all", code=0 if all(met) else 1)

    assert asked == [(name, False) for name in documented_names()]
    assert len(missed_in(printed)) == met.count(False)
    for name, found in REPORTS.items():
        assert re.search(rf"^{name} .*\b{found.coverage.held} of {found.coverage.figures}\b", printed, re.MULTILINE)
        assert words(found.verdict) in words(printed)


def test_all_is_a_no_if_one_system_misses_one_goal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, found in list(REPORTS.items()):
        monkeypatch.setitem(REPORTS, name, passing(found))
    monkeypatch.setitem(REPORTS, "openprovider", missing_one(REPORTS["openprovider"], "ts2.incoming"))
    (line,) = missed_in(ran(capsys, "all", code=1))

    assert "openprovider" in line
    assert "+4.0%" in line


def test_all_is_a_no_if_the_systems_miss_a_goal_together(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each system is let off by its own goals, but too many of all figures are far off."""
    for name, found in list(REPORTS.items()):
        let_off = passing(found)
        figures = tuple(replace(each, error=0.5, predicted=9 * each.high) for each in let_off.figures)
        monkeypatch.setitem(REPORTS, name, replace(let_off, figures=figures))
    (line,) = missed_in(ran(capsys, "all", code=1))

    assert words(goals_of_all(list(REPORTS.values()))[0].name) in line


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    expected = REPORTS["openprovider"]
    document = json.loads(ran(capsys, "--json"))

    assert [figure["id"] for figure in document["figures"]] == [figure.id for figure in expected.figures]
    assert [figure["error"] for figure in document["figures"]] == pytest.approx([f.error for f in expected.figures])
    assert document["verdict"] == expected.verdict
    capacity = [each for each in document["left_out"] if each["family"]]
    assert {tuple(each["estimates"]) for each in capacity} == {("capplan", "persistence", "linear", "affine", "USL")}
    assert {name for each in capacity for said in each["estimates"].values() for name in said} == {
        "value",
        "low",
        "high",
    }
    assert set(document["scores"]) == set(expected.scores)
    assert document["coverage"]["scenarios"] == 3
    assert document["own"]["error"] == pytest.approx(expected.own.error if expected.own else math.nan)
    unscored = {each["id"]: each["widens"] for each in document["left_out"] if each["not_scored"]}
    assert unscored == {
        f"{test}.{name}": False for test in ("ts4", "ts4-ldap") for name in ("incoming", "auth_mean", "acct_mean")
    }


def test_json_of_all_is_by_system(capsys: pytest.CaptureFixture[str]) -> None:
    main(["validate", "all", "--json"])
    document = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))

    assert list(document) == list(documented_names())
    assert document["vcider"]["system"] == "vcider"


@pytest.mark.parametrize("target", ["openprovider", "all"])
def test_csv_is_the_table(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["validate", target, "--csv"])
    rows = pd.read_csv(io.StringIO(capsys.readouterr().out))
    reports = list(REPORTS.values()) if target == "all" else [REPORTS[target]]
    wanted = pd.concat([each.to_frame() for each in reports], ignore_index=True)

    assert list(rows) == list(wanted)
    assert list(rows["id"]) == list(wanted["id"])
    assert list(rows["error"]) == pytest.approx(list(rows["predicted"] / rows["documented"] - 1), abs=1e-9)
    assert set(rows["met"].dropna()) == {True}


def test_refits_can_be_asked_for(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    ran(capsys, "vcider", "--refit")

    assert asked == [("vcider", True)]


def test_a_fitted_file_is_validated(asked: Asked, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.json"
    write(as_documented(system("vcider").fitted()), path)
    out = ran(capsys, str(path), code=0)

    assert asked == [("vcider", False)]
    assert "+0%" in words(out)


def test_the_command_refits_and_keeps_what_it_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.undo()
    few_draws(monkeypatch)
    monkeypatch.setenv("CAPPLAN_CACHE_DIR", str(tmp_path))

    assert main(["validate", "vcider", "--refit"]) in (0, 1)
    out, err = capsys.readouterr()
    assert err == ""  # progress is for terminals
    assert out
    (kept,) = tmp_path.iterdir()
    assert kept.name.startswith("vcider-refits.")


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["openprovidr"], "'openprovider'"),
        (["missing.json"], "missing.json does not exist"),
        (["missing.toml"], "missing.toml"),
        ([str(SCENARIO)], "give fedora4,"),
        (["--json", "--csv"], "--csv"),
        (["--sead", "1"], "'--sead'"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], wanted: str, capsys: pytest.CaptureFixture[str], asked: Asked
) -> None:
    assert main(["validate", *arguments]) == 2
    out, err = capsys.readouterr()

    assert (out, asked) == ("", [])
    assert err.startswith("capplan: ")
    assert err.count("\n") == 1
    assert wanted in err
