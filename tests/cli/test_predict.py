"""`capplan predict`: tables, JSON and CSV; exit 1 for no, exit 2 and one sentence for what cannot be read."""

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import capplan.cli.predict as face
from capplan.calibration.fit.fitted_file import load, write
from capplan.cli.main import main
from capplan.cli.predict import predict_
from capplan.planner.predict import budget as simulation_effort
from capplan.planner.predict import simulated_latency as simulated
from capplan.planner.predict.predict import predict
from capplan.planner.predict.prediction import Prediction
from capplan.systems.openprovider.scenario import OpenproviderScenario
from capplan.systems.registry import system

ROOT = Path(__file__).parents[2]
Asked = list[tuple[OpenproviderScenario, dict[str, Any]]]


@pytest.fixture(scope="module")
def plain_prediction() -> Prediction:
    return predict(OpenproviderScenario(), engine="analytic")


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
        (["--dcs", "0"], ["dcs", "0 is not a positive whole number"]),
        (["--dcs", "3.5"], ["--dcs", "integer"]),
        (["--dcs", "65"], ["dcs = 65", "64"]),
        (["--cass-nodes", "2", "--rf", "3"], ["rf = 3 needs at least 3 Cassandra nodes", "lower rf to 2"]),
        (["--rf", "0"], ["rf", "0 is not a positive whole number"]),
        (["--front-nodes", "0"], ["front_nodes", "0 is not a positive whole number"]),
        (["--front-workers", "5000"], ["front_workers = 5000", "4096"]),
        (["--slo", "acct.p99<banana"], ["'acct.p99<banana'", "'banana' is not a duration", "1.5ms"]),
        (["--slo", "acc.p99<20ms"], ["'acc' is not a request class", "acct"]),
        (["--slo", ""], ["objective ''"]),
        (["--slo", "acct.p99<20ms", "--slo", "bad"], ["'bad'"]),
        (["--tps", "nan"], ["tps", "nan is not a rate"]),
        (["--tps", "inf"], ["tps", "must be finite"]),
        (["--tps", "0"], ["tps", "above 0"]),
        (["--tps", "-5"], ["tps", "above 0"]),
        (["--tps", "lots"], ["'lots' is not a rate"]),
        (["--tps", "7000/parsec"], ["'/parsec' is unknown"]),
        (["--rtt", "3parsecs"], ["'3parsecs'", "'parsecs' is unknown", "ms"]),
        (["--rtt", "nan"], ["'nan'", "round trip"]),
        (["--rtt", "-1ms"], ["'-1ms'", "0 to 10s"]),
        (["--rtt", "11s"], ["'11s'", "0 to 10s"]),
        (["--rtt", "3ms", "--distance-km", "150"], ["--rtt and --distance-km exclude each other"]),
        (["--distance-km", "far"], ["'far' is not a distance"]),
        (["--distance-km", "nan"], ["distance"]),
        (["--distance-km", "-3"], ["distance", "20,000 km"]),
        (["--distance-km", "40000"], ["40000", "20,000 km"]),
        (["--data-factor", "x"], ["'x' is not a data factor", "2.5"]),
        (["--data-factor", "nan"], ["'nan' is not a data factor"]),
        (["--data-factor", "0"], ["'0' is not a data factor"]),
        (["--data-factor", "1000"], ["data_factor", "100"]),
        (["--json", "--csv"], ["--json and --csv exclude each other"]),
        (["--engine", "spimy"], ["'spimy'", "did you mean 'simpy'?"]),
        (["--seed", "-1"], ["--seed", "greater than or equal to 0"]),
        (["--seed", "x"], ["--seed", "integer"]),
        (["--consistency-write", "EACH_QOURUM"], ["'EACH_QOURUM'", "did you mean 'EACH_QUORUM'?"]),
        (["--consistency-write", "SERIAL"], ["'SERIAL' is refused", "QUORUM"]),
        (["--consistency-read", "EACH_QUORUM"], ["reads at 'EACH_QUORUM' are refused"]),
        (["--dcs", "1", "--rf", "1", "--consistency-write", "TWO"], ["TWO needs 2 replicas"]),
        (["openprovidr"], ["'openprovidr'", "did you mean 'openprovider'?"]),
        ([""], ["'' is no system"]),
        (["missing.toml"], ["missing.toml does not exist"]),
        (["missing.json"], ["'missing.json' cannot be read"]),
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
        ("dcs = 3\ncass_node = 6\n", "unknown key 'cass_node'; did you mean 'cass_nodes'?"),
        ("dcs = 0\n", "dcs: 0 is not a positive whole number"),
        ('dcs = "three"\n', "dcs: 'three' is not a positive whole number"),
        ('tps = "nan"\n', "nan"),
        ("tps = nan\n", "nan is not a rate"),
        ('rtt = "3parsecs"\n', "unit 'parsecs' is unknown"),
        ('rtt = [["0ms", "2ms"], ["2ms", "0ms"]]\n', "rtt has 2 rows and there are 3 data centres"),
        ('system = "openprovidr"\n', "did you mean 'openprovider'?"),
        ("dcs = = 3\n", "is not valid TOML"),
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

    assert "'mine.json' is no fitted file" in refused(capsys, [str(path)])


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
        *("--data-factor", "2.5", "--tps", "90000/min", "--slo", "acct.p99<20ms", "--slo", "drop_rate<1%"),
        *("--seed", "7", "--engine", "simpy", "--budget", "1.5min", "--json"),
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
        tps=1500.0,
        slo=("acct.p99<20ms", "drop_rate<1%"),
    )
    assert options == {"seed": 7, "engine": "simpy", "budget_s": 90.0, "fitted": None}


def test_without_options_it_is_the_default_layout(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    ran(capsys, "--json")

    assert asked == [(OpenproviderScenario(), {"seed": 1, "engine": "compiled", "budget_s": None, "fitted": None})]


def test_every_field_of_a_scenario_has_an_option() -> None:
    options = set(predict_.__annotations__)
    without = {"system", "distance"}  # the argument, and --distance-km

    assert set(OpenproviderScenario.__dataclass_fields__) - without <= options


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
    write(load("openprovider"), path)
    ran(capsys, str(path), "--dcs", "2", "--json")

    assert asked == [
        (
            OpenproviderScenario(dcs=2),
            {"seed": 1, "engine": "compiled", "budget_s": None, "fitted": load("openprovider")},
        )
    ]


def test_json_is_the_prediction(capsys: pytest.CaptureFixture[str], plain_prediction: Prediction) -> None:
    schema = json.loads((ROOT / "docs" / "reference" / "prediction.schema.json").read_text(encoding="utf-8"))
    document = json.loads(ran(capsys, "--dcs", "3", "--cass-nodes", "3", "--engine", "analytic", "--json"))

    jsonschema.Draft202012Validator(schema).validate(document)
    assert document["schema"] == "capplan.prediction/1"
    assert {**document, "schema": None} == {**plain_prediction.to_json(), "schema": None}


@pytest.mark.usefixtures("asked")
def test_csv_has_a_row_for_each_figure(capsys: pytest.CaptureFixture[str], plain_prediction: Prediction) -> None:
    rows = list(csv.DictReader(io.StringIO(ran(capsys, "--csv"))))

    assert plain_prediction.capacity_tps is not None
    assert rows[0]["quantity"] == "capacity"
    assert float(rows[0]["value"]) == pytest.approx(plain_prediction.capacity_tps.value, rel=1e-3)
    assert {(row["request_class"], row["statistic"]) for row in rows if row["quantity"] == "latency"} == {
        (name, statistic) for name in ("auth", "acct") for statistic in ("mean", "p50", "p90", "p95", "p99", "p999")
    }
    assert all(float(row["low"]) <= float(row["value"]) <= float(row["high"]) for row in rows)


def test_people_read_it_in_eighty_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = ran(capsys, "--dcs", "3", "--cass-nodes", "6", "--tps", "20000")

    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    assert "…" not in out
    for part in ("3 DCs x 6 nodes", "far", "Outages", "levels lowered", "Claimed:", "auth", "acct", "TPS"):
        assert part in out


def test_an_objective_that_is_met(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(ran(capsys, "--dcs", "1", "--tps", "1000", "--slo", "acct.p99<20ms", "--json"))

    assert [objective["met"] for objective in document["objectives"]] == [True]


def test_an_objective_that_cannot_be_met_is_a_no_with_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    out = " ".join(ran(capsys, "--dcs", "1", "--slo", "acct.p99<1us", code=1).split())

    assert "acct.p99<1us" in out
    assert "not met" in out
    assert "capacity 0" in out


def test_one_objective_of_two_that_fails_is_a_no(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--dcs", "1", "--tps", "1000", "--slo", "drop_rate<1%", "--slo", "capacity>1e6", "--json"]
    document = json.loads(ran(capsys, *arguments, code=1))

    assert [objective["met"] for objective in document["objectives"]] == [True, False]


@pytest.mark.parametrize("format_", [[], ["--json"], ["--csv"]])
def test_more_than_it_carries_is_answered(format_: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    out = ran(capsys, "--dcs", "1", "--tps", "50000", *format_)

    assert "50,000" in out or "50000" in out
    assert {"nan", "inf", "infinity"} & set(re.findall(r"[a-z]+", out.lower())) == set()


def test_the_simulation_says_that_it_simulated(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulation_effort, "FEWEST_REQUESTS", 200)
    monkeypatch.setattr(simulated, "system", lambda name: replace(system(name), settling=lambda *_: np.array(0.02)))
    arguments = ["--dcs", "1", "--tps", "2000", "--engine", "simpy", "--budget", "1ms", "--json"]
    document = json.loads(ran(capsys, *arguments))

    assert document["engine"] == "simpy"
    assert document["latency_ms"]["acct"]["mean"]["parts"]["simulation"] > 0
    assert document["capacity_tps"]["parts"]["simulation"] is None


def test_a_larger_seed_than_any_word_of_a_machine(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(ran(capsys, "--dcs", "1", "--seed", str(10**30), "--json"))

    assert document["seed"] == 10**30


def test_the_budget_reaches_the_planner_in_seconds(capsys: pytest.CaptureFixture[str], asked: Asked) -> None:
    ran(capsys, "--json")
    ran(capsys, "--budget", "500ms", "--json")

    assert [options["budget_s"] for _, options in asked] == [None, 0.5]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--budget", "0s"], "a budget of 0 s is not possible"),
        (["--budget=-2s"], "a budget of -2 s is not possible"),
        (["--budget", "1e9s"], "at most 1h"),
        (["--budget", "2x"], "unit 'x' is unknown"),
        (["--budget", "2s", "--engine", "analytic"], "leave it out, or choose --engine compiled"),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert words in refused(capsys, arguments)
