"""Score the kept runs of docs/live again: predictions and runs stay, rules of the score may have changed since.

`uv run python docs/generate/live.py` writes docs/live-validation.md.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from capplan.planner.live.folder import Folder
from capplan.planner.live.protocol import FULL
from capplan.planner.live.run import compared
from capplan.reports.live import PAGE, write_page

DOCS = Path(__file__).resolve().parents[1]
MACHINE = "AMD EPYC, 2 cores, 24 GiB, Linux 6.18"
BEGUN = "2026-11-23T01:44:15+00:00"
REMARK = (
    "\n\nThe rules of the score are newer than the runs: bias by kind, and the interval of the mean in place of that "
    "of a further repeat. Predictions and runs are as they were.\n\n"
)


def main() -> None:
    """Write the page and its tables."""
    with TemporaryDirectory() as name:
        folder = Folder(Path(name))
        shutil.copytree(DOCS / "live", folder.path, dirs_exist_ok=True)
        folder.measured_from(BEGUN)
        predictions = folder.predictions()
        if predictions is None:
            raise SystemExit("docs/live has no predictions")
        found = replace(compared(FULL, folder, predictions), machine=MACHINE)
        write_page(found, folder, DOCS)
    page = DOCS / PAGE
    page.write_text(page.read_text(encoding="utf-8").replace("\n\n## Bias", f"{REMARK}## Bias", 1), encoding="utf-8")


if __name__ == "__main__":
    main()
