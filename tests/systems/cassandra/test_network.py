"""The network of a Cassandra cluster: what its capacity and its latency follow."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, gamma

from capplan.calibration.tables.solved_rows import solved_rows
from capplan.layout.table_rows import Load, TableRow
from capplan.models.language.distribution import Deterministic
from capplan.models.language.parameter import Values, defaults
from capplan.models.language.scenario import changed
from capplan.models.language.traffic import Closed
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.closed_clients import solve_clients
from capplan.models.solver.operating_point import solve
from capplan.simulator.engine import simulate
from capplan.systems.cassandra import SYSTEM, at_clients
from capplan.systems.cassandra.network import GENERATOR_LANES, load_test_network, network
from capplan.systems.cassandra.priors import PARAMETERS
from capplan.systems.cassandra.rows import excess
from capplan.systems.cassandra.scenario import CassandraScenario

VALUES: Values = {**defaults(PARAMETERS), "generator_s": 1e-7, "node_exponent": 1.0, "core_exponent": 1.0}
WRITES = CassandraScenario(cass_nodes=6, rf=1, read_fraction=0.0)
READS = CassandraScenario(cass_nodes=6, rf=5, read_fraction=1.0, consistency_read="ONE")


def capacity(scenario: CassandraScenario, **values: Any) -> float:
    """Return the highest rate, per second."""
    return float(Analysis(network(scenario, {**VALUES, **values}, 1.0)).drift_per_s[0])


def unloaded_s(scenario: CassandraScenario, **values: Any) -> float:
    """Return the mean response of a single request."""
    analysis = Analysis(network(scenario, {**VALUES, **values}, 1.0))
    return float(analysis.averaged(analysis.unloaded)[0])


def test_each_replica_of_a_write_costs_the_same_work() -> None:
    """So the capacity is in proportion to 1 / (c + r RF), exactly."""
    times = [1 / capacity(changed(WRITES, rf=rf)) for rf in range(1, 7)]
    assert np.diff(times) == pytest.approx(times[1] - times[0])


def test_each_replica_that_a_read_asks_costs_work_and_others_cost_none() -> None:
    """Whatever the replication factor; what differs is how often the coordinator is a replica itself."""
    one, two, three = (1 / capacity(changed(READS, consistency_read=level)) for level in ("ONE", "TWO", "THREE"))
    assert three - two == pytest.approx(two - one)
    assert three > two > one
    assert capacity(changed(READS, rf=2)) == pytest.approx(capacity(READS))


def test_nodes_that_share_a_machine_carry_what_its_cores_do() -> None:
    """Reads of one replica cost the same on any number of nodes, and each replica of a write costs the same work."""
    reads, writes = (changed(each, one_host=True, token_aware=True) for each in (READS, WRITES))
    alone = capacity(changed(reads, cass_nodes=1, rf=1))
    assert capacity(changed(reads, cass_nodes=3, rf=3)) == pytest.approx(alone)
    times = [1 / capacity(changed(writes, cass_nodes=count, rf=count)) for count in range(1, 5)]
    assert np.diff(times) == pytest.approx(times[1] - times[0])
    assert times[1] > times[0]


def test_sharing_a_machine_lengthens_no_request_without_load() -> None:
    assert unloaded_s(changed(WRITES, one_host=True)) == pytest.approx(unloaded_s(WRITES))


def test_nodes_in_use_take_cores_from_each_other_and_idle_ones_do_not() -> None:
    """Each adds the same work to a request; reads that stay in the data centre of the clients use its nodes only."""
    reads = changed(READS, one_host=True, token_aware=True, rf=1, consistency_read="LOCAL_ONE")
    times = [1 / capacity(changed(reads, cass_nodes=count), neighbour_s=1e-4) for count in (1, 2, 3)]
    assert np.diff(times) == pytest.approx(times[1] - times[0])
    assert times[1] > 1.1 * times[0]
    apart = changed(reads, dcs=2, cass_nodes=1, client_share=(1.0, 0.0))
    assert 1 / capacity(apart, neighbour_s=1e-4) == pytest.approx(times[0])


def test_requests_under_way_share_wake_ups() -> None:
    """A request without load takes so much longer: all of it alone, half of it with three others."""
    layout = changed(WRITES, one_host=True)
    values = {**VALUES, "wake_s": 0.4e-3}

    def longer_s(under_way: float) -> float:
        own = at_clients(values, np.array([under_way]), False)
        return unloaded_s(layout, **own) - unloaded_s(layout)

    assert longer_s(1) == pytest.approx(0.4e-3)
    assert longer_s(4) == pytest.approx(0.2e-3)


def test_an_exchange_with_another_node_wakes_threads_and_a_write_that_nobody_waits_for_does_not() -> None:
    values = {**VALUES, "exchange_s": 0.4e-3}

    def longer_s(level: str) -> float:
        layout = changed(WRITES, one_host=True, cass_nodes=3, rf=3, token_aware=True, consistency_write=level)
        own = at_clients(values, np.array([4.0]), False)
        return unloaded_s(layout, **own) - unloaded_s(layout)

    assert longer_s("LOCAL_ONE") == pytest.approx(0.0, abs=1e-9)
    assert longer_s("QUORUM") == pytest.approx(0.2e-3)
    assert longer_s("ALL") == pytest.approx(0.4e-3)


def test_open_requests_share_the_wake_ups_of_as_many_as_are_under_way() -> None:
    """At the rate and the mean response found, Little's law gives the number for which the network was solved."""
    layout = CassandraScenario(cass_nodes=1, rf=1, read_fraction=0.0, one_host=True, node_cores=2)
    values = {**VALUES, "wake_s": 0.3e-3}
    row = TableRow("1", None, layout, Load("open", rate_per_s=2000.0), {})
    [found] = solved_rows(SYSTEM, [row], values, [("latency_mean_ms",)])
    mean_s = float(found.figures["latency_mean_ms"][0]) / 1e3
    at_once = at_clients(values, np.array([2000.0 * mean_s]), True)
    point = solve(Analysis(network(layout, at_once, 1.0)), np.array([[2000.0]]))
    assert mean_s == pytest.approx(float(point.response_s("write")[0, 0]), rel=0.02)


def test_a_load_generator_limits_its_test_and_not_a_service() -> None:
    """Its lanes, each busy with a request for a millisecond, complete so many at most; the answer takes as long."""
    values = {**VALUES, "generator_s": 1e-3}
    tested, service = (Analysis(found(WRITES, values, 1.0)) for found in (load_test_network, network))
    assert float(tested.drift_per_s[0]) == pytest.approx(GENERATOR_LANES / 1e-3)
    assert float(service.drift_per_s[0]) == pytest.approx(capacity(WRITES))
    assert float(service.averaged(service.unloaded)[0]) == pytest.approx(float(tested.averaged(tested.unloaded)[0]))


@pytest.mark.parametrize("field", ["cass_nodes", "node_cores"])
def test_twice_the_nodes_or_cores_carry_twice_as_much_and_answer_no_faster(field: str) -> None:
    twice = changed(WRITES, token_aware=True, **{field: 2 * int(getattr(WRITES, field))})
    assert capacity(twice) == pytest.approx(2 * capacity(WRITES), rel=1e-6)
    assert unloaded_s(twice) == pytest.approx(unloaded_s(WRITES), rel=1e-6)


def test_a_higher_level_takes_longer_and_a_token_aware_driver_takes_less() -> None:
    """A quorum waits for the second of three replicas; a coordinator that is a replica needs no hop."""
    three = changed(WRITES, rf=3)
    levels = [unloaded_s(changed(three, consistency_write=level)) for level in ("LOCAL_ONE", "LOCAL_QUORUM", "ALL")]
    assert levels == sorted(levels)
    assert unloaded_s(changed(three, token_aware=True)) < unloaded_s(changed(three, token_aware=False))


def test_answers_from_another_data_centre_take_a_round_trip_and_what_it_varies_by() -> None:
    """The second fastest of three answers, each with an exponential time for each way; none nearby."""
    far = changed(WRITES, dcs=2, rf=3, rtt="50ms")
    each = changed(far, consistency_write="EACH_QUORUM")
    assert unloaded_s(far) < 0.01
    assert 0.05 < unloaded_s(each, wan_extra=1e-9) < 0.06
    varying_s = unloaded_s(each, wan_extra=1.0) - unloaded_s(each, wan_extra=1e-9)
    second = quad(lambda t: binom.cdf(1, 3, gamma.cdf(t, 2)), 0, 50)[0]
    assert varying_s == pytest.approx(0.025 * second, rel=0.02)


def test_nodes_that_send_at_once_answer_within_a_twentieth_of_the_round_trip() -> None:
    """Otherwise Nagle's algorithm holds messages for a round trip in all, as in Cassandra's own settings."""
    far = changed(READS, dcs=2, rf=3, rtt="50ms", consistency_read="QUORUM")
    at_once = changed(far, tcp_nodelay=True)
    assert unloaded_s(at_once) - unloaded_s(far, wan_extra=1e-9) < 0.0025
    assert unloaded_s(far) - unloaded_s(at_once) == pytest.approx(0.05, rel=0.05)
    assert changed(READS, tcp_nodelay=True).without_effect() == (
        "tcp_nodelay has no effect: the layout has one data centre",
    )


def test_a_read_that_needs_one_replica_of_another_data_centre_waits_for_its_round_trip() -> None:
    """The fourth of six replicas answers last; two exponential times of 25 ms on average are 50 ms."""
    far = changed(READS, dcs=2, rf=3, rtt="50ms", consistency_read="QUORUM")
    assert 0.05 < unloaded_s(far, wan_extra=1e-9) < 0.06
    assert unloaded_s(far, wan_extra=1.0) - unloaded_s(far, wan_extra=1e-9) == pytest.approx(0.05, rel=0.02)


def test_cold_caches_large_rows_and_tls_cost_time_and_capacity() -> None:
    """Each alone; a cold cache keeps a read longer, but only reads."""
    for worse in ({"row_bytes": 8192.0}, {"encryption": "client+internode"}, {"cache_state": "cold"}):
        assert unloaded_s(changed(READS, **worse)) > unloaded_s(READS)
        assert capacity(changed(READS, **worse)) < capacity(READS)
    assert unloaded_s(changed(WRITES, cache_state="cold")) == unloaded_s(WRITES)


@pytest.mark.parametrize(
    ("state", "data_gib", "share"),
    [("warm", 200.0, 0.75), ("mixed", 200.0, 0.875), ("cold", 200.0, 1), ("warm", 40.0, 0)],
)
def test_reads_miss_what_the_page_cache_has_no_room_for(state: str, data_gib: float, share: float) -> None:
    """In proportion, as keys are equally likely: a read of one replica takes the same share of a cold one's excess."""
    one = changed(READS, consistency_read="LOCAL_ONE")
    full = changed(one, cache_state=state, data_gib=data_gib, cache_gib=50.0)
    warm_s, cold_s = unloaded_s(one), unloaded_s(changed(one, cache_state="cold"))
    assert full.cold_share() == share
    assert unloaded_s(full) == pytest.approx(warm_s + share * (cold_s - warm_s))
    writes = changed(WRITES, data_gib=data_gib, cache_gib=50.0)
    assert unloaded_s(writes) == unloaded_s(WRITES)


def test_data_without_a_page_cache_move_no_figure_and_say_so() -> None:
    """And the reverse; nor do both where all reads go to disk anyway, or none."""
    for field, other in (("data_gib", "cache_gib"), ("cache_gib", "data_gib")):
        alone = changed(READS, **{field: 200.0})
        assert capacity(alone) == capacity(READS)
        assert other in " ".join(alone.without_effect())
    sizes = {"data_gib": 200.0, "cache_gib": 50.0}
    for same in (changed(READS, cache_state="cold"), WRITES):
        both = changed(same, **sizes)
        assert capacity(both) == capacity(same)
        assert "data_gib and cache_gib" in " ".join(both.without_effect())
        assert not excess(both, ())
    assert not changed(READS, **sizes).without_effect()
    assert excess(changed(READS, **sizes), ())


@pytest.mark.parametrize("token_aware", [True, False])
def test_closed_clients_are_solved_as_they_are_simulated(token_aware: bool) -> None:
    """Throughput of 30,000 requests, whose standard error is 0.6 %: a right solver fails once in a thousand times."""
    scenario = changed(WRITES, cass_nodes=3, node_cores=2, rf=3, token_aware=token_aware, read_fraction=0.5)
    composed = network(scenario, VALUES, 1.0)
    closed = replace(composed, traffic=Closed(32, Deterministic(0.0), composed.traffic.mix))
    solved = float(solve_clients(Analysis(closed)).rate_per_s[0, 0])
    run = simulate(closed, 30_000 / solved, warmup_s=500 / solved, seed=1)
    assert solved == pytest.approx(run.throughput_per_s(), rel=0.05)  # of which the solver's own error is 3 %
