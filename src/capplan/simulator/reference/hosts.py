"""Hosts of the SimPy engine: machines whose cores stations share, and how a station or host stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from capplan.models.language.station import Host


@dataclass
class Standing:
    """How a station or host stands; events of the timeline are called by their numbers.

    `down_by` is the event that has taken it down, `cold_by` the one that has brought it up if it is still cold.
    """

    speed: float = 1.0
    cold_factor: float = 1.0
    down_by: int | None = None
    cold_by: int | None = None
    known_down: bool = False

    @property
    def down(self) -> bool:
        """Whether it is down."""
        return self.down_by is not None


class OnMachine(Protocol):
    """What a host needs to know of its stations."""

    @property
    def running(self) -> int:
        """How many servers are busy."""

    def settle(self) -> None:
        """Bring the service attained up to date."""

    def go_on(self) -> None:
        """Set the pace anew."""


class Machine:
    """A host while it runs: the stations on it, and how many servers are busy there."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.standing = Standing()
        self.stations: list[OnMachine] = []
        self.running = 0

    def shared(self, pace: int) -> int:
        """Return what is left of a server's pace when busy servers share the cores."""
        return pace * self.host.cores // self.running if self.running > self.host.cores else pace

    def recount(self) -> bool:
        """Count the busy servers; if that changes the speed, let all stations go on at it and return True."""
        before, self.running = self.running, sum(station.running for station in self.stations)
        if max(before, self.host.cores) == max(self.running, self.host.cores):
            return False
        self.settle()
        for station in self.stations:
            station.go_on()
        return True

    def settle(self) -> None:
        """Bring all stations up to date: to be called before anything changes here."""
        for station in self.stations:
            station.settle()

    def changed(self) -> None:
        """Let all stations go on at the speed that is now right: to be called after any change here."""
        if not self.recount():
            for station in self.stations:
                station.go_on()
