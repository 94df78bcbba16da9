"""What a system is made of: hosts, stations with their servers, and pools that are held across steps."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from capplan.models.distribution import LANGUAGE, Distribution
from capplan.models.errors import InputError
from capplan.models.quantity import Positive, Seconds
from capplan.models.step import AtLeastOne, Count

Share = Annotated[float, Field(gt=0, le=1)]


@dataclass(frozen=True, config=LANGUAGE)
class Host:
    """A machine with `cores` that the stations on it share."""

    name: str
    cores: AtLeastOne


@dataclass(frozen=True, config=LANGUAGE)
class RateTable:
    """Speed of each busy server relative to one alone: `speeds[n - 1]` with n requests inside, the last beyond that.

    Contention is a falling table; throughput that droops past its peak is one that falls faster than 1/n.
    """

    speeds: Annotated[tuple[Positive, ...], Field(min_length=1)]


@dataclass(frozen=True, config=LANGUAGE)
class Pauses:
    """Stop-the-world pauses (garbage collection): `every` from the end of one to the start of the next, for `length`."""

    every: Distribution
    length: Distribution
    name: str = "pause"


@dataclass(frozen=True, config=LANGUAGE)
class Background:
    """Throttled work that takes `share` of the servers' speed for `length`, again after `every` (flush, compaction)."""

    every: Distribution
    length: Distribution
    share: Share
    name: str = "background"


@dataclass(frozen=True, config=LANGUAGE)
class Station:
    """A queue with `servers` that serve in order of arrival (`fcfs`) or share their speed equally (`ps`).

    `expiry_s`: work that has waited longer than this is dropped when its turn comes. `host`: the machine whose cores
    it shares with other stations.
    """

    name: str
    servers: AtLeastOne
    discipline: Literal["fcfs", "ps"] = "fcfs"
    rate: RateTable | None = None
    expiry_s: Seconds | None = None
    pauses: tuple[Pauses, ...] = ()
    background: tuple[Background, ...] = ()
    host: str | None = None


@dataclass(frozen=True, config=LANGUAGE)
class Pool:
    """A passive resource of `size` units held across steps; more than `queue_limit` waiting are dropped (None: never)."""

    name: str
    size: AtLeastOne
    queue_limit: Count | None = None


@dataclass(frozen=True, config=LANGUAGE)
class Retry:
    """Up to `attempts` tries in all; the k-th retry comes after `backoff_s` * `factor` ** (k - 1)."""

    attempts: AtLeastOne
    backoff_s: Seconds
    factor: Positive = 1.0

    def __post_init__(self) -> None:
        if self.attempts < 2:
            raise InputError(f"attempts = {self.attempts} never retries: leave retry out, or give at least 2")
