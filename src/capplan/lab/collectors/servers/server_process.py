"""A server of a collector: found on this machine, run in a folder of its own, and ended with the collector."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from capplan.lab import processes
from capplan.lab.collectors.measurement import load
from capplan.lab.processes import PATIENCE_S, Process, start_of
from capplan.models.errors import InputError, MissingError

LOOPBACK = "127.0.0.1"
_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/libexec")  # not on every user's path
# The shell ends its child when its own input ends, so also if the collector is killed.
_RUN = '"$@" </dev/null >>"$0" 2>&1 & echo $!; read word; kill $! 2>/dev/null; wait $!'
_START_S = 30.0
_ASK_EVERY_S = 0.02
_LAST_LINES = 3


def needed_program(names: Sequence[str], package: str) -> str:
    """Return the path of a program of Debian or of another distribution.

    Raises
    ------
    MissingError
        If there is none of these names.
    """
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_SYSTEM_FOLDERS))
    for name in names:
        if found := shutil.which(name, path=path):
            return found
    raise MissingError(
        f"{names[0]} is not installed: on Debian and Ubuntu, `apt-get install {package}` installs it; "
        "capplan starts a server of its own"
    )


def needed_module(module: str, package: str) -> None:
    """Check that a Python package is installed.

    Raises
    ------
    MissingError
        If it is not.
    """
    if find_spec(module) is None:
        raise MissingError(f"{package} is not installed: install the extra with `pip install 'capplan[lab]'`")


def existing(folders: Sequence[str]) -> str | None:
    """Return the first folder that exists; distributions put the same files into different ones."""
    return next((each for each in folders if Path(each).is_dir()), None)


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """Return a port of loopback that nothing uses now."""
    with socket.socket(socket.AF_INET, kind) as tried:
        tried.bind((LOOPBACK, 0))
        return int(tried.getsockname()[1])


@contextmanager
def own_folder(name: str) -> Iterator[Path]:
    """Make a folder for a server's files; it is deleted in the end."""
    with TemporaryDirectory(prefix=f"capplan-{name}-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextmanager
def running(command: Sequence[str], log: Path) -> Iterator[Process]:
    """Run a server in the background; it ends with the context, and with this process however that ends.

    Parameters
    ----------
    command : sequence of str
        The program, which stays in the foreground, and its arguments.
    log : Path
        The file that its output is added to.
    """
    with subprocess.Popen(  # noqa: S603  # a server of ours
        ["/bin/sh", "-c", _RUN, str(log), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as shell:
        if shell.stdin is None or shell.stdout is None:
            raise AssertionError("pipes were asked for")
        pid = int(shell.stdout.readline())
        process = Process(pid, start_of(pid) or 0)
        try:
            yield process
        finally:
            shell.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                shell.wait(PATIENCE_S)
            processes.kill(process)


def wait_until_ready(process: Process, log: Path, name: str, answers: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a server answers.

    Raises
    ------
    InputError
        If it ends before, or does not answer in time; the message has the last lines of its log.
    """
    import asyncio
    import time

    async def wait() -> bool:
        deadline = time.monotonic() + _START_S
        while process.alive and time.monotonic() < deadline:
            if await answers():
                return True
            await asyncio.sleep(_ASK_EVERY_S)
        return False

    if not load.run(wait()):
        what = "did not answer in time" if process.alive else "ended while it started"
        raise InputError(f"{name} {what}; the last lines of its log: {_last_lines(log)}")


def _last_lines(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []
    return " | ".join([line.strip() for line in lines if line.strip()][-_LAST_LINES:]) or "it is empty"
