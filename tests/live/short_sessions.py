"""A few sessions on two data centres, with writes to the nearest one and to both: a program that keeps their rows."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from capplan.lab.collectors.runs_in_turn import Bounds
from capplan.lab.collectors.sessions import SessionLoad, measure_sessions
from capplan.lab.layout import Layout
from capplan.planner.live.clusters import Labs
from capplan.planner.live.folder import Folder
from capplan.planner.live.session_stages import SessionStage
from capplan.planner.live.sessions import FLOW, SessionRows, in_each_dc, plain

NEAR = SessionLoad("LOCAL_QUORUM", "LOCAL_QUORUM", think_s=0.001, sessions_per_s=15.0, rtt_ms=100.0)
BOTH = replace(NEAR, write="QUORUM")
STAGE = SessionStage("s", "two data centres", Layout(dcs=2), (), Bounds(4.0, 1, 1.5))


if __name__ == "__main__":
    its = Folder(Path(sys.argv[1]))
    rows = SessionRows(its)
    with Labs(its).running(plain(STAGE), lambda *_: None) as running:
        clusters = in_each_dc(running, STAGE)
        measure_sessions(clusters, STAGE.name, FLOW, [NEAR, BOTH], STAGE.bounds, rows.found, rows.add, lambda *_: None)
