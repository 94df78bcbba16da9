"""The timeline of the compiled engine. Its events are few, so Python applies them between two calls of the kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from capplan.models.language.traffic import Event
from capplan.simulator.compiled.kernel import layout as at
from capplan.simulator.compiled.kernel.layout import State
from capplan.simulator.compiled.lowering import Lowered
from capplan.simulator.specification.timeline import OperatingState, Stage, initial_states, numbered_changes


@dataclass
class CompiledTimeline:
    """The pending stages of timeline events, a heap of (tick, number of the event, stage), and the state of targets."""

    lowered: Lowered
    pending: list[tuple[int, int, Stage]] = field(init=False)
    events: list[Event] = field(init=False)
    states: dict[str, OperatingState] = field(init=False)

    def __post_init__(self) -> None:
        network = self.lowered.network
        numbered = numbered_changes(network)
        self.events = [event for _, event in numbered]
        self.pending = [
            (tick, number, Stage.EVENT)
            for number, (tick, event) in enumerate(numbered)
            if event.action != "scale_traffic"
        ]
        heapify(self.pending)
        self.states = initial_states(network)

    def next_key(self) -> tuple[int, int]:
        """Return the tick and rank of the next change; `NEVER` when there is none."""
        if not self.pending:
            return at.NEVER, 0
        tick, number, stage = self.pending[0]
        return tick, at.CHANGE << at.KIND_SHIFT | number << at.STEP_BITS | stage

    def apply_next(self, state: State) -> None:
        """Apply the next change. Settle the kernel's state up to its tick before and again afterwards."""
        tick, number, stage = heappop(self.pending)
        event, network = self.events[number], self.lowered.network
        if event.action == "scale_delay":
            state.scales[self.lowered.delay_scales[event.target]] = float(event.factor)
            return
        following = self.states[event.target].apply(stage, event, number, network.timeline)
        if following is not None:
            ticks, next_stage = following
            heappush(self.pending, (tick + ticks, number, next_stage))
        self.update(state)

    def update(self, state: State) -> None:
        """Tell the kernel the state of all stations."""
        _update_stations(self.lowered, self.states, state)
        _update_routes(self.lowered, state)


def _update_stations(lowered: Lowered, states: dict[str, OperatingState], state: State) -> None:
    for number, (station, _) in enumerate(lowered.lanes):
        own = states[station.name]
        host = states[station.host] if station.host is not None else OperatingState()
        state.stations["down"][number] = own.down or host.down
        state.stations["known_down"][number] = own.known_down or host.known_down
        state.speeds[number] = own.speed, own.cold_factor, host.speed, host.cold_factor


def _update_routes(lowered: Lowered, state: State) -> None:
    network = lowered.network
    known = {
        each.name: bool(down)
        for (each, _), down in zip(lowered.lanes, state.stations["known_down"].tolist(), strict=True)
    }
    state.header["some_known_down"] = any(known.values())
    members = {group.name: [known[each.name] for each in group.members] for group in network.stations}
    for row, route in zip(state.routes, lowered.routes, strict=True):
        if route.group is None:
            down = [entry is not None and entry.is_down(known.__getitem__) for entry in route.entries]
        else:
            down = members.get(route.group, [False] * route.count)
        row["avoid"] = any(down)
        state.targets["down"][row["first"] : row["first"] + len(down)] = down
