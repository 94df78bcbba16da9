"""Figures that a load test of a layout would measure, for every parameter draw, and the scatter of a repeat."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from capplan.calibration.case.solution import LEVELS
from capplan.calibration.fit.fitted_file import Fitted
from capplan.calibration.system import Case
from capplan.calibration.tables.errors.layout_effects import name_of
from capplan.calibration.tables.fit_table import TableSystem, draws_of
from capplan.calibration.tables.model import solved_rows
from capplan.calibration.tables.rows import QUANTITIES, Load, TableRow
from capplan.models.errors import InputError, nearest
from capplan.models.language.scenario import Scenario, changed
from capplan.models.language.units import FloatArray, Number

CAPACITY, THROUGHPUT = "capacity", "throughput"
REPEAT = {CAPACITY: 0.05, THROUGHPUT: 0.05, "mean": 0.05, "p50": 0.05, "p90": 0.075, "p95": 0.075, "p99": 0.1}
"""Scatter of a repeat, as a standard deviation of the logarithm, where no repeat was measured: guesses."""
STATISTICS = ("mean", "p50", "p90", "p95", "p99")
_COLUMNS = {THROUGHPUT: "throughput_tps", **{name: f"latency_{name}_ms" for name in STATISTICS}}
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
    """

    draws: Mapping[str, FloatArray]
    scatter: Mapping[str, float]

    def figure(self, name: str) -> tuple[FloatArray, float]:
        """Return the draws of a figure and its scatter.

        Raises
        ------
        InputError
            If there is no such figure, or it is unbounded because the load is beyond the capacity.
        """
        if name not in self.draws:
            raise InputError(f"figure {name!r} is not measured by a test of this layout{nearest(name, self.draws)}")
        found = self.draws[name]
        if not np.all(np.isfinite(found)):
            raise InputError(f"{name} is unbounded: the load is beyond the capacity. Ask for capacity, or a lower load")
        return found, self.scatter[name]


def measured(case: Case[Any]) -> Measured:
    """Return the figures of a layout at its load: that of its clients, or its offered rate; 80 % of the capacity.

    Parameters
    ----------
    case : Case
        The layout with its calibration.
    """
    if isinstance(case.system, TableSystem):
        return _of_table(case.system, case.fitted, case.scenario)
    return _of_case(case)


def clients_of(case: Case[Any]) -> int | None:
    """Return the number of closed clients, if they determine the rate."""
    return getattr(case.scenario, "clients", None) if isinstance(case.system, TableSystem) else None


def _of_table(system: TableSystem[Any], fitted: Fitted, scenario: Scenario) -> Measured:
    clients = getattr(scenario, "clients", None)
    rate = scenario.offered_per_s()
    layout = changed(scenario, tps=None, slo=(), **({"clients": None} if hasattr(scenario, "clients") else {}))
    values = _with_own_factors(system, fitted, layout)
    row = TableRow("", None, layout, Load("open", 0, 1.0), {})
    if clients is None:
        (alone,) = solved_rows(system, [row], values, [[]])
        offered = 0.8 * float(np.median(alone.capacity_per_s)) if rate is None else float(np.max(rate))
        load = Load("open", 0, offered)
    else:
        load = Load("closed", clients)
    classes = system.classes(scenario)
    asked = [None, *(classes if len(classes) > 1 else ())]
    rows = [TableRow("", name, layout, load, {}) for name in asked]
    columns = [name for name in QUANTITIES if load.kind == "closed" or name != QUANTITIES[0]]
    solved = solved_rows(system, rows, values, [columns] * len(rows))
    draws: dict[str, FloatArray] = {} if clients is not None else {CAPACITY: solved[0].capacity_per_s}
    for name, each in zip(asked, solved, strict=True):
        for short, column in _COLUMNS.items():
            if column in each.figures:
                draws[f"{name}.{short}" if name else short] = each.figures[column]
    only = classes[0] if len(classes) == 1 else None
    if only is not None:
        draws.update({f"{only}.{name}": draws[name] for name in STATISTICS if name in draws})
    known = {} if fitted.table is None else fitted.table.scatter
    scatter = {name: known.get(_COLUMNS.get(_statistic(name), QUANTITIES[0]), 0.05) for name in draws}
    return Measured({name: np.broadcast_to(each, (len(fitted.draws),)) for name, each in draws.items()}, scatter)


def _with_own_factors(system: TableSystem[Any], fitted: Fitted, layout: Any) -> dict[str, Number]:
    """Return all draws, with factors of a layout that no row had: its own ones, whenever it is asked for."""
    found = draws_of(system, fitted)
    for effect in system.effects:
        name = name_of(effect, system.alike(layout))
        if name not in found:
            sd = fitted.its_table.priors[name_of(effect)][1]
            random = np.random.default_rng([fitted.seed, crc32(name.encode())])
            found[name] = np.exp(sd * random.standard_normal(len(fitted.draws)))
    return found


def _of_case(case: Case[Any]) -> Measured:
    if case.system.ratios_only:
        raise InputError(f"{case.system.name} is documented as ratios only: no load test of it measures a rate")
    capacity = case.solution.capacity
    given = case.given_per_s
    at = case.at(0.8 * float(np.median(capacity)) if given is None else given)
    figures = at.solution.at(float(at.offered_per_s or 0.0))
    names = case.system.classes(case.scenario)
    draws = {CAPACITY: capacity}
    for name in names:
        draws.update({f"{name}.{each}": 1e3 * figures.latency_s(name, each) for each in ("mean", *LEVELS)})
    errors = at.uncertainty
    scatter = {name: _scatter(REPEAT.get(_statistic(name), 0.1), _error(errors, name)) for name in draws}
    return Measured(draws, scatter)


def _error(errors: Any, name: str) -> float:
    own = errors.rate if name == CAPACITY else errors.by_class.get(name.rpartition(".")[0], errors.time)
    return float(own.half_width)


def _scatter(repeat: float, half_width: float) -> float:
    model = half_width / _NORMAL if math.isfinite(half_width) else 0.0
    return math.hypot(repeat, model)


def _statistic(name: str) -> str:
    return name.rpartition(".")[2]
