"""Try inputs that atheris derives from coverage, reader by reader: `guided.py RUNS FILE`, in the group `fuzz`.

The campaign beside this file damages valid inputs at random; here an input that reaches new code is damaged further.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from capplan.models.files import replace_file

_MOST_BYTES = 4096
_TEXTS = "text: "


def fuzz(name: str, runs: int, folder: Path) -> None:
    """Fuzz one reader in this process, which ends with it: with 0, or otherwise at the first broken rule."""
    import atheris  # type: ignore[import-untyped]  # in the group `fuzz` only

    with atheris.instrument_imports(include=["capplan"]):
        from tests.fuzz.rules import Watch, broken_by_reader
        from tests.fuzz.targets import FILES, TEXTS

    watch = Watch(folder)
    seeds = folder / "seeds"
    seeds.mkdir()
    if name.startswith(_TEXTS):
        text = TEXTS[name.removeprefix(_TEXTS)]
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
        (seeds / str(number)).write_bytes(content)

    def one(data: bytes) -> None:
        if rule := broken(data):
            raise AssertionError(f"{name}: {rule} ({data[:200]!r})")

    # The rules have a time limit of their own, whose signals libFuzzer must not take.
    limits = [f"-runs={runs}", f"-max_len={_MOST_BYTES}", "-timeout=0"]
    quiet = ["-seed=1", "-verbosity=0", f"-artifact_prefix={folder}/"]
    atheris.Setup([sys.argv[0], *limits, *quiet, str(seeds)], one)
    atheris.Fuzz()


def names() -> list[str]:
    """Return the readers."""
    from tests.fuzz.targets import FILES, TEXTS

    return [*(f"{_TEXTS}{name}" for name in TEXTS), *FILES]


def campaign(runs: int, out: Path | None) -> int:
    """Fuzz every reader; return how many broke a rule."""
    counts = {"readers": 0, "inputs": 0, "broken": 0}
    for name in names():
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, str(runs), "--reader", name, "--folder", folder]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        counts["readers"] += 1
        counts["inputs"] += runs
        if done.returncode:
            counts["broken"] += 1
            print(f"{name}: {done.stderr[-2000:]}", file=sys.stderr, flush=True)
        if out is not None:
            replace_file(out, json.dumps(counts, indent=1) + "\n")
    print(json.dumps(counts, indent=1))
    return counts["broken"]


def main() -> int:
    """Run a campaign, or one reader of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=int)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--reader")
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    if asked.reader is not None:
        fuzz(asked.reader, asked.runs, asked.folder)
    return int(campaign(asked.runs, asked.out) > 0)


if __name__ == "__main__":
    sys.exit(main())
