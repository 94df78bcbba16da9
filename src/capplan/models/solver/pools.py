"""Pools: requests by the outermost pools that they pass, and a system behind a pool as a flow-equivalent server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from capplan.models.language.step import Acquire, Choice, Route, Step, children
from capplan.models.language.step import Sequence as StepSequence
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.flow_analysis import weights
from capplan.models.solver.single_station import in_proportion

_EVERY, _FEW = 256, 24  # places up to which the grid has every state; and without drops
_RELATIVE = 0.08  # spacing over the distance from the states where probabilities may bend
_ALWAYS, _RARE = 1 - 1e-15, 1e-9  # probabilities that count as 1, and as 0 beside 1
_SPREAD = 0.5  # spacing over the square root of the number inside


@lru_cache(maxsize=1024)
def state_grid(pool: int, places: int, clients: int | None = None) -> FloatArray:
    """Return a grid of numbers inside that represents all of 0 .. places.

    Parameters
    ----------
    pool, places : int
        Size of the pool, and of the pool and its queue together.
    clients : int, optional
        Number of clients, if it is finite: the standard deviation of the number inside is at least about the square
        root of the number outside. If none is ever dropped, fewer states suffice: the sum over a smooth probability
        needs no more than one in each standard deviation.

    Returns
    -------
    array (states,)
        Whole numbers in ascending order, from 0 to `places`.
    """
    smooth = clients == places
    if places <= (_FEW if smooth else _EVERY):
        return _constant(np.arange(places + 1.0))
    bends = np.array([0.0, pool, places])
    numbers = [0]
    while numbers[-1] < places:
        last = numbers[-1]
        ahead = np.min(bends[bends > last]) - last
        behind = last - np.max(bends[bends <= last])
        widest = _RELATIVE * min(behind, ahead) if last >= pool else min(_SPREAD * last**0.5, _RELATIVE * ahead)
        if smooth:
            widest = _SPREAD * min(last, places - last) ** 0.5
        elif clients is not None:
            widest = min(widest, _SPREAD * last**0.5, _SPREAD * (clients - last) ** 0.5)
        numbers.append(last + int(max(1, min(widest, ahead - 1))))
    return _constant(np.array(numbers, dtype=float))


def _constant(values: FloatArray) -> FloatArray:
    values.flags.writeable = False  # because calls share it
    return values


def grid_weights(states: FloatArray) -> FloatArray:
    """Return how many states each grid state represents in a sum."""
    gap = np.diff(states)
    weight = np.full(len(states), 0.5)
    weight[:-1] += gap / 2
    weight[1:] += gap / 2
    weight[1:-1] -= 0.5
    return weight


@dataclass(frozen=True)
class FlowEquivalent:
    """A flow-equivalent server behind a pool.

    Attributes
    ----------
    states : array (states,)
        Numbers of requests inside: 0 to the size of the pool plus its queue limit, from `state_grid`.
    throughput_per_s : array (draws, states - 1)
        X(n) for all states but the first.
    pool : int
        Size of the pool.
    peakedness : float or array (draws,)
        Variance of the number inside over that with Poisson arrivals. For the drop rate, probabilities are raised to
        its inverse: Hayward's approximation for the loss of smooth traffic.
    """

    states: FloatArray
    throughput_per_s: FloatArray
    pool: int
    peakedness: Number = 1.0

    @property
    def places(self) -> int:
        """Size of the pool plus its queue limit."""
        return int(self.states[-1])

    def chances(self, rate_per_s: FloatArray) -> FloatArray:
        """Return the probability of each grid state, for all numbers of requests that it represents.

        Parameters
        ----------
        rate_per_s : array (..., draws)
            Arrival rate, per second.

        Returns
        -------
        array (..., draws, states)
        """
        log_rate = np.log(np.maximum(rate_per_s, 1e-9))[..., None]
        return in_proportion(self.states * log_rate - self.log_work + np.log(self.weight))

    def drop_rate(self, chance: FloatArray) -> FloatArray:
        """Return the probability that all places are taken (..., draws), for probabilities from `chances`."""
        if np.all(np.asarray(self.peakedness) == 1.0):
            return chance[..., -1]
        logs = np.log(np.maximum(chance, 1e-300) / self.weight) / np.expand_dims(self.peakedness, -1)
        full = in_proportion(logs + np.log(self.weight))[..., -1]
        return -np.expm1(self.peakedness * np.log1p(-np.minimum(full, _ALWAYS)))

    def blocking(self, rate_per_s: FloatArray, draws: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Return the logarithm of the probability that all places are taken, and its slope.

        Parameters
        ----------
        rate_per_s : array (chosen draws,)
            Arrival rate, per second.
        draws : array of int (chosen draws,)
            Which draws to solve.

        Returns
        -------
        tuple of array (chosen draws,)
            The logarithm, and its derivative with respect to the logarithm of the rate.
        """
        logs, empty = self.log_work[draws], self.places - self.states
        peakedness = np.broadcast_to(self.peakedness, self.log_work.shape[:1])[draws]
        logs = (logs[:, -1:] - logs - empty * np.log(np.maximum(rate_per_s, 1e-9))[:, None]) / peakedness[:, None]
        most = logs.max(axis=-1)
        weight = np.exp(logs - most[:, None]) * self.weight
        total = weight.sum(axis=-1)
        # BLAS would use all processors for each of many long rows, which costs more than it saves.
        full, slope = -most - np.log(total), np.einsum("ij,j->i", weight, empty) / total / peakedness
        if np.all(peakedness == 1.0):
            return full, slope
        # Servers are in units of the peakedness, so a state stands for several: the complement of the geometric sum.
        chance = np.minimum(np.exp(full), _ALWAYS)
        dropped = -np.expm1(peakedness * np.log1p(-chance))
        rare = chance < _RARE
        steeper = np.where(
            rare, 1.0, peakedness * (1 - chance) ** (peakedness - 1) * chance / np.where(rare, 1.0, dropped)
        )
        return np.where(rare, np.log(peakedness) + full, np.log(np.where(rare, 1.0, dropped))), slope * steeper

    @cached_property
    def weight(self) -> FloatArray:
        """How many states each state stands for (states,)."""
        return grid_weights(self.states)

    @cached_property
    def log_work(self) -> FloatArray:
        """Logarithm of X(1) X(2) ... X(n) for all states (draws, states)."""
        logs, gap = np.log(np.maximum(self.throughput_per_s, 1e-300)), np.diff(self.states)
        before = np.concatenate([logs[:, :1], logs[:, :-1]], axis=-1)
        # The trapezoidal rule for X from n + 1/2 to m + 1/2: the last alone if the gap is 1.
        return np.pad(np.cumsum(logs * (gap + 1) / 2 + before * (gap - 1) / 2, axis=-1), ((0, 0), (1, 0)))


Pools = frozenset[str]


class _Part(NamedTuple):
    """A part of the requests that run a step: its share, its steps, and whether it takes turns with the other parts."""

    share: Number
    step: Step
    in_turn: bool = True


Split = Mapping[Pools, _Part]


@dataclass(frozen=True)
class PoolGroup:
    """The requests that pass the same outermost pools.

    Attributes
    ----------
    pools : frozenset of str
        Names of the pools; none for requests without a pool.
    flows : dict of Step
        What these requests do, by request class.
    shares : dict of number or array (draws,)
        Their share of all requests, by request class.
    arrival_scv : number or array (draws,)
        Squared coefficient of variation of the times between their arrivals; 1 for Poisson arrivals.
    """

    pools: Pools
    flows: dict[str, Step]
    shares: dict[str, Number]
    arrival_scv: Number

    @property
    def share(self) -> Number:
        """Their share of all requests."""
        return sum(self.shares.values(), 0.0)


def pool_groups(
    flows: Mapping[str, Step], share: Mapping[str, Number], together: Iterable[Pools] = ()
) -> tuple[PoolGroup, ...]:
    """Return the groups of requests, in the order in which the flows name their pools.

    Parameters
    ----------
    flows : mapping of Step
        Flow of each request class.
    share : mapping of float
        Share of each request class in the traffic.
    together : iterable of frozenset of str
        Pools that belong to one group although no request passes all of them.
    """
    splits = {name: _split(flows[name]) for name in share}
    groups = _joined([*(pools for split in splits.values() for pools in split), *together])
    return tuple(_group(pools, splits, share) for pools in groups)


def _group(pools: Pools, splits: Mapping[str, Split], share: Mapping[str, Number]) -> PoolGroup:
    parts = {
        name: _mixed([part for own, part in split.items() if own <= pools and bool(own) == bool(pools)])
        for name, split in splits.items()
    }
    passing = {name: part for name, part in parts.items() if part is not None}
    shares = {name: share[name] * part.share for name, part in passing.items()}
    variability = (shares[name] * (part.share if part.in_turn else 1.0) for name, part in passing.items())
    total: Number = sum(shares.values(), 0.0)
    return PoolGroup(
        pools,
        {name: part.step for name, part in passing.items()},
        shares,
        sum(variability, 0.0) / total,
    )


def _split(step: Step) -> Split:
    """Split a step by the outermost pools inside."""
    if isinstance(step, Acquire):
        return {frozenset([step.pool]): _Part(1.0, step)}
    inside = [_split(child) for child in children(step)]
    if isinstance(step, (Choice, Route)):
        turns = isinstance(step, Route) and step.policy == "round_robin"
        found: dict[Pools, list[_Part]] = {}
        for chance, split in zip(weights(step), inside, strict=True):
            for pools, part in split.items():
                found.setdefault(pools, []).append(_Part(chance * part.share, part.step, turns and part.in_turn))
        if len(found) == 1:
            return {pools: _Part(1.0, step) for pools in found}
        return {pools: mixed for pools, parts in found.items() if (mixed := _mixed(parts)) is not None}
    with_pools = [place for place, split in enumerate(inside) if any(split)]
    if isinstance(step, StepSequence) and len(with_pools) == 1:
        (place,) = with_pools
        before, after = step.steps[:place], step.steps[place + 1 :]
        return {
            pools: part._replace(step=step)
            if part.step is step.steps[place]
            else part._replace(step=StepSequence((*before, part.step, *after)))
            for pools, part in inside[place].items()
        }
    return {frozenset[str]().union(*(pools for split in inside for pools in split)): _Part(1.0, step)}


def _mixed(parts: Sequence[_Part]) -> _Part | None:
    """Return parts as one; None without parts."""
    if len(parts) < 2:
        return parts[0] if parts else None
    total: Number = sum((part.share for part in parts), 0.0)
    step = Choice(tuple(part.share / total for part in parts), tuple(part.step for part in parts))
    return _Part(total, step, all(part.in_turn for part in parts))


def _joined(sets: Iterable[Pools]) -> list[Pools]:
    """Join sets that share a pool."""
    found: list[Pools] = []
    for each in sets:
        common = [other for other in found if other & each or other == each]
        if not common:
            found.append(each)
            continue
        place = found.index(common[0])
        found[place] = each.union(*common)
        found = [other for other in found if other not in common[1:]]
    return found
