"""The plot of outages shows every simulated loss over time, and every verdict."""

import numpy as np
import pytest
from tests.planner.test_outages import pair

from capplan.planner.outages.outages import OutagesQuestion, outages_of_network
from capplan.planner.outages.outages_answer import OutagesAnswer
from capplan.planner.outages.transient import Effort, Times
from capplan.reports.outages import plot


@pytest.fixture(scope="module")
def answer() -> OutagesAnswer:
    question = OutagesQuestion(
        lose=("server/1", "server/2"),
        times=Times(20.0, 10.0, 20.0),
        effort=Effort(20.0, 1, 2),
        triggers_s=(1.0, 2.0),
        attempts=(1, 2),
        horizon_s=10.0,
    )
    return outages_of_network(pair(), question, "pair.toml")


def test_each_loss_has_its_rates_and_latencies_and_marks(answer: OutagesAnswer) -> None:
    figure = plot(answer)
    lines = [trace.name for trace in figure.data if trace.name]
    assert lines.count("completed") == lines.count("p99") == 2
    assert sorted({shape.x0 for shape in figure.layout.shapes if shape.yref.endswith("domain")}) == [20.0, 30.0]
    (completed, *_) = [trace for trace in figure.data if trace.name == "completed"]
    assert len(completed.x) == len(completed.y) == 120
    assert np.isfinite(np.array(completed.y, dtype=float)).all()


def test_each_verdict_is_a_cell(answer: OutagesAnswer) -> None:
    (table,) = [trace for trace in plot(answer).data if trace.type == "heatmap"]
    assert [list(row) for row in table.text] == [["2/2", "2/2"], ["2/2", "2/2"]]
    assert list(table.y) == ["1 s", "2 s"]
