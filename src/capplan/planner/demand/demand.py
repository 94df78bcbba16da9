"""A demand file's contents: subscribers, their busy hour, re-attach after an outage, connections and data.

Inputs of a demand that are numbers, or lie between two ends, and where its defaults come from.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema
from pydantic.dataclasses import dataclass

from capplan.answers.results import Band, Parts
from capplan.errors import InputError
from capplan.models.cassandra import storage
from capplan.models.language.construct import LANGUAGE, Construct
from capplan.models.language.document import read
from capplan.models.language.units import (
    READ_SHARE,
    FloatArray,
    PerSecond,
    Positive,
    PositiveSeconds,
    Seconds,
    check_number,
    parse_count,
    parse_share,
    parse_size_bytes,
)

_Z95 = 1.6448536269514722  # 95th percentile of the normal distribution
_LEVELS = (0.05, 0.5, 0.95)
DRAWS = 2047
"""Draws of each uncertain input; odd, so that the median is one of them."""


class Between(NamedTuple):
    """A positive input by its 5th and 95th percentile, equal if it is exact; its logarithm is normal."""

    low: float
    high: float

    def draws(self, seed: int, number: int, at_most: float = np.inf) -> FloatArray:
        """Return stratified draws, at most `at_most`; inputs with other numbers are independent.

        Parameters
        ----------
        seed : int
            Seed of all inputs.
        number : int
            Number of the input.
        at_most : float
            What the input cannot exceed.

        Returns
        -------
        array (DRAWS,)
        """
        if self.low == self.high:
            return np.full(DRAWS, self.low)
        from scipy import special  # slow to import

        levels = (np.random.default_rng([seed, number]).permutation(DRAWS) + 0.5) / DRAWS
        centre, spread = np.log(self.low * self.high) / 2, np.log(self.high / self.low) / (2 * _Z95)
        return np.asarray(np.minimum(np.exp(centre + spread * special.ndtri(levels)), at_most))


def band_of(draws: FloatArray) -> Band:
    """Return the median and the 90 % band of a figure over the draws of its inputs; both may be infinite."""
    low, value, high = (float(each) for each in np.quantile(draws, _LEVELS, method="inverted_cdf"))
    half = (high - low) / 2 if np.isfinite(high) else None
    return Band(value, low, high, Parts(parameter=half))


def parse_growth(text: str) -> float:
    """Parse a growth per year, such as `20%` or `20%/y`, and return it as a share.

    Raises
    ------
    InputError
        If it is something else.
    """
    written = text.strip().removesuffix("/y").strip()
    try:
        return float(written.removesuffix("%")) / (100 if written.endswith("%") else 1)
    except ValueError:
        raise InputError(f"{text!r} is not a growth per year: write a percentage such as '20%'") from None


def _between(what: str, parse: Callable[[str], float] | None, above: float | None, at_most: float) -> Any:
    """Return annotations of a field that takes a number, or a low and a high end in a list."""

    def one(value: Any) -> float:
        number = parse(value) if isinstance(value, str) and parse is not None else value
        return float(np.max(check_number(number, what, above=above, at_most=at_most, bounded=True)))

    def read(value: Any) -> Between:
        if not isinstance(value, (list, tuple)):
            return Between(one(value), one(value))
        if len(value) != 2:
            raise InputError(f"a list of {len(value)} is not a {what}: give one number, or its low and high end")
        low, high = one(value[0]), one(value[1])
        if low > high:
            raise InputError(f"[{value[0]}, {value[1]}] is not a {what}: give the low end first")
        return Between(low, high)

    item: dict[str, Any] = {"type": ["number", "string"]}
    schema = {"anyOf": [item, {"type": "array", "items": item, "minItems": 2, "maxItems": 2}], "description": what}
    return PlainValidator(read), WithJsonSchema(schema)


Sizes = Annotated[Between, *_between("size in bytes", parse_size_bytes, 0.0, np.inf)]
Shares = Annotated[Between, *_between("share above 0", parse_share, 0.0, 1.0)]
Counts = Annotated[Between, *_between("number above 0", None, 0.0, np.inf)]
Growth = Annotated[Between, *_between("growth per year", parse_growth, -1.0, 10.0)]
NO_GROWTH = Between(0.0, 0.0)  # that of a file without one


def growth_factors(growth: Between, seed: int, number: int) -> FloatArray:
    """Return draws of the factor of one year (DRAWS,)."""
    return Between(1 + growth.low, 1 + growth.high).draws(seed, number)


GUESS = "guess"


@dataclasses.dataclass(frozen=True)
class Assumption:
    """An input that the file leaves out.

    Attributes
    ----------
    key
        Its place in the file, such as `busy_hour.interim_s`.
    value
        The default, as it would be written in the file.
    source
        Where it comes from; `guess` where it has no source.
    """

    key: str
    value: str
    source: str


INTERIM_S = 600.0
BOOT_SHARES = ((5.0, 15.0, 0.2), (15.0, 45.0, 0.5), (45.0, 90.0, 0.3))
"""From, to (s) and share of the devices that have booted in between."""
COMPRESSION = Between(*storage.COMPRESSION)
USABLE = Between(storage.USABLE, storage.USABLE)
BUSY_SHARE = Between(0.08, 0.15)

SOURCES = {
    "busy_hour.interim_s": "RFC 2869, section 5.16: an interval should not be below 600 s",
    "busy_hour.authentication_requests": "RFC 2865: one Access-Request for PAP or CHAP; EAP takes several (RFC 3579)",
    "busy_hour.lengths": GUESS,
    "busy_hour.share_of_day": GUESS,
    "reattach.share": GUESS,
    "reattach.window_s": GUESS,
    "reattach.boot": "openRadius load test report, aa1f32b: its power-outage case, one AAA test",
    "connections.within_s": GUESS,
    "data.rows": GUESS,
    "data.compaction": "Apache Cassandra documentation: STCS is the default compaction strategy",
    "data.headroom.STCS": "DataStax support FAQ on STCS: half of the disk in the worst case",
    "data.headroom.LCS": "J. Ellis, Leveled compaction in Apache Cassandra (2011): at most 10 % of obsolete rows",
    "data.headroom.TWCS": "Apache Cassandra documentation on TWCS: a window is compacted at a time, of 20 to 30",
    "data.headroom.UCS": "Apache Cassandra documentation on UCS: at least four shards, two compacted at once",
    "data.compression": "DataStax documentation: 2x to 4x smaller (Cassandra 2.2), 25 to 33 % smaller (DSE 5.1)",
    "data.usable": "DataStax documentation of Cassandra 1.2, usable disk capacity: formatting takes 10 %",
}


_READ_COUNT = BeforeValidator(lambda value: parse_count(value) if isinstance(value, str) else value)
ShareOfAll = Annotated[float, Field(gt=0, le=1), READ_SHARE]
DAY_S = 86_400.0
HOUR_S = 3600.0


@dataclass(frozen=True, config=LANGUAGE)
class BusyHour(Construct):
    """A subscriber's activity in the busy hour.

    Attributes
    ----------
    sessions
        Sessions that a subscriber starts in the busy hour, on average.
    length_s
        Mean length of a session. Lengths are exponential: their spread is a guess.
    interim_s
        Time between two accounting updates of a session; 600 s by default.
    interim_updates
        Mean number of updates in a session; instead of `interim_s`.
    reauthentication_s
        Time between two authentications of a session; a session authenticates once by default.
    authentication_requests
        Requests of one authentication; 1 by default, and one for each round trip with EAP.
    share_of_day
        Share of a day's sessions that start in the busy hour; 8 to 15 % by default.

    Raises
    ------
    InputError
        If both ways to give interim updates are there, or sessions overlap.
    """

    sessions: Positive
    length_s: PositiveSeconds
    interim_s: PositiveSeconds | None = None
    interim_updates: Annotated[float, Field(ge=0, le=10_000)] | None = None
    reauthentication_s: PositiveSeconds | None = None
    authentication_requests: Positive | None = None
    share_of_day: Shares | None = None

    def __post_init__(self) -> None:
        if self.interim_s is not None and self.interim_updates is not None:
            raise InputError("interim_s and interim_updates exclude each other: give one of them")
        at_once = self.open_sessions
        if at_once > 1 + 1e-9:
            raise InputError(
                f"{self.sessions:g} sessions of {self.length_s:g} s in an hour are {at_once:.3g} at once for each "
                "subscriber, who has one at most: give fewer or shorter sessions, or count devices as subscribers"
            )

    @property
    def open_sessions(self) -> float:
        """Sessions of a subscriber that are open at once, on average (Little's law)."""
        return float(self.sessions) * float(self.length_s) / HOUR_S


@dataclass(frozen=True, config=LANGUAGE)
class Boot(Construct):
    """Devices that boot within a time after the outage, spread evenly over it.

    Attributes
    ----------
    from_s
        Begin of the time, after the end of the outage.
    to_s
        Its end.
    share
        Share of the devices.

    Raises
    ------
    InputError
        If the end is not after the begin.
    """

    from_s: Seconds
    to_s: PositiveSeconds
    share: ShareOfAll

    def __post_init__(self) -> None:
        if self.to_s <= self.from_s:
            raise InputError(f"to_s = {self.to_s:g} is not after from_s = {self.from_s:g}: exchange or change them")


@dataclass(frozen=True, config=LANGUAGE)
class Reattach(Construct):
    """Subscribers that return at the same time after an outage of power or network.

    Attributes
    ----------
    share
        Share of the open sessions that the outage has ended; all by default.
    window_s
        Time over which the peak rate is counted; 1 s by default.
    boot
        When devices are back; a published boot-time distribution by default.

    Raises
    ------
    InputError
        If the shares do not add up to 1, or times overlap.
    """

    share: ShareOfAll | None = None
    window_s: PositiveSeconds | None = None
    boot: tuple[Boot, ...] = ()

    def __post_init__(self) -> None:
        total = math.fsum(each.share for each in self.boot)
        if self.boot and abs(total - 1) > 1e-9:
            raise InputError(f"the shares of boot add up to {100 * total:g}%: they must add up to 100%")
        for before, after in zip(self.boot, self.boot[1:], strict=False):
            if after.from_s < before.to_s:
                raise InputError(
                    f"boot from {after.from_s:g} s begins before {before.to_s:g} s, where the one before ends: give "
                    "times that follow one another"
                )


@dataclass(frozen=True, config=LANGUAGE)
class Connections(Construct):
    """TLS connections of the database's clients, such as those of drivers.

    Attributes
    ----------
    count
        Open connections.
    lifetime_s
        Time after which each is made anew; they last by default.
    within_s
        Time within which all are made anew after an outage; 10 s by default.
    """

    count: Annotated[Positive, _READ_COUNT]
    lifetime_s: PositiveSeconds | None = None
    within_s: PositiveSeconds | None = None


@dataclass(frozen=True, config=LANGUAGE)
class Data(Construct):
    """What is stored. Each number may be a list of a low and a high end, its 5th and 95th percentile.

    Attributes
    ----------
    row_bytes
        Bytes of a row of a session, uncompressed, with its keys and timestamps.
    rows
        Rows of a session; 1 by default.
    retention_s
        Time for which the rows of a session are kept after its end.
    subscriber_bytes
        Bytes that each subscriber has besides, such as a profile; none by default.
    compression
        Size on disk over uncompressed size; 0.25 to 0.75 by default.
    compaction
        Compaction strategy: `STCS` (by default), `LCS`, `TWCS` or `TWCS:1d`, `UCS` or `UCS:L10`.
    headroom
        Share of the disk that compaction needs free; by default 50 % with STCS, 10 % with LCS, and a window with TWCS.
    disk_gib
        Size of the disk of a Cassandra node, GiB.
    usable
        Share of the disk that is left after formatting; 90 % by default.

    Raises
    ------
    InputError
        If nothing is left of the disk.
    """

    row_bytes: Sizes
    retention_s: Seconds
    rows: Counts | None = None
    subscriber_bytes: Sizes | None = None
    compression: Shares | None = None
    compaction: Annotated[str, AfterValidator(lambda text: storage.read_compaction(text).text)] | None = None
    headroom: Shares | None = None
    disk_gib: Positive | None = None
    usable: Shares | None = None

    def __post_init__(self) -> None:
        if self.headroom is not None and self.headroom.high >= 1:
            raise InputError("headroom = 100% leaves no disk for data: give less")


@dataclass(frozen=True, config=LANGUAGE)
class Demand(Construct):
    """The load on a service: that of subscribers, or reads and writes per second.

    Attributes
    ----------
    subscribers
        Subscribers today, such as `3_000_000` or `3M`.
    busy_hour
        What each does in the busy hour.
    reads, writes
        Reads and writes per second today, such as `10k/s`, instead of subscribers and what they do.
    growth
        Growth of the load per year, such as `20%`, or a low and a high end.
    years
        Planned time.
    reattach
        How subscribers come back after an outage.
    connections
        TLS connections of the database's clients; none by default.
    data
        What is stored; not asked by default.

    Raises
    ------
    InputError
        If a table contradicts itself, neither subscribers nor rates are given or both, or the planned time is out of
        range.
    """

    subscribers: Annotated[Positive | None, _READ_COUNT] = None
    busy_hour: BusyHour | None = None
    reads: PerSecond | None = None
    writes: PerSecond | None = None
    growth: Growth = NO_GROWTH
    years: Annotated[float, Field(ge=0, le=50)] = 0.0
    reattach: Reattach = Reattach()
    connections: Connections | None = None
    data: Data | None = None

    def __post_init__(self) -> None:
        if self.years and self.growth is NO_GROWTH:
            raise InputError(f"years = {self.years:g} has no effect without growth: add one such as growth = '20%'")
        if not self.stated:
            for name in ("subscribers", "busy_hour"):
                if getattr(self, name) is None:
                    raise InputError(
                        f"{name} is missing: give subscribers and busy_hour, or reads and writes per second"
                    )
            return
        if not self.reads_per_s + self.writes_per_s:
            raise InputError("reads and writes are both 0: give a rate above 0, such as writes = '10k/s'")
        data = self.data or Data(row_bytes=Between(1.0, 1.0), retention_s=0.0)
        names = ("subscribers", "busy_hour", "connections")
        beside = [name for name in names if getattr(self, name) is not None]
        beside += ["reattach"] * (self.reattach != Reattach())
        beside += [f"data.{name}" for name in ("rows", "subscriber_bytes") if getattr(data, name) is not None]
        for name in ("row_bytes", "compression", "headroom", "usable"):
            ends = getattr(data, name)
            if ends is not None and ends.low != ends.high:
                raise InputError(
                    f"data.{name} = [{ends.low:g}, {ends.high:g}] is a range, and reads and writes take one number "
                    "for their layouts: give that, such as the higher end"
                )
        if beside:
            raise InputError(f"{beside[0]} is about subscribers, and reads and writes give the load: leave one out")

    @property
    def stated(self) -> bool:
        """Whether rates are given, and no subscribers."""
        return self.reads is not None or self.writes is not None

    @property
    def reads_per_s(self) -> float:
        """Stated reads per second today."""
        return float(np.max(self.reads or 0.0))

    @property
    def writes_per_s(self) -> float:
        """Stated writes per second today."""
        return float(np.max(self.writes or 0.0))

    @property
    def amount(self) -> float:
        """What grows: subscribers today, or 1 where rates are stated."""
        return float(np.max(self.subscribers or 1.0))

    @property
    def hour(self) -> BusyHour:
        """The busy hour of subscribers.

        Raises
        ------
        InputError
            If there are none.
        """
        if self.busy_hour is None:
            raise InputError("the demand has reads and writes per second, and no subscribers")
        return self.busy_hour

    @property
    def keep_s(self) -> float:
        """How long rows are kept, seconds; 0 without data."""
        length_s = 0.0 if self.busy_hour is None else float(self.busy_hour.length_s)
        return 0.0 if self.data is None else length_s + float(self.data.retention_s)

    @property
    def months(self) -> float:
        """Planned time in months."""
        return 12 * self.years


def read_demand(path: str | Path) -> Demand:
    """Read a demand from a TOML file.

    Raises
    ------
    InputError
        If it cannot be read, or a key or a value is wrong.
    """
    return read(Demand, path)


def assumptions(demand: Demand) -> tuple[Assumption, ...]:
    """Return the relevant inputs that the file leaves out, with the sources of their defaults."""
    if demand.stated:
        return _assumed([] if demand.data is None else _of_data(demand.data, demand))
    hour, again, connections = demand.hour, demand.reattach, demand.connections
    booted = ", ".join(f"{share:.0%} in {from_s:g} to {to_s:g} s" for from_s, to_s, share in BOOT_SHARES)
    left_out = [
        ("busy_hour.interim_s", hour.interim_s is None and hour.interim_updates is None, f"{INTERIM_S:g}"),
        ("busy_hour.authentication_requests", hour.authentication_requests is None, "1"),
        ("busy_hour.lengths", hour.interim_updates is None or hour.reauthentication_s is not None, "exponential"),
        ("reattach.share", again.share is None, "100%"),
        ("reattach.window_s", again.window_s is None, "1"),
        ("reattach.boot", not again.boot, booted),
        ("connections.within_s", connections is not None and connections.within_s is None, "10"),
        *([] if demand.data is None else [_of_day(hour), ("data.rows", demand.data.rows is None, "1")]),
        *([] if demand.data is None else _of_data(demand.data, demand)),
    ]
    return _assumed(left_out)


def _assumed(left_out: list[tuple[str, bool, str]]) -> tuple[Assumption, ...]:
    return tuple(
        Assumption("data.headroom" if key.startswith("data.headroom") else key, value, SOURCES[key])
        for key, missing, value in left_out
        if missing
    )


def _of_day(hour: BusyHour) -> tuple[str, bool, str]:
    return ("busy_hour.share_of_day", hour.share_of_day is None, f"{BUSY_SHARE.low:.0%} to {BUSY_SHARE.high:.0%}")


def _of_data(data: Data, demand: Demand) -> list[tuple[str, bool, str]]:
    strategy = storage.read_compaction(data.compaction or "STCS")
    free = strategy.free(demand.keep_s)
    return [
        ("data.compression", data.compression is None, f"{COMPRESSION.low:g} to {COMPRESSION.high:g}"),
        ("data.compaction", data.compaction is None and data.headroom is None, "STCS"),
        (f"data.headroom.{strategy.text.partition(':')[0]}", data.headroom is None, f"{free:.0%}"),
        ("data.usable", data.usable is None, f"{USABLE.low:.0%}"),
    ]
