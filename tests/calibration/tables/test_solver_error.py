"""The error that the solver makes alike for all rows of a layout, as the fit counts it."""

from __future__ import annotations

from typing import Any

import numpy as np

from capplan.calibration.evidence.load_test_row import LoadTestRow
from capplan.calibration.tables.rows import figures_of, scatter_of
from capplan.calibration.tables.solver_error import covariance
from capplan.systems.cassandra import SYSTEM


def rows(clients: tuple[int, ...], **cells: Any) -> list[LoadTestRow]:
    usual: dict[str, Any] = {
        "rf": 3,
        "cass_nodes": 6,
        "read_fraction": 0.5,
        "throughput_tps": 1234.5,
        "latency_p99_ms": 9.0,
    }
    return [LoadTestRow(clients=each, **{**usual, **cells}) for each in clients]


def test_rows_of_a_layout_share_the_error_of_a_column_and_others_do_not() -> None:
    read = SYSTEM.read([*rows((4, 16)), *rows((16,), rf=5)])
    figures = figures_of(read, scatter_of(read))
    found = covariance(read, figures)
    for at, one in enumerate(figures):
        for by, other in enumerate(figures):
            same = read[one.row].layout == read[other.row].layout and one.quantity == other.quantity
            assert (found[at, by] > 0) == same
    shares = {each.quantity: float(np.sqrt(found[at, at])) for at, each in enumerate(figures)}
    assert shares == {"throughput_tps": 0.013, "latency_p99_ms": 0.05}


def test_the_same_error_of_many_rows_does_not_average_out() -> None:
    """The mean of n figures is as uncertain as the shared error, however many there are."""
    read = SYSTEM.read(rows(tuple(range(2, 66))))
    figures = [each for each in figures_of(read, scatter_of(read)) if each.quantity == "throughput_tps"]
    every = covariance(read, figures) + np.diag([each.log_sd**2 for each in figures])
    mean = np.full(len(figures), 1 / len(figures))
    assert 0.013 < float(np.sqrt(mean @ every @ mean)) < 0.015
