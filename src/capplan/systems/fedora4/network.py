"""The `fedora4` system: a repository of fully replicated nodes behind a load balancer.

Evidence: source `fedora4`, a university's test of a cluster of one to four nodes on rented machines. The load balancer
distributes requests equally. A request thread of the node answers from the node's own copy of the data.

Hypotheses: the document gives only rates and mean times. Here every request in a cluster, even a read, is announced to
all peers at once. Sending has a cost at the request's own node, independent of the number of peers. Handling has a cost
at each peer, for which no request waits. A write has an additional cost at its own node. A delete finally waits without
using a processor. `docs/decisions/0009-how-fedora4-is-modelled.md` describes the alternatives.
"""

from __future__ import annotations

from capplan.models.language.distribution import Deterministic, Erlang, Exponential
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.station import Pool, Station
from capplan.models.language.step import Acquire, Delay, FanOut, If, Pick, ReplicaSet, Sequence, Step, Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.language.units import Number
from capplan.systems.fedora4.scenario import Fedora4Scenario

THREADS = 200  # request threads of a node: a guess, the default of a common servlet container (Apache Tomcat 7)
WAITING = 100  # requests that may wait for a thread: a guess, the default length of that container's accept queue
MEASURED_NODES = 4  # largest cluster in the document
NODE, _THREADS = "repository", "threads"
REPORTED = {"read": ("read",), "create": ("create",), "delete": ("delete",)}
"""Classes of the network, by request class in the document."""
_STAGES = 32
"""Stages of the Erlang distribution of every service, SCV 0.03: a guess. With 16 stages or fewer, evenly paced reads on
four nodes would take more than the documented 5 ms (4.5 to 5.5) at 600 requests per second."""


def network(scenario: Fedora4Scenario, values: Values, rate_per_s: Number) -> Network:
    """Compose the network.

    Parameters
    ----------
    scenario : Fedora4Scenario
        The layout.
    values : mapping
        Parameter values by name (SI; numbers, or arrays over draws for the analytic solver).
    rate_per_s : number
        Offered rate, requests per second over all nodes.

    Returns
    -------
    Network
        Poisson traffic of the request classes read, create and delete, those with a share above zero.
    """
    mix = traffic_mix(scenario)
    return Network(
        name=scenario.system,
        stations=(Station(NODE, scenario.node_cores, discipline="ps", count=scenario.nodes),),
        pools=(Pool(_THREADS, THREADS, WAITING, count=scenario.nodes),),
        classes=tuple(RequestClass(name, _flow(scenario, values, name)) for name in mix),
        traffic=Open(rate_per_s, mix),
    )


def traffic_mix(scenario: Fedora4Scenario) -> dict[str, float]:
    """Return the share of each request class; half of the writes create an object, half delete one (a guess)."""
    writes = scenario.write_share
    shares = {"read": 1 - writes, "create": writes / 2, "delete": writes / 2}
    return {name: share for name, share in shares.items() if share > 0}


def round_trip_s(scenario: Fedora4Scenario, values: Values) -> Number:
    """Return the round trip between the clients' region and a node, seconds."""
    return values[f"rtt_{scenario.region.replace('-', '_')}_s"]


def delete_wait_s(nodes: int, values: Values) -> Number:
    """Return how long a delete waits without using a core, seconds.

    It was measured on one, three and four nodes. Two nodes are assumed to be like three; the time on more than four is
    that on four times a wide guess.
    """
    if nodes < MEASURED_NODES:
        return values["delete_wait_s"]
    return values["delete_wait_four_s"] * (values["delete_wait_beyond"] if nodes > MEASURED_NODES else 1.0)


def _flow(scenario: Fedora4Scenario, values: Values, name: str) -> Step:
    """Return the flow of one class: to the load balancer, to the nodes in turn, and back."""
    half = Deterministic(round_trip_s(scenario, values) / 2)
    balanced = Pick("node", NODE, "round_robin", _at_node(scenario, values, name), name="balancer")
    return Sequence((Delay(half, name="there"), balanced, Delay(half, name="back")))


def _at_node(scenario: Fedora4Scenario, values: Values, name: str) -> Step:
    """Return the flow of a request at its node: its own work, its peers' work, and the wait of a delete."""
    nodes = scenario.nodes
    own = values["read_s"] + (values["send_s"] if nodes > 1 else 0.0) + (0.0 if name == "read" else values["write_s"])
    steps: list[Step] = [Visit(NODE, Erlang(own / scenario.node_speed, _STAGES), name="work", member="node")]
    if nodes > 1:
        steps.append(_announcement(scenario, values))
    if name == "delete":
        steps.append(Delay(Exponential(delete_wait_s(nodes, values)), name="wait"))
    return Acquire(_THREADS, Sequence(tuple(steps)), name="thread", member="node")


def _announcement(scenario: Fedora4Scenario, values: Values) -> Step:
    """Return the detached work of all nodes other than the request's own."""
    handled = Visit(NODE, Erlang(values["peer_s"] / scenario.node_speed, _STAGES), name="peer", member="peer")
    elsewhere = If("peer", "node", Sequence(()), handled)
    announced = FanOut("every", "peer", elsewhere, 0, name="announce")
    return ReplicaSet("every", NODE, scenario.nodes, announced, placement="ring", first="node")
