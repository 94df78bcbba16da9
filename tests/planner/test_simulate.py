"""Summing up simulations: worked out by hand where one run is exact, by published quantiles where chance is."""

import json
import runpy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from tests.simulator.small_networks import arrivals, hold, network, seq, visit, wait

from capplan.models.errors import InputError
from capplan.models.network import Network
from capplan.models.scenario import Scenario
from capplan.models.station import Pool
from capplan.models.traffic import Closed, Throttled
from capplan.planner.predict import predict
from capplan.planner.simulate import Subject, half_width, of_network, of_scenario, summed_up
from capplan.planner.simulation import PoolFigures, Simulation, StationFigures, simulation_schema
from capplan.planner.simulation_groups import pool_groups, station_groups
from capplan.planner.simulation_rows import rows
from capplan.simulator.replicate import Plan, replicate

ROOT = Path(__file__).parents[2]


def two_requests() -> Network:
    """At 0 and 2 ms, held in the only unit of a pool, each served for 5 ms: the second one waits for 3 ms."""
    made = network(hold(visit(5)), pool=Pool("pool", 1, queue_limit=1))
    return replace(made, traffic=arrivals([0, 2]))


def simulated(made: Network, duration_s: float = 0.01, replications: int = 1, **changed: Any) -> Simulation:
    plan = Plan(made, duration_s, 0.0, seed=1, replications=replications, engine="simpy")
    return summed_up("mine.toml", replace(of_network(made), **changed), plan, replicate(plan))


def test_a_run_worked_out_by_hand() -> None:
    simulation = simulated(two_requests())
    figures, server, pool = simulation.classes["ask"], simulation.stations["server"], simulation.pools["pool"]
    latency = figures.latency_ms.intended

    assert (figures.started, figures.completed, figures.dropped, figures.unfinished) == (2, 2, 0, 0)
    assert (figures.offered_per_s.value, figures.throughput_per_s.value) == (200, 100)  # the second ends at 10 ms
    assert (latency.mean.value, latency.max) == (6.5, 8)
    assert latency.p50.value == pytest.approx(5, rel=1 / 256)
    assert latency.p999.value == pytest.approx(8, rel=1 / 256)
    assert figures.latency_ms.actual == latency
    assert (figures.little.number, figures.little.rate_per_s, figures.little.response_s) == (1.3, 200, 0.0065)
    assert figures.little.error == pytest.approx(0)
    assert (server.utilisation, server.visits, server.mean_wait_ms, server.mean_response_ms) == (1, 2, 0, 5)
    assert (pool.mean_busy, pool.p99_busy, pool.taken, pool.drops) == (1, 1, 2, 0)
    assert pool.mean_queue == pytest.approx(0.3)
    assert (pool.mean_wait_ms, pool.mean_hold_ms) == (1.5, 5)
    assert simulation.classes["*"] == figures


def test_the_histogram_is_read_by_others() -> None:
    latency = simulated(two_requests()).classes["ask"].latency_ms.intended
    decoded = HdrHistogram.decode(latency.hdr_histogram)

    assert decoded.get_total_count() == 2
    assert decoded.get_max_value() == pytest.approx(8e6, rel=1e-2)


def test_drops_are_losses() -> None:
    made = replace(two_requests(), pools=(Pool("pool", 1, queue_limit=0),))
    figures = simulated(made).classes["*"]

    assert (figures.dropped, figures.loss.value) == (1, 0.5)


def test_the_half_width_is_students() -> None:
    """For 95 % and 2, 4 degrees of freedom tables of t have 4.303 and 2.776."""
    assert half_width(np.array([1.0, 2.0, 3.0])) == pytest.approx(4.303 / 3**0.5, rel=1e-4)
    assert half_width(np.array([1.0, 2.0, 3.0, 4.0, 5.0])) == pytest.approx(2.776 * (2.5 / 5) ** 0.5, rel=1e-3)
    assert half_width(np.array([1.0])) is None
    assert half_width(np.array([1.0, np.nan, 2.0])) is None


def test_equal_replications_leave_nothing_open() -> None:
    simulation = simulated(two_requests(), replications=3)
    figures = simulation.classes["ask"]

    assert simulation.replications == 3
    assert figures.started == 6
    assert (figures.offered_per_s.value, figures.offered_per_s.half_width) == (200, 0)
    assert (figures.latency_ms.intended.mean.value, figures.latency_ms.intended.mean.half_width) == (6.5, 0)
    assert figures.latency_ms.intended.p50.half_width == figures.latency_ms.intended.p50.value / 256  # a bin
    assert simulation.pools["pool"].mean_wait_ms == pytest.approx(1.5)


def test_a_system_is_that_of_its_prediction() -> None:
    scenario = Scenario(dcs=1, slo=("acct.p99<20ms",))
    subject = of_scenario(scenario)

    assert subject.offered_tps == predict(scenario).offered_tps
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
    with pytest.raises(InputError, match="--tps does not fit 'small', whose traffic is closed"):
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

    jsonschema.Draft202012Validator(simulation_schema()).validate(document)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert len(list(every_number(document))) > 20
    nothing = duration_s == 0.001
    assert (document["classes"]["ask"]["latency_ms"]["intended"]["mean"]["value"] is None) is nothing
    assert (document["stations"]["server"]["mean_wait_ms"] is None) is nothing


def test_the_published_schema_is_up_to_date() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "generate" / "simulation_schema.py"))
    for path, text in script["generated"]().items():
        message = f"{path} is stale: uv run python docs/generate/simulation_schema.py"
        assert path.read_text(encoding="utf-8") == text, message


def test_every_part_of_the_schema_is_strict_and_described() -> None:
    whole = simulation_schema()
    jsonschema.Draft202012Validator.check_schema(whole)
    for part in (whole, *whole["$defs"].values()):
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])
        assert part["description"]
        undescribed = [name for name, field in part["properties"].items() if not field.get("description")]
        assert set(undescribed) <= {"schema"}


def test_rows_have_each_figure_once() -> None:
    simulation = simulated(two_requests())
    figures = {(row.kind, row.name, row.quantity, row.statistic): row for row in rows(simulation)}

    assert len(figures) == len(rows(simulation))
    assert figures["class", "ask", "latency_intended", "mean"][4:] == (6.5, None, "ms")
    assert figures["class", "ask", "requests", "started"].value == 2
    assert figures["pool", "pool", "mean_wait", ""][4:] == (1.5, None, "ms")


def station(utilisation: float, visits: int, wait_ms: float) -> StationFigures:
    return StationFigures(
        servers=1,
        utilisation=utilisation,
        mean_queue=utilisation,
        mean_number=0,
        visits=visits,
        mean_wait_ms=wait_ms,
        mean_response_ms=wait_ms,
        drops=1,
        paused_share=0.5,
    )


def test_stations_of_a_kind_stand_together() -> None:
    named = {"web": station(0.5, 1, 7), "node/1": station(0.2, 3, 2), "node/2": station(0.8, 1, 6)}
    node, web = station_groups({**named, "node/3": station(0.2, 0, float("nan"))})

    assert (node.kind, node.count, web.kind, web.count) == ("node", 3, "web", 1)
    assert node.utilisation == node.mean_queue == pytest.approx(0.4)
    assert (node.least_utilisation, node.most_utilisation) == (0.2, 0.8)
    assert (node.mean_wait_ms, node.visits, node.drops, node.paused_share) == (3, 4, 3, 0.5)


def pool(size: int, busy: float, taken: int) -> PoolFigures:
    return PoolFigures(
        size=size, mean_busy=busy, p99_busy=size, mean_queue=1, taken=taken, drops=2, mean_wait_ms=4, mean_hold_ms=1
    )


def test_pools_of_a_kind_stand_together() -> None:
    full, half = pool_groups({"a/1": pool(4, 2, 1), "a/2": pool(8, 4, 1), "b": pool(2, 2, 1)})

    assert (full.kind, half.kind, half.count) == ("b", "a", 2)
    assert (half.size, half.mean_busy, half.most_p99_busy, half.drops, half.mean_wait_ms) == (6, 3, 8, 4, 4)


def test_nothing_waited_where_nothing_came() -> None:
    (group,) = station_groups({"idle": station(0, 0, float("nan"))})

    assert np.isnan(group.mean_wait_ms)
    assert simulated(replace(network(seq(wait(1))), traffic=arrivals([1]))).pools["pool"].taken == 0
