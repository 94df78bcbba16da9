"""Priors of a two-tier system, centred on what a load-test table shows at a glance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from capplan.calibration.fit.table_rows import LEVELS, THROUGHPUT, TableRow, rate_per_s, response_s
from capplan.models.language.distribution import Deterministic
from capplan.models.language.parameter import Parameter, Values, defaults
from capplan.models.language.scenario import changed
from capplan.models.language.traffic import Closed
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.clients import solve_clients
from capplan.systems.two_tier.network import PARAMETERS, network

_OVER = 1.4  # ceiling over the highest throughput measured, in the middle of the prior
_LEAST, _MOST = 0.1, 100.0  # unseen work in the middle of the prior
_QUEUED = 0.1  # unloaded time over the shortest response where each layout was measured at one load: a guess
_ROUNDS = (1, 2, 4, 8, 16, 32)
_TIMES = {
    "read": ("delay_s", "front_read_s", "store_read_s"),
    "write": ("front_write_s", "store_write_s", "commit_s"),
}


def priors(rows: Sequence[TableRow]) -> tuple[Parameter, ...]:
    """Return the parameters with priors for a table.

    The times of a class are scaled so that an unloaded request takes as long as the shortest one measured. The ceiling,
    by the share of unseen work, is above the highest throughput measured.
    """
    found = {each.name: each for each in PARAMETERS}
    alone = {name: _shortest(rows, name) for name in _TIMES}
    for name, names in _TIMES.items():
        shortest = alone[name] or alone["read"] or alone["write"]
        if shortest is None:
            continue
        row, seconds = shortest
        scale = (_QUEUED if _of_one_load(rows) else 1.0) * seconds / _unloaded_s(row, name)
        also = ("delay_s",) if name == "write" and alone["read"] is None else ()
        for each in (*names, *also):
            found[each] = replace(found[each], value=PARAMETER[each] * scale)
    rates = [(rate_per_s(row), row) for row in rows if rate_per_s(row)]
    if rates:
        highest, fastest = max(rates, key=lambda each: each[0])
        times = {each.name: each.value for each in found.values()}
        found["unseen"] = replace(found["unseen"], value=_unseen(fastest, times, _OVER * highest))
        found["rounds"] = replace(
            found["rounds"], value=float(_rounds(rows, {**times, "unseen": found["unseen"].value}))
        )
    return tuple(found.values())


PARAMETER = {each.name: each.value for each in PARAMETERS}


def _shortest(rows: Sequence[TableRow], name: str) -> tuple[TableRow, float] | None:
    """Return the row with the shortest response of a class, and that response in seconds."""
    share = {"read": 1.0, "write": 0.0}[name]
    own = [row for row in rows if row.request_class == name or (row.layout.read_fraction == share)]
    mixed = own or [row for row in rows if 0 < row.layout.read_fraction < 1]
    known = [(row, response_s(row)) for row in mixed if response_s(row)]
    return min(known, key=lambda each: each[1], default=None)


def _of_one_load(rows: Sequence[TableRow]) -> bool:
    """Whether no layout was measured at two loads, so that even the shortest response may be mostly queueing."""
    loads = defaultdict(set)
    for row in rows:
        loads[row.layout].add(row.load)
    return max(map(len, loads.values())) == 1


def _unloaded_s(row: TableRow, name: str) -> float:
    """Return the time of an unloaded request of a class by the medians of the priors."""
    share = row.layout.read_fraction
    layout = row.layout if 0 < share < 1 else changed(row.layout, read_fraction={"read": 1.0, "write": 0.0}[name])
    analysis = Analysis(network(layout, defaults(PARAMETERS), 1.0))
    return float(np.max(analysis.averaged(analysis.unloaded)))


def _rounds(rows: Sequence[TableRow], values: Values) -> int:
    """Return how often a request takes a lane, by the percentiles over the means of closed clients."""
    known = [
        (row, name, row.measured[name] * 1e-3 / response_s(row))
        for row in rows
        for name in LEVELS
        if name in row.measured and row.load.kind == "closed" and THROUGHPUT in row.measured
    ]
    if not known:
        return int(PARAMETER["rounds"])
    wanted = np.log([ratio for *_, ratio in known])
    return min(_ROUNDS, key=lambda rounds: float(np.sum((_ratios(known, {**values, "rounds": rounds}) - wanted) ** 2)))


def _ratios(known: Sequence[tuple[TableRow, str, float]], values: Values) -> FloatArray:
    """Return the logarithms of percentiles over means, with as many clients as in rows."""
    found = []
    for row, name, _ in known:
        own = network(row.layout, values, 1.0)
        clients = Closed(row.load.clients, Deterministic(row.load.think_s), own.traffic.mix)
        point = solve_clients(Analysis(replace(own, traffic=clients)))
        classes = tuple(row.layout.mix())
        found.append(float((point.quantile_s(LEVELS[name], *classes) / point.response_s(*classes)).item()))
    return np.log(found)


def _unseen(row: TableRow, values: Values, ceiling_per_s: float) -> float:
    """Return the unseen work with which a layout has a ceiling."""
    grid = np.geomspace(_LEAST, _MOST, 60)
    analysis = Analysis(network(row.layout, {**values, "unseen": grid}, 1.0))
    ceilings = np.broadcast_to(analysis.drift_per_s, grid.shape)
    return float(grid[int(np.argmin(np.abs(np.log(ceilings / ceiling_per_s))))])
