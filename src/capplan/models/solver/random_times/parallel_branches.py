"""The k-th of parallel branches with different distributions to finish: its mean and variance, by quadrature.

Branches are independent; each takes its floor and a time above it with the distribution of `branch_law`.
Gauss-Legendre quadrature between points where the distributions bend integrates the tail of the Poisson binomial
distribution. The relative error is about 1e-6 or less; 1e-4 where a squared coefficient of variation is above 1.

References
----------
H. A. David and H. N. Nagaraja, *Order Statistics*, 3rd ed., Wiley, 2003, section 2.1 and chapter 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from capplan.models.language.units import FloatArray
from capplan.models.solver.random_times.branch_law import law_cdf
from capplan.models.solver.random_times.interpolation import evaluated
from capplan.models.solver.random_times.order_statistics import chance_of_at_least

_NODES = 12  # of the quadrature, in each panel
_PANELS = 5  # edges that each kind of branch adds
_CHUNK = 150_000  # probabilities of branches at nodes that are computed at a time, which stay in the cache
_WHOLE = 8  # largest shape whose distribution is summed as that of an Erlang variate
_NEARLY = 1e-12  # relative difference from a whole number, from rounding


def kth_of_different(
    floor_s: FloatArray, mean_s: FloatArray, shape: FloatArray, counts: Sequence[int], needed: int
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of the time until some of several kinds of branches are done.

    Parameters
    ----------
    floor_s : array (kinds, n)
        Smallest time of each kind, in seconds.
    mean_s, shape : array (kinds, n)
        Mean above the floor (s) and shape of the gamma distribution there, both above 0.
    counts : sequence of int
        Number of branches of each kind.
    needed : int
        Branches to wait for, from 1 to all.

    Returns
    -------
    tuple of array (n,)
        Mean (s) and variance (s²).
    """
    order = np.argsort(np.median(floor_s, axis=1), kind="stable")
    floor_s, mean_s, shape = floor_s[order], mean_s[order], shape[order]
    gaps = np.diff(floor_s, axis=0)
    scale = mean_s[np.argmax(np.median(mean_s, axis=1))]
    solved = partial(_solved, counts=[counts[kind] for kind in order], needed=needed)
    if np.all(gaps >= 0):
        mean, variance = evaluated(solved, np.concatenate([gaps / scale, mean_s / scale, 1 / shape]))
    else:
        mean, variance = solved(np.concatenate([gaps / scale, mean_s / scale, 1 / shape]))
    return floor_s[0] + scale * mean, scale**2 * variance


def _solved(points: FloatArray, counts: Sequence[int], needed: int) -> FloatArray:
    """Return mean and variance (2, n) in units of a scale; the arguments (3 kinds - 1, n) have no unit."""
    kinds = len(counts)
    floor = np.pad(np.cumsum(points[: kinds - 1], axis=0), ((1, 0), (0, 0)))
    mean, shape = points[kinds - 1 : -kinds], 1 / points[-kinds:]
    size = max(_CHUNK // (_PANELS * kinds * _NODES * sum(counts)), 1)
    chunks = [slice(start, start + size) for start in range(0, points.shape[1], size)]
    found = [_integrated(floor[:, each], mean[:, each], shape[:, each], counts, needed) for each in chunks]
    return np.concatenate(found, axis=1)


def _integrated(
    floor: FloatArray, mean: FloatArray, shape: FloatArray, counts: Sequence[int], needed: int
) -> FloatArray:
    nodes, weights = _gauss_legendre()
    edges = _edges(floor, mean, shape)
    width = np.diff(edges, axis=-1)[..., None]
    time = (edges[:, :-1, None] + width * nodes).reshape(len(edges), -1)
    weight = (width * weights).reshape(len(edges), -1)
    passed = [
        _passed(alpha[:, None], np.maximum(time - start[:, None], 0.0) / middle[:, None])
        for start, middle, alpha in zip(floor, mean, shape, strict=True)
    ]
    done = chance_of_at_least(
        [share for share, count in zip(passed, counts, strict=True) for _ in range(count)], needed
    )
    left = (1 - done) * weight
    first = edges[:, 0]
    average = first + left.sum(axis=-1)
    variance = (first - average) ** 2 + 2 * np.vecdot(left, time - average[:, None])
    return np.stack([average, np.maximum(variance, 0.0)])


def _edges(floor: FloatArray, mean: FloatArray, shape: FloatArray) -> FloatArray:
    """Return the edges (n, edges) of the panels: where each distribution begins, bends and ends."""
    deviation, scale = mean / np.sqrt(shape), mean / shape
    begin = np.maximum(mean - 8 * deviation, 0.0)
    end = mean + 7 * deviation + 18 * scale
    early = np.maximum(mean - 2 * deviation, mean / 4)
    edges = np.concatenate([floor + each for each in (begin, early, mean, mean + 2 * deviation, end)])
    return np.ascontiguousarray(np.sort(edges, axis=0).T)


def _passed(shape: FloatArray, time: FloatArray) -> FloatArray:
    """Return the probability of at most some multiples of the mean; of a small whole shape in closed form."""
    whole = round(float(shape.flat[0]))
    if not 1 <= whole <= _WHOLE or np.any(np.abs(shape - whole) > _NEARLY * whole):
        return law_cdf(shape, time)
    scaled = whole * time
    term = total = np.exp(-scaled)
    for number in range(1, whole):
        term = term * (scaled / number)
        total = total + term
    return np.asarray(1 - total)


@lru_cache(maxsize=1)
def _gauss_legendre() -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights on the unit interval."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (np.asarray(nodes) + 1) / 2, np.asarray(weights) / 2
