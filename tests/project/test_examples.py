"""The example scenarios have the verdicts that their page states."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from capplan.models.language.document import read_network
from capplan.models.language.station import Differs
from capplan.planner.predict.predict import predict
from capplan.simulator.engine import simulate
from capplan.systems.registry import read_scenario

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PAGE = (EXAMPLES / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "met", "about"),
    [("three-dcs-without-one.toml", False, 9_800), ("three-dcs-without-two.toml", True, 7_180)],
)
def test_the_documents_objectives_have_the_verdict_of_their_page(name: str, met: bool, about: int) -> None:
    prediction = predict(read_scenario(EXAMPLES / name))
    (objective,) = prediction.objectives
    assert objective.met is met
    assert prediction.peak_tps is not None
    assert prediction.peak_tps.value == pytest.approx(about, rel=0.01)
    row = next(line for line in PAGE.splitlines() if name in line)
    assert f"about {about:,}/s" in row
    assert ("| met" in row) is met


@pytest.mark.parametrize(
    ("name", "met", "about"), [("sh-cache-above-its-test.toml", False, 2_730), ("repository-of-six.toml", True, 850)]
)
@pytest.mark.slow
def test_layouts_that_nobody_tested_have_the_verdict_of_their_page(name: str, met: bool, about: int) -> None:
    prediction = predict(read_scenario(EXAMPLES / name))
    (objective,) = prediction.objectives
    assert objective.met is met
    assert not objective.sure or name.startswith("sh-cache")
    assert prediction.peak_tps is not None
    assert prediction.peak_tps.value == pytest.approx(about, rel=0.02)
    assert f"about {about:,}/s" in next(line for line in PAGE.splitlines() if name in line)


def test_the_lost_node_takes_as_long_as_its_page_says() -> None:
    run = simulate(read_network(EXAMPLES / "pauses-and-a-lost-node.toml"), 60.0, seed=1, warmup_s=6.0)
    intended, actual = run.latency_mean_s(), run.latency_mean_s(clock="actual")

    assert re.findall(r"(\d+) ms from\s+the\s+(intended|actual)", PAGE) == [
        (f"{intended * 1e3:.0f}", "intended"),
        (f"{actual * 1e3:.0f}", "actual"),
    ]
    assert {mark.kind for mark in run.marks} == {"pause", "background", "down", "up"}


def test_a_slow_node_costs_more_than_a_lost_one_as_the_page_says() -> None:
    twelve = read_network(EXAMPLES / "cluster-of-twelve.toml")
    cassandra, storage = twelve.stations
    without = replace(twelve, stations=(replace(cassandra, exceptions=(Differs(4, down=True),)), storage))
    slow, lost = (simulate(each, 10.0, seed=1, warmup_s=1.0) for each in (twelve, without))
    busy = [slow.stations[f"cassandra/{number}"].utilisation for number in range(1, 13)]
    others = sum(busy[:3] + busy[4:]) / 11

    shares = re.search(r"busy (\d+) % of the time, the others (\d+) %", PAGE)
    assert shares is not None
    assert shares.groups() == (f"{busy[3]:.0%}"[:-1], f"{others:.0%}"[:-1])
    slow_p99, lost_p99 = (run.latency_quantile_s(0.99, "read") * 1e3 for run in (slow, lost))
    assert re.findall(r"longer than ([\d.]+) ms", PAGE) == [f"{slow_p99:.1f}", f"{lost_p99:.1f}"]
    assert slow.drop_rate() == lost.drop_rate() == 0


def test_every_example_is_on_the_page() -> None:
    files = {path.name for path in EXAMPLES.glob("*.toml")}
    assert files
    assert all(name in PAGE for name in files)
