"""Tasks of tests, in a module that a worker process imports quickly."""

import os
import signal
import threading
from pathlib import Path

from capplan.models.errors import InputError

GATES: dict[str, threading.Event] = {}


def half(number: int) -> float:
    if number % 2:
        raise InputError(f"{number} is odd")
    return number / 2


def process() -> int:
    return os.getpid()


def end_worker() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def end_worker_once(marker: str) -> str:
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return "done"
    end_worker()
    raise AssertionError


def wait_for_ever() -> None:
    threading.Event().wait()


def wait_for_gate() -> None:
    GATES["gate"].wait(30)
