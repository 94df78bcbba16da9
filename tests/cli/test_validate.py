"""`capplan validate`: every documented figure next to the prediction; exit code 1 if a goal is missed."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.calibration.documented_reports import reported
from tests.calibration.fit.small_calibration import few_draws
from tests.calibration.made_up_fits import as_documented
from tests.cli.commands import answered

import capplan.cli.validate as face
from capplan.calibration.validation.validation import Validation, Validations, goals_of_all, report, stages_of
from capplan.cli.main import main
from capplan.layout.fitted_file import Fitted, write
from capplan.layout.system import System
from capplan.systems.registry import documented_names, system

REPORTS: dict[str, Validation] = {}
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
        assert missed_in(answered(capsys, "validate", name, code=0)) == []


def test_a_missed_goal_is_a_no(missed: str, capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = missed_in(answered(capsys, "validate", missed, code=1))

    assert "TS2" in line
    assert "+4.0%" in line


@pytest.mark.parametrize("format_", ["--json", "--csv"])
def test_a_missed_goal_is_a_no_for_programs_too(missed: str, format_: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "ts2.incoming" in answered(capsys, "validate", missed, format_, code=1)


def test_a_missed_goal_that_figures_share_is_a_no(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = passing(REPORTS["vcider"])
    goal = found.goals[-1]
    off = replace(found, goals=(*found.goals[:-1], replace(goal, value=1.01 * goal.limit)))
    monkeypatch.setitem(REPORTS, "vcider", off)
    (line,) = missed_in(answered(capsys, "validate", "vcider", code=1))

    assert goal.name in line


def test_all_is_a_no_if_one_system_misses_one_goal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, found in list(REPORTS.items()):
        monkeypatch.setitem(REPORTS, name, passing(found))
    monkeypatch.setitem(REPORTS, "openprovider", missing_one(REPORTS["openprovider"], "ts2.incoming"))
    (line,) = missed_in(answered(capsys, "validate", "all", code=1))

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
    (line,) = missed_in(answered(capsys, "validate", "all", code=1))

    assert words(goals_of_all(list(REPORTS.values()))[0].name) in line


def test_json_of_all_is_by_system(capsys: pytest.CaptureFixture[str]) -> None:
    main(["validate", "all", "--json"])
    document = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))

    jsonschema.validate(document, Validations.json_schema())
    assert [each["system"] for each in document["systems"]] == list(documented_names())


def test_a_fitted_file_is_validated(asked: Asked, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.json"
    write(as_documented(system("vcider").fitted()), path)
    out = answered(capsys, "validate", str(path), code=0)

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
