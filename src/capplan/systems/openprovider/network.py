"""The `openprovider` system: an AAA policy server whose policing nodes keep their sessions in Cassandra.

Evidence: source `openprovider`, the vendor's load test on one to three data centres. A session is one authorization,
one accounting start, five interim updates and one stop; messages go to the data centres in turn. A policing node
assigns every message to one of its workers, which reads and writes through local Cassandra nodes.

Hypotheses: the document does not state what a message does in the database. Here an authorization reads one row, an
accounting start writes one, and an interim update or a stop reads one and then writes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from capplan.models.cassandra.cluster import Cluster, Costs, pools, statement, stations, stays_local
from capplan.models.cassandra.encryption import encrypted
from capplan.models.cassandra.round_trip import round_trip_s
from capplan.models.errors import InputError
from capplan.models.language.distribution import Exponential
from capplan.models.language.network import Network
from capplan.models.language.parameter import Parameter, Values, defaults
from capplan.models.language.per_dc import proportions
from capplan.models.language.station import Pool, Station
from capplan.models.language.step import Acquire, Choice, Delay, ForkJoin, Route, Sequence, Step, Visit
from capplan.models.language.traffic import Bursty, Open, RequestClass, Session
from capplan.models.language.units import Number
from capplan.systems.openprovider.scenario import OpenproviderScenario

FRONT_CORES = 32  # evidence all.front_vcpu
CASSANDRA_CORES = 24  # evidence all.cass_vcpu
UPDATES = 6  # interim updates and the stop of a session
MESSAGES = 2 + UPDATES
OPERATIONS = {"auth": ("read",), "start": ("write",), "update": ("read", "write")}
"""What each request class does to the database."""
REPORTED = {"auth": ("auth",), "acct": ("start", "update")}
"""Classes of the network, by request class in the document."""

PARAMETERS: tuple[Parameter, ...] = (
    Parameter("replica_read_s", 1.1e-3, "s", "fitted", 1.0, "wide prior: a read of one replica takes 0.1 to 10 ms"),
    Parameter("mutation_s", 0.85e-3, "s", "fitted", 1.0, "wide prior: a mutation takes 0.1 to 5 ms"),
    Parameter("unseen_work", 1.2, "1", "fitted", 0.7, "wide prior: GC, compaction and kernel work beside the visible"),
    Parameter("storage_s", 1.2e-4, "s", "fitted", 0.5, "wide prior: commit log, flush and compaction of one mutation"),
    Parameter("burst_excess", 0.12, "1", "fitted", 0.5, "the document calls its rates peaks of a bursty traffic"),
    Parameter("ldap_s", 8.0e-3, "s", "fitted", 0.5, "wide prior: an LDAP search in another network, 3 to 20 ms"),
    Parameter("route_excess", 0.2, "1", "prior", 0.5, "fibre routes are 1.1 to 1.5 times the straight line"),
    Parameter("coordinator_s", 0.2e-3, "s", "guess", 0.3, "parsing and coordinating one statement"),
    Parameter(
        "profile_excess", 0.15, "1", "guess", 0.5, "extra cost of reading a session row that holds the LDAP profile"
    ),
    Parameter("front_s", 0.1e-3, "s", "guess", 0.0, "a policing node's own work on one message"),
    Parameter("lan_s", 0.1e-3, "s", "guess", 0.0, "one way between two machines of a data centre"),
    Parameter(
        "queue_limit",
        4.0,
        "1",
        "guess",
        0.0,
        "messages that may wait for a worker; the document drops when all workers are busy",
    ),
    Parameter("burst_fraction", 0.05, "1", "guess", 0.0, "share of the time at the peak rate: the busiest 5 %"),
    Parameter("burst_length_s", 1.0, "s", "guess", 0.0, "mean length of a burst: seconds, as rates are counted"),
    Parameter("gap_s", 0.5e-3, "s", "documented", 0.0, "evidence all.flow_time: eight messages in 50 ms"),
)


def network(
    scenario: OpenproviderScenario, values: Values, peak_rate_per_s: Number, lost: frozenset[str] = frozenset()
) -> Network:
    """Compose the network.

    Parameters
    ----------
    scenario : OpenproviderScenario
        The layout.
    values : mapping
        Parameter values by name (SI; numbers, or arrays over draws for the analytic solver).
    peak_rate_per_s : number
        Offered rate in bursts, requests per second over all data centres.
    lost : set of str
        Station names of Cassandra nodes that are down; a data centre without Cassandra nodes has no policing nodes.

    Returns
    -------
    Network
        Request classes auth, start and update; see `REPORTED`.
    """
    cluster = build_cluster(scenario, values, lost)
    entries = {dc: range(scenario.fronts_by_dc()[dc]) for dc in served(scenario, cluster)}
    return _network(scenario, values, peak_rate_per_s, cluster, _flows(scenario, values, cluster, entries, None))


def folded_network(scenario: OpenproviderScenario, values: Values, peak_rate_per_s: Number) -> Network | None:
    """Compose a network with one entry that represents all: one policing node that uses one coordinator.

    `Analysis` with `alike=kind_of` gives the same figures as for `network`, from a small part of the steps. Return None
    if entries differ (see `folds`).
    """
    if not folds(scenario):
        return None
    cluster = build_cluster(scenario, values)
    flows = _flows(scenario, values, cluster, {0: range(1)}, 1)
    return _network(scenario, values, peak_rate_per_s, cluster, flows)


def folds(scenario: OpenproviderScenario) -> bool:
    """Whether all policing nodes and all coordinators of an intact layout are equivalent.

    All data centres must be equal and at the same distance, and reads must stay local: remote reads are spread unevenly
    over the nodes of the other data centres.
    """
    if scenario.unequal:
        return False
    cluster = build_cluster(scenario, defaults(PARAMETERS))
    delays = {delay for a, row in enumerate(cluster.wan_s) for b, delay in enumerate(row) if a != b}
    return len(delays) <= 1 and stays_local(cluster, scenario.consistency_read, 0)


def served(scenario: OpenproviderScenario, cluster: Cluster) -> tuple[int, ...]:
    """Return the data centres with clients; those that have none left take their clients to the others.

    A data centre needs living Cassandra nodes and policing nodes. Standbys serve if no other data centre is left.

    Raises
    ------
    InputError
        If no data centre is left.
    """
    left = [dc for dc, fronts in enumerate(scenario.fronts_by_dc()) if fronts and cluster.living(dc)]
    if not left:
        raise InputError("no data centre is left that has both policing nodes and Cassandra nodes")
    return tuple(proportions(scenario.shares_by_dc(), left))


def _flows(
    scenario: OpenproviderScenario,
    values: Values,
    cluster: Cluster,
    entries: Mapping[int, range],
    coordinators: int | None,
) -> dict[str, Step]:
    """Return the flow of each class that arrives at the given policing nodes of the given data centres."""
    costs = build_costs(scenario, values)

    def by_dc(each: Costs, level: str, operation: str) -> dict[int, Step]:
        return {dc: statement(cluster, each, dc, level, operation, coordinators) for dc in entries}

    reads, writes = by_dc(costs, scenario.consistency_read, "read"), by_dc(costs, scenario.consistency_write, "write")
    sessions = reads
    if scenario.ldap:  # the session row caches the profile, because any node may receive the next message
        larger = replace(costs, read=costs.read * (1 + values["profile_excess"]))
        sessions = by_dc(larger, scenario.consistency_read, "read")
    asked = {dc: {"auth": (reads[dc],), "start": (writes[dc],), "update": (sessions[dc], writes[dc])} for dc in entries}
    return {name: _by_dc(scenario, values, asked, entries, name) for name in ("auth", "start", "update")}


def _network(
    scenario: OpenproviderScenario, values: Values, peak_rate_per_s: Number, cluster: Cluster, flows: Mapping[str, Step]
) -> Network:
    alive = [dc for dc in range(scenario.dcs) if cluster.living(dc)]
    fronts = [(dc, front) for dc in alive for front in range(scenario.fronts_by_dc()[dc])]
    ratio = 1 + values["burst_excess"]
    arrivals = Bursty(ratio, values["burst_fraction"], values["burst_length_s"])
    names = ("auth", "start", *("update",) * UPDATES)
    return Network(
        name=scenario.system,
        stations=(*(Station(front_name(*at), FRONT_CORES, discipline="ps") for at in fronts), *stations(cluster)),
        pools=(*(_workers(scenario, values, *at) for at in fronts), *pools(cluster)),
        classes=tuple(RequestClass(name, flow) for name, flow in flows.items()),
        sessions=(Session("session", names, (Exponential(values["gap_s"]),) * (MESSAGES - 1)),),
        traffic=Open(peak_rate_per_s / ratio, {"session": 1.0}, arrivals),
    )


def build_cluster(scenario: OpenproviderScenario, values: Values, lost: frozenset[str] = frozenset()) -> Cluster:
    """Return the Cassandra cluster of a scenario."""
    return Cluster(
        nodes=scenario.nodes_by_dc(),
        rf=scenario.rf_by_dc(),
        cores=CASSANDRA_CORES,
        lan_s=values["lan_s"],
        wan_s=_one_way_s(scenario, values),
        down=lost,
    )


def _one_way_s(scenario: OpenproviderScenario, values: Values) -> tuple[tuple[Number, ...], ...]:
    given = scenario.given_rtt_s()
    if given is not None:
        return tuple(tuple(cell / 2 for cell in row) for row in given)
    half = round_trip_s(scenario.distance_m(), 1 + values["route_excess"]) / 2
    return tuple(tuple(0.0 if a == b else half for b in range(scenario.dcs)) for a in range(scenario.dcs))


def build_costs(scenario: OpenproviderScenario, values: Values) -> Costs:
    """Return the costs of operations at a Cassandra node."""
    young = Costs(
        coordinator=values["coordinator_s"],
        read=values["replica_read_s"],
        mutation=values["mutation_s"],
        unseen=values["unseen_work"],
        storage=values["storage_s"],
    )
    # Encryption costs a share of an operation in the load test; it costs no more with old data.
    links = young.with_links(encrypted(scenario.encryption, values)).links
    factor = scenario.data_factor
    return replace(
        young, read=young.read * factor, mutation=young.mutation * factor, storage=young.storage * factor, links=links
    )


def _by_dc(
    scenario: OpenproviderScenario,
    values: Values,
    asked: Mapping[int, Mapping[str, tuple[Step, ...]]],
    entries: Mapping[int, range],
    name: str,
) -> Step:
    """Return the flow of one class: to a data centre, to a policing node there, then its statements."""
    targets = []
    for dc, statements in asked.items():
        fronts = tuple(_at_front(scenario, values, (dc, node), name, statements[name]) for node in entries[dc])
        targets.append(Route("round_robin", fronts, name="front"))
    shares = proportions(scenario.shares_by_dc(), asked)
    if scenario.client_share is None or len(targets) == 1:
        return Route("round_robin", tuple(targets), name="dc")
    return Choice(tuple(shares[dc] for dc in asked), tuple(targets), name="dc")


def _front_s(scenario: OpenproviderScenario, values: Values, name: str) -> Number:
    """Return the service demand of a message at a policing node, with its end of encrypted links to Cassandra."""
    links = build_costs(scenario, values).links
    exchanges = [links[operation].client for operation in OPERATIONS[name]]
    return values["front_s"] + sum((each for each in exchanges if each is not None), 0.0)


def _at_front(
    scenario: OpenproviderScenario, values: Values, place: tuple[int, int], name: str, statements: tuple[Step, ...]
) -> Step:
    own = Visit(front_name(*place), Exponential(_front_s(scenario, values, name)), name="front-cpu")
    ldap = (Delay(Exponential(values["ldap_s"]), name="ldap"),) if scenario.ldap and name == "auth" else ()
    forwards = scenario.proxy and name != "auth"
    sent = (
        (ForkJoin((Visit(front_name(*place), Exponential(values["front_s"]), name="proxy"),), 0),) if forwards else ()
    )
    return Acquire(_pool_name(*place), Sequence((own, *ldap, *statements, *sent)), name="worker")


def _workers(scenario: OpenproviderScenario, values: Values, dc: int, front: int) -> Pool:
    return Pool(_pool_name(dc, front), scenario.front_workers, int(values["queue_limit"]))


def front_name(dc: int, front: int) -> str:
    """Return the station name of a policing node's cores."""
    return f"front/dc{dc + 1}/{front + 1}"


def _pool_name(dc: int, front: int) -> str:
    return f"workers/dc{dc + 1}/{front + 1}"
