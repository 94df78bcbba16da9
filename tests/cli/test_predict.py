"""`capplan predict`: tables, JSON and CSV; exit code 1 for "no", exit code 2 and one sentence for bad input."""

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import jsonschema
import pytest
from tests.planner.predictions import few_draws, predicted

import capplan.cli.predict as face
from capplan.cli.main import main
from capplan.layout.fitted_file import write
from capplan.models.verdict import NORMAL, OVERLOAD, Answer, JudgedSituation, verdict
from capplan.planner.predict.predict import predict
from capplan.planner.predict.prediction import Prediction
from capplan.simulator.compiled.kernel import library
from capplan.systems.openprovider.scenario import OpenproviderScenario
from capplan.systems.registry import system

ROOT = Path(__file__).parents[2]
USUAL = {"seed": 1, "engine": "compiled", "budget_s": None, "fitted": None, "confidence": 0.9, "lose": ()}
Asked = list[tuple[OpenproviderScenario, dict[str, Any]]]


@pytest.fixture(scope="module")
def plain_prediction() -> Prediction:
    return predicted()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, plain_prediction: Prediction) -> Asked:
    """What the command asks of the planner, which then answers without computing."""
    calls: Asked = []

    def fake(scenario: OpenproviderScenario, **options: Any) -> Prediction:
        options.pop("progress")(1, 1)
        calls.append((scenario, options))
        return plain_prediction

    monkeypatch.setattr(face, "predict", fake)
    return calls


def ran(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["predict", *arguments]) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


def refused(capsys: pytest.CaptureFixture[str], arguments: Sequence[str]) -> str:
    """Run, and return the sentence on stderr."""
    code = main(["predict", *arguments])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("capplan: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert "Traceback" not in err
    return err.removeprefix("capplan: ").rstrip()


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--dcs", "0"], ["dcs", "0"]),
        (["--dcs", "3.5"], ["--dcs"]),
        (["--dcs", "65"], ["dcs = 65", "64"]),
        (["--cass-nodes", "2", "--rf", "3"], ["rf = 3"]),
        (["--rf", "0"], ["rf", "0"]),
        (["--front-nodes", "0"], ["front_nodes", "0"]),
        (["--front-workers", "5000"], ["front_workers = 5000", "4,096"]),
        (["--slo", "acct.p99<banana"], ["'acct.p99<banana'", "'banana'", "1.5ms"]),
        (["--slo", "acc.p99<20ms"], ["'acc'", "acct"]),
        (["--slo", ""], ["objective ''"]),
        (["--slo", "acct.p99<20ms", "--slo", "bad"], ["'bad'"]),
        (["--tps", "nan"], ["tps", "nan"]),
        (["--tps", "inf"], ["tps"]),
        (["--tps", "0"], ["tps"]),
        (["--tps", "-5"], ["tps"]),
        (["--tps", "lots"], ["'lots'"]),
        (["--tps", "7000/parsec"], ["'/parsec'"]),
        (["--rtt", "3parsecs"], ["'3parsecs'", "'parsecs'", "ms"]),
        (["--rtt", "nan"], ["'nan'"]),
        (["--rtt", "-1ms"], ["'-1ms'"]),
        (["--rtt", "11s"], ["'11s'"]),
        (["--rtt", "3ms", "--distance-km", "150"], ["--rtt", "--distance-km"]),
        (["--distance-km", "far"], ["'far'"]),
        (["--distance-km", "nan"], ["distance"]),
        (["--distance-km", "-3"], ["distance"]),
        (["--distance-km", "40000"], ["40000"]),
        (["--data-factor", "x"], ["'x'", "2.5"]),
        (["--data-factor", "nan"], ["'nan'"]),
        (["--data-factor", "0"], ["'0'"]),
        (["--data-factor", "1000"], ["data_factor", "100"]),
        (["--burst-ratio", "0.5"], ["'0.5'", "from 1"]),
        (["--burst-ratio", "20"], ["burst_ratio", "19"]),
        (["--tps", "1000", "--tps-mean", "900"], ["--tps", "--tps-mean"]),
        (["--confidence", "0"], ["0"]),
        (["--confidence", "1"], ["0", "1"]),
        (["--confidence", "often"], ["'often'"]),
        (["--lose", "disk"], ["'disk'", "node"]),
        (["--lose", "dc7"], ["dc7", "dc3"]),
        (["--json", "--csv"], ["--json", "--csv"]),
        (["--engine", "spimy"], ["'spimy'", "'simpy'"]),
        (["--seed", "-1"], ["--seed"]),
        (["--seed", "x"], ["--seed"]),
        (["--consistency-write", "EACH_QOURUM"], ["'EACH_QOURUM'", "'EACH_QUORUM'"]),
        (["--consistency-write", "SERIAL"], ["'SERIAL'", "QUORUM"]),
        (["--consistency-read", "SERIAL"], ["'SERIAL'"]),
        (["--dcs", "1", "--rf", "1", "--consistency-write", "TWO"], ["TWO"]),
        (["openprovidr"], ["'openprovidr'", "'openprovider'"]),
        ([""], ["''"]),
        (["missing.toml"], ["missing.toml"]),
        (["missing.json"], ["missing.json does not exist"]),
        (["--cass-node", "6"], ["'--cass-node'", "'--cass-nodes'"]),
        (["openprovider", "6"], ["extra argument", "6"]),
    ],
    ids=" ".join,
)
def test_bad_input_is_one_sentence(
    arguments: list[str],
    wanted: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    sentence = refused(capsys, arguments)

    for part in wanted:
        assert part in sentence


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("dcs = 3\ncass_node = 6\n", "'cass_nodes'"),
        ("dcs = 0\n", "dcs"),
        ('dcs = "three"\n', "dcs"),
        ('tps = "nan"\n', "nan"),
        ("tps = nan\n", "nan"),
        ('rtt = "3parsecs"\n', "'parsecs'"),
        ('dcs = 3\nrtt = [["0ms", "2ms"], ["2ms", "0ms"]]\n', "3 data centres"),
        ('system = "openprovidr"\n', "'openprovider'"),
        ("dcs = = 3\n", "TOML"),
    ],
)
def test_a_bad_scenario_file_is_one_sentence(
    text: str, wanted: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    sentence = refused(capsys, [str(path)])

    assert str(path) in sentence
    assert wanted in sentence


def test_a_bad_fitted_file_is_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text("{}", encoding="utf-8")

    assert "mine.json" in refused(capsys, [str(path)])


def test_every_option_reaches_the_scenario(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    ran(
        capsys,
        *(
            "openprovider",
            "--dcs",
            "2",
            "--cass-nodes",
            "6",
            "--rf",
            "2",
            "--front-nodes",
            "4",
            "--front-workers",
            "32",
        ),
        *("--consistency-read", "local_one", "--consistency-write", "EACH_QUORUM", "--rtt", "3ms", "--proxy", "--ldap"),
        *(
            "--data-factor",
            "2.5",
            "--tps",
            "90000/min",
            "--slo",
            "acct.p99<20ms",
            "--slo",
            "drop_rate<1%",
            "--burst-ratio",
            "1.5",
            "--json",
        ),
        *(
            "--seed",
            "7",
            "--engine",
            "simpy",
            "--budget",
            "1.5min",
            "--confidence",
            "80%",
            "--lose",
            "node",
            "--lose",
            "dc2,front",
        ),
    )
    ((scenario, options),) = asked

    assert scenario == OpenproviderScenario(
        dcs=2,
        cass_nodes=6,
        rf=2,
        front_nodes=4,
        front_workers=32,
        consistency_read="LOCAL_ONE",
        consistency_write="EACH_QUORUM",
        rtt="3ms",
        proxy=True,
        ldap=True,
        data_factor=2.5,
        burst_ratio=1.5,
        tps=1500.0,
        slo=("acct.p99<20ms", "drop_rate<1%"),
    )
    assert options == {
        "seed": 7,
        "engine": "simpy",
        "budget_s": 90.0,
        "fitted": None,
        "confidence": 0.8,
        "lose": ("node", "dc2,front"),
    }


def test_without_options_it_is_the_default_layout(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    ran(capsys, "--json")

    assert asked == [(OpenproviderScenario(), USUAL)]


def test_options_go_before_the_scenario_file(asked: Asked, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('dcs = 2\ncass_nodes = 5\nrtt = "9ms"\nproxy = true\n', encoding="utf-8")
    ran(capsys, str(path), "--cass-nodes", "4", "--no-proxy", "--json")
    ran(capsys, str(path), "--distance-km", "80", "--json")

    assert asked[0][0] == OpenproviderScenario(dcs=2, cass_nodes=4, rtt="9ms", proxy=False)
    assert asked[1][0] == OpenproviderScenario(dcs=2, cass_nodes=5, distance="80km", proxy=True)


def test_a_distance_may_have_a_unit(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    ran(capsys, "--distance-km", "80", "--json")
    ran(capsys, "--distance-km", "80000m", "--json")

    assert asked[0][0] == asked[1][0] == OpenproviderScenario(distance="80km")


def test_a_fitted_file_is_used(asked: Asked, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    write(system("openprovider").fitted(), path)
    ran(capsys, str(path), "--dcs", "2", "--json")

    assert asked == [
        (
            OpenproviderScenario(dcs=2),
            {**USUAL, "fitted": system("openprovider").fitted()},
        )
    ]


def test_json_is_the_prediction(capsys: pytest.CaptureFixture[str], plain_prediction: Prediction) -> None:
    schema = json.loads((ROOT / "docs" / "reference" / "prediction.schema.json").read_text(encoding="utf-8"))
    document = json.loads(ran(capsys, "--dcs", "3", "--cass-nodes", "3", "--engine", "analytic", "--json"))

    jsonschema.Draft202012Validator(schema).validate(document)
    assert document["schema"] == "capplan.prediction/4"
    assert {**document, "schema": None} == {**plain_prediction.to_json(), "schema": None}


@pytest.mark.usefixtures("asked")
def test_csv_has_a_row_for_each_figure(capsys: pytest.CaptureFixture[str], plain_prediction: Prediction) -> None:
    rows = list(csv.DictReader(io.StringIO(ran(capsys, "--csv"))))

    assert plain_prediction.peak_tps is not None
    assert rows[0]["quantity"] == "capacity.peak"
    assert float(rows[0]["value"]) == pytest.approx(plain_prediction.peak_tps.value, rel=1e-3)
    assert {(row["request_class"], row["statistic"]) for row in rows if row["quantity"] == "latency"} == {
        (name, statistic) for name in ("auth", "acct") for statistic in ("mean", "p50", "p90", "p95", "p99", "p999")
    }
    assert all(float(row["low"]) <= float(row["value"]) <= float(row["high"]) for row in rows)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command predicts with few draws: an objective is searched for in each of them."""
    monkeypatch.setattr(face, "predict", lambda asked, **rest: predict(asked, **{**rest, "fitted": few_draws()}))


@pytest.mark.usefixtures("few")
def test_an_objective_that_is_met(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(
        ran(capsys, "--dcs", "1", "--tps", "1000", "--slo", "acct.p99<1s", "--json", "--engine", "analytic")
    )

    assert [objective["answer"] for objective in document["objectives"]] == ["yes"]
    assert document["verdict"]["answer"] == "yes"


@pytest.mark.usefixtures("few")
def test_an_objective_that_cannot_be_met_is_a_no_with_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    out = " ".join(ran(capsys, "--dcs", "1", "--slo", "acct.p99<1us", "--engine", "analytic", code=1).split())

    assert "Answer no (100 % risk" in out
    assert "acct.p99<1us: no" in out
    assert "Capacity 0 TPS" in out


def test_one_objective_of_two_that_fails_is_a_no(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "--dcs",
        "1",
        "--tps",
        "1000",
        "--slo",
        "drop_rate<1%",
        "--slo",
        "capacity>1e6",
        "--json",
        "--engine",
        "analytic",
    ]
    document = json.loads(ran(capsys, *arguments, code=1))

    assert [objective["answer"] for objective in document["objectives"]] == ["yes", "no"]
    assert document["verdict"]["answer"] == "no"


@pytest.mark.parametrize("format_", [[], ["--json"], ["--csv"]])
def test_more_than_it_carries_is_answered(format_: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    out = ran(capsys, "--dcs", "1", "--tps", "50000", "--engine", "analytic", *format_, code=1)

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

    assert (f"Answer       {answer} (" in ran(capsys, code=code)) is (answer is not None)


def test_a_larger_seed_than_any_word_of_a_machine(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(ran(capsys, "--dcs", "1", "--seed", str(10**30), "--json", "--engine", "analytic"))

    assert document["seed"] == 10**30


def test_the_budget_reaches_the_planner_in_seconds(capsys: pytest.CaptureFixture[str], asked: Asked) -> None:
    ran(capsys, "--json")
    ran(capsys, "--budget", "500ms", "--json")

    assert [options["budget_s"] for _, options in asked] == [None, 0.5]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--budget", "0s"], "0 s"),
        (["--budget=-2s"], "-2 s"),
        (["--budget", "1e9s"], "1h"),
        (["--budget", "2x"], "'x'"),
        (["--budget", "2s", "--engine", "analytic"], "--engine compiled"),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert words in refused(capsys, arguments)


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
    assert main(["predict", "--dcs", "1", *options]) == 2
    out, err = capsys.readouterr()

    assert out == ""
    assert err.count("\n") == 1
