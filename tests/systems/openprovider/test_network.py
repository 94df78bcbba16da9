"""The network of `openprovider`: its load by hand, its layout, and the analytic solver against a simulation."""

import numpy as np
import pytest

from capplan.models.language.network import Network
from capplan.models.language.parameter import Values, defaults
from capplan.models.language.per_dc import by_dc
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import capacity_per_s, peak_ratio, solve
from capplan.simulator.compiled.engine import simulate
from capplan.systems.components.data_factor import factors
from capplan.systems.openprovider.network import REPORTED, network
from capplan.systems.openprovider.priors import PARAMETERS
from capplan.systems.openprovider.scenario import OpenproviderScenario

VALUES: Values = {**defaults(PARAMETERS), "burst_excess": 1e-9}  # as good as Poisson: short runs are steady
READS, WRITES = 7 / 8, 7 / 8  # per message: all but the start read, all but the authorization write


def system(scenario: OpenproviderScenario, rate_per_s: float = 1000.0, **changes: float) -> Network:
    return network(scenario, {**VALUES, **changes}, rate_per_s)


def node_seconds(scenario: OpenproviderScenario, contacted: float, dc: int, **changes: float) -> float:
    """Core seconds of one node for one message of all: reads stay local, writes go to every replica everywhere."""
    v = {**VALUES, **changes}
    nodes, share, factor = scenario.nodes_by_dc()[dc], scenario.shares_by_dc()[dc], factors(scenario.data_factor)[0]
    unseen = 1 + v["unseen_work"]
    coordinated = (READS + WRITES) * v["coordinator_s"] * share / nodes
    read = READS * contacted * v["replica_read_s"] * factor * unseen * share / nodes
    written = WRITES * scenario.rf_by_dc()[dc] * v["mutation_s"] * factor * unseen / nodes
    return float(coordinated + read + written)


@pytest.mark.parametrize(
    ("scenario", "contacted"),
    [
        (OpenproviderScenario(dcs=1), 2.1),  # LOCAL_QUORUM, and the third with the read-repair chance
        (OpenproviderScenario(dcs=3), 2.1),
        (OpenproviderScenario(dcs=3, cass_nodes=6), 2.1),
        (OpenproviderScenario(dcs=2, consistency_read="LOCAL_ONE"), 1.2),
        (OpenproviderScenario(dcs=2, rf=1), 1.0),
        (OpenproviderScenario(dcs=2, data_factor=2.5), 2.1),
        (
            OpenproviderScenario(dcs=2, consistency_read="QUORUM", consistency_write="EACH_QUORUM"),
            4.0,
        ),  # of 6, shared by symmetry
        (OpenproviderScenario(cass_nodes=(6, 4, 3)), 2.1),
        (OpenproviderScenario(client_share=(0.5, 0.3, 0.2)), 2.1),
        (OpenproviderScenario(client_share=(0.75, 0.25, 0.0), front_nodes=(2, 1, 0)), 2.1),
        (
            OpenproviderScenario(cass_nodes=(4, 3), rf=(3, 2), client_share=(0.9, 0.1), consistency_read="LOCAL_ONE"),
            (1.2, 1.1),
        ),
    ],
)
def test_load_of_each_node_by_hand(scenario: OpenproviderScenario, contacted: float | tuple[float, ...]) -> None:
    analysis = Analysis(system(scenario, message_share=0.0))
    storage_s, reads = float(VALUES["storage_s"]) * factors(scenario.data_factor)[0], by_dc(contacted, scenario.dcs)
    for dc, (nodes, rf) in enumerate(zip(scenario.nodes_by_dc(), scenario.rf_by_dc(), strict=True)):
        cores, storage = (f"{kind}/dc{dc + 1}" for kind in ("cassandra", "cassandra-storage"))
        expected = node_seconds(scenario, reads[dc], dc) / OpenproviderScenario().node_cores
        assert float(analysis.load(cores)[0]) == pytest.approx(expected, rel=1e-9)
        assert float(analysis.load(storage)[0]) == pytest.approx(WRITES * rf * storage_s / nodes, rel=1e-9)
        assert analysis.members[cores] == analysis.members[storage] == nodes


@pytest.mark.parametrize(("dcs", "nodes"), [(1, 3), (1, 6), (2, 3), (3, 3), (3, 6), (3, 64)])
def test_messages_between_nodes_by_hand(dcs: int, nodes: int) -> None:
    """Each replica that is not the coordinator is sent one message and answers it; all have two ends."""
    scenario = OpenproviderScenario(dcs=dcs, cass_nodes=nodes)
    own = 3 / nodes  # how often the coordinator is a replica
    ends = 4 * (READS * (2.1 - own) + WRITES * (3 * dcs - own))
    with_, without = (Analysis(system(scenario, message_share=share)) for share in (0.05, 0.0))
    more_s = (
        OpenproviderScenario().node_cores
        * nodes
        * dcs
        * float((with_.load("cassandra/dc1") - without.load("cassandra/dc1"))[0])
    )
    assert more_s == pytest.approx(ends * 0.05 * float(VALUES["mutation_s"]), rel=1e-9)


def test_with_more_nodes_fewer_coordinators_hold_a_replica_so_capacity_grows_by_less() -> None:
    """The storage path does not coordinate, so it is taken out of the way."""
    few, many = (
        capacity(OpenproviderScenario(dcs=3, cass_nodes=nodes), storage_s=1e-6, message_share=0.1) for nodes in (3, 6)
    )
    assert 1.9 < many / few < 1.99


def test_front_nodes_share_the_messages_and_a_proxy_doubles_those_of_accounting() -> None:
    plain, proxied = (Analysis(system(OpenproviderScenario(dcs=2, proxy=proxy))) for proxy in (False, True))
    loads = [float(plain.load(name)[0]) for name in plain.demands if name.startswith("front/")]
    assert loads == pytest.approx([float(VALUES["front_s"]) / 32 / 4] * 2)
    # The forwarding of 1:7 is 15/8 of the messages, though the document says twice.
    assert float(proxied.load("front/dc1")[0]) == pytest.approx(loads[0] * 15 / 8)


def test_ldap_delays_authorization_alone_but_for_the_profile_in_the_row() -> None:
    plain, asked, cached = (
        solve(Analysis(system(OpenproviderScenario(ldap=ldap), profile_excess=excess)), 100.0)
        for ldap, excess in ((False, 0.5), (True, 0.0), (True, 0.5))
    )
    delay_s = float(VALUES["ldap_s"])
    difference = {name: float((asked.response_s(*c) - plain.response_s(*c))[0]) for name, c in REPORTED.items()}
    assert difference["auth"] == pytest.approx(delay_s, rel=0.02)
    assert difference["acct"] == pytest.approx(0.0, abs=0.01 * delay_s)
    more = float((cached.response_s("update") - asked.response_s("update"))[0])
    read_s = float((asked.response_s("auth") - delay_s)[0]) - float(VALUES["front_s"]) - 4 * float(VALUES["lan_s"])
    assert 0.4 * read_s < more < 0.6 * read_s  # half of the waited-for read, coordination aside
    assert float((cached.response_s("start") - asked.response_s("start"))[0]) == pytest.approx(0.0, abs=1e-5)


def test_the_offered_rate_is_the_peak_and_bursts_have_it() -> None:
    model = system(OpenproviderScenario(), 1100.0, burst_excess=0.1)
    assert model.traffic.rate_per_s == pytest.approx(1000.0)  # type: ignore[union-attr]  # open traffic
    assert float(peak_ratio(Analysis(model))[0]) == pytest.approx(1.1)


def test_a_lost_data_centre_has_no_policing_nodes_and_gets_no_writes() -> None:
    model = network(OpenproviderScenario(), {**VALUES, "message_share": 0.0}, 1000.0, (0, 0, 3))
    assert not [each.name for each in model.stations if "dc3" in each.name]
    assert not [each.name for each in model.pools if "dc3" in each.name]
    survivors = Analysis(model)
    assert float(survivors.load("cassandra/dc1")[0]) == pytest.approx(
        node_seconds(OpenproviderScenario(dcs=2), 2.1, 0) / OpenproviderScenario().node_cores, rel=1e-9
    )


def capacity(scenario: OpenproviderScenario, **changes: float) -> float:
    return float(capacity_per_s(Analysis(system(scenario, **changes)), 1e-3)[0])


def test_capacity_grows_with_data_centres_nodes_and_workers() -> None:
    """The storage path, which serves one mutation after another and all everywhere, is taken out of the way."""
    fast = {"storage_s": 1e-6}
    base = capacity(OpenproviderScenario(dcs=2), **fast)
    assert base > 0
    for better in ({"dcs": 3}, {"cass_nodes": 4}, {"front_workers": 128}, {"rf": 2}, {"consistency_read": "LOCAL_ONE"}):
        assert capacity(OpenproviderScenario(**{"dcs": 2, **better}), **fast) > base  # type: ignore[arg-type]  # fields of many types
    for worse in ({"dcs": 1}, {"data_factor": 2.0}, {"front_workers": 8}, {"consistency_read": "QUORUM"}):
        assert capacity(OpenproviderScenario(**{"dcs": 2, **worse}), **fast) < base  # type: ignore[arg-type]  # fields of many types


def test_the_storage_path_bounds_the_capacity_whatever_the_number_of_data_centres() -> None:
    """Every mutation passes every node's storage path when nodes = RF."""
    bound = 1 / (WRITES * 0.0005)
    assert [capacity(OpenproviderScenario(dcs=dcs), storage_s=0.0005) for dcs in (2, 3)] == pytest.approx(
        [bound] * 2, rel=1e-4
    )


@pytest.mark.parametrize("dcs", [1, 2])
def test_the_analytic_solver_agrees_with_simulation_below_capacity(dcs: int) -> None:
    """At 85 % of capacity: means within 8 %, p95 within 20 %, utilisation within 1.5 %; the seed is fixed.

    12,000 requests are 1,500 sessions, whose number alone scatters by 2.6 %, so both are compared at the rate that
    came. Then the standard error of a mean is about 1 %, of a p95 about 2 %.
    """
    scenario = OpenproviderScenario(dcs=dcs)
    rate = 0.85 * capacity(scenario)
    model = system(scenario, rate)
    analysis = Analysis(model)
    run = simulate(model, 0.3 + 12_000 / rate, seed=2026, warmup_s=0.3, trace=True)
    came = float(run.measured().sum()) / run.window_s
    assert came == pytest.approx(rate, rel=0.08)
    point = solve(analysis, came)
    for classes in REPORTED.values():
        latencies = np.concatenate([run.latencies_s(name) for name in classes])
        assert float(point.response_s(*classes)[0]) == pytest.approx(float(latencies.mean()), rel=0.08)
        assert float(point.quantile_s(0.95, *classes)[0]) == pytest.approx(float(np.quantile(latencies, 0.95)), rel=0.2)
    nodes = [report.utilisation for name, report in run.stations.items() if name.startswith("cassandra/")]
    assert float(analysis.load("cassandra/dc1")[0]) * came == pytest.approx(float(np.mean(nodes)), rel=0.015)
    assert run.drop_rate() < 1e-3


def test_without_a_data_centre_the_others_take_over_in_proportion() -> None:
    scenario = OpenproviderScenario(dcs=3, client_share=(0.5, 0.3, 0.2))
    left = Analysis(network(scenario, VALUES, 1000.0, (3, 0, 0)))
    alone = Analysis(system(OpenproviderScenario(dcs=2, client_share=(0.6, 0.4))))

    for now, then in (("2", "1"), ("3", "2")):
        for kind in ("cassandra", "front"):
            assert float(left.load(f"{kind}/dc{now}")[0]) == pytest.approx(
                float(alone.load(f"{kind}/dc{then}")[0]), rel=1e-9
            )
