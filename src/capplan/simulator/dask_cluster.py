"""Workers of a Dask cluster: of one that runs elsewhere, or of one on this machine that ends with its work."""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

from capplan.errors import InputError, check_extra
from capplan.simulator.workers import IN_FLIGHT, Workers, at_least_one, interrupts_held

if TYPE_CHECKING:
    import distributed

P = ParamSpec("P")
R = TypeVar("R")
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
