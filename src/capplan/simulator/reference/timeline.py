"""The timeline in the SimPy engine: stations and hosts go down, come up and change speed, and delays change.

What the timeline does to the traffic is known before the run (`traffic_time`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from capplan.models.language.network import Network
from capplan.models.language.traffic import Event
from capplan.simulator.reference.events import EventKind, OrderedEnvironment, OrderedEvent, request_rank, step_rank
from capplan.simulator.specification.timeline import OperatingState, Stage, numbered_changes


class TimelineTarget(Protocol):
    """A station or host."""

    state: OperatingState

    def settle(self) -> None:
        """Bring the service attained up to date; call it before any change."""

    def changed(self) -> None:
        """Continue at the new speed; call it after any change."""


@dataclass
class TimelineProcess:
    """Applies the events of a timeline to `targets`, stations and hosts by name.

    `delay_factors` holds the current factor of each delay that the timeline changes, by name.
    """

    network: Network
    env: OrderedEnvironment
    targets: Mapping[str, TimelineTarget]
    delay_factors: dict[str, float] = field(default_factory=dict)

    def begin(self) -> None:
        """Schedule all events except those that scale the traffic."""
        for number, (tick, event) in enumerate(numbered_changes(self.network)):
            if event.action == "scale_delay":
                self.delay_factors[event.target] = 1.0
            if event.action != "scale_traffic":
                self._schedule(tick, number, Stage.EVENT, event)

    def _schedule(self, tick: int, number: int, stage: Stage, event: Event) -> None:
        rank = request_rank(number) + step_rank(EventKind.CHANGE, stage)
        OrderedEvent(self.env, lambda _: self._apply(number, stage, event)).at(tick, rank)

    def _apply(self, number: int, stage: Stage, event: Event) -> None:
        if event.action == "scale_delay":
            self.delay_factors[event.target] = float(event.factor)
            return
        target = self.targets[event.target]
        target.settle()
        following = target.state.apply(stage, event, number, self.network.timeline)
        if following is not None:
            ticks, next_stage = following
            self._schedule(self.env.tick + ticks, number, next_stage, event)
        target.changed()
