"""The section of docs/backtest.md on the lab's kept runs: its blind predictions, and those of today's model.

docs/live has the runs, and the predictions written before the measurement. Today's model was changed since, by
people who had seen the measurement. So its score is no prediction: it shows what the changes did.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from capplan.calibration.tables.fit_table import fit_table
from capplan.calibration.tables.row_predictions import predict_table
from capplan.lab.collectors.cassandra import Load
from capplan.lab.collectors.runs_in_turn import run_name
from capplan.planner.live.folder import LARGE, SMALL, Folder, runs_in
from capplan.planner.live.live_validation import KIND_HEADS, LiveValidation, believed, kind_cells
from capplan.planner.live.node_pauses import with_pauses
from capplan.planner.live.protocol import protocol
from capplan.planner.live.run import compared
from capplan.systems.cassandra import SYSTEM

KEPT = Path(__file__).resolve().parents[1] / "live"


def live_again() -> str:
    """Return the table of both scores by kind of figure."""
    with tempfile.TemporaryDirectory() as made:
        folder = Folder(Path(made) / "live")
        shutil.copytree(KEPT, folder.path)
        blind = folder.predictions()
        if blind is None:
            raise SystemExit(f"{KEPT} has no predictions: run `uv run just live`")
        scores = {"blind": _compared(folder, blind), "after measuring": _compared(folder, _again(folder, blind))}
    return "\n".join(_lines(scores))


def _compared(folder: Folder, predictions: Mapping[str, Any]) -> LiveValidation:
    return compared(protocol(None, quick=False), folder, predictions)


def _again(folder: Folder, blind: Mapping[str, Any]) -> dict[str, Any]:
    """Return the predictions of the same loads by a fit of today's model to the same small runs."""
    small, large = [row for row in folder.rows(SMALL) if believed(row)], runs_in(folder, LARGE).rows
    fitted = fit_table(SYSTEM, with_pauses(small, small))
    runs: dict[str, list[dict[str, Any]]] = {}
    for stage, loads in blind["runs"].items():
        for each in loads:
            row = replace(large[run_name(stage, Load(**each["load"]), 1)], gc=None)
            found = predict_table(SYSTEM, fitted, with_pauses([row], small))
            bands = {
                one.quantity: [one.predicted.value, one.predicted.low, one.predicted.high]
                for one in found
                if one.quantity in each["figures"]
            }
            runs.setdefault(stage, []).append({**each, "figures": bands})
    return {**blind, "runs": runs}


def _lines(scores: Mapping[str, LiveValidation]) -> Iterator[str]:
    yield "| " + " | ".join(("kind", "predicted", *KIND_HEADS[1:])) + " |"
    yield "| --- | --- |" + " ---: |" * (len(KIND_HEADS) - 2) + " --- |"
    by_kind = {name: {each.kind: each for each in found.kinds} for name, found in scores.items()}
    for kind in by_kind["blind"]:
        for name, found in by_kind.items():
            yield "| " + " | ".join((kind, name, *kind_cells(found[kind])[1:])) + " |"
