"""`capplan simulate`: same figures from both engines; tables, JSON, CSV, traces, plots; one sentence for bad input."""

import csv
import io
import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pyarrow import parquet
from rich.progress import Progress as Bar
from tests.planner.predictions import offered_tps, predicted

import capplan.cli.simulate as face
from capplan.cli.main import main
from capplan.cli.shell import progress
from capplan.layout.fitted_file import write
from capplan.models.language.document import read_network
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


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["simulate", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def refused(capsys: pytest.CaptureFixture[str], arguments: Sequence[str]) -> str:
    code = main(["simulate", *arguments])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("capplan: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err.removeprefix("capplan: ").rstrip()


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--duration", "15parsecs"], ["--duration", "'15parsecs'", "'parsecs'", "ms"]),
        (["--duration", "0"], ["--duration", "0"]),
        (["--duration", "-5s"], ["--duration"]),
        (["--duration", "nan"], ["--duration", "nan"]),
        (["--duration", "inf"], ["--duration"]),
        (["--duration", "long"], ["--duration", "'long'"]),
        (["--warmup", "-1s"], ["--warmup"]),
        (["--warmup", "60s"], ["--warmup 60s", "--duration 60s"]),
        (["--duration", "1m", "--warmup", "2m"], ["--warmup 2m", "--duration 1m"]),
        (["--replications", "0"], ["--replications"]),
        (["--processes", "0"], ["--processes"]),
        (["--seed", "-1"], ["--seed"]),
        (["--engine", "compield"], ["'compield'", "'compiled'"]),
        (["--horizon", "finit"], ["--horizon finit", "'finite'"]),
        (["--precision", "p99"], ["'p99'", "p99<2%"]),
        (["--precision", "auht.p99<2%"], ["'auht'", "'auth'"]),
        (["--tps", "-5"], ["tps"]),
        (["--tps", "lots"], ["'lots'"]),
        (["--dcs", "0"], ["dcs"]),
        (["--rtt", "3ms", "--distance-km", "150"], ["--rtt", "--distance-km"]),
        (["--json", "--csv"], ["--json", "--csv"]),
        (["--trace", "nowhere/a.parquet"], ["nowhere/a.parquet"]),
        (["--plot", "docs"], ["docs"]),
        (["openprovidr"], ["'openprovidr'", "'openprovider'"]),
        (["missing.toml"], ["missing.toml"]),
        ([EXAMPLE, "--dcs", "3"], ["--dcs"]),
        ([EXAMPLE, "--rf", "3", "--no-proxy"], ["--rf"]),
        ([EXAMPLE, "--tps", "0"], ["0"]),
    ],
    ids=" ".join,
)
def test_bad_input_is_one_sentence(arguments: list[str], wanted: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    sentence = refused(capsys, arguments)

    for part in wanted:
        assert part in sentence


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
    document = json.loads(ran(capsys, str(path), "--engine", "simpy", "--duration", "2s", "--json"))

    assert "closed" in refused(capsys, [str(path), "--tps", "100"])
    assert (document["offered_tps"], document["mean_tps"], document["offered_source"]) == (None, None, "network")


def test_a_bad_network_is_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text((ROOT / EXAMPLE).read_text(encoding="utf-8").replace('"in-flight"', '"inflight"', 1), "utf-8")

    assert "'inflight'" in refused(capsys, [str(path)])


@pytest.mark.parametrize(
    "target",
    [pytest.param(("openprovider", *SHORT), marks=pytest.mark.slow), (EXAMPLE, "--duration", "4s", "--tps", "300")],
)
def test_engines_and_processes_print_the_same_bytes(target: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    printed = {
        (engine, processes): ran(
            capsys, *target, "--json", "--replications", "2", "--engine", engine, "--processes", processes
        )
        for engine, processes in (("compiled", "1"), ("compiled", "2"), ("simpy", "1"))
    }

    assert len(set(printed.values())) == 1
    document = json.loads(printed["simpy", "1"])
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert document["classes"]["*"]["started"] > 200


def test_json_says_what_was_run(plans: list[ReplicationPlan], capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(ran(capsys, "--dcs", "1", "--tps", "1000/s", "--duration", "15m", "--seed", "7", "--json"))

    (plan,) = plans
    assert (plan.duration_s, plan.warmup_s, plan.seed, plan.replications, plan.engine) == (900, 0, 7, 1, "compiled")
    assert document["schema"] == "capplan.simulation/3"
    assert (document["target"], document["scenario"]["dcs"], document["seed"]) == ("openprovider", 1, 7)
    assert (document["offered_tps"], document["offered_source"]) == (1000, "given")
    assert document["mean_tps"] < 1000  # bursts have the peak rate
    assert document["classes"]["auth"]["latency_ms"]["intended"]["p99"]["half_width"] is None


@pytest.mark.slow
def test_without_a_rate_it_is_that_of_a_prediction(
    plans: list[ReplicationPlan], capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(ran(capsys, "--dcs", "2", "--cass-nodes", "4", "--json"))

    assert len(plans) == 1
    assert document["offered_source"] == "default"
    assert document["offered_tps"] == offered_tps(predicted(dcs=2, cass_nodes=4))


def test_a_scenario_or_fitted_file(
    plans: list[ReplicationPlan], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    scenario, fitted = tmp_path / "mine.toml", tmp_path / "mine.json"
    scenario.write_text('dcs = 1\ncass_nodes = 5\ntps = "900/s"\n', encoding="utf-8")
    write(system("openprovider").fitted(), fitted)
    by_file = json.loads(ran(capsys, str(scenario), "--cass-nodes", "4", "--json"))
    by_fit = json.loads(ran(capsys, str(fitted), "--dcs", "1", "--cass-nodes", "4", "--tps", "900", "--json"))

    assert (by_file["scenario"]["cass_nodes"], by_file["offered_tps"]) == (4, 900)
    assert by_file["classes"] == by_fit["classes"]
    assert plans[0].network == plans[1].network


def test_another_rate_for_a_network(plans: list[ReplicationPlan], capsys: pytest.CaptureFixture[str]) -> None:
    own = json.loads(ran(capsys, EXAMPLE, "--json"))
    other = json.loads(ran(capsys, EXAMPLE, "--tps", "600", "--json"))

    assert (own["scenario"], own["offered_tps"], own["offered_source"]) == (None, 1200, "network")
    assert (other["offered_tps"], other["mean_tps"], other["offered_source"]) == (600, 600, "given")
    assert plans[0].network.stations == plans[1].network.stations


@pytest.mark.usefixtures("plans")
@pytest.mark.parametrize("target", [("openprovider", "--tps", "3000"), (EXAMPLE,)])
@pytest.mark.parametrize("replications", ["1", pytest.param("3", marks=pytest.mark.slow)])
def test_people_read_it_in_eighty_columns(
    target: Sequence[str], replications: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = ran(capsys, *target, "--replications", replications)

    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    assert "…" not in out
    assert "nan" not in out
    for part in (
        "offered/s",
        "throughput/s",
        "drop rate %",
        "p99.9",
        "the intended start",
        "Stations",
        "Pools",
        "busy %",
    ):
        assert part in out
    assert "±" in out  # of a finite time and one replication, at least how large a loss that was not seen may be
    assert ("(MSER)" in out) is (EXAMPLE not in target)  # its timeline has no steady state, so nothing is left out


def test_only_clients_that_wait_for_answers_fall_behind_an_overload() -> None:
    """In a stream no client waits for an answer before it sends more."""
    assert system("arion").bounded(scenario("arion"))
    assert not system("arion").bounded(scenario("arion", stream_messages=1000))


def test_both_starts_are_shown_where_they_differ(capsys: pytest.CaptureFixture[str]) -> None:
    """Its clients hold a rate, so one that waits for an answer starts the next request late."""
    throttled = ran(capsys, EXAMPLE, "--engine", "simpy", "--duration", "3s", "--tps", "2500")
    opened = ran(capsys, "--engine", "simpy", *SHORT)

    assert "the actual start" in throttled
    assert "the actual start" not in opened


@pytest.mark.usefixtures("plans")
def test_csv_has_a_row_for_each_figure(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(ran(capsys, EXAMPLE, "--csv", "--replications", "2"))))
    figures = {(row["kind"], row["name"], row["quantity"], row["statistic"]): row for row in rows}

    assert len(figures) == len(rows)
    assert float(figures["class", "*", "latency_intended", "p999"]["value"]) > 0
    assert figures["class", "read", "throughput", "mean"]["half_width"]
    assert {name for kind, name, _, _ in figures if kind == "station"} == {"api", "node/1", "node/2", "node/3"}
    assert {name for kind, name, _, _ in figures if kind == "pool"} == {"in-flight"}


def test_a_trace_has_every_request(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "requests.parquet"
    arguments = (EXAMPLE, "--duration", "2s", "--warmup", "0", "--replications", "2", "--trace", str(path), "--json")
    document = json.loads(ran(capsys, *arguments, "--engine", "simpy"))
    table = parquet.read_table(path)
    ran(capsys, *arguments, "--engine", "compiled", "--processes", "2")
    other = parquet.read_table(path)
    order = [("replication", "ascending"), ("request", "ascending")]

    assert table.num_rows == document["classes"]["*"]["started"]
    assert set(table.column("replication").to_pylist()) == {0, 1}
    assert table.sort_by(order).to_pylist() == other.sort_by(order).to_pylist()
    assert [each.name for each in tmp_path.iterdir()] == ["requests.parquet"]


def test_a_plot_is_one_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "plot.html"
    ran(capsys, EXAMPLE, "--engine", "simpy", "--duration", "1s", "--plot", str(path))
    text = path.read_text(encoding="utf-8")

    assert "<title>docs/examples/pauses-and-a-lost-node.toml</title>" in text
    assert text.endswith("</html>")
    assert "<script src=" not in text
    assert [each.name for each in tmp_path.iterdir()] == ["plot.html"]


def test_a_run_without_a_request_shows_no_growth(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "fedora4", "--tps", "20", "--duration", "1s", "--warmup", "999ms"]) == 0
    assert "nan" not in capsys.readouterr().out


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


def test_a_bar_is_shown_to_a_terminal_that_waits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started, start = threading.Event(), Bar.start

    def seen(bar: Bar) -> None:
        start(bar)
        started.set()

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)
    monkeypatch.setattr(Bar, "start", seen)
    plan = ReplicationPlan(read_network(EXAMPLE), 10.0, 1.0, 1, replications=2, engine="simpy")
    with progress.simulating(plan) as tell:
        assert started.wait(60)
        tell(5.0, 1000)
    out, err = capsys.readouterr()

    assert out == ""
    assert "simulating" in err
    assert "25%" in err
    assert "requests/s" in err


def test_what_ends_soon_needs_no_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(progress, "PATIENCE_S", 3600.0)
    with progress.simulating(ReplicationPlan(read_network(EXAMPLE), 10.0, 1.0, 1, engine="simpy")) as tell:
        tell(5.0, 1000)

    assert capsys.readouterr() == ("", "")
