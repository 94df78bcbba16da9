"""What a load generator does between an answer and its client's next request: no latency has it, and the rate does.

A tool takes a latency from the request to its answer. Before and after, it makes the next row and counts the last one,
so its clients complete less than clients without think time would.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from capplan.calibration.tables.rows import MEAN, THROUGHPUT, TableRow, precision_of, share_of
from capplan.models.language.distribution import Deterministic, Exponential
from capplan.models.language.parameter import Parameter, Values
from capplan.models.language.traffic import Closed

OVERHEAD = "overhead_s"
_SHARE, _LEAST_SHARE = 0.02, 0.002  # of the shortest response, where no row says; and at least
_KNOWN_LOG_SD = 0.5  # where rows say: it differs with the number of clients

PARAMETER = Parameter(
    OVERHEAD,
    0.02e-3,
    "s",
    "prior",
    1.0,
    "what a load generator does between an answer and its client's next request: by Little's law, clients over "
    "throughput exceed the mean latency by 2 % in the median of 105 rows of tests/published/load_tests/"
    "cassandra_v4_v5_load_curves.csv, and by 5 to 14 % of reads of key-value stores in etcd_zookeeper_consul.csv",
)


def closed(clients: int, think_s: float, values: Values, mix: dict[str, float]) -> Closed:
    """Return closed clients that a load generator runs.

    Parameters
    ----------
    clients : int
        Their number.
    think_s : float
        Their think time, seconds.
    values : mapping
        Parameter values by name, SI; numbers, or arrays (draws,).
    mix : dict of float
        The shares of the classes in their requests.
    """
    pause = think_s + values.get(OVERHEAD, 0.0)
    return Closed(clients, Exponential(pause) if np.all(np.asarray(pause) > 0) else Deterministic(0.0), mix)


def overhead(rows: Sequence[TableRow], shortest_s: float) -> Parameter:
    """Return the parameter with a prior for a table: from rows that have a throughput and a mean, by Little's law.

    Parameters
    ----------
    rows : sequence of TableRow
        The rows.
    shortest_s : float
        The shortest response time of the rows, seconds.
    """
    both = [
        row
        for row in rows
        if row.load.kind == "closed" and share_of(row) == 1.0 and {THROUGHPUT, MEAN} <= row.measured.keys()
    ]
    if not both:
        return replace(PARAMETER, value=_SHARE * shortest_s)
    beyond = [
        row.load.clients / row.measured[THROUGHPUT] - row.load.think_s - row.measured[MEAN] * 1e-3 for row in both
    ]
    rounding = precision_of(rows).get(MEAN, 0.0) * 1e-3 / math.sqrt(12 * len(both))
    found = max(float(np.median(beyond)), rounding, _LEAST_SHARE * shortest_s)
    return replace(PARAMETER, value=found, log_sd=_KNOWN_LOG_SD)
