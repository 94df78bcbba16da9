"""Closed clients beside the work that their own requests leave behind: a mixed network.

A branch of a fork that needs none goes on after the answer, and so does not count among the requests inside. Its work
comes at the rate of the requests, as open traffic does. In a product-form network, open traffic that keeps stations
busy for a share u of the time lengthens the services of closed clients by 1 / (1 - u). So their throughput is the x at
which a network beside the left work of x requests per second completes x. A single client already meets what its own
requests before have left.

Replicas that answer by a signal work in such branches, too. Where a latch awaits k of n signals, requests wait for k of
n parts of the work before them.

References
----------
E. D. Lazowska et al., *Quantitative System Performance*, Prentice-Hall, 1984, section 7.4: mixed models.
"""

from __future__ import annotations

import numpy as np

from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis

_SHARES = np.array([1e-6, 0.35, 0.65, 0.87, 1.0])  # of saturation: rates of the left work
_NEWTON = 4  # steps


def throughput_per_s(analysis: Analysis, population: FloatArray) -> FloatArray:
    """Return the throughput with a constant number of requests inside the outermost pools.

    Parameters
    ----------
    analysis : Analysis
        The analysed network.
    population : array (n,)
        Numbers of requests: whole numbers from 1, in ascending order.

    Returns
    -------
    array (draws, n)
        Requests per second.
    """
    if not analysis.detached:
        return analysis.throughput_per_s(population)
    most = analysis.saturation_per_s
    completed = [analysis.beside_detached(share * most).throughput_per_s(population) for share in _SHARES]
    return most[:, None] * _fixed_point(np.stack(completed) / most[:, None])


def _fixed_point(values: FloatArray) -> FloatArray:
    """Return where a falling function is its own argument (...), from its values at `_SHARES` (shares, ...)."""
    slopes = np.gradient(values, _SHARES, axis=0)
    above = (values > _SHARES.reshape(-1, *(1,) * (values.ndim - 1))).sum(axis=0)
    left = np.clip(above - 1, 0, len(_SHARES) - 2)
    begin, width = _SHARES[left], np.diff(_SHARES)[left]
    ends = np.stack([left, left + 1])
    first, last = np.take_along_axis(values, ends, axis=0)
    before, after = np.take_along_axis(slopes, ends, axis=0) * width
    rise = last - first
    where = np.clip((first - begin) / np.maximum(width - rise, 1e-12), 0.0, 1.0)
    for _ in range(_NEWTON):
        square, bend = before + after - 2 * rise, 3 * rise - 2 * before - after
        found = first + where * (before + where * (bend + where * square))
        slope = before + where * (2 * bend + 3 * where * square)
        where = np.clip(where + (found - begin - where * width) / np.maximum(width - slope, 1e-12), 0.0, 1.0)
    return np.asarray(begin + where * width)
