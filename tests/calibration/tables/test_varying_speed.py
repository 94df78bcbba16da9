"""Throughput of closed clients of nodes whose speed varies: beside averages over speeds, solved and simulated."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from capplan.calibration.tables.priors import closed
from capplan.calibration.tables.solved_rows import Solved, solved_rows
from capplan.evidence.load_test_row import ALL, LoadTestRow
from capplan.layout.table_components import ClosedLoadTests, LayoutFactors
from capplan.layout.table_rows import MEAN, THROUGHPUT, TableRow
from capplan.models.language.parameter import Values, defaults
from capplan.simulator.engine import simulate
from capplan.systems.registry import table_system

CASSANDRA = table_system("cassandra")
STEADY = {**defaults(CASSANDRA.parameters), "variation": 1e-9}


def row_of(clients: int, **cells: Any) -> TableRow:
    row = LoadTestRow(
        run_id="a",
        cass_nodes=3,
        node_cores=8,
        rf=3,
        read_fraction=0.5,
        request_class=ALL,
        load_kind="closed",
        clients=clients,
        gc="none",
    )
    return CASSANDRA.read([replace(row, **cells)])[0]


def solved(clients: int, values: Values) -> Solved:
    return solved_rows(CASSANDRA, [row_of(clients)], values, [[THROUGHPUT, MEAN]])[0]


def throughput_per_s(clients: int, values: Values) -> float:
    return float(np.ravel(solved(clients, values).figures[THROUGHPUT])[0])


def slower(values: Values, log_time: float) -> Values:
    return CASSANDRA.component(LayoutFactors).applied(values, {"work": np.exp(log_time)})


def speeds(variation: float, clients: int, points: int) -> list[tuple[float, float]]:
    """Return logarithms of the factors on all work with their weights; the mean speed is that of steady nodes."""
    steady = solved(clients, STEADY)
    busy = throughput_per_s(clients, STEADY) / float(np.ravel(steady.capacity_per_s)[0])
    sd, (at, weights) = variation * min(busy, 1.0), np.polynomial.hermite_e.hermegauss(points)
    return list(zip(sd * at + sd**2 / 2, weights / weights.sum(), strict=True))


@pytest.mark.parametrize("clients", [4, 32, 128, 512])
@pytest.mark.parametrize(("variation", "within"), [(0.1, 0.002), (0.3, 0.002), (0.6, 0.015), (1.0, 0.015)])
def test_throughput_is_the_mean_over_the_speeds(variation: float, within: float, clients: int) -> None:
    """Three speeds and a parabola instead of 21 speeds."""
    each = [weight * throughput_per_s(clients, slower(STEADY, at)) for at, weight in speeds(variation, clients, 21)]
    assert throughput_per_s(clients, {**STEADY, "variation": variation}) == pytest.approx(sum(each), rel=within)


@pytest.mark.slow
@pytest.mark.parametrize(("variation", "clients"), [(0.6, 64), (0.6, 128), (1.0, 32)])
def test_simulated_throughput_falls_as_much(variation: float, clients: int) -> None:
    """A throughput of 40,000 requests is known to some 0.5 %, and its ratio to that of steady nodes to 0.7 %."""

    def simulated_per_s(values: Values) -> float:
        of_load_test = CASSANDRA.component(ClosedLoadTests).network
        assert of_load_test is not None
        network = of_load_test(row_of(clients).layout, values, 1.0)
        network = replace(network, traffic=closed(clients, 0.0, values, network.traffic.mix))
        duration_s = 48_000 / throughput_per_s(clients, STEADY)
        return simulate(network, duration_s, seed=1, warmup_s=duration_s / 12).throughput_per_s()

    mean = sum(weight * simulated_per_s(slower(STEADY, at)) for at, weight in speeds(variation, clients, 9))
    predicted = throughput_per_s(clients, {**STEADY, "variation": variation}) / throughput_per_s(clients, STEADY)
    assert predicted < 0.97
    assert predicted == pytest.approx(mean / simulated_per_s(STEADY), rel=0.02)


def test_full_nodes_complete_what_steady_ones_do_and_the_mean_follows_from_little() -> None:
    values = {**STEADY, "generator_s": 1e-9, "variation": 0.5}
    assert throughput_per_s(20_000, values) == pytest.approx(
        throughput_per_s(20_000, {**values, "variation": 1e-9}), rel=5e-3
    )
    figures = solved(64, values).figures
    cycle_s = 64 / float(np.ravel(figures[THROUGHPUT])[0])
    assert float(np.ravel(figures[MEAN])[0]) / 1e3 + values["overhead_s"] == pytest.approx(cycle_s, rel=1e-6)


def test_draws_that_vary_alone_rows_with_contention_and_throttled_ones() -> None:
    """Rows that are solved together agree with each alone; throttled clients keep their pace at any speed."""
    alone = [throughput_per_s(64, {**STEADY, "variation": each}) for each in (0.3, 0.6)]
    together = solved(64, {**STEADY, "variation": np.array([0.3, 0.6])}).figures[THROUGHPUT]
    assert together == pytest.approx(alone, rel=1e-6)

    contended = {**STEADY, "variation": 0.6, "contention": 1e-3}
    rows = [row_of(each) for each in (16, 64, 256)]
    found = solved_rows(CASSANDRA, rows, contended, [[THROUGHPUT]] * len(rows))
    for row, each in zip(rows, found, strict=True):
        own = solved_rows(CASSANDRA, [row], contended, [[THROUGHPUT]])[0]
        assert each.figures[THROUGHPUT] == pytest.approx(own.figures[THROUGHPUT], rel=1e-3)

    paced = row_of(64, load_kind="throttled", offered_tps=1_000.0)
    (kept,) = solved_rows(CASSANDRA, [paced], {**STEADY, "variation": 0.6}, [[THROUGHPUT]])
    assert kept.figures[THROUGHPUT] == pytest.approx(1_000.0, rel=1e-3)
