"""What the analytic solver is off the simulation engine: an error that the rows of a layout share.

The solver's error hardly changes along a load curve and differs between layouts. Rows of one layout therefore say less
of the parameters than as many independent ones: without it, bands of parameters are too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from capplan.calibration.tables.rows import MEAN, THROUGHPUT, Figure, TableRow
from capplan.models.language.units import FloatArray

_LOG_SD = {
    "closed": {MEAN: 0.013, THROUGHPUT: 0.013, "latency_p50_ms": 0.02, "latency_p95_ms": 0.04, "latency_p99_ms": 0.05},
    "open": {MEAN: 0.01, THROUGHPUT: 0.01, "latency_p50_ms": 0.025, "latency_p95_ms": 0.015, "latency_p99_ms": 0.04},
}
"""Root mean square of the mean log error of a layout: 24 systems with known parameters, in 479 rows of `cassandra` and
80 of `two-tier` (`docs/generate/synthetic_truth.py`, numbers 500 to 523), 20,000 requests each, and 200,000
of open traffic. Within a layout the errors of its rows differed by 0.01 to 0.05."""
_USUAL = 0.04


def covariance(rows: Sequence[TableRow], figures: Sequence[Figure]) -> FloatArray:
    """Return the covariance (figures, figures) of the logarithms of the solver's errors.

    Parameters
    ----------
    rows : sequence of TableRow
        The rows.
    figures : sequence of Figure
        The fitted figures of the rows. Those of the same column, layout and kind of load have the same error.
    """
    keys = [(rows[each.row].layout, rows[each.row].load.kind, each.quantity) for each in figures]
    numbers = np.array([keys.index(key) for key in keys])
    sd = np.array([_LOG_SD.get(kind, _LOG_SD["closed"]).get(name, _USUAL) for _, kind, name in keys])
    return np.where(numbers[:, None] == numbers[None, :], sd[:, None] * sd[None, :], 0.0)
