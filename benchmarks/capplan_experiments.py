"""capplan's experiments by one worker and by two: threads, processes, and a Dask cluster of this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import networks
from settings import MM4_SERVERS, MM4_SERVICE_S

from capplan.simulator.compiled.engine import simulate
from capplan.simulator.dask_cluster import dask
from capplan.simulator.experiment import Configuration, Experiment, Rows, perform
from capplan.simulator.workers import Workers, processes, threads

KINDS: dict[str, Callable[[int], AbstractContextManager[Workers]]] = {
    "threads": threads,
    "processes": processes,
    "Dask on this machine": lambda count: dask("local", count),
}
WORKERS = (1, 2)
LOADS, REPLICATIONS = (0.5, 0.6, 0.7, 0.8, 0.9), 8
TURNS = 3
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
            for kind, count, workers in opened:
                start = time.perf_counter()
                found.append(_performed(workers, requests))
                if turn:
                    seconds[kind][count].append(time.perf_counter() - start)
    if any(each != found[0] for each in found):
        raise RuntimeError("results depend on the executor")
    return {"requests": requests, "replications": len(LOADS) * REPLICATIONS, "executors": seconds}


def _performed(workers: Workers, requests: int) -> dict[str, list[Rows]]:
    cases = [Configuration(f"{load}", (load * MM4_SERVERS / MM4_SERVICE_S, requests)) for load in LOADS]
    return {case.key: rows for case, rows in perform(Experiment(_replication, _wanted), cases, workers)}


def _replication(subject: Subject, number: int) -> Rows:
    rate_per_s, requests = subject
    run = simulate(networks.mm4(rate_per_s), requests / rate_per_s, seed=1, replication=number)
    return [{"mean_s": run.latency_mean_s("request"), "p99_s": run.latency_quantile_s(0.99, "request")}]


def _wanted(_: Subject, __: Sequence[Rows]) -> int:
    return REPLICATIONS
