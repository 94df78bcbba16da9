"""What closed clients reach in a layout that was fitted to a user's load tests: throughput and latencies, solved."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from typing import Any, cast

import numpy as np

from capplan.calibration.tables.fit_table import TableSystem, band_of
from capplan.calibration.tables.model import Solved, solved_rows
from capplan.calibration.tables.rows import LEVELS, MEAN, QUANTITIES, THROUGHPUT, Load, TableRow, rows_of
from capplan.layout.system import Case
from capplan.models.errors import InputError, RefusedError
from capplan.models.language.scenario import changed
from capplan.models.objective import Metric
from capplan.models.results import Band, Capacity, Latency
from capplan.models.verdict import CONFIDENCE
from capplan.planner.predict.prediction import (
    EvidenceSummary,
    Limit,
    Prediction,
    judged_by_bands,
    left_open,
    with_basis,
)
from capplan.planner.predict.simulated_latency import in_order

NOTE = (
    "Closed clients send their next request when they have an answer, so they have no rate to raise. Throughput and "
    "latencies come from the analytic solver."
)
_STATISTICS = {MEAN: "mean", **{name: name.removeprefix("latency_").removesuffix("_ms") for name in LEVELS}}
_SHOWN = ("mean", "p50", "p90", "p95", "p99")
_UNEVEN = (
    "More clients than the nodes or data centres take: they wait unevenly, and the solver has no percentiles of that."
)


def predict_closed(case: Case[Any], lose: Sequence[str] = (), confidence: float = CONFIDENCE) -> Prediction:
    """Predict what closed clients reach.

    Parameters
    ----------
    case : Case
        The layout with its clients and its calibration.
    lose : sequence of str
        What is lost; nothing can be.
    confidence : float
        Confidence of the verdict.

    Raises
    ------
    InputError
        If something is lost.
    RefusedError
        If the solver does not have so many clients in such a layout.
    """
    if lose:
        raise InputError(
            f"--lose {lose[0]} asks what is left of a rate, and closed clients have none: give --tps instead"
        )
    _ = case.objectives  # refuse one that cannot be read before anything is solved
    scenario, fitted, system = case.scenario, case.fitted, cast("TableSystem[Any]", case.system)
    clients = int(scenario.clients)
    layout = changed(scenario, clients=None, slo=())
    load = Load("closed", clients)
    classes = system.classes(scenario)
    rows = [TableRow("asked", name, layout, load, {}) for name in (None, *classes)]
    try:
        solved = solved_rows(system, rows, system.all_values(fitted, layout), [list(QUANTITIES)] * len(rows))
    except RefusedError as error:
        raise RefusedError(f"{error}, or ask for a rate with --tps") from None
    whole = solved[0]
    basis = case.basis.of_capacity()
    throughput = with_basis(band_of(whole.figures[THROUGHPUT], fitted, THROUGHPUT), basis)
    latency = {name: _latency(case, each, name) for name, each in zip(classes, solved[1:], strict=True)}
    busy = {name: _busy(each) for name, each in _most_first(whole)}
    prediction = Prediction(
        system=system.name,
        layout=f"{system.layout(scenario, case.values)}, {clients:,} clients",
        scenario=scenario.given(),
        capacity=Capacity(
            peak_tps=throughput,
            mean_tps=throughput,
            overload_tps=throughput,
            burst_ratio=Band.exactly(1.0),
            criterion=f"throughput of the {clients:,} closed clients, which has no rate to raise",
        ),
        limits=tuple(Limit(name, system.resource_name(scenario, name), False, band) for name, band in busy.items()),
        offered=None,
        latency_ms=latency,
        tails_guessed=("GC pauses",),
        tails_not_modelled=system.tails_left_out(scenario),
        utilisation=busy,
        busy_workers={},
        evidence=EvidenceSummary(
            system.citations(),
            case.extrapolation.basis,
            case.extrapolation.why,
            (),
            (*system.unstated(rows_of(fitted)), *([_UNEVEN] if whole.uneven else []), *left_open(case, load, whole)),
            (system.notes.rates, NOTE, *system.promises()),
        ),
        engine="analytic",
        seed=case.seed,
        version=version("capplan"),
    )
    return judged_by_bands(prediction, case.objectives, partial(_figure, prediction), confidence)


def _figure(prediction: Prediction, metric: Metric) -> Band | None:
    """Return the figure that an objective is about; closed clients wait, so nothing is dropped."""
    return Band.exactly(0.0) if metric.name == "drop_rate" else prediction.figure(metric)


def _latency(case: Case[Any], solved: Solved, name: str) -> Latency:
    bands = {}
    for quantity, statistic in _STATISTICS.items():
        if statistic in (("mean",) if solved.uneven else _SHOWN):
            band = band_of(solved.figures[quantity], case.fitted, quantity)
            bands[statistic] = with_basis(band, case.basis.of_latency(name, statistic, 0.0))
    return in_order(Latency(**bands))


def _most_first(solved: Solved) -> list[tuple[str, Any]]:
    return sorted({**solved.busy, **solved.held}.items(), key=lambda each: -float(np.median(each[1])))


def _busy(share: Any) -> Band:
    low, middle, high = np.quantile(share, (0.05, 0.5, 0.95)).tolist()
    return Band(middle, low, high, basis="model only")
