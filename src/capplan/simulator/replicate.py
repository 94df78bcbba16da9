"""Independent replications of one network, several at a time, with the same results however many that is.

The compiled engine releases the interpreter, so its replications run in threads of one process; those of the SimPy
engine run in processes of their own. Results come in the order of their numbers.
"""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field

from capplan.models.errors import InputError
from capplan.models.network import Network
from capplan.simulator.engine import Engine, Progress, Sink, check_engine, simulate
from capplan.simulator.histogram import IntArray
from capplan.simulator.replications import Replications, merged
from capplan.simulator.run import Requests, Run

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


def replicate(
    plan: Plan, *, processes: int = 1, progress: Progress | None = None, write: WriteRequests | None = None
) -> Replications:
    """Run the replications of a plan and take them together.

    Parameters
    ----------
    plan
        What is run.
    processes
        How many replications run at a time, each on a processor of its own; results do not depend on it.
    progress
        Told how many seconds have been simulated and how many requests have started, in all replications together.
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
    workers = 1 if write is not None else min(processes, plan.replications)
    return merged(_runs(plan, workers, _Course(progress, write)))


def _runs(plan: Plan, workers: int, course: _Course) -> list[Run]:
    numbers = range(plan.replications)
    if workers == 1:
        return [_one(plan, number, course.of(number), course.sink(number)) for number in numbers]
    if plan.engine == "compiled":
        with _threads(workers, course) as pool:
            return _results([pool.submit(_one, plan, number, course.of(number)) for number in numbers])
    with _processes(workers) as pool:
        return _results([_submitted(pool, plan, number, course) for number in numbers])


def _one(plan: Plan, number: int, progress: Progress | None = None, sink: Sink | None = None) -> Run:
    return simulate(
        plan.network,
        plan.duration_s,
        seed=plan.seed,
        replication=number,
        warmup_s=plan.warmup_s,
        engine=plan.engine,
        progress=progress,
        sink=sink,
    )


def _submitted(pool: Executor, plan: Plan, number: int, course: _Course) -> Future[Run]:
    future = pool.submit(_one, plan, number)
    come = course.of(number)

    def done(ended: Future[Run]) -> None:
        if not ended.cancelled() and ended.exception() is None:
            started = sum(report.started for report in ended.result().reports.values())
            come(plan.duration_s, started)

    future.add_done_callback(done)
    return future


def _results(futures: list[Future[Run]]) -> list[Run]:
    """Wait for all, or for the first that fails."""
    ended, _ = wait(futures, return_when=FIRST_EXCEPTION)
    for future in ended:
        future.result()
    return [future.result() for future in futures]


@contextmanager
def _threads(workers: int, course: _Course) -> Iterator[Executor]:
    with ThreadPoolExecutor(workers, thread_name_prefix="replication") as pool:
        try:
            yield pool
        except BaseException:
            course.stopped.set()  # else leaving would wait until all have come to their end
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _processes(workers: int) -> Iterator[Executor]:
    before = set(multiprocessing.active_children())
    spawn = multiprocessing.get_context("spawn")  # a fork would copy the locks of other threads
    with ProcessPoolExecutor(workers, spawn, initializer=_leave_interrupts_to_parent) as pool:
        try:
            yield pool
        except BaseException:
            for each in set(multiprocessing.active_children()) - before:
                each.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _leave_interrupts_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
