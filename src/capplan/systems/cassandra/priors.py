"""Priors of a Cassandra cluster, centred on what a load-test table shows at a glance."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from capplan.calibration.tables.overhead import OVERHEAD, overhead
from capplan.calibration.tables.prior_centres import ceiling_over, median_unloaded_s
from capplan.calibration.tables.rows import THROUGHPUT, TableRow, rate_per_s, response_s, scatter_of
from capplan.models.language.parameter import Parameter
from capplan.systems.cassandra.network import GENERATOR_LANES, PARAMETERS, network

_GENERATOR_OVER, _GENERATOR_SHARE = 4.0, 0.1
# The middle of the load generator's prior: its ceiling over the cluster's, or its work over an unloaded request,
# whichever means less work.
_FALLEN = 1.5  # times the scatter of a repeat by which throughput must fall with more clients, to be no chance
# As shares of the shortest time, in the middle of the prior: guesses after what record 28 saw on a lab.
_ON_ONE_HOST = {"wake_s": 0.5, "timer_s": 0.3, "neighbour_s": 0.3}
TIMES = ("delay_s", "coordinator_s", "mutation_s", "read_s")
"""The times of an unloaded request, which are scaled together."""


def priors(rows: Sequence[TableRow]) -> tuple[Parameter, ...]:
    """Return the parameters with priors for a table.

    The times are scaled so that an unloaded request takes as long as the shortest one measured. Clients contend only
    where throughput fell. On one host a part of the shortest time is that of wake-ups.
    """
    found = {each.name: each for each in PARAMETERS}
    shortest = min(((response_s(row), row) for row in rows if response_s(row)), key=lambda each: each[0], default=None)
    if shortest is None:
        return PARAMETERS
    unloaded, row = shortest
    if row.layout.one_host:
        unloaded *= 1 - _ON_ONE_HOST["wake_s"]
    apart = _round_trip_s(row)
    usual = median_unloaded_s(
        PARAMETERS, TIMES, lambda values: network(row.layout, {**values, "generator_s": 1e-9, "second_trip": 0.3}, 1.0)
    )
    scale = max(unloaded - apart, 0.1 * unloaded) / max(usual - apart, 1e-9)
    for name in TIMES:
        found[name] = replace(found[name], value=found[name].value * scale)
    found[OVERHEAD] = overhead(rows, shortest[0])
    rates = [(rate_per_s(each), each) for each in rows if rate_per_s(each)]
    if rates:
        highest, fastest = max(rates, key=lambda each: each[0])
        ceiling = ceiling_over(rows, fastest) * highest
        busy = min(GENERATOR_LANES / (_GENERATOR_OVER * ceiling), _GENERATOR_SHARE * unloaded)
        found["generator_s"] = replace(found["generator_s"], value=busy)
    most = _falls_at(rows)
    if most:
        found["contention"] = replace(found["contention"], value=0.3 / most, log_sd=1.0)
    for name, value in _ON_ONE_HOST.items():
        if any(each.layout.one_host for each in rows):
            found[name] = replace(found[name], value=value * shortest[0], log_sd=0.7)
    return (*found.values(), *_of_clusters(rows))


def _of_clusters(rows: Sequence[TableRow]) -> list[Parameter]:
    """Return the parameters of each cluster or version but that with most rows."""
    counts = Counter(row.layout.cluster for row in rows)
    first = max(counts, key=lambda name: (counts[name], str(name)))
    return [
        replace(known, name=f"{known.name}[{name}]", log_sd=sd)
        for name in sorted(map(str, counts.keys() - {first}))
        for known, sd in ((_named("cluster_work"), 0.5), (_named("cluster_delay"), 0.3))
    ]


def _named(name: str) -> Parameter:
    return next(each for each in PARAMETERS if each.name == name)


def _round_trip_s(row: TableRow) -> float:
    """Return the round trip that a request of a row waits for: none where its data centre is enough."""
    layout = row.layout
    if layout.dcs == 1 or all(level.startswith("LOCAL") or level in ("ONE",) for level in layout.levels().values()):
        return 0.0
    return float(max(max(each) for each in layout.round_trips_s()))


def _falls_at(rows: Sequence[TableRow]) -> int:
    """Return the most clients of a layout whose throughput fell beyond its peak; 0 if none did."""
    curves: dict[object, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.load.kind == "closed" and THROUGHPUT in row.measured:
            curves[row.layout, row.request_class][row.load.clients].append(row.measured[THROUGHPUT])
    found, least = 0, math.exp(-_FALLEN * scatter_of(rows)[THROUGHPUT])
    for curve in curves.values():
        means = {clients: float(np.mean(each)) for clients, each in curve.items()}
        most = max(means)
        if len(means) > 2 and means[most] < least * max(means.values()):
            found = max(found, most)
    return found
