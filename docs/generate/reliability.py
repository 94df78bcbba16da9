"""Write docs/reference/reliability.md from the counts of `just faults`: hostile inputs, and faults of writing."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
REFERENCE = DOCS / "reference"
PAGE, INPUTS, GUIDED, FAULTS = (
    REFERENCE / name for name in ("reliability.md", "inputs.json", "guided-inputs.json", "faults.json")
)
TEXT = """# Reliability

What capplan does when an input is hostile, a disk is full or a process is killed. `just faults` measures the counts.

## Rules

- **Files.** A result is written to a temporary file beside it, which is then renamed. So a file is there as a
  whole, as it was before, or not at all. Two runs with the same output never mix: one whole file is left. What is no
  regular file, such as a pipe, a device or a dangling link, is refused.
- **Interruptions.** After SIGINT, SIGTERM or SIGHUP nothing unfinished is left, and the exit code is 128 plus the
  number of the signal. What a killed process leaves (`.capplan-*.new`) is removed by the next one that writes to the
  folder. `sweep --out` and `calibrate` resume; a second run with the same output is refused meanwhile.
- **Kept results.** What an interrupted run or the cache holds is checked when it is read. What is damaged is computed
  again. A cache that cannot be written is not used, and capplan says so.
- **Text.** Names have no control characters, no invisible characters, at most 200 characters, and do not begin
  with `=`, `+`, `-` or `@`, which begin formulas in spreadsheets. Whatever is echoed is escaped and cut. In CSV, a text
  that looks like a formula has an apostrophe in front; capplan reads it back without.
- **Work.** capplan estimates work before it begins. On a nominal machine, it refuses a layout that takes more than a
  minute to solve, a simulation, a sweep or a search for a layout of more than an hour, and a simulation of more than
  4 GiB of memory; `--no-limits` accepts them. Rates are at most 10^9 per second, and files that people write at most
  4 MiB.
- **Sign of life.** What takes longer than two seconds says so on stderr, and again every minute.
- **Refusals.** Bad input, a full disk and a closed stdout end in one sentence on stderr, with exit code 2.

## Hostile inputs

{inputs}

An input is a valid scenario, network, fitted file, table, output of a load generator, body of a request to `serve`,
state of a lab, option or command line with one to four changes: words replaced by hostile ones, parts cut off or
repeated, bytes changed. One in a hundred is a command line, a third are files, the others texts of options. {guided}
It must be read, or refused in one sentence, within ten seconds of computing and a gigabyte,
and without touching a file outside its folder.

## Faults while verbs write

{faults}
{note}
Each fault meets a command that writes, listens or prints: {verbs}.

Its files are there before the fault. *Survived* means that each is as it was or complete, nothing else is left, the
exit code is right, and the same command afterwards writes what an undisturbed run writes, byte for byte. *Lost* means
that a file is gone, or that a run ended well without it. A signal may come when a command has just ended, and the
smallest disk may still hold a small file: such faults count, too, as nothing was lost. *Torn* means that a file has a
part of its content. After a fault of `lab`, `lab down` must leave no process and no file, and `lab up` must work again;
after one of `serve`, no process may be left.
"""


def generated() -> str:
    """Return the page."""
    inputs, guided, faults = (json.loads(path.read_text(encoding="utf-8")) for path in (INPUTS, GUIDED, FAULTS))
    return TEXT.format(
        inputs=_inputs(inputs),
        guided=_guided(guided),
        faults=_table(faults["kinds"]),
        note=_note(faults.get("note", "")),
        verbs=_listed(faults["verbs"]),
    )


def _note(text: str) -> str:
    """Return what a reader must know of the counts, as a paragraph."""
    return f"\n{text}\n" if text else ""


def _inputs(counts: Mapping[str, int]) -> str:
    broken = {rule: count for rule, count in counts.items() if rule != "inputs"}
    found = f"Of {counts['inputs']:,} inputs, {sum(broken.values()):,} broke a rule"
    return f"{found}{': ' if broken else '.'}{', '.join(f'{count} {rule}' for rule, count in broken.items())}"


def _guided(counts: Mapping[str, int]) -> str:
    return (
        f"Beside them, atheris tried {counts['inputs']:,} inputs that coverage led it to, at {counts['readers']} "
        f"readers of files and options; {counts['broken']} of the readers broke a rule."
    )


def _table(kinds: Mapping[str, Mapping[str, int]]) -> str:
    columns = ("injected", "survived", "lost", "torn")
    every = {column: sum(int(each[column]) for each in kinds.values()) for column in columns}
    rows = [("fault", *columns), ("---", *["---:"] * len(columns))]
    rows += [(name, *(f"{int(each[column]):,}" for column in columns)) for name, each in sorted(kinds.items())]
    rows.append(("all", *(f"{every[column]:,}" for column in columns)))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _listed(verbs: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in verbs)


def main() -> int:
    """Write the page, or check it."""
    text = generated()
    stale = not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text
    if stale and "--check" not in sys.argv:
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    return stale and "--check" in sys.argv


if __name__ == "__main__":
    sys.exit(main())
