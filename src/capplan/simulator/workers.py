"""Workers that run tasks: this thread, several threads, several processes, or a Dask cluster."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from capplan.errors import InputError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.synchronize import Event


P = ParamSpec("P")
R = TypeVar("R")
TagT = TypeVar("TagT")
TICK_S = 1.0  # longest single wait: Windows cannot interrupt a wait, so Ctrl-C works between two
IN_FLIGHT = 2  # tasks submitted per worker: one runs, one waits beside it


class StoppedError(Exception):
    """The result of this task is no longer wanted."""


@dataclass(frozen=True)
class Workers:
    """An executor that has started.

    Attributes
    ----------
    executor : concurrent.futures.Executor
        Runs the tasks.
    in_flight : int
        How many tasks to submit at a time: more would only wait.
    stopped : threading.Event
        Set when results are no longer wanted. A thread cannot be killed, so long tasks in threads check it.
    """

    executor: Executor
    in_flight: int
    stopped: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Raise `StoppedError` if results are no longer wanted."""
        if self.stopped.is_set():
            raise StoppedError


def run_tasks(
    workers: Workers, next_task: Callable[[], tuple[TagT, Callable[[], R]] | None]
) -> Iterator[tuple[TagT, R]]:
    """Run tasks until none are left.

    Parameters
    ----------
    workers : Workers
        Where the tasks run.
    next_task : callable
        Returns a tag and a function without arguments (picklable for processes), or None while there is no task. It is
        asked again after every result.

    Yields
    ------
    tuple
        The tag and the result of a task, in the order of completion.
    """
    tags: dict[Future[R], TagT] = {}
    while True:
        while len(tags) < workers.in_flight and (task := next_task()) is not None:
            tags[workers.executor.submit(task[1])] = task[0]
        if not tags:
            return
        completed, _ = wait(tags, TICK_S, FIRST_COMPLETED)
        for future in completed:
            yield tags.pop(future), future.result()


def run_all(
    workers: Workers | None, functions: Iterable[Callable[[], R]], completed: Callable[[R], None] = lambda _: None
) -> list[R]:
    """Run functions (in this thread without workers); return their results in the same order.

    `completed` is given each as it comes.
    """
    if workers is None:
        with in_process() as here:
            return run_all(here, functions, completed)
    results: dict[int, R] = {}
    for place, result in run_tasks(workers, partial(next, enumerate(functions), None)):
        results[place] = result
        completed(result)
    return [results[place] for place in range(len(results))]


@contextmanager
def in_process() -> Iterator[Workers]:
    """Run each task in this thread as soon as it is submitted."""
    yield Workers(_Inline(), 1)


@contextmanager
def threads(count: int) -> Iterator[Workers]:
    """Run tasks in threads of this process, for work that releases the interpreter.

    Parameters
    ----------
    count : int
        Number of threads.

    Raises
    ------
    InputError
        When `count` is below 1.
    """
    pool = ThreadPoolExecutor(at_least_one(count), thread_name_prefix="capplan")
    workers = Workers(pool, IN_FLIGHT * count)
    try:
        yield workers
    finally:
        workers.stopped.set()
        pool.shutdown(cancel_futures=True)


@contextmanager
def processes(count: int) -> Iterator[Workers]:
    """Run tasks in processes, which end with the block (even in the middle of a task) and with this process.

    Parameters
    ----------
    count : int
        Number of processes.

    Raises
    ------
    InputError
        When `count` is below 1, or when a process ends before its task.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    spawn = multiprocessing.get_context("spawn")  # a fork would copy the locks of other threads
    parent, ours = spawn.Pipe(duplex=False)
    all_started = spawn.Event()
    pool = ProcessPoolExecutor(at_least_one(count), spawn, _begin_worker, (parent, all_started))
    try:
        with interrupts_held():
            for _ in range(count + 1):  # the last one makes the pool watch all processes; it watches none that it adds
                pool.submit(int)
            all_started.set()
        yield Workers(pool, IN_FLIGHT * count)
    except BrokenProcessPool as error:
        raise InputError(
            "a worker process ended before its task: it was killed, or memory ran out; use fewer processes"
        ) from error
    finally:
        ours.close()  # ends the processes
        pool.shutdown(cancel_futures=True)
        parent.close()


def at_least_one(count: int) -> int:
    """Return a number of workers, checked."""
    if count < 1:
        raise InputError(f"{count} workers: there must be at least one")
    return count


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Delay Ctrl-C until after the block: threads and processes that start inside never receive it.

    Windows cannot do this. There, a worker that Ctrl-C interrupts while it starts prints a traceback.
    """
    if sys.platform == "win32":
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # starting it unblocks SIGINT, so start it before
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Inline(Executor):
    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        future = Future[R]()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def _begin_worker(parent: Connection, all_started: Event) -> None:
    """Prepare a worker process: leave Ctrl-C to the parent, end with it, and wait until all workers have started."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    all_started.wait()


def _end_with(parent: Connection) -> None:
    """End this process immediately when the parent closes its end of the pipe or dies."""
    import os

    with suppress(EOFError, OSError):
        parent.recv_bytes()
    os._exit(1)
