"""What the analytic solver is off the simulation engine: an error that the rows of a table share.

The solver's error hardly changes along a load curve. Most of it is common to all layouts of a cluster, the rest to the
rows of one layout. Rows therefore say less of the parameters than as many independent ones: without this error, bands
of parameters are too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from capplan.calibration.tables.rows import MEAN, THROUGHPUT, Figure, TableRow
from capplan.models.language.units import FloatArray

_LOG_SD = {
    "closed": {
        MEAN: (0.008, 0.003),
        THROUGHPUT: (0.008, 0.003),
        "latency_p50_ms": (0.014, 0.010),
        "latency_p95_ms": (0.030, 0.010),
        "latency_p99_ms": (0.031, 0.018),
    },
    "open": {
        MEAN: (0.011, 0.008),
        THROUGHPUT: (0.011, 0.008),
        "latency_p50_ms": (0.021, 0.011),
        "latency_p95_ms": (0.021, 0.013),
        "latency_p99_ms": (0.043, 0.018),
    },
}
"""Of the mean log error of a cluster, and of the difference of its layouts from that: root mean squares over 66 systems
with known parameters, 32 of them with closed clients (`docs/generate/synthetic_truth.py`: numbers 500 to 523, and up to
665 those that are open or two-tier), 20,000 requests a row, and up to 200,000 of open traffic. Rows of a layout
differed by 0.005 to 0.04 more. The solver's 99th percentile of open traffic is 3.4 % too low on average, at all loads:
under processor sharing, times have longer tails than its gamma distributions. No fit corrects that, because it depends
on the system."""
_USUAL = (0.025, 0.011)


def covariance(rows: Sequence[TableRow], figures: Sequence[Figure]) -> FloatArray:
    """Return the covariance (figures, figures) of the logarithms of the solver's errors.

    Parameters
    ----------
    rows : sequence of TableRow
        The rows.
    figures : sequence of Figure
        The fitted figures of the rows. Those of the same column and kind of load have an error in common.
    """
    kinds = [rows[each.row].load.kind for each in figures]
    sd = np.array([_of_kind(kind).get(each.quantity, _USUAL) for kind, each in zip(kinds, figures, strict=True)])
    together = _alike([(kind, each.quantity) for kind, each in zip(kinds, figures, strict=True)])
    same_layout = _alike([rows[each.row].layout for each in figures])
    common, own = (np.outer(each, each) for each in sd.T)
    return np.where(together, common + np.where(same_layout, own, 0.0), 0.0)


def _of_kind(kind: str) -> dict[str, tuple[float, float]]:
    return _LOG_SD.get(kind, _LOG_SD["closed"])


def _alike(keys: Sequence[object]) -> FloatArray:
    """Return which keys equal which (keys, keys)."""
    numbers = np.array([keys.index(key) for key in keys])
    return np.asarray(numbers[:, None] == numbers[None, :])
