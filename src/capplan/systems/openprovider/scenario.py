"""The layout of `openprovider`, its production data, and the traffic on it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field
from pydantic.dataclasses import dataclass

from capplan.errors import InputError
from capplan.models.cassandra.encryption import check_encryption, check_reconnects
from capplan.models.language.construct import LANGUAGE
from capplan.models.language.per_dc import (
    PerDcOrNone,
    by_dc,
    per_dc_text,
)
from capplan.models.language.scenario import LARGEST, Objectives, Option, check_at_most, defaults_of, rate_option
from capplan.models.language.traffic import mix_text, parse_mix
from capplan.models.language.units import (
    KILOMETRES_TEXT,
    MILLISECONDS_TEXT,
    AtLeastOne,
    PositivePerSecond,
    check_number,
    parse_length_m,
)
from capplan.systems.components.data_centres import (
    ROUND_TRIP,
    CassNodes,
    ClientShare,
    ClusterScenario,
    ConsistencyOfReads,
    ConsistencyOfWrites,
    DataCentres,
    Replicas,
)
from capplan.systems.components.data_factor import DataFactor
from capplan.systems.components.data_factor import normal_form as normal_data_factor
from capplan.systems.components.encryption_options import Encryption, Reconnects, Vpn
from capplan.systems.components.machines import Cores, Speed
from capplan.systems.components.pauses.option import Collector, Heap, ReportedGc

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
        """Mean number of reads: every request except the start reads."""
        return self.total - 1

    @property
    def writes(self) -> float:
        """Mean number of writes: every accounting request writes."""
        return self.acct


class SentSession(NamedTuple):
    """Requests sent one after another: their classes, and the number of such sequences per session."""

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
    """Return a mix in normal form; None for that of the load tests."""
    mix = USUAL if text is None else read_mix(text)
    return None if mix == USUAL else mix_text(mix._asdict())


def sent_sessions(mix: SessionMix) -> tuple[SentSession, ...]:
    """Return the network's sessions for a mix, with the same mean numbers of requests."""
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
    """Yield weights with numbers of authorizations and updates; more of one never come with fewer of the other."""
    numbers = mix.auth, mix.acct - 1
    ends = sorted({0.0, *(number % 1 for number in numbers), 1.0})
    for low, high in pairwise(ends):
        auth, updates = (math.floor(number) + (low < number % 1) for number in numbers)
        yield high - low, auth, updates


def _kilometres(text: str) -> str:
    return f"{parse_length_m(text) / 1000:g}km"


def _ratio(text: str) -> float:
    try:
        return float(check_number(float(text), "burst ratio", at_least=1.0))
    except (ValueError, OverflowError):
        raise InputError(f"{text!r} is not a burst ratio: give a number from 1, such as 1.5") from None


MOST_BURST_RATIO = 19.0  # bursts take 5 % of the time: at 20 nothing would come between them
LARGEST_POOL = 4096  # worker threads of a RADIUS server


@dataclass(frozen=True, config=LANGUAGE)
class OpenproviderScenario(ClusterScenario):
    """A layout of the `openprovider` system and the traffic on it.

    Data centres may differ. Where a field takes a number per data centre, one number is the same in each, and a list
    such as `[6, 6, 3]` has one for each; a list also determines `dcs` if that is not given.

    Attributes
    ----------
    system
        Name of the system.
    dcs
        Data centres.
    cass_nodes
        Cassandra nodes in each data centre: a number, or a list such as `[6, 6, 3]`.
    rf
        Replicas of each row in each data centre, a number or a list; at most as many as nodes.
    front_nodes
        RADIUS servers in each data centre: a number or a list. It may be 0 in a data centre without clients.
    client_share
        Share of the requests that arrive in each data centre, such as `[0.5, 0.3, 0.2]`; equal by default. A data
        centre with share 0 is a standby.
    front_workers
        Worker threads of each RADIUS server.
    node_cores
        Cores of a Cassandra node, counted as in the load tests: vCPU.
    node_speed
        Speed of such a core relative to that of the load tests. The time of the storage path stays.
    front_cores
        Cores of a RADIUS server, counted as in the load tests: vCPU.
    front_speed
        Speed of such a core relative to that of the load tests.
    consistency_read
        Consistency level of reads.
    consistency_write
        Consistency level of writes.
    distance
        Straight-line distance between any two data centres (`150km`).
    rtt
        Round trip between data centres instead of `distance`: one duration, a matrix of them, or one for each pair, as
        in `dc1-dc2=3ms,dc1-dc3=20ms,dc2-dc3=20ms`.
    proxy
        Whether each accounting request is forwarded to another server.
    ldap
        Whether each authorization queries an LDAP server.
    data_factor
        Work of Cassandra relative to the load test, which had fresh data, where it was measured: a factor such as 1.3,
        or a range such as `1.2..1.6`, 0.2 to 20. Left out, data are as tested, which an answer names as its condition.
    encryption
        Encrypted links: `client` (RADIUS servers to Cassandra), `internode` or `client+internode`; none by default.
    vpn
        Where links are encrypted: by each program with TLS in `user` space (the default), or by a VPN in the `kernel`.
    reconnects
        New TLS connections per statement on client links, 0 to 1; none by default, because drivers keep theirs.
    mix
        Requests of a session, such as `auth=1,acct=3.5`; by default as in the load tests, `auth=1,acct=7`. Accounting
        requests are the start, interim updates and the stop. More authorizations are re-authentications.
    burst_ratio
        Peak rate over mean rate of the traffic, at least 1; by default as in the load tests, about 1.1. The peak rate
        lasts for bursts of about a second, 5 % of the time.
    tps
        Offered peak rate over all data centres, requests per second; 80 % of the capacity by default.
    tps_mean
        Offered mean rate over all data centres, requests per second; instead of `tps`.
    slo
        Objectives, such as `acct.p99<20ms`.

    Raises
    ------
    InputError
        If a field is out of range, there are fewer nodes than replicas, a consistency level cannot be met, lists or
        `rtt` do not match the data centres, or a data centre has clients and no RADIUS servers.
    """

    COUNTS = ("cass_nodes", "rf", "front_nodes")

    system: Literal["openprovider"] = "openprovider"
    dcs: DataCentres = 3
    cass_nodes: CassNodes = 3
    rf: Replicas = 3
    front_nodes: Annotated[
        PerDcOrNone,
        Option("RADIUS servers per data centre, such as 2 or 2/2/1.", "RADIUS servers per DC", "N", measured=True),
    ] = 2
    client_share: ClientShare = None
    front_workers: Annotated[
        AtLeastOne, Option("Worker threads of a RADIUS server.", "workers per RADIUS server", measured=True)
    ] = 64
    node_cores: Annotated[
        Cores, Option("Cores (vCPU) of a Cassandra node.", "cores of a Cassandra node", measured=True)
    ] = 24  # evidence all.cass_vcpu
    node_speed: Annotated[
        Speed,
        Option(
            "Speed of such a core relative to the test's.",
            "times the core speed of a tested Cassandra node",
            "X",
            measured=True,
        ),
    ] = 1.0
    front_cores: Annotated[
        Cores, Option("Cores (vCPU) of a RADIUS server.", "cores of a RADIUS server", measured=True)
    ] = 32  # evidence all.front_vcpu
    front_speed: Annotated[
        Speed,
        Option(
            "Speed of such a core relative to the test's.",
            "times the core speed of a tested RADIUS server",
            "X",
            measured=True,
        ),
    ] = 1.0
    consistency_read: ConsistencyOfReads = "LOCAL_QUORUM"
    consistency_write: ConsistencyOfWrites = "QUORUM"
    distance: Annotated[
        str,
        KILOMETRES_TEXT,
        Option(
            "Distance between data centres instead of --rtt, such as 150km; a calibrated factor accounts for fibre "
            "routes.",
            "distance, km",
            "LENGTH",
            unit="km",
            read=_kilometres,
            replaces=("rtt",),
        ),
    ] = "150km"
    rtt: Annotated[str | tuple[tuple[str, ...], ...] | None, MILLISECONDS_TEXT, ROUND_TRIP] = None
    gc: ReportedGc = None
    heap: Heap = None
    collector: Collector = None
    proxy: Annotated[bool, Option("Forward accounting requests to another server.", "accounting proxy")] = False
    ldap: Annotated[bool, Option("Query LDAP on each authorization.", "LDAP")] = False
    data_factor: DataFactor = None
    encryption: Encryption = None
    vpn: Vpn = None
    reconnects: Reconnects = None
    mix: Annotated[
        str | None,
        Option(
            "Requests of a session, such as auth=1,acct=3.5; auth=1,acct=7 as in the load tests.",
            "requests of a session",
            "MIX",
            separator=";",
        ),
    ] = None
    burst_ratio: Annotated[
        float | None,
        Field(ge=1, le=MOST_BURST_RATIO),
        Option(
            "Peak rate over mean rate of the traffic, such as 1.5; 1 for no bursts.",
            "times the mean rate",
            "X",
            read=_ratio,
        ),
    ] = None
    tps: Annotated[
        PositivePerSecond | None, rate_option("Offered peak rate over all data centres.", replaces="tps_mean")
    ] = None
    tps_mean: Annotated[
        PositivePerSecond | None,
        rate_option(
            "Offered mean rate over all data centres, instead of --tps.", "offered mean rate, TPS", replaces="tps"
        ),
    ] = None
    slo: Annotated[Objectives, Option("Objective, such as 'acct.p99<20ms'; may be repeated.", "objectives")] = ()

    def __post_init__(self) -> None:
        check_at_most(LARGEST, dcs=self.dcs)
        check_at_most(LARGEST_POOL, front_workers=self.front_workers)
        if self.tps is not None and self.tps_mean is not None:
            raise InputError(
                f"tps = {self.tps:g} and tps_mean = {self.tps_mean:g} both give the offered rate: give one of them"
            )
        self._check_data_centres()
        rows = self.given_rtt_s() or ()
        others = {cell for a, row in enumerate(rows) for b, cell in enumerate(row) if a != b}
        if isinstance(self.rtt, tuple) and len(others) == 1:  # one form for equal pairs
            self._set(rtt=self.rtt[0][1])
        self._check_fronts()
        self.distance_m()
        self._set(encryption=check_encryption(self.encryption, self.vpn, sum(self.nodes_by_dc())))
        check_reconnects(self.reconnects, self.encryption, self.vpn)
        self._set(mix=normal_form(self.mix))
        self._set(data_factor=normal_data_factor(self.data_factor))

    def _check_fronts(self) -> None:
        for dc, (share, fronts) in enumerate(zip(self.shares_by_dc(), self.fronts_by_dc(), strict=True), 1):
            if share and not fronts:
                raise InputError(
                    f"data centre {dc} has {100 * share:.3g} % of the clients and no RADIUS servers (front_nodes = "
                    f"{per_dc_text(self.front_nodes)}): give it some, or set its client_share to 0"
                )

    def fronts_by_dc(self) -> tuple[int, ...]:
        """Return the number of RADIUS servers in each data centre (dcs,)."""
        return by_dc(self.front_nodes, self.dcs)

    @property
    def session_mix(self) -> SessionMix:
        """Mean numbers of requests in a session."""
        return USUAL if self.mix is None else read_mix(self.mix)

    def statements_per_request(self) -> float:
        """Return the mean number of Cassandra statements per request."""
        return sum(self.statements().values())

    def statements(self) -> dict[str, float]:
        """Return the mean number of statements that a request makes, by operation."""
        mix = self.session_mix
        return {"read": mix.reads / mix.total, "write": mix.writes / mix.total}

    def given(self) -> dict[str, Any]:
        """Return the fields that are set; of distance and round trip, only the one in effect."""
        return {name: value for name, value in super().given().items() if self.rtt is None or name != "distance"}

    def without_effect(self) -> tuple[str, ...]:
        """Return sentences on what has no effect: the round trip of one data centre, a heap beside given pauses."""
        usual = defaults_of(type(self))
        given = [name for name in ("distance", "rtt") if self.dcs == 1 and getattr(self, name) != usual[name]]
        return (*(f"{name} has no effect: the layout has one data centre" for name in given), *self._idle_heap())

    def distance_m(self) -> float:
        """Return the distance between data centres, metres."""
        distance = parse_length_m(self.distance)
        if not 0 <= distance <= 2.1e7:
            raise InputError(f"distance {self.distance!r} is not between two places on Earth: give 0 to 20,000 km")
        return distance
