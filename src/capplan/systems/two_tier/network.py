"""Stateless front nodes over a replicated store as a queueing network.

A client sends a request to any front node. The front node asks the store node that leads the row. That node answers a
read on its own; a write goes to the other copies, too, and is answered when as many of them have it as it waits for.

Each node works on several requests per core at once, as they also wait for disks, locks and each other: each has a
*lane*. Requests take lanes at random, so they wait although others are free, and latency grows well before a tier is
full. Both tiers bind in this soft way. A request keeps its lane for longer than its client waits (`unseen`): garbage
collection, compaction, the kernel.

The store writes in batches: one commit (a flush of the log, a round of replication) serves all writes that wait for it.
A batch of k writes takes F + b k, so that longer queues make longer batches, each write waits a multiple c of F for its
own batch and the rest of the one before, and

    R = c F / (1 - b x)    at x writes per second, so    x = n / (c F + b n)    with n clients that do nothing else,

with c from 1 (a client that is alone) over 1.5 (random arrivals) to 2 (clients that write again at once). That is the
response of many lanes, c F / b of them, which requests take at random. The log of a node is such a station: `commit_s`
is c F, `append_s` is b, and what a write leaves of its lane is unseen.

A request takes a lane several times in each tier (`rounds`): to be parsed, planned, sent on, answered, and for each of
its statements. That leaves the mean as it is, and shortens the tail: waits that are independent of each other even out.

Retries, hot rows and elections are not modelled.
"""

from __future__ import annotations

import numpy as np

from capplan.models.language.distribution import Deterministic, Erlang
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.station import Differs, Station
from capplan.models.language.step import Delay, FanOut, ForkJoin, If, Pick, ReplicaSet, Sequence, Step, Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.language.units import Number
from capplan.systems.two_tier.scenario import TwoTierScenario

LANES_PER_CORE = 4
"""Requests that a node works on at once, per core: many, as `unseen` has what they leave of a lane."""
USUAL_CORES, USUAL_NODES = 16, 3
"""Cores of a node and nodes of a store on which the times of the parameters are."""
_LEAST_LEFT = 1e-3  # of a lane of the log, where commits are long
_MOST_UNSEEN = 100.0
LAN_S = 0.02e-3
"""One way between two nodes."""
FRONT, STORE, LOG = "front", "store", "log"
LOG_LANES = 1024
"""Writes in the batches of a log at which it carries half of what it can, at most: `unseen` has what they leave."""
REPORTED = {"read": ("read",), "write": ("write",)}
_STAGES = 2  # of the Erlang distribution of all service times: SCV 0.5, a guess


def network(scenario: TwoTierScenario, values: Values, rate_per_s: Number, down: int = 0) -> Network:
    """Compose the network.

    Parameters
    ----------
    scenario : TwoTierScenario
        The layout.
    values : mapping
        Parameter values by name (SI; numbers, or arrays over draws for the analytic solver).
    rate_per_s : number
        Offered rate, requests per second.
    down : int
        Nodes of the store that are down; none by default.

    Returns
    -------
    Network
        Request classes read and write, as far as they are in the traffic.
    """
    mix = scenario.mix()
    return Network(
        name=scenario.system,
        stations=tuple(_stations(scenario, down)),
        classes=tuple(RequestClass(name, _flow(scenario, values, name)) for name in mix),
        traffic=Open(rate_per_s, mix),
    )


def _stations(scenario: TwoTierScenario, down: int) -> list[Station]:
    front = Station(
        FRONT, LANES_PER_CORE * scenario.front_cores, "ps", assignment="random", count=scenario.front_nodes or None
    )
    lost = tuple(Differs(1 + node, down=True) for node in range(down))
    lanes, nodes = LANES_PER_CORE * scenario.node_cores, scenario.store_nodes
    store = Station(STORE, lanes, "ps", assignment="random", count=nodes, exceptions=lost)
    log = Station(LOG, LOG_LANES, "ps", assignment="random", count=nodes, exceptions=lost)
    return [*([front] if scenario.front_nodes else []), store, *([log] if scenario.read_fraction < 1 else [])]


def _flow(scenario: TwoTierScenario, values: Values, name: str) -> Step:
    """Return the flow of a request: over the network to a front node, which queries the store."""
    tier, cores = (FRONT, scenario.front_cores) if scenario.front_nodes else (STORE, scenario.node_cores)
    rounds = _rounds(values)
    work = values[f"front_{name}_s"] * _slower(cores, values)
    if not scenario.front_nodes:
        work = work * _sent_on(scenario, values)
    unseen = work * _unseen(values) * (1.0 if scenario.front_nodes else values["store_unseen"])
    asked = (
        *_visits(tier, work, rounds, "front", "front"),
        _beside(tier, unseen, "front"),
        _stored(scenario, values, name),
    )
    return Sequence(
        (
            Delay(Erlang(values["delay_s"], _STAGES * rounds), name="network"),
            Pick("front", tier, "random", Sequence(asked)),
        )
    )


def _stored(scenario: TwoTierScenario, values: Values, name: str) -> Step:
    """Return a request at the store: at the leader of the row, and at the other copies of a write."""
    rounds = _rounds(values)
    work = values[f"store_{name}_s"] * _slower(scenario.node_cores, values) * _sent_on(scenario, values)
    unseen = work * _unseen(values) * values["store_unseen"]
    hop = Delay(Deterministic(LAN_S))
    own = (hop, *_visits(STORE, work, rounds, name, "leader"), _beside(STORE, unseen, "leader"))
    if name == "read":
        return Pick("leader", STORE, "random", Sequence((*own, hop)))
    share = values["copy_share"]
    commit = _commit(scenario, values, "copy")
    copied = (
        hop,
        *_visits(STORE, work * share, rounds, "copy", "copy"),
        _beside(STORE, unseen * share, "copy"),
        commit,
        hop,
    )
    copies = FanOut("copies", "copy", If("copy", "leader", commit, Sequence(copied)), scenario.needed(), name="copies")
    led = Pick("leader", "copies", "random", Sequence((*own, copies, hop)))
    return ReplicaSet("copies", STORE, scenario.rf, led)


def _commit(scenario: TwoTierScenario, values: Values, member: str) -> Step:
    """Return a commit at a copy: log time beyond the write's own time is detached."""
    append = values["append_s"] * _sent_on(scenario, values)
    seen, lane_s = values["commit_s"] + append, append * LOG_LANES
    left = np.maximum(lane_s - seen, _LEAST_LEFT * lane_s)
    beside = ForkJoin((Visit(LOG, Erlang(left, _STAGES), name=f"{member}-append", member=member),), 0)
    return Sequence((*_visits(LOG, seen, _rounds(values), "commit", member), beside))


def _slower(cores: int, values: Values) -> Number:
    """Return the factor on work at a node with this number of cores, relative to the usual one."""
    return np.asarray((cores / USUAL_CORES) ** (1 - values["core_exponent"]))


def _unseen(values: Values) -> Number:
    return np.asarray(np.minimum(values["unseen"], _MOST_UNSEEN))


def _sent_on(scenario: TwoTierScenario, values: Values) -> Number:
    """Return the factor on work in a store with this number of nodes, relative to the usual one."""
    return np.asarray((scenario.store_nodes / USUAL_NODES) ** (1 - values["node_exponent"]))


def _rounds(values: Values) -> int:
    return max(round(float(np.median(values["rounds"]))), 1)


def _visits(station: str, work: Number, rounds: int, name: str, member: str) -> tuple[Step, ...]:
    """Return the visits of a request's rounds at a tier."""
    service = Erlang(work / rounds, _STAGES)
    return tuple(Visit(station, service, name=f"{name}-{number + 1}", member=member) for number in range(rounds))


def _beside(station: str, demand_s: Number, member: str) -> Step:
    """Return detached work that occupies a lane."""
    return ForkJoin((Visit(station, Erlang(demand_s, _STAGES), name=f"{member}-unseen", member=member),), 0)
