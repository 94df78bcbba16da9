"""`capplan simulate`: same figures from both engines; tables, JSON, CSV, traces, plots; one sentence for bad input."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pyarrow import parquet
from tests.cli.commands import answered, refused

import capplan.cli.simulate as face
from capplan.cli.main import main
from capplan.layout.components import ResponseTimes
from capplan.layout.fitted_file import write
from capplan.planner.simulate.simulate import Design, observed
from capplan.simulator.replications import ReplicationPlan
from capplan.simulator.sample import Observation
from capplan.systems.registry import scenario, system

ROOT = Path(__file__).parents[2]
EXAMPLE = "docs/examples/pauses-and-a-lost-node.toml"
SCHEMA = json.loads((ROOT / "docs" / "reference" / "simulation.schema.json").read_text(encoding="utf-8"))
SHORT = ("--tps", "2000", "--duration", "200ms")


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[ReplicationPlan]:
    """What the command has run; it runs a tenth of a second of it, without the compiler."""
    seen: list[ReplicationPlan] = []

    def short(plan: ReplicationPlan, design: Design, **options: Any) -> list[Observation]:
        seen.append(plan)
        return observed(
            ReplicationPlan(plan.network, 0.1, 0.01, plan.seed, plan.replications, "simpy"), design, **options
        )

    monkeypatch.setattr(face, "observed", short)
    return seen


def test_a_closed_network_takes_no_rate(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "closed.toml"
    path.write_text(
        'name = "closed"\nstations = [{ name = "a", servers = 1 }]\n'
        'classes = [{ name = "ask", flow = { kind = "visit", station = "a", demand = { kind = "exponential", '
        'mean_s = "1ms" } } }]\n'
        'traffic = { kind = "closed", clients = 2, think = { kind = "exponential", mean_s = "9ms" }, '
        "mix = { ask = 1 } }\n",
        encoding="utf-8",
    )
    document = json.loads(answered(capsys, "simulate", str(path), "--engine", "simpy", "--duration", "2s", "--json"))

    assert (document["offered_tps"], document["mean_tps"], document["offered_source"]) == (None, None, "network")


def test_a_bad_network_is_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text((ROOT / EXAMPLE).read_text(encoding="utf-8").replace('"in-flight"', '"inflight"', 1), "utf-8")

    assert "'inflight'" in refused(capsys, "simulate", path)


@pytest.mark.parametrize(
    "target",
    [pytest.param(("openprovider", *SHORT), marks=pytest.mark.slow), (EXAMPLE, "--duration", "4s", "--tps", "300")],
)
def test_engines_and_processes_print_the_same_bytes(target: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    printed = {
        (engine, processes): answered(
            capsys,
            *["simulate", *target, "--json", "--replications", "2"],
            "--engine",
            engine,
            "--processes",
            processes,
        )
        for engine, processes in (("compiled", "1"), ("compiled", "2"), ("simpy", "1"))
    }

    assert len(set(printed.values())) == 1
    document = json.loads(printed["simpy", "1"])
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert document["classes"]["*"]["started"] > 200


def test_a_scenario_or_fitted_file(
    plans: list[ReplicationPlan], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    scenario, fitted = tmp_path / "mine.toml", tmp_path / "mine.json"
    scenario.write_text('dcs = 1\ncass_nodes = 5\ntps = "900/s"\n', encoding="utf-8")
    write(system("openprovider").fitted(), fitted)
    by_file = json.loads(answered(capsys, "simulate", str(scenario), "--cass-nodes", "4", "--json"))
    by_fit = json.loads(
        answered(capsys, "simulate", fitted, *["--dcs", "1", "--cass-nodes", "4", "--tps", "900", "--json"])
    )

    assert (by_file["scenario"]["cass_nodes"], by_file["offered_tps"]) == (4, 900)
    assert by_file["classes"] == by_fit["classes"]
    assert plans[0].network == plans[1].network


def test_another_rate_for_a_network(plans: list[ReplicationPlan], capsys: pytest.CaptureFixture[str]) -> None:
    own = json.loads(answered(capsys, "simulate", EXAMPLE, "--json"))
    other = json.loads(answered(capsys, "simulate", EXAMPLE, "--tps", "600", "--json"))

    assert (own["scenario"], own["offered_tps"], own["offered_source"]) == (None, 1200, "network")
    assert (other["offered_tps"], other["mean_tps"], other["offered_source"]) == (600, 600, "given")
    assert plans[0].network.stations == plans[1].network.stations


def test_only_clients_that_wait_for_answers_fall_behind_an_overload() -> None:
    """In a stream no client waits for an answer before it sends more."""
    waiting = system("arion").component(ResponseTimes).waiting_clients
    assert waiting(scenario("arion")) is not None
    assert waiting(scenario("arion", stream_messages=1000)) is None


def test_a_trace_has_every_request(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "requests.parquet"
    arguments = (EXAMPLE, "--duration", "2s", "--warmup", "0", "--replications", "2", "--trace", str(path), "--json")
    document = json.loads(answered(capsys, "simulate", *arguments, "--engine", "simpy"))
    table = parquet.read_table(path)
    answered(capsys, "simulate", *arguments, "--engine", "compiled", "--processes", "2")
    other = parquet.read_table(path)
    order = [("replication", "ascending"), ("request", "ascending")]

    assert table.num_rows == document["classes"]["*"]["started"]
    assert set(table.column("replication").to_pylist()) == {0, 1}
    assert table.sort_by(order).to_pylist() == other.sort_by(order).to_pylist()
    assert [each.name for each in tmp_path.iterdir()] == ["requests.parquet"]


def test_an_interrupt_is_a_short_sentence_and_leaves_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(plan: ReplicationPlan, design: Design, **options: Any) -> list[Observation]:
        observed(ReplicationPlan(plan.network, 0.1, 0.01, 1, engine="simpy"), design, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(face, "observed", interrupted)
    code = main(["simulate", EXAMPLE, "--trace", str(tmp_path / "a.parquet"), "--plot", str(tmp_path / "a.html")])
    out, err = capsys.readouterr()

    assert (code, out) == (130, "")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_plain_engine_needs_no_compiler() -> None:
    code = f"from capplan.cli.main import main; import sys; main({['simulate', '--engine', 'simpy', *SHORT]!r})"
    shown = f"{code}; print('modules', *sys.modules)"
    result = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    heavy = {"plotly", "pyarrow", "scipy.optimize", "scipy.stats", "pandas"}

    assert heavy & set(result.stdout.rpartition("modules")[2].split()) == set()
