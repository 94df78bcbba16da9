"""Processes of a lab: recorded before they run, signalled only if they are the ones, gone after `stop`."""

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from capplan.lab import processes
from capplan.lab.processes import Process

FOREVER = ["tail", "-f", "/dev/null"]


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    recorded: list[Process] = []
    started = processes.start(FOREVER, tmp_path / "log", recorded.append)
    assert recorded == [started]
    yield started
    processes.kill(started)


def test_a_process_is_stopped(process: Process) -> None:
    assert process.alive
    assert processes.memory_bytes(process) > 0
    assert processes.cpu_s(process) >= 0

    processes.stop([process])

    assert processes.start_of(process.pid) is None
    assert not processes.send(process, signal.SIGTERM)


def test_a_process_that_ignores_the_request_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    stubborn = processes.start(["sh", "-c", "trap '' TERM; echo ready; tail -f /dev/null & wait"], log, lambda _: None)
    while not log.stat().st_size:
        os.sched_yield()
    children = Path(f"/proc/{stubborn.pid}/task/{stubborn.pid}/children").read_text(encoding="ascii").split()

    processes.stop([stubborn], patience_s=0.05)

    assert not stubborn.alive
    for child in map(int, children):
        os.kill(child, signal.SIGKILL)


def test_another_process_with_the_number_is_left_alone(process: Process) -> None:
    earlier = replace(process, started=process.started - 1)

    assert not earlier.alive
    assert not processes.send(earlier, signal.SIGKILL)
    processes.stop([earlier])
    assert process.alive


def test_nothing_runs_that_is_not_recorded(tmp_path: Path) -> None:
    """Who starts a process may be killed before its number is recorded: then the program never runs."""
    witness, started = tmp_path / "ran", list[Process]()

    def die(process: Process) -> None:
        started.append(process)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        processes.start(["touch", str(witness)], tmp_path / "log", die)
    os.waitpid(started[0].pid, 0)

    assert not started[0].alive
    assert not witness.exists()


def test_a_process_that_has_ended_is_not_alive() -> None:
    ended = subprocess.Popen(["true"], stdout=subprocess.DEVNULL)
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # it is there still, as a zombie

    assert processes.start_of(ended.pid) is None
    ended.wait()
    assert processes.start_of(ended.pid) is None
