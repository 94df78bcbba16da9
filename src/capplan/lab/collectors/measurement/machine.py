"""The machine that measures, and the clock of its CPU: how far a reading may be off."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

from capplan.calibration.evidence.microbenchmarks import MicrobenchRow
from capplan.lab.processes import Process, cpu_s, start_of

_SPIN_S = 0.3  # in which a busy process is watched
_SPIN = f"import time\nend = time.monotonic() + {_SPIN_S}\nwhile time.monotonic() < end: pass"


@cache
def machine() -> str:
    """Return the processor, its cores that may be used, and the operating system, in words."""
    return f"{_processor()}, {cores()} cores, {_memory_gib():.0f} GiB, {platform.system()} {platform.release()}"


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def _processor() -> str:
    with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


@cache
def cpu_quantum_s() -> float:
    """Return the longest step of another process's CPU clock, in seconds: what a reading may lack for each busy core.

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
    # a step is also long when the watcher waits for a core: the middle of the steps is the clock's own
    return sorted(steps)[len(steps) // 2] if steps else 1.0 / os.sysconf("SC_CLK_TCK")


def cpu_error_s() -> float:
    """Return how far the difference of two readings of a process's CPU time may be off, in seconds."""
    return 2 * cores() * cpu_quantum_s()


def quantum_row(run_id: str) -> MicrobenchRow:
    """Return the step of the CPU clock as a row."""
    return MicrobenchRow(
        run_id=run_id,
        system="machine",
        version=platform.release(),
        host=machine(),
        component="cpu clock",
        operation="reading",
        quantity="step",
        statistic="p50",
        value=cpu_quantum_s(),
        unit="s",
        note=f"a difference of two readings is off by at most {cpu_error_s() * 1000:.3g} ms",
    )
