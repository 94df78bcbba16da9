"""The network of `arion`: exact times at light load, laws of closed clients, droop, both solvers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from capplan.errors import InputError
from capplan.layout.components import ResponseTimes
from capplan.models.language.distribution import Deterministic
from capplan.models.language.parameter import Values, defaults
from capplan.models.language.scenario import MOST_CLIENTS
from capplan.models.language.traffic import Closed, Throttled
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import MAX_DROP_RATE, capacity_per_s, solve
from capplan.simulator.compiled.engine import simulate
from capplan.systems.arion import SYSTEM
from capplan.systems.arion.network import (
    AT_ONCE,
    DROOP,
    FEW,
    LONG_QUEUE,
    clients_are_few,
    closed_per_s,
    demand_s,
    drooped_per_s,
    latency_s,
    network,
    paced_response_s,
    peak_per_s,
    response_s,
    settling_s,
    sustained_per_s,
    unloaded_s,
    useful_clients,
    watch_s,
)
from capplan.systems.arion.priors import PARAMETERS
from capplan.systems.arion.scenario import ArionScenario

VALUES: Values = {**defaults(PARAMETERS), "service_s": 0.5e-3, "network_s": 0.1e-3}  # near what calibration finds
ONE = ArionScenario()
PEAK = AT_ONCE / 0.5e-3  # 40,000 requests per second


def closed(clients: int, seconds: float, seed: int = 1) -> tuple[float, float]:
    """Simulate clients of one master that ask again at once; return throughput (1/s) and mean response (s)."""
    asked = network(ONE, VALUES, 1.0)
    traffic = Closed(clients, Deterministic(0.0), {"read": 1.0})
    run = simulate(replace(asked, traffic=traffic), seconds + 0.1, seed=seed, warmup_s=0.1)
    report = run.report("read")
    return report.completed / seconds, report.intended.mean_s


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"servers": 65}, "servers = 65"),
        ({"clients": MOST_CLIENTS + 1}, "1,000,000"),
        ({"servers": 4, "clients": 3}, "clients = 3"),
        ({"clients": 100, "rps_per_client": 30.0, "tps": 5000.0}, "3000 requests per second"),
        ({"rps_per_client": 0.0}, "above 0"),
        ({"stream_messages": 0}, "stream_messages: 0"),
    ],
)
def test_a_layout_that_cannot_be_is_refused_in_one_sentence(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as refused:
        ArionScenario(**fields)  # type: ignore[arg-type]  # the point

    assert message in str(refused.value)


def test_what_is_offered_is_said_by_the_clients_or_over_all() -> None:
    assert ArionScenario(servers=10, clients=10_000, rps_per_client=30.0).offered_per_s() == 300_000.0
    assert ArionScenario(tps=5000.0).offered_per_s() == 5000.0
    assert ArionScenario(clients=10_000).offered_per_s() is None


def test_when_nobody_else_asks_a_read_takes_its_work_and_the_network() -> None:
    assert unloaded_s(ONE, VALUES) == pytest.approx(0.6e-3, rel=1e-12)
    alone = Analysis(network(ONE, VALUES, 1.0)).unloaded["read"]
    assert float(alone.total) == pytest.approx(0.6e-3, rel=1e-12)
    assert response_s(ONE, VALUES, 1.0) == pytest.approx([0.6e-3], rel=1e-9)
    run = simulate(network(ONE, VALUES, 10.0), 2000.0, seed=5)
    assert run.report("read").intended.mean_s == pytest.approx(0.6e-3, rel=0.03)  # 20,000 exponential services: 4 sd


@pytest.mark.parametrize(("messages", "share"), [(1, 1.0), (2, 0.55), (10, 0.19), (1000, 0.1009)])
def test_messages_of_a_stream_share_the_rest_of_a_call(messages: int, share: float) -> None:
    """A message costs a tenth of a call; the other nine tenths are shared."""
    scenario = ArionScenario(stream_messages=messages)

    assert demand_s(scenario, VALUES) == pytest.approx(share * 0.5e-3, rel=1e-12)


def test_a_message_never_costs_more_than_a_call() -> None:
    assert demand_s(ArionScenario(stream_messages=10), {**VALUES, "message_share": 3.0}) == 0.5e-3


@pytest.mark.parametrize("servers", [1, 3])
def test_the_load_of_each_master_and_what_it_always_drains_by_hand(servers: int) -> None:
    scenario = ArionScenario(servers=servers, clients=1000 * servers)
    analysis = Analysis(network(scenario, VALUES, 1.0))

    each = 1 / servers / PEAK / (1 - DROOP)
    assert analysis.members == {"master": servers}
    assert analysis.load("master") == pytest.approx(each, rel=1e-12)
    assert float(capacity_per_s(analysis, MAX_DROP_RATE)[0]) == pytest.approx(servers * PEAK * (1 - DROOP), rel=1e-9)
    assert peak_per_s(scenario, VALUES) == pytest.approx(servers * PEAK)


def test_only_few_clients_are_kept_busy() -> None:
    few, many = ArionScenario(servers=2, clients=2 * FEW - 1), ArionScenario(servers=2, clients=2 * FEW)

    assert clients_are_few(few)
    assert not clients_are_few(many)
    assert not clients_are_few(replace(few, stream_messages=2))
    assert {each.name: each.servers for each in network(few, VALUES, 1.0).each_station} == {
        "master/of-64/1": AT_ONCE,
        "master/of-63/1": AT_ONCE,
        "clients/of-64/1": FEW,
        "clients/of-63/1": FEW - 1,
    }
    assert [each.name for each in network(many, VALUES, 1.0).each_station] == ["master/1", "master/2"]


@given(clients=st.integers(1, 1000))
def test_clients_carry_at_most_their_own_rate_and_at_most_the_peak(clients: int) -> None:
    """The asymptotic bounds of a closed network: N over the response when alone, and the peak."""
    (carried,) = closed_per_s(ONE, VALUES, [clients])[0]

    assert carried <= min(clients / 0.6e-3, PEAK) * (1 + 1e-9)
    assert carried >= 0.8 * min(clients / 0.6e-3, PEAK * (1 - DROOP))


@pytest.mark.parametrize("clients", [1, 10, 24, 60, 300, 1000])
def test_the_closed_law_is_what_the_compiled_engine_does(clients: int) -> None:
    """Throughput over 1 s: some 1,600 to 40,000 requests, so a standard error below 2.5 % alone, 0.5 % from 10 on."""
    (carried,) = closed_per_s(ONE, VALUES, [clients])[0]
    throughput, mean = closed(clients, 1.0 if clients > 1 else 20.0)

    assert throughput == pytest.approx(carried, rel=0.025)
    assert mean == pytest.approx(clients / carried, rel=0.025)


def test_throughput_droops_beyond_the_peak_and_never_rises_again() -> None:
    carried = closed_per_s(ONE, VALUES, range(60, LONG_QUEUE + 200, 20))[0]

    assert (np.diff(carried) <= 1e-9 * PEAK).all()
    assert carried[-1] == pytest.approx(PEAK * (1 - DROOP), rel=2e-3)


def test_the_clients_that_fill_a_master_are_its_rate_times_the_time_of_a_request() -> None:
    """24 by that bound; a few more, since requests come to the master at random."""
    assert useful_clients(ONE, VALUES)[0] == pytest.approx(24, rel=0.15)
    below, above = closed_per_s(ONE, VALUES, [16, 40])[0]
    assert below < 0.75 * PEAK
    assert above > 0.99 * PEAK


def test_clients_with_a_time_of_their_own_take_no_more_than_they_must() -> None:
    """30 of them ask 150 times a second each and hardly meet; 300 ask more than is carried: the cycle is 7.5 ms."""
    few, many = (paced_response_s(ArionScenario(clients=count), VALUES)[0] for count in (30, 300))

    assert few == pytest.approx(0.6e-3, rel=1e-3)
    assert many == pytest.approx(300 / PEAK - (1 / 150 - 0.6e-3), rel=0.05)


@given(share=st.floats(0.05, 0.9), servers=st.integers(1, 8))
def test_more_servers_never_hurt(share: float, servers: int) -> None:
    rate = share * PEAK * servers
    few, many = (ArionScenario(servers=n, clients=8000) for n in (servers, servers + 1))

    assert response_s(many, VALUES, rate) <= response_s(few, VALUES, rate) * (1 + 1e-12)
    assert drooped_per_s(many, VALUES) > drooped_per_s(few, VALUES)


@pytest.mark.parametrize(("share", "scenario"), [(0.5, ONE), (0.8, ONE), (0.8, ArionScenario(servers=4, clients=4000))])
def test_closed_form_solver_and_compiled_engine_agree(share: float, scenario: ArionScenario) -> None:
    """80,000 requests and more: the mean's standard error is below 0.5 %, that of the 99th percentile below 1 %."""
    rate = share * drooped_per_s(scenario, VALUES)
    run = simulate(network(scenario, VALUES, rate), 4.1 / scenario.servers, seed=2026, warmup_s=0.1 / scenario.servers)
    report = run.report("read")

    mean = latency_s(scenario, VALUES, rate, None)[0]
    assert mean == pytest.approx(float(solve(Analysis(network(scenario, VALUES, 1.0)), rate).response_s("read")[0]))
    assert report.intended.mean_s == pytest.approx(mean, rel=0.02)
    assert report.intended.quantile_s(0.99) == pytest.approx(latency_s(scenario, VALUES, rate, 0.99)[0], rel=0.04)


@pytest.mark.parametrize(("clients", "share"), [(10, 0.5), (10, 0.8), (24, 0.8), (60, 0.8)])
def test_few_clients_beside_both_kinds_of_simulated_traffic(clients: int, share: float) -> None:
    """Open traffic, and clients that each keep to a rate, from when they ask: 80,000 requests and more, as above.

    Closed form and open traffic do not know that fewer come while many wait: 3 % too long at 80 % of the capacity.
    """
    scenario = ArionScenario(clients=clients)
    rate = share * float(sustained_per_s(scenario, VALUES)[0])
    asked = network(scenario, VALUES, rate)
    paced = replace(asked, traffic=Throttled(clients, rate, {"read": 1.0}))
    at_random, kept = (simulate(each, 4.2, seed=2026, warmup_s=0.2).report("read") for each in (asked, paced))

    mean, p99 = (float(latency_s(scenario, VALUES, rate, level)[0]) for level in (None, 0.99))
    assert at_random.intended.mean_s == pytest.approx(mean, rel=0.03)
    assert at_random.intended.quantile_s(0.99) == pytest.approx(p99, rel=0.04)
    assert kept.actual.mean_s == pytest.approx(mean, rel=0.05)
    assert kept.actual.quantile_s(0.99) == pytest.approx(p99, rel=0.05)


@pytest.mark.parametrize("clients", [6, 15, 30])
def test_few_clients_bound_what_is_carried(clients: int) -> None:
    scenario = ArionScenario(clients=clients)
    found = float(capacity_per_s(Analysis(network(scenario, VALUES, 1.0)), MAX_DROP_RATE)[0])

    assert found == pytest.approx(min(closed_per_s(scenario, VALUES, [clients])[0, 0], PEAK * (1 - DROOP)), rel=1e-9)
    assert found <= clients / 0.6e-3 * (1 + 1e-9)


LAYOUTS = st.integers(1, 64).flatmap(lambda servers: st.tuples(st.just(servers), st.integers(servers, 70 * servers)))


def carried(servers: int, clients: int) -> float:
    return float(sustained_per_s(ArionScenario(servers=servers, clients=clients), VALUES)[0])


@settings(deadline=None)
@given(layout=LAYOUTS)
@example(layout=(2, 3))
@example(layout=(10, 19))
@example(layout=(10, 25))
def test_unequal_parts_of_the_clients_carry_no_more_than_equal_ones(layout: tuple[int, int]) -> None:
    """The first group of clients, or the first master, that is full ends it; solver and closed form agree."""
    servers, clients = layout
    found = carried(servers, clients)
    solved = capacity_per_s(
        Analysis(network(ArionScenario(servers=servers, clients=clients), VALUES, 1.0)), MAX_DROP_RATE
    )

    assert float(solved[0]) == pytest.approx(found, rel=1e-9)
    assert found <= min(clients / 0.6e-3, servers * PEAK * (1 - DROOP)) * (1 + 1e-9)
    each, left_over = divmod(clients, servers)
    if left_over:
        assert found / clients == pytest.approx(carried(1, each + 1) / (each + 1), rel=1e-9)


@given(layout=LAYOUTS)
def test_a_client_more_carries_no_less_but_for_its_own_part_of_its_master(layout: tuple[int, int]) -> None:
    """Where clients bound, more carry more. Where masters do, one that has a client more than the others is full first.

    It then has one in `fullest` more than an equal part.
    """
    servers, clients = layout
    before, after = carried(servers, clients), carried(servers, clients + 1)
    fullest = -(-(clients + 1) // servers)

    assert after >= before * (1 - 1 / fullest)
    if (clients + 1) % servers != 1 or fullest < AT_ONCE // 2:
        assert after >= before * (1 - 1e-6)
    assert carried(servers, clients + servers) >= before * (1 - 1e-9)


@settings(deadline=None)
@given(layout=LAYOUTS, share=st.floats(0.05, 1.5), level=st.sampled_from([None, 0.5, 0.99]))
def test_times_rise_with_load_up_to_what_all_waiting_clients_see(
    layout: tuple[int, int], share: float, level: float | None
) -> None:
    servers, clients = layout
    scenario = ArionScenario(servers=servers, clients=clients)
    calm, busy, beyond = (
        float(latency_s(scenario, VALUES, part * carried(servers, clients), level)[0])
        for part in (0.5 * share, share, 100.0)
    )

    assert 0 < calm <= busy * (1 + 1e-9)
    assert busy <= beyond * (1 + 1e-9)
    assert math.isfinite(beyond)


@pytest.mark.parametrize("clients", [1, 10, 26, 64, 1000, 1064, 1065, 5000])
def test_beyond_what_is_carried_all_clients_wait(clients: int) -> None:
    """Little's law of closed clients; with exponential work, so is each percentile of those that hardly wait."""
    scenario = ArionScenario(clients=clients)
    (full,) = closed_per_s(scenario, VALUES, [clients])[0]

    assert latency_s(scenario, VALUES, 1e6, None)[0] == pytest.approx(clients / full, rel=1e-3)
    if clients <= AT_ONCE:
        expected = 0.1e-3 - 0.5e-3 * math.log(0.01)
        assert latency_s(scenario, VALUES, 1e6, 0.99)[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("clients", [10, 60, 300])
def test_percentiles_of_all_waiting_clients_beside_the_compiled_engine(clients: int) -> None:
    """The wait and the work as a shifted gamma law: within 2 %, beside 1 % of noise."""
    asked = replace(network(ONE, VALUES, 1.0), traffic=Closed(clients, Deterministic(0.0), {"read": 1.0}))
    report = simulate(asked, 3.1, seed=1, warmup_s=0.1).report("read")

    for level in (0.5, 0.99):
        found = float(latency_s(ArionScenario(clients=clients), VALUES, 1e6, level)[0])
        assert report.intended.quantile_s(level) == pytest.approx(found, rel=0.03)


def test_nothing_bounds_what_streams_wait() -> None:
    scenario = ArionScenario(stream_messages=10)
    for level in (None, 0.5, 0.99):
        assert np.isinf(latency_s(scenario, VALUES, 1e6, level)).all()
    assert SYSTEM.component(ResponseTimes).waiting_clients(scenario) is None
    assert SYSTEM.component(ResponseTimes).waiting_clients(ONE) == ONE.clients


def test_percentiles_rise_and_stand_around_the_mean() -> None:
    found = [latency_s(ONE, VALUES, 30_000.0, level)[0] for level in (0.5, 0.9, 0.99, 0.999)]

    assert found == sorted(found)
    assert found[0] < latency_s(ONE, VALUES, 30_000.0, None)[0] < found[1]


def test_a_master_near_saturation_settles_slowly() -> None:
    calm, busy, full = (float(settling_s(ONE, VALUES, np.array(rate))) for rate in (1000.0, 35_000.0, 50_000.0))

    assert calm < busy < 1.0 < full < 1000.0


def test_a_watch_takes_its_records_by_hand() -> None:
    values: Values = {**VALUES, "hazelcast_record_s": 5e-6, "master_record_s": 7e-6}

    assert watch_s(values, direct=True) == pytest.approx(0.5)
    assert watch_s(values) == pytest.approx(1.2)
    assert watch_s(values, records=1000) == pytest.approx(0.012)
