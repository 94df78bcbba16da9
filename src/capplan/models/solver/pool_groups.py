"""Requests by the outermost pools that they pass, so that pools that are not alike fill up independently.

A choice between pools splits a class of requests: each part has its own flow and its share of the traffic. Pools that
one request acquires one after another, or in parallel, belong to one group. If requests take turns, a group that gets
the share s of a Poisson stream sees arrivals with the squared coefficient of variation s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from capplan.models.language.step import Acquire, Choice, Route, Step, children
from capplan.models.language.step import Sequence as StepSequence
from capplan.models.language.units import Number
from capplan.models.solver.flow_analysis import weights

Pools = frozenset[str]


class _Part(NamedTuple):
    """Some of the requests that run a step: their share, what they do, and whether they take turns with the others."""

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
