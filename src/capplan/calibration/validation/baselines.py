"""Simple rules for capacity, which a planner would use without a model and which a model has to beat.

Each rule estimates the capacity of a layout from the measured capacities of other layouts, by the number of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from capplan.models.language.units import FloatArray

Baseline = Callable[[FloatArray, FloatArray, float], float]
"""Estimates a capacity or another figure, from measured sizes (layouts,), their figures (layouts,) and the size of the
layout. All figures are above zero, and so is the estimate."""


def persistence(nodes: FloatArray, capacity: FloatArray, wanted: float) -> float:
    """Return the capacity of the measured layout with the nearest number of nodes (the first of two as near)."""
    return float(capacity[np.argmin(np.abs(nodes - wanted))])


def linear(nodes: FloatArray, capacity: FloatArray, wanted: float) -> float:
    """Scale the capacity in proportion to the nodes (least squares through the origin)."""
    return float(nodes @ capacity / (nodes @ nodes) * wanted)


def affine(nodes: FloatArray, capacity: FloatArray, wanted: float) -> float:
    """Scale the capacity along a straight line (least squares); the mean if all layouts have the same size.

    Where the line has fallen to zero or below, no planner would believe it: the nearest measured layout counts instead.
    """
    if np.ptp(nodes) == 0:
        return float(capacity.mean())
    slope, start = np.polyfit(nodes, capacity, 1)
    estimate = float(start + slope * wanted)
    return estimate if estimate > 0 else persistence(nodes, capacity, wanted)


def universal_scalability(nodes: FloatArray, capacity: FloatArray, wanted: float) -> float:
    """Scale the capacity by the universal scalability law, ``a n / (1 + s (n - 1) + k n (n - 1))``.

    The fit is least squares with a, s, k not negative; s and k are at most 1, so that few points determine them.

    References
    ----------
    Gunther (2007), Guerrilla Capacity Planning.
    """
    from scipy.optimize import least_squares  # slow to import, and only validation needs it

    def scaled(law: FloatArray, n: FloatArray | float) -> FloatArray:
        return np.asarray(law[0] * n / (1 + law[1] * (n - 1) + law[2] * n * (n - 1)))

    each = capacity.mean() / nodes.mean()
    bounds = ([0.0, 0.0, 0.0], [np.inf, 1.0, 1.0])
    start = [2 * each, 0.1, 1e-3]

    def errors(law: FloatArray) -> FloatArray:
        return (scaled(law, nodes) - capacity) / capacity

    fit = least_squares(errors, start, bounds=bounds, x_scale=start)
    return float(scaled(fit.x, wanted))


BASELINES: Mapping[str, Baseline] = {
    "persistence": persistence,
    "linear": linear,
    "affine": affine,
    "USL": universal_scalability,
}
