"""The requests of a session: one authorization and seven accounting requests in the load tests, or another mix.

The load tests sent the eight requests of a session one after another, and a request that fails ends its session. In
production, requests are minutes apart, and a session may have hundreds. So at most eight are sent as one session, the
rest in trains of eight; otherwise a failure would take more requests with it than in the load tests, and the capacity
would come out too high. Numbers that are not whole become a mixture of sessions.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from capplan.models.errors import InputError
from capplan.models.language.request_mix import mix_text, parse_mix

TRAIN = 8  # requests of a session in the load tests: more are not sent one after another
MOST = 10_000  # requests of one kind in a session: more is a typing error


class SessionMix(NamedTuple):
    """Mean numbers of requests in a session."""

    auth: float
    acct: float

    @property
    def total(self) -> float:
        """Mean number of all requests."""
        return self.auth + self.acct

    @property
    def reads(self) -> float:
        """Mean number of reads: every request but the start reads."""
        return self.total - 1

    @property
    def writes(self) -> float:
        """Mean number of writes: every accounting request writes."""
        return self.acct


class SentSession(NamedTuple):
    """Requests that are sent one after another: their classes, and how many of these there are for each session."""

    name: str
    classes: tuple[str, ...]
    weight: float


USUAL = SessionMix(1.0, 7.0)
"""The session of the load tests."""


def read_mix(text: str) -> SessionMix:
    """Read a mix such as `auth=1,acct=7`.

    Raises
    ------
    InputError
        If it is not a mix of auth and acct, or a number is out of range.
    """
    numbers = parse_mix(text, ("auth", "acct"))
    for name, number in numbers.items():
        if number > MOST:
            raise InputError(f"mix {text!r} has {number:g} {name} requests in a session: give at most {MOST:,}")
    auth, acct = numbers["auth"], numbers["acct"]
    if auth <= 0:
        raise InputError(f"mix {text!r} has no authorization: give auth above 0, such as auth=0.1")
    if acct < 1:
        raise InputError(f"mix {text!r} has less than one accounting request: a session has at least its start, acct=1")
    return SessionMix(auth, acct)


def normal_form(text: str | None) -> str | None:
    """Return a mix as it is written here; None for that of the load tests."""
    mix = USUAL if text is None else read_mix(text)
    return None if mix == USUAL else mix_text(mix._asdict())


def sent_sessions(mix: SessionMix) -> tuple[SentSession, ...]:
    """Return what is sent as a session of the network, with the mean numbers of requests of the mix."""
    begins: defaultdict[tuple[int, int], float] = defaultdict(float)
    left = {"auth": 0.0, "update": 0.0}
    for weight, auth, updates in _whole(mix):
        first = min(auth, TRAIN - 1)
        then = min(updates, TRAIN - 1 - first)
        begins[first, then] += weight
        left["auth"] += weight * (auth - first)
        left["update"] += weight * (updates - then)
    sent = [
        SentSession(
            "session" if len(begins) == 1 else f"session-{auth}-{1 + updates}",
            (*("auth",) * auth, "start", *("update",) * updates),
            weight,
        )
        for (auth, updates), weight in begins.items()
    ]
    trains = [SentSession(f"{name}-train", (name,) * TRAIN, more / TRAIN) for name, more in left.items() if more]
    return (*sent, *trains)


def _whole(mix: SessionMix) -> Iterator[tuple[float, int, int]]:
    """Yield weights, and whole numbers of authorizations and updates; a session with more of one has more of both."""
    numbers = mix.auth, mix.acct - 1
    ends = sorted({0.0, *(number % 1 for number in numbers), 1.0})
    for low, high in pairwise(ends):
        auth, updates = (math.floor(number) + (low < number % 1) for number in numbers)
        yield high - low, auth, updates
