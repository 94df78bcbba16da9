"""A live validation without nodes: made-up clusters whose runs are what the model says, with some noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from capplan.calibration.tables.solved_rows import solved_rows
from capplan.evidence.load_test_row import LoadTestRow
from capplan.lab.collectors.cassandra import Load, RunningCluster
from capplan.lab.collectors.runs_in_turn import Bounds, run_name, runs_left
from capplan.lab.layout import Layout
from capplan.layout.table_rows import LEVELS, MEAN, THROUGHPUT
from capplan.models.language.parameter import defaults
from capplan.planner.live.folder import DIGEST
from capplan.planner.live.protocol import MOST, Asked, Protocol, Stage, closed
from capplan.systems.cassandra import SYSTEM
from capplan.systems.cassandra.priors import PARAMETERS

VALUES = {**defaults(PARAMETERS), "delay_s": 0.2e-3, "unseen_work": 0.5, "generator_s": 0.02e-3}
SHORT = Protocol(
    "short",
    (Stage("small", "one node", Layout(), (*closed((1, 8)), Asked("read", share=0.3))),),
    (Stage("1", "one node", Layout(), (Asked("read", clients=MOST), Asked("read", share=0.5))),),
    Bounds(1.0, 2, 1.0),
    Bounds(1.0, 3, 1.0),
)


class MadeUp:
    """Clusters that do not exist."""

    def expected(self, stage: Stage) -> RunningCluster:
        """Return a node on one host."""
        del stage
        return RunningCluster("5.0", (1,), (1,), ("a",), "", "k", 2.0, one_host=True)

    def running(
        self, stage: Stage, progress: Callable[[str, int, int], None]
    ) -> AbstractContextManager[RunningCluster]:
        """Return it."""
        del progress
        return nullcontext(self.expected(stage))

    def close(self) -> None:
        """End nothing."""

    def round_trips_ms(self, stage: Stage, wanted: Iterable[float]) -> dict[float, float]:
        """Return nothing: there is one data centre."""
        del stage, wanted
        return {}


class Measuring:
    """Measures made-up clusters: what the model says, with 2 % of noise; the power may fail after some runs."""

    def __init__(self, folder: Path, fails_after: int | None = None, **cells: Any) -> None:
        self.folder, self.fails_after, self.cells = folder, fails_after, cells
        self.names: list[str] = []

    def __call__(  # the parameters of `measure`
        self,
        cluster: RunningCluster,
        stage: str,
        loads: Sequence[Load],
        bounds: Bounds,
        finished: Mapping[str, LoadTestRow],
        done: Callable[[LoadTestRow], None],
        progress: Callable[[str, int, int], None],
    ) -> None:
        """Measure the runs that are not finished."""
        del progress
        for repeat, load in runs_left(stage, loads, bounds, finished):
            if self.fails_after is not None and len(self.names) >= self.fails_after:
                raise KeyboardInterrupt
            assert stage != "1" or (self.folder / DIGEST).is_file()  # predicted before it is measured
            name = run_name(stage, load, repeat)
            self.names.append(name)
            done(self._row(cluster, load, name, repeat))

    def _row(self, cluster: RunningCluster, load: Load, name: str, repeat: int) -> LoadTestRow:
        cells = {**cluster.row(load), **self.cells}
        row = LoadTestRow(run_id=name, repeat=repeat, throughput_tps=load.rate_per_s, **cells)
        columns = [MEAN, *LEVELS] if load.rate_per_s else [THROUGHPUT, MEAN, *LEVELS]
        solved = solved_rows(SYSTEM, SYSTEM.read([row]), VALUES, [columns])[0].figures
        noise = float(np.exp(0.02 * np.random.default_rng(sum(name.encode())).standard_normal()))
        figures: dict[str, Any] = {column: float(solved[column][0]) * noise for column in columns}
        return replace(row, **figures)
