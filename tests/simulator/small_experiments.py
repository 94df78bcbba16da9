"""An experiment that takes no time, tells what has been run, and can be stopped inside a chosen replication."""

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa

from capplan.simulator.experiments import executors
from capplan.simulator.experiments.experiment import Configuration, Experiment, Rows, perform
from capplan.simulator.experiments.store import open_store

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
CASES = 6
FIRST, MOST = 2, 7
SCHEMA = pa.schema({"value": pa.float64(), "counts": pa.list_(pa.int64()), "what": pa.string()})


@dataclass(frozen=True)
class Subject:
    """A case: `log` is told what is run; the reader of the pipe `trap` learns who waits there for its end."""

    name: str
    log: str = ""
    trap: str = ""


def run(subject: Subject, replication: int) -> Rows:
    """Return one to three rows that differ from case to case."""
    if subject.log:
        with Path(subject.log).open("a") as log:
            log.write(f"{subject.name} {replication}\n")
    if subject.trap and replication == 1:
        _fall_into(subject.trap)
    noise = blake2b(f"{subject.name} {replication}".encode()).digest()
    return [
        {"value": noise[row] / 7.0, "counts": list(noise[row : row + noise[row] % 3]), "what": subject.name}
        for row in range(1 + noise[9] % 3)
    ]


def _fall_into(trap: str) -> None:
    """Wait to be killed, once."""
    try:
        Path(f"{trap}.once").touch(exist_ok=False)
    except FileExistsError:
        return
    with Path(trap).open("w") as pipe:
        pipe.write(f"{os.getpid()}\n")
    threading.Event().wait(PATIENCE_S)
    raise AssertionError("nobody has killed this worker")


def wanted(_: Subject, seen: Sequence[Rows]) -> int:
    """Want two, and one more as long as the sum of their values is small."""
    if not seen:
        return FIRST
    total = sum(row["value"] for rows in seen for row in rows)
    return min(MOST, len(seen) + 1) if total < 90 else len(seen)


EXPERIMENT = Experiment(run, wanted, SCHEMA)


def cases(log: Path | None = None, trap: Path | None = None, trapped: str = "case 2") -> list[Configuration[Subject]]:
    names = [f"case {number}" for number in range(CASES)]
    return [
        Configuration(name, Subject(name, str(log or ""), str(trap) if trap and name == trapped else ""))
        for name in names
    ]


def plain_results() -> dict[str, list[Rows]]:
    """Return what the experiment gives, by the plainest loop."""
    results = {}
    for case in cases():
        seen: list[Rows] = []
        while (total := wanted(case.subject, seen)) > len(seen):
            seen += [run(case.subject, number) for number in range(len(seen), total)]
        results[case.key] = seen
    return results


def results(
    executor: executors.Executor, folder: Path, log: Path | None = None, trap: Path | None = None
) -> dict[str, list[Rows]]:
    """Perform the experiment with a store that is compacted at the end."""
    with executor, open_store(folder, SCHEMA) as store:
        found = {case.key: seen for case, seen in perform(EXPERIMENT, cases(log, trap), executor, store=store)}
        store.compact()
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != ".lock"}


class Trap:
    """The reader's end of a trap."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def caught(self) -> int:
        """Wait until a worker is in the trap; return its process."""
        ready, _, _ = select.select([self._pipe], [], [], PATIENCE_S)
        assert ready, "no worker has come to the trap"
        return int(os.read(self._pipe, 100))

    def close(self) -> None:
        os.close(self._pipe)


@contextmanager
def killer(trap: Path) -> Iterator[None]:
    """Kill the worker that falls into the trap."""
    reader = Trap(trap)

    def kill() -> None:
        os.kill(reader.caught(), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        reader.close()


@dataclass(frozen=True)
class Apart:
    """The experiment in a process group of its own, which tests kill and interrupt; a worker of it is in the trap."""

    process: subprocess.Popen[str]

    def interrupt(self) -> tuple[int, str]:
        """Interrupt every process as a terminal does; return the exit code and what has been said."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self._ended()

    def kill(self) -> tuple[int, str]:
        """Kill the parent alone; return the exit code and what its workers have said."""
        self.process.kill()
        return self._ended()

    def _ended(self) -> tuple[int, str]:
        """Wait until all have ended, before the trap opens: each holds the pipe of messages open."""
        _, said = self.process.communicate(timeout=PATIENCE_S / 2)
        return self.process.returncode, said


@contextmanager
def apart(executor: str, folder: Path, log: Path, trap: Path) -> Iterator[Apart]:
    """Start `results` by an executor of that name in another process; yield it when a worker is in the trap."""
    reader = Trap(trap)
    script = f"from {__name__} import main; main({executor!r}, {str(folder)!r}, {str(log)!r}, {str(trap)!r})"
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        reader.caught()
        yield Apart(process)
    finally:
        with suppress(ProcessLookupError):  # all have ended
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
        reader.close()


def main(executor: str, *paths: str) -> None:
    try:
        results(by_name(executor), *map(Path, paths))
    except KeyboardInterrupt:
        sys.exit(130)


def by_name(executor: str) -> executors.Executor:
    match executor:
        case "in process":
            return executors.in_process()
        case "threads":
            return executors.threads(2)
        case "processes":
            return executors.processes(2)
    return executors.dask("local", 2)
