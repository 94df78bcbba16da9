"""The protocol of a live validation: a few runs to calibrate from, and more runs that are predicted first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from capplan.errors import look_up
from capplan.lab.collectors.cassandra import Load, Operation
from capplan.lab.collectors.runs_in_turn import Bounds
from capplan.lab.collectors.sessions import SessionLoad
from capplan.lab.layout import Layout

OPERATIONS: tuple[Operation, ...] = ("read", "write")
MOST = 32
"""Clients of the closed run that shows the capacity."""
HOSTS = "hosts"
"""With which the names of protocols for clusters that exist begin."""


@dataclass(frozen=True)
class Asked:
    """A load whose rate may be a share of a capacity.

    Attributes
    ----------
    operation, level, row_bytes, clients, tls, rtt_ms
        As in `Load`.
    share : float or None
        Rate of open requests, as a share of the capacity: the throughput of closed clients, predicted or, where nothing
        is predicted yet, measured.
    """

    operation: Operation
    level: str = "LOCAL_ONE"
    row_bytes: int = 100
    clients: int | None = None
    share: float | None = None
    tls: bool = False
    rtt_ms: float | None = None

    def load(self, capacity_per_s: float = 0.0) -> Load:
        """Return the load, with its rate rounded to three digits."""
        rate = None if self.share is None else float(f"{self.share * capacity_per_s:.3g}")
        return Load(self.operation, self.level, self.row_bytes, self.clients, rate, self.tls, self.rtt_ms)

    def at_capacity(self) -> Asked:
        """Return the closed run that measures the capacity for this load."""
        return replace(self, clients=MOST, share=None)


@dataclass(frozen=True)
class Stage:
    """Loads on one cluster.

    Attributes
    ----------
    name : str
        A short name.
    title : str
        What the cluster is, in words.
    layout : Layout
        The lab.
    asked : tuple of Asked
        The loads.
    killed : str or None
        The node that is killed before the loads.
    seen_as : tuple of int or None
        Nodes and replicas of each data centre that the model gets instead of the lab's.
    level_seen_as : str or None
        The level that the model gets instead of the one that is measured.
    note : str
        What a reader must know of the prediction.
    """

    name: str
    title: str
    layout: Layout
    asked: tuple[Asked, ...]
    killed: str | None = None
    seen_as: tuple[int, int] | None = None
    level_seen_as: str | None = None
    note: str = ""


@dataclass(frozen=True)
class SessionStage(Stage):
    """Loads of sessions on one cluster.

    Attributes
    ----------
    loads : tuple of SessionLoad
        The loads.
    bounds : Bounds
        How long and how often each is measured.
    """

    asked: tuple[Asked, ...] = ()
    loads: tuple[SessionLoad, ...] = ()
    bounds: Bounds = field(default_factory=Bounds)


@dataclass(frozen=True)
class Protocol:
    """A whole validation.

    Attributes
    ----------
    name : str
        Its name.
    small : tuple of Stage
        What the model is calibrated from.
    large : tuple of Stage
        What is predicted, and then measured.
    small_bounds, large_bounds : Bounds
        How long and how often each load is measured.
    sessions : tuple of SessionStage
        Sessions of several messages, which are predicted and measured, too.
    """

    name: str
    small: tuple[Stage, ...]
    large: tuple[Stage, ...]
    small_bounds: Bounds = field(default_factory=Bounds)
    large_bounds: Bounds = field(default_factory=Bounds)
    sessions: tuple[SessionStage, ...] = ()


def closed(
    clients: Sequence[int], levels: Sequence[str] = ("LOCAL_ONE",), rtts_ms: Sequence[float | None] = (None,)
) -> tuple[Asked, ...]:
    """Return closed runs of reads and of writes."""
    return tuple(
        Asked(operation, level, clients=count, rtt_ms=rtt)
        for rtt, operation, level, count in product(rtts_ms, OPERATIONS, levels, clients)
    )


def opened(shares: Sequence[float], levels: Sequence[str] = ("LOCAL_ONE",)) -> tuple[Asked, ...]:
    """Return open runs of reads and of writes."""
    return tuple(
        Asked(operation, level, share=share) for operation, level, share in product(OPERATIONS, levels, shares)
    )


def _small(layout: Layout, name: str, words: str, levels: Sequence[str]) -> Stage:
    """Return runs that calibrate the model."""
    runs = (*closed((1, 4, 24), levels), *opened((0.15, 0.4), levels[-1:]))
    return Stage(f"small-{name}", words, layout, runs)


_ONE = Layout()
_TWO = Layout(cass_nodes=2, rf=2)
_THREE = Layout(cass_nodes=3, rf=3)
_TWO_DCS = Layout(dcs=2)
_WORDS_ONE, _WORDS_TWO, _WORDS_THREE = "one node", "two nodes, RF 2", "three nodes, RF 3"
_WORDS_TWO_DCS = "two data centres of one node, RF 1 in each"
_ONE_NODE = _small(_ONE, "1", _WORDS_ONE, ("LOCAL_ONE",))
_TWO_NODES = _small(_TWO, "2", _WORDS_TWO, ("LOCAL_ONE", "ALL"))
_FAR = Stage("small-2dc", _WORDS_TWO_DCS, _TWO_DCS, closed((1,), ("LOCAL_ONE", "QUORUM"), (20.0,)))
_FIT, _JUDGED = Bounds(12.0, 2, 150.0), Bounds(30.0, 5, 150.0)

QUICK = Protocol(
    "quick",
    (Stage("small-1", _WORDS_ONE, _ONE, (*closed((1, 4, 24)), *opened((0.3,)))),),
    (Stage("1", _WORDS_ONE, _ONE, (*closed((MOST,)), *opened((0.2, 0.6)))),),
    Bounds(8.0, 1, 120.0),
    Bounds(15.0, 2, 60.0),
)
"""At most twelve minutes on two cores."""

FULL = Protocol(
    "full",
    (_TWO_NODES, _ONE_NODE),
    (
        Stage("1", _WORDS_ONE, _ONE, (*closed((MOST,)), *opened((0.2, 0.5, 0.8)))),
        Stage("3", _WORDS_THREE, _THREE, (*closed((MOST,), ("QUORUM",)), *opened((0.2, 0.5, 0.8), ("QUORUM",)))),
    ),
    _FIT,
    _JUDGED,
)
"""`just live`: at most 75 minutes on two cores."""

_REPEATS = 3
_SESSION_RATE_PER_S = 40.0
"""Sessions per second: few, as several nodes on one machine spend much CPU on each request (record 28)."""
_SESSION_RTT_MS = 10.0
SESSIONS = (
    SessionStage(
        "sessions-2dc",
        "sessions on two data centres of one node, RF 1 in each",
        _TWO_DCS,
        loads=(  # the row arrives after 5 ms; 0.5 ms between messages is what openprovider documents
            *(
                SessionLoad("LOCAL_QUORUM", "LOCAL_QUORUM", think_s, _SESSION_RATE_PER_S, _SESSION_RTT_MS)
                for think_s in (0.5e-3, 5e-3, 15e-3)
            ),
            SessionLoad("LOCAL_QUORUM", "QUORUM", 0.5e-3, _SESSION_RATE_PER_S, _SESSION_RTT_MS),
        ),
        bounds=Bounds(20.0, _REPEATS, 60.0),
    ),
)


def _rows_and_tls() -> tuple[Stage, ...]:
    runs = (*closed((MOST,)), *opened((0.5,)))
    sizes = tuple(replace(each, row_bytes=size) for size in (1024, 10240) for each in runs)
    encrypted = tuple(replace(each, tls=tls) for each in runs for tls in (False, True))
    return (
        Stage("rows", f"{_WORDS_ONE}, longer rows", _ONE, sizes),
        Stage("tls", f"{_WORDS_ONE}, TLS on and off", Layout(client_tls=True), encrypted),
    )


_SMALL_HEAP = 192 << 20
MECHANISMS = {
    each.name: each
    for each in (
        Protocol("rows", (_ONE_NODE,), _rows_and_tls(), _FIT, Bounds(20.0, _REPEATS, 120.0)),
        Protocol(
            "levels",
            (_FAR, _TWO_NODES),
            (
                Stage(
                    "2dc",
                    _WORDS_TWO_DCS,
                    _TWO_DCS,
                    closed((1,), ("LOCAL_ONE", "QUORUM", "EACH_QUORUM"), (1.0, 10.0, 40.0, 100.0)),
                ),
            ),
            _FIT,
            Bounds(12.0, _REPEATS, 120.0),
            SESSIONS,
        ),
        Protocol(
            "losses",
            (_TWO_NODES,),
            (
                Stage(
                    "3-lost",
                    f"{_WORDS_THREE}, one node killed",
                    _THREE,
                    (*closed((MOST,), ("QUORUM",)), *opened((0.5,), ("QUORUM",))),
                    killed="dc1-3",
                    seen_as=(2, 2),
                    level_seen_as="ALL",
                    note="predicted as two nodes, RF 2, at ALL: both that are left must answer; hints are not modelled",
                ),
            ),
            _FIT,
            Bounds(30.0, _REPEATS, 120.0),
        ),
        Protocol(
            "heap",
            (_ONE_NODE,),
            (
                Stage(
                    "heap",
                    f"{_WORDS_ONE}, a heap of {_SMALL_HEAP >> 20} MiB",
                    Layout(heap_bytes=_SMALL_HEAP),
                    (*closed((MOST,)), *opened((0.5,))),
                    note="the model does not know the heap: the error is what a small one costs",
                ),
            ),
            _FIT,
            Bounds(30.0, _REPEATS, 120.0),
        ),
    )
}
"""What changes a layout in one respect, each a protocol of its own."""


def protocol(mechanism: str | None, *, quick: bool) -> Protocol:
    """Return a protocol for labs.

    Raises
    ------
    InputError
        If there is no mechanism of that name.
    """
    if mechanism is None:
        return QUICK if quick else FULL
    return look_up(MECHANISMS, mechanism, f"--mechanism {mechanism!r} is not one that is measured")


def for_hosts(levels: Sequence[str], rtt_ms: float | None, *, quick: bool, tls: bool = False) -> Protocol:
    """Return the protocol for an existing cluster: various levels and loads on one layout.

    Parameters
    ----------
    levels : sequence of str
        Levels that the cluster can meet; the first is measured to calibrate from, and so are two clients of the last.
    rtt_ms : float or None
        Round trip between its data centres; None with one.
    quick : bool
        Whether it ends within some minutes.
    tls : bool
        Whether clients use TLS.
    """
    small = (*closed((2, 8), levels[:1]), *closed((2,), levels[-1:] if len(levels) > 1 else ()))
    small = (*small, *opened((0.3,), levels[:1]))
    large = (*closed((1, MOST), levels), *opened((0.2, 0.5, 0.8), levels))
    small, large = (tuple(replace(each, rtt_ms=rtt_ms, tls=tls) for each in runs) for runs in (small, large))
    words = "the cluster"
    return Protocol(
        f"{HOSTS}-quick" if quick else HOSTS,
        (Stage("small", words, _ONE, small),),
        (Stage("large", words, _ONE, large),),
        Bounds(5.0, 2, 60.0) if quick else Bounds(12.0, 3, 150.0),
        Bounds(10.0, 3, 30.0) if quick else Bounds(30.0, 5, 60.0),
    )
