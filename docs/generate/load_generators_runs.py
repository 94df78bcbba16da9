"""Measure two load generators in turn on one warm node, ours and latte, for docs/reference/load-generators.md.

Run on a quiet machine with two cores: `uv run --extra lab just load-generators`. latte comes from `cargo install
latte-cli`.

Closed clients are the same load for both. latte's open load comes at the ticks of a timer of 1 ms, several requests at
once, so ours sends them likewise: a comparison of generators needs equal loads.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from capplan.errors import InputError
from capplan.evidence.importers.database_load_generators import LATTE_REPORT
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.text_file import TextFile
from capplan.lab import cluster as lab_cluster
from capplan.lab.collectors import cql
from capplan.lab.collectors.cassandra import Client, Load, RunningCluster, cluster_of, running_lab
from capplan.lab.collectors.collector import Progress
from capplan.lab.collectors.load import Run
from capplan.lab.collectors.runs_in_turn import ROWS, Bounds, create_tables, measure, table_of
from capplan.lab.layout import Layout
from capplan.lab.processes import generator_core

FOLDER = Path(__file__).resolve().parents[1] / "reference" / "load-generators"
LATTE = "latte"
OURS = "capplan"
_CLIENTS = (1, 4, 32)
_RATES_PER_S = (3000, 12_000)
_TICK_S = 1e-3
_DURATION_S, _WARM_UP_S, _REPEATS = 10, 2, 2
_WARM_UP_MOST_S = 120.0
_MOST_UNDER_WAY = 512
_LEVEL, _SEED = "LOCAL_ONE", 1
_WORKLOAD = """pub async fn prepare(ctx) {{
    ctx.prepare("read", `SELECT value FROM {table} WHERE id = ?`).await?;
}}
pub async fn run(ctx, i) {{
    ctx.execute_prepared("read", [latte::hash(i) % {rows}]).await?
}}
"""


def side_by_side(cluster: RunningCluster, progress: Progress) -> list[LoadTestRow]:
    """Measure reads with each generator in turn.

    Parameters
    ----------
    cluster : RunningCluster
        A cluster, best a warm one.
    progress : function
        Receives what is done.

    Raises
    ------
    InputError
        If latte is not installed, or fails.
    """
    program = shutil.which(LATTE)
    if program is None:
        raise InputError("latte is not installed: 'cargo install latte-cli' builds it")
    loads = [Load("read", _LEVEL, clients=each) for each in _CLIENTS]
    loads += [Load("read", _LEVEL, rate_per_s=float(each)) for each in _RATES_PER_S]
    found = []
    with closing(Client(cluster)) as client:
        create_tables(client, cluster, [loads[0].row_bytes])
        flow = table_of(cluster, loads[0].row_bytes).requests(client, "read", _LEVEL, _SEED)
        for repeat in range(1, _REPEATS + 1):
            for number, each in enumerate(loads):
                progress(f"both generators, {each.name}", number, len(loads))
                sample = client.loop.run(_flows(flow, each), _DURATION_S, paced=each.clients is None)
                run = Run(f"{OURS}-{each.name}", each.clients, each.rate_per_s, repeat, sample)
                found.append(run.row({**cluster.row(each), "source": OURS}, []))
                found.append(replace(_latte(program, cluster, each), repeat=repeat))
    return found


def _flows(flow: cql.FlowOf, load: Load) -> Iterator[tuple[float, cql.Flow]]:
    if load.clients is not None:
        return cql.closed(flow, load.clients, _DURATION_S, 10**9)
    ticks = np.arange(0.0, _DURATION_S, _TICK_S)
    return cql.paced(flow, np.repeat(ticks, round((load.rate_per_s or 0.0) * _TICK_S)))


def _latte(program: str, cluster: RunningCluster, load: Load) -> LoadTestRow:
    table = table_of(cluster, load.row_bytes).name
    own = generator_core()
    with TemporaryDirectory() as name:
        workload, report = Path(name, "workload.rn"), Path(name, "report.json")
        workload.write_text(_WORKLOAD.format(table=table, rows=ROWS), encoding="utf-8")
        words = [program, "run", str(workload), cluster.addresses[0], "--quiet", "--consistency", load.level]
        words += ["--warmup", f"{_WARM_UP_S}s", "--duration", f"{_DURATION_S}s", "--output", str(report)]
        words += ["--concurrency", str(load.clients or _MOST_UNDER_WAY)]
        words += [] if load.rate_per_s is None else ["--rate", f"{load.rate_per_s:.0f}"]
        before = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, before if own is None else {own})  # which latte inherits
            done = subprocess.run(  # noqa: S603  # the user's; it writes a log where it runs
                words, capture_output=True, text=True, check=False, cwd=name
            )
        finally:
            os.sched_setaffinity(0, before)
        if done.returncode:
            last = ((done.stdout + done.stderr).strip().splitlines() or ["it said nothing"])[-1]
            raise InputError(f"latte failed: {last}")
        (row,) = LATTE_REPORT.read(TextFile(report)).load_tests
    cells = cluster.row(load)
    known = {each: getattr(row, each) for each in ("throughput_tps", "duration_s", *_LATENCIES)}
    return LoadTestRow(**{**cells, **known, "run_id": f"{LATTE}-{load.name}", "source": f"{LATTE} {_version(program)}"})


_LATENCIES = tuple(f"latency_{each}_ms" for each in ("mean", "p50", "p95", "p99", "p999"))


def _version(program: str) -> str:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603  # the user's
    return (said.split() or ["?"])[-1]


def main() -> None:
    """Start a node, warm it up, measure, and end it."""

    def say(what: str, *_: int) -> None:
        print(what, flush=True)

    lab_cluster.up(Layout(), 0.0, say)
    try:
        lab = running_lab()
        cluster = cluster_of(lab.layout, lab)
        warm = [Load("read", _LEVEL, clients=max(_CLIENTS))]
        measure(cluster, "warm-up", warm, Bounds(_DURATION_S, 1, _WARM_UP_MOST_S), {}, lambda _: None, say)
        rows = side_by_side(cluster, say)
    finally:
        lab_cluster.down()
    LOAD_TESTS.write(LOAD_TESTS.frame(rows), FOLDER / "runs.csv")


if __name__ == "__main__":
    main()
