"""The events of a timeline for the compiled engine: few, so Python makes them between two calls of the kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from capplan.models.language.network import Network
from capplan.models.language.traffic import Event
from capplan.simulator.compiled.kernel import layout as at
from capplan.simulator.compiled.kernel.layout import State
from capplan.simulator.compiled.program import Lowered
from capplan.simulator.specification.clock import to_ticks
from capplan.simulator.specification.traffic_time import numbered_events

EVENT, DETECTION, WARM = range(3)


@dataclass
class Standing:
    """How a station or host stands; events are known by their numbers."""

    down_by: int | None = None
    known: bool = False
    cold_by: int | None = None
    speed: float = 1.0
    cold: float = 1.0


@dataclass
class Changes:
    """What is to change, in order: (tick, number of the event, stage)."""

    lowered: Lowered
    agenda: list[tuple[int, int, int]] = field(init=False)
    events: list[Event] = field(init=False)
    standing: dict[str, Standing] = field(init=False)

    def __post_init__(self) -> None:
        network = self.lowered.network
        numbered = numbered_events(network.timeline)
        self.events = [event for _, event in numbered]
        self.agenda = [
            (tick, number, EVENT) for number, (tick, event) in enumerate(numbered) if event.action != "scale_traffic"
        ]
        heapify(self.agenda)
        names = [station.name for station in network.stations] + [host.name for host in network.hosts]
        self.standing = {name: Standing() for name in names}

    def next_key(self) -> tuple[int, int]:
        """Return the tick and rank of the next change; `NEVER` when there is none."""
        if not self.agenda:
            return at.NEVER, 0
        tick, number, stage = self.agenda[0]
        return tick, at.CHANGE << at.KIND_SHIFT | number << at.STEP_BITS | stage

    def happen(self, state: State) -> None:
        """Make the next change. Everything must be settled up to its tick, and be settled again after."""
        tick, number, stage = heappop(self.agenda)
        event = self.events[number]
        if event.action == "scale_delay":
            state.scales[self.lowered.delay_scales[event.target]] = float(event.factor)
            return
        self._change(self.standing[event.target], (tick, number, stage), event)
        _tell_stations(self.lowered.network, self.standing, state)
        _tell_routes(self.lowered, state)

    def _change(self, standing: Standing, key: tuple[int, int, int], event: Event) -> None:
        tick, number, stage = key
        timeline = self.lowered.network.timeline
        if stage == DETECTION:
            standing.known |= standing.down_by == number
        elif stage == WARM:
            if standing.cold_by == number:
                standing.cold_by, standing.cold = None, 1.0
        elif event.action == "speed":
            standing.speed = float(event.factor)
        elif event.action == "down" and standing.down_by is None:
            standing.down_by, standing.cold_by, standing.cold = number, None, 1.0
            heappush(self.agenda, (tick + to_ticks(float(timeline.detection_s)), number, DETECTION))
        elif event.action == "up" and standing.down_by is not None:
            standing.down_by, standing.known = None, False
            standing.cold_by, standing.cold = number, float(timeline.cold_speed)
            heappush(self.agenda, (tick + to_ticks(float(timeline.cold_start_s)), number, WARM))


def _tell_stations(network: Network, standing: dict[str, Standing], state: State) -> None:
    for number, station in enumerate(network.stations):
        own = standing[station.name]
        host = standing[station.host] if station.host is not None else Standing()
        state.stations["down"][number] = own.down_by is not None or host.down_by is not None
        state.stations["known"][number] = own.known or host.known
        state.paces[number] = own.speed, own.cold, host.speed, host.cold


def _tell_routes(lowered: Lowered, state: State) -> None:
    names = [station.name for station in lowered.network.stations]
    known = dict(zip(names, state.stations["known"].astype(bool).tolist(), strict=True))
    for row, route in zip(state.routes, lowered.routes, strict=True):
        down = [way is not None and way.is_down(known.__getitem__) for way in route.ways]
        row["avoid"] = any(down) and not all(down)
        state.targets["down"][row["first"] : row["first"] + len(down)] = down
