"""Run the commands of `commands.txt` and compare what they answer with `answers/`, digit by digit.

A code change that must not change any answer is checked by `just frozen`; it exits with 1 on any difference. Where a
change of answers is meant, `just frozen --write` stores the new ones: review their diff like code.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ANSWERS = HERE / "answers"
SECONDS = HERE / "cpu_seconds.tsv"
LINKED = ("docs", "tests", "notebooks")
TIMEOUT_S = 300.0
LONGEST_TEXT = 60_000
"""Characters of a stream or file that an answer holds; longer ones are a hash and a length."""
LONGEST_DIFF = 30
"""Lines of a difference that are printed."""

_LINE = re.compile(r"(?P<name>[a-z0-9-]+): (?P<command>.+)")
_WRITES = re.compile(r"(?:-o|--out|>) ([\w.]+\.\w+)")
_SHA256 = re.compile(r"\b[0-9a-f]{64}\b")
_RESUMES = re.compile(r"\.(runs|stages)\b")  # what an interrupted command goes on from: it differs with the code
_PORT = re.compile(r"(?<=http://127\.0\.0\.1:)\d+")


class Answer(NamedTuple):
    """What a command answered, as text, and the CPU seconds of its processes."""

    text: str
    cpu_s: float


def commands() -> dict[str, str]:
    """Return the frozen commands by name, in their order.

    Raises
    ------
    ValueError
        If a line of the list has no name, or the name of another.
    """
    found: dict[str, str] = {}
    for line in (HERE / "commands.txt").read_text("utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None or match["name"] in found:
            raise ValueError(f"commands.txt: not a new name, a colon and a command: {line}")
        found[match["name"]] = match["command"]
    return found


def needed(names: Sequence[str], listed: dict[str, str]) -> set[str]:
    """Return some commands, and those before them that write the files they read."""
    found = set(names)
    for name in reversed(listed):
        written = set(_WRITES.findall(listed[name]))
        words = {word for each in found - {name} for word in listed[each].split()}
        if written & words:
            found.add(name)
    return found


def ran(command: str, folder: Path) -> Answer:
    """Run a command line in a folder, and return its exit code, its streams and the files that it wrote."""
    before, spent = _files(folder), _cpu_of_children_s()
    process = subprocess.Popen(
        ["/bin/bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=_environment(folder),
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=TIMEOUT_S)
        code = str(process.returncode)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        code = f"none after {TIMEOUT_S:g} s"
    progress = b" ..."
    said = b"".join(line for line in err.splitlines(keepends=True) if not line.rstrip().endswith(progress))
    after = _files(folder)
    parts = [f"exit code: {code}", *_part("stdout", out, folder), *_part("stderr", said, folder)]
    for name in sorted(after):
        if after[name] != before.get(name):
            parts += _part(name, (folder / name).read_bytes(), folder)
    return Answer("\n".join(["$ " + command, *parts, ""]), _cpu_of_children_s() - spent)


def _environment(folder: Path) -> dict[str, str]:
    """Return an environment in which nothing of the user or the terminal changes an answer."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CAPPLAN_", "LC_"))}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    ours = {
        "PATH": path,
        "COLUMNS": "80",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "OPENBLAS_NUM_THREADS": "1",
        "CAPPLAN_CACHE_DIR": str(folder / ".cache"),
    }
    return kept | ours


def _cpu_of_children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of the files in a folder; not those behind links, of the cache or to resume from."""
    found = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if path.is_file() and name.parts[0] not in {*LINKED, ".cache"} and not _RESUMES.search(path.name):
            found[str(name)] = (path.stat().st_size, path.stat().st_mtime_ns)
    return found


def _part(name: str, content: bytes, folder: Path) -> list[str]:
    """Return the lines of one stream or file, or its hash if it is long or no text."""
    if not content:
        return [f"--- {name}: empty"]
    try:
        text = normalised(content.decode("utf-8"), folder)
    except UnicodeDecodeError:
        return [f"--- {name}: {len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}"]
    if len(text) > LONGEST_TEXT:
        digest = hashlib.sha256(text.encode()).hexdigest()
        return [f"--- {name}: {len(text)} characters, SHA-256 {digest}"]
    return [f"--- {name}", *("\n".join(_readable(text)).splitlines())]


def _readable(text: str) -> list[str]:
    """Return the lines of a text without blanks at their ends, which editors and hooks remove."""
    return [line.rstrip() + ("|" if line != line.rstrip() else "") for line in text.splitlines()]


def normalised(text: str, folder: Path) -> str:
    """Replace what differs between runs and versions without a change of the answer."""
    text = text.replace(str(folder), "FOLDER").replace(str(ROOT), "ROOT")
    text = re.sub(rf'(?<=[,"]){re.escape(version("capplan"))}(?=[,"])', "VERSION", text)
    return _PORT.sub("PORT", _SHA256.sub("DIGEST", text))


def difference(stored: str, found: str) -> list[str]:
    """Return the first lines of the unified diff of two answers; none if they are the same."""
    lines = list(difflib.unified_diff(stored.splitlines(), found.splitlines(), "stored", "now", lineterm="", n=1))
    more = len(lines) - LONGEST_DIFF
    return [line[:200] for line in lines[:LONGEST_DIFF]] + ([f"... {more} more lines"] if more > 0 else [])


def stored_seconds() -> dict[str, float]:
    """Return the CPU seconds of each command when its answer was stored."""
    if not SECONDS.exists():
        return {}
    rows = (line.split("\t") for line in SECONDS.read_text("utf-8").splitlines()[1:])
    return {name: float(seconds) for name, seconds in rows}


def write_seconds(seconds: Mapping[str, float], names: Sequence[str]) -> None:
    """Write the CPU seconds of the listed commands."""
    rows = [f"{name}\t{seconds[name]:.1f}\n" for name in names if name in seconds]
    SECONDS.write_text("command\tcpu_seconds\n" + "".join(rows), encoding="utf-8")


def main() -> int:
    """Run the chosen commands one after another, and say of each whether its answer is the stored one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the answers instead of comparing them")
    parser.add_argument(
        "--only", metavar="NAME", action="append", help="run this command and what it needs; repeatable"
    )
    chosen = parser.parse_args()
    listed = commands()
    if unknown := set(chosen.only or ()) - set(listed):
        parser.error(f"commands.txt has no {', '.join(sorted(unknown))}")
    asked = set(chosen.only or listed)
    to_run = needed(chosen.only, listed) if chosen.only else asked
    before, now, differ = stored_seconds(), dict[str, float](), []
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for link in LINKED:
            (folder / link).symlink_to(ROOT / link)
        for each in (each for each in listed if each in to_run):
            found = ran(listed[each], folder)
            now[each] = found.cpu_s
            path = ANSWERS / f"{each}.txt"
            lines = difference(path.read_text("utf-8") if path.exists() else "", found.text)
            if chosen.write and each in asked:
                ANSWERS.mkdir(exist_ok=True)
                path.write_text(found.text, encoding="utf-8")
            word = "same" if not lines else "stored" if chosen.write and each in asked else "differs"
            differ += [each] if word == "differs" else []
            sys.stdout.write(f"{word:8}{each:28}{found.cpu_s:6.1f} CPU s  (stored {before.get(each, 0):.1f})\n")
            sys.stdout.write("".join(f"    {line}\n" for line in lines if word == "differs"))
            sys.stdout.flush()
    if chosen.write:
        write_seconds(before | {each: now[each] for each in now if each in asked}, list(listed))
    stale = {path.stem for path in ANSWERS.glob("*.txt")} - set(listed)
    for each in sorted(stale):
        sys.stdout.write(f"answers/{each}.txt belongs to no command\n")
    sys.stdout.write(
        f"{len(now)} commands, {len(differ)} differ, {sum(now.values()):.0f} CPU s "
        f"(stored {sum(before.get(each, 0) for each in now):.0f}), {time.monotonic() - started:.0f} s\n"
    )
    return int(bool(differ or stale))


if __name__ == "__main__":
    raise SystemExit(main())
