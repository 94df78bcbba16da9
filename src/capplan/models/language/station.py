"""What a system is made of: hosts, stations with their servers, and pools that are held across steps."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from capplan.models.errors import InputError
from capplan.models.language.construct import LANGUAGE, Construct, Name
from capplan.models.language.distribution import Distribution
from capplan.models.language.units import AtLeastOne, Count, Positive, Seconds, Share


@dataclass(frozen=True, config=LANGUAGE)
class Host(Construct):
    """A machine whose cores the stations on it share.

    While more servers are busy on it than it has cores, each of them is slowed by cores / busy servers.

    Attributes
    ----------
    name
        Name that stations and timeline events refer to.
    cores
        Number of cores.
    """

    name: Name
    cores: AtLeastOne


@dataclass(frozen=True, config=LANGUAGE)
class RateTable(Construct):
    """Speed of each busy server, by the number of requests inside (waiting ones too).

    Contention is a falling table; throughput that droops past its peak is one that falls faster than 1/n.

    Attributes
    ----------
    speeds
        `speeds[n - 1]` is the speed with n requests inside, relative to a demand's own; the last holds beyond.
    """

    speeds: Annotated[tuple[Positive, ...], Field(min_length=1)]


@dataclass(frozen=True, config=LANGUAGE)
class Pauses(Construct):
    """Stop-the-world pauses (garbage collection): the servers stand still, then go on where they were.

    Attributes
    ----------
    every
        Time from the end of one pause to the start of the next, in seconds; its mean is positive.
    length
        Length of a pause, in seconds.
    name
        Name of the process, unlike any other of the station's: its random numbers are drawn by it.

    Raises
    ------
    InputError
        When the mean of `every` is 0.
    """

    every: Distribution
    length: Distribution
    name: Name = "pause"

    def __post_init__(self) -> None:
        _check_recurs(self.every)


@dataclass(frozen=True, config=LANGUAGE)
class Background(Construct):
    """Throttled work beside the requests (flush, compaction, hint replay): it slows the servers, but stops none.

    Attributes
    ----------
    every
        Time from the end of one run to the start of the next, in seconds; its mean is positive.
    length
        Length of a run, in seconds.
    share
        Part of every server's speed that it takes meanwhile; above 0, at most 1.
    name
        Name of the process, unlike any other of the station's: its random numbers are drawn by it.

    Raises
    ------
    InputError
        When the mean of `every` is 0.
    """

    every: Distribution
    length: Distribution
    share: Share
    name: Name = "background"

    def __post_init__(self) -> None:
        _check_recurs(self.every)


def _check_recurs(every: Distribution) -> None:
    if np.any(np.equal(every.mean, 0)):
        raise InputError("every has mean 0, which would repeat without end: give a time between two")


@dataclass(frozen=True, config=LANGUAGE)
class Station(Construct):
    """A queue and its servers.

    Attributes
    ----------
    name
        Name that visits and timeline events refer to.
    servers
        Number of servers, all alike.
    discipline
        `fcfs`: served in order of arrival, one request a server. `ps`: all are served at once and share the servers
        equally, none faster than one server.
    rate
        Speed of a server by the number of requests inside; left out, always 1.
    expiry_s
        Work that has waited longer than this, in seconds, is dropped when its turn comes (as Cassandra's stages do);
        left out, never. For `fcfs` only: nothing waits under `ps`.
    pauses
        Stop-the-world pauses.
    background
        Throttled background work.
    host
        The machine whose cores it shares with other stations; left out, it has its own.

    Raises
    ------
    InputError
        When `expiry_s` is given for `ps`, or two of the pauses and background processes have one name.
    """

    name: Name
    servers: AtLeastOne
    discipline: Literal["fcfs", "ps"] = "fcfs"
    rate: RateTable | None = None
    expiry_s: Seconds | None = None
    pauses: tuple[Pauses, ...] = ()
    background: tuple[Background, ...] = ()
    host: Name | None = None

    def __post_init__(self) -> None:
        if self.discipline == "ps" and self.expiry_s is not None:
            raise InputError(f"expiry_s of station {self.name!r} needs discipline 'fcfs': nothing waits under 'ps'")
        names = [pause.name for pause in self.pauses] + [work.name for work in self.background]
        if len(set(names)) < len(names):
            raise InputError(f"two pauses or background processes of station {self.name!r} share a name: rename one")


@dataclass(frozen=True, config=LANGUAGE)
class Pool(Construct):
    """A passive resource that is held across steps (worker threads, an in-flight limit).

    Requests queue for its units in order of arrival.

    Attributes
    ----------
    name
        Name that holds refer to.
    size
        Number of units.
    queue_limit
        Requests that may wait for a unit; one that comes when so many wait is dropped. Left out: no limit.
    """

    name: Name
    size: AtLeastOne
    queue_limit: Count | None = None
