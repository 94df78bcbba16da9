"""Experiments: many configurations, each with as many replications as it turns out to need.

How many replications a configuration gets is decided from its earlier ones, all of them, in their order. So results
depend neither on the workers, nor on which of them was faster, nor on an interruption.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from capplan.simulator.experiments.store import Rows, Store, from_text, to_text
from capplan.simulator.experiments.workers import Workers, run_tasks

S = TypeVar("S")


@dataclass(frozen=True)
class Configuration(Generic[S]):
    """What replications are made of.

    Attributes
    ----------
    key : str
        A digest of everything that the results depend on. Configurations with the same key run once.
    subject
        The argument of `Experiment.run`; picklable.
    """

    key: str
    subject: S


@dataclass(frozen=True)
class Experiment(Generic[S]):
    """How to run replications.

    Attributes
    ----------
    run : callable
        Runs the replication with this number for a subject; returns rows of numbers, strings, booleans, None, lists
        and mappings. A function of a module, so that it can be pickled.
    wanted : callable
        Returns the number of replications in all, given the subject and the rows of the first n, in order: of none at
        first. The configuration is finished when it wants no more than there are.
    """

    run: Callable[[S, int], Rows]
    wanted: Callable[[S, Sequence[Rows]], int]


@dataclass(frozen=True)
class ExperimentProgress:
    """How far an experiment has come.

    Attributes
    ----------
    finished, configurations : int
        The number of finished configurations, and of all.
    stored, run : int
        The number of replications that came from the store, and that were run.
    requested : int
        The number of replications requested so far.
    """

    finished: int
    configurations: int
    stored: int
    run: int
    requested: int


def perform(
    experiment: Experiment[S],
    configurations: Sequence[Configuration[S]],
    workers: Workers,
    *,
    store: Store | None = None,
    progress: Callable[[ExperimentProgress], None] | None = None,
) -> Iterator[tuple[Configuration[S], list[Rows]]]:
    """Run an experiment.

    Parameters
    ----------
    experiment : Experiment
        How to run replications.
    configurations : sequence of Configuration
        What to run; earlier ones begin earlier.
    workers : Workers
        Where replications run.
    store : Store, optional
        Replications that are in it do not run again; others are saved in it as they complete.
    progress : callable, optional
        Called at the beginning and after every replication.

    Yields
    ------
    tuple
        Each configuration as soon as it is finished, with the rows of each of its replications.

    Raises
    ------
    InputError
        When results cannot be saved.
    Exception
        What `experiment.run` raises.
    """
    under_way = _Replicating(experiment, configurations, store, progress)
    under_way.tell()
    for (place, number), rows in run_tasks(workers, under_way.next_task):
        under_way.take(place, number, rows)
        yield from under_way.finished()
    yield from under_way.finished()


@dataclass
class _Group(Generic[S]):
    """Configurations of one key, and their replications so far."""

    configurations: list[Configuration[S]]
    requested: int = 0
    missing: int = 0
    rows: dict[int, Rows] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return self.configurations[0].key

    @property
    def subject(self) -> S:
        return self.configurations[0].subject

    def in_order(self) -> list[Rows]:
        return [self.rows[number] for number in range(self.requested)]


class _Replicating(Generic[S]):
    """An experiment that is under way."""

    def __init__(
        self,
        experiment: Experiment[S],
        configurations: Sequence[Configuration[S]],
        store: Store | None,
        progress: Callable[[ExperimentProgress], None] | None,
    ) -> None:
        self._experiment, self._store, self._progress = experiment, store, progress
        groups: dict[str, _Group[S]] = {}
        for each in configurations:
            groups.setdefault(each.key, _Group([])).configurations.append(each)
        self._groups = list(groups.values())
        self._ahead = iter(range(len(self._groups)))
        self._tasks: list[tuple[int, int]] = []  # a heap of places in `_groups` and numbers of replications
        self._finished: list[_Group[S]] = []
        self._count, self._total, self._stored, self._run, self._requested = 0, len(configurations), 0, 0, 0

    def next_task(self) -> tuple[tuple[int, int], Callable[[], Rows]] | None:
        """Return a replication of the earliest configuration that misses one; begin configurations until one does."""
        while not self._tasks:
            if (place := next(self._ahead, None)) is None:
                return None
            self._request(place)
        place, number = heapq.heappop(self._tasks)
        return (place, number), partial(self._experiment.run, self._groups[place].subject, number)

    def take(self, place: int, number: int, rows: Rows) -> None:
        """Keep the rows of a replication that has run."""
        group = self._groups[place]
        if self._store is not None:
            self._store.save(group.key, number, rows)
        group.rows[number] = from_text(to_text(rows))  # the same with a store and without
        group.missing -= 1
        self._run += 1
        if not group.missing:
            self._request(place)
        self.tell()

    def finished(self) -> Iterator[tuple[Configuration[S], list[Rows]]]:
        """Yield what has been finished since the last call."""
        finished, self._finished = self._finished, []
        for group in finished:
            rows = group.in_order()
            group.rows.clear()
            yield from ((each, rows) for each in group.configurations)

    def tell(self) -> None:
        """Report progress."""
        if self._progress is not None:
            self._progress(ExperimentProgress(self._count, self._total, self._stored, self._run, self._requested))

    def _request(self, place: int) -> None:
        """Request the replications that a configuration wants, now that it misses none, or note that it is finished."""
        group = self._groups[place]
        while not group.missing:
            wanted = self._experiment.wanted(group.subject, group.in_order())
            if wanted <= group.requested:
                self._finished.append(group)
                self._count += len(group.configurations)
                return
            for number in range(group.requested, wanted):
                known = None if self._store is None else self._store.rows(group.key, number)
                if known is None:
                    heapq.heappush(self._tasks, (place, number))
                    group.missing += 1
                else:
                    group.rows[number] = known
                    self._stored += 1
            self._requested += wanted - group.requested
            group.requested = wanted
