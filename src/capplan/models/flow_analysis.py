"""What a flow asks of each station, and how long it takes when the stations are as busy as one says.

Both are read off the tree of steps. Steps that occur at several places of the tree (the same object) are analysed once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np

from capplan.models.distribution import Distribution
from capplan.models.errors import RefusedError
from capplan.models.quantity import Number
from capplan.models.random_time import NOW, RandomTime, kth_of, mixture
from capplan.models.step import (
    Batch,
    Choice,
    Delay,
    ForkJoin,
    Hedge,
    Hold,
    Latch,
    Route,
    Signal,
    Step,
    Visit,
    children,
)
from capplan.models.step import Sequence as StepSequence


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
class Work:
    """What one request asks of one station on average: `visits`, `demand` (s) and the second moment of it (s²)."""

    visits: Number = 0.0
    demand: Number = 0.0
    second: Number = 0.0

    def plus(self, weight: Number, other: Work) -> Work:
        """Add `weight` times another's work."""
        return Work(
            self.visits + weight * other.visits,
            self.demand + weight * other.demand,
            self.second + weight * other.second,
        )


@dataclass
class WorkReader:
    """Adds up, per station, the service that a flow asks for, late and detached branches included."""

    known: dict[int, tuple[Step, dict[str, Work]]] = field(default_factory=dict)

    def of(self, step: Step) -> dict[str, Work]:
        """Return the work of one passage by station."""
        if id(step) not in self.known:
            self.known[id(step)] = (step, self._read(step))
        return self.known[id(step)][1]

    def _read(self, step: Step) -> dict[str, Work]:
        if isinstance(step, Visit):
            mean = step.demand.mean
            return {step.station: Work(1.0, mean, (step.demand.scv + 1) * mean**2)}
        total: dict[str, Work] = defaultdict(Work)
        for weight, child in zip(weights(step), children(step), strict=True):
            for station, work in self.of(child).items():
                total[station] = total[station].plus(weight, work)
        return dict(total)


@dataclass
class ResponseReader:
    """Computes the response time of a flow for given congestion by station."""

    congestion: Mapping[str, Congestion]
    known: dict[int, tuple[Step, RandomTime]] = field(default_factory=dict)
    races: dict[tuple[int, tuple[bytes, ...]], RandomTime] = field(default_factory=dict)

    def of(self, step: Step) -> RandomTime:
        """Return the time from the start of `step` until what follows it may start."""
        if id(step) not in self.known:
            self.known[id(step)] = (step, self._read(step))
        return self.known[id(step)][1]

    def _read(self, step: Step) -> RandomTime:
        match step:
            case Visit():
                busy = self.congestion.get(step.station, IDLE)
                return busy.wait + random_time(step.demand).stretched(busy.stretch)
            case Delay():
                return random_time(step.duration)
            case Hold():
                return self.of(step.step)
            case StepSequence():
                return sum((self.of(child) for child in step.steps), NOW)
            case ForkJoin():
                return self._race([self.of(child) for child in step.branches], step.needed)
            case Choice() | Route():
                return mixture(weights(step), [self.of(child) for child in children(step)])
            case Latch():
                return self._latch(step)
            case Signal():
                return NOW
            case Hedge() | Batch():
                raise RefusedError(f"the analytic solver does not know {step.kind!r} yet: use a simulation engine")
            case _:
                assert_never(step)

    def _latch(self, step: Latch) -> RandomTime:
        signals = self._signals(step.step)
        full = [self._race(signals[group.name], group.needed) for group in step.groups]
        opened = self._race(full, step.needed or len(full))
        before = self.of(step.step)
        return opened if np.all(np.asarray(before.total) <= 0.0) else self._race([opened, before], 2)

    def _signals(self, step: Step) -> dict[str, list[RandomTime]]:
        """Return when the signals of each group come, counted from the start of `step`."""
        if isinstance(step, Signal):
            return {step.group: [NOW]}
        if isinstance(step, StepSequence):
            return self._signals_in_turn(step.steps)
        found = [self._signals(child) for child in children(step)]
        if isinstance(step, (Choice, Route)):
            return _either(weights(step), found)
        return {group: [t for one in found for t in one.get(group, [])] for one in found for group in one}

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


def _either(chances: Sequence[Number], found: Sequence[dict[str, list[RandomTime]]]) -> dict[str, list[RandomTime]]:
    """Mix the signals of alternatives in the order in which they come."""
    mixed: dict[str, list[RandomTime]] = {}
    for group in found[0]:
        columns = [sorted(one[group], key=lambda time: float(np.mean(time.total))) for one in found]
        mixed[group] = [mixture(chances, column) for column in zip(*columns, strict=True)]
    return mixed


def random_time(law: Distribution) -> RandomTime:
    """Return a law's mean and variance; a deterministic law is all floor."""
    variance = law.scv * law.mean**2
    if np.all(np.asarray(variance) == 0.0):
        return RandomTime(law.mean, 0.0, 0.0)
    return RandomTime(0.0, law.mean, variance)
