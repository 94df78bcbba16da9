"""Errors of a fit: the scatter of a repeat that they tell of, those of mixes, and those of the solver."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import gamma
from tests.systems.prior_draws import prior_draws
from tests.systems.two_tier.two_tier_tables import layout, measured

from capplan.calibration.tables.errors import chance_errors, covariance, expected_squares, learnt_scatter
from capplan.calibration.tables.figures import figures_of, scatter_of
from capplan.calibration.tables.fit_table import fit_table
from capplan.calibration.tables.priors import ceiling_over
from capplan.calibration.tables.row_predictions import predict_table
from capplan.calibration.tables.solved_rows import solved_rows
from capplan.evidence.load_test_row import LoadTestRow
from capplan.layout.fitted_file import Fitted
from capplan.layout.table_rows import MEAN, QUANTITIES, THROUGHPUT
from capplan.models.language.parameter import defaults
from capplan.models.language.units import FloatArray
from capplan.systems.cassandra import SYSTEM as CASSANDRA
from capplan.systems.two_tier import SYSTEM

FITS, SURE = 4000, 4.5  # repeats; standard errors that a right program exceeds in 7 of a million
FIGURES, FREE = 14, 4
P99 = "latency_p99_ms"
COLUMNS = [THROUGHPUT] * 3 + [MEAN] * 3 + [P99] * 8
ASSUMED = {name: 0.05 if name in QUANTITIES[:3] else 0.2 for name in QUANTITIES}


def problem(random: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the scatter, the covariance of all errors, slopes and the precision of the priors.

    Rates and means are exact, so that parameters follow them; all percentiles share an error.
    """
    own_sd = np.array([0.05] * 6 + [0.2] * 8)
    shared = np.where(own_sd > 0.1, 0.1, 0.0)
    covariance = np.diag(own_sd**2) + shared[:, None] * shared
    return own_sd, covariance, random.standard_normal((FIGURES, FREE)), np.diag([1.0, 4.0, 1.0, 0.25])


def errors_of_fits(scale: float = 1.0) -> tuple[FloatArray, tuple[FloatArray, ...]]:
    """Return the errors of fits (fits, figures) of parameters from the priors, with `scale` times the own scatter."""
    random = np.random.default_rng(1)
    own_sd, covariance, slopes, precision = known = problem(random)
    true = random.standard_normal((FITS, FREE)) / np.sqrt(np.diag(precision))
    scattered = covariance + (scale**2 - 1) * np.diag(own_sd**2)
    noise = random.standard_normal((FITS, FIGURES)) @ np.linalg.cholesky(scattered).T
    figures = true @ slopes.T + noise
    weighted = np.linalg.solve(covariance, slopes)
    found = np.linalg.solve(weighted.T @ slopes + precision, weighted.T @ figures.T).T
    return figures - found @ slopes.T, known


def test_errors_of_linear_fits_have_the_expected_squares() -> None:
    errors, (own_sd, covariance, slopes, precision) = errors_of_fits()
    squares = (own_sd * np.linalg.solve(covariance, errors.T).T) ** 2
    error = squares.std(axis=0) / np.sqrt(FITS)
    expected = expected_squares(own_sd, covariance, slopes, precision)
    assert np.all(np.abs(squares.mean(axis=0) - expected) < SURE * error)
    assert expected[:6].mean() < 0.6  # parameters follow the exact figures
    assert expected[6:].mean() > 0.8


def test_figures_that_no_parameter_moves_keep_all_of_their_scatter() -> None:
    own_sd, _, slopes, precision = problem(np.random.default_rng(1))
    assert expected_squares(own_sd, np.diag(own_sd**2), 0 * slopes, precision) == pytest.approx(1.0)


def learnt(errors: FloatArray, known: tuple[FloatArray, ...]) -> dict[str, float]:
    """Return the learnt scatter over the assumed one, by column."""
    own_sd, covariance, slopes, precision = known
    found = learnt_scatter(COLUMNS[: len(own_sd)], errors, own_sd, covariance, slopes, precision, ASSUMED)
    return {name: value / ASSUMED[name] for name, value in found.items()}


def test_right_scatter_is_kept_on_average() -> None:
    """Of rates and means as of percentiles, although the parameters follow the former."""
    errors, known = errors_of_fits()
    variance = np.array([[found[THROUGHPUT], found[P99]] for found in (learnt(each, known) for each in errors)]) ** 2
    assert np.all(np.abs(variance.mean(axis=0) - 1) < SURE * variance.std(axis=0) / np.sqrt(FITS))


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_another_scatter_is_learnt_in_part(scale: float) -> None:
    errors, known = errors_of_fits(scale)
    factor = np.median([learnt(each, known)[P99] for each in errors[:200]])
    assert min(scale, 1) < factor < max(scale, 1)


def test_columns_without_figures_keep_what_is_assumed() -> None:
    errors, (own_sd, covariance, slopes, precision) = errors_of_fits()
    found = learnt(9 * errors[0][:6], (own_sd[:6], covariance[:6, :6], slopes[:6], precision))
    assert found[THROUGHPUT] == found[MEAN] > 1
    assert found[P99] == 1


P50, P95 = "latency_p50_ms", "latency_p95_ms"
VALUES: dict[str, Any] = defaults(SYSTEM.parameters)
HALF = {"read_fraction": 0.5, "clients": 32}


def errors(system: Any, row: LoadTestRow, *names: str) -> list[float]:
    wanted = [(0, name) for name in names]
    return list(map(float, chance_errors(system, system.read([row]), wanted, defaults(system.parameters))))


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
    assert max(errors(CASSANDRA, row, P50, P95, P99)) < 0.05


def test_other_figures_have_no_such_error() -> None:
    assert errors(SYSTEM, layout(**HALF), "throughput_tps", "latency_mean_ms") == [0, 0]


def test_it_is_the_standard_error_of_a_percentile() -> None:
    """Of 10,000 reads, which take two stages: sqrt(p (1 - p) / n) over the density (David and Nagaraja 2003, 10.2)."""
    alone = LoadTestRow(rf=1, cass_nodes=1, node_cores=64, read_fraction=1.0, consistency_read="ONE", clients=1)
    values = {**defaults(CASSANDRA.parameters), "read_s": 1.0, "digest_share": 1.0}
    short = dict.fromkeys(("delay_s", "coordinator_s", "generator_s", "variation", "pause_s", "unseen_work"), 1e-9)
    found = chance_errors(CASSANDRA, CASSANDRA.read([alone]), [(0, P50), (0, P95), (0, P99)], {**values, **short})
    times = {level: gamma.ppf(level, 2) for level in (0.5, 0.95, 0.99)}
    expected = [math.sqrt(p * (1 - p) / 10_000) / (gamma.pdf(each, 2) * each) for p, each in times.items()]
    assert found == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("reads", [1e-5, 1 - 1e-5])
def test_a_class_with_hardly_any_requests_moves_nothing(reads: float) -> None:
    assert max(errors(SYSTEM, layout(read_fraction=reads, clients=32), P50, P95)) < 0.05


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    """A calibration by figures of all requests: half reads, half writes, which wait for a commit of 2 ms."""
    return prior_draws(SYSTEM, measured([layout(clients=each, read_fraction=0.5) for each in (2, 16, 64, 256)]))


def test_such_a_percentile_is_not_identifiable(fitted: Fitted) -> None:
    found = {each.quantity: each for each in predict_table(SYSTEM, fitted, [layout(**HALF, run_id="wanted")])}
    assert not found[P50].identifiable
    assert "few requests take about as long" in found[P50].reason
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
    assert one == pytest.approx(other, rel=0.08)


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
    read = CASSANDRA.read(table)
    figures = figures_of(read, scatter_of(read))
    return covariance(read, figures), [(each.row, each.quantity) for each in figures]


def test_layouts_share_most_of_the_error_of_a_column_and_rows_of_one_all_of_it() -> None:
    variance, figures = found([*rows((4, 16)), *rows((16,), rf=5)])
    sd = {"throughput_tps": (0.008, 0.004, 0.006), "latency_p99_ms": (0.036, 0.012, 0.034)}
    load = (-0.5, 0.5, 0.0)  # between the lowest and the highest of its layout
    for at, (row, quantity) in enumerate(figures):
        for by, (other, its_quantity) in enumerate(figures):
            common, own, growing = sd[quantity]
            expected = common**2 + (own**2 if (row == 2) == (other == 2) else 0.0)
            expected = (expected + load[row] * load[other] * growing**2) * (quantity == its_quantity)
            assert variance[at, by] == pytest.approx(expected)


def test_repeats_are_repeats_whatever_their_nodes_paused() -> None:
    rates = (1000.0, 1020.0, 990.0, 1010.0)
    table = [row for rate in rates for row in rows((4,), throughput_tps=rate)]
    paused = [replace(row, gc=f"0.{number}%@5ms sd=1ms n=9") for number, row in enumerate(table, 1)]
    read, own = CASSANDRA.read(table), CASSANDRA.read(paused)

    assert scatter_of(own) == scatter_of(read)
    assert scatter_of(own)[THROUGHPUT] == pytest.approx(np.std(np.log(rates), ddof=1))
    np.testing.assert_array_equal(found(paused)[0], found(table)[0])


def test_a_curve_is_one_curve_whatever_its_nodes_paused() -> None:
    table = [
        row
        for clients, rate, mean in ((4, 1000.0, 4.0), (16, 3000.0, 5.33), (64, 8000.0, 8.0))
        for row in rows((clients,), throughput_tps=rate, latency_mean_ms=mean)
    ]
    paused = [replace(row, gc=f"0.{number}%@5ms sd=1ms n=9") for number, row in enumerate(table, 1)]
    read, own = CASSANDRA.read(table), CASSANDRA.read(paused)

    assert ceiling_over(read, read[-1]) == ceiling_over(own, own[-1]) == pytest.approx(8 / (8 - 4))


def test_open_and_closed_rows_have_errors_of_their_own() -> None:
    opened = LoadTestRow(
        rf=3, cass_nodes=6, read_fraction=0.5, load_kind="open", offered_tps=1000.0, latency_p99_ms=9.0
    )
    variance, figures = found([*rows((4,)), opened])
    one, other = (figures.index((row, "latency_p99_ms")) for row in (0, 1))
    assert variance[one, other] == 0
    assert variance[other, other] == pytest.approx(0.069**2 + 0.027**2)


def test_the_same_error_of_many_rows_does_not_average_out() -> None:
    """The mean of n figures is as uncertain as the shared error, however many there are."""
    variance, figures = found(rows(tuple(range(2, 66))))
    rates = [at for at, (_, quantity) in enumerate(figures) if quantity == "throughput_tps"]
    every = variance[np.ix_(rates, rates)] + 0.05**2 * np.eye(len(rates))
    mean = np.full(len(rates), 1 / len(rates))
    places = np.log(np.arange(2, 66) / 2) / math.log(65 / 2) - 0.5
    slope = 0.006 * float(places.mean())
    assert float(np.sqrt(mean @ every @ mean)) == pytest.approx(np.sqrt(0.008**2 + 0.004**2 + slope**2 + 0.05**2 / 64))
