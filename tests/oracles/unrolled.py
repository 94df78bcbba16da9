"""Networks with members, written out by hand: every member is a station of its own, every set of replicas a branch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations

from capplan.models.language.network import Network
from capplan.models.language.station import member_name
from capplan.models.language.step import (
    Acquire,
    Choice,
    CountdownLatch,
    FanOut,
    ForkJoin,
    If,
    Pick,
    ReplicaSet,
    Step,
    Visit,
)
from capplan.models.language.step import Sequence as StepSequence

Bound = int | tuple[int, ...]


def unrolled(network: Network) -> Network:
    """Return an equivalent network without counts; policies are uniform choices, or `first`. No request is dropped."""
    reader = _Unrolling(network)
    return replace(
        network,
        stations=network.each_station,
        pools=network.each_pool,
        classes=tuple(replace(each, flow=reader.read(each.flow, {})) for each in network.classes),
    )


class _Unrolling:
    """Enumerates what every name can be bound to."""

    def __init__(self, network: Network) -> None:
        self.counts = {pool.name: pool.count or 1 for pool in network.pools}
        self.counts |= {station.name: station.count or 1 for station in network.stations}
        self.down = {station.name: station.down for station in network.stations}

    def read(self, step: Step, bound: Mapping[str, Bound]) -> Step:
        match step:
            case Visit(member=str(member)):
                name = member_name(step.station, _one(bound[member]))
                assert bound[member] not in self.down[step.station]
                return replace(step, station=name, member=None)
            case Acquire(member=str(member)):
                name = member_name(step.pool, _one(bound[member]))
                return replace(step, pool=name, member=None, step=self.read(step.step, bound))
            case If():
                return self.read(step.then if bound[step.member] in _all(bound[step.among]) else step.otherwise, bound)
            case Pick():
                picked = self._pickable(step, bound)
                return _uniform([self.read(step.step, {**bound, step.member: each}) for each in picked])
            case ReplicaSet():
                return _uniform(
                    [self.read(step.step, {**bound, step.members: each}) for each in self._sets(step, bound)]
                )
            case FanOut():
                members = _all(bound[step.over])[: step.contacted]
                branches = tuple(self.read(step.step, {**bound, step.member: each}) for each in members)
                return ForkJoin(branches, step.needed)
            case _:
                return self._inside(step, bound)

    def _inside(self, step: Step, bound: Mapping[str, Bound]) -> Step:
        match step:
            case StepSequence():
                return StepSequence(tuple(self.read(each, bound) for each in step.steps))
            case ForkJoin():
                return ForkJoin(tuple(self.read(each, bound) for each in step.branches), step.needed)
            case Choice():
                return Choice(step.probabilities, tuple(self.read(each, bound) for each in step.steps))
            case CountdownLatch() | Acquire():
                return replace(step, step=self.read(step.step, bound))
            case _:
                return step

    def _pickable(self, step: Pick, bound: Mapping[str, Bound]) -> list[int]:
        if step.among in bound:
            picked = list(_all(bound[step.among]))
        else:
            picked = [each for each in range(self.counts[step.among]) if each not in self.down.get(step.among, ())]
        return picked[:1] if step.policy == "first" else picked

    def _sets(self, step: ReplicaSet, bound: Mapping[str, Bound]) -> list[tuple[int, ...]]:
        count, down = self.counts[step.among], self.down.get(step.among, frozenset())
        if step.placement == "ring":
            sets = [tuple((owner + place) % count for place in range(step.size)) for owner in range(count)]
        else:
            sets = list(permutations(range(count), step.size))
        first = None if step.first is None else bound[step.first]
        return [tuple(sorted((each for each in found if each not in down), key=lambda m: m != first)) for found in sets]


def _one(bound: Bound) -> int:
    assert isinstance(bound, int)
    return bound


def _all(bound: Bound) -> tuple[int, ...]:
    return (bound,) if isinstance(bound, int) else bound


def _uniform(steps: list[Step]) -> Step:
    return Choice((1 / len(steps),) * len(steps), tuple(steps))
