"""An instant experiment that logs its runs, and can fail in a chosen replication."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path

from tests.simulator.small_tasks import end_worker

from capplan.simulator.dask_cluster import dask
from capplan.simulator.experiment import Configuration, Experiment, Rows, open_store, perform
from capplan.simulator.workers import Workers, in_process, processes, threads

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0  # a machine may be busy; this is waited for only by a test that fails
CONFIGURATIONS = 6
FIRST, MOST = 2, 7
WORKERS: dict[str, Callable[[], AbstractContextManager[Workers]]] = {
    "in process": in_process,
    "threads": partial(threads, 2),
    "processes": partial(processes, 2),
    "dask": partial(dask, "local", 2),
}


@dataclass(frozen=True)
class Subject:
    """What a configuration runs: `log` is a file that lists runs, `accident` is a key of `ACCIDENTS`."""

    name: str
    log: str = ""
    accident: str = ""


def end_parent() -> None:
    os.kill(os.getpgrp(), signal.SIGKILL)  # of `in_another_process`: the leader of its group
    threading.Event().wait()


def interrupt_all() -> None:
    """Do as a terminal does at Ctrl-C."""
    os.killpg(0, signal.SIGINT)


def interrupt_and_wait() -> None:
    interrupt_all()
    threading.Event().wait()


ACCIDENTS = {each.__name__: each for each in (end_worker, end_parent, interrupt_all, interrupt_and_wait)}


def run(subject: Subject, replication: int) -> Rows:
    """Return one to three rows that differ from configuration to configuration."""
    if subject.log:
        with Path(subject.log).open("a") as log:
            log.write(f"{subject.name} {replication}\n")
        if subject.accident and (subject.name, replication) == ("2", 1):
            _once(subject)
    noise = blake2b(f"{subject.name} {replication}".encode()).digest()
    return [
        {"value": noise[row] / 7.0, "counts": list(noise[row : row + noise[row] % 3]), "what": subject.name}
        for row in range(1 + noise[9] % 3)
    ]


def _once(subject: Subject) -> None:
    try:
        Path(f"{subject.log}.accident").touch(exist_ok=False)
    except FileExistsError:
        return
    ACCIDENTS[subject.accident]()


def wanted(_: Subject, seen: Sequence[Rows]) -> int:
    """Want two, and one more as long as the sum of their values is small."""
    if not seen:
        return FIRST
    total = sum(row["value"] for rows in seen for row in rows)
    return min(MOST, len(seen) + 1) if total < 90 else len(seen)


EXPERIMENT = Experiment(run, wanted)


def configurations(log: Path | None = None, accident: str = "") -> list[Configuration[Subject]]:
    return [Configuration(name, Subject(name, str(log or ""), accident)) for name in map(str, range(CONFIGURATIONS))]


def plain_results() -> dict[str, list[Rows]]:
    """Return what the experiment gives, by the plainest loop."""
    found = {}
    for each in configurations():
        seen: list[Rows] = []
        while (total := wanted(each.subject, seen)) > len(seen):
            seen += [run(each.subject, number) for number in range(len(seen), total)]
        found[each.key] = seen
    return found


def results(workers: str, folder: Path, accident: str = "") -> dict[str, list[Rows]]:
    """Perform the experiment, with its store and its log in a folder."""
    with WORKERS[workers]() as started, open_store(folder / "store") as store:
        chosen = configurations(folder / "log", accident)
        return {each.key: seen for each, seen in perform(EXPERIMENT, chosen, started, store=store)}


def in_another_process(
    workers: str, folder: Path, accident: str, *, ignore_interrupts: bool = False
) -> tuple[int, str]:
    """Perform the experiment in a process group of its own; return its exit code and what it has written to stderr.

    This waits until all processes of the group have closed stderr, so it fails when one is left over.
    """
    handler = "SIG_IGN" if ignore_interrupts else "SIG_DFL"  # whatever these tests have inherited
    script = (
        f"import os, signal, sys; signal.signal(signal.SIGINT, signal.{handler});"
        "os.execv(sys.executable, [sys.executable, '-c', sys.argv[1]])"
    )
    program = f"from {__name__} import main; main({workers!r}, {str(folder)!r}, {accident!r})"
    with subprocess.Popen(
        [sys.executable, "-c", script, program], cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            _, errors = process.communicate(timeout=PATIENCE_S)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, errors


def main(workers: str, folder: str, accident: str) -> None:
    try:
        results(workers, Path(folder), accident)
    except KeyboardInterrupt:
        sys.exit(130)
