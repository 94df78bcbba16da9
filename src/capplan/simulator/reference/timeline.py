"""The timeline in the SimPy engine: stations and hosts that go down, come up and change speed, and delays that change.

What it does to the traffic is known before the run (`traffic_time`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from capplan.models.language.traffic import Event, Timeline
from capplan.simulator.reference.events import Clockwork, Kind, Moment, Stage, request_rank, step_rank
from capplan.simulator.reference.hosts import Standing
from capplan.simulator.specification.clock import to_ticks
from capplan.simulator.specification.traffic_time import numbered_events


class Changeable(Protocol):
    """A station or host."""

    standing: Standing

    def settle(self) -> None:
        """Bring the service attained up to date: to be called before any change."""

    def changed(self) -> None:
        """Go on at the speed that is now right: to be called after any change."""


@dataclass
class Changes:
    """The events of a timeline: `places` are stations and hosts, `delays` the factor on each delay, by name."""

    timeline: Timeline
    clockwork: Clockwork
    places: Mapping[str, Changeable]
    delays: dict[str, float] = field(default_factory=dict)

    def begin(self) -> None:
        """Put all events on the agenda, except those of the traffic."""
        for number, (tick, event) in enumerate(numbered_events(self.timeline)):
            if event.action == "scale_delay":
                self.delays[event.target] = 1.0
            if event.action != "scale_traffic":
                self._at(tick, number, Stage.EVENT, event)

    def _at(self, tick: int, number: int, stage: Stage, event: Event) -> None:
        rank = request_rank(number) + step_rank(Kind.CHANGE, stage)
        Moment(self.clockwork, lambda _: self._happen(number, stage, event)).at(tick, rank)

    def _happen(self, number: int, stage: Stage, event: Event) -> None:
        if event.action == "scale_delay":
            self.delays[event.target] = float(event.factor)
            return
        place = self.places[event.target]
        place.settle()
        match (stage, event.action):
            case (Stage.EVENT, "speed"):
                place.standing.speed = float(event.factor)
            case (Stage.EVENT, "down"):
                self._down(place.standing, number, event)
            case (Stage.EVENT, "up"):
                self._up(place.standing, number, event)
            case (Stage.DETECTION, _):
                place.standing.known_down |= place.standing.down_by == number
            case (Stage.WARM, _):
                _warm(place.standing, number)
        place.changed()

    def _down(self, standing: Standing, number: int, event: Event) -> None:
        if standing.down:
            return
        standing.down_by, standing.cold_by, standing.cold_factor = number, None, 1.0
        self._at(self.clockwork.tick + to_ticks(float(self.timeline.detection_s)), number, Stage.DETECTION, event)

    def _up(self, standing: Standing, number: int, event: Event) -> None:
        if not standing.down:
            return
        standing.down_by, standing.known_down = None, False
        standing.cold_by, standing.cold_factor = number, self.timeline.cold_speed
        self._at(self.clockwork.tick + to_ticks(float(self.timeline.cold_start_s)), number, Stage.WARM, event)


def _warm(standing: Standing, number: int) -> None:
    if standing.cold_by == number:
        standing.cold_by, standing.cold_factor = None, 1.0
