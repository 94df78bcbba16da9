"""Try inputs that atheris derives from coverage, reader by reader: `guided.py SECONDS FILE`, in the group `fuzz`.

The campaign beside this file damages valid inputs at random; here an input that reaches new code is damaged further.
Each reader gets SECONDS on a core. What it has used, and the inputs that reached new code, are kept in `dist/guided`:
a campaign goes on where it was interrupted.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from capplan.models.files import replace_file

KEPT = Path(__file__).parents[2] / "dist" / "guided"
_PIECE_S = 120
_MOST_BYTES = 4096
TEXT = "text: "


def fuzz(name: str, seconds: int, inputs: Path, folder: Path) -> None:
    """Fuzz one reader in this process, which ends with it: with 0, or otherwise at the first broken rule."""
    import atheris  # type: ignore[import-untyped]  # in the group `fuzz` only

    with atheris.instrument_imports(include=["capplan"]):
        from tests.fuzz.rules import Watch, broken_by_reader
        from tests.fuzz.targets import FILES, TEXTS

    watch = Watch(folder)
    if name.startswith(TEXT):
        text = TEXTS[name.removeprefix(TEXT)]
        contents = [each.encode() for each in text.seeds]

        def broken(data: bytes) -> str | None:
            return broken_by_reader(text.read, data.decode("utf-8", "replace"), watch)

    else:
        file = FILES[name]
        contents = [path.read_bytes()[:_MOST_BYTES] for path in file.seeds]
        path = folder / f"input{file.seeds[0].suffix}"

        def broken(data: bytes) -> str | None:
            path.write_bytes(data)
            return broken_by_reader(file.read, path, watch)

    for number, content in enumerate(contents):
        (inputs / f"seed-{number}").write_bytes(content)

    def one(data: bytes) -> None:
        if rule := broken(data):
            raise AssertionError(f"{name}: {rule} ({data[:200]!r})")

    # The rules have a time limit of their own, whose signals libFuzzer must not take.
    limits = [f"-max_len={_MOST_BYTES}", "-timeout=0", f"-max_total_time={seconds}"]
    quiet = ["-verbosity=0", "-print_final_stats=1", f"-artifact_prefix={folder}/"]
    atheris.Setup([sys.argv[0], *limits, *quiet, str(inputs)], one)
    atheris.Fuzz()


def names() -> list[str]:
    """Return the readers."""
    from tests.fuzz.targets import FILES, TEXTS

    return [*(f"{TEXT}{name}" for name in TEXTS), *FILES]


def campaign(seconds: int, processes: int) -> None:
    """Fuzz every reader for so many seconds, less what it had before."""
    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(partial(_one, seconds=seconds), names()))


def _one(name: str, seconds: int) -> None:
    """Fuzz a reader for what is left of its time, in pieces that are noted as they end."""
    inputs = _folder(name) / "inputs"
    inputs.mkdir(parents=True, exist_ok=True)
    while (left := min(seconds - state(name)["seconds"], _PIECE_S)) > 0 and not state(name)["broken"]:
        with tempfile.TemporaryDirectory() as folder:
            places = ("--inputs", str(inputs), "--folder", folder)
            command = [sys.executable, __file__, str(left), "--reader", name, *places]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        _note(name, done, left)


def _note(name: str, done: subprocess.CompletedProcess[str], seconds: int) -> None:
    """Add what a process did to what is known of the reader."""
    known = state(name)
    tried = re.findall(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
    known["seconds"] += seconds
    known["inputs"] += int(tried[-1]) if tried else 0
    if done.returncode:
        known["broken"] = done.stderr[-2000:]
        print(f"{name}: {known['broken']}", file=sys.stderr, flush=True)
    replace_file(_folder(name) / "state.json", json.dumps(known))


def state(name: str) -> dict[str, Any]:
    """Return what is known of a reader: seconds and inputs so far, and what broke a rule."""
    path = _folder(name) / "state.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {"seconds": 0, "inputs": 0, "broken": ""}


def _folder(name: str) -> Path:
    return KEPT / name.replace(" ", "-")


def main() -> int:
    """Run a campaign, or one reader of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", type=int)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--reader")
    parser.add_argument("--inputs", type=Path)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    if asked.reader is not None:
        fuzz(asked.reader, asked.seconds, asked.inputs, asked.folder)
        return 0
    campaign(asked.seconds, asked.processes)
    states = [state(name) for name in names()]
    counts = {
        "readers": len(states),
        "inputs": sum(each["inputs"] for each in states),
        "seconds": sum(each["seconds"] for each in states),
        "broken": sum(bool(each["broken"]) for each in states),
    }
    print(json.dumps(counts, indent=1))
    if asked.out is not None:
        replace_file(asked.out, json.dumps(counts, indent=1) + "\n")
    return int(counts["broken"] > 0)


if __name__ == "__main__":
    sys.exit(main())
