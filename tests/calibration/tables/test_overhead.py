"""What a load generator does between two requests: in rates, and in no latency."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from capplan.calibration.tables.fit_table import fit_table
from capplan.calibration.tables.priors import OVERHEAD, PARAMETER, closed, overhead
from capplan.calibration.tables.row_predictions import predict_table
from capplan.calibration.tables.solved_rows import solved_rows
from capplan.evidence.load_test_row import LoadTestRow
from capplan.layout.fitted_file import Fitted
from capplan.layout.table_rows import MEAN, THROUGHPUT
from capplan.models.language.parameter import defaults
from capplan.systems.registry import table_system

SYSTEMS = ("cassandra", "two-tier")
CLIENTS = (2, 8, 24, 48)
SHORTEST_S = 1e-3


def row(clients: int, **cells: Any) -> LoadTestRow:
    layout: dict[str, Any] = {"rf": 3, "cass_nodes": 6, "node_cores": 8, "front_nodes": 2, "front_cores": 4}
    return LoadTestRow(run_id=str(clients), clients=clients, read_fraction=0.5, **layout, **cells)


def with_latency(clients: int, mean_ms: float, overhead_ms: float) -> LoadTestRow:
    return row(clients, throughput_tps=1e3 * clients / (mean_ms + overhead_ms), latency_mean_ms=mean_ms)


def solved(name: str, overhead_s: float) -> list[LoadTestRow]:
    """Return rows of a system by the solver, whose load generator needs so long between two requests."""
    system, rows = table_system(name), [row(each, request_class="all") for each in CLIENTS]
    values: Mapping[str, Any] = {**defaults(system.parameters), OVERHEAD: overhead_s}
    figures = solved_rows(system, system.read(rows), values, [(THROUGHPUT, MEAN)] * len(rows))
    return [
        replace(each, throughput_tps=float(found.figures[THROUGHPUT][0]), latency_mean_ms=float(found.figures[MEAN][0]))
        for each, found in zip(rows, figures, strict=True)
    ]


@pytest.mark.parametrize("name", SYSTEMS)
def test_clients_over_throughput_are_the_mean_and_the_overhead(name: str) -> None:
    for each in solved(name, 0.4e-3):
        assert each.clients is not None
        assert each.throughput_tps is not None
        assert each.latency_mean_ms is not None
        assert 1e3 * each.clients / each.throughput_tps == pytest.approx(each.latency_mean_ms + 0.4, rel=0.005)


def test_clients_without_overhead_do_not_think() -> None:
    assert closed(4, 0.0, {}, {"read": 1.0}).think.mean == 0
    assert np.all(closed(4, 1.0, {OVERHEAD: np.array([0.5, 2.0])}, {"read": 1.0}).think.mean == [1.5, 3.0])


def test_the_prior_is_what_rows_show_beyond_their_mean() -> None:
    system = table_system("cassandra")
    found = overhead(system.read([with_latency(4, 1.234567, 0.1), with_latency(16, 2.345678, 0.3)]), SHORTEST_S)
    assert found.value == pytest.approx(0.2e-3)
    assert found.log_sd < PARAMETER.log_sd


def test_what_rounding_hides_is_no_less_than_the_rounding() -> None:
    """Means of 1.0 and 1.2 ms are rounded to 0.1 ms: an error of 0.03 ms each, and 0.02 ms of the mean of both."""
    rows = table_system("cassandra").read([with_latency(4, 1.0, 0.0), with_latency(16, 1.2, 0.0)])
    assert overhead(rows, SHORTEST_S).value == pytest.approx(0.1e-3 / np.sqrt(24))


@pytest.mark.parametrize("cells", [{"throughput_tps": 4000.0}, {"latency_mean_ms": 1.0}])
def test_without_both_the_prior_is_a_share_of_the_shortest_response(cells: Mapping[str, float]) -> None:
    found = overhead(table_system("cassandra").read([row(4, **cells)]), SHORTEST_S)
    assert found.value == pytest.approx(0.02 * SHORTEST_S)
    assert found.log_sd == PARAMETER.log_sd


@pytest.fixture(scope="module", params=SYSTEMS)
def fitted(request: pytest.FixtureRequest) -> Fitted:
    """Calibrate by rows whose load generator needs 0.4 ms between two requests, without scatter."""
    return fit_table(table_system(request.param), solved(request.param, 0.4e-3))


@pytest.mark.slow
def test_a_fit_finds_the_overhead_and_predicts_with_it(fitted: Fitted) -> None:
    assert dict(zip(fitted.names, fitted.most_probable, strict=True))[OVERHEAD] == pytest.approx(0.4e-3, rel=0.05)
    figures = {
        each.quantity: each.predicted.value
        for each in predict_table(table_system(fitted.system), fitted, [row(96, request_class="all")])
    }
    beyond_ms = 1e3 * 96 / figures[THROUGHPUT] - figures[MEAN]
    assert beyond_ms == pytest.approx(0.4, rel=0.3)
