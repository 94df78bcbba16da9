"""Run verbs, put faults in their way, and judge what is left: every file as it was before or complete, and no other."""

import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from tests.faults.verbs import WritingVerb

START = [sys.executable, "-c", "from capplan.cli.process import run; run()"]
ROOT = str(Path(__file__).parents[2])
BEFORE = b"what was there before\n"
LONGEST_CPU_S, LONGEST_WAIT_S = 300, 1800.0
"""A verb that computes or waits for longer does not end; the wait is long because machines are busy."""
ENDED = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -9}


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    code: int
    out: bytes
    err: str

    @property
    def sentences(self) -> list[str]:
        """The lines of stderr without those that say that it takes long, or what is written already."""
        lines = self.err.splitlines()
        return [line for line in lines if not line.endswith(" ...") and not line.startswith("capplan: wrote ")]


@dataclass(frozen=True)
class Reference:
    """What a verb writes where nothing is in the way, and how long it takes."""

    files: Mapping[str, bytes]
    seconds: float


@dataclass
class Judged:
    """What a fault did: nothing of `wrong` if the verb survived it."""

    lost: list[str] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def survived(self) -> bool:
        """Whether nothing is lost, torn or otherwise wrong."""
        return not (self.lost or self.torn or self.wrong)


def started(
    command: str,
    folder: Path,
    cache: Path,
    first: Callable[[], Any] | None = None,
    start: Sequence[str] = START,
    **settings: Any,
) -> subprocess.Popen[bytes]:
    """Start a verb in a process group of its own; `first` is called in the new process."""

    def prepare() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (LONGEST_CPU_S, LONGEST_CPU_S))
        if first is not None:
            first()

    environment = {**os.environ, "CAPPLAN_CACHE_DIR": str(cache), "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": ROOT}
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [*start, *shlex.split(command)],
        cwd=folder,
        env=environment,
        start_new_session=True,
        preexec_fn=prepare,
        **{**streams, **settings},
    )


def ended(process: subprocess.Popen[bytes]) -> Ended:
    """Wait until all processes of a verb have ended; those that do not are killed, and the exit code is then -9."""
    try:
        out, err = process.communicate(timeout=LONGEST_WAIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        return Ended(process.returncode, out or b"", f"does not end\n{err.decode(errors='replace')}")
    return Ended(process.returncode, out or b"", err.decode(errors="replace"))


def reference(verb: WritingVerb, cache: Path) -> Reference:
    """Run a verb where nothing is in the way.

    Raises
    ------
    RuntimeError
        When it fails all the same, or leaves other files than its own.
    """
    with tempfile.TemporaryDirectory() as name:
        folder, began = Path(name), time.monotonic()
        end = ended(started(verb.command, folder, cache))
        seconds = time.monotonic() - began
        left = {path.name for path in folder.iterdir() if not (verb.resumes and path.match(verb.resumes))}
        if end.code != verb.code or left != set(verb.files):
            raise RuntimeError(f"{verb.command} ended with {end.code}, left {left} and said: {end.err}")
        return Reference({name: (folder / name).read_bytes() for name in verb.files}, seconds)


def judge(verb: WritingVerb, whole: Reference, folder: Path, end: Ended, codes: set[int], abandoned: bool) -> Judged:
    """Judge what is left in a folder that had all files before; `abandoned` allows unfinished files of a killed one."""
    found = Judged()
    for name in verb.files:
        path = folder / name
        content = path.read_bytes() if path.is_file() else None
        if content is None:
            found.lost.append(name)
        elif content != BEFORE and verb.same(content) != verb.same(whole.files[name]):
            found.torn.append(name)
        elif end.code == verb.code and content == BEFORE:
            found.lost.append(f"{name} of a run that ended with {end.code}")
    for path in folder.iterdir():
        known = path.name in verb.files or (verb.resumes and path.match(verb.resumes))
        if not known and not (abandoned and path.name.startswith(".capplan-")):
            found.wrong.append(f"leaves {path.name}")
    return complaints(end, codes, found)


def complaints(end: Ended, codes: set[int], found: Judged) -> Judged:
    """Add what is wrong with how a verb ended."""
    if end.code not in codes:
        found.wrong.append(f"ends with {end.code}: {end.err[-300:]}")
    if "Traceback" in end.err or "Exception ignored" in end.err:
        found.wrong.append(f"prints a traceback: {end.err[-300:]}")
    if end.code == 2 and len(end.sentences) != 1:
        found.wrong.append(f"is refused in {len(end.sentences)} sentences: {end.sentences[:3]}")
    return found


@contextmanager
def folder_with_files(verb: WritingVerb) -> Iterator[Path]:
    """Yield a folder in which all files of a verb are there already."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_before(verb, folder)
        yield folder


def write_before(verb: WritingVerb, folder: Path) -> None:
    for name in verb.files:
        (folder / name).write_bytes(BEFORE)


def signalled(number: signal.Signals, verb: WritingVerb, whole: Reference, cache: Path, random: Random) -> Judged:
    """Send a signal to the group at a random moment; afterwards the same command must complete the work."""
    with folder_with_files(verb) as folder:
        process = started(verb.command, folder, cache)
        span = (0.05, 1.0) if random.random() < 0.5 else (0.75, 1.0)  # files are written late
        with suppress(subprocess.TimeoutExpired):
            process.wait(random.uniform(*span) * whole.seconds)
        with suppress(ProcessLookupError):
            (os.killpg if number == signal.SIGKILL else os.kill)(process.pid, number)
        end = ended(process)
        codes = {verb.code, ENDED[number], -number}  # the last one while Python itself starts
        found = judge(verb, whole, folder, end, codes, abandoned=number == signal.SIGKILL)
        again = ended(started(verb.command, folder, cache))
        if again.code != verb.code:
            found.wrong.append(f"cannot be run again: {again.err[-300:]}")
        for name in verb.files:
            path = folder / name
            if not path.is_file() or verb.same(path.read_bytes()) != verb.same(whole.files[name]):
                found.torn.append(f"{name} of the next run")
        if left := [path.name for path in folder.iterdir() if path.name.startswith(".capplan-")]:
            found.wrong.append(f"leaves {left} for good")
        return found


def full_disk(verb: WritingVerb, whole: Reference, cache: Path, random: Random) -> Judged:
    """Run in a small tmpfs, or with a limit on the size of files where none can be mounted."""
    size = random.randrange(1, max(2, int(1.1 * sum(map(len, whole.files.values())))))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mounted = mount(folder, max(size, 16384))
        write_before(verb, folder)
        limit = None if mounted else partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size))
        try:
            end = ended(started(verb.command, folder, cache, first=limit))
            return judge(verb, whole, folder, end, {verb.code, 2}, abandoned=False)
        finally:
            if mounted:
                subprocess.run(["umount", folder], check=True)


def read_only(verb: WritingVerb, whole: Reference, cache: Path, _: Random) -> Judged:
    """Run in a folder that cannot be written."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mounted = mount(folder, 2**20)
        write_before(verb, folder)
        if mounted:
            subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        elif os.geteuid() != 0:
            folder.chmod(0o555)
        else:
            return Judged()  # root writes everywhere
        try:
            end = ended(started(verb.command, folder, cache))
            return judge(verb, whole, folder, end, {2}, abandoned=False)
        finally:
            if mounted:
                subprocess.run(["umount", folder], check=True)
            else:
                folder.chmod(0o755)


def mount(folder: Path, size: int) -> bool:
    """Mount a tmpfs of so many bytes; return whether that is allowed here."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    command = ["mount", "-t", "tmpfs", "-o", f"size={-(-size // 4096) * 4096}", "capplan", str(folder)]
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0


def two_at_once(verb: WritingVerb, whole: Reference, cache: Path, random: Random) -> Judged:
    """Run the same command twice at the same time, or nearly."""
    with folder_with_files(verb) as folder:
        first = started(verb.command, folder, cache)
        time.sleep(random.choice((0.0, 0.0, 0.3)) * whole.seconds)
        ends = [ended(process) for process in (first, started(verb.command, folder, cache))]
        found = judge(verb, whole, folder, min(ends, key=lambda end: end.code != verb.code), {verb.code}, False)
        for end in ends:
            complaints(end, {verb.code, 2}, found)
        return found


def special_target(verb: WritingVerb, whole: Reference, cache: Path, random: Random) -> Judged:
    """Put a pipe, a folder or a dangling link in the place of a file: it stays, and is named."""
    del whole
    with folder_with_files(verb) as folder:
        path = folder / random.choice(verb.files)
        path.unlink()
        made: Callable[[], Any] = random.choice(
            (
                partial(os.mkfifo, path),
                path.mkdir,
                partial(path.symlink_to, "gone"),
                partial(path.symlink_to, "/dev/null"),
            )
        )
        made()
        kind = path.lstat().st_mode
        end = ended(started(verb.command, folder, cache))
        found = complaints(end, {2}, Judged())
        if not os.path.lexists(path) or path.lstat().st_mode != kind:
            found.lost.append(path.name)
        return found


def closed_stdout(verb: WritingVerb | str, whole: Reference | None, cache: Path, random: Random) -> Judged:
    """Close stdout, or connect it to a full disk or to a reader that leaves."""
    command = verb if isinstance(verb, str) else verb.command
    usual = 0 if isinstance(verb, str) else verb.code
    with tempfile.TemporaryDirectory() as name:
        folder, how = Path(name), random.choice(("closed", "full", "gone"))
        if not isinstance(verb, str):
            write_before(verb, folder)
        if how == "closed":
            end = ended(started(command, folder, cache, stdout=None, first=partial(os.close, 1)))
        elif how == "full":
            with Path("/dev/full").open("wb") as full:
                end = ended(started(command, folder, cache, stdout=full))
        else:
            reader, writer = os.pipe()
            os.close(reader)
            end = ended(started(command, folder, cache, stdout=writer, close_fds=True))
            os.close(writer)
        codes = {"closed": {2}, "full": {2, usual}, "gone": {141, usual}}[how]
        if isinstance(verb, str) or whole is None:
            return complaints(end, codes, Judged())
        return judge(verb, whole, folder, end, codes, abandoned=False)


def damaged_cache(verb: WritingVerb, whole: Reference, cache: Path, random: Random) -> Judged:
    """Damage what an interrupted run keeps: the same command starts anew, or names the file."""
    del cache
    with folder_with_files(verb) as folder, tempfile.TemporaryDirectory() as own:
        kept_in, pattern = (Path(own), verb.cached) if verb.cached else (folder, verb.resumes)
        process = started(verb.command, folder, Path(own))
        with suppress(subprocess.TimeoutExpired):
            process.wait(random.uniform(0.6, 1.0) * whole.seconds)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        ended(process)
        for path in kept_in.glob(pattern):
            path.write_bytes(damaged(path.read_bytes(), random))
        write_before(verb, folder)
        end = ended(started(verb.command, folder, Path(own)))
        refused = end.code == 2  # before it writes, so what the killed one left stays until a run that does
        return judge(verb, whole, folder, end, {verb.code, 2}, abandoned=refused)


def no_cache(verb: WritingVerb, whole: Reference, cache: Path, random: Random) -> Judged:
    """Let the folder of the cache be one that cannot be made."""
    del random
    with folder_with_files(verb) as folder:
        (cache / "file").write_bytes(b"")
        end = ended(started(verb.command, folder, cache / "file" / "below"))
        return judge(verb, whole, folder, end, {verb.code}, abandoned=False)


def damaged(content: bytes, random: Random) -> bytes:
    """Return a content with bytes changed, cut off, or replaced by zeros."""
    kind = random.randrange(3)
    if kind == 0:
        return content[: random.randrange(len(content) + 1)]
    data, count = bytearray(content), random.choice((1, 20, 400))
    for _ in range(count if data else 0):
        data[random.randrange(len(data))] = 0 if kind == 1 else random.randrange(256)
    return bytes(data)


Fault = Callable[[WritingVerb, Reference, Path, Random], Judged]
FAULTS: Mapping[str, tuple[Fault, int]] = {
    "terminated (SIGTERM)": (partial(signalled, signal.SIGTERM), 3),
    "interrupted (SIGINT)": (partial(signalled, signal.SIGINT), 3),
    "killed (SIGKILL)": (partial(signalled, signal.SIGKILL), 4),
    "disk full": (full_disk, 3),
    "folder read-only": (read_only, 1),
    "two runs at once": (two_at_once, 1),
    "special file in the place": (special_target, 1),
    "stdout closed, full or gone": (closed_stdout, 2),
    "no cache": (no_cache, 1),
}
"""Faults of every verb that writes, with how many of each."""
CACHE_FAULTS = 8
"""Faults of what a verb keeps, for each that keeps something."""
