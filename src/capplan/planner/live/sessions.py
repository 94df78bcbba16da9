"""Sessions of `openprovider` on real nodes: predicted from its flow and the costs of `cassandra`, then measured.

What is shared with `openprovider`: the messages of a session and their order, what each asks Cassandra for, data
centres in turn, the steps of a statement, and the race between replication and the next message. What is not: costs are
those that were fitted to the small runs on this machine, where all nodes share its cores; there are no RADIUS servers
and no pool of workers, as the load generator has none; and sessions come at random, without bursts. The generator's own
work, and its way to a node, count once for each statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, cast

import numpy as np

from capplan.answers.results import Band
from capplan.calibration.tables.row_predictions import band_of
from capplan.evidence.load_test_row import LoadTestRow
from capplan.lab.collectors.cassandra import Operation, RunningCluster
from capplan.lab.collectors.collector import Progress
from capplan.lab.collectors.runs_in_turn import run_name, runs_left
from capplan.lab.collectors.sessions import SESSION, Key, Message, SessionLoad, complete, measure_sessions, row_of
from capplan.layout.ensemble import at_draws, spaced
from capplan.layout.fitted_file import Fitted
from capplan.layout.solution import varied
from capplan.layout.table_components import Contention
from capplan.layout.table_system import unloaded, with_unknown_layouts
from capplan.models.cassandra.visibility import Load as Busy
from capplan.models.cassandra.visibility import Question, Sampling, chances_not_found
from capplan.models.language.distribution import Exponential
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import changed
from capplan.models.language.step import Sequence as Steps
from capplan.models.language.traffic import Open, RequestClass, Session
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import solve
from capplan.planner.live.clusters import Clusters
from capplan.planner.live.folder import Runs
from capplan.planner.live.live_validation import (
    BOTTLENECK,
    COLUMNS,
    LiveFigure,
    Measured,
    Quantity,
    believed,
    judged,
    repeats_of,
    values_of,
)
from capplan.planner.live.protocol import SessionStage
from capplan.systems.cassandra import SYSTEM
from capplan.systems.cassandra.network import HOST, build_cluster, build_costs, variation
from capplan.systems.cassandra.network import pauses as cassandra_pauses
from capplan.systems.cassandra.scenario import CassandraScenario
from capplan.systems.openprovider.network import OPERATIONS
from capplan.systems.openprovider.scenario import USUAL, sent_sessions

FLOW: tuple[Message, ...] = tuple(
    Message(name, OPERATIONS[name])  # type: ignore[arg-type]  # words of the Literal
    for name in sent_sessions(USUAL)[0].classes
)
"""The messages of a session: authorization, start, five interim updates and the stop, which the model takes as one."""
CONTENTION = SYSTEM.component(Contention)
_LEVELS = (0.5, 0.99)
_DRAWS, _SAMPLES, _GAPS = 64, 400, 40
_ROUNDS = 5
_Z95 = 1.645
_FOR_P99 = 11_000
"""Requests of a class in a run from which its p99 is sure to be stated."""


def _count(name: str) -> int:
    """Return how many messages of a session belong to a request class."""
    return sum(each.name == name for each in FLOW)


def session_network(scenario: CassandraScenario, values: Values, think_s: float) -> Network:
    """Return the network of sessions, at one message per second.

    Parameters
    ----------
    scenario : CassandraScenario
        The cluster, with equal clients in all data centres.
    values : mapping
        Its parameter values, SI.
    think_s : float
        Mean time between messages, exponential.
    """
    plain = SYSTEM.network(scenario, values, 1.0)
    asked = {each.name: each.flow for each in plain.classes}
    classes = {message.name: Steps(tuple(asked[each] for each in message.operations)) for message in FLOW}
    gaps = (Exponential(think_s),) * (len(FLOW) - 1)
    return replace(
        plain,
        classes=tuple(RequestClass(name, flow) for name, flow in classes.items()),
        sessions=(Session(SESSION, tuple(message.name for message in FLOW), gaps),),
        traffic=Open(1.0, {SESSION: 1.0}),
    )


def predicted_sessions(
    stage: SessionStage, clusters: Clusters, fitted: Fitted, measured: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Return the loads of a stage with their predicted figures.

    Parameters
    ----------
    stage : SessionStage
        The stage.
    clusters : Clusters
        Where it will run.
    fitted : Fitted
        A calibration of `cassandra`.
    measured : mapping of str to float
        Round trips that were measured in ms, by what was asked for.
    """
    cluster = clusters.expected(stage)
    return [_predicted(each, cluster, fitted, measured, stage.bounds.duration_s) for each in stage.loads]


def _predicted(
    load: SessionLoad, cluster: RunningCluster, fitted: Fitted, measured: Mapping[str, float], duration_s: float
) -> dict[str, Any]:
    trip = measured.get(f"{load.rtt_ms:g}", load.rtt_ms)
    cells = row_of(cluster, replace(load, rtt_ms=trip), FLOW)
    scenario = changed(unloaded(SYSTEM.row_scenario(LoadTestRow(**cells))), client_share=None)
    drawn = with_unknown_layouts(SYSTEM, fitted, [scenario])
    rate = load.sessions_per_s * len(FLOW)
    values = _at_load(scenario, SYSTEM.values_in(scenario, drawn), load.think_s, rate)
    analysis = Analysis(session_network(scenario, values, load.think_s))
    figures = _latencies(scenario, values, analysis, rate, fitted)
    for name, own in figures.items():
        if load.sessions_per_s * duration_s * _count(name) < _FOR_P99:
            del own["p99"]
    busy = np.minimum(rate * analysis.load(HOST), 1.0)
    chances = 100 * chance_not_found(scenario, values, busy, load, fitted.seed)
    figures[SESSION] = {"not found": _counted(chances, load.sessions_per_s * duration_s)}
    bands = {
        name: {quantity: [each.value, each.low, each.high] for quantity, each in own.items()}
        for name, own in figures.items()
    }
    return {"load": asdict(load), "figures": bands}


def _at_load(scenario: CassandraScenario, values: Values, think_s: float, rate_per_s: float) -> Values:
    """Return the values at the number of messages in flight at a rate (Little's law); messages share wake-ups."""
    if not CONTENTION.matters(values, True):
        return values
    under_way = np.ones(max(np.size(each) for each in values.values()))
    for _ in range(_ROUNDS):
        own = CONTENTION.at_clients(values, under_way, True)
        analysis = Analysis(session_network(scenario, own, think_s))
        mean_s = solve(analysis, rate_per_s).response_s(*analysis.share)
        under_way = np.sqrt(under_way * np.maximum(rate_per_s * np.broadcast_to(mean_s, under_way.shape), 1.0))
    return own


def _latencies(
    scenario: CassandraScenario, values: Values, analysis: Analysis, rate_per_s: float, fitted: Fitted
) -> dict[str, dict[str, Band]]:
    """Return the latencies of each request class in ms, by quantity."""
    point = solve(analysis, rate_per_s)
    pauses = cassandra_pauses(scenario, values, analysis, point.rate_per_s, None)
    busiest = np.minimum(point.rate_per_s / analysis.drift_per_s, 1.0)
    point = varied(point, variation(values, busiest))
    found: dict[str, dict[str, Band]] = {}
    for name in analysis.share:
        delays = {name: tuple(delay for each in OPERATIONS[name] for delay in pauses[each])}
        times = 1e3 * point.quantiles_s(_LEVELS, name, delays=delays)
        found[name] = {
            quantity: band_of(np.broadcast_to(time, (analysis.draws,)), fitted, column)
            for (quantity, column), time in zip(COLUMNS.items(), times, strict=True)
        }
    return found


def chance_not_found(
    scenario: CassandraScenario, values: Values, utilisation: FloatArray, load: SessionLoad, seed: int
) -> FloatArray:
    """Return the probability that the first message after the start finds no row, at some draws (draws,).

    The generator's work and its way count before the read. So do those behind the answer to the start.

    Parameters
    ----------
    scenario : CassandraScenario
        The cluster.
    values : mapping
        Its parameter values, SI.
    utilisation : array (draws,)
        Utilisation of the host.
    load : SessionLoad
        The load.
    seed : int
        Seed of the sample.
    """
    chosen = spaced(len(utilisation), _DRAWS)
    own = at_draws(values, chosen)
    cluster, costs = build_cluster(scenario, own), build_costs(scenario, own)["write"]
    question = Question(load.write, load.read, client_s=own["delay_s"] + own["generator_s"])
    busy = Busy(np.ones((1, len(chosen))), utilisation[chosen][None])
    gaps_s = -load.think_s * np.log1p(-(np.arange(_GAPS) + 0.5) / _GAPS)
    sampling = Sampling(len(chosen), _SAMPLES, seed)
    chances = chances_not_found(cluster, costs, busy, question, gaps_s, sampling)
    return np.asarray(chances.mean(axis=(0, 2)))


def _counted(percent: FloatArray, sessions: float) -> Band:
    """Return the band of a counted share: the band of the share, widened by the scatter of a count of sessions."""
    value = float(np.median(percent))
    low, high = np.quantile(percent, (0.05, 0.95)).tolist()
    width = _Z95 * (value * (100 - value) / max(sessions, 1.0)) ** 0.5
    low = max(value - float(np.hypot(value - low, width)), 0.0)
    return Band(value, low, min(value + float(np.hypot(high - value, width)), 100.0))


def measure_stage(
    stage: SessionStage,
    clusters: Clusters,
    predictions: Sequence[Mapping[str, Any]],
    rows: Runs[Key],
    progress: Progress,
) -> None:
    """Measure the predicted loads of a stage; skip runs that are finished."""
    loads = [SessionLoad(**each["load"]) for each in predictions]
    if not runs_left(stage.name, loads, stage.bounds, complete(rows.rows)):
        return
    with clusters.running(stage, progress) as cluster:
        each_dc = in_each_dc(cluster, stage)
        measure_sessions(each_dc, stage.name, FLOW, loads, stage.bounds, rows.rows, rows.add, progress)


def in_each_dc(cluster: RunningCluster, stage: SessionStage) -> list[RunningCluster]:
    """Return a lab's cluster as seen by the clients of each data centre."""
    return [
        replace(cluster, addresses=tuple(node.address for node in stage.layout.nodes if node.dc == dc))
        for dc in range(1, stage.layout.dcs + 1)
    ]


def session_figures(
    stage: SessionStage, predictions: Sequence[Mapping[str, Any]], rows: Mapping[Key, LoadTestRow]
) -> list[LiveFigure]:
    """Return the figures of a stage, predicted and measured."""
    found = []
    for each in predictions:
        load = SessionLoad(**each["load"])
        names = [run_name(stage.name, load, repeat) for repeat in range(1, stage.bounds.repeats + 1)]
        for kind, figures in each["figures"].items():
            kept = [row for name in names if believed(row := rows[name, kind])]
            for quantity, band in figures.items():
                found.append(_figure(stage, load, kind, quantity, Band(*band), kept))
    kinds = list(dict.fromkeys(each.operation for each in found))
    return sorted(found, key=lambda each: kinds.index(each.operation))


def _measured(quantity: Quantity, rows: Sequence[LoadTestRow]) -> tuple[Measured | None, int, str]:
    """Return the mean of runs, the number of runs with the figure, and the reason if there is none."""
    if quantity != "not found":
        values, reason = values_of(rows, quantity)
        return repeats_of(values), len(values), reason
    counts = [(row.throughput_tps or 0.0) * (row.duration_s or 0.0) for row in rows]
    shares = [100 * (row.drops or 0) / count for row, count in zip(rows, counts, strict=True)]
    found = repeats_of(shares, logarithms=False)
    if found is not None and found.half_width is not None:  # a share scatters at least as much as what is counted
        variance = found.value * (100 - found.value) / sum(counts)  # of the mean, by the count alone
        found = replace(found, half_width=max(found.half_width, _Z95 * variance**0.5))
    return found, len(shares), ""


def _figure(
    stage: SessionStage, load: SessionLoad, kind: str, quantity: Quantity, predicted: Band, rows: Sequence[LoadTestRow]
) -> LiveFigure:
    measured, repeats, reason = _measured(quantity, rows)
    operations = ("read", "write") if kind == SESSION else OPERATIONS[kind]
    levels = dict.fromkeys(load.level(cast("Operation", each)) for each in operations)
    asked = {
        "operation": kind,
        "level": " and ".join(levels),
        "row_bytes": load.row_bytes,
        "tls": False,
        "rtt_ms": load.rtt_ms,
        "load": f"{load.sessions_per_s:g}/s, think {1000 * load.think_s:g}",
        "clients": None,
        "offered_per_s": load.sessions_per_s * (1 if kind == SESSION else _count(kind)),
    }
    return judged(stage, asked, quantity, predicted, measured, repeats, reason=reason if rows else BOTTLENECK)
