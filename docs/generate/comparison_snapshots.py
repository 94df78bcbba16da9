"""Write the snapshots that tests compare the observations with: what each documented figure is compared by.

Run from anywhere: `uv run python docs/generate/comparison_snapshots.py`. Review the difference: a
changed layout, goal, kind or family needs a reason in the evidence or in the observations of its system.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from capplan.layout.system import System
from capplan.systems.registry import documented_systems

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "systems" / "compared"
COLUMNS = ("test", "fold", "layout", "figure", "kind", "least", "most", "family", "size", "group", "repeatability")


def snapshot(system: System[Any]) -> Iterator[list[str]]:
    """Yield the figures of a system's load tests as rows of text; numbers have nine significant digits."""
    its = system.observations
    for test in its.load_tests():
        layout = json.dumps(test.scenario.given(), sort_keys=True)
        for row in test.rows:
            least, most = its.bounds_of(row) or ("", "")
            scored = its.scored(row)
            compared = ("", "", "") if scored is None else (scored.family, scored.size, scored.group)
            scatter = its.repeatability(row) if row.use == "fit" else ""
            cells = (test.name, test.fold, layout, row.id, its.kind_of(row) or "", least, most, *compared, scatter)
            yield [f"{cell:.9g}" if isinstance(cell, float) else str(cell) for cell in cells]


def main() -> None:
    """Write the snapshot of every system."""
    FOLDER.mkdir(exist_ok=True)
    for system in documented_systems():
        with (FOLDER / f"{system.name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows((COLUMNS, *snapshot(system)))


if __name__ == "__main__":
    main()
