"""capplan's experiments by one worker and by two: threads, processes, and a Dask cluster of this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import networks
import pyarrow as pa
from settings import MM4_SERVERS, MM4_SERVICE_S

from capplan.simulator.compiled.engine import simulate
from capplan.simulator.experiments import executors
from capplan.simulator.experiments.experiment import Configuration, Experiment, Rows, perform

KINDS: dict[str, Callable[[int], executors.Executor]] = {
    "threads": executors.threads,
    "processes": executors.processes,
    "Dask on this machine": lambda workers: executors.dask("local", workers),
}
WORKERS = (1, 2)
LOADS, REPLICATIONS = (0.5, 0.6, 0.7, 0.8, 0.9), 8
TURNS = 3
SCHEMA = pa.schema([("mean_s", pa.float64()), ("p99_s", pa.float64())])
Subject = tuple[float, int]


def replications(requests: int, _: int) -> dict[str, Any]:
    """M/M/4 at five loads, eight replications of that many requests each: seconds of each executor in each turn.

    All workers are there from the start and take turns; the first turn, in which they import and load what was
    compiled, is not counted. Results that differ between executors are an error.
    """
    seconds: dict[str, dict[int, list[float]]] = {kind: {count: [] for count in WORKERS} for kind in KINDS}
    found = []
    with ExitStack() as stack:
        opened = [(kind, count, stack.enter_context(make(count))) for kind, make in KINDS.items() for count in WORKERS]
        for turn in range(TURNS + 1):
            for kind, count, executor in opened:
                start = time.perf_counter()
                found.append(_performed(executor, requests))
                if turn:
                    seconds[kind][count].append(time.perf_counter() - start)
    if any(each != found[0] for each in found):
        raise RuntimeError("results depend on the executor")
    return {"requests": requests, "replications": len(LOADS) * REPLICATIONS, "executors": seconds}


def _performed(executor: executors.Executor, requests: int) -> dict[str, list[Rows]]:
    cases = [Configuration(f"{load}", (load * MM4_SERVERS / MM4_SERVICE_S, requests)) for load in LOADS]
    return {case.key: rows for case, rows in perform(Experiment(_replication, _wanted, SCHEMA), cases, executor)}


def _replication(subject: Subject, number: int) -> Rows:
    rate_per_s, requests = subject
    run = simulate(networks.mm4(rate_per_s), requests / rate_per_s, seed=1, replication=number)
    return [{"mean_s": run.latency_mean_s("request"), "p99_s": run.latency_quantile_s(0.99, "request")}]


def _wanted(_: Subject, __: Sequence[Rows]) -> int:
    return REPLICATIONS
