"""Where requests are answered: a few processes, each request with a time limit, and a queue with an end."""

from __future__ import annotations

import asyncio
import multiprocessing
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from pebble import ProcessExpired, ProcessPool

from capplan.models.errors import InputError
from capplan.planner.serve.request import FittedFiles

GIB = 1024**3


@dataclass(frozen=True)
class Limits:
    """What the server takes on.

    Attributes
    ----------
    processes : int
        Requests that are answered at the same time.
    queue : int
        Requests that wait beside them; more are refused.
    time_s : float
        Time of a request, in seconds, from when a process takes it.
    body_bytes : int
        Size of the body of a request.
    memory_gib : int
        Address space of a process, where the platform limits it.
    """

    processes: int = 2
    queue: int = 8
    time_s: float = 30.0
    body_bytes: int = 10**6
    memory_gib: int = 4

    def __post_init__(self) -> None:
        if self.processes < 1 or self.queue < 0 or self.time_s <= 0 or self.body_bytes < 1:
            raise InputError(
                f"{self.processes} processes, a queue of {self.queue}, {self.time_s:g} s and {self.body_bytes} B "
                "are no limits: give at least 1 process, and a time and a size above 0"
            )


class RefusedRequestError(Exception):
    """A request that gets no answer: an HTTP status, and a sentence that says why."""

    def __init__(self, status: int, sentence: str, retry_s: int | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.retry_s = status, sentence, retry_s


class Work(Protocol):
    """Answers requests elsewhere."""

    async def run(self, verb: str, body: Any) -> str:
        """Return the answer to the body of a request as JSON."""

    def close(self) -> None:
        """End what runs."""


class Processes:
    """Worker processes that end in the middle of a request when its time is over."""

    def __init__(self, limits: Limits, files: FittedFiles = MappingProxyType({})) -> None:
        self._limits, self._files = limits, dict(files)
        spawn = multiprocessing.get_context("spawn")  # a fork would copy the locks of other threads
        self._pool = ProcessPool(limits.processes, context=spawn, initializer=_begin, initargs=(limits.memory_gib,))

    async def run(self, verb: str, body: Any) -> str:
        """Return the answer to the body of a request as JSON.

        Raises
        ------
        InputError
            When the body breaks a rule.
        RefusedRequestError
            When the time is over, or the process or the server ends before its request.
        """
        from capplan.planner.serve.answer import answer

        future = self._pool.schedule(answer, args=(verb, body, self._files), timeout=self._limits.time_s)
        try:
            return await asyncio.wrap_future(future)
        except TimeoutError:
            raise RefusedRequestError(
                504,
                f"the answer takes longer than {self._limits.time_s:g} s, the limit of this server: ask for less, such "
                'as "engine": "analytic", a smaller range or a shorter duration',
            ) from None
        except asyncio.CancelledError:
            raise RefusedRequestError(503, "the server ends: ask again when it is back") from None
        except (ProcessExpired, MemoryError):
            raise RefusedRequestError(
                503, "the process that worked on the answer ended, probably for want of memory: ask for less"
            ) from None

    def close(self) -> None:
        """End the processes, in the middle of a request too."""
        self._pool.stop()  # type: ignore[no-untyped-call]  # pebble types its pools in part
        self._pool.join()


class Queue:
    """Counts requests that wait or are answered, and refuses those that are too many."""

    def __init__(self, work: Work, limits: Limits) -> None:
        self._work, self._limits, self._count = work, limits, 0

    async def run(self, verb: str, body: Any) -> str:
        """Return the answer to the body of a request as JSON.

        Raises
        ------
        RefusedRequestError
            When too many requests wait.
        """
        most = self._limits.processes + self._limits.queue
        if self._count >= most:
            raise RefusedRequestError(
                429,
                f"{most} requests wait or are answered already: try again later",
                max(1, round(self._limits.time_s)),
            )
        self._count += 1
        try:
            return await self._work.run(verb, body)
        finally:
            self._count -= 1


def _begin(memory_gib: int) -> None:
    """Prepare a worker process: limit its memory, and import what answers need."""
    with suppress(ImportError, ValueError, OSError):  # Windows and macOS have no such limit
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_gib * GIB, memory_gib * GIB))
    import capplan.planner.serve.answer  # noqa: F401  # so that the first request does not wait for it
