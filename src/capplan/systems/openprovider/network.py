"""The `openprovider` system: an AAA policy server whose RADIUS servers keep their sessions in Cassandra.

Evidence: source `openprovider`, the vendor's load test on one to three data centres. A session is one authorization,
one accounting start, five interim updates and one stop (`session_mix` has others); messages go to the data centres in
turn. A RADIUS server assigns every message to one of its workers, which reads and writes through local Cassandra nodes.

Hypotheses: the document does not state what a message does in the database. Here an authorization reads one row, an
accounting start writes one, and an interim update or a stop reads one and then writes one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from capplan.errors import InputError
from capplan.models.cassandra.cluster import (
    Cluster,
    Costs,
    pools,
    round_trip_s,
    statement,
    stations,
    to_dcs,
    with_standbys,
)
from capplan.models.cassandra.encryption import Exchanges, encrypted
from capplan.models.language.distribution import Exponential
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.per_dc import proportions
from capplan.models.language.station import Assignment, Pool, Station
from capplan.models.language.step import Acquire, Delay, ForkJoin, Pick, Sequence, Step, Visit
from capplan.models.language.traffic import Bursty, Open, RequestClass, Session
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.pauses import NodePauses, RareDelay, pause_delays, sent_in_pauses
from capplan.systems.components import data_factor
from capplan.systems.components.pauses.nodes import needed_by_operation, paused, pauses_of, relative_needs
from capplan.systems.openprovider.scenario import OpenproviderScenario, sent_sessions

ASSIGNMENT: Assignment = "pooled"  # of requests to cores: decision record 0019
SETTLES_S = 0.2
"""From an empty system: four sessions of 50 ms, and many response times."""
SETTLES_ROUND_TRIPS = 10
"""The same where round trips are long."""
OPERATIONS = {"auth": ("read",), "start": ("write",), "update": ("read", "write")}
"""What each request class does to the database."""
REPORTED = {"auth": ("auth",), "acct": ("start", "update")}
"""Classes of the network, by request class in the document."""

_MOST_IN_BURSTS = 1 - 1e-12  # share of the requests that come in bursts; below 1 by more than rounding


def network(scenario: OpenproviderScenario, values: Values, rate_per_s: Number, down: tuple[int, ...] = ()) -> Network:
    """Compose the network.

    Parameters
    ----------
    scenario : OpenproviderScenario
        The layout.
    values : mapping
        Parameter values by name (SI; numbers, or arrays over draws for the analytic solver).
    rate_per_s : number
        Offered rate in bursts, requests per second over all data centres.
    down : tuple of int
        Number of Cassandra nodes in each data centre that are down; none if left out. A data centre without Cassandra
        nodes has no RADIUS servers.

    Returns
    -------
    Network
        Request classes auth, start and update; see `REPORTED`.
    """
    cluster = build_cluster(scenario, values, down)
    ratio = burst_ratio(scenario, values)
    arrivals = Bursty(ratio, values["burst_fraction"], values["burst_length_s"])
    sent = sent_sessions(scenario.session_mix)
    starts = sum(each.weight for each in sent)
    fronts = {dc: count for dc, count in enumerate(scenario.fronts_by_dc()) if count and cluster.alive[dc]}
    return Network(
        name=scenario.system,
        stations=(
            *(
                Station(_front(dc), scenario.front_cores, "ps", count=count, assignment=ASSIGNMENT)
                for dc, count in fronts.items()
            ),
            *stations(cluster),
        ),
        pools=(*(_workers(scenario, values, dc, count) for dc, count in fronts.items()), *pools(cluster)),
        classes=_classes(scenario, values, cluster),
        sessions=tuple(
            Session(each.name, each.classes, (Exponential(values["gap_s"]),) * (len(each.classes) - 1)) for each in sent
        ),
        traffic=Open(rate_per_s / ratio, {each.name: each.weight / starts for each in sent}, arrivals),
    )


def burst_ratio(scenario: OpenproviderScenario, values: Values) -> Number:
    """Return the ratio of peak to mean rate: as given, or as in the load tests."""
    if scenario.burst_ratio is not None:
        return scenario.burst_ratio
    # Bursts alone can't exceed the mean rate; a fit may propose draws that far out, which explain no load test.
    ratio: Number = np.minimum(1 + values["burst_excess"], _MOST_IN_BURSTS / values["burst_fraction"])
    return ratio


def served(scenario: OpenproviderScenario, cluster: Cluster) -> dict[int, float]:
    """Return the share of clients by data centre, after taking over those of data centres that cannot serve.

    A data centre needs live Cassandra nodes and RADIUS servers. Standbys serve if no other data centre is left.

    Raises
    ------
    InputError
        If no data centre is left.
    """
    left = _able(scenario, cluster)
    if not left:
        raise InputError("no data centre is left that has both RADIUS servers and Cassandra nodes")
    return proportions(scenario.shares_by_dc(), left)


def _able(scenario: OpenproviderScenario, cluster: Cluster) -> list[int]:
    return [dc for dc in cluster.living if scenario.fronts_by_dc()[dc]]


def _classes(scenario: OpenproviderScenario, values: Values, cluster: Cluster) -> tuple[RequestClass, ...]:
    """Return the request classes: each message goes to a RADIUS server in a data centre, which queries Cassandra."""
    levels = scenario.consistency_read, scenario.consistency_write
    shares, costs = served(scenario, cluster), build_costs(scenario, values)
    if scenario.client_share is not None:
        shares = with_standbys(shares, cluster, _able(scenario, cluster), levels)

    def by_dc(each: Costs, level: str, operation: str) -> dict[int, Step]:
        return {dc: statement(cluster, each, dc, level, operation) for dc in shares}

    reads, writes = by_dc(costs, scenario.consistency_read, "read"), by_dc(costs, scenario.consistency_write, "write")
    sessions = reads
    if scenario.ldap:  # the session row caches the profile, because any node may receive the next message
        larger = replace(costs, read=costs.read * (1 + values["profile_excess"]))
        sessions = by_dc(larger, scenario.consistency_read, "read")
    asked = {"auth": (reads,), "start": (writes,), "update": (sessions, writes)}
    found = []
    for name, statements in asked.items():
        fronts = tuple(_at_front(scenario, values, dc, name, tuple(each[dc] for each in statements)) for dc in shares)
        found.append(RequestClass(name, to_dcs(shares, fronts, in_turn=scenario.client_share is None)))
    return tuple(found)


def build_cluster(scenario: OpenproviderScenario, values: Values, down: tuple[int, ...] = ()) -> Cluster:
    """Return a scenario's Cassandra cluster with some nodes down in each data centre."""
    return Cluster(
        nodes=scenario.nodes_by_dc(),
        rf=scenario.rf_by_dc(),
        cores=scenario.node_cores,
        lan_s=values["lan_s"],
        wan_s=_one_way_s(scenario, values),
        down=down,
        assignment=ASSIGNMENT,
    )


def _one_way_s(scenario: OpenproviderScenario, values: Values) -> tuple[tuple[Number, ...], ...]:
    given = scenario.given_rtt_s()
    if given is not None:
        return tuple(tuple(cell / 2 for cell in row) for row in given)
    half = round_trip_s(scenario.distance_m(), 1 + values["route_excess"]) / 2
    return tuple(tuple(0.0 if a == b else half for b in range(scenario.dcs)) for a in range(scenario.dcs))


def build_costs(scenario: OpenproviderScenario, values: Values) -> Costs:
    """Return the costs of operations at a Cassandra node."""
    speed, factor = scenario.node_speed, data_factor.of_values(scenario.data_factor, values)
    return Costs(
        coordinator=values["coordinator_s"] / speed,
        read=values["replica_read_s"] / speed * factor,
        mutation=values["mutation_s"] / speed * factor,
        unseen=values["unseen_work"],
        storage=values["storage_s"] * factor,  # most of it is the disk's
        message=values["message_share"] * values["mutation_s"] / speed,
        links=_links(scenario, values, speed),
    )


def _links(scenario: OpenproviderScenario, values: Values, speed: float) -> dict[str, Exchanges]:
    """Return the encryption costs of one exchange by operation, at a given core speed."""
    return dict.fromkeys(("read", "write"), encrypted(scenario.encryption, values).times(1 / speed))


def pauses(
    scenario: OpenproviderScenario,
    values: Values,
    analysis: Analysis,
    rate_per_s: FloatArray,
    place: NDArray[np.intp] | None,
    down: tuple[int, ...] = (),
) -> dict[str, tuple[RareDelay, ...]]:
    """Return the delays by garbage-collection pauses of Cassandra nodes, by class of the network.

    `down` is as for `network`.
    """
    cluster = build_cluster(scenario, values, down)
    shares = served(scenario, cluster)
    stations = [f"cassandra/dc{dc + 1}" for dc in shares]
    utilisation = np.minimum(rate_per_s * np.average([analysis.load(each) for each in stations], axis=0), 1.0)
    needed = needed_by_operation(scenario, cluster, shares)
    period_s, nodes = analysis.averaged(analysis.unloaded), sum(cluster.alive)
    if place is not None:
        rate_per_s, utilisation, period_s = rate_per_s[..., place], utilisation[..., place], period_s[..., place]
    stops = pauses_of(scenario, cluster, shares, values, rate_per_s)
    found: list[tuple[str, Number, Number]] = []
    for each in sent_sessions(scenario.session_mix):  # each waits at its first statement that meets one
        met = [(name, needed[operation]) for name in each.classes for operation in OPERATIONS[name]]
        between_s = (period_s + values["gap_s"]) * len(each.classes) / len(met)
        sent = sent_in_pauses([need / nodes for _, need in met], between_s, stops)
        found += [(name, each.weight * need, here) for (name, need), here in zip(met, sent, strict=True)]
    work = _weighted([(weight, here) for _, weight, here in found])
    own: dict[str, list[tuple[Number, Number]]] = {
        each: [(weight, here) for name, weight, here in found if name == each] for each in OPERATIONS
    }
    nodes_of = {name: sum(needed[each] for each in OPERATIONS[name]) for name, parts in own.items() if parts}
    costs = build_costs(scenario, values)
    asked = {name: dict.fromkeys(OPERATIONS[name], costs) for name in nodes_of}
    relative_need = relative_needs(scenario, cluster, shares, asked, analysis, "cassandra", place)
    return {
        name: pause_delays(stops, utilisation, count, work, _weighted(own[name]), relative_need[name])
        for name, count in nodes_of.items()
    }


def node_pauses(scenario: OpenproviderScenario, values: Values, rate_per_s: Number) -> NodePauses:
    """Return the pauses of a mean node at a mean rate."""
    cluster = build_cluster(scenario, values)
    return pauses_of(scenario, cluster, served(scenario, cluster), values, rate_per_s)


def paused_network(scenario: OpenproviderScenario, values: Values, rate_per_s: float) -> Network:
    """Compose the network for a simulation, with the pauses of Cassandra nodes; `rate_per_s` is that in bursts."""
    stops = node_pauses(scenario, values, rate_per_s / burst_ratio(scenario, values))
    return paused(network(scenario, values, rate_per_s), "cassandra", stops)


def _weighted(parts: list[tuple[Number, Number]]) -> Number:
    """Return the weighted mean of values."""
    mean: Number = sum(weight * value for weight, value in parts) / sum(weight for weight, _ in parts)
    return mean


def _front_s(scenario: OpenproviderScenario, values: Values, name: str) -> Number:
    """Return the service demand of a message at a RADIUS server, including its end of encrypted links to Cassandra."""
    links = _links(scenario, values, scenario.front_speed)
    exchanges = [links[operation].client for operation in OPERATIONS[name]]
    return values["front_s"] / scenario.front_speed + sum((each for each in exchanges if each is not None), 0.0)


def _at_front(scenario: OpenproviderScenario, values: Values, dc: int, name: str, statements: tuple[Step, ...]) -> Step:
    own = Visit(_front(dc), Exponential(_front_s(scenario, values, name)), name="front-cpu", member="front")
    ldap = (Delay(Exponential(values["ldap_s"]), name="ldap"),) if scenario.ldap and name == "auth" else ()
    sent: tuple[Step, ...] = ()
    if scenario.proxy and name != "auth":
        forwarded = Visit(
            _front(dc), Exponential(values["front_s"] / scenario.front_speed), name="proxy", member="front"
        )
        sent = (ForkJoin((forwarded,), 0),)
    inside = Acquire(_pool_name(dc), Sequence((own, *ldap, *statements, *sent)), name="worker", member="front")
    return Pick("front", _front(dc), "round_robin", inside, name="front")


def _workers(scenario: OpenproviderScenario, values: Values, dc: int, count: int) -> Pool:
    return Pool(_pool_name(dc), scenario.front_workers, int(values["queue_limit"]), count)


def _front(dc: int) -> str:
    return f"front/dc{dc + 1}"


def _pool_name(dc: int) -> str:
    return f"workers/dc{dc + 1}"
