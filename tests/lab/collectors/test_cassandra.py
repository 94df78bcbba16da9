"""Rows of collected load: the audit finds nothing wrong in them, and says when the generator was the bottleneck."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from capplan.evidence.audit.audit import audit_load_tests
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.microbenchmarks import MICROBENCHMARKS
from capplan.lab.collectors import cassandra, load
from capplan.lab.collectors.cassandra import About, pool_rows
from capplan.lab.collectors.collector import Settings
from capplan.lab.collectors.load import Part, Run, Sample, doubts
from capplan.lab.layout import Layout
from capplan.lab.state import State

CPU_S = 50e-6  # of a request at the nodes
CORES = 2


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (cassandra, load):
        monkeypatch.setattr(module, "cores", lambda: CORES)
    monkeypatch.setattr(cassandra, "node_cores", lambda: frozenset({0}))
    monkeypatch.setattr(load, "cpu_error_s", lambda: 4e-3)
    monkeypatch.setattr(load, "cpu_quantum_s", lambda: 1e-3)


def run(clients: int | None, rate: float, duration_s: float = 5.0, **changed: Any) -> Run:
    """A run in which each request takes a ms per client, or an exponential time where the load is open."""
    count, random = round(rate * duration_s), np.random.default_rng(1)
    latencies = random.exponential(1e-3, count) if clients is None else np.full(count, clients / rate)
    latencies *= 1 + 1e-3 * random.random(count)
    each = count // 5
    parts = tuple(
        Part(duration_s / 5, each, CPU_S * each * noise, 1e-5 * each, 1e-5 * each) for noise in (1, 0.9, 1.1, 1, 1)
    )
    late = np.full(count, 5e-5) if clients is None else np.array([])
    found = Sample(0.0, duration_s, latencies, late, 0, 1e-5 * count, 1e-5 * count, 0.0, (CPU_S * count,), 0.0, parts)
    offered = rate if clients is None else None
    name = f"open-{rate:.0f}-1" if clients is None else f"closed-{clients}-1"
    return Run(name, clients, offered, 1, replace(found, **changed))


ABOUT = About(
    "cassandra-write",
    "write",
    State(Layout(dcs=2, cass_nodes=3, rf=2), 0.02, "boot", ready=True),
    Settings(level="QUORUM"),
)


def row(of: Run) -> LoadTestRow:
    return ABOUT.row(of, "warm")


def rules(rows: list[LoadTestRow]) -> list[str]:
    return [each.rule for each in audit_load_tests(LOAD_TESTS.frame(rows)).findings]


def test_the_audit_finds_nothing_wrong() -> None:
    runs = [run(1, 900.0), run(4, 3000.0), run(16, 8000.0), run(None, 2000.0), run(None, 6000.0)]
    rows = [row(each) for each in runs]

    assert rules(rows) == []
    assert rows[0].consistency_write == "QUORUM"
    assert rows[0].rtt_ms == 20.0
    assert rows[2].node_cpu_percent == pytest.approx(100 * 8000 * CPU_S)


def test_a_generator_that_was_the_bottleneck_is_flagged() -> None:
    busy = run(16, 8000.0, thread_cpu_s=4.5)
    late = run(None, 2000.0, lateness_s=np.full(10_000, 1e-3))
    none = np.zeros(0)
    slow = run(None, 2000.0, lateness_s=none, paced=True, added_s=1e-4)
    waiting = run(16, 8000.0, lateness_s=none, added_s=1e-4)  # its clients show a throughput, which does not suffer

    assert rules([row(busy)]) == ["generator-ceiling"]
    for each in (busy, late, slow):
        assert any("bottleneck" in doubt for doubt in doubts(each.sample))
        assert row(each).generator_limited
    for each in (run(16, 8000.0), waiting, run(None, 2000.0, lateness_s=none, paced=True, added_s=1e-5)):
        assert doubts(each.sample) == []
        assert not row(each).generator_limited


def test_other_processes_on_the_machine_are_told() -> None:
    disturbed = run(16, 8000.0, others_cores=0.3)
    assert row(disturbed).disturbed
    assert doubts(disturbed.sample)


def test_percentiles_that_rest_on_few_requests_are_left_out() -> None:
    found = row(run(None, 100.0))
    assert (found.latency_p95_ms, found.latency_p99_ms, found.latency_p999_ms) == (None, None, None)
    assert found.latency_p50_ms is not None


def test_what_a_request_costs_is_the_cpu_beyond_idling() -> None:
    rows = list(ABOUT.parts([run(16, 8000.0)], 0.1, "warm"))
    cost = next(each for each in rows if each.component == "nodes")

    idle_s = 0.1 / 8000
    assert cost.value == pytest.approx(CPU_S - idle_s)
    assert cost.error_low is not None
    assert cost.error_high is not None
    # 5 parts with a standard deviation of 7.1 % of 50 us, t = 2.78, and 4 ms of clock in each part of 8000 requests
    half = 2.776 * 0.0707 * CPU_S / 5**0.5 + 4e-3 / 8000
    assert cost.error_high - cost.error_low == pytest.approx(2 * half, rel=1e-2)
    assert len(MICROBENCHMARKS.frame(rows)) == len(rows)


def test_a_full_pool_shows_its_threads_and_the_hand_off() -> None:
    """128 threads that are each held for 100 ms and lose 2 ms in between complete 128 / 0.102 requests per second."""
    rate = 128 / 0.102
    shared: dict[str, Any] = {"load_kind": "closed", "cass_nodes": 1}
    few = LoadTestRow(clients=16, throughput_tps=160.0, latency_mean_ms=100.0, **shared)
    full = [LoadTestRow(clients=n, throughput_tps=rate, latency_mean_ms=1000 * n / rate, **shared) for n in (192, 256)]

    threads, said, seen, hand_off = pool_rows([few, *full], 128, "5.0")

    assert threads.value == pytest.approx(rate * 0.1)
    assert hand_off.value == pytest.approx(2e-3)
    assert [said.component, seen.component] == ["predicted", "measured"]
    assert [said.value, seen.value] == pytest.approx([1280.0, rate])
