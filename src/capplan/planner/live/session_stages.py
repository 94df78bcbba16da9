"""Which sessions a live validation runs, and on which clusters."""

from __future__ import annotations

from dataclasses import dataclass

from capplan.lab.collectors.runs_in_turn import Bounds
from capplan.lab.collectors.sessions import SessionLoad
from capplan.lab.layout import Layout

_RATE_PER_S = 40.0
"""Sessions per second: few, as several nodes on one machine spend much CPU on each request (record 28)."""
_RTT_MS = 10.0


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
    asked : tuple of SessionLoad
        The loads.
    bounds : Bounds
        How long and how often each is measured.
    """

    name: str
    title: str
    layout: Layout
    asked: tuple[SessionLoad, ...]
    bounds: Bounds


_BOUNDS = Bounds(7.0, 5, 9.0)
SESSIONS = (
    SessionStage(
        "sessions-2dc",
        "sessions on two data centres of one node, RF 1 in each",
        Layout(dcs=2),
        (  # the row arrives after 5 ms; 0.5 ms between messages is what openprovider documents
            *(
                SessionLoad("LOCAL_QUORUM", "LOCAL_QUORUM", think_s, _RATE_PER_S, _RTT_MS)
                for think_s in (0.5e-3, 5e-3, 15e-3)
            ),
            SessionLoad("LOCAL_QUORUM", "QUORUM", 0.5e-3, _RATE_PER_S, _RTT_MS),
        ),
        _BOUNDS,
    ),
)
"""Under four minutes."""
