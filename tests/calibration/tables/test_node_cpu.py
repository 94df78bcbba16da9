"""CPU of nodes as an observation of fits: its law, where it is read, and what it tells of the ceiling."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.calibration.tables.fit_table import fit_table
from capplan.calibration.tables.identifiability import Judge
from capplan.calibration.tables.node_cpu import PARAMETERS, cpu_percent, observed
from capplan.calibration.tables.row_predictions import predict_table
from capplan.calibration.tables.solved_rows import solved_rows
from capplan.errors import InputError
from capplan.evidence.load_test_row import LoadTestRow
from capplan.layout.table_rows import MEAN, NODE_CPU, THROUGHPUT, without_cpu
from capplan.models.language.parameter import defaults
from capplan.models.solver.analytic import Analysis
from capplan.systems.cassandra import SYSTEM

ROW = LoadTestRow(
    run_id="r",
    cass_nodes=6,
    node_cores=8,
    rf=3,
    read_fraction=0.5,
    load_kind="open",
    offered_tps=20_000.0,
    latency_mean_ms=1.0,
    node_cpu_percent=30.0,
)
shares = st.floats(0.0, 1.0)


def cpu(load: float, under_way: float = 16.0, **changed: float) -> float:
    values = {**defaults(PARAMETERS), **changed}
    return float(cpu_percent(values, np.array([load]), np.array([under_way]), 8, woken=True)[0])


@given(shares, st.floats(0.0, 3.0), st.floats(0.0, 4.0))
def test_a_full_node_takes_its_full_cpu_and_an_idle_one_that_of_polling(full: float, wake: float, poll: float) -> None:
    values = {"cpu_full": full, "cpu_wake": wake, "cpu_poll": poll}
    assert cpu(1.0, **values) == pytest.approx(100 * full)
    assert cpu(0.0, **values) == pytest.approx(100 * full * poll / 8)


@given(shares)
def test_without_polling_and_wake_ups_the_utilisation_law_holds(load: float) -> None:
    assert cpu(load, cpu_full=1.0, cpu_wake=0.0, cpu_poll=0.0) == pytest.approx(100 * load)


def test_the_cpu_of_a_request_falls_as_on_the_lab() -> None:
    falls = cpu(0.1, 4.0, cpu_wake=2.0, cpu_poll=1.0) / 0.1 / cpu(1.0, 40.0)
    assert 2.0 < falls < 4.5


def test_the_column_is_read_once_for_a_run_and_frees_its_parameters() -> None:
    both = SYSTEM.read([replace(ROW, request_class=name, throughput_tps=10_000.0) for name in ("read", "write")])
    assert [NODE_CPU in each.measured for each in both] == [True, False]
    assert [each.free for each in observed(both)] == [True] * 3
    stated_later = [replace(ROW, request_class="read", node_cpu_percent=None), replace(ROW, request_class="write")]
    assert [NODE_CPU in each.measured for each in SYSTEM.read(stated_later)] == [False, True]
    loads = SYSTEM.read([replace(ROW, offered_tps=each) for each in (1e4, 2e4)])
    assert all(NODE_CPU in each.measured for each in loads)
    without = SYSTEM.read([replace(ROW, node_cpu_percent=None)])
    assert observed(without) == PARAMETERS
    assert not any(each.free for each in PARAMETERS)


@pytest.mark.parametrize(("nodes", "expected"), [(1, 30.0), (2, 60.0), (3, 90.0), (4, None)])
def test_on_one_host_all_nodes_share_the_cores(nodes: int, expected: float | None) -> None:
    row = replace(ROW, one_host=True, cass_nodes=nodes, rf=1)
    assert SYSTEM.read([row])[0].measured.get(NODE_CPU) == expected


def test_rows_with_a_cpu_that_no_node_has_are_counted() -> None:
    rows = [replace(ROW, node_cpu_percent=each) for each in (None, 0.0, 30.0, 100.5)]
    assert without_cpu(rows) == 2


def test_a_share_in_place_of_percent_is_refused() -> None:
    with pytest.raises(InputError, match="give percent"):
        fit_table(SYSTEM, [replace(ROW, node_cpu_percent=0.3)])


def partly_busy() -> tuple[list[LoadTestRow], float]:
    """Rows at 10 to 40 % of a ceiling that the CPU makes, and that ceiling."""
    values: dict[str, Any] = {**defaults(SYSTEM.parameters), "cpu_full": 1.0, "cpu_poll": 0.2, "cpu_wake": 0.5}
    layout = SYSTEM.read([ROW])[0].layout
    ceiling = float(Analysis(SYSTEM.network(layout, values, 1.0)).drift_per_s[0])
    asked = [replace(ROW, run_id=f"{each:g}", offered_tps=each * ceiling) for each in np.linspace(0.1, 0.4, 6).tolist()]
    columns = [[THROUGHPUT, MEAN, NODE_CPU]] * len(asked)
    rows = []
    for row, solved in zip(asked, solved_rows(SYSTEM, SYSTEM.read(asked), values, columns), strict=True):
        mean, used = (float(solved.figures[name][0]) for name in (MEAN, NODE_CPU))
        rows.append(replace(row, latency_mean_ms=mean, node_cpu_percent=used))
    return rows, ceiling


@pytest.mark.slow
def test_cpu_of_rows_far_below_the_ceiling_narrows_it() -> None:
    rows, ceiling = partly_busy()
    bands = []
    for own in (rows, [replace(row, node_cpu_percent=None) for row in rows]):
        fitted = fit_table(SYSTEM, own)
        layout = SYSTEM.read(own)[0].layout
        found = Analysis(
            SYSTEM.network(layout, SYSTEM.values_in(layout, fitted.values(SYSTEM.parameters)), 1.0)
        ).drift_per_s
        bands.append(np.quantile(found / ceiling, [0.05, 0.5, 0.95]))
    (low, value, high), (wide_low, _, wide_high) = bands
    assert low < 1 < high
    assert value == pytest.approx(1.0, abs=0.15)
    assert high / low < 0.8 * wide_high / wide_low


def test_rows_with_cpu_predict_the_cpu_of_others() -> None:
    rows, _ = partly_busy()
    fitted = fit_table(SYSTEM, rows[:4])
    found = [each for each in predict_table(SYSTEM, fitted, rows[4:]) if each.quantity == NODE_CPU]
    assert len(found) == 2
    for each in found:
        assert each.predicted.value == pytest.approx(each.measured, rel=0.1)
        assert each.predicted.low < (each.measured or 0) < each.predicted.high
    bare = fit_table(SYSTEM, [replace(row, node_cpu_percent=None) for row in rows[:4]])
    assert NODE_CPU not in {each.quantity for each in predict_table(SYSTEM, bare, rows[4:])}


@pytest.mark.slow
def test_rate_and_cpu_alone_hold_the_ceiling() -> None:
    rows, ceiling = partly_busy()
    fitted = fit_table(SYSTEM, [replace(row, latency_mean_ms=None) for row in rows])
    layout = SYSTEM.read(rows)[0].layout
    found = Analysis(
        SYSTEM.network(layout, SYSTEM.values_in(layout, fitted.values(SYSTEM.parameters)), 1.0)
    ).drift_per_s
    low, high = np.quantile(found / ceiling, [0.05, 0.95])
    assert 0.25 < low < 1 < high < 2


def test_cpu_of_one_layout_does_not_decide_the_limit_of_another() -> None:
    """The own layout's CPU is known, so its nodes are no open question; those of a half as large layout are one."""
    rows, ceiling = partly_busy()
    fitted = fit_table(SYSTEM, rows)
    judge = Judge(SYSTEM, fitted)
    reasons = []
    for nodes in (6, 3):
        asked = replace(rows[-1], cass_nodes=nodes, offered_tps=0.08 * nodes * 2 * ceiling)
        (row,) = SYSTEM.read([asked])
        (solved,) = solved_rows(SYSTEM, [row], fitted.values(SYSTEM.parameters), [[]])
        reasons.append("cassandra may be the limit" in judge.reason(row, solved))
    assert reasons == [False, True]
