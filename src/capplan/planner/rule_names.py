"""What the simple rules beside a backtest are called in words."""

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
}
"""The rules in words, in the order of tables."""
