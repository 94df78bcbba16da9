"""Try inputs that atheris derives from coverage, reader by reader: `guided.py SECONDS FILE`, in the group `fuzz`.

The campaign beside this file damages valid inputs at random; here an input that reaches new code is damaged further.
Each reader gets SECONDS of computing. FILE says what each has had and what broke it, and `guided.tar.xz` keeps the
inputs that reached new code: a campaign goes on where the last one stopped, on another machine too.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from capplan.files import replace_file

CORPUS = Path(__file__).with_name("guided.tar.xz")
KEPT = Path(__file__).parents[2] / "dist" / "guided"
_PIECE_S = 600
_MOST_BYTES = 4096


def fuzz(name: str, arguments: list[str]) -> None:
    """Fuzz one reader in this process and its folder, with arguments of libFuzzer.

    The process ends with 0, or otherwise at the first broken rule.
    """
    import atheris  # type: ignore[import-untyped]  # in the group `fuzz` only

    with atheris.instrument_imports(include=["capplan"]):
        from tests.fuzz.rules import Watch, broken_by_reader, limit_memory
        from tests.fuzz.targets import readers

    folder = Path.cwd()
    sys.dont_write_bytecode = True  # an import is no write of the reader
    os.environ["CAPPLAN_CACHE_DIR"] = str(folder / "cache")
    read, watch = readers(folder)[name].read, Watch(folder)

    def one(data: bytes) -> None:
        if rule := broken_by_reader(read, data, watch):
            raise AssertionError(f"{name}: {rule} ({data[:200]!r})")

    limit_memory()
    resource.setrlimit(resource.RLIMIT_CPU, (3 * _PIECE_S, 3 * _PIECE_S))  # for code that no signal interrupts
    # The rules have a time limit of their own, whose signals libFuzzer must not take.
    atheris.Setup([sys.argv[0], f"-max_len={_MOST_BYTES}", "-timeout=0", "-verbosity=0", *arguments], one)
    atheris.Fuzz()


@dataclass
class Campaign:
    """What every reader has had so far, as the file says."""

    file: Path
    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        """Read what is known, and lay out the inputs."""
        from tests.fuzz.targets import readers

        before = json.loads(self.file.read_text("utf-8")) if self.file.exists() else {}
        for name, target in readers(KEPT).items():
            self.known[name] = before.get(name, {"seconds": 0, "inputs": 0, "broken": ""})
            _folder(name).mkdir(parents=True, exist_ok=True)
            for number, seed in enumerate(target.seeds):
                (_folder(name) / f"seed-{number}").write_bytes(seed[:_MOST_BYTES])
        if CORPUS.exists():
            with tarfile.open(CORPUS) as corpus:
                corpus.extractall(KEPT, filter="data")

    def run(self, name: str, seconds: int) -> None:
        """Fuzz a reader until it has had so many seconds, and keep the inputs that reached new code.

        What breaks a rule is kept, too: it is tried again first.
        """
        inputs = _folder(name)
        while (left := seconds - int(self.known[name]["seconds"])) > 0 or self.known[name]["broken"]:
            piece = f"-max_total_time={min(max(left, 1), _PIECE_S)}"
            self._note(name, *_run(name, piece, "-print_final_stats=1", f"-artifact_prefix={inputs}/", str(inputs)))
            if self.known[name]["broken"]:
                break

    def _note(self, name: str, code: int, used_s: float, error: str) -> None:
        """Note what a process did."""
        known, tried = self.known[name], re.findall(r"stat::number_of_executed_units:\s*(\d+)", error)
        with self._lock:
            known["seconds"] = round(known["seconds"] + used_s, 1)
            known["inputs"] += int(tried[-1]) if tried else 0
            known["broken"] = error if code else ""
            replace_file(self.file, json.dumps(self.known, indent=1) + "\n")
            _pack()


def _run(name: str, *arguments: str) -> tuple[int, float, str]:
    """Fuzz a reader in a process; return its exit code, its seconds of computing, and the end of what it wrote."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as output:
        command = [sys.executable, __file__, "--reader", name, *arguments]
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output, start_new_session=True)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    return process.returncode, used.ru_utime + used.ru_stime, text[-2000:]


def _pack() -> None:
    """Write the corpus: the same bytes for the same inputs."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid, member.gid, member.uname, member.gname, member.mtime, member.mode = 0, 0, "", "", 0, 0o644
        return member

    new = CORPUS.with_suffix(".new")
    with tarfile.open(new, "w:xz") as corpus:
        for path in sorted(KEPT.glob("*/*")):
            if not path.name.startswith("seed-"):
                with suppress(FileNotFoundError):  # a running reader replaces inputs by shorter ones
                    corpus.add(path, str(path.relative_to(KEPT)), filter=plain)
    new.replace(CORPUS)


def _folder(name: str) -> Path:
    """Return the folder of a reader's inputs."""
    return KEPT / as_path(name)


def as_path(name: str) -> str:
    """Return what a reader's folder is called."""
    return re.sub(r"\W+", "-", name)


def main() -> int:
    """Run a campaign, or one reader of it: libFuzzer's own arguments follow its name."""
    if sys.argv[1] == "--reader":
        fuzz(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", type=int)
    parser.add_argument("file", type=Path)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    campaign = Campaign(asked.file)
    with ThreadPoolExecutor(asked.processes) as pool:
        list(pool.map(partial(campaign.run, seconds=asked.seconds), campaign.known))
    broken = [f"{name}: {each['broken']}" for name, each in campaign.known.items() if each["broken"]]
    print(*broken, sep="\n\n")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
