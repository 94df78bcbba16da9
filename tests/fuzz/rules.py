"""The rules of every input: one sentence, exit code 1 or 2, ten seconds, a gigabyte, no file outside its folder."""

import io
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from capplan.cli.main import main
from capplan.errors import InputError
from capplan.visible_text import visible

LONGEST_S, LONGEST_WAIT_S = 10.0, 600.0
"""Of computing, and of waiting too: that is long because machines are busy."""
MOST_BYTES = 2**30
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_PLACES = {
    "os.rename": (0, 1),
    "os.remove": (0,),
    "os.mkdir": (0,),
    "os.rmdir": (0,),
    "os.symlink": (1,),
    "os.link": (1,),
}
_NEVER = ("subprocess.Popen", "os.system", "os.exec", "socket.connect")


class HangError(BaseException):
    """An input took too long."""


@dataclass
class Broken:
    """Rules that an input broke."""

    rules: list[str] = field(default_factory=list)


class Watch:
    """Watches what this process does to files while it reads an input, by Python's audit events."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._on, self._found = f"{folder.resolve()}{os.sep}", False, list[str]()
        sys.addaudithook(self._seen)

    @contextmanager
    def watching(self) -> Iterator[list[str]]:
        """Yield the list of what is found in the block."""
        self._found, self._on = [], True
        try:
            yield self._found
        finally:
            self._on = False

    def _seen(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._on:
            return
        if event in _NEVER:
            self._found.append(event)
        elif event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
            mode, flags = arguments[1], arguments[2]
            if any(letter in (mode or "") for letter in "wax+") or (isinstance(flags, int) and flags & _WRITING):
                self._check(event, arguments[0])
        else:
            for place in _PLACES.get(event, ()):
                self._check(event, arguments[place])

    def _check(self, event: str, path: Any) -> None:
        name = os.path.realpath(os.fsdecode(path))
        if not name.startswith(self._folder) and name != os.devnull:
            self._found.append(f"{event} {name}")


def limit_memory() -> None:
    """Leave this process a gigabyte beside what it has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


@contextmanager
def time_limit() -> Iterator[None]:
    """Raise `HangError` in a block that computes for more than ten seconds, or waits for ten minutes."""

    def ring(*_: Any) -> None:
        raise HangError

    alarms = ((signal.SIGPROF, signal.ITIMER_PROF, LONGEST_S), (signal.SIGALRM, signal.ITIMER_REAL, LONGEST_WAIT_S))
    before = [signal.signal(number, ring) for number, _, _ in alarms]
    for _, timer, seconds in alarms:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(alarms, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def broken_by_reader(read: Callable[[Any], Any], value: Any, watch: Watch) -> str | None:
    """Return the rule that a reader breaks with a value; None if it reads it, or refuses it in one sentence."""
    with watch.watching() as seen:
        try:
            with time_limit():
                read(value)
        except InputError as error:
            return _of_sentence(str(error)) or _of_files(seen)
        except HangError:
            return "takes longer than 10 s"
        except MemoryError:
            return "takes more than 1 GB"
        except Exception as error:
            return f"raises {type(error).__name__}: {visible(str(error))[:200]}"
    return _of_files(seen)


def broken_by_command(arguments: list[str], watch: Watch) -> str | None:
    """Return the rule that a command line breaks; None if it is answered, or refused in one sentence."""
    out, err = io.StringIO(), io.StringIO()
    with watch.watching() as seen:
        try:
            with time_limit(), redirect_stdout(out), redirect_stderr(err):
                code = main(arguments)
        except HangError:
            return "takes longer than 10 s"
        except SystemExit as error:
            return f"exits with {error.code!r} by itself"
        except Exception as error:
            return f"raises {type(error).__name__}: {visible(str(error))[:200]}"
    if code not in (0, 1, 2):
        return f"ends with exit code {code}"
    lines = err.getvalue().splitlines()
    if any("memory is exhausted" in line for line in lines):
        return "takes more than 1 GB"
    if code == 2 and len(lines) != 1:
        return f"is refused in {len(lines)} lines: {lines[:3]}"
    if any(not line.startswith("capplan: ") or visible(line) != line or len(line) > 4000 for line in lines):
        return f"writes a line that is not shown as it is: {lines[0][:200]!r}"
    if visible(out.getvalue(), lines=True) != out.getvalue():
        return "writes to stdout what a terminal acts on"
    return _of_files(seen)


def _of_sentence(sentence: str) -> str | None:
    return None if sentence.strip() else "is refused without a word"


def _of_files(seen: list[str]) -> str | None:
    return f"touches {seen[0]}" if seen else None
