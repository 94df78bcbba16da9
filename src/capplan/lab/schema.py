"""The keyspace of a lab, made through cassandra-driver; a write at ALL shows that all nodes are there."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from capplan.lab.layout import NATIVE_PORT, Layout, Node
from capplan.models.errors import InputError

KEYSPACE = "lab"
_PATIENCE_S = 120.0
_PAUSE_S = 0.2
_TIMEOUT_S = 20.0


@contextmanager
def session(layout: Layout, node: Node | None = None) -> Iterator[Any]:
    """Connect to one node, and to no other."""
    from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
    from cassandra.policies import WhiteListRoundRobinPolicy

    logging.getLogger("cassandra").setLevel(logging.CRITICAL)  # what fails is raised
    address = (node or layout.nodes[0]).address
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy([address]), request_timeout=_TIMEOUT_S)
    cluster = Cluster(
        [address],
        port=NATIVE_PORT,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        protocol_version=4,
        connect_timeout=_TIMEOUT_S,
        schema_metadata_enabled=False,
        token_metadata_enabled=False,
    )
    try:
        yield cluster.connect()
    finally:
        cluster.shutdown()


def replication(layout: Layout) -> str:
    """Return the replication of the lab's keyspace, as CQL."""
    each = ", ".join(f"'dc{dc}': {layout.rf}" for dc in range(1, layout.dcs + 1))
    return f"{{'class': 'NetworkTopologyStrategy', {each}}}"


def create_keyspace(layout: Layout, check: Callable[[], None]) -> None:
    """Create the keyspace, and write rows that every node must take.

    Parameters
    ----------
    layout : Layout
        That of the lab.
    check : function
        Raises an error if waiting is of no use.

    Raises
    ------
    InputError
        If the nodes do not find each other.
    """
    from cassandra import ConsistencyLevel
    from cassandra.query import SimpleStatement

    statements = (
        f"CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = {replication(layout)}",
        f"CREATE TABLE IF NOT EXISTS {KEYSPACE}.ready (id bigint PRIMARY KEY)",
        *(f"INSERT INTO {KEYSPACE}.ready (id) VALUES ({number})" for number in range(8 * layout.cass_nodes)),  # noqa: S608  # own names
    )
    deadline = time.monotonic() + _PATIENCE_S
    left = list(statements)
    while left:
        try:
            with session(layout) as its:
                while left:
                    its.execute(SimpleStatement(left[0], consistency_level=ConsistencyLevel.ALL))
                    left.pop(0)
        except Exception as error:  # of many classes, as long as nodes find each other
            check()
            if time.monotonic() > deadline:
                raise InputError(f"the nodes did not find each other within {_PATIENCE_S:g} s: {error}") from None
            time.sleep(_PAUSE_S)
