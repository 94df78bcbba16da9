"""Percentiles of all requests move with the mix of a run: far where they lie between two classes."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.systems.two_tier.two_tier_tables import layout, measured

from capplan.calibration.tables.errors import mix_errors, share_sd
from capplan.calibration.tables.fit_table import fit_table, predict_table
from capplan.calibration.tables.model import solved_rows
from capplan.evidence.load_test_row import LoadTestRow
from capplan.layout.fitted_file import Fitted
from capplan.models.language.parameter import defaults
from capplan.models.language.scenario import changed
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import solve
from capplan.systems.cassandra import SYSTEM as CASSANDRA
from capplan.systems.two_tier import SYSTEM

P50, P95, P99 = "latency_p50_ms", "latency_p95_ms", "latency_p99_ms"
VALUES: dict[str, Any] = defaults(SYSTEM.parameters)
HALF = {"read_fraction": 0.5, "clients": 32}


def errors(system: Any, row: LoadTestRow, *names: str) -> list[float]:
    wanted = [(0, name) for name in names]
    return list(map(float, mix_errors(system, system.read([row]), wanted, defaults(system.parameters))))


@pytest.mark.parametrize(
    ("reads", "moving"), [(0.5, P50), (0.95, P95), (0.99, P99), (0.05, None), (0.8, None), (0.3, None)]
)
def test_a_percentile_moves_far_where_its_level_is_the_share_of_the_faster_class(
    reads: float, moving: str | None
) -> None:
    """Writes wait for a commit of 2 ms, reads take 0.5 ms. With 5 % reads the 95th percentile is among the writes."""
    names = (P50, P95, P99)
    found = errors(SYSTEM, layout(read_fraction=reads, clients=32), *names)
    assert [name for name, error in zip(names, found, strict=True) if error > 0.1] == ([moving] if moving else [])


def test_it_hardly_moves_where_both_classes_take_about_as_long() -> None:
    row = LoadTestRow(rf=3, cass_nodes=6, read_fraction=0.5, clients=64)
    assert max(errors(CASSANDRA, row, P50, P95, P99)) < 0.01


def test_other_figures_have_no_such_error() -> None:
    whole, read = layout(**HALF), layout(**HALF, request_class="read", run_id="1")
    assert errors(SYSTEM, whole, "throughput_tps", "latency_mean_ms") == [0, 0]
    assert errors(SYSTEM, read, P50) == [0]
    assert errors(SYSTEM, layout(read_fraction=1.0), P50) == [0]


def test_it_is_the_slope_of_the_percentile_over_the_share_of_reads() -> None:
    """At an open rate: twice the standard deviation of the number of reads among 10,000 requests, to both sides."""
    row = layout(read_fraction=0.6, load_kind="open", clients=None, offered_tps=2000.0)
    own = SYSTEM.read([row])[0].layout
    shares = [0.6 + side * 2 * math.sqrt(0.6 * 0.4 / 10_000) for side in (-1, 1)]
    points = [
        solve(Analysis(SYSTEM.network(changed(own, read_fraction=each), VALUES, 1.0)), np.array([[2000.0]]))
        for each in shares
    ]
    less, more = (float(point.quantile_s(0.5, "read", "write").item()) for point in points)
    assert 2 * share_sd(0.6) == pytest.approx(shares[1] - 0.6)
    assert errors(SYSTEM, row, P50) == pytest.approx([math.log(less / more) / 4])


@pytest.mark.parametrize("reads", [1e-5, 1 - 1e-5])
def test_a_class_with_hardly_any_requests_may_be_missing_from_a_run(reads: float) -> None:
    assert max(errors(SYSTEM, layout(read_fraction=reads, clients=32), P50, P99)) < 0.01


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    """A fit to figures of all requests: half reads, half writes, which wait for a commit of 2 ms."""
    return fit_table(SYSTEM, measured([layout(clients=each, read_fraction=0.5) for each in (2, 16, 64, 256)]))


def test_such_a_percentile_is_not_identifiable(fitted: Fitted) -> None:
    found = {each.quantity: each for each in predict_table(SYSTEM, fitted, [layout(**HALF, run_id="wanted")])}
    assert not found[P50].identifiable
    assert "0.5% more or fewer reads" in found[P50].reason
    assert "would decide it" in found[P50].reason
    assert found[P95].identifiable
    assert found["throughput_tps"].identifiable


def test_percentiles_of_each_class_are_identifiable(fitted: Fitted) -> None:
    rows = [layout(**HALF, run_id="wanted", request_class=each) for each in ("read", "write")]
    found = [each for each in predict_table(SYSTEM, fitted, rows) if each.quantity == P50]
    assert [each.identifiable for each in found] == [True, True]


@pytest.mark.slow
def test_medians_on_either_side_of_the_gap_are_fitted_alike() -> None:
    """Those of runs with 49.5 % and with 50.5 % reads: one standard deviation of 10,000 requests to both sides."""
    clients = (2, 16, 64, 256)
    rows = measured([layout(clients=each, read_fraction=0.5) for each in clients])
    compared, found = ("throughput_tps", "latency_mean_ms"), []
    for share in (0.495, 0.505):
        moved = SYSTEM.read([layout(clients=each, read_fraction=share) for each in clients])
        medians = [float(each.figures[P50][0]) for each in solved_rows(SYSTEM, moved, VALUES, [[P50]] * len(moved))]
        jumped = [replace(row, latency_p50_ms=median) for row, median in zip(rows, medians, strict=True)]
        fit = fit_table(SYSTEM, jumped)
        wanted = predict_table(SYSTEM, fit, [layout(**HALF, run_id="wanted")])
        found.append({each.quantity: each.predicted.value for each in wanted if each.quantity in compared})
    one, other = found
    assert one == pytest.approx(other, rel=0.05)
