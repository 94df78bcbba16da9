"""The state of the lab, a file in the user's cache: its configuration and every process that it started.

One lab runs at a time. Commands that change it hold a lock, which the system releases when they end.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from capplan.errors import InputError
from capplan.files import locked as locked_file
from capplan.files import replace_file, user_cache
from capplan.lab.layout import Layout
from capplan.lab.processes import Process
from capplan.models.language.construct import adapter

PROXY = "delay"
"""Name of the proxy among the processes; the others are nodes."""
NO_LAB = "no lab is running: start one with 'capplan lab up'"


@dataclass(frozen=True)
class State:
    """The recorded state of the lab.

    Attributes
    ----------
    layout : Layout
        What was asked for.
    rtt_s : float
        Round trip between data centres, in seconds.
    boot : str
        The start of the machine in which the processes run; after another one their numbers mean nothing.
    ready : bool
        Whether all nodes have been up together.
    processes : mapping of str to Process
        Those that were started and not stopped, by the names of nodes, and the proxy.
    version : int
        The version of the file.
    """

    layout: Layout
    rtt_s: float
    boot: str
    ready: bool = False
    processes: Mapping[str, Process] = field(default_factory=dict)
    version: Literal[1] = 1

    @property
    def alive(self) -> dict[str, Process]:
        """The processes that still run."""
        return {name: each for name, each in self.processes.items() if self.boot == boot() and each.alive}

    def with_process(self, name: str, process: Process) -> State:
        """Return the state with one more process."""
        return replace(self, processes={**self.processes, name: process})


def boot() -> str:
    """Return the id of this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def folder() -> Path:
    """Return the folder of labs."""
    return user_cache() / "lab"


def packages() -> Path:
    """Return the folder of downloaded packages, which outlive a lab."""
    return folder() / "packages"


def running() -> Path:
    """Return the folder of the running lab; `down` deletes it."""
    return folder() / "running"


def _state_file() -> Path:
    return running() / "state.json"


def read() -> State | None:
    """Return the state of the lab; None if there is none.

    Raises
    ------
    InputError
        If the file is not one of this version of capplan.
    """
    path = _state_file()
    try:
        found: State = adapter(State).validate_json(path.read_bytes(), strict=True)
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise InputError(
            f"{path} is not the state of a lab of this version of capplan: "
            "stop its processes with the version that started it, then delete its folder"
        ) from None
    return found


def needed() -> State:
    """Return the state of the lab; refuse if there is none.

    Raises
    ------
    InputError
        If there is none.
    """
    found = read()
    if found is None:
        raise InputError(NO_LAB)
    return found


def write(state: State) -> None:
    """Replace the state."""
    running().mkdir(parents=True, exist_ok=True)
    replace_file(_state_file(), json.dumps(asdict(state), indent=1))


def delete() -> None:
    """Delete a lab's files, its state last, so that an interrupted deletion can be repeated."""
    if not running().is_dir():
        return
    for each in sorted(running().iterdir()):
        if each != _state_file():
            shutil.rmtree(each) if each.is_dir() else each.unlink()
    shutil.rmtree(running())


@contextmanager
def locked() -> Iterator[None]:
    """Hold the lock of the lab.

    Raises
    ------
    InputError
        If another command has it.
    """
    folder().mkdir(parents=True, exist_ok=True)
    with (folder() / "lock").open("w", encoding="ascii") as file:
        if not locked_file(file.fileno()):
            raise InputError("another command changes the lab now: wait until it ends, or interrupt it")
        yield
