"""The requests of a session: one authorization and seven accounting requests in the load tests, or another mix.

The load tests sent the requests of a session one after another. A short session of another mix is sent in the same way;
numbers that are not whole become a mixture of sessions. The requests of a session with hundreds of interim updates are
minutes apart in production, so such a session is sent in trains as long as the sessions of the load tests.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from capplan.models.errors import InputError
from capplan.models.language.request_mix import mix_text, parse_mix

LONGEST = 16  # requests of a session that is sent as a whole
TRAIN = 8  # requests of a session in the load tests
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
    if math.ceil(mix.auth) + math.ceil(mix.acct) > LONGEST:
        return tuple(_trains(mix))
    whole = tuple(_whole(mix))
    if len(whole) > 1:
        return whole
    return (SentSession("session", whole[0].classes, 1.0),)


def _whole(mix: SessionMix) -> Iterator[SentSession]:
    """Yield sessions with whole numbers of requests; the longer ones have more of both kinds."""
    more = mix.auth % 1, mix.acct % 1
    ends = sorted({0.0, *more, 1.0})
    for low, high in pairwise(ends):
        auth, acct = (
            math.floor(number) + (low < part) for number, part in zip((mix.auth, mix.acct), more, strict=True)
        )
        yield SentSession(f"session-{auth}-{acct}", _classes(auth, acct - 1), high - low)


def _trains(mix: SessionMix) -> Iterator[SentSession]:
    """Yield the begin of a long session, then the rest of its authorizations and updates in trains."""
    auth = min(math.floor(mix.auth), TRAIN - 1)
    updates = min(math.floor(mix.acct) - 1, TRAIN - 1 - auth)
    yield SentSession("session", _classes(auth, updates), 1.0)
    for name, left in (("auth", mix.auth - auth), ("update", mix.acct - 1 - updates)):
        if left > 0:
            yield SentSession(f"{name}-train", (name,) * TRAIN, left / TRAIN)


def _classes(auth: int, updates: int) -> tuple[str, ...]:
    return (*("auth",) * auth, "start", *("update",) * updates)
