"""Clusters that are drawn from the priors, load tests of them, and how well a fit predicts what it has not seen.

Run it for the figures of many clusters: `python tests/systems/cassandra/made_up_clusters.py 200`.
"""

import sys
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from capplan.calibration.tables.fit_table import fit_table, predict_table
from capplan.calibration.tables.model import solved_rows
from capplan.calibration.tables.rows import MEAN, THROUGHPUT, TableRow
from capplan.evidence.load_tests import Level, LoadTestRow
from capplan.models.language.distribution import Deterministic
from capplan.models.language.parameter import defaults
from capplan.models.language.traffic import Closed
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.simulator.engine import simulate
from capplan.systems.cassandra import SYSTEM
from capplan.systems.cassandra.network import PARAMETERS

NOISE = 0.04
"""Scatter of a repeat, as the standard deviation of the logarithm."""
_REQUESTS = 40_000  # of a simulated row
_HELD_APART = ("contention", "tls_factor", "second_trip", "kib_share", "cold_s")


@dataclass(frozen=True)
class Outcome:
    """What a fit made of one cluster: what was in its band, and the errors and widths of unseen figures."""

    parameters: list[bool]
    held: list[bool]
    errors: list[float]
    widths: list[float]


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


def load_tests(
    values: dict[str, float], random: np.random.Generator, *, simulated: bool
) -> tuple[list[LoadTestRow], list[LoadTestRow]]:
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
    effects = {rf: np.exp([each * random.standard_normal() for each in SYSTEM.effects.values()]) for rf in range(1, 6)}
    measured = [_measured(row, values, effects[cast("int", row.rf)], random, simulated) for row in (*rows, *others)]
    return measured[: len(rows)], measured[len(rows) :]


def _saturating(row: LoadTestRow, values: dict[str, float]) -> float:
    """Return the number of clients that keep a cluster full if none of them waits."""
    analysis = Analysis(SYSTEM.network(SYSTEM.read([row])[0].layout, values, 1.0))
    return float(analysis.drift_per_s[0] * analysis.averaged(analysis.unloaded)[0])


def _measured(
    row: LoadTestRow, values: dict[str, float], effects: FloatArray, random: np.random.Generator, simulated: bool
) -> LoadTestRow:
    own = cast(
        "dict[str, float]", SYSTEM.with_effects(values, dict(zip(SYSTEM.effects, effects.tolist(), strict=True)))
    )
    read = SYSTEM.read([row])[0]
    if simulated:
        network = SYSTEM.network(read.layout, own, 1.0)
        clients = row.clients or 1
        network = replace(network, traffic=Closed(clients, Deterministic(0.0), network.traffic.mix))
        rate = float(solved_rows(SYSTEM, [read], own, [[THROUGHPUT]])[0].figures[THROUGHPUT][0])
        run = simulate(
            network,
            (_REQUESTS + 10 * clients) / rate,
            warmup_s=5 * clients / rate,
            trace=True,
            seed=int(random.integers(1 << 30)),
        )
        latencies = _varied(run.latencies_s(), read, own, run.throughput_per_s(), random)
        figures = {
            THROUGHPUT: run.throughput_per_s(),
            MEAN: run.latency_mean_s() * 1e3,
            "latency_p50_ms": float(np.quantile(latencies, 0.5)) * 1e3,
            "latency_p95_ms": float(np.quantile(latencies, 0.95)) * 1e3,
        }
    else:
        wanted = [THROUGHPUT, MEAN, "latency_p50_ms", "latency_p95_ms"]
        figures = {name: float(each[0]) for name, each in solved_rows(SYSTEM, [read], own, [wanted])[0].figures.items()}
    speed = float(np.exp(NOISE * random.standard_normal()))
    noisy = {THROUGHPUT: figures[THROUGHPUT] / speed, MEAN: figures[MEAN] * speed}
    for name in ("latency_p50_ms", "latency_p95_ms"):
        sd = NOISE * (1.5 if name == "latency_p95_ms" else 1.0)
        noisy[name] = figures[name] * float(np.exp(sd * random.standard_normal()))
    return replace(row, **cast("dict[str, Any]", noisy))


def _varied(
    latencies: FloatArray, read: TableRow, values: dict[str, float], rate: float, random: np.random.Generator
) -> FloatArray:
    """Return latencies of a cluster whose speed varies in a run and whose nodes pause, which no network has."""
    analysis = Analysis(SYSTEM.network(read.layout, values, 1.0))
    busy = np.minimum(rate / analysis.drift_per_s, 1.0)
    sd = float(np.asarray(SYSTEM.variation(values, busy)).ravel()[0])
    found = latencies * np.exp(sd * random.standard_normal(len(latencies)) - sd**2 / 2)
    (delays, *_) = SYSTEM.pauses(read.layout, values, analysis, np.array([rate]), None).values()
    for each in delays:
        late = random.random(len(found)) < float(np.ravel(each.chance)[0])
        found = found + late * random.exponential(float(np.ravel(each.mean_s)[0]), len(found))
    return found


def outcome(seed: int, *, simulated: bool) -> Outcome:
    """Draw a cluster, fit it to its load tests, and compare what the fit says of unseen rows."""
    random = np.random.default_rng(seed)
    values = truth(random)
    rows, others = load_tests(values, random, simulated=simulated)
    fitted = fit_table(SYSTEM, rows, seed=seed)
    draws = dict(zip(fitted.names, np.array(fitted.draws).T, strict=True))
    inside = []
    for name in ("delay_s", "coordinator_s", "mutation_s", "read_s", "unseen_work", "replica_unseen", "message_share"):
        low, high = np.quantile(draws[name], (0.05, 0.95))
        inside.append(bool(low <= values[name] <= high))
    held, errors, widths = [], [], []
    for each in predict_table(SYSTEM, fitted, others):
        if each.measured is not None:
            band = each.predicted
            held.append(bool(band.low <= each.measured <= band.high))
            errors.append(abs(band.value / each.measured - 1))
            widths.append(band.high / band.low)
    return Outcome(inside, held, errors, widths)


def main(count: int, simulated: bool) -> None:
    """Print the figures of many clusters."""
    found = []
    for seed in range(count):
        found.append(outcome(seed, simulated=simulated))
        own = found[-1]
        shares = f"{np.mean(own.parameters):.0%} {np.mean(own.held):.0%}"
        print(seed, shares, f"{np.median(own.errors):.1%} {np.median(own.widths):.2f}", flush=True)
    parameters, held, errors, widths = (
        [x for each in found for x in getattr(each, name)] for name in ("parameters", "held", "errors", "widths")
    )
    print(
        f"{count} clusters: {np.mean(parameters):.1%} of {len(parameters)} parameters and {np.mean(held):.1%} of "
        f"{len(held)} unseen figures in their 90 % bands; median error {np.median(errors):.1%}, 9 of 10 below "
        f"{np.quantile(errors, 0.9):.1%}; median half-width {np.median(np.log(widths)) / 2:.1%}"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), "solved" not in sys.argv)
