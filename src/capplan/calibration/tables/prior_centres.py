"""Centres of priors that a table shows at a glance, for all systems of tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from capplan.calibration.tables.rows import TableRow, response_s
from capplan.models.language.network import Network
from capplan.models.language.parameter import Parameter, Values, defaults
from capplan.models.solver.analytic import Analysis

_OVER = 1.4  # ceiling over the highest throughput measured, in the middle of the prior
_MOST_OVER = 4.0
COMMON_LOG_SD = 0.7
"""How much all times of a table are longer or shorter together than the shortest response says, as the standard
deviation of the logarithm: a guess, as that response may hold some queueing, and each time may be most of it."""
_DRAWN = 256


def ceiling_over(rows: Sequence[TableRow], fastest: TableRow) -> float:
    """Return the ceiling over the highest throughput, by how much longer that row's response is than the shortest."""
    times = [
        response_s(row)
        for row in rows
        if row.layout == fastest.layout and row.request_class == fastest.request_class and response_s(row)
    ]
    queueing = response_s(fastest) - min(times, default=0.0)
    if len(times) < 2 or queueing <= 0:
        return _OVER
    return min(max(response_s(fastest) / queueing, _OVER), _MOST_OVER)


def median_unloaded_s(
    parameters: Sequence[Parameter], times: Sequence[str], build: Callable[[Values], Network]
) -> float:
    """Return the median of the time of an unloaded request, in seconds, if times have their priors.

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
