"""Requests by the outermost pools that they pass, so that pools that are not alike fill up independently.

A choice between pools splits a class of requests: each part has its own flow and its share of the traffic. Pools that
one request acquires one after another, or in parallel, belong to one group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from capplan.models.language.step import Acquire, Choice, Route, Step, children
from capplan.models.language.step import Sequence as StepSequence
from capplan.models.language.units import Number
from capplan.models.solver.flow_analysis import weights

Pools = frozenset[str]
Split = Mapping[Pools, tuple[Number, Step]]


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
    """

    pools: Pools
    flows: dict[str, Step]
    shares: dict[str, Number]

    @property
    def share(self) -> Number:
        """Their share of all requests."""
        return sum(self.shares.values(), 0.0)


def pool_groups(
    flows: Mapping[str, Step], share: Mapping[str, float], together: Iterable[Pools] = ()
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
    splits = {name: _split(flows[name]) for name, each in share.items() if each > 0}
    groups = _joined([*(pools for split in splits.values() for pools in split), *together])
    found = []
    for pools in groups:
        parts = {
            name: _mixed([part for own, part in split.items() if own <= pools and bool(own) == bool(pools)])
            for name, split in splits.items()
        }
        passing = {name: part for name, part in parts.items() if part is not None}
        found.append(
            PoolGroup(
                pools,
                {name: step for name, (_, step) in passing.items()},
                {name: share[name] * weight for name, (weight, _) in passing.items()},
            )
        )
    return tuple(found)


def _split(step: Step) -> Split:
    """Split a step by the outermost pools inside: the probability of each part, and what it does."""
    if isinstance(step, Acquire):
        return {frozenset([step.pool]): (1.0, step)}
    inside = [_split(child) for child in children(step)]
    if isinstance(step, (Choice, Route)):
        found: dict[Pools, list[tuple[Number, Step]]] = {}
        for chance, split in zip(weights(step), inside, strict=True):
            for pools, (weight, part) in split.items():
                found.setdefault(pools, []).append((chance * weight, part))
        return {pools: mixed for pools, parts in found.items() if (mixed := _mixed(parts)) is not None}
    with_pools = [place for place, split in enumerate(inside) if any(split)]
    if isinstance(step, StepSequence) and len(with_pools) == 1:
        (place,) = with_pools
        before, after = step.steps[:place], step.steps[place + 1 :]
        return {
            pools: (weight, step if part is step.steps[place] else StepSequence((*before, part, *after)))
            for pools, (weight, part) in inside[place].items()
        }
    return {frozenset[str]().union(*(pools for split in inside for pools in split)): (1.0, step)}


def _mixed(parts: Sequence[tuple[Number, Step]]) -> tuple[Number, Step] | None:
    """Return parts as one, with their total probability; None without parts."""
    total: Number = sum((weight for weight, _ in parts), 0.0)
    if len(parts) < 2:
        return parts[0] if parts else None
    return total, Choice(tuple(weight / total for weight, _ in parts), tuple(part for _, part in parts))


def _joined(sets: Iterable[Pools]) -> list[Pools]:
    """Join the sets that have pools in common."""
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
