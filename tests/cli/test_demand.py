"""`capplan demand` and `--demand`: one screen, JSON, exit codes, and one sentence for what contradicts itself."""

from pathlib import Path

import pytest
from tests.cli.commands import predicted_scenarios

from capplan.cli.main import main
from capplan.systems.registry import scenario

ROOT = Path(__file__).parents[2]
EXAMPLE = str(ROOT / "docs" / "examples" / "demand.toml")
SMALL = """
subscribers = 900_000
[busy_hour]
sessions = 1
length_s = "30min"
interim_updates = 5
[data]
row_bytes = 1000
retention_s = "24h"
disk_gib = 1000
"""


@pytest.fixture
def small(tmp_path: Path) -> str:
    """A demand of 250 sessions, 2,000 requests a second."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(("second_s", "until"), [(10, "0 to 20 s"), (100, "0 to 10 s")])
def test_a_peak_lasts_until_it_falls(
    second_s: int, until: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half of the devices come back in ten seconds, the others as fast at once or later."""
    path = tmp_path / "storm.toml"
    parts = ((0, 10), (second_s, second_s + 10))
    boot = [f"{{ from_s = {begin}, to_s = {end}, share = 0.5 }}" for begin, end in parts]
    path.write_text(f"{SMALL}[reattach]\nboot = [{', '.join(boot)}]\n", encoding="utf-8")
    assert main(["demand", str(path)]) in (0, 1)
    assert until in " ".join(capsys.readouterr().out.split())


def test_a_demand_sets_rate_mix_and_reconnects_of_a_prediction(
    small: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = predicted_scenarios(monkeypatch)
    assert main(["predict", "--demand", small]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("Data ")]
    assert main(["predict", "--demand", EXAMPLE, "--encryption", "client", "--json"]) == 0
    assert '"Data' not in capsys.readouterr().out
    first, second = asked
    assert first == scenario("openprovider", tps_mean=2000.0, mix="auth=1,acct=7")
    assert second.given().keys() >= {"tps_mean", "mix", "reconnects", "encryption"}


@pytest.mark.parametrize(
    "words",
    [
        ["simulate", "--duration", "1s"],
        ["sweep", "--cass-nodes", "3,4", "--draws", "4", "--processes", "1"],
        ["compare", "openprovider", "openprovider", "--engine", "analytic"],
        ["simulate", "rhino-shcm", "--duration", "1s"],
    ],
)
def test_a_demand_is_taken_wherever_a_rate_is(words: list[str], small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--demand", small]) == 0
    told = capsys.readouterr()
    assert told.out
    assert ("the mix of requests" in told.err) is ("rhino-shcm" in words)


def test_a_demand_sets_the_rate_of_a_check(small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "objectives.toml"
    path.write_text("tps = 90000\ncass_nodes = 6\n", encoding="utf-8")
    words = ["check", str(path), "--engine", "analytic", "--json"]
    assert main(words) == 1
    assert main([*words, "--demand", small]) == 0
    assert '"tps_mean": 2000' in capsys.readouterr().out
