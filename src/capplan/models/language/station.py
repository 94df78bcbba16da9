"""The parts of a system: hosts, stations with servers, and pools whose units requests acquire."""

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
    """A machine whose stations share its cores.

    If more servers are busy than there are cores, each server runs at the speed cores / busy servers.

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
    """Speed of each busy server as a function of the number of requests at the station, waiting ones included.

    A falling table models contention. If it falls faster than 1/n, throughput declines beyond its peak.

    Attributes
    ----------
    speeds
        `speeds[n - 1]` is the relative speed with n requests at the station; the last speed holds for all larger n.
    """

    speeds: Annotated[tuple[Positive, ...], Field(min_length=1)]


@dataclass(frozen=True, config=LANGUAGE)
class Pauses(Construct):
    """Stop-the-world pauses, such as garbage collection: all servers stop, then resume the work they had begun.

    Attributes
    ----------
    every
        Time from the end of one pause to the start of the next, in seconds; its mean is positive.
    length
        Length of a pause, in seconds.
    name
        Name of the process, unique at the station, which keys its random stream.

    Raises
    ------
    InputError
        If the mean of `every` is 0.
    """

    every: Distribution
    length: Distribution
    name: Name = "pause"

    def __post_init__(self) -> None:
        _check_recurs(self.every)


@dataclass(frozen=True, config=LANGUAGE)
class Background(Construct):
    """Throttled background work (flush, compaction, hint replay) that slows the servers but does not stop them.

    Attributes
    ----------
    every
        Time from the end of one run to the start of the next, in seconds; its mean is positive.
    length
        Length of a run, in seconds.
    share
        Share of every server's speed that a run takes; above 0, at most 1.
    name
        Name of the process, unique at the station, which keys its random stream.

    Raises
    ------
    InputError
        If the mean of `every` is 0.
    """

    every: Distribution
    length: Distribution
    share: Share
    name: Name = "background"

    def __post_init__(self) -> None:
        _check_recurs(self.every)


def _check_recurs(every: Distribution) -> None:
    if np.any(np.equal(every.mean, 0)):
        raise InputError("every has mean 0: give a positive mean time between two runs")


@dataclass(frozen=True, config=LANGUAGE)
class Station(Construct):
    """A queue with one or more identical servers.

    Attributes
    ----------
    name
        Name that visits and timeline events refer to.
    servers
        Number of servers.
    discipline
        `fcfs` (fixed rate): each server serves one request at a time, in order of arrival. `ps` (processor sharing):
        all requests share the servers equally, and none is faster than one server.
    rate
        Speed of a server by the number of requests at the station; always 1 if left out.
    expiry_s
        A request that has waited longer than this, in seconds, is dropped when its turn comes, as in Cassandra's
        stages; never if left out. Only for `fcfs`, since nothing waits under `ps`.
    pauses
        Stop-the-world pauses.
    background
        Throttled background work.
    host
        Machine whose cores the station shares with other stations; its own cores if left out.

    Raises
    ------
    InputError
        If `expiry_s` is given for `ps`, or two pauses or background processes have the same name.
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
        names = [pause.name for pause in self.pauses] + [process.name for process in self.background]
        if len(set(names)) < len(names):
            raise InputError(f"two pauses or background processes of station {self.name!r} share a name: rename one")


@dataclass(frozen=True, config=LANGUAGE)
class Pool(Construct):
    """A passive resource whose units requests acquire, such as worker threads or an in-flight limit.

    Requests queue for a unit in order of arrival.

    Attributes
    ----------
    name
        Name that `Acquire` steps refer to.
    size
        Number of units.
    queue_limit
        Number of requests that may wait for a unit; further arrivals are dropped. No limit if left out.
    """

    name: Name
    size: AtLeastOne
    queue_limit: Count | None = None
