"""CPU of nodes as an observation: what a utilisation in a row says of the work that limits the throughput.

By the utilisation law, a node's CPU is its load over its capacity. Real nodes use more at low load: a request that
finds threads asleep wakes them, threads poll for work before they sleep, and monitoring runs without requests. With the
load u of a node as a share of its capacity, and n requests under way,

    CPU = full [u (1 + wake (1 - sqrt(u)) / sqrt(n)) + poll (1 - u) / cores].

Requests under way share wake-ups: on a lab of 2 cores, work beyond the least fell as the inverse square root of 1 to
128 clients (docs/decisions/0028). They grow in proportion to the load, so n / u are under way at the ceiling, and what
wake-ups take there is part of the work: 1 / sqrt(n) less that is (1 - sqrt(u)) / sqrt(n). Polling hardly depends on the
rate: as soon as a node of that lab had requests, its threads polled for 0.6 to 0.8 of a core. It takes only time that
is idle. `full` is the CPU at the ceiling. It holds the error of the meter, hyperthreads, and limits that a node has
before all cores are busy.

On one host the load has the wake-ups already, and the CPU is that of all processes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from capplan.layout.table_rows import NODE_CPU, TableRow, rate_per_s, response_s
from capplan.models.language.parameter import Parameter, Values
from capplan.models.language.units import FloatArray

_FULL_LOG_SD, _WAKE_LOG_SD, _POLL_LOG_SD = 0.08, 0.8, 1.0

PARAMETERS = (
    Parameter(
        "cpu_full",
        0.95,
        "1",
        "prior",
        0.0,
        "CPU of a node at its ceiling: nodes of a lab used 93 % with the load generator; the rest is the meter's error",
    ),
    Parameter(
        "cpu_wake",
        1.0,
        "1",
        "prior",
        0.0,
        "wide prior: CPU for wake-ups over that of the work, at the fewest requests under way: 1 to 3.5 on a lab of 2 "
        "cores, less on large servers",
    ),
    Parameter(
        "cpu_poll", 0.5, "1", "prior", 0.0, "wide prior: cores of a node for polling and background work: 0.1 to 2.6"
    ),
)
"""The parameters of the CPU; `observed` frees them where a row has the column."""


def observed(rows: Sequence[TableRow]) -> tuple[Parameter, ...]:
    """Return the parameters with priors for a table: free only where a row has CPU of its nodes.

    Parameters
    ----------
    rows : sequence of TableRow
        The rows to fit.
    """
    own = [row for row in rows if NODE_CPU in row.measured]
    if not own:
        return PARAMETERS
    full, wake, poll = PARAMETERS
    fewest = min((rate_per_s(row) * response_s(row) for row in own if rate_per_s(row) * response_s(row)), default=1.0)
    scale = 0.0 if all(row.layout.one_host for row in own) else math.sqrt(fewest)
    return (
        replace(full, log_sd=_FULL_LOG_SD),
        replace(wake, value=wake.value * scale, log_sd=_WAKE_LOG_SD if scale else 0.0),
        replace(poll, log_sd=_POLL_LOG_SD),
    )


def cpu_percent(values: Values, load: FloatArray, under_way: FloatArray, cores: float, *, woken: bool) -> FloatArray:
    """Return the CPU of a node, percent (draws,).

    Parameters
    ----------
    values : mapping
        Parameter values by name.
    load : array (draws,)
        Load of the node as a share of its capacity.
    under_way : array (draws,)
        Requests under way, of all clients.
    cores : float
        Cores for each node.
    woken : bool
        Whether the load lacks the work of wake-ups.
    """
    most = 1 - np.sqrt(np.minimum(load, 1.0))
    wake = values["cpu_wake"] * most / np.sqrt(np.maximum(under_way, 1e-3)) if woken else 0.0
    poll = values["cpu_poll"] / cores * (1 - np.minimum(load, 1.0))
    return np.asarray(100 * values["cpu_full"] * (load * (1 + wake) + poll))
