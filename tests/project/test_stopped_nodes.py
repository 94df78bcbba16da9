"""The lab experiment on stopped nodes: its stops, its journal, and its page from a journal that is not complete."""

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capplan.errors import InputError


@pytest.fixture(scope="module")
def script() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(Path(__file__).parents[2] / "docs" / "generate"), *sys.path])
        yield import_module("stopped_nodes")


@pytest.fixture
def folder(script: Any, tmp_path: Path) -> Path:
    """Predictions of one point, and an empty journal."""
    point = {"level": "QUORUM", "policy": "round-robin", "share": 0.015, "length_s": 0.06}
    figures = {"lost": [0.03, 0.02, 0.04], "p99_ms": [50.0, 30.0, 70.0], "throughput": [970.0, 950.0, 990.0]}
    (tmp_path / script.PREDICTED).write_text(json.dumps({"points": [{**point, **figures}]}), encoding="utf-8")
    script.write_predictions(tmp_path)
    return tmp_path


def measured(script: Any, folder: Path, name: str, throughput: float) -> None:
    """Add a run of the plan to the journal."""
    run = next(each for each in script.plan() if each.name == name)
    cells = {"throughput_tps": throughput, "latency_mean_ms": 2.0, "latency_p99_ms": 55.0, "host_busy": 0.5}
    stops = {"stopped_share": run.share, "longest_error_ms": 0.2, "errors": 0, "disturbed": False}
    script.add(folder, run, {**cells, **stops})


def test_the_page_is_up_to_date(script: Any) -> None:
    assert script.PAGE.read_text(encoding="utf-8") == script.page(), "uv run python docs/generate/stopped_nodes.py"


def test_stops_take_their_share_and_follow_one_another_without_memory(script: Any) -> None:
    for run in script.plan():
        nodes = script.stops_s(run, 1)
        assert run.duration_s >= script.LEAST_S - 1e-9
        assert len(nodes) == script.NODES
        for starts in nodes:
            assert len(starts) * run.length_s == pytest.approx(run.share * run.duration_s)
            assert all(later - earlier >= run.length_s for earlier, later in pairwise(starts))
            assert not starts or (starts[0] >= 0 and starts[-1] + run.length_s <= run.duration_s)
        if run.share:
            assert script.NODES * run.stops >= script.LEAST_STOPS
            assert nodes[0] != nodes[1]  # nodes stop independently
            assert script.stops_s(run, 2) != nodes
    most = max(script.plan(), key=lambda each: each.stops)
    gaps = [np.diff(own) - most.length_s for seed in range(50) for own in script.stops_s(most, seed)]
    scatter = np.std(np.concatenate(gaps)) / np.mean(np.concatenate(gaps))
    # exponential; of 18,000 gaps the error is 0.01, and the fixed number makes it 1 / 120 less. Equal gaps have 0.
    assert scatter == pytest.approx(1.0, abs=0.06)


def test_the_most_important_runs_come_first_and_a_journal_goes_on(script: Any, folder: Path) -> None:
    plan = script.plan()
    assert len({each.name for each in plan}) == len(plan)
    first = [each for each in plan if each.repeat == 1]
    assert plan[: len(first)] == first
    assert {(each.level, each.policy) for each in plan[:11]} == {("QUORUM", "round-robin")}
    assert plan[0].when == "before"
    assert plan[10].when == "after"

    assert script.runs_left(folder) == plan
    measured(script, folder, plan[0].name, 1000.0)
    with (folder / script.JOURNAL).open("a", encoding="utf-8") as journal:
        journal.write('{"run_id": "half')  # the machine went down
    assert script.runs_left(folder) == plan[1:]
    measured(script, folder, plan[1].name, 990.0)
    assert script.runs_left(folder) == plan[2:]


def test_predictions_cannot_change_after_the_journal_has_begun(script: Any, folder: Path) -> None:
    (folder / script.PREDICTED).write_text('{"points": []}', encoding="utf-8")
    with pytest.raises(InputError):
        script.write_predictions(folder)


def test_the_page_of_an_incomplete_journal_has_the_loss_beside_runs_of_the_same_repeat(
    script: Any, folder: Path
) -> None:
    assert "0 of" in script.page(folder)
    for repeat, without, held in ((1, 1000.0, 970.0), (2, 2000.0, 1904.0)):
        measured(script, folder, f"quorum-round-robin-before-{repeat}", without)
        measured(script, folder, f"quorum-round-robin-1.5%-60ms-{repeat}", held)
    measured(script, folder, "quorum-round-robin-1.5%-60ms-3", 970.0)  # nothing to compare it with yet

    (point,) = script.points(folder)
    assert point.lost == pytest.approx((0.03, 0.048))
    assert point.near  # 3.9 % was measured and 3 % predicted
    assert point.held
    page = script.page(folder)
    assert f"5 of {len(script.plan())}" in page
    assert "| 60 ms | 1.5 % | QUORUM, round-robin | 3.9 (3.0 to 4.8), 2 runs | 3.0 (2.0 to 4.0) |" in page
