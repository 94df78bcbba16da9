"""Load tests that a two-tier system with known parameters would measure, without scatter."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from capplan.calibration.tables.solved_rows import solved_rows
from capplan.evidence.load_test_row import LoadTestRow
from capplan.models.language.parameter import Values, defaults
from capplan.systems.two_tier import SYSTEM

QUANTITIES = ("throughput_tps", "latency_mean_ms", "latency_p95_ms")


def layout(**fields: object) -> LoadTestRow:
    """Return a row without figures."""
    usual = {
        "dcs": 1,
        "cass_nodes": 3,
        "node_cores": 8,
        "rf": 3,
        "front_nodes": 2,
        "front_cores": 8,
        "read_fraction": 1.0,
        "load_kind": "closed",
        "clients": 64,
    }
    return LoadTestRow(**{**usual, **fields})  # type: ignore[arg-type]  # fields by name


def measured(rows: Sequence[LoadTestRow], values: Values | None = None, scatter: float = 0.0) -> list[LoadTestRow]:
    """Return rows with the figures of a system; `scatter` is the standard deviation of their logarithms."""
    truth = {**defaults(SYSTEM.parameters), **(values or {})}
    named = [replace(row, run_id=str(number)) for number, row in enumerate(rows)]
    solved = solved_rows(SYSTEM, SYSTEM.read(named), truth, [QUANTITIES] * len(rows))
    random = np.random.default_rng(1)
    found = []
    for row, each in zip(named, solved, strict=True):
        figures: Any = {
            name: float(each.figures[name][0] * np.exp(scatter * random.standard_normal())) for name in QUANTITIES
        }
        found.append(replace(row, **figures))
    return found
