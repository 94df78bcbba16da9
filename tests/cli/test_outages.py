"""`capplan outages`: exit codes, and how times are written."""

import json
from pathlib import Path

import pytest

from capplan.cli.main import main
from capplan.cli.outages import read_times

EXAMPLE = str(Path(__file__).parents[2] / "docs" / "examples" / "retries-that-stay.toml")
QUICK = ["--replications", "2", "--at", "20s", "--for", "20s", "--after", "20s", "--processes", "1"]


def test_a_loss_that_is_not_back_to_normal_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["outages", EXAMPLE, *QUICK]) == 1
    assert "not within" in capsys.readouterr().out


def test_a_trigger_that_keeps_a_network_down_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["outages", EXAMPLE, "--trigger", "10s", "--budget", "1s", "--processes", "1", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert not found["recovers"]
    assert [each["recovered"] for each in found["metastability"]["verdicts"]] == [0]


def test_a_range_of_times_has_one_and_three_of_each_power_of_ten() -> None:
    assert read_times("1s..60s") == (1.0, 3.0, 10.0, 30.0, 60.0)
    assert read_times("500ms,20s") == (0.5, 20.0)


@pytest.mark.slow
def test_a_rate_far_above_the_capacity_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    short = ["--at", "16s", "--for", "1s", "--after", "16s", "--replications", "1", "--processes", "1"]
    asked = ["outages", "rhino-shcm", "--cass-nodes", "3", "--tps", "8000", "--engine", "analytic", *short]
    assert main(asked) == 1
    out = capsys.readouterr().out
    assert "never: no request was answered before the loss" in " ".join(out.split())
