"""The `rhino-shcm` system: the Sh cache microservice (a JVM on Rhino) that keeps subscriber data in Cassandra.

Evidence: source `rhino-shcm`, seven load tests of two hours. Requests go through one application server with eight
cores. One in a few hundred requests encounters a short stall of the JVM, one in about ten thousand a long stall. The
other requests wait for the end of the stall and then for the requests ahead of them. If the only Cassandra node runs on
the same server, it uses the same cores, and its long stalls also stop the requests. With several nodes, a request waits
for a quorum of the replicas, which hides the stall of one node.

The server is one station with the speed of all its cores, because the wait for stalls is a hundred times as long as
that for a core. The rest of a request's time (its own work on one core, the network, the answer of the database) is a
delay. `docs/decisions/0010-how-rhino-shcm-is-modelled.md` describes the alternatives.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from capplan.models.cassandra.encryption import encrypted
from capplan.models.language.distribution import Deterministic, Distribution, Exponential, Lognormal, Mixture
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.station import Station
from capplan.models.language.step import Delay, FanOut, If, Pick, ReplicaSet, Sequence, Step, Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.language.units import FloatArray, Number, plain
from capplan.models.solver.single_station import (
    Stalls,
    WaitTail,
    longest_wait_s,
    relaxation_s,
    response_quantile_s,
    wait_tail,
)
from capplan.systems.rhino_shcm.scenario import RhinoShcmScenario

CORES = 8  # of a c5.2xlarge, for the application and for Cassandra: evidence source aws-ec2
COMMITLOG_BYTES = 8e9  # evidence all.commitlog_limit
DATA_BYTES = 1e9  # evidence all.disk_maximum without the commit log
NEAREST = 5e-4
"""Smallest distance from saturation in closed forms, as a share: any closer, a run of hours reaches no steady state."""
TWO_HOURS_S = 7200.0  # evidence t1.duration and its like
SERVER, CASSANDRA, REQUEST = "server", "cassandra", "request"
_CORES = "cores"  # of the server, one by one
REPORTED = {REQUEST: (REQUEST,)}
"""The document does not distinguish kinds of requests."""


def network(scenario: RhinoShcmScenario, values: Values, rate_per_s: Number) -> Network:
    """Compose the network.

    Parameters
    ----------
    scenario : RhinoShcmScenario
        The layout.
    values : mapping
        Parameter values by name (SI; numbers, or arrays over draws).
    rate_per_s : number
        Offered rate, requests per second.

    Returns
    -------
    Network
        One request class, `request`; Poisson arrivals.
    """
    path_s = values["path_s"] * left_without_cache(scenario, values)
    steps: tuple[Step, ...] = (
        Visit(SERVER, _service(scenario, values), name="server"),
        Delay(Lognormal(path_s, values["path_scv"]), name="path"),
    )
    stations: tuple[Station, ...] = (Station(SERVER, 1),)
    if _has_own_servers(scenario):
        replicas = _replicas if scenario.encryption is None else _encrypted_replicas
        steps = (*steps, _beside_colocated(scenario, replicas(scenario, values)))
        stations = (*stations, Station(CASSANDRA, 1, count=scenario.nodes))
    return Network(
        name=scenario.system,
        stations=stations,
        classes=(RequestClass(REQUEST, Sequence(steps)),),
        traffic=Open(rate_per_s, {REQUEST: 1.0}),
    )


def other_assignment(scenario: RhinoShcmScenario, values: Values) -> Network:
    """Return the network with a queue for each core of the application's server, for one request per second.

    The station with the speed of all cores stays, since it holds those who wait for stalls. The cores add their own
    queues. The path contains the work on one core.
    """
    own = network(scenario, values, 1.0)
    core_s = CORES * _server_s(scenario, values)
    rest_s = np.maximum(values["path_s"] * left_without_cache(scenario, values) - core_s, 0.0)
    on_a_core = (Visit(_CORES, Deterministic(core_s), name="core"), Delay(Deterministic(rest_s), name="path"))
    flow = own.classes[0].flow
    first, _, *database = flow.steps if isinstance(flow, Sequence) else ()
    return replace(
        own,
        stations=(*own.stations, Station(_CORES, CORES, assignment="random")),
        classes=(RequestClass(REQUEST, Sequence((first, *on_a_core, *database))),),
    )


def _has_own_servers(scenario: RhinoShcmScenario) -> bool:
    """Whether some Cassandra node has its own station; not if the only node is colocated."""
    return scenario.nodes > 1 or not scenario.colocated


def left_without_cache(scenario: RhinoShcmScenario, values: Values) -> Number:
    """Return the factor on the path's and Cassandra's service demand, relative to a layout with caches."""
    return 1.0 if scenario.cache else values["uncached_share"]


def application_s(scenario: RhinoShcmScenario, values: Values) -> Number:
    """Return the service demand of a request at the application's JVM, core seconds."""
    return values["application_s"] * (1.0 if scenario.cache else 1 + values["uncached_excess"])


def application_cores(scenario: RhinoShcmScenario, values: Values, rate_per_s: Number) -> Number:
    """Return the mean number of busy cores of the application's JVM, excluding other processes on its server."""
    return application_s(scenario, values) * rate_per_s


def node_share(scenario: RhinoShcmScenario) -> float:
    """Return the share of requests that reach one Cassandra node."""
    return scenario.replicas / scenario.nodes


def cassandra_s(scenario: RhinoShcmScenario, values: Values) -> Number:
    """Return the service demand of a request at a replica, core seconds."""
    return values["cassandra_s"] * left_without_cache(scenario, values)


def saturation_per_s(scenario: RhinoShcmScenario, values: Values) -> Number:
    """Return the rate at which the application's server is always working or stalled, requests per second."""
    short, long = _chances(scenario, values)
    stalled_s = short * values["short_stall_s"] + long * values["long_stall_s"]
    return 1 / (_server_s(scenario, values) + stalled_s)


def disk_bytes() -> float:
    """Return the highest disk usage of a Cassandra node, equal in all layouts: commit log at its limit, and data."""
    return COMMITLOG_BYTES + DATA_BYTES


def remote_replicas(scenario: RhinoShcmScenario) -> float:
    """Return the mean number of a row's replicas other than its coordinator, which is a random node."""
    return scenario.replicas * (1 - 1 / scenario.nodes)


def _links_s(scenario: RhinoShcmScenario, values: Values) -> Number:
    """Return the service demand of a request's encrypted links at the application's server, core seconds."""
    exchanges, here = encrypted(scenario.encryption, values), 1 / scenario.nodes if scenario.colocated else 0.0
    clients = 0.0 if exchanges.client is None else exchanges.client * (1 + here)
    nodes = 0.0 if exchanges.internode is None else exchanges.internode * (2 * here * remote_replicas(scenario))
    return clients + nodes


def _server_s(scenario: RhinoShcmScenario, values: Values) -> Number:
    """Return the mean service time of a request at the server if all cores work on it without stalls, seconds."""
    colocated = node_share(scenario) * cassandra_s(scenario, values) if scenario.colocated else 0.0
    return (application_s(scenario, values) + colocated + _links_s(scenario, values)) / CORES


def _chances(scenario: RhinoShcmScenario, values: Values) -> tuple[Number, Number]:
    """Return the probabilities of short and long stalls at the server, including a colocated single node's."""
    sources = 1.0 if _has_own_servers(scenario) else 1 + values["cassandra_stalls"]
    return 1 / values["short_stall_requests"], sources / values["long_stall_requests"]


def _service(scenario: RhinoShcmScenario, values: Values) -> Distribution:
    short, long = _chances(scenario, values)
    plain_s = _server_s(scenario, values) / (1 - short - long)  # requests with a stall need this service as well
    stalls = (Exponential(values["short_stall_s"]), Exponential(values["long_stall_s"]))
    return Mixture((1 - short - long, short, long), (Deterministic(plain_s), *stalls))


def _replicas(scenario: RhinoShcmScenario, values: Values) -> Step:
    """Return the database's steps: a quorum of the replicas of a row, chosen at random."""
    return _row(scenario, _quorum(scenario, _replica(scenario, values)))


def _encrypted_replicas(scenario: RhinoShcmScenario, values: Values) -> Step:
    """Return the database's steps with encrypted links and a random node as coordinator."""
    exchanges = encrypted(scenario.encryption, values)
    internode_s = 0.0 if exchanges.internode is None else exchanges.internode
    client_s = 0.0 if exchanges.client is None else exchanges.client
    few, many = (
        Visit(CASSANDRA, Deterministic((client_s + internode_s * remote) / CORES), name="links", member="coordinator")
        for remote in (scenario.replicas - 1, scenario.replicas)
    )
    links = _unless_colocated(scenario, "coordinator", If("coordinator", "replicas", few, many), Sequence(()))
    local, remote = (_replica(scenario, values, links_s) for links_s in (0.0, internode_s))
    answers = _quorum(scenario, If("replica", "coordinator", local, remote))
    return Pick(
        "coordinator",
        CASSANDRA,
        "random",
        _row(scenario, Sequence((links, answers)), first="coordinator"),
        name="coordinator",
    )


def _row(scenario: RhinoShcmScenario, step: Step, first: str | None = None) -> Step:
    return ReplicaSet("replicas", CASSANDRA, scenario.replicas, step, first=first, name="row")


def _quorum(scenario: RhinoShcmScenario, replica: Step) -> Step:
    return FanOut("replicas", "replica", replica, scenario.replicas // 2 + 1, name="replicas")


def _beside_colocated(scenario: RhinoShcmScenario, step: Step) -> Step:
    """Return a step in which the first node has the name `colocated` if it runs on the application's server."""
    return Pick("colocated", CASSANDRA, "first", step) if scenario.colocated else step


def _unless_colocated(scenario: RhinoShcmScenario, node: str, step: Step, colocated: Step) -> Step:
    """Return a step at a node, with a different step for the node on the application's server."""
    return If(node, "colocated", colocated, step) if scenario.colocated else step


def _replica(scenario: RhinoShcmScenario, values: Values, links_s: Number = 0.0) -> Step:
    """Return a replica's service: a long stall, or its work, on the application's server if it is colocated."""
    long = values["cassandra_stalls"] / values["long_stall_requests"]
    own_s = cassandra_s(scenario, values) + links_s

    def served(work_s: Number) -> Step:
        stalls = Mixture((1 - long, long), (Deterministic(work_s / (1 - long)), Exponential(values["long_stall_s"])))
        return Visit(CASSANDRA, stalls, name="replica", member="replica")

    # Zero with the shape of the draws, because all parts of a mixture need the same shape.
    return _unless_colocated(scenario, "replica", served(own_s / CORES), served(0.0 * own_s))


def server_wait(scenario: RhinoShcmScenario, values: Values, rate_per_s: Number) -> WaitTail:
    """Return the distribution of the wait for the application's server, in closed form.

    Raises
    ------
    InputError
        If the offered rate overloads the server.
    """
    rate = np.asarray(rate_per_s, dtype=float)
    short, long = _chances(scenario, values)
    kinds = Stalls(plain(rate * short), values["short_stall_s"]), Stalls(plain(rate * long), values["long_stall_s"])
    return wait_tail(plain(rate * _server_s(scenario, values)), *kinds)


def response_s(scenario: RhinoShcmScenario, values: Values, rate_per_s: Number, level: float | None) -> FloatArray:
    """Return a percentile of the response time, or the mean if `level` is None, in closed form, seconds (draws,).

    The rate is limited to just below saturation. The wait for small services counts by its mean (M/D/1: Kleinrock 1975,
    section 5.6). The work and the stalls of Cassandra nodes on dedicated servers are neglected; decision 0010 compares
    this with a simulation.
    """
    work_s = _server_s(scenario, values)
    rate = plain(np.minimum(rate_per_s, (1 - NEAREST) * np.asarray(saturation_per_s(scenario, values))))
    load = np.asarray(rate * work_s)
    path_s = plain(values["path_s"] * left_without_cache(scenario, values) + load * work_s / (2 * (1 - load)))
    wait = server_wait(scenario, values, rate)
    if level is None:
        return np.asarray((wait.weight / wait.decay_per_s).sum(axis=0) + path_s)
    return response_quantile_s(wait, path_s, values["path_scv"], level)


def two_hour_maximum_s(scenario: RhinoShcmScenario, values: Values, rate_per_s: Number) -> FloatArray:
    """Return the median longest response time in a two-hour run, in closed form, seconds (draws,).

    It is infinite if the offered rate overloads the server.
    """
    rate, saturation = _beside_saturation(scenario, values, rate_per_s)
    wait, left = _drained(scenario, values, np.minimum(rate, 0.999 * saturation))
    longest = longest_wait_s(wait, left, TWO_HOURS_S)
    return np.where(rate < saturation, longest + values["path_s"] * left_without_cache(scenario, values), np.inf)


def settling_s(scenario: RhinoShcmScenario, values: Values, rate_per_s: Number) -> FloatArray:
    """Return the settling time from empty: four relaxation times, seconds (draws,)."""
    rate, saturation = _beside_saturation(scenario, values, rate_per_s)
    return 4 * relaxation_s(*_drained(scenario, values, np.minimum(rate, (1 - NEAREST) * saturation)))


def _beside_saturation(
    scenario: RhinoShcmScenario, values: Values, rate_per_s: Number
) -> tuple[FloatArray, FloatArray]:
    rate, saturation = np.broadcast_arrays(np.atleast_1d(rate_per_s), np.atleast_1d(saturation_per_s(scenario, values)))
    return np.asarray(rate, dtype=float), np.asarray(saturation, dtype=float)


def _drained(scenario: RhinoShcmScenario, values: Values, rate_per_s: FloatArray) -> tuple[WaitTail, FloatArray]:
    """Return the distribution of the wait, and the share of the server that small services leave free."""
    return server_wait(scenario, values, rate_per_s), np.asarray(1 - rate_per_s * _server_s(scenario, values))
