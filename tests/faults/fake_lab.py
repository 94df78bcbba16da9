"""Run `capplan` with a lab whose nodes only listen: `python -m tests.faults.fake_lab lab up`.

The ports are others than those of a real lab, which may run beside it.
"""

import signal
import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from capplan.lab import cluster, layout, packages, state

NATIVE_PORT, INTERNODE_PORT, ECHO_PORT = 19042, 17100, 17117


def run() -> None:
    """Run the command line of this process."""
    from capplan.cli.process import run as run_process

    replaced: dict[tuple[ModuleType, str], Any] = {
        (cluster, "NATIVE_PORT"): NATIVE_PORT,
        (cluster, "ECHO_PORT"): ECHO_PORT,
        (layout, "_INTERNODE_PORT"): INTERNODE_PORT,
        (packages, "java"): lambda *_: _java(),
        (packages, "jars"): lambda *_: (),
        (cluster, "create_keyspace"): lambda _, check: check(),
    }
    for (module, name), value in replaced.items():
        setattr(module, name, value)
    run_process()


def _java() -> Path:
    """Return a program that takes the command line of a node."""
    path = state.folder() / "java"
    root = Path(__file__).parents[2]
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(root)!r})\n"
        "from tests.faults.fake_lab import listen\nlisten(sys.argv)\n",
        encoding="utf-8",
    )
    path.chmod(0o755)
    return path


def listen(command: list[str]) -> None:
    """Listen where a node does, until a signal comes."""
    word = next(each for each in command if each.startswith("-Dcassandra.config="))
    lines = Path(word.partition("file://")[2]).read_text(encoding="utf-8").splitlines()
    address = next(line.split(":", 1)[1].strip(" '\",") for line in lines if "rpc_address" in line)
    with socket.create_server((address, NATIVE_PORT)):
        signal.pause()


if __name__ == "__main__":
    run()
