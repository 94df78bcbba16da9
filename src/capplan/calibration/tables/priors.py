"""Priors of tables: centres estimated from a table's rows, overhead of load generators, published scale-outs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from capplan.calibration.tables.figures import precision_of
from capplan.layout.table_rows import MEAN, THROUGHPUT, TableRow, response_s, share_of
from capplan.models.language.distribution import Deterministic, Exponential
from capplan.models.language.network import Network
from capplan.models.language.parameter import Parameter, Values, defaults
from capplan.models.language.traffic import Closed
from capplan.models.solver.analytic import Analysis

_OVER = 1.4  # ceiling over the highest throughput measured, in the middle of the prior
_MOST_OVER = 4.0
COMMON_LOG_SD = 0.7
"""How much all times of a table are longer or shorter together than the shortest response says, as the standard
deviation of the logarithm: a guess, as that response may hold some queueing, and each time may be most of it."""
_DRAWN = 256


def ceiling_over(rows: Sequence[TableRow], fastest: TableRow) -> float:
    """Estimate the ratio of ceiling to highest throughput from the queueing in that row's response time."""
    times = [
        response_s(row)
        for row in rows
        if row.tested_layout == fastest.tested_layout and row.request_class == fastest.request_class and response_s(row)
    ]
    queueing = response_s(fastest) - min(times, default=0.0)
    if len(times) < 2 or queueing <= 0:
        return _OVER
    return min(max(response_s(fastest) / queueing, _OVER), _MOST_OVER)


def median_unloaded_s(
    parameters: Sequence[Parameter], times: Sequence[str], build: Callable[[Values], Network]
) -> float:
    """Return the median unloaded request time in seconds, with the times drawn from their priors.

    The median of a sum is above the sum of the medians, since logarithms scatter evenly.

    Parameters
    ----------
    parameters : sequence of Parameter
        All parameters.
    times : sequence of str
        Those that vary.
    build : function
        Returns the network with values by name, arrays (draws,) for those that vary.
    """
    random = np.random.default_rng(0)
    drawn = {
        each.name: each.value * np.exp(each.log_sd * random.standard_normal(_DRAWN))
        for each in parameters
        if each.name in times
    }
    analysis = Analysis(build({**defaults(tuple(parameters)), **drawn}))
    return float(np.median(analysis.averaged(analysis.unloaded)))


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
    """Return the closed clients of a load generator, its overhead included.

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
    """Return the overhead parameter with a prior by Little's law, from rows with both throughput and mean.

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


EXPONENTS = Path(__file__).with_name("exponents.json")
"""Priors of exponents by axis, then by how the sources of the study begin that is left out; see `just scale-outs`."""
_AXES = {"node_exponent": "nodes", "core_exponent": "cores"}


@cache
def _exponents() -> dict[str, dict[str, tuple[float, float]]]:
    found: dict[str, dict[str, tuple[float, float]]] = json.loads(EXPONENTS.read_text(encoding="utf-8"))
    return found


def exponent(name: str) -> Parameter:
    """Return the exponent of the nodes or of the cores of a node, with a prior from published clusters."""
    axis = _AXES[name]
    value, log_sd = _exponents()[axis][""]
    source = f"capacity grows with the {axis} to this power: published clusters (tests/published/scale_outs.csv)"
    return Parameter(name, value, "1", "prior", log_sd, source)


def unseen(parameters: Sequence[Parameter], sources: Iterable[str | None]) -> tuple[Parameter, ...]:
    """Return parameters whose priors have not seen the studies that rows to fit are from; they would count twice.

    Parameters
    ----------
    parameters : sequence of Parameter
        The parameters.
    sources : iterable of str or None
        The sources of the rows.
    """
    known = {each for each in sources if each}

    def without(parameter: Parameter) -> Parameter:
        by_study = _exponents().get(_AXES.get(parameter.name, ""), {})
        own = [prior for study, prior in by_study.items() if study and any(each.startswith(study) for each in known)]
        if not own:
            return parameter
        value, log_sd = max(own, key=lambda each: each[1])
        return replace(parameter, value=value, log_sd=log_sd)

    return tuple(map(without, parameters))
