"""The least that shows the way from nodes to verdicts; as a program it runs that in a folder, to be killed."""

from __future__ import annotations

import sys
from pathlib import Path

from capplan.calibration.collectors.runs_in_turn import Bounds
from capplan.calibration.lab.layout import Layout
from capplan.planner.live.answer import LiveValidation
from capplan.planner.live.clusters import Labs
from capplan.planner.live.folder import Folder
from capplan.planner.live.protocol import MOST, Asked, Protocol, Stage
from capplan.planner.live.run import validate_live

SHORT = Protocol(
    "short",
    (Stage("small", "one node", Layout(), (Asked("write", clients=1), Asked("write", clients=8))),),
    (Stage("1", "one node", Layout(), (Asked("write", clients=MOST), Asked("write", share=0.3))),),
    Bounds(1.0, 2, 4.0),
    Bounds(1.0, 2, 4.0),
)


def run(folder: Path) -> LiveValidation:
    """Run it, or go on with it."""
    its = Folder(folder)
    return validate_live(SHORT, Labs(its), its, lambda *_: None)


if __name__ == "__main__":
    run(Path(sys.argv[1]))
