"""Pauses of the fitted runs of a live validation: taken together, and what they say of other layouts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.evidence.load_test_row import LoadTestRow
from capplan.lab.collectors.cassandra import pauses_s
from capplan.models.cassandra.pauses import NO_PAUSES, parse_pauses, pooled, recorded
from capplan.planner.live.node_pauses import with_pauses

LOG = """[2026-11-26T05:10:00.000+0000][0.008s] Using G1
[2026-11-26T05:10:10.500+0000][10.508s] GC(3) Pause Young (Normal) (G1 Evacuation Pause) 395M->89M(512M) 2.500ms
[2026-11-26T05:10:11.000+0000][11.008s] GC(4) Concurrent Mark Cycle 30.100ms
[2026-11-26T05:10:12.000+0000][12.008s] GC(4) Pause Remark 101M->101M(512M) 4.000ms
[2026-11-26T05:10:30.000+0000][30.008s] GC(5) Pause Young (Normal) (G1 Evacuation Pause) 395M->89M(512M) 9.000ms
"""
BEGAN_S = 1795669810.0  # 2026-11-26 05:10:10 UTC


def test_pauses_of_a_run_are_those_of_its_time(tmp_path: Path) -> None:
    log = tmp_path / "gc.log"
    log.write_text(LOG, encoding="utf-8")
    assert pauses_s(log, BEGAN_S, BEGAN_S + 10) == [0.0025, 0.004]
    assert pauses_s(log) == [0.0025, 0.004, 0.009]
    assert pauses_s(tmp_path / "none") == []


@given(st.lists(st.lists(st.floats(1e-3, 0.1), max_size=5), min_size=1, max_size=5), st.floats(100.0, 1e4))
def test_runs_taken_together_have_the_pauses_of_one_long_run(runs: list[list[float]], rate: float) -> None:
    times, rates = [10.0 + number for number in range(len(runs))], [rate + number for number in range(len(runs))]
    records = [recorded(each, time_s, sent) for each, time_s, sent in zip(runs, times, rates, strict=True)]
    whole = recorded([length for each in runs for length in each], sum(times), float(np.average(rates, weights=times)))
    found = pooled(records, times, rates)
    assert found.count == whole.count
    assert found.share == pytest.approx(whole.share)
    assert found.mean_s == pytest.approx(whole.mean_s)
    if whole.count:
        assert found.sd_s == pytest.approx(whole.sd_s, abs=1e-6)
        assert found.rate_per_s == pytest.approx(whole.rate_per_s)
    assert parse_pauses(str(found)).count == found.count


def row(nodes: int, rf: int, level: str, **cells: Any) -> LoadTestRow:
    """Writes on a layout."""
    known = {"system": "cassandra", "cass_nodes": nodes, "rf": rf, "node_cores": 1.0, "request_class": "write"}
    load = {"load_kind": "open", "read_fraction": 0.0, "consistency_write": level, "one_host": nodes > 1}
    return LoadTestRow(**{**known, **load, "offered_tps": 1000.0, **cells})


def test_pauses_grow_with_the_replicas_that_a_node_has_work_for() -> None:
    """Each node of three with three replicas works on every write, as the one node does."""
    known = row(1, 1, "LOCAL_ONE", throughput_tps=2000.0, duration_s=10.0, gc="0.4%@5ms sd=1ms n=8 rate=2000/s")
    same, three, reads = with_pauses(
        [row(1, 1, "LOCAL_ONE"), row(3, 3, "QUORUM"), row(3, 3, "QUORUM", request_class="read")], [known]
    )
    assert parse_pauses(str(same.gc)).rate_per_s == pytest.approx(2000.0)
    assert parse_pauses(str(three.gc)).rate_per_s == pytest.approx(2000.0 / 3)  # so many are sent per node
    assert parse_pauses(str(three.gc)).share == pytest.approx(0.004)
    assert reads.gc is None


def test_without_a_pause_there_is_none_elsewhere() -> None:
    known = row(1, 1, "LOCAL_ONE", throughput_tps=2000.0, duration_s=10.0, gc=NO_PAUSES)
    assert with_pauses([row(3, 3, "QUORUM")], [known])[0].gc == NO_PAUSES
