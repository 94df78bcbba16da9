"""A few sessions on two data centres, with writes to the nearest one and to both: a program that keeps their rows."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from capplan.lab.collectors.runs_in_turn import Bounds
from capplan.lab.collectors.sessions import SessionLoad, measure_sessions
from capplan.lab.layout import Layout
from capplan.planner.live.clusters import Labs
from capplan.planner.live.folder import Folder, sessions_in
from capplan.planner.live.protocol import SessionStage
from capplan.planner.live.sessions import FLOW, in_each_dc

NEAR = SessionLoad("LOCAL_QUORUM", "LOCAL_QUORUM", think_s=0.001, sessions_per_s=15.0, rtt_ms=100.0)
BOTH = replace(NEAR, write="QUORUM")
STAGE = SessionStage("s", "two data centres", Layout(dcs=2), bounds=Bounds(4.0, 1, 1.5))


if __name__ == "__main__":
    its = Folder(Path(sys.argv[1]))
    rows = sessions_in(its)
    with closing(Labs(its)) as labs, labs.running(STAGE, lambda *_: None) as running:
        clusters = in_each_dc(running, STAGE)
        measure_sessions(clusters, STAGE.name, FLOW, [NEAR, BOTH], STAGE.bounds, rows.rows, rows.add, lambda *_: None)
