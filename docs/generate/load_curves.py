"""Published load curves for the accuracy page, fitted by lanes and by one pooled station."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from fitted_load_curve import LoadCurve, fit_load_curve

from capplan.models.language.units import FloatArray

PUBLISHED = Path(__file__).resolve().parents[2] / "tests" / "published"
STATEMENTS = {"read_write": 20}  # of one transaction; others have one


@dataclass(frozen=True)
class Curve:
    """A published curve: throughput against the number of clients."""

    name: str
    clients: list[int]
    throughput_per_s: FloatArray


def curves() -> Iterator[Curve]:
    """Yield the curves of both tables; TiDB's throughput is in transactions."""
    cassandra = pd.read_csv(PUBLISHED / "cassandra_v4_v5_load_curves.csv", comment="#")
    for (campaign, version, operation, level, compaction), rows in cassandra.groupby(
        ["campaign", "version", "op", "cl", "compaction"], sort=False
    ):
        name = f"Cassandra {version} {operation} {level} {compaction} ({campaign})"
        yield Curve(name, rows.client_threads.tolist(), rows.ops_per_s.to_numpy(dtype=float))
    tidb = pd.read_csv(PUBLISHED / "tidb_load_curves.csv", comment="#")
    for (place, version, workload), rows in tidb.groupby(["env", "version", "workload"], sort=False):
        throughput = rows.qps.to_numpy(dtype=float) / STATEMENTS.get(str(workload), 1)
        yield Curve(f"TiDB {version} {workload} ({place})", rows.threads.tolist(), throughput)


def pooled_errors(curve: Curve) -> FloatArray:
    """Return the relative errors if all time passes at one station with the servers that fit best.

    Such a station completes min(clients, servers) / time: exact with closed clients and no think time.
    """
    found = []
    for servers in np.geomspace(1, max(curve.clients), 2000):
        completed = np.minimum(curve.clients, servers)
        ratio = np.log(completed / curve.throughput_per_s)
        found.append(ratio - ratio.mean())
    return np.expm1(min(found, key=lambda errors: float(errors @ errors)))


def errors(curve: Curve, fitted: LoadCurve) -> FloatArray:
    """Return the relative errors of a fit's throughput."""
    return np.asarray(fitted.throughput_per_s(curve.clients)[:, 0] / curve.throughput_per_s - 1)


def table() -> str:
    """Return the largest errors of both fits, curve by curve."""
    lines = ["| curve | clients | lanes | share in lanes | lanes: largest error | one station: largest error |"]
    lines.append("| --- | --- | ---: | ---: | ---: | ---: |")
    for curve in curves():
        fitted = fit_load_curve(curve.clients, curve.throughput_per_s.tolist())
        share = float(fitted.lane_s / (fitted.lane_s + fitted.delay_s))
        worst = [float(np.max(np.abs(each))) for each in (errors(curve, fitted), pooled_errors(curve))]
        clients = f"{min(curve.clients)} to {max(curve.clients):,}"
        lines.append(f"| {curve.name} | {clients} | {fitted.lanes} | {share:.0%} | {worst[0]:.1%} | {worst[1]:.1%} |")
    return "\n".join(lines)
