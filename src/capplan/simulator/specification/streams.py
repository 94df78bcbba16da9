"""Counter-based random numbers: every draw is a pure function of its key, without state or drawing order.

A key is a 64-bit number, made of fields one after another::

    root    = seed, replication
    source  = root, name of the session or request class        (or "traffic" for arrivals, "station" and its name)
    request = source, client or session number, position in it, attempt
    branch  = request (or the branch around), number of the member, from 0     (of a fan-out; see decision record 0006)
    draw    = request or branch, step name with its branch path

The mixing function is the finaliser of SplitMix64 (Steele, Lea and Flood 2014, with Stafford's 13th variant of the
constants): two multiplications, full avalanche, the same few lines in Python, numpy and compiled code. Philox would be
as good but needs ten rounds; a library's generator would need a new seed for every draw.

Names are hashed once, by BLAKE2b. Python's `hash` changes from process to process.
"""

from __future__ import annotations

from collections.abc import Container
from hashlib import blake2b
from itertools import count

from capplan.models.language.step import Step, children

MASK = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15  # 2**64 / golden ratio, odd: the step of SplitMix64's counter
FIRST = 0xBF58476D1CE4E5B9
SECOND = 0x94D049BB133111EB


def mix(word: int) -> int:
    """Return a 64-bit hash of `word`: a change of any bit of `word` flips each bit with probability 1/2."""
    word = (word ^ (word >> 30)) * FIRST & MASK
    word = (word ^ (word >> 27)) * SECOND & MASK
    return word ^ (word >> 31)


def fold(key: int, field: int) -> int:
    """Return the key of `field` below `key`; fields 0, 1, 2, ... give the outputs of SplitMix64 seeded with `key`."""
    return mix((key + (field + 1) * GAMMA) & MASK)


def name_key(*names: str) -> int:
    """Return the stable 64-bit number of a name, optionally within a namespace (`name_key("step", "read")`)."""
    return int.from_bytes(blake2b("\0".join(names).encode(), digest_size=8).digest(), "little")


def root_key(seed: int, replication: int) -> int:
    """Return the root key of one replication."""
    return fold(fold(0, seed), replication)


def source_key(root: int, *names: str) -> int:
    """Return the key of a session, request class, station or other source of draws."""
    return fold(root, name_key(*names))


def request_key(source: int, unit: int, position: int, attempt: int = 0) -> int:
    """Return the key of one attempt of the request at `position` of client or session number `unit`."""
    return fold(fold(fold(source, unit), position), attempt)


def uniform(request: int, draw: int) -> float:
    """Return the uniform number of the draw named `draw` (a `name_key`) of a request.

    Parameters
    ----------
    request : int
        Key of the request, 64 bits.
    draw : int
        Key of the name of the draw, 64 bits.

    Returns
    -------
    float
        An odd multiple of 2**-53, strictly between 0 and 1: 52 random bits and a half. So a quantile function is never
        asked for an end of its range.
    """
    word = (request + draw) & MASK  # `mix`, written out: this is the innermost line of the engine
    word = (word ^ (word >> 30)) * FIRST & MASK
    word = (word ^ (word >> 27)) * SECOND & MASK
    return (((word ^ (word >> 31)) >> 12) + 0.5) * 2.0**-52


def replicas_key(group: str) -> int:
    """Return the key of the draws that place a row's replicas among the members of a group."""
    return name_key("replicas", group)


def replicas(token: int, key: int, count: int, size: int, placement: str) -> tuple[int, ...]:
    """Return the replicas of a row in order.

    Parameters
    ----------
    token : int
        Token of the row, 64 bits.
    key : int
        `replicas_key` of the station or pool.
    count, size : int
        Number of members, and of replicas.
    placement : {"ring", "random"}
        `ring` takes the member that owns the token, by `uniform(token, 0)`, and those that follow. `random` draws one
        member after another, without replacement; draw number k has the key ``fold(key, k)``.

    Returns
    -------
    tuple of int
        Distinct numbers of members, from 0.
    """
    if placement == "ring":
        owner = int(uniform(token, 0) * count)
        return tuple((owner + place) % count for place in range(size))
    drawn: list[int] = []
    for place in range(size):
        member = int(uniform(token, fold(key, place)) * (count - place))
        for smaller in sorted(drawn):  # the draw counts only members that are left
            member += member >= smaller
        drawn.append(member)
    return tuple(drawn)


def step_names(flow: Step) -> tuple[str, ...]:
    """Name every step of a flow, in the order of `walk` (parents first).

    The name of a named step follows the names of the *named* steps around it, so unnamed structure around a step
    changes nothing. A step without a name is known by its place (child numbers) below the nearest named step. The
    second, third, ... step of the same name gets `#2`, `#3`, ..., so that it does not repeat the draws of the first.
    """
    names: dict[str, None] = {}  # in order, and quick to look up

    def add(step: Step, around: str, place: str) -> None:
        name = _unused(f"{around}/{step.name or place}", names)
        names[name] = None
        for number, child in enumerate(children(step)):
            if step.name:
                add(child, name, str(number))
            else:
                add(child, around, f"{place}.{number}")

    add(flow, "", "0")
    return tuple(names)


def _unused(name: str, used: Container[str]) -> str:
    if name not in used:
        return name
    return next(other for repeat in count(2) if (other := f"{name}#{repeat}") not in used)
