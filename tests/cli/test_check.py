"""`capplan check`: a line for each verdict, JUnit and JSON, exit codes, and one sentence for a file with an error."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from capplan.cli.main import main
from capplan.planner.check import ALL_AT_ONCE, NO_OVERLOAD, check, read_specification

GOOD = """
system = "fedora4"
nodes = 6
tps = 300
slo = ["read.p99<1s", "read.mean<200ms"]
[check]
survive = ["node", "node+cold"]
confidence = "80%"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file whose objectives hold."""
    path = tmp_path / "slo.toml"
    path.write_text(GOOD, encoding="utf-8")
    return path


def test_every_objective_is_judged_in_every_situation(file: Path) -> None:
    found = check(read_specification(file), engine="analytic")
    assert found.verdict.answer == "yes"
    assert [each.situation for each in found.verdict.situations] == ["normal", "node", "node+cold"]
    assert {(each.objective, each.conditions) for each in found.objectives} == {
        (objective, conditions)
        for objective in (NO_OVERLOAD, "read.p99<1s", "read.mean<200ms", ALL_AT_ONCE)
        for conditions in ("normal", "node", "node+cold")
    }
    risks = {(each.objective, each.conditions): each.risk for each in found.objectives}
    for objective in (NO_OVERLOAD, "read.p99<1s", "read.mean<200ms", ALL_AT_ONCE):
        assert risks[objective, "normal"] <= risks[objective, "node"] <= risks[objective, "node+cold"]
    assert [each.guessed for each in found.objectives if each.conditions == "node+cold"] == [True] * 4
    assert {each.situation: each.risk for each in found.verdict.situations} == {
        conditions: risk for (objective, conditions), risk in risks.items() if objective == ALL_AT_ONCE
    }


def test_a_failure_ends_with_1_and_names_objective_situation_and_risk(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(GOOD.replace("tps = 300", "tps = 900"), encoding="utf-8")
    report = tmp_path / "report.xml"
    assert main(["check", str(file), "--engine", "analytic", "--quiet", "--junit", str(report)]) == 1
    lines = capsys.readouterr().out.splitlines()
    judged = [line for line in lines if not line.startswith(" ")]
    assert {line.split()[0] for line in judged} <= {"no", "uncertain"}
    suite = ET.parse(report).getroot()  # our own file
    failures = [case for case in suite if case.find("failure") is not None]
    assert len(failures) == int(suite.get("failures", "0")) == len(judged) > 0
    assert int(suite.get("tests", "0")) == 12


@pytest.mark.slow
def test_simulated_latencies_go_into_the_verdicts(file: Path) -> None:
    file.write_text(GOOD.replace("read.p99<1s", "read.p99<20ms"), encoding="utf-8")
    asked = read_specification(file)
    solved, simulated = check(asked, engine="analytic"), check(asked, engine="compiled")
    assert [each.risk for each in solved.objectives] != [each.risk for each in simulated.objectives]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (("tps = 300", ""), "objectives are checked at a rate"),
        (('"node+cold"', '"node+could"'), "did you mean 'cold'?"),
        (("confidence", "confidense"), "did you mean 'confidence'?"),
        (('"80%"', '"100%"'), "confidence of 1 is not above 0 and below 1"),
        (('["node", "node+cold"]', "3"), "survive = 3 must be a list of texts"),
        (("nodes = 6", "nods = 6"), "nods"),
        (("[check]", "fitted = 3\n[check]"), "fitted"),
        (('confidence = "80%"', "fitted = 3"), "fitted = 3 must be the name of a file"),
        (('confidence = "80%"', 'fitted = "none.json"'), "none.json"),
        (("read.p99<1s", "read.p9<1s"), "read.p9"),
    ],
)
def test_a_file_with_an_error_is_one_sentence(
    change: tuple[str, str], found: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(GOOD.replace(*change), encoding="utf-8")
    assert main(["check", str(file), "--engine", "analytic"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert found in error
