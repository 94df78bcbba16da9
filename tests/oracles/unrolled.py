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


class DropError(Exception):
    """Some requests are dropped, for which there is no step."""


def unrolled(network: Network) -> Network:
    """Return an equivalent network without counts; policies are uniform choices, `first` or the first on the ring.

    Raises
    ------
    DropError
        If requests can be dropped because too few members are up.
    """
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
                if bound[member] in self.down[step.station]:
                    raise DropError
                return replace(step, station=name, member=None)
            case Acquire(member=str(member)):
                name = member_name(step.pool, _one(bound[member]))
                return replace(step, pool=name, member=None, step=self.read(step.step, bound))
            case If():
                return self.read(step.then if bound[step.member] in _all(bound[step.among]) else step.otherwise, bound)
            case Pick() if step.policy == "token_aware" and step.among not in bound:
                rings = self._rows("ring", "", self.counts[step.among], 1, bound)
                return _uniform([self.read(step.step, {**row, step.member: raw[0]}) for row, raw in rings])
            case Pick():
                picked = self._pickable(step, bound)
                return _uniform([self.read(step.step, {**bound, step.member: each}) for each in picked])
            case ReplicaSet():
                rows = self._rows(step.placement, step.among, self.counts[step.among], step.size, bound)
                found = [(row, self._ordered(step, raw, bound)) for row, raw in rows]
                return _uniform([self.read(step.step, {**row, step.members: members}) for row, members in found])
            case FanOut():
                members = _all(bound[step.over])[: step.contacted]
                if len(members) < step.needed:
                    raise DropError
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

    def _rows(
        self, placement: str, among: str, count: int, size: int, bound: Mapping[str, Bound]
    ) -> list[tuple[Mapping[str, Bound], tuple[int, ...]]]:
        """Return the rows that are possible, each with its first replicas; they are kept under a name of their own."""
        key = f"{placement}:{among}" if placement == "random" else "ring"
        known = _all(bound.get(key, ()))
        if placement == "ring":
            owners = known or range(count)
            return [
                ({**bound, key: (owner,)}, tuple((owner + place) % count for place in range(size))) for owner in owners
            ]
        if size <= len(known):
            return [(bound, known[:size])]
        left = [each for each in range(count) if each not in known]
        every = [known + more for more in permutations(left, size - len(known))]
        return [({**bound, key: raw}, raw) for raw in every]

    def _ordered(self, step: ReplicaSet, raw: tuple[int, ...], bound: Mapping[str, Bound]) -> tuple[int, ...]:
        """Return the replicas that are up, `first` first."""
        first = None if step.first is None else bound[step.first]
        return tuple(sorted((m for m in raw if m not in self.down.get(step.among, ())), key=lambda m: m != first))


def _one(bound: Bound) -> int:
    assert isinstance(bound, int)
    return bound


def _all(bound: Bound) -> tuple[int, ...]:
    return (bound,) if isinstance(bound, int) else bound


def _uniform(steps: list[Step]) -> Step:
    if not steps:
        raise DropError
    return Choice((1 / len(steps),) * len(steps), tuple(steps))
