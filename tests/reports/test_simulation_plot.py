"""Plots of simulations: the contents of each panel, and shaded times."""

from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest
from tests.simulator.small_networks import arrivals, hold, ms, network, timeline, visit

from capplan.models.language.network import Network
from capplan.models.language.station import Background, Pauses, Station
from capplan.planner.simulate.simulate import Design, observed, of_network, of_scenario, summed_up
from capplan.reports.figure import LIMIT
from capplan.reports.simulation import FINEST, SHADES, merged_times, plot
from capplan.simulator.replications import ReplicationPlan
from capplan.simulator.results.run import Mark
from capplan.simulator.sample import Sample
from capplan.systems.registry import scenario


def example() -> Network:
    """A station that pauses and compacts, and is down for a while."""
    pauses, work = (Pauses(ms(100), ms(10)),), (Background(ms(200), ms(50), 0.5),)
    made = network(hold(visit(5)))
    return replace(
        made,
        stations=(Station("server", 1, pauses=pauses, background=work), Station("node/1", 1), Station("node/2", 2)),
        traffic=arrivals([float(time) for time in range(0, 1000, 20)]),
        timeline=timeline((500, "down", "server"), (600, "up", "server")),
    )


def drawn(made: Network, replications: int = 1) -> go.Figure:
    plan = ReplicationPlan(made, 1.0, 0.1, seed=1, replications=replications, engine="simpy")
    design = Design("finite", "given")
    seen = observed(plan, design)
    return plot(Sample(tuple(seen), "finite"), summed_up("mine.toml", of_network(made), plan, design, seen))


@pytest.fixture(scope="module")
def figure() -> go.Figure:
    return drawn(example())


def lines(figure: go.Figure, axis: str) -> dict[str, go.Scatter]:
    return {trace.name: trace for trace in figure.data if trace.xaxis == axis and trace.showlegend is not False}


def test_the_tail_reaches_the_longest_request(figure: go.Figure) -> None:
    tail = lines(figure, "x")["ask"]

    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    assert np.all(np.diff(tail.y) < 0)
    assert tail.y[-1] == pytest.approx(1 / 45)  # requests that started after the warm-up
    assert tail.x[-1] == pytest.approx(max(tail.x))


def test_lines_over_time_end_with_the_traffic(figure: go.Figure) -> None:
    for axis in ("x2", "x3", "x4"):
        for name, trace in lines(figure, axis).items():
            if trace.mode == "lines":
                assert (trace.x[0], trace.x[-1]) == (0, 1), name
                assert len(trace.x) == len(trace.y)
                assert trace.line.shape == "hv"
    assert np.mean(lines(figure, "x2")["ask, offered"].y[:-1]) == pytest.approx(50)


def test_pauses_background_and_events_are_marked(figure: go.Figure) -> None:
    shaded = [shape for shape in figure.layout.shapes if shape.fillcolor in SHADES.values()]
    named = sorted(trace.name for trace in figure.data if trace.marker.symbol == "square")
    texts = [annotation.text for annotation in figure.layout.annotations[4:]]
    upright = [shape for shape in figure.layout.shapes if shape.x0 == shape.x1]

    assert named == ["background of a station", "pause of a station"]
    assert {shape.xref for shape in shaded} == {"x2", "x3", "x4"}
    assert texts == ["down server", "up server"]
    assert [shape.x0 for shape in upright] == [0.5] * 3 + [0.6] * 3
    first = next(shape for shape in shaded if shape.fillcolor == SHADES["pause"])
    assert (first.x0, first.x1) == (0.1, 0.11)


def test_a_network_in_which_nothing_completes_is_drawn() -> None:
    empty = drawn(replace(example(), traffic=arrivals([5000.0])))

    assert len(lines(empty, "x")["ask"].x) == 0
    assert len(lines(empty, "x2")) == 3


def test_a_limit_of_an_objective_is_marked_at_its_percentile(figure: go.Figure) -> None:
    assert not any(trace.marker.color == LIMIT for trace in figure.data)
    subject = of_scenario(scenario("fedora4", tps=100.0, slo=("read.p99<50ms", "read.mean<9s")))
    plan, design = ReplicationPlan(subject.network, 1.0, 0.0, 1, 1, "compiled"), Design("finite", "given")
    seen = observed(plan, design)
    shown = plot(Sample(tuple(seen), "finite"), summed_up("fedora4", subject, plan, design, seen))
    marks = {trace.name: (trace.x[0], trace.y[0]) for trace in shown.data if trace.marker.color == LIMIT}

    assert marks == {"read.p99<50ms": (50.0, 0.01)}


def mark(start_s: float, end_s: float) -> Mark:
    return Mark(start_s, end_s, "pause", "a: b")


def test_times_that_touch_are_one() -> None:
    near = 10 / FINEST / 2

    assert merged_times([mark(1, 2), mark(4, 20), mark(1.5, 3)], 10) == [(1, 3), (4, 10)]
    assert merged_times([mark(1, 2), mark(2 + near, 3)], 10) == [(1, 3)]
    assert merged_times([mark(1, 2), mark(2 + 3 * near, 3)], 10) == [(1, 2), (2 + 3 * near, 3)]
    assert merged_times([], 10) == []
