"""What figures rest on: layouts and loads of the load tests that measured such figures."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from capplan.layout.basis import FigureBasis
from capplan.systems.registry import resolve, scenario


@cache
def basis(name: str, **layout: Any) -> tuple[FigureBasis, float]:
    fresh = {"data_factor": 1.0} if name == "openprovider" else {}
    case = resolve(scenario(name, **{**fresh, **layout}))
    return case.basis, float(np.median(case.solution.capacity))


@pytest.mark.parametrize(
    ("layout", "load", "expected"),
    [
        ({}, 1.0, "measured"),
        ({}, 0.8, "extrapolated"),  # the document has means at the highest rates only
        ({"dcs": 2}, 1.0, "measured"),
        ({"cass_nodes": 6}, 1.0, "extrapolated"),
        ({"data_factor": 2.0}, 1.0, "extrapolated"),
    ],
    ids=str,
)
def test_means_of_openprovider_were_measured_at_the_highest_rates(
    layout: dict[str, Any], load: float, expected: str
) -> None:
    its, capacity = basis("openprovider", **layout)

    assert its.of_latency("acct", "mean", load * capacity) == expected


@pytest.mark.parametrize("load", [0.3, 0.8, 1.0])
@pytest.mark.parametrize("statistic", ["p50", "p90", "p95", "p99", "p999"])
def test_no_percentile_of_openprovider_was_measured(statistic: str, load: float) -> None:
    its, capacity = basis("openprovider")

    assert its.of_latency("acct", statistic, load * capacity) == "model only"


@pytest.mark.parametrize(
    ("statistic", "rate", "expected"),
    [
        ("p99", 2160.0, "measured"),  # evidence t5.request_rate
        ("p99", 3500.0, "extrapolated"),
        ("p999", 2160.0, "model only"),
        ("mean", 2160.0, "model only"),
    ],
)
def test_percentiles_of_rhino_shcm_were_measured_up_to_the_99th(statistic: str, rate: float, expected: str) -> None:
    its, _ = basis("rhino-shcm")

    assert its.of_latency("request", statistic, rate) == expected


def test_a_load_between_measured_ones_is_interpolated() -> None:
    """Colocated layouts were measured at several rates; the test's layout is the same at a rate between two of them."""
    its, capacity = basis("rhino-shcm", colocated=True)
    found = {its.of_latency("request", "p99", share * capacity) for share in np.arange(0.05, 1.0, 0.01)}

    assert found == {"measured", "interpolated", "extrapolated"}


def test_utilisation_was_measured_of_the_application_server_only() -> None:
    its, _ = basis("rhino-shcm")

    assert its.of_utilisation("server", 2160.0) == "measured"
    assert its.of_utilisation("cassandra", 2160.0) == "model only"


@pytest.mark.parametrize(
    ("name", "layout", "expected"),
    [
        ("openprovider", {}, "measured"),
        ("openprovider", {"cass_nodes": 6}, "extrapolated"),
        ("openprovider", {"data_factor": "1.2..1.6"}, "extrapolated"),
        ("openprovider", {"burst_ratio": 1.5}, "extrapolated"),
        ("rhino-shcm", {}, "model only"),
        ("fedora4", {"nodes": 3}, "measured"),
    ],
    ids=str,
)
def test_the_basis_of_a_capacity(name: str, layout: dict[str, Any], expected: str) -> None:
    its, _ = basis(name, **layout)

    assert its.of_capacity() == expected
