"""The error that the solver makes alike for all rows of a table, as the fit counts it."""

from typing import Any

import numpy as np
import pytest

from capplan.calibration.tables.errors import covariance
from capplan.calibration.tables.rows import figures_of, scatter_of
from capplan.evidence.load_test_row import LoadTestRow
from capplan.models.language.units import FloatArray
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


def found(table: list[LoadTestRow]) -> tuple[FloatArray, list[tuple[int, str]]]:
    """Return the covariance, and the row and the column of each figure."""
    read = SYSTEM.read(table)
    figures = figures_of(read, scatter_of(read))
    return covariance(read, figures), [(each.row, each.quantity) for each in figures]


def test_layouts_share_most_of_the_error_of_a_column_and_rows_of_one_all_of_it() -> None:
    variance, figures = found([*rows((4, 16)), *rows((16,), rf=5)])
    sd = {"throughput_tps": (0.008, 0.003), "latency_p99_ms": (0.031, 0.018)}
    for at, (row, quantity) in enumerate(figures):
        for by, (other, its_quantity) in enumerate(figures):
            common, own = sd[quantity]
            expected = (common**2 + (own**2 if (row == 2) == (other == 2) else 0.0)) * (quantity == its_quantity)
            assert variance[at, by] == pytest.approx(expected)


def test_open_and_closed_rows_have_errors_of_their_own() -> None:
    opened = LoadTestRow(
        rf=3, cass_nodes=6, read_fraction=0.5, load_kind="open", offered_tps=1000.0, latency_p99_ms=9.0
    )
    variance, figures = found([*rows((4,)), opened])
    one, other = (figures.index((row, "latency_p99_ms")) for row in (0, 1))
    assert variance[one, other] == 0
    assert variance[other, other] == pytest.approx(0.043**2 + 0.018**2)


def test_the_same_error_of_many_rows_does_not_average_out() -> None:
    """The mean of n figures is as uncertain as the shared error, however many there are."""
    variance, figures = found(rows(tuple(range(2, 66))))
    rates = [at for at, (_, quantity) in enumerate(figures) if quantity == "throughput_tps"]
    every = variance[np.ix_(rates, rates)] + 0.05**2 * np.eye(len(rates))
    mean = np.full(len(rates), 1 / len(rates))
    assert float(np.sqrt(mean @ every @ mean)) == pytest.approx(np.sqrt(0.008**2 + 0.003**2 + 0.05**2 / 64))
