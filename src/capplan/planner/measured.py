"""What a load test of a layout would measure, and what one can measure on a running node: figures by parameter draw."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from capplan.calibration.tables.solved_rows import solved_rows
from capplan.errors import InputError, one_of
from capplan.layout.case import Case
from capplan.layout.components import Ratios
from capplan.layout.fitted_file import Fitted
from capplan.layout.table_rows import NODE_CPU, QUANTITIES, Load, TableRow
from capplan.layout.table_system import TableSystem, table_of, unloaded, with_unknown_layouts
from capplan.layout.uncertainty import Uncertainty
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import FloatArray
from capplan.planner.assumed_pauses import pauses_if_assumed

CAPACITY, THROUGHPUT = "capacity", "throughput"
REPEAT = {CAPACITY: 0.05, THROUGHPUT: 0.05, "mean": 0.05, "p50": 0.05, "p90": 0.075, "p95": 0.075, "p99": 0.1}
"""Scatter of a repeat, as a standard deviation of the logarithm, where no repeat was measured: guesses."""
STATISTICS = ("mean", "p50", "p90", "p95", "p99")
_COLUMNS = {THROUGHPUT: "throughput_tps", **{name: f"latency_{name}_ms" for name in STATISTICS}}
_TINY = 1e-9
_NORMAL = 1.6449  # standard deviations from the median to an end of a 90 % band


@dataclass(frozen=True)
class Measured:
    """Figures of one layout at one load.

    Attributes
    ----------
    draws : mapping of arrays (draws,)
        Figures by name (`capacity`, `throughput`, `p99` or `read.p99`): per second, or milliseconds.
    scatter : mapping of float
        Standard deviation of the logarithm of a repeat, with the model error, by name.
    rate_per_s : float
        Median rate of the load, requests per second.
    """

    draws: Mapping[str, FloatArray]
    scatter: Mapping[str, float]
    rate_per_s: float

    def figure(self, name: str) -> tuple[FloatArray, float]:
        """Return the draws of a figure and its scatter.

        Raises
        ------
        InputError
            If there is no such figure, or it is unbounded because the load is beyond the capacity.
        """
        one_of(self.draws, name, f"figure {name!r} is not measured by a test of this layout")
        found = self.draws[name]
        if not np.all(np.isfinite(found)):
            raise InputError(f"{name} is unbounded: the load is beyond the capacity. Ask for capacity, or a lower load")
        return found, self.scatter[name]


def measured(case: Case[Any], question: Scenario | None = None) -> Measured:
    """Return a layout's figures at its load: clients, offered rate, or else 80 % of the capacity.

    Parameters
    ----------
    case : Case
        The layout with its calibration.
    question : Scenario, optional
        The layout in question, whose chance has a part in common with this one's; by default the same.
    """
    table = table_of(case.system)
    if table is not None:
        return _of_table(table, case.fitted, case.scenario, question or case.scenario)
    return _of_case(case)


def _of_table(system: TableSystem[Any], fitted: Fitted, scenario: Scenario, question: Scenario) -> Measured:
    clients = getattr(scenario, "clients", None)
    rate = scenario.offered_per_s()
    layout = unloaded(scenario)
    values = with_unknown_layouts(system, fitted, [unloaded(question), layout], "own")
    row = TableRow("", None, layout, Load("open", 0, 1.0), {})
    if clients is None:
        (alone,) = solved_rows(system, [row], values, [[]], service=True)
        offered = 0.8 * float(np.median(alone.capacity_per_s)) if rate is None else float(np.max(rate))
        load = Load("open", 0, offered)
    else:
        load = Load("closed", clients)
    classes = system.classes(scenario)
    asked = [None, *(classes if len(classes) > 1 else ())]
    rows = [TableRow("", name, layout, load, {}) for name in asked]
    columns = [name for name in QUANTITIES if load.kind == "closed" or name != QUANTITIES[0]]
    known = {} if fitted.table is None else fitted.table.scatter
    metered = [NODE_CPU] if NODE_CPU in known else []
    wanted = [[*columns, *metered], *([columns] * (len(rows) - 1))]
    solved = solved_rows(system, rows, values, wanted, service=clients is None)
    draws: dict[str, FloatArray] = {} if clients is not None else {CAPACITY: solved[0].capacity_per_s}
    if metered:
        draws[NODE_CPU] = solved[0].figures[NODE_CPU]
    for name, each in zip(asked, solved, strict=True):
        for short, column in _COLUMNS.items():
            if column in each.figures:
                draws[f"{name}.{short}" if name else short] = each.figures[column]
    if len(classes) == 1:
        draws.update({f"{classes[0]}.{name}": draws[name] for name in STATISTICS if name in draws})
    scatter = {name: known.get(_COLUMNS.get(_statistic(name), QUANTITIES[0]), 0.05) for name in draws}
    if metered:
        scatter[NODE_CPU] = known[NODE_CPU]
    every = {name: np.broadcast_to(each, (len(fitted.draws),)) for name, each in draws.items()}
    return Measured(every, scatter, load.rate_per_s or float(np.median(every[THROUGHPUT])))


def _of_case(case: Case[Any]) -> Measured:
    case.system.component(Ratios).refuse(
        f"{case.system.name} is documented as ratios only: no load test of it measures a rate"
    )
    capacity = case.solution.capacity
    given = case.given_per_s
    rate = 0.8 * float(np.median(capacity)) if given is None else given
    at = case.at(rate)
    figures = at.solution.at(rate)
    names = case.system.classes(case.scenario)
    draws = {f"{name}.{each}": 1e3 * figures.latency_s(name, each) for name in names for each in STATISTICS}
    draws = {CAPACITY: capacity, **draws}
    return Measured(draws, {name: _scatter(at.uncertainty, name) for name in draws}, rate)


def _scatter(errors: Uncertainty, name: str) -> float:
    """Return the scatter of a figure's logarithm in a repeat: of the repeat itself, and of the model error."""
    own = errors.rate if name == CAPACITY else errors.by_class.get(name.rpartition(".")[0], errors.time)
    model = own.half_width / _NORMAL if math.isfinite(own.half_width) else 0.0
    return math.hypot(REPEAT.get(_statistic(name), 0.1), model)


def _statistic(name: str) -> str:
    return name.rpartition(".")[2]


def of_pauses(case: Case[Any], rate_per_s: float, run_s: float) -> Measured | None:
    """Return what the garbage-collection log of one node shows in a run; None where pauses are stated or play no part.

    Parameters
    ----------
    case : Case
        The layout with its calibration.
    rate_per_s : float
        Offered peak rate, requests per second.
    run_s : float
        Length of the run, seconds.
    """
    pauses = pauses_if_assumed(case, rate_per_s)
    if pauses is None:
        return None
    size = (len(case.fitted.draws),)
    draws = {name: np.broadcast_to(getattr(pauses, name), size) for name in ("share", "mean_s")}
    stops = run_s * float(np.median(draws["share"]) / np.median(draws["mean_s"]))
    chance = 1 / math.sqrt(max(stops, _TINY))  # of a mean of lengths that vary as exponential ones do
    return Measured(draws, {"share": math.sqrt(2) * chance, "mean_s": chance}, rate_per_s)


def of_cpu(test: Measured) -> Measured | None:
    """Return the CPU use of a node alone, as it is measured without a load generator; None where it is not modelled."""
    if NODE_CPU not in test.draws:
        return None
    return replace(test, draws={NODE_CPU: test.draws[NODE_CPU]}, scatter={NODE_CPU: test.scatter[NODE_CPU]})


def variance_lost(asked: FloatArray, measured: FloatArray, scatter: FloatArray) -> float:
    """Return how much a test is expected to reduce the variance of the figure in question.

    Parameters
    ----------
    asked : array (draws,)
        Logarithms of the asked figure.
    measured : array (figures, draws)
        Logarithms of what the test would measure.
    scatter : array (figures,)
        Standard deviation of a repeat of each of these logarithms.

    Returns
    -------
    float
        Between 0 and the variance of the asked figure.
    """
    around = measured - measured.mean(axis=-1, keepdims=True)
    own = asked - asked.mean()
    count = len(asked)
    covariance = around @ around.T / count + np.diag(scatter**2)
    shared = around @ own / count
    lost = float(shared @ np.linalg.pinv(covariance, hermitian=True) @ shared)  # figures may be redundant
    return min(max(lost, 0.0), float(own @ own / count))
