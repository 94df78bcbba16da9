"""The least that shows the way from nodes to verdicts: a program that runs it in a folder and prints the answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from capplan.lab.collectors.runs_in_turn import Bounds
from capplan.lab.layout import Layout
from capplan.planner.live.clusters import Labs
from capplan.planner.live.folder import Folder
from capplan.planner.live.protocol import MOST, Asked, Protocol, Stage
from capplan.planner.live.run import validate_live

SHORT = Protocol(
    "short",
    (Stage("small", "one node", Layout(), (Asked("write", clients=1), Asked("write", clients=8))),),
    (Stage("1", "one node", Layout(), (Asked("write", clients=MOST), Asked("write", share=0.3))),),
    Bounds(1.0, 2, 2.0),
    Bounds(1.0, 2, 2.0),
)


if __name__ == "__main__":
    its = Folder(Path(sys.argv[1]))
    print(json.dumps(validate_live(SHORT, Labs(its), its, lambda *_: None).to_json()))
