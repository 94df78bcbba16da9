"""What a flow asks of each station, and how long it takes when the stations are as busy as one says.

Both are read off the tree of steps. Steps that occur at several places of the tree (the same object) are analysed once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, assert_never

import numpy as np

from capplan.models.errors import RefusedError
from capplan.models.language.distribution import Distribution
from capplan.models.language.step import (
    Acquire,
    Batch,
    Choice,
    CountdownLatch,
    Delay,
    ForkJoin,
    Hedge,
    Route,
    Signal,
    Step,
    Visit,
    children,
)
from capplan.models.language.step import Sequence as StepSequence
from capplan.models.language.units import Number
from capplan.models.solver.random_time import NOW, RandomTime, kth_of, mixture


@dataclass(frozen=True)
class Congestion:
    """How busy one station is: a service is stretched by `stretch`, after a `wait` in seconds (arrays over draws)."""

    stretch: Number = 1.0
    wait: RandomTime = NOW


IDLE = Congestion()


def weights(step: Step) -> tuple[Number, ...]:
    """Return how often each step directly inside `step` is done, per time that `step` is."""
    if isinstance(step, Choice):
        return tuple(step.probabilities)
    if isinstance(step, Route):
        return (1 / len(step.targets),) * len(step.targets)
    if isinstance(step, (Hedge, Batch)):
        raise RefusedError(f"the analytic solver does not know {step.kind!r} yet: use a simulation engine")
    return (1.0,) * len(children(step))


@dataclass(frozen=True)
class ServiceDemand:
    """What one request asks of one station on average: `visits`, `demand` (s) and the second moment of it (s²)."""

    visits: Number = 0.0
    mean_s: Number = 0.0
    second_moment_s2: Number = 0.0

    def plus(self, weight: Number, other: ServiceDemand) -> ServiceDemand:
        """Add `weight` times another's work."""
        return ServiceDemand(
            self.visits + weight * other.visits,
            self.mean_s + weight * other.mean_s,
            self.second_moment_s2 + weight * other.second_moment_s2,
        )


class DemandReader:
    """Adds up, per station, the service that a flow asks for, late and detached branches included."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Step, dict[tuple[str, int], Number]]] = {}
        self.laws: dict[int, Distribution] = {}

    def of(self, step: Step) -> dict[str, ServiceDemand]:
        """Return the work of one passage by station."""
        total: dict[str, ServiceDemand] = defaultdict(ServiceDemand)
        for (station, law), often in self._visits(step).items():
            mean, scv = self.laws[law].mean, self.laws[law].scv
            total[station] = total[station].plus(often, ServiceDemand(1.0, mean, (scv + 1) * mean**2))
        return dict(total)

    def _visits(self, step: Step) -> dict[tuple[str, int], Number]:
        """Return how often each station is visited with each law (by its identity), per passage."""
        if id(step) not in self.known:
            self.known[id(step)] = (step, self._counted(step))
        return self.known[id(step)][1]

    def _counted(self, step: Step) -> dict[tuple[str, int], Number]:
        if isinstance(step, Visit):
            self.laws[id(step.demand)] = step.demand
            return {(step.station, id(step.demand)): 1.0}
        total: dict[tuple[str, int], Number] = {}
        for weight, child in zip(weights(step), children(step), strict=True):
            for visit, often in self._visits(child).items():
                total[visit] = total.get(visit, 0.0) + weight * often
        return total


class Shapes:
    """Numbers steps so that steps that take equally long get the same number.

    Two steps have one shape when they differ only in which of some equally loaded stations they visit, so that a ring
    of nodes is analysed once and not once for each node.

    Parameters
    ----------
    alike : mapping of int
        The number of the group of equally loaded stations that each station belongs to.
    """

    def __init__(self, alike: Mapping[str, int]) -> None:
        self.alike = alike
        self.numbers: dict[tuple[Any, ...], int] = {}
        self.known: dict[int, tuple[Step, int]] = {}
        self.laws: dict[int, tuple[Distribution, tuple[Any, ...]]] = {}

    def of(self, step: Step) -> int:
        """Return the number of a step's shape."""
        if id(step) not in self.known:
            self.known[id(step)] = (step, self.numbers.setdefault(self._key(step), len(self.numbers)))
        return self.known[id(step)][1]

    def _key(self, step: Step) -> tuple[Any, ...]:
        inside = [self.of(child) for child in children(step)]
        match step:
            case Visit():
                return (step.kind, self.alike.get(step.station, step.station), self._law(step.demand))
            case Delay():
                return (step.kind, self._law(step.duration))
            case Signal():
                return (step.kind, step.group)
            case ForkJoin():
                return (step.kind, step.needed, *sorted(inside))
            case CountdownLatch():
                return (step.kind, step.needed, *((group.name, group.needed) for group in step.groups), *inside)
            case Choice():
                return (step.kind, *(_bytes(chance) for chance in step.probabilities), *inside)
            case Route():
                return (step.kind, *sorted(inside))
            case _:
                return (step.kind, *inside)

    def _law(self, law: Distribution) -> tuple[Any, ...]:
        if id(law) not in self.laws:
            numbers = (getattr(law, field.name) for field in fields(law))
            self.laws[id(law)] = (law, (type(law), *(_bytes(number) for number in numbers)))
        return self.laws[id(law)][1]


def _bytes(value: Any) -> Any:
    return value.tobytes() if isinstance(value, np.ndarray) else repr(value)


@dataclass
class ResponseReader:
    """Computes the response time of a flow for given congestion by station; `races` are remembered by their laws."""

    congestion: Mapping[str, Congestion]
    shapes: Shapes
    races: dict[tuple[int, tuple[bytes, ...]], RandomTime] = field(default_factory=dict)
    known: dict[int, RandomTime] = field(default_factory=dict)
    heard: dict[int, dict[str, list[RandomTime]]] = field(default_factory=dict)

    def of(self, step: Step) -> RandomTime:
        """Return the time from the start of `step` until what follows it may start."""
        shape = self.shapes.of(step)
        if shape not in self.known:
            self.known[shape] = self._read(step)
        return self.known[shape]

    def _read(self, step: Step) -> RandomTime:
        match step:
            case Visit():
                busy = self.congestion.get(step.station, IDLE)
                return busy.wait + random_time(step.demand).stretched(busy.stretch)
            case Delay():
                return random_time(step.duration)
            case Acquire():
                return self.of(step.step)
            case StepSequence():
                return sum((self.of(child) for child in step.steps), NOW)
            case ForkJoin():
                return self._race([self.of(child) for child in step.branches], step.needed)
            case Choice() | Route():
                return mixture(weights(step), [self.of(child) for child in children(step)])
            case CountdownLatch():
                return self._latch(step)
            case Signal():
                return NOW
            case Hedge() | Batch():
                raise RefusedError(f"the analytic solver does not know {step.kind!r} yet: use a simulation engine")
            case _:
                assert_never(step)

    def _latch(self, step: CountdownLatch) -> RandomTime:
        signals = self._signals(step.step)
        full = [self._race(signals[group.name], group.needed) for group in step.groups]
        opened = self._race(full, step.needed or len(full))
        before = self.of(step.step)
        return opened if np.all(np.asarray(before.total) <= 0.0) else self._race([opened, before], 2)

    def _signals(self, step: Step) -> dict[str, list[RandomTime]]:
        """Return when the signals of each group come, counted from the start of `step`."""
        shape = self.shapes.of(step)
        if shape not in self.heard:
            self.heard[shape] = self._listen(step)
        return self.heard[shape]

    def _listen(self, step: Step) -> dict[str, list[RandomTime]]:
        if isinstance(step, Signal):
            return {step.group: [NOW]}
        if isinstance(step, StepSequence):
            return self._signals_in_turn(step.steps)
        found = [self._signals(child) for child in children(step)]
        if isinstance(step, (Choice, Route)):
            return _either(weights(step), found)
        own: set[str] = {group.name for group in step.groups} if isinstance(step, CountdownLatch) else set()
        names = {group for one in found for group in one} - own
        return {group: [t for one in found for t in one.get(group, [])] for group in names}

    def _signals_in_turn(self, steps: Sequence[Step]) -> dict[str, list[RandomTime]]:
        collected: dict[str, list[RandomTime]] = defaultdict(list)
        start = NOW
        for child in steps:
            for group, times in self._signals(child).items():
                collected[group] += [start + time for time in times]
            start = start + self.of(child)
        return dict(collected)

    def _race(self, times: list[RandomTime], needed: int) -> RandomTime:
        key = (needed, tuple(sorted(time.signature() for time in times)))
        if key not in self.races:
            self.races[key] = kth_of(times, needed)
        return self.races[key]


class HoldingTimeReader:
    """Adds up, per pool, the time that one passage of a flow holds it; steps of one object are read once."""

    def __init__(self, responses: ResponseReader) -> None:
        self.responses = responses
        self.known: dict[int, tuple[Step, dict[str, Number]]] = {}

    def of(self, step: Step) -> dict[str, Number]:
        """Return the mean time that each pool is held, in seconds."""
        if id(step) not in self.known:
            self.known[id(step)] = (step, self._read(step))
        return self.known[id(step)][1]

    def _read(self, step: Step) -> dict[str, Number]:
        total: dict[str, Number] = {}
        for weight, child in zip(weights(step), children(step), strict=True):
            for pool, time in self.of(child).items():
                total[pool] = total.get(pool, 0.0) + weight * time
        if isinstance(step, Acquire):
            total[step.pool] = total.get(step.pool, 0.0) + self.responses.of(step.step).total
        return total


def _either(chances: Sequence[Number], found: Sequence[dict[str, list[RandomTime]]]) -> dict[str, list[RandomTime]]:
    """Mix the signals of alternatives in the order in which they come."""
    counts = [{group: len(times) for group, times in one.items() if times} for one in found]
    if any(count != counts[0] for count in counts):
        raise RefusedError("the analytic solver knows no alternatives that signal unequally often: simulate them")
    mixed: dict[str, list[RandomTime]] = {}
    for group in counts[0]:
        columns = [sorted(one[group], key=lambda time: float(np.mean(time.total))) for one in found]
        mixed[group] = [mixture(chances, column) for column in zip(*columns, strict=True)]
    return mixed


def random_time(law: Distribution) -> RandomTime:
    """Return a law's mean and variance; a deterministic law is all floor."""
    variance = law.scv * law.mean**2
    if np.all(np.asarray(variance) == 0.0):
        return RandomTime(law.mean, 0.0, 0.0)
    return RandomTime(0.0, law.mean, variance)
