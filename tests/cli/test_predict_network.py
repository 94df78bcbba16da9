"""`capplan predict mine.toml`: the screen, JSON and CSV of a network, and what is refused."""

import csv
import io
import json
from pathlib import Path

import jsonschema
import pytest

from capplan.cli.main import main
from capplan.planner.predict.prediction import Prediction

NETWORK = """
name = "mine"
stations = [{ name = "server", servers = 2 }]
traffic = { kind = "open", rate_per_s = 1000, mix = { read = 1.0 } }
[[classes]]
name = "read"
flow = { kind = "visit", station = "server", demand = { kind = "exponential", mean_s = "1ms" } }
"""
CLOSED = NETWORK.replace(
    'kind = "open", rate_per_s = 1000', 'kind = "closed", clients = 4, think = { kind = "exponential", mean_s = "1ms" }'
)
QUICK = ["--budget", "100ms"]


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(NETWORK, encoding="utf-8")
    Path("closed.toml").write_text(CLOSED, encoding="utf-8")
    return "mine.toml"


def ran(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["predict", *arguments]) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["predict", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize("columns", ["60", "80", "140"])
def test_the_screen_holds_what_decides(
    mine: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = ran(capsys, mine, *QUICK).splitlines()

    assert len(lines) <= 25
    assert all(len(line) <= int(columns) and line == line.rstrip() for line in lines)
    wanted = (
        "mine:",
        "Answer",
        "Capacity",
        "Bottleneck",
        "Offered",
        "Objectives",
        "Model only",
        "Latency, ms",
        "More:",
    )
    assert [word for word in wanted if not any(line.startswith(word) for line in lines)] == []
    assert any(line.startswith("Capacity     2,000 TPS") for line in lines)


def test_explain_says_what_the_file_was_taken_for(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "file mine.toml, taken for a network" in ran(capsys, mine, *QUICK, "--explain")


def test_json_and_csv_agree(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(ran(capsys, mine, *QUICK, "--json"))
    rows = list(csv.DictReader(io.StringIO(ran(capsys, mine, *QUICK, "--csv"))))

    jsonschema.validate(document, Prediction.json_schema())
    (p99,) = [row for row in rows if (row["quantity"], row["statistic"]) == ("latency", "p99")]
    assert float(p99["value"]) == document["latency_ms"]["read"]["p99"]["value"]
    assert document["capacity"]["peak_tps"]["value"] == 2000
    assert document["outages"] == []


def test_the_rate_and_objectives_decide_the_exit_code(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran(capsys, mine, *QUICK, "--slo", "read.p99<1s")
    ran(capsys, mine, *QUICK, "--slo", "read.p99<1ms", code=1)
    ran(capsys, mine, *QUICK, "--tps", "3k", code=1)


def test_closed_clients_show_a_throughput(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    del mine
    lines = ran(capsys, "closed.toml", *QUICK).splitlines()

    assert any(line.startswith("Throughput") for line in lines)
    assert not any(line.startswith("Offered") for line in lines)


def test_engines_print_the_same_figures(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The budget is so small that both simulate the fewest requests."""
    del mine
    compiled, simpy = (
        json.loads(ran(capsys, "closed.toml", "--budget", "1ms", "--engine", name, "--json"))
        for name in ("compiled", "simpy")
    )
    assert compiled["latency_ms"] == simpy["latency_ms"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mine.toml", "--lose", "node"], ["--lose node", "network", "simulate"]),
        (["mine.toml", "--plot", "out.html"], ["--plot out.html", "network"]),
        (["mine.toml", "--dcs", "3"], ["--dcs", "--tps"]),
        (["mine.toml", "--tps", "-3"], ["tps", "-3"]),
        (["mine.toml", "--tps", "fast"], ["--tps", "fast"]),
        (["mine.toml", "--slo", "raed.p99<1ms"], ["raed", "read"]),
        (["mine.toml", "--confidence", "0%"], ["confidence"]),
        (["mine.toml", "--budget", "0s"], ["budget"]),
        (["closed.toml", "--tps", "100"], ["--tps", "closed"]),
    ],
)
def test_what_does_not_fit_a_network_is_refused(
    mine: str, capsys: pytest.CaptureFixture[str], arguments: list[str], words: list[str]
) -> None:
    del mine
    said = refused(capsys, *arguments)
    assert all(word in said for word in words)


def test_help_has_the_options_of_a_network(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = ran(capsys, mine, "--help")

    assert "--slo" in text
    assert "--tps" in text
    assert "--cass-nodes" not in text
