"""Write what the commands of the pages print, in each block that starts with `$ capplan`, `$ cat` or `$ python`.

Run from anywhere: `uv run python docs/generate/outputs.py`. With `--check` it writes nothing, and exits with 1 if a
page is out of date. Commands of a tutorial run one after another in one folder; any other runs in a folder of its own.
`docs/how-to/add-a-system.md` is left out: its system is a toy that its own test installs.

A fit of a table draws its ensemble by chance, and the last bits of a machine's sums decide which draws are taken. So
what such a command prints agrees if most words are the same, and half of its numbers are the same within a tenth.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
HOW_TO = ROOT / "docs" / "how-to"
PAGES = (
    ROOT / "README.md",
    ROOT / "docs" / "tutorials" / "your-first-plan.md",
    ROOT / "docs" / "tutorials" / "your-own-network.md",
    *(
        HOW_TO / name
        for name in (
            "read-a-prediction.md",
            "production-data.md",
            "size-a-layout.md",
            "size-by-reads-and-writes.md",
            "public-sizing-questions.md",
            "plan-for-outages.md",
            "check-objectives.md",
            "compare-layouts.md",
            "import-measurements.md",
            "audit-measurements.md",
            "watch-for-drift.md",
            "describe-demand.md",
            "fit-your-own-cluster.md",
            "backtest.md",
            "simulate-and-sweep.md",
            "choose-the-next-test.md",
        )
    ),
)
TUTORIALS = (ROOT / "docs" / "tutorials" / "your-own-measurements.md",)
BLOCK = re.compile(
    r"^```console\n\$ (?P<command>(?:capplan|cat|python) .*)\n(?P<output>(?:(?!```).*\n)*)```$", re.MULTILINE
)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
FITS = re.compile(r"capplan backtest|--evidence")  # commands that fit a table
MOST, NEARLY = 0.7, 0.1


def agrees(shown: str, printed: str, *, fits: bool) -> bool:
    """Whether a page shows what a command prints: to the letter, or nearly if it fits a table."""
    if not fits or shown == printed:
        return shown == printed
    one, other = (Counter(NUMBER.sub("#", text).split()) for text in (shown, printed))
    if (one & other).total() < MOST * (one | other).total():
        return False
    numbers = (sorted(float(each.replace(",", "")) for each in NUMBER.findall(text)) for text in (shown, printed))
    apart = [abs(one - other) / max(one, other, 1e-12) for one, other in zip(*numbers, strict=False)]
    return statistics.median(apart) <= NEARLY


def blocks() -> list[tuple[Path, str, str]]:
    """Return page, command and output of every block."""
    return [
        (page, found["command"], found["output"])
        for page in PAGES
        for found in BLOCK.finditer(page.read_text(encoding="utf-8"))
    ]


@cache
def printed(command: str) -> str:
    """Run a command of a page in a folder of its own, and return what it prints."""
    with TemporaryDirectory() as folder:  # where the files stay that a command writes
        return _printed(command, Path(folder))


@cache
def printed_in_turn(page: Path) -> tuple[str, ...]:
    """Run the commands of a tutorial in one folder, and return what each prints."""
    with TemporaryDirectory() as folder:
        return tuple(_printed(found["command"], Path(folder)) for found in BLOCK.finditer(page.read_text("utf-8")))


def _printed(command: str, folder: Path) -> str:
    """Run a command in a shell, as in a pipe of 80 columns, and return what it prints.

    Raises
    ------
    RuntimeError
        If it writes to stderr more than that it is at work: it was refused.
    """
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": folders, "COLUMNS": "80"}
    for name in ("docs", "tests"):
        if not (folder / name).exists():
            (folder / name).symlink_to(ROOT / name)
    done = subprocess.run(  # noqa: S603  # a command of our own pages
        ["/bin/bash", "-c", command], capture_output=True, text=True, check=False, cwd=folder, env=environment
    )
    if any(not line.endswith(" ...") for line in done.stderr.splitlines()):  # what takes long says so
        raise RuntimeError(f"{command}: {done.stderr.strip()}")
    return done.stdout


def generated() -> dict[Path, str]:
    """Return the text of every page with the outputs of today."""
    tutorials = {page: _with_outputs(page, printed_in_turn(page)) for page in TUTORIALS}
    return tutorials | {page: BLOCK.sub(_block, page.read_text(encoding="utf-8")) for page in PAGES}


def _with_outputs(page: Path, outputs: Sequence[str]) -> str:
    rest = iter(outputs)
    return BLOCK.sub(lambda found: _shown(found, next(rest), fits=True), page.read_text("utf-8"))


def _block(found: re.Match[str]) -> str:
    return _shown(found, printed(found["command"]), fits=bool(FITS.search(found["command"])))


def _shown(found: re.Match[str], now: str, *, fits: bool) -> str:
    """Return a block with what its command prints now; a check leaves an output that agrees as it was."""
    output = found["output"] if "--check" in sys.argv and agrees(found["output"], now, fits=fits) else now
    return f"```console\n$ {found['command']}\n{output}```"


def main() -> int:
    """Write the pages, or check them."""
    stale = [path for path, text in generated().items() if path.read_text(encoding="utf-8") != text]
    for path in stale:
        sys.stderr.write(f"{path.relative_to(ROOT)} was out of date\n")
        if "--check" not in sys.argv:
            path.write_text(generated()[path], encoding="utf-8")
    return int(bool(stale) and "--check" in sys.argv)


if __name__ == "__main__":
    raise SystemExit(main())
