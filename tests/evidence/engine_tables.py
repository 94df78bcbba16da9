"""Clean load-test tables, measured on the engine: two classes, open and closed, several loads, with repeats."""

from collections.abc import Iterator

import pandas as pd

from capplan.evidence.load_test_row import ALL, PERCENTILES, LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.models.language.distribution import Deterministic, Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Station
from capplan.models.language.step import Visit
from capplan.models.language.traffic import Closed, Open, RequestClass
from capplan.simulator.engine import simulate
from capplan.simulator.results.run import Run

SERVERS, READ_S, WRITE_S = 4, 0.002, 0.003
CAPACITY_TPS = 2 * SERVERS / (READ_S + WRITE_S)
MIX = {"read": 0.5, "write": 0.5}
REQUESTS = 22_000


def clean_table(seed: int) -> pd.DataFrame:
    """A table without a fault: open runs at a quarter to nine tenths of the capacity, and closed ones, twice each."""
    return LOAD_TESTS.frame(row for runs in (_open(seed), _closed(seed)) for row in runs)


def _open(seed: int) -> Iterator[LoadTestRow]:
    for number, share in enumerate((0.25, 0.5, 0.9)):
        rate = share * CAPACITY_TPS
        duration_s = REQUESTS / rate
        for repeat in (1, 2):
            run = _run(Open(rate, MIX), duration_s, seed, 10 * number + repeat)
            yield from _rows(run, f"open-{number}", repeat, duration_s, load_kind="open", offered_tps=rate)


def _closed(seed: int) -> Iterator[LoadTestRow]:
    for clients in (3, 16):
        duration_s = REQUESTS / min(CAPACITY_TPS, 2 * clients / (READ_S + WRITE_S))
        for repeat in (1, 2):
            run = _run(Closed(clients, Deterministic(1e-6), MIX), duration_s, seed, 100 * clients + repeat)
            yield from _rows(run, f"closed-{clients}", repeat, duration_s, load_kind="closed", clients=clients)


def _run(traffic: Open | Closed, duration_s: float, seed: int, number: int) -> Run:
    classes = (
        RequestClass("read", Visit("server", Exponential(READ_S))),
        RequestClass("write", Visit("server", Exponential(WRITE_S))),
    )
    network = Network("clean", (Station("server", SERVERS),), classes, traffic)
    return simulate(network, duration_s + 1, seed=seed, replication=number, warmup_s=1)


def _rows(run: Run, name: str, repeat: int, duration_s: float, **load: object) -> Iterator[LoadTestRow]:
    for request_class in (None, "read", "write"):
        latency = run.report(request_class).latency()
        cells: dict[str, object] = dict(load)
        if request_class and "offered_tps" in load:
            cells["offered_tps"] = MIX[request_class] * float(str(load["offered_tps"]))
        yield LoadTestRow(
            run_id=name,
            repeat=repeat,
            request_class=request_class or ALL,
            duration_s=duration_s,
            throughput_tps=run.throughput_per_s(request_class),
            latency_mean_ms=1000 * latency.mean_s,
            latency_max_ms=1000 * latency.max_s,
            **{name: 1000 * latency.quantile_s(p) for name, p in PERCENTILES.items()},  # type: ignore[arg-type]  # by name
            **cells,  # type: ignore[arg-type]  # cells of several types by their name
        )
