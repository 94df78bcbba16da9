"""What a request waits for in the SimPy engine: joins of branches, and latches that count signals."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.simulator.reference.events import Clockwork, Dropped, Happening, Moment


class Join:
    """One fork in progress: how many branches are still needed, and how many more may be dropped."""

    __slots__ = ("needed", "rank", "spare", "waiting")

    def __init__(self, needed: int, branches: int, rank: int) -> None:
        self.needed, self.spare, self.rank = needed, branches - needed, rank
        self.waiting: Moment | None = None

    def finished(self) -> None:
        """Count a branch that has done its work."""
        self.needed -= 1
        if self.needed == 0 and self.waiting is not None:
            self.waiting.now(self.rank)

    def dropped(self) -> None:
        """Count a branch that was dropped; the join fails when too few are left."""
        self.spare -= 1
        if self.spare == -1 and self.needed > 0 and self.waiting is not None:
            self.waiting.now(self.rank, Dropped())

    def wait(self, clockwork: Clockwork) -> Happening:
        """Wait until enough branches have finished, if they have not yet."""
        if self.needed > 0:
            if self.spare < 0:
                raise Dropped
            self.waiting = Moment(clockwork)
            yield self.waiting


class OpenLatch:
    """One latch in progress: signals still missing, and the branches below it that may yet send some.

    `number` is that of its step in the flow, which is how branches and signals know it.
    """

    __slots__ = ("missing", "needed", "number", "outer", "rank", "waiting", "working")

    def __init__(self, outer: OpenLatch | None, number: int, missing: dict[str, int], needed: int, rank: int) -> None:
        self.outer, self.number, self.missing, self.needed, self.rank = outer, number, missing, needed, rank
        self.working = 0
        self.waiting: Moment | None = None

    def signal(self, group: str) -> None:
        """Count one for `group`; late signals change nothing."""
        self.missing[group] -= 1
        if self.missing[group] == 0:
            self.needed -= 1
            if self.needed == 0 and self.waiting is not None:
                self.waiting.now(self.rank)

    def branch_ended(self) -> None:
        """Count a branch below that has ended; with the last one gone, a latch that is not full never will be."""
        self.working -= 1
        if self.working == 0 and self.needed > 0 and self.waiting is not None:
            self.waiting.now(self.rank, Dropped())

    def wait(self, clockwork: Clockwork) -> Happening:
        """Wait until enough groups are full, if they are not yet."""
        if self.needed > 0:
            if self.working == 0:
                raise Dropped
            self.waiting = Moment(clockwork)
            yield self.waiting


def these(latch: OpenLatch | None, numbers: tuple[int, ...]) -> Iterator[OpenLatch]:
    """Yield those latches around a step, of which `latch` is the innermost, that have these numbers."""
    while latch is not None and numbers:
        if latch.number in numbers:
            yield latch
        latch = latch.outer
