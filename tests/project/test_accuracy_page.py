"""Measured coverage of intervals: it meets the goal, the page shows it, and today's code reproduces it."""

import json
import math
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from capplan.planner.simulate.simulate import Design, of_network, summed_up
from capplan.simulator.replications import ReplicationPlan

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
TRIALS: list[dict[str, Any]] = json.loads((REFERENCE / "coverage.json").read_text(encoding="utf-8"))["trials"]
pytestmark = pytest.mark.usefixtures("generators")
PROCEDURES = ("replications", "short replications", "one run", "precision")


def trials_of(procedure: str) -> list[dict[str, Any]]:
    return [trial for trial in TRIALS if trial["procedure"] == procedure]


def test_intervals_of_ten_replications_hold_the_truth_as_often_as_they_say() -> None:
    """The goal: 95 % intervals hold it in 93.5 to 96.5 % of 2,000 experiments."""
    shares = {
        (trial["trial"]["system"], each["statistic"]): each["held"] / trial["experiments"]
        for trial in trials_of("replications")
        for each in trial["intervals"]
    }

    assert len(shares) == 3 * 2
    assert all(trial["experiments"] == 2000 for trial in trials_of("replications"))
    assert {case: share for case, share in shares.items() if not 0.935 <= share <= 0.965} == {}


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_every_system_was_tried(procedure: str) -> None:
    systems = import_module("coverage_experiment").SYSTEMS

    assert [trial["trial"]["system"] for trial in trials_of(procedure)] == list(systems)


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: f"{trial['procedure']}: {trial['trial']['system']}")
def test_shares_are_those_of_the_counts(trial: dict[str, Any]) -> None:
    clopper_pearson = import_module("coverage_of_intervals").clopper_pearson
    for each in trial["intervals"]:
        held, experiments = each["held"], trial["experiments"]
        share, low, high = each["coverage"]

        assert held + each["above"] + each["below"] == experiments
        assert share == held / experiments
        assert (low, high) == pytest.approx(clopper_pearson(held, experiments), abs=1e-5)


def test_the_page_shows_what_was_measured() -> None:
    page = (REFERENCE / "accuracy.md").read_text(encoding="utf-8")
    for procedure, table in import_module("coverage_table").tables({"trials": TRIALS}).items():
        assert table in page, f"the table of {procedure} is stale: uv run python docs/generate/accuracy.py"


@pytest.mark.parametrize("trial", trials_of("short replications"), ids=lambda trial: trial["trial"]["system"])
def test_the_measurement_is_of_this_code(trial: dict[str, Any]) -> None:
    """Its first experiment comes out the same; if it does not, `just coverage` after removing `build/coverage`."""
    again, first = import_module("coverage_experiment").Trial(**trial["trial"]).experiment(0), trial["first"]

    assert again.keys() == first.keys()
    there = {name: figure for name, figure in first.items() if figure is not None}
    assert {name: again[name] for name in there} == pytest.approx(there, rel=1e-9)


def test_the_intervals_are_those_that_are_printed() -> None:
    experiment = import_module("coverage_experiment")
    system = experiment.SYSTEMS["M/M/1, load 0.8"]
    plan, design = ReplicationPlan(system.network, 1000.0, 0.0, seed=5, replications=10), Design()
    row = experiment.figures(plan, design)
    printed = summed_up("", of_network(system.network), plan, design, experiment.observed(plan, design))
    latency = printed.classes["*"].latency_ms.intended

    for statistic, estimate in (("mean", latency.mean), ("p99", latency.p99)):
        assert row[f"{statistic} value"] == estimate.value / 1e3
        assert estimate.half_width is not None
        assert row[f"{statistic} half_width"] == estimate.half_width / 1e3


def test_truths_are_those_of_theory() -> None:
    """M/M/1 at load 0.8 has mean 5 and p99 5 ln 100; with one server M/M/m is M/M/1."""
    truth = import_module("coverage_truth")

    assert (truth.single(0.8).mean, truth.single(0.8).p99) == pytest.approx((5, 5 * math.log(100)))
    assert truth.farm(1, 0.8).p99 == pytest.approx(truth.single(0.8).p99, rel=1e-9)
    # The Markov chain of the three queues, cut at 38 visits each (benchmarks/truth.py): right to some 0.03 %.
    assert (truth.FORK_JOIN.mean, truth.FORK_JOIN.p99) == pytest.approx((2.98217, 11.7477), rel=5e-4)


def test_the_page_is_the_template_with_the_summary_of_its_tables() -> None:
    script, page = import_module("accuracy_summary"), (REFERENCE / "accuracy.md").read_text(encoding="utf-8")

    assert script.filled(script.tables_of(page)) == page, "stale: uv run python docs/generate/accuracy_summary.py"


def test_the_summary_has_the_largest_errors_of_the_tables() -> None:
    script, page = import_module("accuracy_summary"), (REFERENCE / "accuracy.md").read_text(encoding="utf-8")
    assert "| Writes of a quorum | 4 | 12 % | 40 % |" in script.summary(page)

    worse = page.replace("3.73 (**-12.3%**)", "3.73 (**-32.3%**)", 1)
    assert "| Writes of a quorum | 4 | 32 % | 40 % |" in script.summary(worse)
