"""Simple rules on load-test tables: exact on the curves that they describe, and silent where they do not apply."""

from dataclasses import replace

import pytest

from capplan.calibration.tables.scores import RULES, table_estimates
from capplan.evidence.load_test_row import LoadTestRow

CLIENTS = (1, 4, 16, 64, 256)
NEAR = pytest.approx


def run(throughput: float, **conditions: object) -> LoadTestRow:
    """Return a run of closed clients; its mean latency follows from Little's law."""
    row = LoadTestRow(load_kind="closed", throughput_tps=throughput, **conditions)  # type: ignore[arg-type]  # fields by name
    return row if row.clients is None else replace(row, latency_mean_ms=1e3 * row.clients / throughput)


def usl(clients: int) -> float:
    """Return a throughput by the universal scalability law."""
    return 900 * clients / (1 + 0.02 * (clients - 1) + 1e-5 * clients * (clients - 1))


def estimate(rule: str, row: LoadTestRow, quantity: str, trained: list[LoadTestRow]) -> float | None:
    """Return what one rule says."""
    return table_estimates(row, quantity, trained)[rule].value


def test_the_scalability_law_continues_its_own_curve_and_by_littles_law_the_mean_latency() -> None:
    trained = [run(usl(each), clients=each) for each in CLIENTS]
    wanted = run(usl(1024), clients=1024)
    assert estimate("usl", wanted, "throughput_tps", trained) == NEAR(usl(1024))
    assert estimate("usl", wanted, "latency_mean_ms", trained) == NEAR(1e3 * 1024 / usl(1024))


def repairmen(clients: int, service_s: float, servers: int, elsewhere_s: float) -> float:
    """Return the throughput of clients who share some servers: a birth and death process, state by state."""
    weight, weights = 1.0, [1.0]
    for inside in range(1, clients + 1):
        weight *= (clients - inside + 1) / elsewhere_s * service_s / min(inside, servers)
        weights.append(weight)
    busy = sum(min(inside, servers) * each for inside, each in enumerate(weights))
    return busy / sum(weights) / service_s


@pytest.mark.parametrize("servers", [1, 6])
def test_mean_values_continue_the_curve_of_a_shared_station(servers: int) -> None:
    law = (2e-4, servers, 3e-3)
    trained = [run(repairmen(each, *law), clients=each) for each in (1, 2, 4, 8, 16, 32, 64)]
    exact = repairmen(160, *law)
    assert estimate("mean_values", run(1.0, clients=160), "throughput_tps", trained) == pytest.approx(exact, rel=1e-3)
    mean = estimate("mean_values", run(1.0, clients=160), "latency_mean_ms", trained)
    assert mean == pytest.approx(1e3 * 160 / exact, rel=1e-3)


def test_no_limit_of_the_scalability_law_is_negative() -> None:
    trained = [run(100 * each**1.3, clients=each) for each in CLIENTS]  # faster than proportional
    largest = max(each.throughput_tps / each.clients for each in trained if each.throughput_tps and each.clients)
    found = estimate("usl", run(1.0, clients=512), "throughput_tps", trained)
    assert found is not None
    assert found <= 512 * largest


@pytest.mark.parametrize(
    ("rule", "law"),
    [
        ("linear", lambda size: 120.0 * size),
        ("affine", lambda size: 300.0 + 70 * size),
        ("power_law", lambda size: 50 * size**0.7),
    ],
)
def test_a_rule_is_exact_on_its_own_law(rule: str, law: object) -> None:
    assert callable(law)
    trained = [run(law(nodes), cass_nodes=nodes, clients=64) for nodes in (3, 6, 9)]
    assert estimate(rule, run(1.0, cass_nodes=18, clients=64), "throughput_tps", trained) == NEAR(law(18))


@pytest.mark.parametrize(
    ("rule", "law"),
    [
        ("linear", lambda size: 120.0 * size),
        ("affine", lambda size: 300.0 + 70 * size),
        ("power_law", lambda size: 50 * size**0.7),
        ("usl", usl),
    ],
)
def test_a_rule_is_exact_on_nodes_that_have_as_many_clients_each(rule: str, law: object) -> None:
    """Every published scale-out of Cassandra is such a series."""
    assert callable(law)
    trained = [run(law(nodes), cass_nodes=nodes, clients=32 * nodes) for nodes in (3, 6, 9)]
    wanted = run(1.0, cass_nodes=18, clients=32 * 18)
    assert estimate(rule, wanted, "throughput_tps", trained) == NEAR(law(18))
    others = [replace(each, clients=64) for each in trained]
    assert estimate("usl", wanted, "throughput_tps", others) is None


def test_one_layout_is_scaled_out_in_proportion_rather_than_along_its_own_load_curve() -> None:
    trained = [run(usl(each), cass_nodes=3, clients=each) for each in CLIENTS]
    wanted = run(1.0, cass_nodes=12, clients=4 * 64)
    assert estimate("linear", wanted, "throughput_tps", trained) == NEAR(4 * usl(64))
    alone = estimate("linear", replace(wanted, cass_nodes=3), "latency_mean_ms", trained)
    assert estimate("linear", wanted, "latency_mean_ms", trained) == alone  # nodes do not multiply a latency
    assert estimate("usl", wanted, "throughput_tps", trained) == NEAR(usl(256))


def test_other_clients_for_each_node_are_no_scale_out() -> None:
    trained = [run(100.0, cass_nodes=3, clients=30), run(150.0, cass_nodes=6, clients=90)]
    assert estimate("affine", run(1.0, cass_nodes=12, clients=120), "throughput_tps", trained) is None


def test_the_work_of_copies_is_exact_for_throughput_and_latency() -> None:
    trained = [run(1e6 / (5 + 3 * rf), rf=rf, clients=64) for rf in (1, 3)]
    wanted = run(1.0, rf=5, clients=64)
    assert estimate("c_plus_r_rf", wanted, "throughput_tps", trained) == NEAR(1e6 / 20)
    assert estimate("c_plus_r_rf", wanted, "latency_mean_ms", trained) == NEAR(64e3 / 1e6 * 20)


def test_persistence_repeats_the_nearest_row_and_averages_its_repeats() -> None:
    trained = [run(10.0, rf=1, clients=64), run(20.0, rf=3, clients=64), run(30.0, rf=3, clients=64, repeat=2)]
    assert estimate("persistence", run(1.0, rf=5, clients=64), "throughput_tps", trained) == 25
    assert estimate("persistence", run(1.0, rf=1, clients=80), "throughput_tps", trained) == 10


def test_a_rule_learns_along_the_axis_in_which_trained_rows_differ_from_the_wanted_one_only() -> None:
    trained = [run(1000.0 / rf * loads, rf=rf, clients=64 * loads) for rf in (1, 2) for loads in (1, 2)]
    found = table_estimates(run(1.0, rf=4, clients=128), "throughput_tps", trained)
    assert found["power_law"].value == NEAR(500)
    found = table_estimates(run(1.0, rf=2, clients=256), "throughput_tps", trained)
    assert found["linear"].value == NEAR(2000)


def test_where_no_series_leads_to_a_row_the_load_curve_of_the_nearest_layout_does() -> None:
    trained = [run(usl(each), clients=each, cass_nodes=3, rtt_ms=1.0) for each in CLIENTS]
    found = table_estimates(run(1.0, clients=512, cass_nodes=6, rtt_ms=20.0), "throughput_tps", trained)
    assert found["usl"].value == NEAR(usl(512))


@pytest.mark.parametrize(
    ("rule", "row", "quantity"),
    [
        ("usl", run(1.0, clients=512), "latency_p99_ms"),
        ("usl", replace(run(1.0, clients=512), load_kind="open"), "throughput_tps"),
        ("mean_values", run(1.0, clients=512), "latency_p99_ms"),
        ("c_plus_r_rf", run(1.0, clients=512), "throughput_tps"),
        ("affine", run(1.0), "throughput_tps"),
        ("persistence", run(1.0, clients=4, request_class="write"), "throughput_tps"),
    ],
)
def test_a_rule_without_an_answer_says_why(rule: str, row: LoadTestRow, quantity: str) -> None:
    trained = [replace(run(usl(each), clients=each), latency_p99_ms=1.0) for each in CLIENTS]
    found = table_estimates(row, quantity, trained)[rule]
    assert found.value is None
    assert found.reason


def test_every_rule_answers_or_says_why() -> None:
    for count in (0, 1, 2, 5):
        trained = [run(usl(each), clients=each) for each in CLIENTS[:count]]
        for quantity in ("throughput_tps", "latency_mean_ms", "node_cpu_percent"):
            found = table_estimates(run(1.0, clients=512), quantity, trained)
            assert set(found) == set(RULES)
            assert all((each.value is None) == bool(each.reason) for each in found.values())
