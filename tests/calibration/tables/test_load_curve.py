"""Load curves: lanes are found again, published curves are met, and contention is fitted only where rows show it."""

import runpy
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capplan.errors import InputError
from capplan.models.language.units import FloatArray

pytestmark = pytest.mark.usefixtures("generators")
GENERATE = Path(__file__).parents[3] / "docs" / "generate"
SCRIPT: dict[str, Any] = runpy.run_path(str(GENERATE / "fitted_load_curve.py"))
LoadCurve, fit_load_curve = SCRIPT["LoadCurve"], SCRIPT["fit_load_curve"]
JUMPS = {"TiDB v2.1.0-rc.2 point_select (idc)", "TiDB v2.0.6 point_select (idc)"}
"""Throughput that rises by a quarter from 512 to 1,024 threads, after hardly any rise before."""
SOME = {
    "Cassandra v5 write LOCAL_ONE STCS (readme)",
    "Cassandra v4 read LOCAL_QUORUM LCS (r2)",
    "TiDB v2.0.6 point_select (idc)",
}


def mean_value_analysis(clients: list[int], lanes: int, lane_s: float, delay_s: float) -> FloatArray:
    """Return the exact throughput (Reiser and Lavenberg, "Mean-value analysis of closed multichain networks", 1980)."""
    found, waiting = [], 0.0
    for count in range(1, max(clients) + 1):
        response_s = lane_s * (1 + waiting)
        found.append(count / (delay_s + response_s))
        waiting = found[-1] / lanes * response_s
    return np.array([found[count - 1] for count in clients])


@pytest.mark.parametrize(("lanes", "lane_s"), [(1, 0.2), (4, 0.5), (24, 0.9), (64, 0.5)])
def test_the_network_is_a_product_form_network(lanes: int, lane_s: float) -> None:
    clients = [1, 5, 20, 80, 300]
    exact = mean_value_analysis(clients, lanes, lane_s, 1 - lane_s)
    assert LoadCurve(lanes, lane_s, 1 - lane_s).throughput_per_s(clients)[:, 0] == pytest.approx(exact, rel=5e-3)


def test_a_curve_of_lanes_is_found_again() -> None:
    """The fit does not see the numbers of clients between its rows and beyond them."""
    rows, unseen = [4, 16, 48, 96], [1, 30, 70, 200]
    fitted = fit_load_curve(rows, mean_value_analysis(rows, 10, 0.4e-3, 0.9e-3).tolist())
    exact = mean_value_analysis(unseen, 10, 0.4e-3, 0.9e-3)
    assert fitted.throughput_per_s(unseen)[:, 0] == pytest.approx(exact, rel=0.03)
    assert fitted.contention == 0


def met(curve: Any) -> None:
    """Check a published curve: within 10 % (11 % where it jumps), and better than a sharp knee."""
    script = import_module("load_curves")
    fitted = fit_load_curve(curve.clients, curve.throughput_per_s.tolist())
    errors = script.errors(curve, fitted)
    pooled = script.pooled_errors(curve)
    assert np.max(np.abs(errors)) < (0.11 if curve.name in JUMPS else 0.1)
    assert errors @ errors < pooled @ pooled


def test_published_curves_are_met() -> None:
    curves = [curve for curve in import_module("load_curves").curves() if curve.name in SOME]
    assert len(curves) == len(SOME)
    for curve in curves:
        met(curve)


@pytest.mark.slow
def test_all_published_curves_are_met() -> None:
    for curve in import_module("load_curves").curves():
        met(curve)


def test_contention_needs_a_row_beyond_the_peak() -> None:
    clients, rising, falling = [4, 8, 16, 32], [4000.0, 7800.0, 13000.0, 16000.0], [4000.0, 7800.0, 9000.0, 7000.0]
    assert fit_load_curve(clients, rising).contention == 0
    assert fit_load_curve(clients, falling).contention > 0


def test_a_fit_needs_three_rows_with_throughput() -> None:
    with pytest.raises(InputError, match="three or more"):
        fit_load_curve([1, 2], [1.0, 2.0])
    with pytest.raises(InputError, match="not positive"):
        fit_load_curve([1, 2, 3], [1.0, 2.0, 0.0])
