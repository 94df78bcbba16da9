"""Simple rules for capacity: what a planner would use without a model, so a model has to beat them.

Each rule estimates the capacity of a layout from the measured capacities of other layouts, by the number of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from capplan.models.language.units import FloatArray
from capplan.models.solver.single_station import closed_throughputs_per_s

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

    each = capacity.mean() / nodes.mean()
    bounds = ([0.0, 0.0, 0.0], [np.inf, 1.0, 1.0])
    start = [2 * each, 0.1, 1e-3]

    def errors(law: FloatArray) -> FloatArray:
        return (_scaled(law, nodes) - capacity) / capacity

    fit = least_squares(errors, start, bounds=bounds, x_scale=start)
    return float(_scaled(fit.x, wanted))


def _scaled(law: FloatArray, n: FloatArray | float) -> FloatArray:
    """Return the throughput by the universal scalability law with the limits a, s, k."""
    return np.asarray(law[0] * n / (1 + law[1] * (n - 1) + law[2] * n * (n - 1)))


def scalability_of_clients(clients: FloatArray, throughput: FloatArray, wanted: float) -> float:
    """Return the throughput with more clients by the universal scalability law, from three numbers of clients or more.

    The inverse of the law is linear in 1 / a, s / a and k / a. These are fitted by least squares of the relative errors
    and are not negative; nothing else bounds them.

    References
    ----------
    Gunther (2007), Guerrilla Capacity Planning.
    """
    from scipy.optimize import nnls  # slow to import

    def terms(n: FloatArray) -> FloatArray:
        return np.stack([np.ones_like(n), n - 1, n * (n - 1)], axis=-1) / n[:, None]

    scale = clients.max() ** np.arange(3)
    parts, _ = nnls(terms(clients) * throughput[:, None] / scale, np.ones(len(clients)))
    return float(1 / (terms(np.array([wanted])) @ (parts / scale))[0])


_UNLOADED_SHARES = (0.1, 0.5, 0.9)  # of the service in the unloaded time, at the starts of a search


def mean_values_of_clients(clients: FloatArray, throughput: FloatArray, wanted: float) -> float:
    """Return the throughput with more clients by mean-value analysis, from three numbers of clients or more.

    Clients spend a fixed time elsewhere and are served at one station. Service time, servers (not necessarily a whole
    number) and the time elsewhere, think time included, are fitted by least squares of the logarithms.

    References
    ----------
    Reiser and Lavenberg (1980), Mean-value analysis of closed multichain queuing networks.
    """
    from scipy.optimize import least_squares  # slow to import

    def solved(law: FloatArray, numbers: FloatArray) -> FloatArray:
        service, servers, elsewhere = np.exp(law)
        speed = np.minimum(np.arange(1.0, np.ceil(servers) + 1), servers)[None]
        counts = [int(each) for each in numbers]
        return np.asarray(closed_throughputs_per_s(np.array([service]), speed, np.array([elsewhere]), counts)[0])

    def errors(law: FloatArray) -> FloatArray:
        return np.asarray(np.log(solved(law, clients) / throughput))

    unloaded, most = float((clients / throughput).min()), float(clients.max())
    low, high = np.log([[1e-4 * unloaded, 1.0, 1e-4 * unloaded], [unloaded, most, unloaded]])
    starts = [
        [share * unloaded, max(throughput.max() * share * unloaded, 1.0), (1 - share) * unloaded]
        for share in _UNLOADED_SHARES
    ]
    fits = [
        least_squares(errors, np.clip(np.log(start), low + 1e-9, high - 1e-9), bounds=(low, high)) for start in starts
    ]
    best = min(fits, key=lambda fit: fit.cost)
    return float(solved(best.x, np.array([wanted]))[0])


def power_law(sizes: FloatArray, figures: FloatArray, wanted: float) -> float:
    """Scale a figure as a power of the size (least squares on logarithms); sizes must be above zero."""
    slope, start = np.polyfit(np.log(sizes), np.log(figures), 1)
    return float(np.exp(start + slope * np.log(wanted)))


def work_of_copies(replicas: FloatArray, times: FloatArray, wanted: float) -> float:
    """Return the request time ``c + r x RF``: a fixed part plus one part per copy, neither negative.

    For a throughput, give its inverse: the time that the cluster takes for one request.
    """
    from scipy.optimize import nnls  # slow to import

    parts, _ = nnls(np.stack([np.ones_like(replicas), replicas], axis=-1) / times[:, None], np.ones(len(times)))
    return float(parts[0] + parts[1] * wanted)


BASELINES: Mapping[str, Baseline] = {
    "persistence": persistence,
    "linear": linear,
    "affine": affine,
    "USL": universal_scalability,
}
