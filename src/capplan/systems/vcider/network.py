"""The `vcider` system: four Cassandra nodes on a virtual network, compared with the same nodes on native interfaces.

Evidence: source `vcider`, the vendor's test on rented machines in 2011. It gives "performance" relative to native
interfaces. Here performance means throughput: a stress tool whose clients wait for each answer saturates the nodes.

At saturation, throughput is inverse to the service demand of an operation at the nodes, so a ratio of throughputs is a
ratio of demands. An operation goes to a random node as its coordinator. Each replica on another node (probability 3/4)
exchanges one request and one answer with it. The unit of demand is an unencrypted operation with one replica. It has
these parts:

- Coordination, and a write or read at each replica.
- Every message, at each of its ends on a node: client messages have one such end, internode messages two. The clients'
  machines are assumed not to be a bottleneck.
- On native interfaces, encryption in user space: OpenVPN for clients, Cassandra's own for internode links. On the
  virtual network, the kernel processes each message, with or without encryption.
- A cipher's work on each byte, the same in user space and in the kernel (a hypothesis; column widths show no trend).

`docs/decisions/0011-how-encryption-is-modelled.md` describes the alternatives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from capplan.models.cassandra.encryption import End
from capplan.models.language.distribution import Erlang
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.station import Station
from capplan.models.language.step import FanOut, If, Pick, ReplicaSet, Sequence, Step, Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.language.units import FloatArray, Number
from capplan.systems.vcider.scenario import ENCRYPTION, NODES, VciderScenario

COLUMNS = 5  # columns of a row: the default of Cassandra's stress tool; the document does not state it
NOMINAL_S = 1e-3
"""Time of an unencrypted operation with one replica: a guess that the network needs, but on which no ratio depends."""
OPERATION, _NODE = "operation", "cassandra"
REPORTED = {OPERATION: (OPERATION,)}
_STAGES = 2  # of the Erlang distribution of every service, SCV 0.5: a guess, as in `capplan.models.cassandra.cluster`


class Ends(NamedTuple):
    """Service demand of one exchange at one end of a link, in unencrypted operations.

    Attributes
    ----------
    client, internode : number
        On a client link, and on a link between nodes.
    """

    client: Number
    internode: Number


def ratios(scenario: VciderScenario, values: Values) -> Mapping[str, FloatArray]:
    """Return the ratios of throughput on the virtual network to that of the native references.

    Parameters
    ----------
    scenario : VciderScenario
        The layout.
    values : mapping
        Parameter values by name; numbers, or arrays (draws,).

    Returns
    -------
    mapping of arrays (draws,)
        Ratios by name of the reference; the reference of the scenario comes first.
    """
    others = [each for each in ENCRYPTION if each != scenario.encryption]
    return {_reference(each): ratio(scenario, values, each) for each in (scenario.encryption, *others)}


def _reference(encryption: str) -> str:
    return f"native, {'no' if encryption == 'none' else encryption} encryption"


def ratio(scenario: VciderScenario, values: Values, encryption: str) -> FloatArray:
    """Return the throughput ratio to the native reference that encrypts the links `encryption` (draws,)."""
    reference = demand(scenario, values, native(scenario, values, encryption))
    return np.atleast_1d(reference / demand(scenario, values, virtual(scenario, values, encryption)))


def demand(scenario: VciderScenario, values: Values, links: Ends) -> Number:
    """Return the service demand of an operation at all nodes together, in unencrypted operations with one replica."""
    own = coordinator_work(values) + scenario.rf * replica_work(values)
    return own + links.client + 2 * remote_replicas(scenario) * links.internode


def remote_replicas(scenario: VciderScenario) -> float:
    """Return the mean number of a row's replicas other than its coordinator.

    An operation contacts all replicas at every consistency level: a write always does, and a read did so for read
    repair, because `read_repair_chance` was 1 by default in Cassandra 0.6 to 0.8.
    """
    return scenario.rf * (NODES - 1) / NODES


def coordinator_work(values: Values) -> Number:
    """Return the coordinator's part of an unencrypted operation."""
    return 1 / (1 + values["replica_work"])


def replica_work(values: Values) -> Number:
    """Return one replica's part of an unencrypted operation."""
    return values["replica_work"] / (1 + values["replica_work"])


def row_bytes(scenario: VciderScenario) -> int:
    """Return the data of a row, bytes."""
    return COLUMNS * scenario.column_bytes


def user_space(values: Values, data_bytes: float) -> Ends:
    """Return the cost of encryption in user space: a VPN process for clients, Cassandra's TLS between nodes."""
    client, internode = (End(values[f"{link}_message"], values["cipher_byte"]) for link in ("client", "internode"))
    return Ends(client.exchange(data_bytes), internode.exchange(data_bytes))


def in_kernel(values: Values, data_bytes: float) -> Ends:
    """Return the cost of an encrypted virtual network in the kernel, including the network's own cost."""
    message = values["kernel_message"] + values["kernel_cipher_message"]
    each = End(message, values["cipher_byte"]).exchange(data_bytes)
    return Ends(each, each)


def native(scenario: VciderScenario, values: Values, encryption: str) -> Ends:
    """Return the cost of native links; unencrypted links cost nothing beyond the operation itself."""
    costs = user_space(values, row_bytes(scenario))
    client = costs.client if encryption == "client+internode" else 0.0
    return Ends(client, costs.internode if encryption != "none" else 0.0)


def virtual(scenario: VciderScenario, values: Values, encryption: str) -> Ends:
    """Return the cost of links on the virtual network, in comparison with a native reference."""
    costs, plain = in_kernel(values, row_bytes(scenario)), End(values["kernel_message"]).exchange(0)
    encrypts = encryption != "none" and scenario.virtual_encrypts != "none"
    clients = encrypts and (scenario.virtual_encrypts == "all" or encryption == "client+internode")
    return Ends(costs.client if clients else plain, costs.internode if encrypts else plain)


def network(scenario: VciderScenario, values: Values, rate_per_s: Number) -> Network:
    """Compose the cluster on the virtual network at a nominal speed; only throughput ratios are meaningful.

    Parameters
    ----------
    scenario : VciderScenario
        The layout.
    values : mapping
        Parameter values by name (numbers, or arrays over draws for the analytic solver).
    rate_per_s : number
        Offered rate, operations per second.

    Returns
    -------
    Network
        One request class, `operation`; Poisson arrivals.
    """
    return cluster(scenario, values, rate_per_s, virtual(scenario, values, scenario.encryption))


def cluster(scenario: VciderScenario, values: Values, rate_per_s: Number, links: Ends) -> Network:
    """Compose a cluster with link costs `links`."""
    return Network(
        name=scenario.system,
        stations=(Station(_NODE, 1, discipline="ps", count=NODES),),
        classes=(RequestClass(OPERATION, _flow(scenario, values, links)),),
        traffic=Open(rate_per_s, {OPERATION: 1.0}),
    )


def _flow(scenario: VciderScenario, values: Values, links: Ends) -> Step:
    """Return an operation with a random coordinator on a random row, whose replicas are neighbours on the ring."""

    def coordinate(remote: int) -> Step:
        work = coordinator_work(values) + links.client + remote * links.internode
        return Visit(_NODE, _work(work), name="coordinate", member="coordinator")

    here, elsewhere = (
        Visit(_NODE, _work(replica_work(values) + more), name="replica", member="replica")
        for more in (0.0, links.internode)
    )
    own = If("coordinator", "replicas", coordinate(scenario.rf - 1), coordinate(scenario.rf))
    quorum = FanOut(
        "replicas", "replica", If("replica", "coordinator", here, elsewhere), scenario.rf // 2 + 1, name="replicas"
    )
    row = ReplicaSet(
        "replicas", _NODE, scenario.rf, Sequence((own, quorum)), placement="ring", first="coordinator", name="row"
    )
    return Pick("coordinator", _NODE, "random", row, name="coordinator")


def _work(operations: Number) -> Erlang:
    return Erlang(operations * NOMINAL_S, _STAGES)
