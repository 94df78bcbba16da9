"""Batches of the SimPy engine: requests that gather for a step that is done once for all of them."""

from __future__ import annotations

from collections.abc import Callable

from capplan.simulator.reference.events import Clockwork, Dropped, Happening, Kind, Moment, Work, step_rank
from capplan.simulator.reference.requests import Attempt

Inner = Callable[[Attempt], Happening]


class RequestBatch(list[tuple[Attempt, Moment]]):
    """The members in order, each with the moment at which it goes on."""


class Gathering:
    """One batch step of a flow, and the batch that is open there, if any."""

    def __init__(self, clockwork: Clockwork, size: int, longest: int, inner: Inner, number: int) -> None:
        self.clockwork, self.size, self.longest, self.inner = clockwork, size, longest, inner
        self.due_rank, self.done_rank = step_rank(Kind.DELAY, number), step_rank(Kind.RESUME, number)
        self.open: RequestBatch | None = None

    def join(self, attempt: Attempt) -> Moment:
        """Become a member; the moment returned is the end of the step, which this one may start."""
        done = Moment(self.clockwork)
        batch = self.open if self.open is not None else self._opened(attempt)
        batch.append((attempt, done))
        if len(batch) == self.size:
            self._start(batch)
        return done

    def _opened(self, attempt: Attempt) -> RequestBatch:
        """Open a batch, which `attempt` is the first member of."""
        self.open = batch = RequestBatch()
        if self.size > 1:
            due = Moment(self.clockwork, lambda _: self._start(batch))
            due.at(self.clockwork.tick + self.longest, attempt.rank + self.due_rank)
        return batch

    def _start(self, batch: RequestBatch) -> None:
        """Do the step for a batch, unless that was started before."""
        if batch is self.open:
            self.open = None
            Work(self.clockwork, self._do(batch))

    def _do(self, batch: RequestBatch) -> Happening:
        dropped = False
        try:
            yield from self.inner(batch[0][0])
        except Dropped:
            dropped = True
        for member, done in batch:
            done.now(member.rank + self.done_rank, Dropped() if dropped else None)
