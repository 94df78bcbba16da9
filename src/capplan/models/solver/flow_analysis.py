"""Service demands and response times of a flow, from its tree of steps.

A step object that occurs at several places of the tree is analysed once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, assert_never

import numpy as np

from capplan.errors import RefusedError
from capplan.grouped import K
from capplan.models.language.distribution import Distribution
from capplan.models.language.step import (
    Acquire,
    Batch,
    Choice,
    CountdownLatch,
    Delay,
    FanOut,
    ForkJoin,
    Hedge,
    If,
    Pick,
    ReplicaSet,
    Route,
    Signal,
    Step,
    Visit,
    children,
)
from capplan.models.language.step import Sequence as StepSequence
from capplan.models.language.units import Number
from capplan.models.solver.random_times import NOW, RandomTime, kth_of, kth_of_n_cdf, kth_of_those_that_come, mixture


@dataclass(frozen=True)
class Sharing:
    """How requests slow each other down under processor sharing while their number varies.

    Attributes
    ----------
    slowdown : number or array (..., draws)
        Mean factor on the time alone.
    variance : number or array (..., draws)
        Variance of this factor at one moment.
    decay_per_s : number or array (..., draws)
        Rate at which its correlation over time decays.
    """

    slowdown: Number
    variance: Number
    decay_per_s: Number

    def scaled(self, factor: Number) -> Sharing:
        """Scale the slowdown's excess over 1 by a factor."""
        return Sharing(1 + (self.slowdown - 1) * factor, self.variance * factor**2, self.decay_per_s)

    def left(self, share: Number) -> Sharing:
        """Keep a share of the variance."""
        return replace(self, variance=self.variance * share)

    def scatter_s2(self, alone: RandomTime) -> Number:
        """Return the variance that sharing adds to a time, in s².

        A visit averages the factor over its time x. If the correlation decays exponentially at rate r, x² shrinks to 2
        (r x - 1 + exp(-r x)) / r². The mean of that is approximated from the first moments of x; it is exact for
        exponential times, and so for M/M/1.

        References
        ----------
        E. G. Coffman, R. R. Muntz and H. Trotter, "Waiting time distributions for processor-sharing systems", *Journal
        of the ACM* 17, 1970.
        """
        mean = np.maximum(alone.total, 1e-150)  # its square is above 0, too
        scv = alone.variance / mean**2
        return np.asarray(self.variance * (1 + scv) * mean**2 / (1 + self.decay_per_s * mean * (1 + 2 * scv) / 3))


@dataclass(frozen=True)
class Congestion:
    """The effect of queueing at one station.

    Attributes
    ----------
    stretch : number or array (..., draws)
        Factor on the service time.
    wait : RandomTime
        Wait before service.
    sharing : Sharing, optional
        How requests that share servers slow each other down; the stretch includes it.
    """

    stretch: Number = 1.0
    wait: RandomTime = NOW
    sharing: Sharing | None = None

    def scaled(self, factor: Number) -> Congestion:
        """Scale the mean time that requests lose to waiting and sharing by a factor."""
        wait, sharing = self.wait.stretched(factor), self.sharing and self.sharing.scaled(factor)
        return Congestion(1 + (self.stretch - 1) * factor, wait, sharing)

    def response(self, service: RandomTime) -> RandomTime:
        """Return the time that a visit takes."""
        stretched = service.stretched(self.stretch)
        if self.sharing is None:
            return self.wait + stretched
        alone = service.stretched(self.stretch / self.sharing.slowdown)
        scatter = self.sharing.scatter_s2(alone)
        return self.wait + RandomTime(alone.floor, stretched.total - alone.floor, stretched.variance + scatter)


IDLE = Congestion()

DROPPED = StepSequence((), name="dropped")
"""The step at which a request is dropped. A sequence that ends with it is the work of a request that is dropped."""


def is_dropped(step: Step) -> bool:
    """Return whether every request that runs `step` is dropped."""
    return isinstance(step, StepSequence) and any(last is DROPPED for last in (step, *step.steps[-1:]))


def check_policy(step: Route | Pick) -> None:
    """Refuse a policy that looks at the targets' queues or latencies: shares then depend on the load."""
    if step.policy in ("least_loaded", "latency_ranked"):
        raise RefusedError(
            f"the analytic solver does not support {step.kind!r} with the policy {step.policy!r}: simulate the network"
        )


def weights(step: Step) -> tuple[Number, ...]:
    """Return the mean number of runs of each step directly inside `step`, per run of `step`."""
    if isinstance(step, Choice):
        return tuple(step.probabilities)
    if isinstance(step, Route):
        check_policy(step)
        others = len(step.targets) - 1
        if step.policy == "first":
            return (1.0, *(0.0,) * others)
        given = step.weights or (1.0,) * (1 + others)
        return tuple(weight / math.fsum(given) for weight in given)
    if isinstance(step, (Hedge, Batch)):
        raise RefusedError(f"the analytic solver does not support {step.kind!r}: simulate the network")
    return (1.0,) * len(children(step))


@dataclass(frozen=True)
class ServiceDemand:
    """Demand of one request at one station over all its visits.

    Attributes
    ----------
    visits : number or array (draws,)
        Mean number of visits.
    mean_s : number or array (draws,)
        Mean service demand: the sum of the mean service times of all visits, in seconds.
    second_moment_s2 : number or array (draws,)
        Sum of the second moments of the service times of all visits, in s².
    """

    visits: Number = 0.0
    mean_s: Number = 0.0
    second_moment_s2: Number = 0.0

    def plus(self, weight: Number, other: ServiceDemand) -> ServiceDemand:
        """Add another demand, multiplied by `weight`."""
        return ServiceDemand(
            self.visits + weight * other.visits,
            self.mean_s + weight * other.mean_s,
            self.second_moment_s2 + weight * other.second_moment_s2,
        )


class DemandReader:
    """Adds up the service demand of a flow at each station, late branches included."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Step, dict[tuple[str, int], Number]]] = {}
        self.distributions: dict[int, Distribution] = {}

    def of(self, step: Step) -> dict[str, ServiceDemand]:
        """Return the demand of one run of `step`, by station."""
        total: dict[str, ServiceDemand] = defaultdict(ServiceDemand)
        for (station, key), often in self._visits(step).items():
            mean, scv = self.distributions[key].mean, _finite_scv(self.distributions[key], f"a visit to {station!r}")
            total[station] = total[station].plus(often, ServiceDemand(1.0, mean, (scv + 1) * mean**2))
        return dict(total)

    def _visits(self, step: Step) -> dict[tuple[str, int], Number]:
        """Return the visits per run, by station and identity of the distribution."""
        if id(step) not in self.known:
            self.known[id(step)] = (step, self._counted(step))
        return self.known[id(step)][1]

    def _counted(self, step: Step) -> dict[tuple[str, int], Number]:
        if isinstance(step, Visit):
            self.distributions[id(step.demand)] = step.demand
            return {(step.station, id(step.demand)): 1.0}
        return _weighted(weights(step), map(self._visits, children(step)))


class WaitedDemandReader(DemandReader):
    """Adds up the service demand of a flow that requests wait for.

    Of a branch of a fork that needs none, this is the work before a signal that a latch awaits. Where a latch awaits k
    of n signals, it is k / n of their work: the answer does not need the others.
    """

    def __init__(self) -> None:
        super().__init__()
        self.shares: dict[str, Number] = {}  # of the signals of each group, those that are awaited
        self.before: dict[int, tuple[Step, tuple[dict[tuple[str, int], Number], Number]]] = {}

    def _counted(self, step: Step) -> dict[tuple[str, int], Number]:
        if isinstance(step, CountdownLatch):
            return self._latched(step)
        if isinstance(step, ForkJoin) and not step.needed:
            return _weighted(weights(step), [self._before_signals(child)[0] for child in step.branches])
        return super()._counted(step)

    def _latched(self, step: CountdownLatch) -> dict[tuple[str, int], Number]:
        """Return the visits inside a latch; the latch awaits only the signals of its own groups."""
        inside = WaitedDemandReader()
        inside.distributions = self.distributions
        sent = _signals_sent(step.step)
        own = {group.name: group.needed / sent[group.name] for group in step.groups if group.name in sent}
        inside.shares = {**self.shares, **{name: np.minimum(share, 1.0) for name, share in own.items()}}
        return inside._visits(step.step)

    def _before_signals(self, step: Step) -> tuple[dict[tuple[str, int], Number], Number]:
        """Return the visits before awaited signals, and the awaited share of these signals; 0 if there are none."""
        if id(step) not in self.before:
            self.before[id(step)] = (step, self._found_before(step))
        return self.before[id(step)][1]

    def _found_before(self, step: Step) -> tuple[dict[tuple[str, int], Number], Number]:
        if isinstance(step, Signal):
            return {}, self.shares.get(step.group, 0.0)
        if isinstance(step, StepSequence):
            return self._before_in_turn(step.steps)
        found = [self._before_signals(child) for child in children(step)]
        most = max((share for _, share in found), key=np.mean, default=0.0)
        return _weighted(weights(step), [visits for visits, _ in found]), most

    def _before_in_turn(self, steps: Sequence[Step]) -> tuple[dict[tuple[str, int], Number], Number]:
        """Return the same for a sequence: visits before a step with a signal have the weight of this signal."""
        awaited: Number = 0.0
        parts: list[tuple[Number, dict[tuple[str, int], Number]]] = []
        for child in reversed(steps):
            visits, share = self._before_signals(child)
            parts.append((awaited, self._visits(child)) if np.any(awaited) else (1.0, visits))
            awaited = max(awaited, share, key=np.mean)
        return _weighted([weight for weight, _ in parts], [visits for _, visits in parts]), awaited


def _weighted(weight: Iterable[Number], parts: Iterable[dict[K, Number]]) -> dict[K, Number]:
    total: dict[K, Number] = {}
    for often, part in zip(weight, parts, strict=True):
        for key, number in part.items():
            total[key] = total.get(key, 0.0) + often * number
    return total


def _signals_sent(step: Step, known: dict[int, dict[str, Number]] | None = None) -> dict[str, Number]:
    """Return the mean number of signals of each group that a step sends."""
    seen = {} if known is None else known
    if isinstance(step, Signal):
        return {step.group: 1.0}
    if id(step) not in seen:
        seen[id(step)] = _weighted(weights(step), (_signals_sent(child, seen) for child in children(step)))
    return seen[id(step)]


class Shapes:
    """Assigns the same number, their shape, to steps with the same response time.

    Two steps have the same shape if they differ only in which of several equally loaded stations they visit. A ring of
    nodes is therefore analysed once, not once per node.

    Parameters
    ----------
    alike : mapping of int
        Number of the group of equally loaded stations that each station belongs to.
    """

    def __init__(self, alike: Mapping[str, int]) -> None:
        self.alike = alike
        self.numbers: dict[tuple[Any, ...], int] = {}
        self.known: dict[int, tuple[Step, int]] = {}
        self.distributions: dict[int, tuple[Distribution, tuple[Any, ...]]] = {}

    def of(self, step: Step) -> int:
        """Return the shape of a step."""
        if id(step) not in self.known:
            self.known[id(step)] = (step, self.numbers.setdefault(self._key(step), len(self.numbers)))
        return self.known[id(step)][1]

    def _key(self, step: Step) -> tuple[Any, ...]:
        inside = [self.of(child) for child in children(step)]
        match step:
            case Visit():
                return (step.kind, self.alike.get(step.station, step.station), self._distribution(step.demand))
            case Delay():
                return (step.kind, self._distribution(step.duration))
            case Signal():
                return (step.kind, step.group)
            case StepSequence() if step is DROPPED:
                return (step.name,)
            case ForkJoin():
                return (step.kind, step.needed, *sorted(inside))
            case CountdownLatch():
                return (step.kind, step.needed, *((group.name, group.needed) for group in step.groups), *inside)
            case Choice():
                return (step.kind, *(_bytes(chance) for chance in step.probabilities), *inside)
            case Route():
                return (step.kind, *sorted(zip(weights(step), inside, strict=True)))
            case _:
                return (step.kind, *inside)

    def _distribution(self, distribution: Distribution) -> tuple[Any, ...]:
        if id(distribution) not in self.distributions:
            numbers = (getattr(distribution, field.name) for field in fields(distribution))
            self.distributions[id(distribution)] = (
                distribution,
                (type(distribution), *(_bytes(number) for number in numbers)),
            )
        return self.distributions[id(distribution)][1]


def _bytes(value: Any) -> Any:
    return value.tobytes() if isinstance(value, np.ndarray) else repr(value)


class Heard(NamedTuple):
    """A signal: its time if it comes, and the probability that it comes."""

    time: RandomTime
    chance: Number = 1.0


Race = tuple[int, tuple[tuple[tuple[int, ...], bytes], ...]]
"""A race among signals: how many are needed, and the shape and the signature of the time of each."""


@dataclass
class ResponseReader:
    """Computes response times of flows for a given congestion of stations.

    Attributes
    ----------
    congestion : mapping of Congestion
        By station; others are idle.
    shapes : Shapes
        Equivalent steps.
    races, known, heard : dict
        Cached results: order statistics, response times, and times of signals.
    """

    congestion: Mapping[str, Congestion]
    shapes: Shapes
    races: dict[Race, RandomTime] = field(default_factory=dict)
    known: dict[int, RandomTime] = field(default_factory=dict)
    heard: dict[int, dict[str, list[Heard]]] = field(default_factory=dict)

    def of(self, step: Step) -> RandomTime:
        """Return the time from the start of `step` until the next step can start."""
        shape = self.shapes.of(step)
        if shape not in self.known:
            self.known[shape] = self._read(step)
        return self.known[shape]

    def _read(self, step: Step) -> RandomTime:
        match step:
            case Visit():
                return self.congestion.get(step.station, IDLE).response(random_time(step.demand))
            case Delay():
                return random_time(step.duration)
            case Acquire():
                return self.of(step.step)
            case StepSequence():
                return sum((self.of(child) for child in step.steps), NOW)
            case ForkJoin():
                branches = [self.of(child) for child in step.branches if not is_dropped(child)]
                return self._race([Heard(branch) for branch in branches], step.needed)
            case Choice() | Route():
                chances, going = _not_dropped(step)
                return mixture(chances, [self.of(child) for child in going]) if going else NOW  # no request continues
            case CountdownLatch():
                return self._latch(step)
            case Signal():
                return NOW
            case Hedge() | Batch() | Pick() | ReplicaSet() | FanOut() | If():
                raise RefusedError(f"the analytic solver does not support {step.kind!r}: simulate the network")
            case _:
                assert_never(step)

    def _latch(self, step: CountdownLatch) -> RandomTime:
        signals = self._signals(step.step)
        complete = [
            Heard(self._race(signals[group.name], group.needed), enough(signals[group.name], group.needed))
            for group in step.groups
            if len(signals.get(group.name, [])) >= group.needed
        ]
        opened = self._race(complete, step.needed or len(step.groups))
        before = self.of(step.step)
        both = [Heard(opened), Heard(before)]
        return opened if np.all(np.asarray(before.total) <= 0.0) else self._race(both, 2)

    def _signals(self, step: Step) -> dict[str, list[Heard]]:
        """Return the signals of each group; times are from the start of `step`."""
        shape = self.shapes.of(step)
        if shape not in self.heard:
            self.heard[shape] = self._listen(step)
        return self.heard[shape]

    def _listen(self, step: Step) -> dict[str, list[Heard]]:
        if isinstance(step, Signal):
            return {step.group: [Heard(NOW)]}
        if isinstance(step, StepSequence):
            return self._signals_in_turn(step.steps)
        found = [self._signals(child) for child in children(step)]
        if isinstance(step, (Choice, Route)):
            return _either(weights(step), found)
        own: set[str] = {group.name for group in step.groups} if isinstance(step, CountdownLatch) else set()
        names = {group for one in found for group in one} - own
        return {group: [signal for one in found for signal in one.get(group, [])] for group in names}

    def _signals_in_turn(self, steps: Sequence[Step]) -> dict[str, list[Heard]]:
        collected: dict[str, list[Heard]] = defaultdict(list)
        start = NOW
        for child in steps:
            for group, signals in self._signals(child).items():
                collected[group] += [Heard(start + signal.time, signal.chance) for signal in signals]
            start = start + self.of(child)
        return dict(collected)

    def _race(self, signals: list[Heard], needed: int) -> RandomTime:
        each = ((np.shape(signal.time.total), signal.time.signature + _certainty(signal)) for signal in signals)
        key = needed, tuple(sorted(each))
        if key not in self.races:
            times = [signal.time for signal in signals]
            if all(map(_is_certain, signals)):
                self.races[key] = kth_of(times, needed)
            else:
                self.races[key] = kth_of_those_that_come(times, [signal.chance for signal in signals], needed)
        return self.races[key]


class HoldingTimeReader:
    """Adds up the holding time of each pool over a flow."""

    def __init__(self, responses: ResponseReader) -> None:
        self.responses = responses
        self.known: dict[int, tuple[Step, dict[str, Number]]] = {}

    def of(self, step: Step) -> dict[str, Number]:
        """Return the mean time that one run of `step` holds each pool, in seconds."""
        if id(step) not in self.known:
            self.known[id(step)] = (step, self._read(step))
        return self.known[id(step)][1]

    def _read(self, step: Step) -> dict[str, Number]:
        total = _weighted(weights(step), map(self.of, children(step)))
        if isinstance(step, Acquire):
            total[step.pool] = total.get(step.pool, 0.0) + self.responses.of(step.step).total
        return total


def _not_dropped(step: Choice | Route) -> tuple[tuple[Number, ...], list[Step]]:
    """Return the alternatives that do not drop requests, with their conditional probabilities."""
    chances, inside = weights(step), children(step)
    if not any(map(is_dropped, inside)):
        return chances, list(inside)
    going = [(chance, child) for chance, child in zip(chances, inside, strict=True) if not is_dropped(child)]
    total = sum((chance for chance, _ in going), 0.0)
    return tuple(chance / total for chance, _ in going), [child for _, child in going]


def _either(chances: Sequence[Number], found: Sequence[dict[str, list[Heard]]]) -> dict[str, list[Heard]]:
    """Mix the signals of alternatives, in the order of their mean times."""
    mixed: dict[str, list[Heard]] = {}
    for group in dict.fromkeys(group for one in found for group in one):
        columns = [sorted(one.get(group, []), key=lambda signal: float(np.mean(signal.time.total))) for one in found]
        longest = max(map(len, columns))
        mixed[group] = [_column(chances, [column[place : place + 1] for column in columns]) for place in range(longest)]
    return mixed


def _column(chances: Sequence[Number], found: Sequence[Sequence[Heard]]) -> Heard:
    """Mix one signal over the alternatives that send it."""
    if all(one and _is_certain(one[0]) for one in found):
        return Heard(mixture(chances, [signal.time for (signal,) in found]))
    present = [(chance * one[0].chance, one[0].time) for chance, one in zip(chances, found, strict=True) if one]
    total = sum((chance for chance, _ in present), 0.0)
    return Heard(mixture([chance / total for chance, _ in present], [time for _, time in present]), total)


def enough(signals: Sequence[Heard], needed: int) -> Number:
    """Return the probability that at least `needed` of several independent signals come."""
    if all(map(_is_certain, signals)):
        return 1.0
    chances = np.broadcast_arrays(*(np.minimum(signal.chance, 1.0) for signal in signals))
    return kth_of_n_cdf(np.stack(chances, axis=-1), needed)[()]


def _is_certain(signal: Heard) -> bool:
    return isinstance(signal.chance, float) and signal.chance == 1.0


def _certainty(signal: Heard) -> bytes:
    return b"" if _is_certain(signal) else np.asarray(signal.chance, dtype=float).tobytes()


def _finite_scv(distribution: Distribution, what: str) -> Number:
    """Return the squared coefficient of variation of a time.

    Raises
    ------
    RefusedError
        If it is infinite, as of a heavy tail: the mean wait behind such work is infinite, too.
    """
    scv: Number = distribution.scv
    if not np.all(np.isfinite(scv)):
        raise RefusedError(
            f"the analytic solver does not support times of infinite variance, as of {what}: simulate the network"
        )
    return scv


def random_time(distribution: Distribution) -> RandomTime:
    """Return the moments of a distribution; a deterministic one consists of its floor."""
    variance = _finite_scv(distribution, "a delay") * distribution.mean**2
    if np.all(np.asarray(variance) == 0.0):
        return RandomTime(distribution.mean, 0.0, 0.0)
    return RandomTime(0.0, distribution.mean, variance)
