"""Predictions of a network for load-test rows: all rows of one layout and one kind of load together."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from capplan.calibration.tables.figures import SOLVED_LEVELS
from capplan.calibration.tables.priors import closed
from capplan.layout.components import Pauses
from capplan.layout.solution import kind_of, varied
from capplan.layout.table_components import ClosedLoadTests, Contention, LayoutFactors, NodeCpu
from capplan.layout.table_rows import MEAN, NODE_CPU, THROUGHPUT, TableRow
from capplan.layout.table_system import TableSystem
from capplan.models.cassandra.pauses import OF_PAUSES
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.traffic import Throttled
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.closed_clients import solve_clients
from capplan.models.solver.operating_point import OperatingPoint, solve
from capplan.models.solver.pauses import RareDelay

_Compose = Callable[[Values, Number], Network]
_UNDER_WAY, _MOST_UNDER_WAY, _ROUNDS = 4.0, 1e4, 5
_SPEEDS = ((-math.sqrt(3), 1 / 6), (0.0, 2 / 3), (math.sqrt(3), 1 / 6))  # Gauss-Hermite: deviations, weights
_LEAST_SD = 1e-3  # of a speed that varies
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
        limit; see `ClosedLoadTests`.

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
    compose = (not service and system.component(ClosedLoadTests).network) or system.network
    found: dict[int, Solved] = {}
    for numbers in together.values():
        own = [rows[number] for number in numbers]
        layout = own[0].layout
        its = system.values_in(layout, values)
        draws = max((np.size(each) for each in its.values()), default=1)
        solve_load = _open if own[0].load.kind == "open" else _of_clients
        loaded = solve_load(system, partial(compose, layout), own, its, draws)
        wanted = [quantities[number] for number in numbers]
        found.update(zip(numbers, _solved(system, own, wanted, loaded, draws), strict=True))
    return [found[number] for number in range(len(rows))]


class _Loaded(NamedTuple):
    """A layout at the loads of its rows: its operating point, the values there, and each row's indices in results.

    `of_speeds` is the throughput of nodes whose speed varies over that of steady ones, as `point.rate_per_s`.
    """

    analysis: Analysis
    point: OperatingPoint
    values: Values
    places: Sequence[tuple[int, slice]]
    of_speeds: Number = 1.0


def _of_clients(
    system: TableSystem[Any], compose: _Compose, rows: Sequence[TableRow], values: Values, draws: int
) -> _Loaded:
    """Solve closed or throttled clients."""
    contention = system.component(Contention)
    counts = sorted({row.load.clients for row in rows})
    places = [(counts.index(row.load.clients), slice(None)) for row in rows]
    contends = contention.matters(values, False)
    if contends:  # one network for each number of clients, solved together as draws
        clients = np.repeat(np.array(counts, dtype=float), draws)
        values = contention.at_clients(_tiled(values, draws, len(counts)), clients, False)
        places = [(number, _own_draws(number, draws)) for number, _ in places]
    load = rows[0].load

    def solved(values: Values) -> tuple[Analysis, OperatingPoint]:
        composed = compose(values, 1.0)
        mix = composed.traffic.mix
        traffic = closed(1, load.think_s, values, mix) if load.kind == "closed" else Throttled(1, load.rate_per_s, mix)
        analysis = Analysis(replace(composed, traffic=traffic))
        return analysis, solve_clients(analysis, counts, clock="actual")

    analysis, point = solved(values)
    varies = system.component(Pauses).varying(values)
    if load.kind != "closed" or varies is None:
        return _Loaded(analysis, point, values, places)
    solved_draws = draws * (len(counts) if contends else 1)
    of_speeds = _of_speeds(
        point.rate_per_s,
        np.minimum(point.rate_per_s / analysis.drift_per_s, 1.0),
        np.broadcast_to(1.0, solved_draws),
        varies,
        lambda log_times: solved(_slower(system, values, solved_draws, log_times))[1].rate_per_s,
    )
    return _Loaded(analysis, point, values, places, of_speeds)


def _slower(system: TableSystem[Any], values: Values, draws: int, log_times: Sequence[FloatArray]) -> Values:
    """Return values with longer work, once for each logarithm of the factor (draws,), one after the other."""
    factor = np.exp(np.concatenate([np.broadcast_to(each, (draws,)) for each in log_times]))
    return system.component(LayoutFactors).applied(_tiled(values, draws, len(log_times)), {"work": factor})


def _of_speeds(
    steady_per_s: FloatArray,
    utilisation: FloatArray,
    full: FloatArray,
    varies: Callable[[FloatArray], FloatArray],
    solved_per_s: Callable[[Sequence[FloatArray]], FloatArray],
) -> Number:
    """Return the throughput of closed clients of nodes whose speed varies, over that of steady nodes (..., draws).

    Clients that wait elsewhere cannot use nodes that are faster for a while, so the knee of a load curve is soft; full
    nodes complete as much as steady ones of their mean speed. A speed lasts longer than a queue takes to form. The
    logarithm of throughput is taken as a parabola in that of the speed, through the throughputs at the speeds of a
    full cluster. Three speeds are up to 3 % off at a variation of 1.3, and 6 % at 1.5.

    Parameters
    ----------
    steady_per_s, utilisation : array (..., draws)
        Throughput and utilisation of steady nodes.
    full : array (draws,)
        The utilisation of a full cluster.
    varies : function
        Returns the standard deviation of the logarithm of the speed at utilisations; see `Pauses.variation`.
    solved_per_s : function
        Returns the throughput (..., times x draws) where all work is longer, from the logarithms of the factors.
    """
    sd, full_sd = varies(utilisation), np.maximum(varies(full), _LEAST_SD)
    ends = [full_sd * z + full_sd**2 / 2 for z, _ in (_SPEEDS[0], _SPEEDS[-1])]  # the mean speed is 1
    fast, slow = np.split(np.log(solved_per_s(ends)), 2, axis=-1) - np.log(steady_per_s)
    slopes = fast / ends[0], slow / ends[1]
    bend = (slopes[1] - slopes[0]) / (ends[1] - ends[0])
    total: Number = 0.0
    for z, weight in _SPEEDS:
        longer = sd * z + sd**2 / 2
        total = total + weight * np.exp(longer * (slopes[0] + bend * (longer - ends[0])))
    return total


def _open(system: TableSystem[Any], compose: _Compose, rows: Sequence[TableRow], values: Values, draws: int) -> _Loaded:
    """Solve open rates; the number of requests in flight (Little's law) may change the work of a request."""
    contention = system.component(Contention)
    rates = np.array([row.load.rate_per_s for row in rows])
    if not contention.matters(values, True):
        analysis = Analysis(compose(values, 1.0))
        point = solve(analysis, np.minimum(rates[:, None], _MOST * analysis.drift_per_s))
        return _Loaded(analysis, point, values, [(number, slice(None)) for number in range(len(rows))])
    tiled, wanted = _tiled(values, draws, len(rows)), np.repeat(rates, draws)
    under_way = np.full(wanted.shape, _UNDER_WAY)
    for _ in range(_ROUNDS):
        own = contention.at_clients(tiled, under_way, True)
        analysis = Analysis(compose(own, 1.0))
        offered = np.minimum(wanted, _MOST * analysis.drift_per_s)[None, :]
        point = solve(analysis, offered)
        mean = np.broadcast_to(point.response_s(*analysis.share)[0], wanted.shape)
        under_way = np.sqrt(under_way * np.clip(offered[0] * mean, 1.0, _MOST_UNDER_WAY))
    return _Loaded(analysis, point, own, [(0, _own_draws(number, draws)) for number in range(len(rows))])


def _tiled(values: Values, draws: int, times: int) -> dict[str, Number]:
    """Return values with their draws repeated, once for each load that is solved with the others."""
    return {name: np.tile(np.broadcast_to(each, (draws,)), times) for name, each in values.items()}


def _own_draws(number: int, draws: int) -> slice:
    """Return where the draws of a load stand among those of all."""
    return slice(number * draws, (number + 1) * draws)


def _solved(
    system: TableSystem[Any], rows: Sequence[TableRow], quantities: Sequence[Sequence[str]], loaded: _Loaded, draws: int
) -> list[Solved]:
    """Return the figures of each row."""
    analysis, point, values, places, _ = loaded
    node_cpu = system.component(NodeCpu).percent
    layout = rows[0].layout
    levels = sorted({SOLVED_LEVELS[name] for names in quantities for name in names if name in SOLVED_LEVELS})
    left, held_s = _held(system, rows, loaded)
    delays = _delays(system, rows, loaded) if levels else None
    if levels:
        varying = system.component(Pauses).varying(values)
        utilisation = np.minimum(point.rate_per_s / analysis.drift_per_s, 1.0)
        point = varied(point, None if varying is None else varying(utilisation))
    by_classes: dict[tuple[str, ...], tuple[FloatArray, FloatArray]] = {}
    found = []
    for row, names, (number, own) in zip(rows, quantities, places, strict=True):
        reported = system.reported if row.request_class is None else (row.request_class,)
        classes = tuple(each for name in reported for each in system.reported[name] if each in analysis.share)
        if classes not in by_classes:
            quantiles = point.quantiles_s(levels, *classes, delays=delays) if levels else np.zeros((0, 1, 1))
            by_classes[classes] = point.response_s(*classes), quantiles
        mean, quantiles = by_classes[classes]
        share = sum((np.asarray(analysis.share[name]) for name in classes), np.zeros(()))
        rate = point.rate_per_s[number, own] * left[number, own]
        busy: dict[str, FloatArray] = {}
        for name in analysis.demands:
            load = _of_place(np.broadcast_to(analysis.load(name), (analysis.draws,)), own)
            kind = kind_of(name)
            busy[kind] = np.maximum(busy.get(kind, np.zeros(1)), np.minimum(rate * load, 1.0))
        figures = {}
        for name in names:
            if name == THROUGHPUT:
                figure = rate * share
            elif name == MEAN:
                figure = (mean + held_s)[number, own] * 1e3
            elif name == NODE_CPU and node_cpu is not None:
                under_way = rate * (point.response_s(*analysis.share) + held_s)[number, own]  # Little's law
                own_values = {key: _of_place(value, own) for key, value in values.items()}
                figure = node_cpu(layout, own_values, busy, under_way)
            else:
                figure = quantiles[levels.index(SOLVED_LEVELS[name])][number, own] * 1e3
            figures[name] = np.broadcast_to(figure, (draws,))
        capacity = _of_place(np.broadcast_to(analysis.drift_per_s, (analysis.draws,)), own)
        units = 0 if analysis.pool is None else analysis.pool[0]
        used = np.broadcast_to(point.busy_units[number, own] / max(units, 1), (draws,))
        held = {kind_of(pool.name): used for pool in analysis.outer_pools}
        uneven = analysis.outer_pool_count > 1 and row.load.clients > units
        found.append(Solved(figures, capacity, busy, held, uneven))
    return found


def _held(system: TableSystem[Any], rows: Sequence[TableRow], loaded: _Loaded) -> tuple[FloatArray, FloatArray]:
    """Return the throughput that pauses and speeds that vary leave, as a share, and what they add to the mean, seconds.

    Throttled clients who are held make up for it later, and open ones do not wait for an answer. The pauses have their
    prior medians unless the rows state them, so that no fit bends its load curve by pauses that nobody measured.
    """
    analysis, point, values, _, of_speeds = loaded
    if rows[0].load.kind != "closed":
        return np.ones(point.rate_per_s.shape), np.zeros(point.rate_per_s.shape)
    cycle_s, left = _cycle_s(rows, point), np.ones(point.rate_per_s.shape) * of_speeds
    if left_by := system.component(ClosedLoadTests).throughput_left:
        usual = {each.name: each.value for each in system.parameters if each.name in OF_PAUSES}
        mean_s = point.response_s(*analysis.share)
        left = left * left_by(rows[0].layout, {**values, **usual}, analysis, point.rate_per_s, cycle_s, mean_s)
    return left, cycle_s * (1 / left - 1)


def _delays(
    system: TableSystem[Any], rows: Sequence[TableRow], loaded: _Loaded
) -> Mapping[str, Sequence[RareDelay]] | None:
    """Return the delays by pauses, by class; None if nothing pauses."""
    analysis, point, values, *_ = loaded
    layout = rows[0].layout
    if rows[0].load.kind == "open":
        pausing = system.component(Pauses).of(layout, values, values)
        return None if pausing is None else pausing(analysis, point.rate_per_s, None) or None
    delays = system.component(ClosedLoadTests).delays
    return None if delays is None else delays(layout, values, analysis, point.rate_per_s, _cycle_s(rows, point)) or None


def _cycle_s(rows: Sequence[TableRow], point: OperatingPoint) -> FloatArray:
    """Return the mean time from one request of a client to its next without pauses (..., draws), seconds."""
    return np.asarray(np.array(sorted({row.load.clients for row in rows}))[:, None] / point.rate_per_s)


def _of_place(value: Any, own: slice) -> Any:
    """Return the draws of one row, where a value has draws of all rows."""
    return value[own] if isinstance(value, np.ndarray) and value.size > 1 else value
