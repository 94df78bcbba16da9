"""Consistency levels: how many replicas in which data centres must answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from capplan.models.errors import InputError, RefusedError, nearest

READ_LEVELS = ("ONE", "LOCAL_ONE", "TWO", "THREE", "LOCAL_QUORUM", "QUORUM", "ALL")
WRITE_LEVELS = ("ONE", "LOCAL_ONE", "TWO", "THREE", "LOCAL_QUORUM", "EACH_QUORUM", "QUORUM", "ALL")
_REFUSED = {
    "ANY": "a hint would count as an answer, and hints are not modelled",
    "SERIAL": "lightweight transactions cost four round trips and are not modelled",
    "LOCAL_SERIAL": "lightweight transactions cost four round trips and are not modelled",
}


@dataclass(frozen=True)
class Need:
    """Answers that complete an operation.

    Attributes
    ----------
    total : int
        Answers needed from any replica.
    by_dc : mapping of int
        Answers needed from each named data centre besides.
    """

    total: int
    by_dc: Mapping[int, int]


def check_level(level: str, operation: str) -> str:
    """Return the level, in capitals.

    Raises
    ------
    RefusedError
        For a level that is not modelled, by name.
    InputError
        For a word that is no consistency level of this operation, with the nearest one.
    """
    name = level.upper()
    if name == "EACH_QUORUM" and operation == "read":
        raise RefusedError("reads at 'EACH_QUORUM' are refused: they are not modelled; use LOCAL_QUORUM, QUORUM or ALL")
    known = READ_LEVELS if operation == "read" else WRITE_LEVELS
    if name in _REFUSED:
        raise RefusedError(f"consistency level {name!r} is refused: {_REFUSED[name]}; use one of {', '.join(known)}")
    if name not in known:
        raise InputError(f"{level!r} is no consistency level of a {operation}{nearest(name, known)}")
    return name


def quorum(replicas: int) -> int:
    """Smallest majority of `replicas`."""
    return replicas // 2 + 1


def need(level: str, replicas: Sequence[int], local: int) -> Need:
    """Return the answers that `level` needs.

    Parameters
    ----------
    level : str
        A level of `WRITE_LEVELS` or `READ_LEVELS`.
    replicas : sequence of int
        Replication factor of each data centre.
    local : int
        Index of the coordinator's data centre.

    Raises
    ------
    InputError
        When there are fewer replicas than the level asks for.
    """
    counted = {"ONE": 1, "TWO": 2, "THREE": 3, "QUORUM": quorum(sum(replicas)), "ALL": sum(replicas)}
    if level == "LOCAL_ONE":
        return Need(0, {local: 1})
    if level == "LOCAL_QUORUM":
        return Need(0, {local: quorum(replicas[local])})
    if level == "EACH_QUORUM":
        return Need(0, {dc: quorum(count) for dc, count in enumerate(replicas)})
    if counted[level] > sum(replicas):
        raise InputError(f"{level} needs {counted[level]} replicas and there are {sum(replicas)}: choose a lower level")
    return Need(counted[level], {})


def available(level: str, replicas: Sequence[int], alive: Sequence[int], local: int) -> bool:
    """Whether `level` can be met when `alive[dc]` of `replicas[dc]` replicas answer; `local` must be a living DC."""
    wanted = need(level, replicas, local)
    return sum(alive) >= wanted.total and all(alive[dc] >= count for dc, count in wanted.by_dc.items())
