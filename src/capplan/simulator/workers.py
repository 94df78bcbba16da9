"""Workers that run tasks: this thread, several threads, several processes, or a Dask cluster."""

from __future__ import annotations

import asyncio
import logging
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

from capplan.errors import InputError, check_extra

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.synchronize import Event

    import distributed


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
    from concurrent.futures import ThreadPoolExecutor

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


LOCAL = "local"
SCHEMES = ("tcp", "tls")
PATIENCE_S = 10  # how long a cluster may take to answer, and to have its first worker
END_S = 1.0  # how long a local worker may take to end by itself before it is killed
LOGGERS = ("distributed", "distributed.client", "distributed.gc", "tornado", "tornado.application")


@contextmanager
def dask(address: str, count: int = 1) -> Iterator[Workers]:
    """Run tasks on a Dask cluster. Dask repeats the tasks of a worker that dies.

    Parameters
    ----------
    address : str
        `tcp://host:port` of a scheduler, or `local` for a cluster on this machine that ends with the block.
    count : int
        Number of processes of a local cluster. Another cluster has its own number of workers.

    Raises
    ------
    InputError
        When Dask is not installed, when the cluster cannot be reached or has no workers, when a worker has another
        version of capplan, when the cluster drops its tasks, or when a task kills one worker after another.
    """
    distributed = _distributed()
    with ExitStack() as stack:
        stack.enter_context(_quiet())
        cluster = stack.enter_context(_local_cluster(at_least_one(count))) if address == LOCAL else address
        client = stack.enter_context(_client(cluster))
        threads = _threads(client, cluster)
        try:
            yield Workers(_Pickled(client.get_executor(pure=False)), IN_FLIGHT * threads)
        except CancelledError:
            raise InputError(
                f"the Dask cluster {address!r} has dropped its tasks: check that its scheduler runs, then repeat the"
                " command"
            ) from None
        except distributed.KilledWorker as error:
            raise InputError(
                f"a task ended every Dask worker that ran it, the last one {error.last_worker.address}: check their"
                " memory and logs"
            ) from error


def _distributed() -> ModuleType:
    check_extra("dask", "distributed")
    import distributed

    return distributed


class _Pickled(Executor):
    """Hides a call from Dask, which interprets some arguments itself, and fails early if it cannot be loaded."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        return self._executor.submit(_call, pickle.dumps((function, args, kwargs)))


def _call(pickled: bytes) -> Any:
    function, args, kwargs = pickle.loads(pickled)  # noqa: S301  # who reaches the scheduler can run code on it anyway
    return function(*args, **kwargs)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's loggers: Dask repeats tasks of a lost worker, and raises real errors."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


@contextmanager
def _local_cluster(count: int) -> Iterator[str]:
    """Start single-threaded processes that end with the block or with this process; yield the address."""
    from distributed import LocalCluster

    with interrupts_held():
        cluster = LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # any port: None asks for the usual one and complains when it is taken
            memory_limit=0,  # what a run needs does not depend on how many run
            silence_logs=logging.CRITICAL,
        )
    try:
        yield cluster.scheduler_address
    finally:
        cluster.sync(_end, cluster)
        cluster.close()


async def _end(cluster: distributed.LocalCluster) -> None:
    """End the workers, even in the middle of a task."""
    closing = (worker.close(timeout=END_S) for worker in cluster.workers.values())
    await asyncio.gather(*closing, return_exceptions=True)  # a busy machine may take longer to remove a killed process


@contextmanager
def _client(address: str) -> Iterator[distributed.Client]:
    from distributed import Client

    if not _is_address(address):
        raise InputError(
            f"{address!r} is no Dask scheduler: write tcp://host:port, or {LOCAL!r} for this machine alone"
        )
    try:
        with ThreadPoolExecutor(1) as pool:  # the thread of a notebook has an event loop already
            pool.submit(asyncio.run, _check_answer(address)).result()
        client = Client(address, timeout=PATIENCE_S, set_as_default=False)
    except (OSError, ValueError) as error:
        why = " ".join(str(error).split()) or "it does not answer"
        raise InputError(
            f"the Dask scheduler {address!r} cannot be reached ({why}): check that it runs and that this machine may"
            " connect to it"
        ) from None
    with client:
        yield client


def _is_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in SCHEMES and bool(parts.hostname) and parts.port is not None
    except ValueError:
        return False


async def _check_answer(address: str) -> None:
    """Wait for an answer in Dask's protocol; Dask's own client would wait for a silent server forever."""
    from distributed import Security
    from distributed.comm.core import connect

    async with asyncio.timeout(PATIENCE_S):
        connection = await connect(address, PATIENCE_S, **Security().get_connection_args("client"))
        await connection.close()


def _threads(client: distributed.Client, address: str) -> int:
    """Wait for the first worker and check that all have this capplan; return the number of parallel tasks."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE_S)
    except TimeoutError:
        raise InputError(
            f"the Dask cluster {address!r} has no workers: start one with 'dask worker {address}'"
        ) from None
    ours = version("capplan")
    for worker, theirs in client.run(version, "capplan", on_error="return").items():
        if theirs != ours:
            has = f"capplan {theirs}" if isinstance(theirs, str) else "no capplan"
            raise InputError(f"the Dask worker {worker} has {has}: install 'capplan=={ours}' there, as it is here")
    return sum(client.nthreads().values())
