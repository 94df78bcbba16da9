"""Names, in words, of statistics and of the simple rules in a backtest."""

from __future__ import annotations

from capplan.calibration.tables.scores import MODEL

RULES = {
    MODEL: "capplan",
    "persistence": "nearest row",
    "linear": "linear",
    "affine": "affine",
    "power_law": "power law",
    "c_plus_r_rf": "c + r x RF",
    "usl": "USL",
    "mean_values": "MVA",
}
"""The rules in words, in the order of tables."""
_STATISTICS = {
    "p50": "median",
    "p90": "90th percentile",
    "p95": "95th percentile",
    "p99": "99th percentile",
    "p999": "99.9th percentile",
}


def statistic(name: str) -> str:
    """Return a statistic in words."""
    return _STATISTICS.get(name, name)
