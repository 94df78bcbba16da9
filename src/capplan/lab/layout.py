"""What a lab is asked for, and the nodes that follow: names, addresses, tokens."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from capplan.lab.versions import DEFAULT_VERSION, CassandraVersion, find_version
from capplan.models.errors import InputError, nearest

NATIVE_PORT = 9042
ECHO_PORT = 17007
"""Where the proxy between data centres echoes."""
_INTERNODE_PORT, _INTERNODE_TLS_PORT = 7000, 7001
_MOST_DCS, _MOST_NODES = 9, 200
_LEAST_HEAP = 128 << 20
_BESIDE_HEAP = 370 << 20  # seen: 621, 876 and 1405 MB with 256, 512 and 1024 MB of heap
_SMALLEST_TOKEN, _TOKENS = -(2**63), 2**64
_MOST_RTT_S = 10.0


@dataclass(frozen=True)
class Layout:
    """What a lab is asked for.

    Attributes
    ----------
    dcs : int
        Data centres.
    cass_nodes : int
        Nodes of each.
    rf : int
        Replicas of a row in each.
    version : str
        A name of `VERSIONS`.
    heap_bytes : int
        Heap of each node.
    client_tls, internode_tls : bool
        Whether clients may use TLS, and nodes use it among each other.
    optimise : bool
        Whether Java compiles hot code a second time. Without that, speed is steady after seconds; with it, a node gets
        faster for minutes.
    """

    dcs: int = 1
    cass_nodes: int = 1
    rf: int = 1
    version: str = DEFAULT_VERSION
    heap_bytes: int = 512 << 20
    client_tls: bool = False
    internode_tls: bool = False
    optimise: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.dcs <= _MOST_DCS:
            raise InputError(f"--dcs {self.dcs} is impossible in a lab: give 1 to {_MOST_DCS}")
        if not 1 <= self.cass_nodes <= _MOST_NODES:
            raise InputError(f"--cass-nodes {self.cass_nodes} is impossible in a lab: give 1 to {_MOST_NODES}")
        if not 1 <= self.rf <= self.cass_nodes:
            raise InputError(
                f"--rf {self.rf} is impossible with --cass-nodes {self.cass_nodes}: a node holds a row once"
            )
        if self.heap_bytes < _LEAST_HEAP:
            raise InputError(f"--heap of {self.heap_bytes:,} bytes is too small for Cassandra: give at least 128MiB")
        find_version(self.version)

    @property
    def release(self) -> CassandraVersion:
        """The version."""
        return find_version(self.version)

    @property
    def memory_bytes(self) -> int:
        """Memory that all nodes need."""
        return self.dcs * self.cass_nodes * (self.heap_bytes + _BESIDE_HEAP)

    @property
    def delayed(self) -> bool:
        """Whether data centres talk through a proxy that delays."""
        return self.dcs > 1

    @property
    def internode_port(self) -> int:
        """The port of nodes for each other."""
        own = self.internode_tls and not self.release.one_internode_port
        return _INTERNODE_TLS_PORT if own else _INTERNODE_PORT

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, data centre by data centre."""
        pairs = [(dc, number) for dc in range(1, self.dcs + 1) for number in range(1, self.cass_nodes + 1)]
        return tuple(Node(dc, number, _token(self.cass_nodes, dc, number), self.delayed) for dc, number in pairs)

    def node(self, name: str) -> Node:
        """Return a node by its name.

        Raises
        ------
        InputError
            If there is none of that name.
        """
        known = {each.name: each for each in self.nodes}
        if name not in known:
            raise InputError(f"{name!r} is not a node of the lab{nearest(name, known)}")
        return known[name]


@dataclass(frozen=True)
class Node:
    """One node."""

    dc: int
    number: int
    token: int
    delayed: bool

    @property
    def name(self) -> str:
        """Such as `dc1-2`."""
        return f"dc{self.dc}-{self.number}"

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.{self.dc - 1}.{self.number}"

    @property
    def broadcast(self) -> str:
        """Where other data centres find it: the proxy, if there is one."""
        return f"127.0.{self.dc + 9}.{self.number}" if self.delayed else self.address


def _token(nodes: int, dc: int, number: int) -> int:
    """Return the token of a node: a data centre's nodes own equal ranges, and no two nodes have the same token."""
    return _SMALLEST_TOKEN + (number - 1) * (_TOKENS // nodes) + 100 * dc


def check_rtt(rtt_s: float) -> float:
    """Return a round trip that the proxy can make.

    Raises
    ------
    InputError
        If it is longer than ten seconds.
    """
    if rtt_s > _MOST_RTT_S:
        raise InputError(f"a round trip of {rtt_s:g} s between data centres is too long: give at most 10 s")
    return rtt_s
