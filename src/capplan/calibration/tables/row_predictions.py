"""Predictions of rows of a load-test table, with the band of what a repeat would measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from capplan.answers.results import Band, Parts
from capplan.calibration.tables.identifiability import Judge
from capplan.calibration.tables.solved_rows import solved_rows
from capplan.evidence.load_test_row import LoadTestRow
from capplan.layout.components import MeasuredRange
from capplan.layout.extrapolation import RATE, Extrapolation, Responses
from capplan.layout.fitted_file import Fitted
from capplan.layout.table_rows import (
    LEVELS,
    NODE_CPU,
    QUANTITIES,
    THROUGHPUT,
    TableRow,
    rows_of,
)
from capplan.layout.table_system import TableSystem, with_unknown_layouts
from capplan.models.language.units import FloatArray


@dataclass(frozen=True)
class RowPrediction:
    """A predicted figure of a row of a load-test table.

    Attributes
    ----------
    run_id : str
        Name of the run.
    request_class : str or None
        Its request class; None for all requests of the run.
    quantity : str
        Column of the table, such as `latency_p99_ms`.
    measured : float or None
        What the row has, in the column's unit.
    predicted : Band
        Median, 5th and 95th percentile of what a repeat would measure, in the column's unit.
    identifiable : bool
        Whether the fitted rows decide the figure.
    reason : str
        Why not, and which row would decide it; empty if they do.
    """

    run_id: str
    request_class: str | None
    quantity: str
    measured: float | None
    predicted: Band
    identifiable: bool
    reason: str


def predict_table(system: TableSystem[Any], fitted: Fitted, rows: Sequence[LoadTestRow]) -> tuple[RowPrediction, ...]:
    """Predict rows of a load-test table.

    Parameters
    ----------
    system : TableSystem
        The system.
    fitted : Fitted
        A calibration by `fit_table`.
    rows : sequence of LoadTestRow
        The rows; figures that they have are not used.

    Returns
    -------
    tuple of RowPrediction
        For each row, its columns of `QUANTITIES`, in order; then the CPU of its nodes, if it was fitted and measured.
    """
    read = system.read(rows)
    values = with_unknown_layouts(system, fitted, (row.layout for row in read))
    wanted = [_wanted(row, fitted) for row in read]
    solved = solved_rows(system, read, values, wanted)
    judge, widening = Judge(system, fitted), Widening(system, fitted)
    by_chance = judge.by_chance(read, wanted)
    found = []
    for number, (row, names, each) in enumerate(zip(read, wanted, solved, strict=True)):
        reason = judge.reason(row, each)
        for name in names:
            band = band_of(each.figures[name], fitted, name, widening.factor(row, name))
            why = reason or by_chance.get((number, name), "")
            found.append(RowPrediction(row.run_id, row.request_class, name, row.measured.get(name), band, not why, why))
    return tuple(found)


def _wanted(row: TableRow, fitted: Fitted) -> list[str]:
    metered = {NODE_CPU} & fitted.its_table.scatter.keys() & row.measured.keys()
    return [*(name for name in QUANTITIES if row.load.kind != "open" or name != THROUGHPUT), *metered]


class Widening:
    """How much more figures of layouts and loads beyond the fitted rows scatter than repeats do.

    Parameters
    ----------
    system : TableSystem
        The system.
    fitted : Fitted
        The calibration.
    """

    def __init__(self, system: TableSystem[Any], fitted: Fitted) -> None:
        self.system, self.fitted = system.of(fitted), fitted
        trained = self.system.read(rows_of(fitted))
        self.most_clients = max((each.load.clients for each in trained if each.load.kind == "closed"), default=0)
        self.layouts: dict[Any, tuple[Extrapolation, Responses]] = {}

    def factor(self, row: TableRow, column: str) -> float:
        """Return the factor of the scatter of a row's figure, at least 1.

        It grows with the doublings beyond the fitted layouts, as in `Case.uncertainty`; that of a percentile grows with
        the doublings beyond the most clients, too.
        """
        if row.layout not in self.layouts:
            far = self.system.extrapolation(row.layout)
            self.layouts[row.layout] = far, self.system.responses(self.fitted, row.layout, far)
        far, responses = self.layouts[row.layout]
        of_times = self.system.classes(row.layout) if row.request_class is None else (row.request_class,)
        figures = (RATE,) if column in (THROUGHPUT, NODE_CPU) else of_times
        found = max(far.factor(self.system.component(MeasuredRange).widening, figure, responses) for figure in figures)
        if column in LEVELS and row.load.kind == "closed" and row.load.clients > self.most_clients > 0:
            found *= 1 + self.system.component(MeasuredRange).widening * math.log2(row.load.clients / self.most_clients)
        return found


def band_of(draws: FloatArray, fitted: Fitted, name: str, wider: float = 1.0) -> Band:
    """Return the band of what a repeat would measure: the spread of the draws and the scatter around each draw.

    Parameters
    ----------
    draws : array (draws,)
        The figure by parameter draw.
    fitted : Fitted
        The calibration.
    name : str
        Its column.
    wider : float
        Factor of the scatter.
    """
    log_sd = fitted.its_table.scatter[name] * wider
    count = len(draws)
    order = np.random.default_rng([fitted.seed, (*QUANTITIES, NODE_CPU).index(name)]).permutation(count)
    repeated = draws * np.exp(log_sd * special.ndtri((order + 0.5) / count))
    value = float(np.median(draws))
    low, high = np.quantile(repeated, [0.05, 0.95]).tolist()
    spread = float(np.subtract(*np.quantile(draws, [0.95, 0.05]))) / 2
    return Band(value, min(low, value), max(high, value), Parts(parameter=spread, model_error=value * log_sd * 1.645))
