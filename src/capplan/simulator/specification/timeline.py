"""What the events of a timeline do to stations and hosts, for both engines.

What they do to the traffic is in `traffic_time`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

from capplan.models.language.network import Network
from capplan.models.language.station import Host, Station
from capplan.models.language.traffic import Event, Timeline
from capplan.simulator.specification.clock import to_ticks

DOWN_AT_START = -1  # in the place of the event that took a station down


class Stage(IntEnum):
    """The stages of one timeline event; they order the stages that share a tick."""

    EVENT = 0
    DETECTION = 1  # others learn that the target is down
    WARM = 2  # the cold start ends


@dataclass
class OperatingState:
    """Whether a station or host is up, how fast it runs, and whether others know that it is down.

    `down_by` is the number of the timeline event that took it down, `cold_by` of the one that brought it up while the
    cold start lasts.
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

    def apply(self, stage: Stage, event: Event, number: int, timeline: Timeline) -> tuple[int, Stage] | None:
        """Apply one stage of event `number`; return the next stage of that event, if any, and the ticks until then."""
        match (stage, event.action):
            case (Stage.DETECTION, _):
                self.known_down |= self.down_by == number
            case (Stage.WARM, _):
                if self.cold_by == number:
                    self.cold_by, self.cold_factor = None, 1.0
            case (_, "speed"):
                self.speed = float(event.factor)
            case (_, "down") if not self.down:
                self.down_by, self.cold_by, self.cold_factor = number, None, 1.0
                return to_ticks(float(timeline.detection_s)), Stage.DETECTION
            case (_, "up") if self.down:
                self.down_by, self.known_down = None, False
                self.cold_by, self.cold_factor = number, float(timeline.cold_speed)
                return to_ticks(float(timeline.cold_start_s)), Stage.WARM
        return None


def initial_states(network: Network) -> dict[str, OperatingState]:
    """Return the states of all stations and hosts, one by one, at the start."""
    names = [each.name for each in network.each_station] + [each.name for each in network.each_host]
    states = {name: OperatingState() for name in names}
    for station in network.stations:
        for number in station.down:
            states[station.members[number].name] = OperatingState(down_by=DOWN_AT_START, known_down=True)
    return states


def numbered_events(timeline: Timeline) -> list[tuple[int, Event]]:
    """Return the events with their ticks in the order of time, those of one tick in the order of the list."""
    return sorted(((to_ticks(float(event.at_s)), event) for event in timeline.events), key=lambda timed: timed[0])


def numbered_changes(network: Network) -> list[tuple[int, Event]]:
    """Return the events of a network's timeline, those of a station or host with a count one by one for its members."""
    places: tuple[Station | Host, ...] = (*network.stations, *network.hosts)
    members = {place.name: [each.name for each in place.members] for place in places if place.count is not None}
    found = []
    for tick, event in numbered_events(network.timeline):
        if event.action.startswith("scale"):
            found.append((tick, event))
        else:
            found += [(tick, replace(event, target=name)) for name in members.get(event.target, [event.target])]
    return found
