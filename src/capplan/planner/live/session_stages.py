"""Which sessions a live validation runs, and on which clusters."""

from __future__ import annotations

from dataclasses import dataclass

from capplan.calibration.collectors.runs_in_turn import Bounds
from capplan.calibration.lab.layout import Layout


@dataclass(frozen=True)
class AskedSessions:
    """A load of sessions.

    Attributes
    ----------
    read, write : str
        Consistency levels.
    think_ms : float
        Mean time from an answer to the next message of the session; exponential.
    share : float
        Rate of the messages, as a share of the predicted capacity. That is too high for several nodes on one machine
        by a factor of five or so (record 28), so a twentieth keeps the nodes at some 30 %.
    rtt_ms : float
        Round trip between data centres.
    """

    read: str
    write: str
    think_ms: float
    share: float = 0.05
    rtt_ms: float = 10.0


@dataclass(frozen=True)
class SessionStage:
    """Loads of sessions on one cluster.

    Attributes
    ----------
    name : str
        A short name.
    title : str
        What the cluster is, in words.
    layout : Layout
        The lab.
    asked : tuple of AskedSessions
        The loads.
    bounds : Bounds
        How long and how often each is measured.
    """

    name: str
    title: str
    layout: Layout
    asked: tuple[AskedSessions, ...]
    bounds: Bounds


_BOUNDS = Bounds(7.0, 5, 9.0)
SESSIONS = (
    SessionStage(
        "sessions-2dc",
        "sessions on two data centres of one node, RF 1 in each",
        Layout(dcs=2),
        (  # the row arrives after 5 ms; 0.5 ms between messages is what openprovider documents
            *(AskedSessions("LOCAL_QUORUM", "LOCAL_QUORUM", think_ms) for think_ms in (0.5, 5.0, 15.0)),
            AskedSessions("LOCAL_QUORUM", "QUORUM", 0.5),
        ),
        _BOUNDS,
    ),
)
"""Under four minutes."""
