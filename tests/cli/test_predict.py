"""`capplan predict`: exit code 1 for "no", and answers without a kernel."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.cli.commands import answered, refused
from tests.planner.predictions import predicted

import capplan.cli.predict as face
from capplan.answers.verdict import NORMAL, OVERLOAD, Answer, JudgedSituation, verdict
from capplan.cli.main import main
from capplan.planner.predict.predict import predict
from capplan.planner.predict.prediction import Prediction
from capplan.simulator.compiled.kernel import library
from capplan.systems.openprovider.scenario import OpenproviderScenario

ONE_DC = ["predict", "--dcs", "1", "--engine", "analytic"]


@pytest.fixture(scope="module")
def plain_prediction() -> Prediction:
    return predicted()


def test_one_objective_of_two_that_fails_is_a_no(capsys: pytest.CaptureFixture[str]) -> None:
    objectives = ["--slo", "drop_rate<1%", "--slo", "capacity>1e6"]
    document = json.loads(answered(capsys, *ONE_DC, "--tps", "1000", *objectives, "--json", code=1))

    assert [objective["answer"] for objective in document["objectives"]] == ["yes", "no"]
    assert document["verdict"]["answer"] == "no"


@pytest.mark.parametrize("format_", [[], ["--json"], ["--csv"]])
def test_more_than_it_carries_is_answered(format_: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    out = answered(capsys, *ONE_DC, "--tps", "50000", *format_, code=1)

    assert "50,000" in out or "50000" in out
    assert {"nan", "inf", "infinity"} & set(re.findall(r"[a-z]+", out.lower())) == set()


@pytest.mark.parametrize(("confidence", "answer"), [(0.9, "uncertain"), (0.6, "uncertain"), (0.1, "yes")])
def test_the_confidence_decides_what_risk_is_accepted(confidence: float, answer: str) -> None:
    """The rate is the median of the capacity: the risk is about one half."""
    capacity = predicted().peak_tps
    assert capacity is not None
    made = predict(OpenproviderScenario(tps=capacity.value), engine="analytic", confidence=confidence)

    assert made.verdict is not None
    assert made.verdict.answer == answer


@pytest.mark.parametrize(("answer", "code"), [(None, 0), ("yes", 0), ("uncertain", 1), ("no", 1)])
def test_yes_and_nothing_to_judge_are_exit_code_0_and_the_rest_is_1(
    answer: Answer | None,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    plain_prediction: Prediction,
) -> None:
    normal = JudgedSituation(situation=NORMAL, answer=answer or "no", risk=0.5, limit=OVERLOAD)
    judged = None if answer is None else replace(verdict([normal]), answer=answer)
    monkeypatch.setattr(face, "predict", Mock(return_value=replace(plain_prediction, verdict=judged)))

    assert (f"Answer       {answer} (" in answered(capsys, "predict", code=code)) is (answer is not None)


def test_a_larger_seed_than_any_word_of_a_machine(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(answered(capsys, *ONE_DC, "--seed", 10**30, "--json"))

    assert document["seed"] == 10**30


@pytest.fixture
def no_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The kernel was not compiled when capplan was installed."""
    library.library.cache_clear()
    monkeypatch.setattr(library, "LIBRARY", tmp_path / "missing.so")
    yield
    library.library.cache_clear()


@pytest.mark.usefixtures("no_kernel")
def test_without_a_kernel_the_analytic_solver_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "--dcs", "1", "--json"]) == 0
    out, err = capsys.readouterr()

    assert json.loads(out)["engine"] == "analytic"
    assert err.count("\n") == 1


@pytest.mark.usefixtures("no_kernel")
@pytest.mark.parametrize("options", [["--engine", "compiled"], ["--budget", "1s"]])
def test_without_a_kernel_what_needs_it_is_refused(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "predict", "--dcs", "1", *options)
