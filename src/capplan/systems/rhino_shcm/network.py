"""The `rhino-shcm` system: the Sh cache microservice (a JVM on Rhino) that keeps subscriber data in Cassandra.

Facts and figures: evidence source `rhino-shcm` (seven load tests of two hours). Requests go through one application
server with eight cores. One in a few hundred meets a short stall of its JVM, one in some ten thousand a long one; all
others wait meanwhile, and then for those before. Where the only Cassandra node stands on the same server, its
work takes the same cores and its own long stalls stop the requests too. Where there are several nodes, a request waits
for a quorum of the replicas, so that the stall of one is not seen.

The server is one station that is as fast as its cores together, since the wait for stalls is a hundred times as long as
that for a core; what a request needs beside it (its own work on one core, the network, the database's answer) is a
delay. docs/decisions/0010 says what else was tried.
"""

from __future__ import annotations

import numpy as np

from capplan.models.cassandra.encryption import Exchanges, encrypted
from capplan.models.language.distribution import Deterministic, Distribution, Exponential, Lognormal, Mixture
from capplan.models.language.network import Network
from capplan.models.language.parameter import Parameter, Values
from capplan.models.language.station import Station
from capplan.models.language.step import Delay, ForkJoin, Route, Sequence, Step, Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.language.units import FloatArray, Number, plain
from capplan.models.solver.stalls import Stalls, WaitTail, longest_wait_s, relaxation_s, response_quantile_s, wait_tail
from capplan.systems.rhino_shcm.scenario import RhinoShcmScenario

CORES = 8  # of a c5.2xlarge, application and Cassandra alike: evidence source aws-ec2
COMMITLOG_BYTES = 8e9  # evidence all.commitlog_limit
DATA_BYTES = 1e9  # what evidence all.disk_maximum leaves beside the commit log
NEAREST = 5e-4
"""Share of the saturation that closed forms leave at least: beyond, a run of hours ends long before a steady state."""
TWO_HOURS_S = 7200.0  # evidence t1.duration and its like
SERVER, REQUEST = "server", "request"
REPORTED = {REQUEST: (REQUEST,)}
"""The document does not tell kinds of requests apart."""

PARAMETERS: tuple[Parameter, ...] = (
    Parameter("application_s", 2e-3, "s", "fitted", 0.5, "wide prior: the JVM works 0.7 to 5 ms a request"),
    Parameter("uncached_excess", 0.3, "1", "fitted", 0.5, "wide prior: 0.1 to 0.8 more work of the JVM without caches"),
    Parameter("cassandra_s", 2e-3, "s", "fitted", 0.7, "wide prior: a replica works 0.5 to 8 ms a request"),
    Parameter("path_s", 4e-3, "s", "fitted", 0.5, "wide prior: unhindered response, 1.5 to 11 ms"),
    Parameter(
        "uncached_share", 0.7, "1", "fitted", 0.5, "wide prior: 0.25 to 1.9 of path and Cassandra's work, no cache"
    ),
    Parameter("short_stall_requests", 300.0, "1", "fitted", 1.0, "wide prior: 40 to 2,100 requests a short stall"),
    Parameter("short_stall_s", 10e-3, "s", "fitted", 0.7, "wide prior: young collections last 2.5 to 40 ms"),
    Parameter("long_stall_requests", 10_000.0, "1", "fitted", 1.0, "wide prior: 1,400 to 71,000 requests a long stall"),
    Parameter("long_stall_s", 100e-3, "s", "fitted", 0.7, "wide prior: longer collections last 25 to 400 ms"),
    Parameter("cassandra_stalls", 1.0, "1", "fitted", 0.7, "wide prior: Cassandra has 0.25 to 4 long stalls for one"),
    Parameter("path_scv", 0.045, "1", "guess", 0.0, "the middle of the latencies at the lowest load is this narrow"),
)


def network(scenario: RhinoShcmScenario, values: Values, rate_per_s: Number) -> Network:
    """Compose the system.

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
    apart = _apart(scenario)
    if apart:
        replicas = _replicas if scenario.encryption is None else _encrypted_replicas
        steps = (*steps, replicas(scenario, values))
    return Network(
        name=scenario.system,
        stations=(Station(SERVER, 1), *(Station(_name(node), 1) for node in apart)),
        classes=(RequestClass(REQUEST, Sequence(steps)),),
        traffic=Open(rate_per_s, {REQUEST: 1.0}),
    )


def _apart(scenario: RhinoShcmScenario) -> range:
    """Numbers of the nodes with a station of their own: all, unless the only one is the application's server."""
    return range(0) if scenario.colocated and scenario.nodes == 1 else range(scenario.nodes)


def left_without_cache(scenario: RhinoShcmScenario, values: Values) -> Number:
    """Share of the path, and of Cassandra's work, that the layout has: all of it with caches."""
    return 1.0 if scenario.cache else values["uncached_share"]


def application_s(scenario: RhinoShcmScenario, values: Values) -> Number:
    """Core seconds of the application's JVM per request."""
    return values["application_s"] * (1.0 if scenario.cache else 1 + values["uncached_excess"])


def application_cores(scenario: RhinoShcmScenario, values: Values, rate_per_s: Number) -> Number:
    """Mean number of cores that the application's JVM keeps busy, without anything else on its server."""
    return application_s(scenario, values) * rate_per_s


def node_share(scenario: RhinoShcmScenario) -> float:
    """Share of the requests that reach one Cassandra node."""
    return scenario.replicas / scenario.nodes


def cassandra_s(scenario: RhinoShcmScenario, values: Values) -> Number:
    """Core seconds of one replica per request that reaches it."""
    return values["cassandra_s"] * left_without_cache(scenario, values)


def saturation_per_s(scenario: RhinoShcmScenario, values: Values) -> Number:
    """Rate at which the application's server works or stalls all the time, requests per second."""
    short, long = _chances(scenario, values)
    stalled_s = short * values["short_stall_s"] + long * values["long_stall_s"]
    return 1 / (_server_s(scenario, values) + stalled_s)


def disk_bytes() -> float:
    """Largest use of a Cassandra node's disk: the commit log up to its limit, and the data; the same in all layouts."""
    return COMMITLOG_BYTES + DATA_BYTES


def _exchanges_s(scenario: RhinoShcmScenario, values: Values) -> Exchanges:
    """Core seconds at each end of an encrypted link for an exchange; a replica's work counts as the whole operation."""
    return encrypted(scenario.encryption, values).in_seconds(cassandra_s(scenario, values))


def remote_replicas(scenario: RhinoShcmScenario) -> float:
    """Mean number of replicas of a row that are not its coordinator, which is any of the nodes."""
    return scenario.replicas * (1 - 1 / scenario.nodes)


def _links_s(scenario: RhinoShcmScenario, values: Values) -> Number:
    """Core seconds of the application's server per request on encrypted links, at the ends that are there."""
    exchanges, here = _exchanges_s(scenario, values), 1 / scenario.nodes if scenario.colocated else 0.0
    clients = 0.0 if exchanges.client is None else exchanges.client * (1 + here)
    nodes = 0.0 if exchanges.internode is None else exchanges.internode * (2 * here * remote_replicas(scenario))
    return clients + nodes


def _server_s(scenario: RhinoShcmScenario, values: Values) -> Number:
    """Mean time of the server per request without stalls: all its cores work on what there is."""
    colocated = node_share(scenario) * cassandra_s(scenario, values) if scenario.colocated else 0.0
    return (application_s(scenario, values) + colocated + _links_s(scenario, values)) / CORES


def _chances(scenario: RhinoShcmScenario, values: Values) -> tuple[Number, Number]:
    """Probability that a request meets a short or a long stall at the server; Cassandra's too where it is all there."""
    sources = 1.0 if _apart(scenario) else 1 + values["cassandra_stalls"]
    return 1 / values["short_stall_requests"], sources / values["long_stall_requests"]


def _service(scenario: RhinoShcmScenario, values: Values) -> Distribution:
    short, long = _chances(scenario, values)
    plain_s = _server_s(scenario, values) / (1 - short - long)  # the requests with a stall work as well
    stalls = (Exponential(values["short_stall_s"]), Exponential(values["long_stall_s"]))
    return Mixture((1 - short - long, short, long), (Deterministic(plain_s), *stalls))


def _replicas(scenario: RhinoShcmScenario, values: Values) -> Step:
    """Return the database's part: a quorum of the replicas of a row, which are neighbours on the ring."""
    visits = [
        Visit(_name(node), _replica(scenario, values, node), name=f"node-{node + 1}") for node in _apart(scenario)
    ]
    return Route(
        "random", tuple(_row(scenario, [visits[node] for node in ring]) for ring in _rings(scenario)), name="row"
    )


def _rings(scenario: RhinoShcmScenario) -> list[list[int]]:
    """Return the nodes of each row: one row where all nodes have every row."""
    count = 1 if scenario.replicas == scenario.nodes else scenario.nodes
    return [[(first + k) % scenario.nodes for k in range(scenario.replicas)] for first in range(count)]


def _row(scenario: RhinoShcmScenario, replicas: list[Visit]) -> Step:
    return ForkJoin(tuple(replicas), scenario.replicas // 2 + 1, name="replicas")


def _encrypted_replicas(scenario: RhinoShcmScenario, values: Values) -> Step:
    """Return the database's part with the work on encrypted links, by any of the nodes as coordinator."""
    exchanges = _exchanges_s(scenario, values)
    between = 0.0 if exchanges.internode is None else exchanges.internode
    clients = 0.0 if exchanges.client is None else exchanges.client
    near, far = (
        [Visit(_name(n), _replica(scenario, values, n, more), name=f"node-{n + 1}") for n in _apart(scenario)]
        for more in (0.0, between)
    )
    targets = []
    for me in _apart(scenario):
        rows = []
        for ring in _rings(scenario):
            row = _row(scenario, [near[node] if node == me else far[node] for node in ring])
            busy_s = clients + between * sum(node != me for node in ring)
            own = () if _elsewhere(scenario, me) else (Visit(_name(me), Deterministic(busy_s / CORES), name="links"),)
            rows.append(Sequence((*own, row)))
        targets.append(Route("random", tuple(rows), name="row"))
    return Route("random", tuple(targets), name="coordinator")


def _elsewhere(scenario: RhinoShcmScenario, node: int) -> bool:
    """Whether a node's work is done by the application's server."""
    return scenario.colocated and node == 0


def _replica(scenario: RhinoShcmScenario, values: Values, node: int, links_s: Number = 0.0) -> Distribution:
    """Return the service of one replica: its work, unless that is done by the application's server, or a long stall."""
    long = values["cassandra_stalls"] / values["long_stall_requests"]
    own_s = cassandra_s(scenario, values) + links_s
    # No work, but as many draws as elsewhere: the laws of a mixture have one shape.
    work_s = 0.0 * own_s if _elsewhere(scenario, node) else own_s / CORES
    return Mixture((1 - long, long), (Deterministic(work_s / (1 - long)), Exponential(values["long_stall_s"])))


def _name(node: int) -> str:
    return f"cassandra/{node + 1}"


def server_wait(scenario: RhinoShcmScenario, values: Values, rate_per_s: Number) -> WaitTail:
    """Return the law of the wait for the application's server, in closed form.

    Raises
    ------
    InputError
        When the server cannot do what is offered.
    """
    rate = np.asarray(rate_per_s, dtype=float)
    short, long = _chances(scenario, values)
    kinds = Stalls(plain(rate * short), values["short_stall_s"]), Stalls(plain(rate * long), values["long_stall_s"])
    return wait_tail(plain(rate * _server_s(scenario, values)), *kinds)


def response_s(scenario: RhinoShcmScenario, values: Values, rate_per_s: Number, level: float | None) -> FloatArray:
    """Return the response that a share `level` of the requests does not exceed, or the mean; seconds, (draws,).

    In closed form, and at most just below saturation. The wait for small services is counted by its mean (of M/D/1:
    Kleinrock 1975, section 5.6). The work of Cassandra nodes on their own servers and their stalls are left out:
    decision 0010 has how far that is from a simulation.
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
    """Return the median of the longest response in a run of two hours, in closed form; seconds, (draws,).

    Infinite where the server cannot do what is offered.
    """
    rate, saturation = _beside_saturation(scenario, values, rate_per_s)
    wait, left = _drained(scenario, values, np.minimum(rate, 0.999 * saturation))
    longest = longest_wait_s(wait, left, TWO_HOURS_S)
    return np.where(rate < saturation, longest + values["path_s"] * left_without_cache(scenario, values), np.inf)


def settling_s(scenario: RhinoShcmScenario, values: Values, rate_per_s: Number) -> FloatArray:
    """Return how long the system takes to settle from empty: four relaxation times; seconds, (draws,)."""
    rate, saturation = _beside_saturation(scenario, values, rate_per_s)
    return 4 * relaxation_s(*_drained(scenario, values, np.minimum(rate, (1 - NEAREST) * saturation)))


def _beside_saturation(
    scenario: RhinoShcmScenario, values: Values, rate_per_s: Number
) -> tuple[FloatArray, FloatArray]:
    rate, saturation = np.broadcast_arrays(np.atleast_1d(rate_per_s), np.atleast_1d(saturation_per_s(scenario, values)))
    return np.asarray(rate, dtype=float), np.asarray(saturation, dtype=float)


def _drained(scenario: RhinoShcmScenario, values: Values, rate_per_s: FloatArray) -> tuple[WaitTail, FloatArray]:
    """Return the law of the wait, and the share of the server that small services leave."""
    return server_wait(scenario, values, rate_per_s), np.asarray(1 - rate_per_s * _server_s(scenario, values))
