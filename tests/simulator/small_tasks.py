"""Tasks for tests, in a module that a worker process imports quickly."""

import os
import signal
import threading

from capplan.errors import InputError

GATES: dict[str, threading.Event] = {}


def half(number: int) -> float:
    if number % 2:
        raise InputError(f"{number} is odd")
    return number / 2


def process() -> int:
    return os.getpid()


def end_worker() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def wait_for_ever() -> None:
    threading.Event().wait()


def wait_for_gate() -> None:
    GATES["gate"].wait(30)
