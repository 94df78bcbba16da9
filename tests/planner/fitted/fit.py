"""Fit the small files that random questions ask about, with few draws: `python tests/planner/fitted/fit.py`.

`two-dcs` and `three-dcs` are of made-up clusters whose parameters are the prior medians; the others are of published
tables.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from capplan.calibration.tables.fit_table import fit_table
from capplan.calibration.tables.solved_rows import solved_rows
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.row_choice import chosen_rows
from capplan.layout.fitted_file import Fitted, to_json
from capplan.layout.table_system import TableSystem
from capplan.models.language.parameter import defaults
from capplan.systems.registry import system

HERE = Path(__file__).parent
TABLES = HERE.parents[1] / "published" / "load_tests"
DRAWS = 64
_QUANTITIES = ("throughput_tps", "latency_mean_ms", "latency_p99_ms")

PUBLISHED = {
    "replicas": ("cassandra", "cassandra_azure_rf_writes", None),
    "versions": ("cassandra", "cassandra_v4_v5_load_curves", None),
    "mixed": ("cassandra", "cassandra_azure_rf_cl_reads_mixed", None),
    "etcd": ("two-tier", "etcd_clients", "version == '2.2.0' and request_class == 'write at the leader'"),
    "tidb": ("two-tier", "tidb_aws", "version == 'v3.0.0' and request_class == 'point_select'"),
}
"""System, table and kept rows of each file."""


def published(name: str) -> Fitted:
    """Fit a published table."""
    of, table, kept = PUBLISHED[name]
    frame = LOAD_TESTS.read(TABLES / f"{table}.csv")
    rows = frame if kept is None else frame[chosen_rows(frame, kept)]
    return fit_table(_system(of), list(LOAD_TESTS.rows(rows)))


def made_up(dcs: int) -> Fitted:
    """Fit rows of a cluster of several data centres, reads and writes at open rates and two levels."""
    its, usual = _system("cassandra"), {"dcs": dcs, "cass_nodes": 4, "rf": 3, "rtt_ms": 8.0, "load_kind": "open"}
    rows = [
        LoadTestRow(
            run_id=f"{level} {reads} {rate}",
            read_fraction=reads,
            offered_tps=rate,
            request_class="all",
            **{**usual, "consistency_read": level, "consistency_write": level},  # type: ignore[arg-type]  # fields by name
        )
        for level, reads, rate in product(("LOCAL_QUORUM", "QUORUM"), (0.0, 0.5), (2000.0, 6000.0, 12000.0))
    ]
    values = defaults(its.parameters)
    solved = solved_rows(its, its.read(rows), values, [_QUANTITIES] * len(rows))
    figures: list[dict[str, Any]] = [{name: float(each.figures[name][0]) for name in _QUANTITIES} for each in solved]
    return fit_table(its, [replace(row, **each) for row, each in zip(rows, figures, strict=True)])


def _system(name: str) -> TableSystem[Any]:
    found = system(name)
    assert isinstance(found, TableSystem)
    return found


def write(name: str, fitted: Fitted) -> None:
    """Write a fitted file with few draws, and few digits of each."""
    kept = fitted.draws[:: max(len(fitted.draws) // DRAWS, 1)][:DRAWS]
    few = replace(fitted, draws=tuple(tuple(float(f"{each:.5g}") for each in draw) for draw in kept))
    (HERE / f"{name}.json").write_text(json.dumps(to_json(few)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for each in PUBLISHED:
        write(each, published(each))
    write("two-dcs", made_up(2))
    write("three-dcs", made_up(3))
