"""Estimates of simulations: by hand where one run is exact, by published quantiles where chance is involved."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jsonschema
import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from tests.planner.predictions import offered_tps, predicted
from tests.simulator.small_networks import arrivals, hold, ms, network, seq, visit, wait

from capplan.errors import InputError
from capplan.models.language.distribution import Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Pool, Station
from capplan.models.language.step import Delay, Visit
from capplan.models.language.traffic import Closed, Open, RequestClass, Throttled
from capplan.planner.simulate.simulate import Design, Subject, observed, of_network, of_scenario, summed_up
from capplan.planner.simulate.simulation import (
    PrecisionReached,
    PrecisionTarget,
    Simulation,
    read_precision_target,
)
from capplan.simulator.engine import Engine
from capplan.simulator.replications import ReplicationPlan, replicate
from capplan.simulator.sample import Sample, observe, warmup_of
from capplan.systems.openprovider.scenario import OpenproviderScenario

FROM_THE_START = Design(warmup="none")


def two_requests() -> Network:
    """At 0 and 2 ms, held in the only unit of a pool, each served for 5 ms: the second one waits for 3 ms."""
    made = network(hold(visit(5)), pool=Pool("pool", 1, queue_limit=1))
    return replace(made, traffic=arrivals([0, 2]))


def simulated(
    made: Network, duration_s: float = 0.01, replications: int = 1, design: Design = FROM_THE_START, **changed: Any
) -> Simulation:
    engine: Engine = "simpy" if duration_s < 0.5 else "compiled"  # the figures are the same
    plan = ReplicationPlan(made, duration_s, 0.0, seed=1, replications=replications, engine=engine)
    seen = observed(plan, design)
    return summed_up("mine.toml", replace(of_network(made), **changed), plan, design, seen)


def test_a_run_worked_out_by_hand() -> None:
    simulation = simulated(two_requests())
    figures, server, pool = simulation.classes["ask"], simulation.stations["server"], simulation.pools["pool"]
    latency = figures.latency_ms.intended

    assert (figures.started, figures.completed, figures.dropped, figures.unfinished) == (2, 2, 0, 0)
    assert (figures.offered_per_s.value, figures.throughput_per_s.value) == (200, 100)  # the second ends at 10 ms
    assert (latency.mean.value, latency.max.value) == (6.5, 8)
    assert latency.p50.value == pytest.approx(5, rel=1 / 256)
    assert latency.p999.value == pytest.approx(8, rel=1 / 256)
    assert figures.latency_ms.actual == latency
    little = figures.little
    assert (little.number.value, little.rate_per_s.value, little.response_s.value) == (1.3, 200, 0.0065)
    assert figures.little.error == pytest.approx(0)
    assert (server.utilisation.value, server.visits) == (1, 2)
    assert (server.mean_wait_ms.value, server.mean_response_ms.value) == (0, 5)
    assert (pool.mean_busy.value, pool.p99_busy.value, pool.taken, pool.drops) == (1, 1, 2, 0)
    assert pool.mean_queue.value == pytest.approx(0.3)
    assert (pool.mean_wait_ms.value, pool.mean_hold_ms.value) == (1.5, 5)
    assert simulation.classes["*"] == figures
    assert (simulation.horizon, simulation.warmup_s, simulation.warmup_source) == ("steady", 0, "none")


def test_the_histogram_is_read_by_others() -> None:
    latency = simulated(two_requests()).classes["ask"].latency_ms.intended
    decoded = HdrHistogram.decode(latency.hdr_histogram)

    assert decoded.get_total_count() == 2
    assert decoded.get_max_value() == pytest.approx(8e6, rel=1e-2)


def test_drops_are_losses() -> None:
    made = replace(two_requests(), pools=(Pool("pool", 1, queue_limit=0),))
    figures = simulated(made).classes["*"]

    assert (figures.dropped, figures.drop_rate.value) == (1, 0.5)


def test_equal_replications_leave_nothing_open() -> None:
    pairs = arrivals([start + late for start in range(0, 100, 20) for late in (0, 2)])
    simulation = simulated(replace(two_requests(), traffic=pairs), 0.1, replications=5)
    figures = simulation.classes["ask"]

    assert simulation.replications == 5
    assert figures.started == 50
    assert (figures.offered_per_s.value, figures.offered_per_s.half_width) == (100, 0)
    assert (figures.drop_rate.value, figures.drop_rate.half_width) == (0, 3 / 50)  # the rule of three
    assert (figures.latency_ms.intended.mean.value, figures.latency_ms.intended.mean.half_width) == (6.5, 0)
    assert figures.latency_ms.intended.p50.half_width == figures.latency_ms.intended.p50.value / 256  # a bin
    assert figures.latency_ms.intended.p99.half_width is None  # ten latencies a run, none of them beyond it
    assert simulation.pools["pool"].mean_wait_ms.value == pytest.approx(1.5)


@pytest.mark.slow
def test_a_system_is_that_of_its_prediction() -> None:
    scenario = OpenproviderScenario(dcs=1, slo=("acct.p99<20ms",))
    subject = of_scenario(scenario)

    assert subject.offered_tps == offered_tps(predicted(dcs=1, slo=("acct.p99<20ms",)))
    assert subject.offered_source == "default"
    assert subject.scenario is not None
    assert subject.scenario["dcs"] == 1


@pytest.mark.parametrize("traffic", [arrivals([0, 2]), Throttled(3, 50.0, {"ask": 1.0})])
def test_a_network_at_another_rate(traffic: Any) -> None:
    made = replace(network(wait(1)), traffic=traffic)
    subject = of_network(made, 75.0)

    assert subject == Subject(replace(made, traffic=replace(traffic, rate_per_s=75.0)), None, 75.0, "given")
    assert of_network(made) == Subject(made, None, traffic.rate_per_s, "network")


def test_closed_traffic_has_no_rate() -> None:
    made = network(wait(1))

    assert isinstance(made.traffic, Closed)
    assert of_network(made) == Subject(made, None, None, "network")
    with pytest.raises(InputError, match="closed"):
        of_network(made, 10.0)


def every_number(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from every_number(item)
    elif isinstance(value, float):
        yield value


@pytest.mark.parametrize("duration_s", [0.01, 0.001], ids=["some requests", "no request"])
def test_json_is_valid_and_finite(duration_s: float) -> None:
    made = replace(two_requests(), traffic=arrivals([5, 7]))
    document = simulated(made, duration_s).to_json()

    jsonschema.Draft202012Validator(Simulation.json_schema()).validate(document)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert len(list(every_number(document))) > 20
    nothing = duration_s == 0.001
    assert (document["classes"]["ask"]["latency_ms"]["intended"]["mean"]["value"] is None) is nothing
    assert (document["stations"]["server"]["mean_wait_ms"]["value"] is None) is nothing


def test_a_frame_has_each_figure_once() -> None:
    frame = simulated(two_requests()).to_frame().set_index(["kind", "name", "quantity", "statistic"])
    value = frame["value"].to_dict()

    assert frame.index.is_unique
    assert value["class", "ask", "latency_intended", "mean"] == 6.5
    assert value["class", "ask", "latency_intended", "max"] == 8
    assert value["class", "ask", "requests", "started"] == 2
    assert value["pool", "pool", "mean_wait", ""] == value["pool_kind", "pool", "mean_wait", ""] == 1.5
    assert frame["unit"].to_dict()["class", "ask", "latency_intended", "max"] == "ms"
    assert np.isnan(frame["half_width"].to_dict()["class", "ask", "latency_intended", "max"])


def three_nodes() -> Network:
    """A request of 6 ms at each of three nodes, two of which stand for a kind, one after another; then one of 12 ms."""
    stations = (Station("node/1", 1), Station("node/2", 2), Station("web", 1))
    flow = seq(Visit("node/1", ms(6)), Visit("node/2", ms(6)), Visit("web", ms(12)))
    return Network("three", stations, (RequestClass("ask", flow),), arrivals([0, 3]))


def test_stations_of_a_kind_stand_together() -> None:
    """In 24 ms node/1 works for 12, its second visit waits for 3; node/2 works for 12 of 48, web for 12 of 24."""
    kinds = simulated(three_nodes(), duration_s=0.024).station_kinds
    node, web = kinds["node"], kinds["web"]

    assert web.utilisation.value == node.most_utilisation.value
    assert (node.count, web.count) == (2, 1)
    assert (node.least_utilisation.value, node.most_utilisation.value) == (0.25, 0.5)
    assert (node.utilisation.value, node.visits, node.drops) == (0.375, 4, 0)
    assert node.mean_wait_ms.value == pytest.approx(3 / 4)
    assert node.mean_queue.value == pytest.approx(3 / 24 / 2)


def test_nothing_waited_where_nothing_came() -> None:
    idle = simulated(replace(network(seq(wait(1))), traffic=arrivals([1])))

    assert np.isnan(idle.station_kinds["server"].mean_wait_ms.value)
    assert idle.pools["pool"].taken == 0


def busy_queue(load: float = 0.8) -> Network:
    """M/M/1 with a mean service of 1 ms."""
    made = network(Visit("server", Exponential(0.001)))
    return replace(made, traffic=Open(1000 * load, {"ask": 1.0}))


@pytest.mark.parametrize("replications", [1, 3, 5, 12])
def test_every_figure_of_the_steady_state_has_an_interval(replications: int) -> None:
    """M/M/1 at a load of 0.8 has a mean response of 5 ms; 99.9 % intervals by three half-widths."""
    simulation = simulated(busy_queue(), 40.0, replications, Design())
    latency, server = simulation.classes["*"].latency_ms.intended, simulation.stations["server"]

    assert simulation.warmup_source == "mser"
    for estimate, truth in (
        (latency.mean, 5.0),
        (latency.p99, 23.03),
        (server.utilisation, 0.8),
        (server.mean_queue, 3.2),
    ):
        assert estimate.half_width is not None
        assert abs(estimate.value - truth) < 3 * estimate.half_width < truth
    assert simulation.backlog is not None
    assert simulation.backlog.verdict == "steady"


def test_next_to_nothing_tells_nothing() -> None:
    figures = simulated(busy_queue(0.5), 0.004, 1).classes["*"]

    assert 0 < figures.started < 25
    assert (figures.offered_per_s.half_width, figures.latency_ms.intended.mean.half_width) == (None, None)


def test_a_percentile_is_that_of_all_replications_whatever_each_has_seen() -> None:
    """Some 500 requests a replication, five beyond p99 in the mean: those that see fewer are calm ones, and count."""
    p99 = simulated(busy_queue(), 0.65, 30, Design("steady", "none")).classes["*"].latency_ms.intended.p99
    runs = observed(ReplicationPlan(busy_queue(), 0.65, 0.0, 1, 30, "compiled"), Design("steady", "none"))
    together = Sample(tuple(runs), "steady").together.report().latency("intended").quantile_s(0.99)

    assert p99.half_width is not None
    assert p99.value == pytest.approx(together * 1e3, rel=1e-12)


def test_overload_is_told_from_noise() -> None:
    for load, verdict in ((1.1, "overloaded"), (0.95, "steady")):
        backlog = simulated(busy_queue(load), 60.0, 2, Design()).backlog
        assert backlog is not None
        assert backlog.verdict == verdict


def test_all_replications_leave_out_the_same_warm_up_of_the_first_ten() -> None:
    """Requests wait for 0.4 s where nobody queues, so their number needs some time to rise."""
    slow = replace(network(seq(Delay(Exponential(0.4)), visit(1))), traffic=Open(200.0, {"ask": 1.0}))
    plan = ReplicationPlan(slow, 5.0, 0.0, seed=1, replications=12, engine="compiled")
    told: list[tuple[float, int]] = []
    seen = observed(plan, Design(), progress=lambda simulated_s, requests: told.append((simulated_s, requests)))
    runs = replicate(replace(plan, replications=10))

    assert {each.warmup_s for each in seen} == {observe(runs[0], warmup_of(runs, rising=True), parts=True).warmup_s}
    assert seen[0].warmup_s > 0.4
    assert [each.run.replication for each in seen] == list(range(12))
    assert told == sorted(told)
    assert told[-1][0] == 12 * 5.0
    assert told[-1][1] >= sum(each.run.report().started for each in seen)


def test_a_finite_horizon_is_the_mean_of_what_its_runs_measure() -> None:
    simulation = simulated(busy_queue(), 1.0, 6, Design("finite", "none"))
    latency = simulation.classes["*"].latency_ms.intended
    alone = simulated(busy_queue(), 1.0, 1, Design("finite", "none")).classes["*"].latency_ms.intended

    assert latency.max.half_width is not None
    assert latency.max.value < simulated(busy_queue(), 1.0, 6).classes["*"].latency_ms.intended.max.value
    assert simulation.backlog is None
    assert (alone.mean.half_width, alone.max.half_width) == (None, None)


def target(text: str) -> PrecisionTarget:
    return read_precision_target(text, ["ask"], ["*"])


def test_replications_go_on_until_the_interval_is_narrow_enough() -> None:
    made = busy_queue(0.5)
    precision = target("mean<3%")
    simulation = simulated(made, 5.0, 60, Design(precision=precision))
    mean = simulation.classes["*"].latency_ms.intended.mean

    assert simulation.precision == PrecisionReached("mean<3%", mean.half_width / mean.value, reached=True)  # type: ignore[operator]  # it has one
    assert 10 <= simulation.replications < 60
    assert simulation.classes == simulated(made, 5.0, simulation.replications, Design()).classes


def test_a_precision_may_be_out_of_reach() -> None:
    made = busy_queue(0.9)
    few = simulated(made, 1.0, 12, Design(precision=target("p99<1%")))
    hopeless = simulated(busy_queue(1.2), 20.0, 50, Design(precision=target("ask.mean<1%")))

    assert few.precision is not None
    assert (few.replications, few.precision.reached) == (12, False)
    assert hopeless.precision is not None
    assert (hopeless.replications, hopeless.precision.reached) == (10, False)  # no steady state to be precise about


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p98<2%", "p99"),
        ("akc.p99<2%", "'ask'"),
        ("p99<0.1%", "0.4%"),
        ("p99=2%", "p99=2%"),
    ],
)
def test_a_precision_that_makes_no_sense(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        target(text)
