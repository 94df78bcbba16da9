"""Tasks on a Dask cluster: one that runs already, or one of this machine's processes."""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from capplan.models.errors import InputError
from capplan.simulator.experiments.executors import Pooled, Task
from capplan.simulator.experiments.worker_processes import interrupts_held

try:
    import distributed
    from distributed.comm.core import connect
except ImportError:
    raise InputError("Dask is not installed: pip install 'capplan[dask]' brings it") from None

LOCAL = "local"
SCHEMES = ("tcp", "tls")
PATIENCE_S = 10  # how long a cluster may take to answer, and to have its first worker
AT_ONCE_S = 0.1  # how long a worker may take to end by itself when it is not wanted any more
LOGGERS = ("distributed", "distributed.client", "distributed.gc", "tornado", "tornado.application")


class DaskExecutor(Pooled):
    """Does tasks on a Dask cluster; see `executors.dask`."""

    losses = (distributed.KilledWorker,)

    def __init__(self, address: str, workers: int) -> None:
        super().__init__(workers)
        self._address = address

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(_quiet())
            address = self._address
            if address == LOCAL:
                address = stack.enter_context(_local_cluster(self.workers))
            self._client = stack.enter_context(_client(address))
            self.workers = _workers(self._client, address)
            self._leave = stack.pop_all()
        return self

    def start(self, task: Task) -> Any:
        """Start the task; Dask itself starts it again when its worker is lost, a few times."""
        return self._client.submit(_do, pickle.dumps((task.work, task.arguments)), pure=False)

    def finished(self) -> tuple[Any, Any]:
        """Wait until any task has ended."""
        try:
            return super().finished()
        except CancelledError:  # by none of ours: those are forgotten before
            raise InputError(
                f"the Dask cluster {self._address!r} has dropped its tasks: see whether its scheduler runs, then do"
                " the same again"
            ) from None

    def abandon(self) -> None:
        """Forget all tasks."""
        abandoned, self._tasks = self._tasks, {}
        if abandoned:
            self._client.cancel([task.future for task in abandoned.values()])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.abandon()
        finally:
            self._leave.__exit__(kind, error, trace)


def _do(pickled: bytes) -> Any:
    """Do a task; a module that the worker does not have is an error of the task, not the end of its connection."""
    work, arguments = pickle.loads(pickled)  # noqa: S301  # whoever reaches the scheduler can run code on it anyway
    return work(*arguments)


@contextmanager
def _quiet() -> Iterator[None]:
    """Let Dask log nothing: its notes on lost workers are none of the terminal's, and what is an error is raised."""
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
def _local_cluster(workers: int) -> Iterator[str]:
    """Start a cluster of processes of one thread each, which end with this process; yield its scheduler's address."""
    with interrupts_held():
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # any port: None asks for the usual one and complains when it is taken
            memory_limit=0,  # what a run needs does not depend on how many run
            silence_logs=logging.CRITICAL,
        )
    try:
        yield cluster.scheduler_address
    except BaseException:
        cluster.sync(_end_at_once, cluster)
        raise
    finally:
        cluster.close()


async def _end_at_once(cluster: distributed.LocalCluster) -> None:
    await asyncio.gather(*(each.close(timeout=AT_ONCE_S) for each in cluster.workers.values()))


@contextmanager
def _client(address: str) -> Iterator[distributed.Client]:
    parts = urlsplit(address)
    if parts.scheme not in SCHEMES or not parts.hostname or not _has_port(address):
        raise InputError(
            f"{address!r} is no Dask scheduler: write tcp://host:port, or {LOCAL!r} for this machine alone"
        )
    try:
        with ThreadPoolExecutor(1) as apart:  # a notebook's thread has a loop of its own
            apart.submit(asyncio.run, _answer(address)).result()
        client = distributed.Client(address, timeout=PATIENCE_S, set_as_default=False)
    except (OSError, ValueError) as error:
        why = " ".join(str(error).split()) or "it does not answer"
        raise InputError(
            f"the Dask scheduler {address!r} cannot be reached ({why}): see whether it runs and whether this"
            " machine may talk to it"
        ) from None
    with client:
        yield client


async def _answer(address: str) -> None:
    """Wait until something at the address talks as Dask does; Dask's own client would wait for that for ever."""
    security = distributed.Security().get_connection_args("client")
    async with asyncio.timeout(PATIENCE_S):
        talk = await connect(address, PATIENCE_S, **security)
        await talk.close()


def _has_port(address: str) -> bool:
    try:
        return urlsplit(address).port is not None
    except ValueError:
        return False


def _workers(client: distributed.Client, address: str) -> int:
    """Wait for the first worker, see that all have this capplan; return how many tasks they can do at a time."""
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
