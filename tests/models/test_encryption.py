"""Encrypted links on systems with Cassandra: counted by hand on small clusters, and laws on whole systems."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.clusters import cluster

from capplan.errors import InputError
from capplan.models.cassandra.cluster import Cluster, Costs, pools, statement, stations
from capplan.models.cassandra.encryption import (
    CLIENT_S,
    INTERNODE_S,
    LINKS,
    End,
    Exchanges,
    check_encryption,
    encrypted,
)
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values, defaults
from capplan.models.language.scenario import Scenario, changed
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import MAX_DROP_RATE, capacity_per_s
from capplan.systems.openprovider.scenario import OpenproviderScenario
from capplan.systems.registry import system
from capplan.systems.rhino_shcm.network import CORES, network, remote_replicas, saturation_per_s
from capplan.systems.rhino_shcm.priors import PARAMETERS as RHINO_PARAMETERS
from capplan.systems.rhino_shcm.scenario import RhinoShcmScenario
from capplan.systems.vcider.scenario import VciderScenario

PLAIN = Costs(coordinator=1.0, read=2.0, mutation=3.0, unseen=0.5, storage=1.0)
COSTS = {CLIENT_S: 1.2e-3, INTERNODE_S: 2e-4}
LAYOUTS: list[Scenario] = [
    OpenproviderScenario(dcs=1),
    OpenproviderScenario(dcs=3, cass_nodes=4),
    OpenproviderScenario(dcs=2, consistency_read="QUORUM", consistency_write="EACH_QUORUM", data_factor=2.0),
    OpenproviderScenario(dcs=2, ldap=True),
    RhinoShcmScenario(),
    RhinoShcmScenario(cass_nodes=5),
    RhinoShcmScenario(colocated=True, cache=False),
    RhinoShcmScenario(cass_nodes=4, colocated=True),
]


def layout(scenario: Scenario) -> str:
    usual = vars(type(scenario)())
    return (
        " ".join(f"{name}={value}" for name, value in scenario.given().items() if value != usual.get(name)) or "usual"
    )


def added(where: Cluster, level: str, operation: str, links: Exchanges) -> dict[str, float]:
    """Core seconds that encryption adds to a statement, by data centre."""
    total: Counter[str] = Counter()
    for costs, sign in ((replace(PLAIN, links={operation: links}), 1), (PLAIN, -1)):
        flow, traffic = statement(where, costs, 0, level, operation), Open(1.0, {"ask": 1.0})
        network = Network("small", stations(where), (RequestClass("ask", flow),), traffic, pools=pools(where))
        for name, work in Analysis(network).demands.items():
            if name.startswith("cassandra/"):
                dc = name.removeprefix("cassandra/")
                total[dc] += sign * float(work.mean_s) * where.nodes[int(dc[2:]) - 1]  # type: ignore[assignment]  # counters add floats
    return {dc: round(float(seconds), 9) for dc, seconds in total.items()}


@pytest.mark.parametrize(
    ("nodes", "rf", "level", "operation", "exchanges"),
    [
        # ends of an exchange, two for each replica that is not the coordinator
        ((3,), 3, "ALL", "write", {"dc1": 4.0}),
        ((3,), 3, "ONE", "write", {"dc1": 4.0}),  # all replicas get it, whatever the level
        ((1,), 1, "ONE", "write", {"dc1": 0.0}),
        ((4,), 1, "ONE", "write", {"dc1": 1.5}),  # three of four coordinators are no replica
        ((3,), 3, "ALL", "read", {"dc1": 4.0}),
        ((4,), 3, "QUORUM", "read", {"dc1": 2 * (1.25 + 0.1)}),  # 1 or 2 elsewhere, and the third by read repair
        # to another data centre: there, an answer from each, passed on to two peers
        ((3, 3), 3, "QUORUM", "write", {"dc1": 4 + 0.5 + 1.5, "dc2": 0.5 + 1.0 + 0.5 + 2 * 1.0}),
        ((1, 1), 1, "ALL", "write", {"dc1": 0.5 + 0.5, "dc2": 0.5 + 0.5}),
        ((1, 1), 1, "ALL", "read", {"dc1": 1.0, "dc2": 1.0}),
    ],
)
def test_work_on_links_between_nodes_by_hand(
    nodes: tuple[int, ...], rf: int, level: str, operation: str, exchanges: dict[str, float]
) -> None:
    found = added(cluster(*nodes, rf=rf), level, operation, Exchanges(internode=0.1))

    assert found == pytest.approx({dc: 0.1 * count for dc, count in exchanges.items()}, abs=1e-8)


@pytest.mark.parametrize("operation", ["read", "write"])
def test_work_on_client_links_is_one_exchange_of_the_coordinator(operation: str) -> None:
    found = added(cluster(3, 3, rf=3), "QUORUM", operation, Exchanges(client=0.5))

    assert {dc: seconds for dc, seconds in found.items() if seconds} == {"dc1": pytest.approx(0.5)}


def _there(scenario: Scenario) -> list[str]:
    """Return the words for encrypted links that the layout has: those between nodes take two."""
    alone = isinstance(scenario, RhinoShcmScenario) and scenario.nodes == 1
    return [each for each in LINKS if not (alone and each == "internode")]


def capacity(scenario: Scenario, shares: Values) -> float:
    made = system(scenario.system)
    analysis = Analysis(made.network(scenario, {**defaults(made.parameters), **shares}, 1.0))
    return float(capacity_per_s(analysis, MAX_DROP_RATE)[0])


@pytest.mark.parametrize("scenario", LAYOUTS, ids=layout)
def test_encryption_never_raises_a_capacity_and_more_of_it_costs_more(scenario: Scenario) -> None:
    plain = capacity(scenario, {})
    found = {each: capacity(changed(scenario, encryption=each), COSTS) for each in _there(scenario)}

    assert found["client"] < plain
    assert found.get("internode", plain) <= plain
    assert found["client+internode"] <= min(found.values()) * (1 + 1e-6)
    for each in found:
        dearer = {name: 1.5 * share for name, share in COSTS.items()}
        assert capacity(changed(scenario, encryption=each), dearer) <= found[each] * (1 + 1e-6)


@pytest.mark.parametrize("scenario", LAYOUTS, ids=layout)
def test_encryption_never_makes_an_answer_faster(scenario: Scenario) -> None:
    """Each class alone in the system, and at a quarter of the plain capacity, in the analytic solver."""
    its = system(scenario.system)
    rate = capacity(scenario, {}) / 4

    def times(encryption: str | None) -> list[float]:
        asked = changed(scenario, encryption=encryption)
        analysis = Analysis(its.network(asked, {**defaults(its.parameters), **COSTS}, 1.0))
        return [float(time.flat[0]) for at in (0.0, rate) for time, *_ in analysis.response_at(np.array([at])).values()]

    for encryption in _there(scenario):
        for with_it, without in zip(times(encryption), times(None), strict=True):
            assert with_it >= without * (1 - 1e-9)


@settings(max_examples=20)
@given(st.integers(2, 5), st.sampled_from(["LOCAL_ONE", "LOCAL_QUORUM"]))
def test_more_replicas_cost_more_with_encryption_between_nodes(nodes: int, level: str) -> None:
    def work(rf: int, operation: str) -> float:
        levels = {"read": level, "write": "QUORUM"}
        return sum(added(cluster(nodes, nodes, rf=rf), levels[operation], operation, Exchanges(internode=0.1)).values())

    written = [work(rf, "write") for rf in range(1, nodes + 1)]
    assert written == sorted(written)
    assert len(set(written)) == len(written)


@pytest.mark.parametrize(
    ("scenario", "ends"),
    [
        (RhinoShcmScenario(), 1.0),  # the application's end
        (RhinoShcmScenario(colocated=True), 2.0),  # and Cassandra's
        (RhinoShcmScenario(cass_nodes=4, colocated=True), 1.25),  # Cassandra's, where it coordinates
    ],
)
def test_the_application_s_server_works_on_its_ends_of_client_links(scenario: RhinoShcmScenario, ends: float) -> None:
    values = {**defaults(RHINO_PARAMETERS), **COSTS}
    asked = changed(scenario, encryption="client")

    more_s = 1 / saturation_per_s(asked, values) - 1 / saturation_per_s(scenario, values)
    assert more_s == pytest.approx(ends * COSTS[CLIENT_S] / CORES)


@pytest.mark.parametrize("nodes", [1, 3, 5])
def test_cassandra_s_own_servers_work_on_their_ends(nodes: int) -> None:
    """Both ends of each exchange between nodes, and one of the client's; 2.4 of 3 replicas are remote with five nodes.

    A node has `1 / nodes` of the coordination.
    """
    plain = RhinoShcmScenario(cass_nodes=nodes)
    values = {**defaults(RHINO_PARAMETERS), **COSTS}
    asked = changed(plain, encryption="client+internode")

    with_it, without = (Analysis(network(each, values, 1.0)) for each in (asked, plain))
    ends_s = COSTS[CLIENT_S] + 2 * remote_replicas(plain) * COSTS[INTERNODE_S]
    more = float(with_it.load("cassandra")[0] - without.load("cassandra")[0])  # of one node
    assert more == pytest.approx(ends_s / CORES / nodes)
    assert remote_replicas(RhinoShcmScenario(cass_nodes=5)) == pytest.approx(2.4)


def test_costs_of_links() -> None:
    assert encrypted(None, {}) == Exchanges()
    assert encrypted("client", COSTS) == Exchanges(client=1.2e-3)
    assert encrypted("client+internode", COSTS) == Exchanges(1.2e-3, 2e-4)
    assert Exchanges(client=0.5).times(2) == Exchanges(client=1.0)
    assert End(0.1, 1e-3).exchange(100) == pytest.approx(0.3)


@pytest.mark.parametrize("scenario", [OpenproviderScenario, RhinoShcmScenario])
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"encryption": "clients"}, ("encryption 'clients'", "'client'")),
        ({"encryption": "client", "vpn": "kernal"}, ("vpn 'kernal'", "'kernel'")),
        ({"vpn": "kernel"}, ("vpn 'kernel'", "encryption")),
        ({"reconnects": 0.1}, ("reconnects 0.1", "encryption 'client'")),
        ({"reconnects": 0.1, "encryption": "internode"}, ("reconnects 0.1", "'client+internode'")),
        ({"reconnects": 0.1, "encryption": "client", "vpn": "kernel"}, ("reconnects 0.1", "vpn 'kernel'")),
        ({"reconnects": 1.5, "encryption": "client"}, ("reconnects", "1.5")),
    ],
)
def test_what_a_scenario_cannot_say_of_encryption(
    scenario: type[Scenario], fields: dict[str, str], words: tuple[str, ...]
) -> None:
    with pytest.raises(InputError) as caught:
        scenario(**fields)

    assert [word for word in words if word not in str(caught.value)] == []
    check_encryption(None, None, 1)


@pytest.mark.parametrize(
    ("scenario", "fields"),
    [
        (RhinoShcmScenario, {"colocated": True}),
        (RhinoShcmScenario, {"cass_nodes": 1}),
        (OpenproviderScenario, {"dcs": 1, "cass_nodes": 1, "rf": 1}),
    ],
)
def test_a_single_node_has_no_links_between_nodes(scenario: Callable[..., Scenario], fields: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="'internode'"):
        scenario(**fields, encryption="internode")
    for links in ("client", "client+internode"):
        assert vars(scenario(**fields, encryption=links))["encryption"] == links


def test_two_data_centres_of_a_node_each_have_a_link_between_nodes() -> None:
    assert OpenproviderScenario(dcs=2, cass_nodes=1, rf=1, encryption="internode").encryption == "internode"


@pytest.mark.parametrize("scenario", [OpenproviderScenario, RhinoShcmScenario, VciderScenario])
def test_links_are_named_in_any_order(scenario: Callable[..., Scenario]) -> None:
    assert scenario(encryption="internode+client") == scenario(encryption="client+internode")
