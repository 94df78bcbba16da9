"""Consistency levels: how many replicas must answer, and in which data centres."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from capplan.errors import InputError, RefusedError, one_of

CONSISTENCY_LEVELS = ("ONE", "LOCAL_ONE", "TWO", "THREE", "LOCAL_QUORUM", "EACH_QUORUM", "QUORUM", "ALL")
"""Levels of reads and of writes alike: Cassandra reads at EACH_QUORUM since version 3.0 (CASSANDRA-9602)."""
_REFUSED = {
    "ANY": "a hint would count as an answer, and hints are not modelled",
    "SERIAL": "lightweight transactions (four round trips) are not modelled",
    "LOCAL_SERIAL": "lightweight transactions (four round trips) are not modelled",
}


@dataclass(frozen=True)
class Need:
    """The answers that complete an operation.

    Attributes
    ----------
    total : int
        Answers needed from any replicas; 0 if only `by_dc` counts.
    by_dc : mapping of int
        Answers needed from each data centre, by its index.
    """

    total: int
    by_dc: Mapping[int, int]


def check_level(level: str) -> str:
    """Check a consistency level.

    Parameters
    ----------
    level : str
        The level, in upper or lower case.

    Returns
    -------
    str
        The level in upper case.

    Raises
    ------
    RefusedError
        If the level is not modelled.
    InputError
        If there is no such level; the message suggests the nearest one.
    """
    name = level.upper()
    if name in _REFUSED:
        raise RefusedError(
            f"consistency level {name!r} is refused: {_REFUSED[name]}; use one of {', '.join(CONSISTENCY_LEVELS)}"
        )
    one_of(CONSISTENCY_LEVELS, name, f"{level!r} is not a consistency level")
    return name


def quorum(replicas: int) -> int:
    """Return the smallest majority of a number of replicas."""
    return replicas // 2 + 1


def need(level: str, replicas: Sequence[int], local: int) -> Need:
    """Return the answers that a consistency level requires.

    Parameters
    ----------
    level : str
        One of `CONSISTENCY_LEVELS`.
    replicas : sequence of int
        Replication factor of each data centre.
    local : int
        Index of the coordinator's data centre.

    Returns
    -------
    Need

    Raises
    ------
    InputError
        If the level needs more replicas than there are.
    """
    counted = {"ONE": 1, "TWO": 2, "THREE": 3, "QUORUM": quorum(sum(replicas)), "ALL": sum(replicas)}
    if level == "LOCAL_ONE":
        return Need(0, {local: 1})
    if level == "LOCAL_QUORUM":
        return Need(0, {local: quorum(replicas[local])})
    if level == "EACH_QUORUM":
        return Need(0, {dc: quorum(count) for dc, count in enumerate(replicas)})
    if counted[level] > sum(replicas):
        raise InputError(
            f"{level} needs {counted[level]} replicas, but there are {sum(replicas)}: choose a lower level"
        )
    return Need(counted[level], {})


def available(level: str, replicas: Sequence[int], alive: Sequence[int], local: int) -> bool:
    """Return whether a consistency level can be met with some replicas down.

    Parameters
    ----------
    level : str
        Consistency level.
    replicas : sequence of int
        Replication factor of each data centre.
    alive : sequence of int
        Number of live replicas in each data centre.
    local : int
        Index of the coordinator's data centre, which must be up.

    Returns
    -------
    bool
    """
    wanted = need(level, replicas, local)
    return sum(alive) >= wanted.total and all(alive[dc] >= count for dc, count in wanted.by_dc.items())


LADDERS = (
    ("ALL", "EACH_QUORUM", "QUORUM", "LOCAL_QUORUM", "LOCAL_ONE"),
    ("THREE", "TWO", "ONE"),
)
"""Levels of two kinds, from strong to weak: by quorums, and by a number of replicas."""


def lower_levels(level: str) -> tuple[str, ...]:
    """Return the weaker levels of the same kind, starting with the smallest reduction."""
    if level in LADDERS[0]:
        return LADDERS[0][LADDERS[0].index(level) + 1 :]
    return LADDERS[1][LADDERS[1].index(level) + 1 :]


def answers(level: str, replicas: Sequence[int], local: int) -> int:
    """Return how many replicas answer before an operation is complete."""
    wanted = need(level, replicas, local)
    return wanted.total or sum(wanted.by_dc.values())


def always_found(
    read: str, write: str, replicas: Sequence[int], alive: Sequence[int], reader: int, writer: int
) -> bool:
    """Return whether every read contacts a replica that has confirmed the write, whichever replicas answer first.

    Parameters
    ----------
    read, write : str
        Consistency levels.
    replicas, alive : sequence of int
        Replication factor, and number of live replicas, of each data centre.
    reader, writer : int
        Indices of the coordinators' data centres.

    Returns
    -------
    bool
        Whether a replica must have taken part in both.

    References
    ----------
    Gifford (1979), Weighted voting for replicated data: reads and writes overlap if their quorums exceed all replicas.
    """
    reads, writes = need(read, replicas, reader), need(write, replicas, writer)
    if not reads.by_dc:
        return reads.total + (writes.total or sum(writes.by_dc.values())) > sum(alive)
    left = [count - reads.by_dc.get(dc, 0) for dc, count in enumerate(alive)]  # replicas that the read may miss
    if not writes.by_dc:
        return writes.total > sum(left)
    return any(count > left[dc] for dc, count in writes.by_dc.items())
