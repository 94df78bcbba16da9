"""Independent replications of one network, several at a time, with the same results however many that is.

The compiled engine releases the interpreter, so its replications run in threads of one process; those of the SimPy
engine run in processes of their own. Results come in the order of their numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from capplan.models.errors import InputError
from capplan.models.language.network import Network
from capplan.simulator.engine import Engine, Progress, Sink, check_engine, simulate
from capplan.simulator.experiments import executors
from capplan.simulator.results.histogram import IntArray
from capplan.simulator.results.run import Run
from capplan.simulator.results.trace import Requests

T = TypeVar("T")
WriteRequests = Callable[[Requests, int, IntArray], None]


@dataclass(frozen=True)
class Plan:
    """What is run.

    Attributes
    ----------
    network
        The network.
    duration_s, warmup_s
        How long traffic comes, and how much of the beginning is left out of the statistics, in seconds.
    seed
        The seed of all replications.
    replications
        How many; they are numbered from 0.
    engine
        `compiled` or `simpy`.
    """

    network: Network
    duration_s: float
    warmup_s: float
    seed: int
    replications: int = 1
    engine: Engine = "compiled"


class _StoppedError(Exception):
    """The run is not wanted any more."""


@dataclass
class _Course:
    """How far the replications have come together; told by several threads."""

    tell: Progress | None
    write: WriteRequests | None
    stopped: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    states: dict[int, tuple[float, int]] = field(default_factory=dict)

    def of(self, number: int) -> Progress:
        """Return what the replication of this number calls."""

        def come(simulated_s: float, requests: int) -> None:
            if self.stopped.is_set():
                raise _StoppedError
            with self.lock:
                self.states[number] = simulated_s, requests
                if self.tell is not None:
                    self.tell(sum(s for s, _ in self.states.values()), sum(n for _, n in self.states.values()))

        return come

    def sink(self, number: int) -> Sink | None:
        """Return what takes the single requests of the replication of this number."""
        write = self.write
        return None if write is None else lambda requests, numbers: write(requests, number, numbers)


@overload
def replicate(
    plan: Plan,
    keep: None = None,
    *,
    numbers: range | None = None,
    processes: int = 1,
    progress: Progress | None = None,
    write: WriteRequests | None = None,
) -> list[Run]: ...


@overload
def replicate(
    plan: Plan,
    keep: Callable[[Run], T],
    *,
    numbers: range | None = None,
    processes: int = 1,
    progress: Progress | None = None,
    write: WriteRequests | None = None,
) -> list[T]: ...


def replicate(
    plan: Plan,
    keep: Callable[[Run], Any] | None = None,
    *,
    numbers: range | None = None,
    processes: int = 1,
    progress: Progress | None = None,
    write: WriteRequests | None = None,
) -> list[Any]:
    """Run replications of a plan, and return them in the order of their numbers.

    Parameters
    ----------
    plan
        What is run.
    keep
        What is kept of a run, which may be much smaller; picklable for the SimPy engine. Left out, all of it.
    numbers
        Which of the plan's replications are run; left out, all.
    processes
        How many replications run at a time, each on a processor of its own; results do not depend on it.
    progress
        Told how many seconds have been simulated and how many requests have started, in these replications together.
        It is called by several threads, one at a time.
    write
        Given single requests, the number of their replication, and their numbers in it. Then replications run one
        after another, so that requests need not wait in memory and always come in the same order.

    Raises
    ------
    InputError
        When the plan or `processes` make no sense.
    """
    check_engine(plan.engine)
    if plan.replications < 1 or processes < 1:
        raise InputError(f"{plan.replications} replications by {processes} processes: there must be at least one each")
    wanted = range(plan.replications) if numbers is None else numbers
    workers = 1 if write is not None else min(processes, len(wanted))
    return _runs(plan, keep, wanted, workers, _Course(progress, write))


def _runs(plan: Plan, keep: Callable[[Run], Any] | None, numbers: range, workers: int, course: _Course) -> list[Any]:
    """Run all; replications in this process tell how far they are, those of other processes when they are there."""
    here = workers == 1 or plan.engine == "compiled"
    found: dict[int, Any] = {}
    with _executor(workers, here) as executor:
        try:
            for number in numbers:
                within = (course.of(number), course.sink(number)) if here else ()
                executor.submit(number, _one, plan, keep, number, *within)
            while len(found) < len(numbers):
                number, (kept, started) = executor.finished()
                found[number] = kept
                if not here:
                    course.of(number)(plan.duration_s, started)
        except BaseException:
            course.stopped.set()  # else leaving would wait until all threads have come to their end
            raise
    return [found[number] for number in numbers]


def _executor(workers: int, here: bool) -> executors.Executor:
    if workers == 1:
        return executors.in_process()
    return executors.threads(workers) if here else executors.processes(workers)


def _one(
    plan: Plan,
    keep: Callable[[Run], Any] | None,
    number: int,
    progress: Progress | None = None,
    sink: Sink | None = None,
) -> tuple[Any, int]:
    """Run a replication; return what is kept of it, and how many requests it had."""
    run = simulate(
        plan.network,
        plan.duration_s,
        seed=plan.seed,
        replication=number,
        warmup_s=plan.warmup_s,
        engine=plan.engine,
        progress=progress,
        sink=sink,
    )
    return run if keep is None else keep(run), run.report().started
