"""The evidence about `rhino-shcm`: both published tables figure by figure, and the facts around them."""

import math

import pytest

from capplan.calibration.evidence.table import PERCENTILES, by_id, load, select, sources

ROWS = load("rhino-shcm")
BY_ID = by_id(ROWS)

# "Sh cache microservice (ShCM) on Rhino: benchmark results", table of performance:
# sessions and requests per second, hours, configuration, CPU in per cent of a core, heap in G.
PERFORMANCE = {
    "t1": (1000, 1800, 2, "A", 280, 1.4),
    "t2": (1100, 1980, 2, "A", 310, 1.4),
    "t3": (1200, 2160, 2, "A", 330, 1.4),
    "t4": (1000, 1800, 2, "B", 300, 1.5),
    "t5": (1200, 2160, 2, "B", 320, 1.5),
    "t6": (1400, 2520, 2, "B", 380, 1.5),
    "t7": (1000, 1800, 2, "C", 360, 1.5),
}
# Table of latency, in ms.
LATENCY: dict[str, dict[str, float]] = {
    "t1": {"p50": 6, "p75": 17.9, "p90": 58.8, "p95": 119, "p99": 264, "maximum": 757},
    "t2": {"p50": 20.1, "p75": 84.7, "p90": 292, "p95": 438, "p99": 655, "maximum": 1210},
    "t3": {"p50": 156, "p75": 686, "p90": 1190, "p95": 1530, "p99": 2810, "maximum": 3889},
    "t4": {"p50": 4.3, "p75": 5.2, "p90": 15.6, "p95": 37.1, "p99": 119, "maximum": 837.9},
    "t5": {"p50": 4.2, "p75": 5.8, "p90": 22.4, "p95": 41.9, "p99": 131, "maximum": 367.2},
    "t6": {"p50": 4.8, "p75": 9.8, "p90": 37.4, "p95": 63.7, "p99": 170, "maximum": 476},
    "t7": {"p50": 2.8, "p75": 21.5, "p90": 88.4, "p95": 139, "p99": 235, "maximum": 717},
}
# Servers, those of the application, Cassandra nodes, those of the clients.
SERVERS = {"a": (3, 1, 1, 2), "b": (6, 1, 3, 2), "c": (3, 1, 1, 2)}


@pytest.mark.parametrize("test", PERFORMANCE)
def test_table_of_performance_figure_by_figure(test: str) -> None:
    sessions, requests, hours, configuration, cpu, heap = PERFORMANCE[test]
    assert BY_ID[f"{test}.sps"].value == sessions
    assert BY_ID[f"{test}.rps"].value == requests
    assert BY_ID[f"{test}.duration"].value == hours * 3600
    assert BY_ID[f"{test}.configuration"].text == configuration
    assert BY_ID[f"{test}.cpu"].written == f"{cpu} %"
    assert BY_ID[f"{test}.cpu"].value == pytest.approx(cpu / 100)
    assert BY_ID[f"{test}.heap"].value == heap * 1e9


@pytest.mark.parametrize("test", LATENCY)
def test_table_of_latency_figure_by_figure(test: str) -> None:
    rows = select(ROWS, scenario=test.upper(), quantity="latency")
    assert {row.statistic: row.value for row in rows} == pytest.approx(
        {statistic: printed / 1000 for statistic, printed in LATENCY[test].items()}
    )
    assert all(row.id == f"{test}.{row.statistic}" and row.request_class == "request" for row in rows)


@pytest.mark.parametrize("configuration", SERVERS)
def test_servers_of_the_configurations(configuration: str) -> None:
    names = ("servers", "app_servers", "cassandra_nodes", "client_servers")
    assert tuple(BY_ID[f"{configuration}.{name}"].value for name in names) == SERVERS[configuration]
    assert BY_ID[f"{configuration}.instance_type"].text == "c5.2xlarge"


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [
        ("all.commitlog_limit", 8e9, "B"),
        ("all.disk_maximum", 9e9, "B"),
        ("all.subscribers", 1e6, "1"),
        ("t5.sustained_rate", 2160, "1/s"),
        ("t5.cpu_around", 3, "1"),
        ("t6.rate_repeated", 2520, "1/s"),
        ("all.session_requests", 1.8, "1"),
        ("all.disk_same_tests", 1, "1"),
        ("all.disk_same_nodes", 1, "1"),
    ],
)
def test_facts_and_claims_of_the_document(name: str, value: float, unit: str) -> None:
    assert (BY_ID[name].value, BY_ID[name].unit) == (value, unit)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.cache", "all disabled"),
        ("all.cpu_scope", "its JVM alone"),
        ("t5.latency_in_words", "reasonable"),
        ("t6.latency_in_words", "satisfactory"),
        ("t6.cpu_in_words", "acceptable"),
    ],
)
def test_words_of_the_document(name: str, text: str) -> None:
    assert BY_ID[name].text == text
    assert math.isnan(BY_ID[name].value)


def test_c5_2xlarge_by_the_vendors_specification() -> None:
    facts = {row.quantity: row.value for row in select(ROWS, source="aws-ec2")}
    assert facts == {"server_vcpu": 8, "threads_per_core": 2, "server_memory": 16 * 2**30}


@pytest.mark.parametrize("test", LATENCY)
def test_the_layout_of_each_test_is_that_of_its_configuration(test: str) -> None:
    sessions, _, _, configuration, *_ = PERFORMANCE[test]
    layout = {
        "configuration": configuration,
        "colocated": "no" if configuration == "B" else "yes",
        "cache": "no" if configuration == "C" else "yes",
        "sps": str(sessions),
        "duration_s": "7200",
    }
    rows = select(ROWS, scenario=test.upper())
    assert all(row.layout == layout for row in rows)
    assert {row.cass_nodes for row in rows} == {3 if configuration == "B" else 1}


def test_the_fit_sees_percentiles_and_cpu_of_every_test_and_each_test_is_a_fold() -> None:
    fitted = select(ROWS, use="fit")
    assert {row.id for row in fitted} == {f"{test}.{name}" for test in LATENCY for name in (*PERCENTILES, "cpu")}
    assert all(row.fold == row.duplicate_group == row.scenario for row in fitted)


def test_loads_of_configuration_a_are_compared_and_not_fitted() -> None:
    assert {row.id for row in select(ROWS, use="check", quantity="request_rate")} == {"t1.rps", "t2.rps", "t3.rps"}


def test_maxima_are_compared_and_not_fitted() -> None:
    assert {row.use for row in select(ROWS, statistic="maximum", quantity="latency")} == {"check"}


@pytest.mark.parametrize(
    ("name", "half_width"),
    [("t1.p50", 5e-5), ("t4.p95", 5e-5), ("t3.p50", 5e-4), ("t3.p90", 5e-3), ("t4.maximum", 5e-5), ("t1.cpu", 0.05)],
)
def test_roundings_are_half_the_step_the_figures_show(name: str, half_width: float) -> None:
    row = BY_ID[name]
    assert (row.high - row.value, row.value - row.low) == pytest.approx((half_width, half_width))


def test_ids_are_unique_over_both_sources_and_name_their_scenario() -> None:
    assert len(BY_ID) == len(ROWS)
    assert all(row.id.startswith(row.scenario.lower() + ".") for row in ROWS)
    assert {row.source for row in ROWS} == {each.id for each in sources("rhino-shcm")}
