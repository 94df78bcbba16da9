"""Processes of a lab, identified by number and start time so that no other is ever signalled; facts on the machine."""

from __future__ import annotations

import os
import platform
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from capplan.errors import InputError

USABLE_CORES = frozenset(os.sched_getaffinity(0))  # before the generator leaves all but one
_STOPPED = frozenset("ZX")  # states of a process that has ended
# A process waits until its number is recorded; if its starter is killed before that, it ends by itself.
_WAIT_FOR_WORD = 'read word && exec "$@" </dev/null'
PATIENCE_S = 15.0
"""How long a process may take to stop before it is killed."""
_SPIN_S = 0.3  # in which a busy process is watched
_SPIN = f"import time\nend = time.monotonic() + {_SPIN_S}\nwhile time.monotonic() < end: pass"


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
        """Whether this process still runs under its number."""
        return start_of(self.pid) == self.started


def start_of(pid: int) -> int | None:
    """Return a process's start time in clock ticks since boot; None if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    cells = stat.rpartition(")")[2].split()  # the name before it may contain blanks and brackets
    return None if cells[0] in _STOPPED else int(cells[19])


def start(
    command: list[str],
    log: Path,
    record: Callable[[Process], None],
    environment: Mapping[str, str] | None = None,
    on_cores: Collection[int] = (),
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
    on_cores : collection of int
        The only cores that it may use; those of this process if none are given.
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
    if on_cores:
        os.sched_setaffinity(started.pid, on_cores)
    with word:
        process = Process(started.pid, start_of(started.pid) or 0)
        record(process)
        with suppress(BrokenPipeError):
            word.write(b"go\n")
    return process


def send(process: Process, number: signal.Signals) -> bool:
    """Signal a process; return False if it has ended, even if another one reuses its number."""
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
    """Stop processes together: ask them first, then kill those that still run."""
    asked = [each for each in processes if send(each, signal.SIGTERM)]
    left = _wait(asked, patience_s)
    for each in left:
        send(each, signal.SIGKILL)
    _wait(left, patience_s)


def kill(process: Process) -> None:
    """Kill a process without any cleanup, and wait for its end."""
    if send(process, signal.SIGKILL):
        _wait([process], PATIENCE_S)


def _wait(processes: list[Process], patience_s: float) -> list[Process]:
    """Wait until processes have ended; return those that still run."""
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


def connects(address: str, port: int) -> bool:
    """Whether a process accepts connections at an address."""
    with suppress(OSError), socket.create_connection((address, port), timeout=1.0):
        return True
    return False


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


def _threads(process: Process) -> Iterator[Path]:
    return Path(f"/proc/{process.pid}/task").glob("*")


def compiler_s(process: Process) -> float:
    """Return the CPU time with which Java has compiled hot code, in seconds; 0 for other programs."""
    found = 0
    for thread in _threads(process):
        with suppress(OSError):  # it has ended meanwhile
            if "CompilerThre" in (thread / "comm").read_text(encoding="utf-8", errors="replace"):
                found += int((thread / "schedstat").read_text(encoding="ascii").split()[0])
    return found / 1e9


def move(process: Process, where: Collection[int]) -> None:
    """Let all threads of a process run on some cores only, those too that begin meanwhile."""
    moved, left = set[str](), {each.name for each in _threads(process)}
    while left:
        for name in left:
            with suppress(OSError):  # it has ended meanwhile
                os.sched_setaffinity(int(name), where)
        moved |= left
        left = {each.name for each in _threads(process)} - moved


def memory_bytes(process: Process) -> int:
    """Return the memory that a process holds (resident set)."""
    with suppress(OSError, ValueError, IndexError):
        pages = Path(f"/proc/{process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")
    return 0


@cache
def machine() -> str:
    """Return the processor, the number of usable cores, and the operating system, in words."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{_processor()}, {cores()} cores, {memory_gib:.0f} GiB, {platform.system()} {platform.release()}"


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def generator_core() -> int | None:
    """Return the core that a load generator has for itself; None on a machine with one core."""
    usable = sorted(USABLE_CORES)
    return usable[-1] if len(usable) > 1 else None


def node_cores() -> frozenset[int]:
    """Return the cores of a lab's nodes: all but the load generator's."""
    return USABLE_CORES - {generator_core()} or USABLE_CORES


def _processor() -> str:
    with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


@cache
def cpu_quantum_s() -> float:
    """Return the longest step of another process's CPU clock, in seconds: the possible lag of a reading per busy core.

    A busy process is watched for some tenths of a second. The kernel brings the clock of a process up to date at its
    own ticks only.
    """
    busy = subprocess.Popen([sys.executable, "-c", _SPIN])  # noqa: S603  # a program of ours
    process = Process(busy.pid, start_of(busy.pid) or 0)
    steps, last, deadline = [], cpu_s(process), time.monotonic() + _SPIN_S
    while time.monotonic() < deadline and process.alive:
        now = cpu_s(process)
        if now > last:
            steps.append(now - last)
            last = now
        time.sleep(1e-5)
    busy.wait()
    # a step is also long if the watcher waits for a core, so take the middle one
    return sorted(steps)[len(steps) // 2] if steps else 1.0 / os.sysconf("SC_CLK_TCK")


def cpu_error_s() -> float:
    """Return the largest error of a difference between two CPU time readings, in seconds."""
    return 2 * cores() * cpu_quantum_s()
