"""Processes that a lab starts: known by number and start time, so that no other process is ever signalled."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from capplan.models.errors import InputError

_STOPPED = frozenset("ZX")  # states of a process that has ended
# A process waits until its number is recorded. If who starts it is killed before, it ends by itself.
_WAIT_FOR_WORD = 'read word && exec "$@" </dev/null'
PATIENCE_S = 15.0
"""How long a process may take to stop before it is killed."""


@dataclass(frozen=True)
class Process:
    """A process of this machine.

    Attributes
    ----------
    pid : int
        Its number, which the system gives to another process later.
    started : int
        When it started, in clock ticks since the machine started: with the number it names one process.
    """

    pid: int
    started: int

    @property
    def alive(self) -> bool:
        """Whether it is this process that runs under the number now."""
        return start_of(self.pid) == self.started


def start_of(pid: int) -> int | None:
    """Return when a process started, in clock ticks since the machine started; None if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    cells = stat.rpartition(")")[2].split()  # the name before may hold blanks and brackets
    return None if cells[0] in _STOPPED else int(cells[19])


def start(
    command: list[str], log: Path, record: Callable[[Process], None], environment: Mapping[str, str] | None = None
) -> Process:
    """Start a process in the background.

    Parameters
    ----------
    command : list of str
        The program and its arguments.
    log : Path
        The file that its output is added to.
    record : function
        Records the process; the program runs only after that.
    environment : mapping of str to str, optional
        Variables for it beside those of this process.
    """
    with log.open("ab") as output:
        started = subprocess.Popen(  # noqa: S603  # a program of ours
            ["/bin/sh", "-c", _WAIT_FOR_WORD, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
    started.returncode = 0  # it outlives this process: no warning when its handle is forgotten
    word = started.stdin
    if word is None:
        raise AssertionError("a pipe was asked for")
    with word:
        process = Process(started.pid, start_of(started.pid) or 0)
        record(process)
        with suppress(BrokenPipeError):
            word.write(b"go\n")
    return process


def send(process: Process, number: signal.Signals) -> bool:
    """Signal a process; return False if it has ended, whatever runs under its number now."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        if not process.alive:  # the handle was of the process that we know, or of a later one
            return False
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, number)
        return True
    finally:
        os.close(handle)


def stop(processes: Iterable[Process], patience_s: float = PATIENCE_S) -> None:
    """Stop processes at once: ask them first, and kill those that do not stop."""
    asked = [each for each in processes if send(each, signal.SIGTERM)]
    left = _wait(asked, patience_s)
    for each in left:
        send(each, signal.SIGKILL)
    _wait(left, patience_s)


def kill(process: Process) -> None:
    """Kill a process without a chance to clean up, and wait for its end."""
    if send(process, signal.SIGKILL):
        _wait([process], PATIENCE_S)


def _wait(processes: list[Process], patience_s: float) -> list[Process]:
    """Wait until processes have ended; return those that have not."""
    deadline = time.monotonic() + patience_s
    left = []
    for each in processes:
        try:
            handle = os.pidfd_open(each.pid)
        except OSError:
            continue
        try:
            running = each.alive and not select.select([handle], [], [], max(0.0, deadline - time.monotonic()))[0]
        finally:
            os.close(handle)
        with suppress(ChildProcessError):
            os.waitpid(each.pid, os.WNOHANG)
        if running and each.alive:
            left.append(each)
    return left


def cpu_s(process: Process) -> float:
    """Return the CPU time that a process has used, in seconds, user and system together.

    Raises
    ------
    InputError
        If it has ended.
    """
    try:
        return time.clock_gettime((~process.pid << 3) | 2)  # CPUCLOCK_SCHED of clock_getcpuclockid(3)
    except OSError:
        raise InputError(f"process {process.pid} ended while its CPU was measured: see 'capplan lab status'") from None


def memory_bytes(process: Process) -> int:
    """Return the memory that a process holds (resident set)."""
    with suppress(OSError, ValueError, IndexError):
        pages = Path(f"/proc/{process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")
    return 0
