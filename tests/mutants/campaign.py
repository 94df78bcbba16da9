"""Change the code that decides answers, one place at a time, and count how many changes the tests notice.

`python tests/mutants/campaign.py COUNT FILE` tries COUNT mutants of each stratum; FILE keeps what is known, a line a
mutant, and the campaign resumes from it. Tests of a mutant are the default tests that run the changed line, the
shortest first, up to a minute and a half of them. `just mutants` finds out before which tests run which lines.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, fields
from difflib import unified_diff
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from xml.etree import ElementTree

import coverage
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.journal import append, entries
from tests.mutants.sample import PACKAGE, ROOT, Mutant, mutants

from capplan.files import replace_file

SEED = 40
MOST_TESTS_S = 180.0  # of the durations measured with coverage, which doubles them
LEFT_OUT = shutil.ignore_patterns(".venv", "dist", "__pycache__", ".mypy_cache", ".ruff_cache", ".hypothesis")
_NOT_FOUND = (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED)
NOTICED, UNNOTICED, UNTESTED = "noticed", "unnoticed", "no test runs it"


class Tests:
    """Which default tests run a line, and how long each takes."""

    def __init__(self, data: Path, durations: Path) -> None:
        self._data = coverage.CoverageData(str(data))
        self._data.read()
        self._files = {
            Path(name).as_posix().rpartition("src/capplan/")[2]: name for name in self._data.measured_files()
        }
        self._seconds: dict[str, float] = defaultdict(float)
        for case in ElementTree.parse(durations).iter("testcase"):
            name = f"{str(case.get('classname')).replace('.', '/')}.py::{case.get('name')}"
            # One that failed, or was skipped, without any change says nothing.
            self._seconds[name] = math.inf if len(case) else float(case.get("time", 0))

    def of(self, mutant: Mutant) -> list[str]:
        """Return the tests of a mutant by their ids, file by file, the shortest files first.

        Others of these files fill the time that is left: what one test computes and keeps, they use.
        """
        contexts = self._contexts(mutant)
        files = {_file(name) for name in contexts}
        ranked = sorted(contexts, key=self.duration_s)
        ranked += sorted((name for name in self._seconds if _file(name) in files), key=self.duration_s)
        by_file: dict[str, list[str]] = defaultdict(list)
        total = 0.0
        for name in dict.fromkeys(ranked):
            if total + self.duration_s(name) <= MOST_TESTS_S:
                total += self.duration_s(name)
                by_file[_file(name)].append(name)
        order = sorted(by_file.values(), key=lambda names: sum(map(self.duration_s, names)))
        return [name for names in order for name in names]

    def _contexts(self, mutant: Mutant) -> set[str]:
        """Return the tests that run the line; where none is known, those that run another line of the file.

        A line may run in a process of its own, or once, while its module is imported. A file that runs only then has
        all tests of its folder.
        """
        name = self._files.get(mutant.file)
        by_line = self._data.contexts_by_lineno(name) if name else {}
        inside = max((line for line in by_line if line <= mutant.line), default=0)  # a statement may have several lines
        of_line = {context for context in by_line.get(inside, ()) if context}
        of_file = {context for contexts in by_line.values() for context in contexts if context}
        folder = f"tests/{mutant.file.partition('/')[0]}/"
        found = of_line or of_file or {known for known in self._seconds if known.startswith(folder)}
        return {context.partition("|")[0] for context in found}

    def duration_s(self, name: str) -> float:
        """Return how long a test took without any change, with coverage; infinite if it failed."""
        return self._seconds[name]


def _file(name: str) -> str:
    return name.partition("::")[0]


def campaign(count: int, out: Path, tests: Tests, processes: int) -> None:
    """Try the mutants of the sample that the file does not have yet, and drop all others from it."""
    known = {Mutant(*(entry[each.name] for each in fields(Mutant))).key: entry for entry in entries(out)}
    sample = mutants(count, SEED)
    kept = [{**known[mutant.key], "name": mutant.name, **asdict(mutant)} for mutant in sample if mutant.key in known]
    replace_file(out, "".join(json.dumps(entry) + "\n" for entry in kept))
    waiting = [mutant for mutant in sample if mutant.key not in known]
    folders: SimpleQueue[Path] = SimpleQueue()
    for number in range(processes):
        folder = ROOT / "dist" / "mutants" / f"tree-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(ROOT, folder, symlinks=True, ignore=LEFT_OUT)
        folders.put(folder)

    def one(mutant: Mutant) -> dict[str, object]:
        folder = folders.get()
        try:
            names = tests.of(mutant)
            limit_s = 60 + 3 * sum(map(tests.duration_s, names))  # a change may make an endless loop
            return {"name": mutant.name, **asdict(mutant), **tried(mutant, names, folder, limit_s)}
        finally:
            folders.put(folder)

    with ThreadPoolExecutor(processes) as pool:
        for found in as_completed([pool.submit(one, mutant) for mutant in waiting]):
            append(out, found.result())


def tried(mutant: Mutant, names: Sequence[str], folder: Path, limit_s: float) -> dict[str, object]:
    """Run the tests of a mutant in a copy of the tree; return whether one noticed it, and the change."""
    path = folder / PACKAGE / mutant.file
    before, after = path.read_text("utf-8"), mutant.code(folder)
    lines = unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    change = [line for line in lines if line[:1] in "+-" and line[:3] not in {"+++", "---"}]
    if not names:
        return {"outcome": UNTESTED, "change": change, "tests": 0}
    path.write_text(after, "utf-8")
    around = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder / "src"), str(Path(__file__).parent / "same_digest")]),
        "CAPPLAN_UNCHANGED": str(ROOT / PACKAGE),
        "CAPPLAN_CACHE_DIR": str(folder / "cache"),
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header"]
    run = partial(subprocess.run, cwd=folder, env=around, capture_output=True, text=True, check=False, timeout=limit_s)
    try:
        ended = run([*command, *names])
        if ended.returncode in _NOT_FOUND:  # the change renames a case of a test
            ended = run([*command, *dict.fromkeys(map(_file, names))])
        noticed, by = ended.returncode != 0, _first_failure(ended.stdout)
    except subprocess.TimeoutExpired:
        noticed, by = True, "takes too long"
    finally:
        path.write_text(before, "utf-8")
    return {"outcome": NOTICED if noticed else UNNOTICED, "change": change, "tests": len(names), "by": by}


def _first_failure(output: str) -> str:
    found = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return found[0][:300] if found else output[-300:]


def main() -> int:
    """Run or continue a campaign."""
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("out", type=Path)
    parser.add_argument("--coverage", type=Path, default=ROOT / ".coverage")
    parser.add_argument("--durations", type=Path, default=ROOT / "dist" / "mutants" / "durations.xml")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    campaign(asked.count, asked.out.resolve(), Tests(asked.coverage, asked.durations), asked.processes)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
