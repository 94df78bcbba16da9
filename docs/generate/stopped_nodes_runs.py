"""Measure whom a pause of a node holds, for docs/reference/stopped-nodes.md.

Run on a quiet machine with two cores, as root so that stops are on time:
`uv run --extra lab python docs/generate/stopped_nodes_runs.py [--minutes N]`. It says first how long it takes. It keeps
each run as it comes and goes on with those that are missing; with `--minutes` it ends between two runs. It starts a lab
of its own, and ends it.

First come runs without stops, which the model is fitted to; then the predictions, with their hash in the journal;
then the runs with stops, in each group between runs without. A process with the priority of real time stops the
nodes. Nodes and generator share all cores. Java compiles with C1 only, which is steady after ten seconds; the same
warm-up comes first at each start. Nodes choose replicas in a fixed order, without the dynamic snitch.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, replace
from itertools import count, product
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from stopped_nodes import (
    CALIBRATION,
    CLIENTS,
    FITTED_REPEATS,
    FITTED_S,
    FOLDER,
    JOURNAL,
    LEVELS,
    NODES,
    PAGE,
    POLICIES,
    PREDICTED,
    THINK_S,
    Planned,
    add,
    page,
    plan,
    runs_left,
    stops_s,
    write_predictions,
)

from capplan.errors import InputError
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.lab import cluster as lab_cluster
from capplan.lab.cluster import KEYSPACE, session
from capplan.lab.collectors.cassandra import ROWS, Client, Load, RunningCluster, Table, cluster_of, running_lab
from capplan.lab.collectors.cql import Asked, FailedError, Flow
from capplan.lab.collectors.load import Run, Sample, machine_cpu_s
from capplan.lab.collectors.runs_in_turn import seed_of
from capplan.lab.layout import Layout
from capplan.lab.processes import USABLE_CORES, Process, move, send

ROW_BYTES, FULL_CLIENTS, SEED = 100, 24, 1
WARM_UP_S, PAUSE_S, START_S = 30.0, 1.0, 60.0
_SNITCH = "dynamic_snitch"
_JAVA = f"-XX:TieredStopAtLevel=1 -Dcassandra.config.allow_system_properties=true -Dcassandra.settings.{_SNITCH}=false"
_NO_RETRIES = " WITH speculative_retry = 'NEVER'"


def _say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


# -- stops


def _stop(
    nodes: Sequence[Process], starts_s: Sequence[Sequence[float]], length_s: float, began: float, to: Pipe
) -> None:
    """Stop nodes at their times, and send how long each stop took, by node."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    events = [(at + end, node, bool(end)) for node, own in enumerate(starts_s) for at in own for end in (0.0, length_s)]
    since, took = [0.0] * len(nodes), [list[float]() for _ in nodes]
    try:
        for at, node, ends in sorted(events):
            time.sleep(max(0.0, began + at - time.perf_counter()))
            send(nodes[node], signal.SIGCONT if ends else signal.SIGSTOP)
            now = time.perf_counter()
            if ends:
                took[node].append(now - since[node])
            since[node] = now
    finally:
        for each in nodes:
            send(each, signal.SIGCONT)
    to.send(took)


@contextmanager
def _stopping(nodes: Sequence[Process], run: Planned) -> Iterator[Callable[[], list[list[float]]]]:
    """Stop nodes beside the block, whose function returns how long each stop took; no node stays stopped."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    schedule = stops_s(run, seed_of(run.name))
    stopper = context.Process(target=_stop, args=(nodes, schedule, run.length_s, time.perf_counter(), there))
    stopper.start()
    there.close()  # so that nobody waits for a stopper that has ended
    try:
        yield here.recv
    finally:
        stopper.terminate()
        stopper.join()
        for each in nodes:
            send(each, signal.SIGCONT)


# -- the load


class Generator:
    """Closed clients that read rows, and the cluster that they read from."""

    def __init__(self, client: Client, cluster: RunningCluster) -> None:
        self.client, self.cluster = client, cluster
        self.table = Table(f"{KEYSPACE}.stopped", ROW_BYTES, ROWS, _NO_RETRIES)
        client.create(self.table.creation)
        self.table.fill(client, "ALL", SEED)
        self._selections = {level: self.table.selection(client, level) for level in LEVELS}
        self._keys = random.Random(SEED).sample(range(ROWS), ROWS)  # noqa: S311  # keys of rows
        self._replicas = client.replicas(self._keys)

    def sample(self, level: str, policy: str, clients: int, think_s: float, duration_s: float, seed: int) -> Sample:
        """Run closed clients.

        Round-robin takes the nodes in turn; token-aware is the first replica of the row.
        """
        numbers, thinks = count(), random.Random(seed)  # noqa: S311  # times to think
        nodes, selection = self.client.connections, self._selections[level]
        until = time.perf_counter() + duration_s

        def flow() -> Flow:
            while (due := time.perf_counter() + (thinks.expovariate(1 / think_s) if think_s else 0.0)) < until:
                yield due
                number = next(numbers)
                place = number % ROWS
                to = self._replicas[place][0] if policy == POLICIES[1] else nodes[number % len(nodes)]
                with suppress(FailedError):
                    yield Asked(to, selection, self._keys[place], needs_row=True)

        return self.client.loop.run([(0.0, flow()) for _ in range(clients)], duration_s)

    def row(
        self, name: str, repeat: int, level: str, policy: str, think_s: float, sample: Sample, clients: int
    ) -> LoadTestRow:
        """Return a run as a row of a load-test table."""
        columns = {
            **self.cluster.row(Load("read", level, ROW_BYTES, clients)),
            "think_time_ms": 1e3 * think_s,
            "token_aware": policy == POLICIES[1],
            "gc": self.cluster.pauses(sample),
        }
        return Run(name, clients, None, repeat, sample).row(columns, [])

    def measured(self, run: Planned) -> dict[str, Any]:
        """Make a run of the plan and return its cells."""
        nodes = self.cluster.servers.nodes
        asked = (run.level, run.policy, CLIENTS, THINK_S)
        time.sleep(PAUSE_S)
        used_s, began = machine_cpu_s(), time.perf_counter()
        with _stopping(nodes, run) as stopped:
            sample = self.sample(*asked, run.duration_s, seed_of(run.name))
            took_s = stopped()
        busy = (machine_cpu_s() - used_s) / (time.perf_counter() - began) / len(USABLE_CORES)
        row = self.row(run.name, run.repeat, run.level, run.policy, THINK_S, sample, CLIENTS)
        errors_ms = [1e3 * (each - run.length_s) for own in took_s for each in own]
        shares = [sum(own) / run.duration_s for own in took_s]
        return {
            **{name: cell for name, cell in asdict(row).items() if cell is not None},
            "latency_p999_ms": 1e3 * float(np.quantile(sample.latencies_s, 0.999)),  # of some 45 requests beyond it
            "host_busy": busy,
            "stops": len(errors_ms),
            "stopped_share": fmean(shares),
            "stopped_shares": shares,
            "longest_error_ms": max(errors_ms, key=abs, default=0.0),
        }


def _fitted_runs() -> list[tuple[str, str, str, int, int, float]]:
    """Return name, level, policy, repeat, clients and think time of each run that the model is fitted to."""
    cells = [(*each, CLIENTS, THINK_S) for each in product(LEVELS, POLICIES)]
    cells += [(level, POLICIES[0], FULL_CLIENTS, 0.0) for level in LEVELS]
    return [
        (f"{level.lower()}-{policy}-{clients}-think-{1e3 * think:g}ms-{repeat}", level, policy, repeat, clients, think)
        for repeat in range(1, FITTED_REPEATS + 1)
        for level, policy, clients, think in cells
    ]


def _calibrate(generator: Generator, folder: Path, ends: float) -> bool:
    """Make the runs that are missing for the fit; return whether all are there."""
    file = folder / CALIBRATION
    rows = list(LOAD_TESTS.rows(LOAD_TESTS.read(file))) if file.is_file() else []
    for name, level, policy, repeat, clients, think_s in _fitted_runs():
        if any(each.run_id == name for each in rows):
            continue
        if time.monotonic() + FITTED_S > ends:
            return False
        time.sleep(PAUSE_S)
        sample = generator.sample(level, policy, clients, think_s, FITTED_S, seed_of(name))
        rows.append(generator.row(name, repeat, level, policy, think_s, sample, clients))
        LOAD_TESTS.write(LOAD_TESTS.frame(rows), file)
        _say(f"{name}: {sample.throughput_per_s:,.0f}/s, {1e3 * sample.latencies_s.mean():.2f} ms")
    return True


def _measure(generator: Generator, folder: Path, ends: float) -> None:
    """Warm up, calibrate, predict, and make the runs that are missing, until there is no time for the next."""
    for level in LEVELS:
        generator.sample(level, POLICIES[0], FULL_CLIENTS, 0.0, WARM_UP_S, SEED)
    if not _calibrate(generator, folder, ends):
        return
    _say(f"SHA-256 of the predictions: {write_predictions(folder)}")
    for run in runs_left(folder):
        if time.monotonic() + run.duration_s > ends:
            return
        cells = generator.measured(run)
        add(folder, run, cells)
        shown = (
            "throughput_tps",
            "latency_p99_ms",
            "host_busy",
            "stops",
            "stopped_share",
            "longest_error_ms",
            "errors",
        )
        _say(f"{run.name}: {', '.join(f'{each} {cells.get(each, 0):.4g}' for each in shown)}")


def seconds_left(folder: Path) -> float:
    """Return how long the missing runs take."""
    planned = runs_left(folder) if (folder / JOURNAL).is_file() else plan()
    fitted = 0 if (folder / PREDICTED).is_file() else len(_fitted_runs())
    runs_s = sum(each.duration_s for each in planned) + fitted * FITTED_S
    return START_S + len(LEVELS) * WARM_UP_S + runs_s + PAUSE_S * (len(planned) + fitted)


def _settings() -> Mapping[str, str]:
    with session(running_lab().layout) as cql:
        return {each.name: each.value for each in cql.execute("SELECT name, value FROM system_views.settings")}


def _on_a_lab(folder: Path, ends: float) -> None:
    """Start a lab, measure what is missing, and end the lab."""
    os.environ["JAVA_TOOL_OPTIONS"] = _JAVA
    lab_cluster.up(Layout(cass_nodes=NODES, rf=NODES, collector="serial"), 0.0, lambda what, *_: _say(what))
    try:
        lab = running_lab()
        if _settings()[_SNITCH] != "false":
            raise InputError("the nodes have a dynamic snitch, which sends reads away from a stopped node")
        for each in lab.alive.values():
            move(each, USABLE_CORES)
        seen = cluster_of(lab.layout, lab)
        cluster = replace(seen, source="docs/generate/stopped_nodes_runs.py", node_cores=float(len(USABLE_CORES)))
        with closing(Client(cluster)) as client:
            client.loop.sharing = True
            _measure(Generator(client, cluster), folder, ends)
    finally:
        lab_cluster.down()


def main() -> None:
    """Measure what is missing, and write the page."""
    parser = argparse.ArgumentParser(description="Measure whom a pause of a node holds.")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="end between two runs before that")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the runs are kept")
    asked = parser.parse_args()
    folder, ends = asked.folder, time.monotonic() + 60 * asked.minutes
    folder.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if not (folder / JOURNAL).is_file() or runs_left(folder):
        _say(f"the missing runs take {seconds_left(folder) / 60:.0f} minutes")
        _on_a_lab(folder, ends)
    if folder == FOLDER and (folder / JOURNAL).is_file():
        PAGE.write_text(page(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
