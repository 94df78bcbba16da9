"""Percentiles of all requests that lie between those of reads and of writes: the mix of a run decides them."""

import pytest
from tests.systems.two_tier.two_tier_tables import layout, measured

from capplan.calibration.fit.fitted_file import Fitted
from capplan.calibration.tables.fit_table import fit_table, predict_table
from capplan.calibration.tables.identifiability import Judge
from capplan.calibration.tables.rows import between_classes, figures_of, scatter_of
from capplan.models.language.parameter import defaults
from capplan.systems.two_tier import SYSTEM

P50, P95, P99 = "latency_p50_ms", "latency_p95_ms", "latency_p99_ms"


@pytest.mark.parametrize(
    ("reads", "between"),
    [
        (0.5, {P50}),
        (0.49, {P50}),
        (0.45, set()),
        (0.05, {P95}),
        (0.95, {P95}),
        (0.99, {P99}),
        (0.9, set()),
        (1.0, set()),
    ],
)
def test_a_percentile_lies_between_classes_where_its_level_is_the_share_of_one(reads: float, between: set[str]) -> None:
    (row,) = SYSTEM.read([layout(read_fraction=reads, request_class="all")])
    assert {name for name in (P50, P95, P99, "latency_mean_ms") if between_classes(row, name)} == between


def test_a_percentile_of_one_class_lies_between_none() -> None:
    (row,) = SYSTEM.read([layout(read_fraction=0.5, request_class="read", run_id="1")])
    assert not between_classes(row, P50)


def test_such_a_percentile_is_not_fitted() -> None:
    rows = [layout(read_fraction=reads, run_id=str(reads), **{P50: 1.0, P95: 3.0}) for reads in (0.5, 0.9)]
    read = SYSTEM.read(rows)
    found = [(each.row, each.quantity) for each in figures_of(read, scatter_of(read))]
    assert found == [(0, P95), (1, P50), (1, P95)]


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    """Half reads, half writes, which wait for a commit of 2 ms."""
    return fit_table(SYSTEM, measured([layout(clients=each, read_fraction=0.5) for each in (2, 16, 64, 256)]))


def test_such_a_percentile_is_not_identifiable_if_one_class_is_slower(fitted: Fitted) -> None:
    row = layout(clients=32, read_fraction=0.5, run_id="wanted")
    found = {each.quantity: each for each in predict_table(SYSTEM, fitted, [row])}
    assert not found[P50].identifiable
    assert "50% of the requests are of class read" in found[P50].reason
    assert "would decide it" in found[P50].reason
    assert found[P95].identifiable
    assert found["throughput_tps"].identifiable


def test_it_may_be_if_both_take_as_long(fitted: Fitted) -> None:
    same = {"front_write_s": 0.1e-3, "store_write_s": 0.1e-3}
    alike = {**same, "copy_share": 0.01, "commit_s": 1e-6, "append_s": 1e-7, "delay_s": 1e-3}
    (row,) = SYSTEM.read([layout(clients=32, read_fraction=0.5, run_id="wanted")])
    judge = Judge(SYSTEM, fitted)
    assert not judge.between(row, P50, {**defaults(SYSTEM.parameters), **alike})
    assert judge.between(row, P50, defaults(SYSTEM.parameters))


def test_percentiles_of_each_class_are_identifiable(fitted: Fitted) -> None:
    rows = [layout(clients=32, read_fraction=0.5, run_id="wanted", request_class=each) for each in ("read", "write")]
    found = [each for each in predict_table(SYSTEM, fitted, rows) if each.quantity == P50]
    assert [each.identifiable for each in found] == [True, True]
