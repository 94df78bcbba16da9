"""`capplan validate`: every documented figure beside the prediction; exit 1 where a goal is missed."""

import csv
import io
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from capplan.systems.studies import STUDIES
from tests.calibration.small_calibration import few_draws
from tests.planner.made_up_fits import as_documented

import capplan.cli.validate as face
from capplan.calibration.fit.fitted_file import Fitted, load, write
from capplan.calibration.validation.validate import goals_of_all, report, stages_of
from capplan.calibration.validation.validation import Validation
from capplan.cli.main import main
from capplan.cli.terminal import Screen
from capplan.cli.validation_view import goal_line, missed_of, show_all
from capplan.planner.reports.validation_words import best_rule, covered

REPORTS = {name: report(load(name), "From the fitted file.") for name in STUDIES}
REPORT = REPORTS["openprovider"]
SCENARIO = Path(__file__).parents[2] / "docs" / "examples" / "repository-of-six.toml"
Asked = list[tuple[str, bool]]


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What the command asks of the planner: reports by the kept refits, whatever code made them."""
    calls: Asked = []

    def fake(fitted: Fitted, *, refit: bool, progress: Callable[[str], None]) -> Validation:
        calls.append((fitted.system, refit))
        for stage in range(stages_of(fitted.system)):
            progress(f"stage {stage}")
        return REPORTS[fitted.system] if fitted == load(fitted.system) else report(fitted)

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
    return " ".join(out.split())


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
    monkeypatch.setitem(REPORTS, "openprovider", missing_one(REPORT, "ts2.incoming"))
    return "openprovider"


def test_where_every_goal_is_met_the_answer_is_yes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, found in list(REPORTS.items()):
        monkeypatch.setitem(REPORTS, name, passing(found))
    for name in REPORTS:
        assert "MISSED" not in ran(capsys, name, code=0)
    assert "no targets are missed" in ran(capsys, "all", code=0)


def test_the_packaged_fit_meets_the_goals_of_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    out = words(ran(capsys, "openprovider"))

    assert out.startswith("openprovider: 15 of 15 figures with a goal are met, and ")
    assert f"{len(REPORT.goals)} goals that figures share; 5 others are compared without one of their own" in out
    assert words(REPORT.verdict) in out
    assert words(REPORT.refits) in out


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


def test_every_figure_goal_and_rule_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    out = ran(capsys)

    for figure in REPORT.figures:
        assert f"{figure.error:+.1%}" in out
    for goal in REPORT.goals:
        assert words(goal_line(goal)) in words(out)
    for name in ("persistence", "linear", "affine", "USL"):
        assert name in out


def test_a_missed_goal_is_a_no(missed: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = ran(capsys, missed, code=1)

    assert "14 of 15" in out
    (line,) = [line for line in out.splitlines() if "MISSED" in line]
    assert line.split()[0] == "TS2"
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
    out = ran(capsys, "vcider", code=1)

    assert out.count("MISSED") == 1
    assert words(goal_line(off.goals[-1])) in words(out)


def test_a_ratio_of_a_request_class_has_its_digits_too(capsys: pytest.CaptureFixture[str]) -> None:
    (figure,) = [each for each in REPORTS["arion"].figures if each.id == "peak.droop"]

    assert f"{figure.documented:.3f} {figure.predicted:.3f}" in words(ran(capsys, "arion"))


def test_names_of_figures_give_way_in_narrow_terminals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = ran(capsys, "arion")

    for figure in REPORTS["arion"].figures:
        assert re.search(rf"^{re.escape(figure.id)} ", out, re.MULTILINE)


def test_the_other_systems_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    rhino, fedora, vcider = (words(ran(capsys, name)) for name in ("rhino-shcm", "fedora4", "vcider"))

    assert rhino.startswith("rhino-shcm: 7 of 7 figures with a goal are met, and ")
    assert "45 others are compared without one of their own, the largest error" in rhino
    assert fedora.startswith("fedora4: 20 of 20 figures with a goal are met, and ")
    assert "37 others are compared without one of their own, the largest error -4" in fedora
    assert vcider.startswith("vcider: 6 of 6 figures with a goal are met, and ")
    assert "2.80 cores" in rhino
    arion = words(ran(capsys, "arion"))
    assert "; clients.growth is compared without a goal, error " in arion
    assert "request latency max" in rhino
    (row,) = [line.split() for line in ran(capsys, "vcider").splitlines() if line.startswith("r3.both.c32 ")]
    assert row[3] == "1.315"
    assert re.fullmatch(r"1\.3\d\d", row[4])  # as many digits as the document has


def test_all_systems_side_by_side(capsys: pytest.CaptureFixture[str], asked: Asked) -> None:
    goals = goals_of_all(list(REPORTS.values()))
    met = all(each.passed for each in REPORTS.values()) and all(goal.met for goal in goals)
    printed = ran(capsys, "all", code=0 if met else 1)
    out = words(printed)

    assert asked == [(name, False) for name in STUDIES]
    assert out.startswith(f"{len(STUDIES)} systems; ")
    for goal in goals:
        assert words(goal_line(goal)) in out
    for name, found in REPORTS.items():
        held = f"{found.coverage.held}/{found.coverage.figures}"
        assert re.search(rf"^{name} .* {held} *$", printed, re.MULTILINE)
        assert words(found.verdict) in out
        assert words(covered(found.coverage)) in out
        assert found.own is not None
        best = best_rule(found.scores)
        beside = f"{found.scores['capplan'].error:.1%} / {found.scores[best].error:.1%} {best} " if best else ""
        assert f"{found.own.error:.1%} {beside}{found.own.half_width:.0%} {held}" in out
        for text in missed_of(found):
            assert words(f"{name}: {text}") in out


def test_all_is_a_no_if_one_system_misses_one_goal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, found in list(REPORTS.items()):
        monkeypatch.setitem(REPORTS, name, passing(found))
    monkeypatch.setitem(REPORTS, "openprovider", missing_one(REPORT, "ts2.incoming"))
    out = words(ran(capsys, "all", code=1))

    assert "1 target is missed" in out
    assert "openprovider: ts2.incoming (+4.0%)" in out


def test_all_is_a_no_if_the_systems_miss_a_goal_together(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each system is let off by its own goals, but too many of all figures are far off."""
    for name, found in list(REPORTS.items()):
        let_off = passing(found)
        figures = tuple(replace(each, error=0.5, predicted=9 * each.high) for each in let_off.figures)
        monkeypatch.setitem(REPORTS, name, replace(let_off, figures=figures))
    out = words(ran(capsys, "all", code=1))

    assert "1 target is missed" in out
    assert "all: measured figures further off than 10 % and their own rounding" in out


def test_without_a_system_nothing_is_missed(capsys: pytest.CaptureFixture[str]) -> None:
    show_all([passing(REPORTS["vcider"])], Screen())

    assert "1 systems; no targets are missed." in capsys.readouterr().out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(ran(capsys, "--json"))

    assert [figure["id"] for figure in document["figures"]] == [figure.id for figure in REPORT.figures]
    assert [figure["error"] for figure in document["figures"]] == pytest.approx([f.error for f in REPORT.figures])
    assert document["verdict"] == REPORT.verdict
    capacity = [each for each in document["left_out"] if each["family"]]
    assert {tuple(each["said"]) for each in capacity} == {("capplan", "persistence", "linear", "affine", "USL")}
    assert {name for each in capacity for said in each["said"].values() for name in said} == {"value", "low", "high"}
    assert set(document["scores"]) == set(REPORT.scores)
    assert document["coverage"]["scenarios"] == 4
    assert document["own"]["error"] == pytest.approx(REPORT.own.error if REPORT.own else math.nan)
    apart = {each["id"]: (each["uncounted"], each["widens"]) for each in document["left_out"] if each["uncounted"]}
    reason = "LDAP was a second look at TS4, and nothing else speaks of it"
    assert apart == {f"ts4-ldap.{name}": (reason, False) for name in ("incoming", "auth_mean", "acct_mean")}


def test_json_of_all_is_by_system(capsys: pytest.CaptureFixture[str]) -> None:
    main(["validate", "all", "--json"])
    document = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))

    assert list(document) == list(STUDIES)
    assert document["vcider"]["system"] == "vcider"


def test_csv(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(ran(capsys, "--csv"))))

    assert [row["id"] for row in rows] == [figure.id for figure in REPORT.figures]
    assert {row["met"] for row in rows} == {"True", ""}
    for row in rows:
        assert float(row["error"]) == pytest.approx(float(row["predicted"]) / float(row["documented"]) - 1, abs=1e-9)


def test_csv_of_all_has_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    main(["validate", "all", "--csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))

    wanted = [(name, figure.id) for name, found in REPORTS.items() for figure in found.figures]
    assert [(row["system"], row["id"]) for row in rows] == wanted


def test_refits_can_be_asked_for(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    ran(capsys, "vcider", "--refit")

    assert asked == [("vcider", True)]


def test_a_fitted_file_is_validated(asked: Asked, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.json"
    write(as_documented(load("vcider")), path)
    out = ran(capsys, str(path), code=0)

    assert asked == [("vcider", False)]
    assert "+0.0%" in out


def test_the_command_refits_and_keeps_what_it_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.undo()
    few_draws(monkeypatch)
    monkeypatch.setenv("CAPPLAN_CACHE_DIR", str(tmp_path))

    assert main(["validate", "vcider", "--refit"]) in (0, 1)
    out, err = capsys.readouterr()
    assert err == ""  # progress is for terminals
    assert "The refits were made anew" in words(out)
    (kept,) = tmp_path.iterdir()
    assert kept.name.startswith("vcider-refits.")


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["openprovidr"], "did you mean 'openprovider'?"),
        (["missing.json"], "'missing.json' cannot be read"),
        (["missing.toml"], "missing.toml"),
        (
            [str(SCENARIO)],
            "is a scenario, and a system is validated as a whole, in the layouts of its load tests: give",
        ),
        ([str(SCENARIO)], "load tests: give fedora4, a fitted file (.json) or all"),
        (["--json", "--csv"], "exclude each other"),
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
