"""Write the snapshots that tests compare the audits with: each finding with its verdict and numbers.

Run from anywhere: `uv run python docs/generate/audit_snapshots.py`. Review the difference: a
changed number needs a reason in the evidence or the checks.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from capplan.evidence.audit.audit import Audit
from capplan.evidence.interval import Interval
from capplan.files import replace_file
from capplan.planner.audit import audit
from capplan.systems.registry import documented_names

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "evidence" / "audits"
COLUMNS = ("part", "name", "verdict", "unit", "expected", "low", "high", "documented", "low", "high")


def snapshot(report: Audit) -> Iterator[list[str]]:
    """Yield the findings of an audit as rows of text; numbers have nine significant digits."""
    parts = {"law": report.laws, "claim": report.claims, "reading": report.readings}
    for part, findings in parts.items():
        for each in findings:
            yield [part, each.rule, each.verdict, each.unit, *_numbers(each.expected), *_numbers(each.documented)]


def _numbers(interval: Interval | None) -> list[str]:
    if interval is None:
        return ["", "", ""]
    return [f"{number:.9g}" for number in (interval.value, interval.low, interval.high)]


def main() -> None:
    """Write the snapshot of every system."""
    FOLDER.mkdir(exist_ok=True)
    for system in documented_names():
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([COLUMNS, *snapshot(audit(system))])
        replace_file(FOLDER / f"{system}.csv", text.getvalue())


if __name__ == "__main__":
    main()
