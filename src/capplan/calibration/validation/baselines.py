"""What a planner without a model would say of a capacity: the rules that a model has to beat.

Each takes the measured capacities of other layouts and says the capacity of one, by its total number of Cassandra
nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from capplan.models.language.units import FloatArray

Baseline = Callable[[FloatArray, FloatArray, float], float]


def persistence(nodes: FloatArray, capacity: FloatArray, wanted: float) -> float:
    """Say the capacity of the measured layout with the nearest number of nodes (the smaller of two as near)."""
    return float(capacity[np.argmin(np.abs(nodes - wanted))])


def linear(nodes: FloatArray, capacity: FloatArray, wanted: float) -> float:
    """Scale in proportion to the nodes (least squares through the origin)."""
    return float(nodes @ capacity / (nodes @ nodes) * wanted)


def affine(nodes: FloatArray, capacity: FloatArray, wanted: float) -> float:
    """Scale along a straight line (least squares); the mean where all layouts have as many nodes."""
    if np.ptp(nodes) == 0:
        return float(capacity.mean())
    slope, start = np.polyfit(nodes, capacity, 1)
    return float(start + slope * wanted)


def universal_scalability(nodes: FloatArray, capacity: FloatArray, wanted: float) -> float:
    """Scale by the universal scalability law, ``a n / (1 + s (n - 1) + k n (n - 1))`` (Gunther 2007).

    Least squares with a, s, k not negative; s is kept at most 1, so that few points still decide.
    """
    from scipy.optimize import least_squares  # slow to import, and only validation needs it

    def said(law: FloatArray, n: FloatArray | float) -> FloatArray:
        return np.asarray(law[0] * n / (1 + law[1] * (n - 1) + law[2] * n * (n - 1)))

    each = capacity.mean() / nodes.mean()
    bounds = ([0.0, 0.0, 0.0], [np.inf, 1.0, 1.0])
    start = [2 * each, 0.1, 1e-3]

    def missed(law: FloatArray) -> FloatArray:
        return (said(law, nodes) - capacity) / capacity

    found = least_squares(missed, start, bounds=bounds, x_scale=start)
    return float(said(found.x, wanted))


BASELINES: Mapping[str, Baseline] = {
    "persistence": persistence,
    "linear": linear,
    "affine": affine,
    "USL": universal_scalability,
}
