"""Predictions of a network for load-test rows: all rows of one layout and one kind of load together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from capplan.calibration.tables.priors import closed
from capplan.calibration.tables.rows import MEAN, NODE_CPU, SOLVED_LEVELS, THROUGHPUT, TableRow
from capplan.layout.solution import kind_of, varied
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.traffic import Throttled
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.closed_clients import solve_clients
from capplan.models.solver.operating_point import OperatingPoint, solve

if TYPE_CHECKING:
    from capplan.calibration.tables.fit_table import TableSystem

_Compose = Callable[[Any, Values, Number], Network]
_UNDER_WAY, _MOST_UNDER_WAY, _ROUNDS = 4.0, 1e4, 5
_MOST = 0.98  # share of the capacity at which the latency of open traffic is taken beyond it


@dataclass(frozen=True)
class Solved:
    """Rows of one layout and kind of load, solved.

    Attributes
    ----------
    figures : mapping of arrays
        Figures by column, in the column's unit, for each row: arrays (draws,).
    capacity_per_s : array (draws,)
        The rate at which the first station is full.
    busy : mapping of arrays (draws,)
        Utilisation of each kind of station, by name.
    held : mapping of arrays (draws,)
        Share of the units in use of the outermost pools, by kind; empty without pools.
    uneven : bool
        Whether clients wait for several pools, whose queues differ more than the solver knows: it takes them as one.
    """

    figures: Mapping[str, FloatArray]
    capacity_per_s: FloatArray
    busy: Mapping[str, FloatArray]
    held: Mapping[str, FloatArray]
    uneven: bool


def solved_rows(
    system: TableSystem[Any],
    rows: Sequence[TableRow],
    values: Values,
    quantities: Sequence[Sequence[str]],
    *,
    service: bool = False,
) -> list[Solved]:
    """Solve the network of each row.

    Parameters
    ----------
    system : TableSystem
        The system.
    rows : sequence of TableRow
        The rows.
    values : mapping
        Parameter values by name, SI; numbers, or arrays (draws,).
    quantities : sequence of sequences of str
        The columns to predict for each row.
    service : bool
        Whether the clients are those of a service, which have enough machines. By default the load generator may be a
        limit; see `TableSystem.load_test_network`.

    Returns
    -------
    list of Solved
        One for each row.
    """
    together: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        load = row.load
        rate = load.rate_per_s if load.kind == "throttled" else 0.0
        together[row.layout, load.kind, load.think_s, rate].append(number)
    compose = system.network if service else system.load_test_network
    found: dict[int, Solved] = {}
    for numbers in together.values():
        own = [rows[number] for number in numbers]
        solved = _of_one_layout(system, compose, own, values, [quantities[number] for number in numbers])
        found.update(zip(numbers, solved, strict=True))
    return [found[number] for number in range(len(rows))]


def _of_one_layout(
    system: TableSystem[Any],
    compose: _Compose,
    rows: Sequence[TableRow],
    values: Values,
    quantities: Sequence[Sequence[str]],
) -> list[Solved]:
    layout, kind = rows[0].layout, rows[0].load.kind
    values = system.values_in(layout, values)
    draws = max((np.size(each) for each in values.values()), default=1)
    if kind == "open":
        return _open(system, compose, rows, values, quantities, draws)
    counts = sorted({row.load.clients for row in rows})
    slowed = system.contends(values)
    if slowed:  # one network for each number of clients, solved together as draws
        tiled = {name: np.tile(np.broadcast_to(each, (draws,)), len(counts)) for name, each in values.items()}
        values = system.at_clients(tiled, np.repeat(np.array(counts, dtype=float), draws))
    composed = compose(layout, values, 1.0)
    mix = composed.traffic.mix
    load = rows[0].load
    traffic = closed(1, load.think_s, values, mix) if kind == "closed" else Throttled(1, load.rate_per_s, mix)
    analysis = Analysis(replace(composed, traffic=traffic))
    point = solve_clients(analysis, counts, clock="actual")

    def at(number: int) -> Any:
        return (number, slice(number * draws, (number + 1) * draws)) if slowed else (number, slice(None))

    places = [at(counts.index(row.load.clients)) for row in rows]
    return _solved(system, rows, quantities, analysis, point, values, places, draws, counts)


def _open(
    system: TableSystem[Any],
    compose: _Compose,
    rows: Sequence[TableRow],
    values: Values,
    quantities: Sequence[Sequence[str]],
    draws: int,
) -> list[Solved]:
    rates = np.array([row.load.rate_per_s for row in rows])[:, None]
    if system.contends(values, on_timer=True):
        return _open_slowed(system, compose, rows, values, quantities, draws)
    analysis = Analysis(compose(rows[0].layout, values, 1.0))
    point = solve(analysis, np.minimum(rates, _MOST * analysis.drift_per_s))
    return _solved(
        system, rows, quantities, analysis, point, values, [(number, slice(None)) for number in range(len(rows))], draws
    )


def _open_slowed(
    system: TableSystem[Any],
    compose: _Compose,
    rows: Sequence[TableRow],
    values: Values,
    quantities: Sequence[Sequence[str]],
    draws: int,
) -> list[Solved]:
    """Solve open rates at which the number of requests in flight (Little's law) changes the work of a request."""
    tiled = {name: np.tile(np.broadcast_to(each, (draws,)), len(rows)) for name, each in values.items()}
    wanted = np.repeat(np.array([row.load.rate_per_s for row in rows]), draws)
    under_way = np.full(wanted.shape, _UNDER_WAY)
    for _ in range(_ROUNDS):
        own = system.at_clients(tiled, under_way, on_timer=True)
        analysis = Analysis(compose(rows[0].layout, own, 1.0))
        rates = np.minimum(wanted, _MOST * analysis.drift_per_s)[None, :]
        point = solve(analysis, rates)
        mean = np.broadcast_to(point.response_s(*analysis.share)[0], wanted.shape)
        under_way = np.sqrt(under_way * np.clip(rates[0] * mean, 1.0, _MOST_UNDER_WAY))
    places = [(0, slice(number * draws, (number + 1) * draws)) for number in range(len(rows))]
    return _solved(system, rows, quantities, analysis, point, own, places, draws)


def _solved(  # noqa: PLR0913, PLR0917  # one call site a kind of traffic
    system: TableSystem[Any],
    rows: Sequence[TableRow],
    quantities: Sequence[Sequence[str]],
    analysis: Analysis,
    point: OperatingPoint,
    values: Values,
    places: Sequence[Any],
    draws: int,
    clients: Sequence[int] | None = None,
) -> list[Solved]:
    """Return the figures of each row; `places` are the row's indices in each result."""
    layout = rows[0].layout
    delays = None
    levels = sorted({SOLVED_LEVELS[name] for names in quantities for name in names if name in SOLVED_LEVELS})
    if levels:
        if clients is None:
            delays = system.pauses(layout, values, analysis, point.rate_per_s, None) or None
        else:
            cycle_s = np.array(clients)[:, None] / point.rate_per_s
            delays = system.closed_pauses(layout, values, analysis, point.rate_per_s, cycle_s) or None
        point = varied(point, system.variation(values, _busiest(analysis, point)))
    by_classes: dict[tuple[str, ...], tuple[FloatArray, FloatArray]] = {}
    found = []
    for row, names, (number, own) in zip(rows, quantities, places, strict=True):
        classes = tuple(name for name in _classes(system, row) if name in analysis.share)
        if classes not in by_classes:
            quantiles = point.quantiles_s(levels, *classes, delays=delays) if levels else np.zeros((0, 1, 1))
            by_classes[classes] = point.response_s(*classes), quantiles
        mean, quantiles = by_classes[classes]
        share = sum((np.asarray(analysis.share[name]) for name in classes), np.zeros(()))
        rate = point.rate_per_s[number, own]
        busy: dict[str, FloatArray] = {}
        for name in analysis.demands:
            load = np.broadcast_to(analysis.load(name), (analysis.draws,))
            load = load[own] if load.shape[0] > 1 else load
            kind = kind_of(name)
            busy[kind] = np.maximum(busy.get(kind, np.zeros(1)), np.minimum(rate * load, 1.0))
        figures = {}
        for name in names:
            if name == THROUGHPUT:
                figure = rate * share
            elif name == MEAN:
                figure = mean[number, own] * 1e3
            elif name == NODE_CPU:
                under_way = rate * point.response_s(*analysis.share)[number, own]  # Little's law
                own_values = {key: _of_place(value, own) for key, value in values.items()}
                figure = system.node_cpu_percent(layout, own_values, busy, under_way)
            else:
                figure = quantiles[levels.index(SOLVED_LEVELS[name])][number, own] * 1e3
            figures[name] = np.broadcast_to(figure, (draws,))
        capacity = np.broadcast_to(analysis.drift_per_s, (analysis.draws,))
        capacity = capacity[own] if capacity.shape[0] > 1 else capacity
        units = 0 if analysis.pool is None else analysis.pool[0]
        used = np.broadcast_to(point.busy_units[number, own] / max(units, 1), (draws,))
        held = {kind_of(pool.name): used for pool in analysis.outer_pools}
        uneven = analysis.outer_pool_count > 1 and row.load.clients > units
        found.append(Solved(figures, capacity, busy, held, uneven))
    return found


def _of_place(value: Number, own: slice) -> Number:
    """Return the draws of one row, where a value has draws of all rows."""
    return value[own] if isinstance(value, np.ndarray) and value.size > 1 else value


def _busiest(analysis: Analysis, point: OperatingPoint) -> FloatArray:
    return np.minimum(point.rate_per_s / analysis.drift_per_s, 1.0)


def _classes(system: TableSystem[Any], row: TableRow) -> tuple[str, ...]:
    names = list(system.reported) if row.request_class is None else [row.request_class]
    return tuple(each for name in names for each in system.reported[name])
