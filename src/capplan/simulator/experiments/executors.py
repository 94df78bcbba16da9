"""Where tasks are done: here, in threads, in processes of their own, or on a Dask cluster; all by one interface.

Give an executor tasks with `submit` and take what has ended with `finished`, in whatever order that happens. An
executor is a context manager: it starts its workers when it is entered; when it is left they are gone, promptly if an
exception (Ctrl-C) is the reason. A worker that is killed costs time only: its task is done again.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Self

from capplan.models.errors import InputError

MOST_LOSSES = 3  # times in a row that workers may be lost before any task ends
TICK_S = 1.0  # how long one wait lasts: Windows can interrupt none, so that Ctrl-C works between two


@dataclass
class Task:
    """What an executor has been asked to do.

    Attributes
    ----------
    tag
        What the caller knows the task by.
    work, arguments
        The function and what it is called with; picklable unless the executor works in this process.
    future
        Its last start.
    generation
        How often workers had been lost before that.
    """

    tag: Any
    work: Callable[..., Any]
    arguments: tuple[Any, ...]
    future: Any = None
    generation: int = 0


class Executor(ABC):
    """Does tasks.

    Attributes
    ----------
    workers
        How many tasks are done at a time.
    """

    workers: int = 1

    @abstractmethod
    def submit(self, tag: Any, work: Callable[..., Any], *arguments: Any) -> None:
        """Ask for `work(*arguments)`; `finished` gives its result with the tag."""

    @abstractmethod
    def finished(self) -> tuple[Any, Any]:
        """Wait until any task has ended; return its tag and its result, or raise what it raised.

        Raises
        ------
        LookupError
            When there is no task.
        InputError
            When workers are lost again and again.
        """

    @abstractmethod
    def abandon(self) -> None:
        """Forget all tasks: what has not begun never will, and results of the others are lost."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()


def in_process() -> Executor:
    """Do each task when its result is asked for, in the order of asking."""
    return _InProcess()


def threads(workers: int) -> Executor:
    """Do tasks in threads of this process: for work that releases the interpreter.

    A thread cannot be stopped: leaving waits for the tasks that have begun.
    """
    return _Threads(_at_least_one(workers))


def processes(workers: int) -> Executor:
    """Do tasks in as many processes; they end when this one does, even if it is killed."""
    return _Processes(_at_least_one(workers))


def dask(address: str, workers: int = 1) -> Executor:
    """Do tasks on a Dask cluster.

    Parameters
    ----------
    address
        `tcp://host:port` of a scheduler, or `local` for a cluster of this machine that lives as long as the executor.
    workers
        How many processes a local cluster has. Another cluster's own number counts, as it is when it is reached.

    Raises
    ------
    InputError
        When Dask is not installed; on entering, when the cluster cannot be reached or has no workers.
    """
    from capplan.simulator.experiments.dask_executor import DaskExecutor  # only who uses Dask loads it

    return DaskExecutor(address, _at_least_one(workers))


def _at_least_one(workers: int) -> int:
    if workers < 1:
        raise InputError(f"{workers} workers: there must be at least one")
    return workers


class _InProcess(Executor):
    def __init__(self) -> None:
        self._tasks: deque[Task] = deque()

    def submit(self, tag: Any, work: Callable[..., Any], *arguments: Any) -> None:
        self._tasks.append(Task(tag, work, arguments))

    def finished(self) -> tuple[Any, Any]:
        if not self._tasks:
            raise LookupError("no task has been submitted")
        task = self._tasks.popleft()
        return task.tag, task.work(*task.arguments)

    def abandon(self) -> None:
        self._tasks.clear()


class Pooled(Executor):
    """What executors over futures have in common; subclasses say how a task starts and what a lost worker looks like.

    Attributes
    ----------
    losses
        The exceptions by which a future tells that its worker is lost.
    """

    losses: tuple[type[BaseException], ...] = ()

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._numbers = itertools.count()
        self._tasks: dict[int, Task] = {}
        self._ended: SimpleQueue[tuple[int, Any]] = SimpleQueue()
        self._generation = 0
        self._lost_in_a_row = 0

    @abstractmethod
    def start(self, task: Task) -> Any:
        """Start the task; return a future with `add_done_callback`, `cancel` and `result`."""

    def submit(self, tag: Any, work: Callable[..., Any], *arguments: Any) -> None:
        """Start the task as soon as a worker is free."""
        number = next(self._numbers)
        self._tasks[number] = Task(tag, work, arguments)
        self._start(number)

    def finished(self) -> tuple[Any, Any]:
        """Wait until any task has ended."""
        while self._tasks:
            number, ended = self._next()
            task = self._tasks.get(number)
            if task is None or task.future is not ended:
                continue  # abandoned, or started again meanwhile
            try:
                result = ended.result()
            except self.losses as loss:
                self._start_again(number, loss)
                continue
            except BaseException:
                del self._tasks[number]
                raise
            del self._tasks[number]
            self._lost_in_a_row = 0
            return task.tag, result
        raise LookupError("no task has been submitted")

    def abandon(self) -> None:
        """Forget all tasks."""
        abandoned, self._tasks = self._tasks, {}
        for task in abandoned.values():
            task.future.cancel()

    def _start(self, number: int) -> None:
        task = self._tasks[number]
        task.generation, task.future = self._generation, self.start(task)
        task.future.add_done_callback(lambda ended: self._ended.put((number, ended)))

    def _next(self) -> tuple[int, Any]:
        while True:
            try:
                return self._ended.get(timeout=TICK_S)
            except Empty:
                continue

    def _start_again(self, number: int, loss: BaseException) -> None:
        """Start a task again whose worker is lost; the first that tells of a loss counts it for all."""
        if self._tasks[number].generation == self._generation:
            self._generation += 1
            self._lost_in_a_row += 1
            if self._lost_in_a_row > MOST_LOSSES:
                raise InputError(
                    f"workers were lost {self._lost_in_a_row} times in a row before any task ended: they are killed"
                    " from outside or the memory is short; use fewer of them"
                ) from loss
        self._start(number)


class _Threads(Pooled):
    def __enter__(self) -> Self:
        from concurrent.futures import ThreadPoolExecutor

        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="capplan")
        return self

    def start(self, task: Task) -> Any:
        return self._pool.submit(task.work, *task.arguments)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()
        self._pool.shutdown()


class _Processes(Pooled):
    """Threads that wait for one worker process each."""

    def __enter__(self) -> Self:
        from concurrent.futures import ThreadPoolExecutor

        from capplan.simulator.experiments.worker_processes import Crew, WorkerLostError

        self.losses = (WorkerLostError,)
        self._new_crew = Crew
        self._crew = Crew()
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="capplan")
        return self

    def start(self, task: Task) -> Any:
        from capplan.simulator.experiments.worker_processes import interrupts_held

        with interrupts_held():  # this may start a thread, and that one processes
            return self._pool.submit(self._crew.do, task.work, task.arguments)

    def abandon(self) -> None:
        """Forget all tasks; workers end in the middle of theirs, others are started when there is more to do."""
        if self._tasks:
            super().abandon()
            self._crew.end()
            self._crew = self._new_crew()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()
        self._crew.end()
        self._pool.shutdown()
