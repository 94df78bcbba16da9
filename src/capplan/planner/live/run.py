"""Run a live validation: measure a little, calibrate, write the predictions and their hash, measure, compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from capplan.answers.results import Band
from capplan.calibration.tables.fit_table import fit_table
from capplan.calibration.tables.row_predictions import RowPrediction, predict_table
from capplan.code_digest import code_digest
from capplan.errors import InputError
from capplan.evidence.audit.audit import audit_load_tests
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.lab.collectors.cassandra import Load
from capplan.lab.collectors.collector import Progress
from capplan.lab.collectors.runs_in_turn import measure, run_name, runs_left
from capplan.lab.collectors.sessions import SESSION
from capplan.lab.processes import machine
from capplan.layout.fitted_file import Fitted, read_fitted, write
from capplan.planner.live.clusters import Clusters, Hosts
from capplan.planner.live.folder import CALIBRATION, LARGE, PREDICTIONS, SMALL, Folder, runs_in, sessions_in
from capplan.planner.live.live_validation import Case, LiveValidation, believed, figures_of, kinds_of
from capplan.planner.live.node_pauses import with_pauses
from capplan.planner.live.protocol import HOSTS, Protocol, Stage
from capplan.planner.live.sessions import measure_stage, predicted_sessions, session_figures
from capplan.systems.cassandra import SYSTEM

PREDICTIONS_SCHEMA = "capplan.live-predictions/1"


def validate_live(
    protocol: Protocol, clusters: Clusters, folder: Folder, progress: Progress, hosts: Hosts | None = None
) -> LiveValidation:
    """Run a live validation, or continue one that was interrupted.

    Parameters
    ----------
    protocol : Protocol
        What is measured.
    clusters : Clusters
        Where.
    folder : Folder
        Where runs, calibration and predictions are kept. Whoever has shown the answer ends it (`Folder.end`).
    progress : function
        Receives what is done.
    hosts : Hosts, optional
        The cluster that exists; without it, clusters of a lab.

    Returns
    -------
    LiveValidation

    Raises
    ------
    InputError
        If a cluster does not answer, or the load generator was the bottleneck of all runs to calibrate from.
    """
    said = folder.begin(_key(protocol, hosts))
    if said:
        progress(said, 0, 1)
    with closing(clusters):
        _measure_small(protocol, clusters, folder, progress)
        fitted = _calibrated(folder, progress)
        predictions = _predicted(protocol, clusters, folder, fitted, progress)
        _measure_large(protocol, clusters, folder, predictions, progress)
        for stage in protocol.sessions:
            told = _titled(progress, stage)
            measure_stage(stage, clusters, predictions["sessions"][stage.name], sessions_in(folder), told)
    return compared(protocol, folder, predictions)


def _key(protocol: Protocol, hosts: Hosts | None) -> dict[str, Any]:
    """Return the properties that comparable runs share."""
    return {
        "protocol": asdict(protocol),
        "cluster": None if hosts is None else asdict(hosts),
        "machine": machine(),
        "version": version("capplan"),
        "code": code_digest(
            ("calibration", "lab", "systems/cassandra", "systems/openprovider", "models", "planner/live"), plain=True
        ),
    } | {"ended": False}


def _measure_small(protocol: Protocol, clusters: Clusters, folder: Folder, progress: Progress) -> None:
    runs, bounds = runs_in(folder, SMALL), protocol.small_bounds
    trips = {each.rtt_ms for stage in protocol.small + protocol.large for each in stage.asked}
    trips |= {each.rtt_ms for stage in protocol.sessions for each in stage.loads}
    wanted = sorted(each for each in trips if each is not None)
    for stage in protocol.small:
        closed = [each.load() for each in stage.asked if each.clients]
        complete = not runs_left(stage.name, closed, bounds, runs.rows)
        if complete and not runs_left(stage.name, _opened(stage, closed, runs.rows), bounds, runs.rows):
            continue
        told = _titled(progress, stage)
        with clusters.running(stage, told) as cluster:
            if stage.layout.delayed and not folder.inputs():
                told("measuring round trips", 0, 1)
                found = clusters.round_trips_ms(stage, wanted)
                folder.write_inputs({f"{asked:g}": value for asked, value in found.items()})
            measure(cluster, stage.name, closed, bounds, runs.rows, runs.add, told)
            measure(cluster, stage.name, _opened(stage, closed, runs.rows), bounds, runs.rows, runs.add, told)


def _titled(progress: Progress, stage: Stage) -> Progress:
    return lambda what, done, total: progress(f"{stage.title}: {what}", done, total)


def _opened(stage: Stage, closed: Sequence[Load], rows: Mapping[str, LoadTestRow]) -> list[Load]:
    """Return a stage's open loads: shares of the throughput of the most closed clients in the first repeat."""
    found = []
    for asked in (each for each in stage.asked if each.share is not None):
        same = [each for each in closed if each.operation == asked.operation and each.level == asked.level]
        most = max(same, key=lambda each: each.clients or 0)
        found.append(asked.load(rows[run_name(stage.name, most, 1)].throughput_tps or 1.0))
    return found


def _calibrated(folder: Folder, progress: Progress) -> Fitted:
    """Return the calibration on the small runs."""
    path = folder.path / CALIBRATION
    if path.is_file():
        with suppress(InputError):  # a damaged one is created again
            return read_fitted(path)
    progress("calibrating", 0, 1)
    kept = [row for row in folder.rows(SMALL) if believed(row)]
    if not kept:
        raise InputError(
            "the load generator was the bottleneck of every run to calibrate from, so there is nothing to fit: "
            "repeat on a machine with less other work"
        )
    trips = [_with_round_trip(row, folder.inputs()) for row in kept]
    fitted = fit_table(SYSTEM, with_pauses(trips, trips))
    write(fitted, path)
    return fitted


def _with_round_trip(row: LoadTestRow, measured: Mapping[str, float]) -> LoadTestRow:
    """Return a row with the measured round trip in place of the requested one."""
    if row.rtt_ms is None:
        return row
    return replace(row, rtt_ms=measured.get(f"{row.rtt_ms:g}", row.rtt_ms))


def _predicted(
    protocol: Protocol, clusters: Clusters, folder: Folder, fitted: Fitted, progress: Progress
) -> dict[str, Any]:
    """Return the predictions; they are written with their hash before any further measurement."""
    known = folder.predictions()
    if known is not None:
        return known
    progress("predicting", 0, 1)
    measured, small = folder.inputs(), [row for row in folder.rows(SMALL) if believed(row)]
    found = {
        "schema": PREDICTIONS_SCHEMA,
        "version": version("capplan"),
        "written_at": _now(),
        "round_trips_ms": measured,
        "runs": {each.name: _of_stage(each, clusters, fitted, measured, small) for each in protocol.large},
        "sessions": {each.name: predicted_sessions(each, clusters, fitted, measured) for each in protocol.sessions},
    }
    folder.write_predictions(found)
    return found


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _of_stage(
    stage: Stage, clusters: Clusters, fitted: Fitted, measured: Mapping[str, float], small: Sequence[LoadTestRow]
) -> list[dict[str, Any]]:
    """Return the predicted loads of a stage and their figures, with the pauses that the small runs expect of them."""
    cluster = clusters.expected(stage)

    def row(load: Load, name: str) -> LoadTestRow:
        seen = cluster
        if stage.seen_as is not None:
            nodes, rf = stage.seen_as
            seen = replace(cluster, cass_nodes=(nodes,) * len(cluster.rf), rf=(rf,) * len(cluster.rf))
        its = load if stage.level_seen_as is None else replace(load, level=stage.level_seen_as)
        return _with_round_trip(LoadTestRow(run_id=name, **seen.row(its)), measured)

    full = list(dict.fromkeys(each.at_capacity() for each in stage.asked))
    rows = with_pauses([row(each.load(), str(at)) for at, each in enumerate(full)], small)
    ceilings = predict_table(SYSTEM, fitted, rows)
    capacity = {each: _figures(ceilings, str(at))["throughput_tps"].predicted.value for at, each in enumerate(full)}
    loads = [each.load(capacity[each.at_capacity()]) for each in stage.asked]
    rows = with_pauses([row(each, str(at)) for at, each in enumerate(loads)], small)
    predicted = predict_table(SYSTEM, fitted, rows)
    found = []
    for at, load in enumerate(loads):
        figures = _figures(predicted, str(at))
        reason = next((each.reason for each in figures.values() if each.reason), "")
        bands = {
            name: [each.predicted.value, each.predicted.low, each.predicted.high] for name, each in figures.items()
        }
        found.append({"load": asdict(load), "figures": bands, "not_decided": reason})
    return found


def _figures(predicted: Sequence[RowPrediction], run: str) -> dict[str, RowPrediction]:
    return {each.quantity: each for each in predicted if each.run_id == run}


def _measure_large(
    protocol: Protocol, clusters: Clusters, folder: Folder, predictions: Mapping[str, Any], progress: Progress
) -> None:
    runs, bounds = runs_in(folder, LARGE), protocol.large_bounds
    folder.measured_from(_now())
    for stage in protocol.large:
        loads = [Load(**each["load"]) for each in predictions["runs"][stage.name]]
        if runs_left(stage.name, loads, bounds, runs.rows):
            told = _titled(progress, stage)
            with clusters.running(stage, told) as cluster:
                measure(cluster, stage.name, loads, bounds, runs.rows, runs.add, told)


def compared(protocol: Protocol, folder: Folder, predictions: Mapping[str, Any]) -> LiveValidation:
    """Return predictions beside the runs of a folder.

    Parameters
    ----------
    protocol : Protocol
        What was measured.
    folder : Folder
        Its runs.
    predictions : mapping
        Its predictions.
    """
    small, large, sessions = folder.rows(SMALL), runs_in(folder, LARGE).rows, sessions_in(folder).rows
    cases = []
    for stage in protocol.large:
        for each in predictions["runs"][stage.name]:
            load = Load(**each["load"])
            names = [run_name(stage.name, load, repeat) for repeat in range(1, protocol.large_bounds.repeats + 1)]
            bands = {name: Band(*figures) for name, figures in each["figures"].items()}
            trip = None if load.rtt_ms is None else predictions["round_trips_ms"].get(f"{load.rtt_ms:g}")
            cases.append(Case(stage, load, bands, [large[name] for name in names], each["not_decided"], trip))
    fitted = [row for row in small if believed(row)]
    figures = [*figures_of(cases)]
    for each_stage in protocol.sessions:
        figures += session_figures(each_stage, predictions["sessions"][each_stage.name], sessions)
    every = [*small, *large.values(), *(row for (_, kind), row in sessions.items() if kind == SESSION)]
    return LiveValidation(
        protocol=protocol.name,
        one_host=not protocol.name.startswith(HOSTS),
        version=version("capplan"),
        cassandra=next((row.version for row in every if row.version), "unknown"),
        machine=machine(),
        predicted_at=predictions["written_at"],
        measured_from=folder.measured_from(_now()),
        predictions=str(folder.path / PREDICTIONS),
        sha256=folder.digest(),
        fitted_runs=len(fitted),
        left_out_runs=sum(not believed(row) for row in every),
        disturbed_runs=sum(bool(row.disturbed) for row in every),
        audit=_audit(fitted),
        kinds=kinds_of(figures, [each.name for each in protocol.large if each.note]),
        figures=tuple(figures),
    )


def _audit(rows: Sequence[LoadTestRow]) -> tuple[str, ...]:
    """Return the audit rules that runs break, with the number of runs."""
    counts = Counter(each.rule for each in audit_load_tests(LOAD_TESTS.frame(rows)).findings)
    return tuple(f"{rule}: {count}" for rule, count in sorted(counts.items()))
