"""The lab experiment on two data centres: its law, its simulation, and its page."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

WRITE = (173, 23)
"""Bytes of a small write there, and of its answer."""


@pytest.fixture(scope="module")
def script() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(Path(__file__).parents[2] / "docs" / "generate"), *sys.path])
        yield import_module("another_data_centre")


def planned(script: Any, x: float, *, nodelay: bool = False, replicas: str = "") -> Any:
    return script.Planned(nodelay, 40.0, "read", "QUORUM", 100, x, replicas)


def test_the_page_is_up_to_date(script: Any) -> None:
    assert script.PAGE.read_text(encoding="utf-8") == script.page(), (
        "uv run python docs/generate/another_data_centre.py"
    )


def test_runs_have_names_of_their_own_and_each_has_its_counterpart(script: Any) -> None:
    plan = script.plan()
    assert len({each.name for each in plan}) == len(plan)
    settings = [
        {(each.rtt_ms, each.name.partition("-nodelay")[0]) for each in plan if each.nodelay is on}
        for on in (False, True)
    ]
    assert settings[0] == settings[1]


def test_messages_wait_for_nothing_on_idle_connections_and_for_half_a_round_trip_each_way_on_busy_ones(
    script: Any,
) -> None:
    assert script.law(planned(script, 1e-9)) == pytest.approx({"mean": 1.0, "p50": 1.0, "p99": 1.0}, abs=1e-3)
    # the sum of two equally likely waits: the triangle has half of itself above 1, and a hundredth above 2 - sqrt(0.02)
    assert script.law(planned(script, 50.0)) == pytest.approx({"mean": 2.0, "p50": 2.0, "p99": 2.8586}, abs=3e-3)
    for replicas, trips in (("", 1.0), (script.NEWER_THERE, 2.0), (script.NEWER_HERE, 3.0)):
        without = script.law(planned(script, 5.0, nodelay=True, replicas=replicas))
        assert without == {"mean": trips, "p50": trips, "p99": trips}
        assert script.law(planned(script, 50.0, replicas=replicas))["mean"] == pytest.approx(2 * trips, abs=0.01)


@pytest.mark.parametrize("messages", [0.1, 1.0, 3.0])
def test_the_law_counts_messages_that_find_an_earlier_one_unacknowledged(script: Any, messages: float) -> None:
    # of 100,000 messages, in more than 1,500 busy times: the standard error is at most 0.005
    gaps = np.random.default_rng(1).exponential(1 / messages, 100_000)
    now = acknowledged = 0.0
    held = waiting = 0
    for gap in gaps:
        now += gap
        if acknowledged <= now and waiting:  # those that waited left together, and are unacknowledged in turn
            acknowledged, waiting = acknowledged + 1, 0
        if acknowledged <= now:
            acknowledged = now + 1
        else:
            held, waiting = held + 1, waiting + 1
    assert script.busy(messages) == pytest.approx(held / len(gaps), abs=0.02)


def test_simulated_answers_take_the_nodes_time_where_nothing_else_is_under_way(script: Any) -> None:
    assert script.simulated(planned(script, 1e-3), WRITE, 0.004, parts=2000) == pytest.approx(1.1, abs=0.01)


def test_simulated_answers_miss_the_acknowledgement_that_comes_with_their_requests(script: Any) -> None:
    # messages wait for half a round trip, and their answers for a whole one, but for the first of each
    assert 2.25 < script.simulated(planned(script, 5.0), WRITE, 0.0) < 2.5
    # full segments leave at once
    many = script.simulated(planned(script, 60.0), WRITE, 0.0)
    assert many < script.simulated(planned(script, 60.0), (17, 2), 0.0)
    assert script.simulated(planned(script, 5.0), (script.SEGMENT, script.SEGMENT), 0.0) == pytest.approx(1.0)
