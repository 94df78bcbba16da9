"""Clusters that are drawn from the priors, load tests of them, and how well a fit predicts what it has not seen."""

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from capplan.calibration.tables.fit_table import fit_table
from capplan.calibration.tables.row_predictions import predict_table
from capplan.calibration.tables.solved_rows import solved_rows
from capplan.evidence.load_test_row import Level, LoadTestRow
from capplan.layout.table_components import LayoutFactors
from capplan.layout.table_rows import MEAN, THROUGHPUT
from capplan.models.language.parameter import defaults
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.systems.cassandra import SYSTEM
from capplan.systems.cassandra.priors import PARAMETERS

NOISE = 0.04
"""Scatter of a repeat, as the standard deviation of the logarithm."""
_HELD_APART = ("contention", "tls_factor", "wan_extra", "kib_share", "cold_s")


@dataclass(frozen=True)
class Outcome:
    """What a fit made of one cluster: which unseen figures were in their bands, and their errors."""

    held: list[bool]
    errors: list[float]


def truth(random: np.random.Generator) -> dict[str, float]:
    """Return parameter values drawn from the priors, at a random time scale."""
    scale = float(np.exp(0.5 * random.standard_normal()))
    found = {name: float(np.asarray(value)) for name, value in defaults(PARAMETERS).items()}
    for each in PARAMETERS:
        if each.free and each.name not in _HELD_APART:
            size = scale if each.unit == "s" else 1.0
            found[each.name] = each.value * size * float(np.exp(each.log_sd * random.standard_normal()))
    found["unseen_work"] = float(np.clip(found["unseen_work"], 0.7, 12))
    found["generator_s"] = min(found["generator_s"], 0.1 * found["delay_s"])
    return found


def load_tests(values: dict[str, float], random: np.random.Generator) -> tuple[list[LoadTestRow], list[LoadTestRow]]:
    """Return rows of load tests to fit, and rows beyond them: more clients, more replicas."""
    nodes, cores = int(random.choice([5, 6, 9])), int(random.choice([4, 8, 16]))
    reads = float(random.choice([0.0, 0.0, 0.5, 1.0]))
    usual = LoadTestRow(
        cass_nodes=nodes,
        node_cores=cores,
        read_fraction=reads,
        token_aware=bool(random.random() < 0.5),
        load_kind="closed",
        request_class="all",
    )
    level: Level = "LOCAL_ONE" if random.random() < 0.5 else "LOCAL_QUORUM"
    usual = replace(usual, consistency_read=level, consistency_write=level)
    trained, unseen = (1, 2, 3), (4, 5)
    full = _saturating(replace(usual, rf=3, clients=1), values)
    shares = (0.1, 0.3, 0.6, 1.0, 1.5)[: int(random.integers(4, 6))]
    rows = [replace(usual, rf=rf, clients=max(round(full * share), 1)) for rf in trained for share in shares]
    others = [replace(usual, rf=rf, clients=max(round(full * share), 1)) for rf in unseen for share in (0.3, 1.0, 2.5)]
    others += [replace(usual, rf=rf, clients=round(full * 3) + 1) for rf in trained]
    effects = {
        rf: np.exp([each * random.standard_normal() for each in SYSTEM.component(LayoutFactors).log_sd.values()])
        for rf in range(1, 6)
    }
    measured = [_measured(row, values, effects[cast("int", row.rf)], random) for row in (*rows, *others)]
    return measured[: len(rows)], measured[len(rows) :]


def _saturating(row: LoadTestRow, values: dict[str, float]) -> float:
    """Return the number of clients that keep a cluster full if none of them waits."""
    analysis = Analysis(SYSTEM.network(SYSTEM.read([row])[0].layout, values, 1.0))
    return float(analysis.drift_per_s[0] * analysis.averaged(analysis.unloaded)[0])


def _measured(
    row: LoadTestRow, values: dict[str, float], effects: FloatArray, random: np.random.Generator
) -> LoadTestRow:
    own = cast(
        "dict[str, float]",
        SYSTEM.component(LayoutFactors).applied(
            values, dict(zip(SYSTEM.component(LayoutFactors).log_sd, effects.tolist(), strict=True))
        ),
    )
    read = SYSTEM.read([row])[0]
    wanted = [THROUGHPUT, MEAN, "latency_p50_ms", "latency_p95_ms"]
    figures = {name: float(each[0]) for name, each in solved_rows(SYSTEM, [read], own, [wanted])[0].figures.items()}
    speed = float(np.exp(NOISE * random.standard_normal()))
    noisy = {THROUGHPUT: figures[THROUGHPUT] / speed, MEAN: figures[MEAN] * speed}
    for name in ("latency_p50_ms", "latency_p95_ms"):
        sd = NOISE * (1.5 if name == "latency_p95_ms" else 1.0)
        noisy[name] = figures[name] * float(np.exp(sd * random.standard_normal()))
    return replace(row, **cast("dict[str, Any]", noisy))


def outcome(seed: int) -> Outcome:
    """Draw a cluster, fit it to its load tests, and compare what the fit says of unseen rows."""
    random = np.random.default_rng(seed)
    values = truth(random)
    rows, others = load_tests(values, random)
    fitted = fit_table(SYSTEM, rows, seed=seed)
    held, errors = [], []
    for each in predict_table(SYSTEM, fitted, others):
        if each.measured is not None:
            band = each.predicted
            held.append(bool(band.low <= each.measured <= band.high))
            errors.append(abs(band.value / each.measured - 1))
    return Outcome(held, errors)
