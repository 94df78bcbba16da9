"""Stations and pools of one kind taken together: `cassandra/dc1/1`, `cassandra/dc1/2`, ... are `cassandra`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from capplan.planner.simulation import PoolFigures, StationFigures
from capplan.planner.system_figures import resource_of

T = TypeVar("T")


@dataclass(frozen=True)
class StationGroup:
    """Stations of one kind: means over the stations, of waits over the visits, and the sum of the drops.

    `least_utilisation` and `most_utilisation` are those of the least and the most loaded station; `visits` counts all.
    """

    kind: str
    count: int
    utilisation: float
    least_utilisation: float
    most_utilisation: float
    mean_queue: float
    mean_wait_ms: float
    paused_share: float
    visits: int
    drops: int


@dataclass(frozen=True)
class PoolGroup:
    """Pools of one kind: means over the pools, of waits over the units taken, and the sum of the drops.

    `most_p99_busy` is that of the pool with the most busy units.
    """

    kind: str
    count: int
    size: float
    mean_busy: float
    most_p99_busy: int
    mean_queue: float
    mean_wait_ms: float
    drops: int


def station_groups(stations: Mapping[str, StationFigures]) -> tuple[StationGroup, ...]:
    """Return the kinds of stations, that with the most loaded one first."""
    groups = (_stations(kind, members) for kind, members in _by_kind(stations).items())
    return tuple(sorted(groups, key=lambda group: -group.most_utilisation))


def pool_groups(pools: Mapping[str, PoolFigures]) -> tuple[PoolGroup, ...]:
    """Return the kinds of pools, that with the most used one first."""
    groups = (_pools(kind, members) for kind, members in _by_kind(pools).items())
    return tuple(sorted(groups, key=lambda group: -group.mean_busy / group.size))


def _by_kind(named: Mapping[str, T]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = {}
    for name, figures in named.items():
        found.setdefault(resource_of(name), []).append(figures)
    return found


def _stations(kind: str, members: list[StationFigures]) -> StationGroup:
    return StationGroup(
        kind=kind,
        count=len(members),
        utilisation=_mean(each.utilisation for each in members),
        least_utilisation=min(each.utilisation for each in members),
        most_utilisation=max(each.utilisation for each in members),
        mean_queue=_mean(each.mean_queue for each in members),
        mean_wait_ms=_weighted((each.mean_wait_ms, each.visits) for each in members),
        paused_share=_mean(each.paused_share for each in members),
        visits=sum(each.visits for each in members),
        drops=sum(each.drops for each in members),
    )


def _pools(kind: str, members: list[PoolFigures]) -> PoolGroup:
    return PoolGroup(
        kind=kind,
        count=len(members),
        size=_mean(each.size for each in members),
        mean_busy=_mean(each.mean_busy for each in members),
        most_p99_busy=max(each.p99_busy for each in members),
        mean_queue=_mean(each.mean_queue for each in members),
        mean_wait_ms=_weighted((each.mean_wait_ms, each.taken) for each in members),
        drops=sum(each.drops for each in members),
    )


def _mean(figures: Iterable[float]) -> float:
    every = list(figures)
    return sum(every) / len(every)


def _weighted(pairs: Iterable[tuple[float, int]]) -> float:
    seen = [(figure, count) for figure, count in pairs if count]
    return sum(figure * count for figure, count in seen) / sum(count for _, count in seen) if seen else math.nan
