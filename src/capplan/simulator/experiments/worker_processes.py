"""Processes that do tasks, each over a pipe of its own.

Why not `concurrent.futures.ProcessPoolExecutor`: it waits for ever when a worker is killed that it has started while it
was waiting, and a worker that is killed while it writes a result leaves it reading. Here, what happens to one worker
is seen at the end of its own pipe, and by nobody else.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any


class WorkerLostError(Exception):
    """A worker has ended before its task."""


@dataclass(frozen=True)
class _Worker:
    process: SpawnProcess
    connection: Connection


class Crew:
    """Worker processes that are started when all others are at work; used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._ended = False

    def do(self, work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Return what `work(*arguments)` returns in a worker, or raise what it raises there.

        Raises
        ------
        WorkerLostError
            When the worker ends before.
        """
        asked = pickle.dumps((work, arguments))
        worker = self._take()
        try:
            worker.connection.send_bytes(asked)
            answer = worker.connection.recv_bytes()
        except (EOFError, OSError):
            raise WorkerLostError(f"process {worker.process.pid}") from None
        with self._lock:
            self._idle.append(worker)
        result, error = pickle.loads(answer)  # noqa: S301  # written by a process of our own
        if error is not None:
            raise error
        return result

    def end(self) -> None:
        """End all workers, whatever they do; threads that wait for one get to know, and none is started any more."""
        with self._lock:
            self._ended = True
            for worker in self._workers:
                worker.process.kill()
        for worker in self._workers:
            worker.process.join()

    def _take(self) -> _Worker:
        with self._lock:
            if self._ended:
                raise WorkerLostError("all have been told to end")
            while self._idle:
                worker = self._idle.pop()
                if worker.process.is_alive():
                    return worker
            self._workers.append(_started())
            return self._workers[-1]


def _started() -> _Worker:
    spawn = multiprocessing.get_context("spawn")  # a fork would copy the locks of other threads
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()  # else the pipe would stay open when the worker has ended
    return _Worker(process, ours)


def _serve(connection: Connection) -> None:
    """Do what comes through the pipe until it is closed; leave interrupts to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):
        while True:
            connection.send_bytes(_answer(connection.recv_bytes()))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)  # in the middle of whatever another thread does


def _answer(asked: bytes) -> bytes:
    """Return the result and the error of a task, one of them None."""
    try:
        work, arguments = pickle.loads(asked)  # noqa: S301  # written by a process of our own
        return pickle.dumps((work(*arguments), None))
    except Exception as error:
        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        try:
            answer = pickle.dumps((None, error))
            pickle.loads(answer)  # noqa: S301  # our own; some errors can be written and not read
        except Exception:
            return pickle.dumps((None, RuntimeError("".join(traceback.format_exception(error)))))
        return answer


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back until the end: threads and processes that are started meanwhile never see it.

    Windows cannot; there a worker that is interrupted while it starts says so.
    """
    if sys.platform == "win32":
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # before: when a process starts it, it lets interrupts through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
