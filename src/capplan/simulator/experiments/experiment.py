"""Many cases with many replications each: run anywhere, saved as they come, the same whatever happens in between.

An experiment knows how to run one replication of a case and how many there shall be. It decides on that with all
replications there that it has asked for, in order; so results depend neither on the executor, nor on the number of its
workers, nor on which of them was faster, nor on an interruption.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from capplan.simulator.experiments.executors import Executor
from capplan.simulator.experiments.store import Rows, Store, record, record_schema, rows_of

if TYPE_CHECKING:
    import pyarrow as pa

S = TypeVar("S")
IN_FLIGHT = 2  # tasks per worker that are asked for at a time: one runs, one waits beside it


@dataclass(frozen=True)
class Configuration(Generic[S]):
    """One thing to find out.

    Attributes
    ----------
    key
        A stable digest of everything that its results depend on; cases with the same key are run once.
    subject
        What is given to `Experiment.run`; picklable.
    """

    key: str
    subject: S


Found = tuple[Configuration[S], list[Rows]]


@dataclass(frozen=True)
class Experiment(Generic[S]):
    """How to find it out.

    Attributes
    ----------
    run
        Runs the replication of this number of a subject; a function of a module, so that it can be pickled.
    wanted
        How many replications there shall be in all, given the rows of those that are there: numbers 0 to n - 1, in
        order. It is called first with none; when it wants no more than it has been given, the case is finished.
    schema
        The columns of a row: scalars and lists.
    """

    run: Callable[[S, int], Rows]
    wanted: Callable[[S, Sequence[Rows]], int]
    schema: pa.Schema


@dataclass(frozen=True)
class ExperimentProgress:
    """How far an experiment has come.

    Attributes
    ----------
    cases_finished, cases
        How many cases are finished, of how many.
    found, run
        How many replications have come from the store, and how many have been run.
    asked
        How many replications are wanted so far of the cases that have begun, the finished ones included.
    """

    cases_finished: int
    cases: int
    found: int
    run: int
    asked: int


def perform(
    experiment: Experiment[S],
    cases: Sequence[Configuration[S]],
    executor: Executor,
    *,
    store: Store | None = None,
    progress: Callable[[ExperimentProgress], None] | None = None,
) -> Iterator[Found[S]]:
    """Find out about all cases.

    Parameters
    ----------
    experiment
        What is done with each.
    cases
        The cases; earlier ones begin earlier.
    executor
        Where replications run; entered already.
    store
        What is known already, and where replications are kept as they come; made with the experiment's schema.
    progress
        Told how far it has come, at the beginning and after every replication.

    Yields
    ------
    tuple
        Each case as soon as it is finished, with the rows of each replication.

    Raises
    ------
    InputError
        When workers are lost again and again, when results cannot be saved, or what `run` raises.
    """
    course = _Course(experiment, cases, executor, store, progress)
    try:
        yield from course.results()
    finally:
        executor.abandon()


@dataclass
class _Under(Generic[S]):
    """Cases of one key on their way."""

    order: int
    cases: list[Configuration[S]]
    asked: int = 0
    missing: int = 0
    rows: dict[int, Rows] = field(default_factory=dict)

    def in_order(self) -> list[Rows]:
        return [self.rows[number] for number in range(self.asked)]


class _Course(Generic[S]):
    """An experiment on its way."""

    def __init__(
        self,
        experiment: Experiment[S],
        cases: Sequence[Configuration[S]],
        executor: Executor,
        store: Store | None,
        progress: Callable[[ExperimentProgress], None] | None,
    ) -> None:
        by_key: dict[str, list[Configuration[S]]] = {}
        for case in cases:
            by_key.setdefault(case.key, []).append(case)
        self._experiment, self._executor, self._store, self._progress = experiment, executor, store, progress
        self._schema = record_schema(experiment.schema)
        self._ahead = iter([_Under(order, same) for order, same in enumerate(by_key.values())])
        self._open: dict[int, _Under[S]] = {}
        self._tasks: list[tuple[int, int]] = []  # a heap of the orders of cases and the numbers of replications
        self._in_flight = 0
        self._finished, self._cases, self._found, self._run, self._asked = 0, len(cases), 0, 0, 0

    def results(self) -> Iterator[Found[S]]:
        """Yield cases as they are finished."""
        self._tell()
        yield from self._refill()
        while self._in_flight:
            (order, number), rows = self._executor.finished()
            yield from self._take(order, number, rows)
            yield from self._refill()

    def _refill(self) -> Iterator[Found[S]]:
        """Give the executor as much as it needs, and begin cases until there is as much."""
        while self._in_flight < IN_FLIGHT * self._executor.workers:
            if self._tasks:
                self._submit(*heapq.heappop(self._tasks))
            elif (under := next(self._ahead, None)) is not None:
                self._open[under.order] = under
                yield from self._go_on(under)
            else:
                return

    def _submit(self, order: int, number: int) -> None:
        subject = self._open[order].cases[0].subject
        self._executor.submit((order, number), self._experiment.run, subject, number)
        self._in_flight += 1

    def _take(self, order: int, number: int, rows: Rows) -> list[Found[S]]:
        """Keep what a replication has given; return the cases that are finished by it."""
        under = self._open[order]
        self._in_flight -= 1
        kept = record(under.cases[0].key, number, rows, self._schema)
        if self._store is not None:
            self._store.save(kept)
        under.rows[number] = rows_of(kept)
        under.missing -= 1
        self._run += 1
        finished = self._go_on(under)
        self._tell()
        return finished

    def _go_on(self, under: _Under[S]) -> list[Found[S]]:
        """When all of a case is there that it has asked for, ask for more, or return it as finished."""
        while not under.missing:
            seen = under.in_order()
            wanted = self._experiment.wanted(under.cases[0].subject, seen)
            if wanted <= len(seen):
                del self._open[under.order]
                self._finished += len(under.cases)
                return [(case, seen) for case in under.cases]
            self._ask(under, wanted)
        return []

    def _ask(self, under: _Under[S], wanted: int) -> None:
        for number in range(under.asked, wanted):
            known = None if self._store is None else self._store.rows(under.cases[0].key, number)
            if known is None:
                heapq.heappush(self._tasks, (under.order, number))
                under.missing += 1
            else:
                under.rows[number] = known
                self._found += 1
        self._asked += wanted - under.asked
        under.asked = wanted

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(ExperimentProgress(self._finished, self._cases, self._found, self._run, self._asked))


__all__ = ["IN_FLIGHT", "Configuration", "Experiment", "ExperimentProgress", "Rows", "perform"]
