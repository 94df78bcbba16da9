"""A costly smooth function at many points that lie in few dimensions, by interpolation between few of its values.

Draws of many parameters, at several rates, often differ in few ways that matter to one function: in one ratio of times,
for example. The logarithms of the arguments then lie in a space of few dimensions, which their covariance matrix shows.
A Chebyshev polynomial there needs dozens of values instead of thousands.

References
----------
L. N. Trefethen, *Approximation Theory and Approximation Practice*, SIAM, 2013.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, prod

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from capplan.models.language.units import FloatArray

ACCURACY = 5e-7  # relative difference from the function, at the points where it is checked
_CHECKS = 8  # points where the function is evaluated to check the polynomial
_NODES, _NODES_PER_E = 4.0, 2.5  # nodes along an axis, and more for each factor of e that it spans
_GROWTHS = (1.0, 1.5)  # factors on the number of nodes, tried in turn
_WORTHWHILE = 0.4  # nodes per point above which the function itself is evaluated everywhere
_FLAT = 1e-9  # extent of an axis, as a logarithm, that does not matter


def evaluated(function: Callable[[FloatArray], FloatArray], points: FloatArray) -> FloatArray:
    """Evaluate a function at many points, by interpolation where that is accurate and saves time.

    Parameters
    ----------
    function : callable
        A smooth function of arrays (arguments, n) that returns arrays (results, n).
    points : array (arguments, n)
        Arguments, at least 0.

    Returns
    -------
    array (results, n)
        Results with a relative error of about `ACCURACY`, or exact.
    """
    space = _space(points)
    if space is None:
        return function(points)
    for growth in _GROWTHS:
        counts = [ceil(growth * (_NODES + _NODES_PER_E * width)) for width in 2 * space.half_width]
        if prod(counts) + _CHECKS > _WORTHWHILE * points.shape[1]:
            break
        checks = np.linspace(0, points.shape[1] - 1, _CHECKS).astype(np.intp)
        values = function(np.concatenate([space.nodes(counts), points[:, checks]], axis=1))
        found = space.interpolated(values[:, :-_CHECKS], counts)
        exact = values[:, -_CHECKS:]
        if np.all(np.abs(found[:, checks] - exact) <= ACCURACY * np.abs(exact)):
            return found
    return function(points)


@dataclass(frozen=True)
class _Space:
    """A box around points, in the principal axes of their logarithms.

    Attributes
    ----------
    constant : array (arguments,)
        Arguments that are the same at all points; others are not used.
    varied : array of int (varied,)
        Indices of the other arguments.
    centre : array (varied,)
        Centre of the box, as logarithms.
    axes : array (varied, dimensions)
        Directions of its axes.
    half_width : array (dimensions,)
        Half of its extent along each axis.
    places : array (dimensions, n)
        The points in units of `half_width`, from -1 to 1.
    """

    constant: FloatArray
    varied: NDArray[np.intp]
    centre: FloatArray
    axes: FloatArray
    half_width: FloatArray
    places: FloatArray

    def nodes(self, counts: list[int]) -> FloatArray:
        """Return the arguments (arguments, nodes) at the Chebyshev nodes of the box."""
        along = [chebyshev.chebpts1(count) for count in counts]
        grid = np.stack([axis.ravel() for axis in np.meshgrid(*along, indexing="ij")]) if along else np.zeros((0, 1))
        found = np.repeat(self.constant[:, None], grid.shape[1], axis=1)
        found[self.varied] = np.exp(self.centre[:, None] + self.axes @ (self.half_width[:, None] * grid))
        return found

    def interpolated(self, values: FloatArray, counts: list[int]) -> FloatArray:
        """Return the polynomials (results, n) at the points from their values (results, nodes) at the nodes."""
        table = np.moveaxis(values.reshape(len(values), *counts), 0, -1)
        for axis, count in enumerate(counts):
            table = np.moveaxis(np.tensordot(_to_coefficients(count), table, axes=(1, axis)), 0, axis)
        found = np.broadcast_to(table, (self.places.shape[1], *table.shape))
        for axis, (place, count) in enumerate(zip(self.places, counts, strict=True)):
            weights = chebyshev.chebvander(place, count - 1)
            found = np.einsum("nk,nk...->n...", weights, found) if axis else np.tensordot(weights, table, axes=1)
        return found.T


def _space(points: FloatArray) -> _Space | None:
    """Return the space of the points; None if an argument that varies is not above 0."""
    low, high = points.min(axis=1), points.max(axis=1)
    varied = np.flatnonzero(high - low > _FLAT * high)
    if not np.all(low[varied] > 0):
        return None
    logs = np.log(points[varied])
    mean = logs.mean(axis=1, keepdims=True)
    axes = np.linalg.eigh((logs - mean) @ (logs - mean).T)[1]
    places = axes.T @ (logs - mean)
    low, high = places.min(axis=1), places.max(axis=1)
    kept = high - low > _FLAT
    middle, half = (low + high) / 2, ((high - low) / 2)[kept]
    scaled = (places[kept] - middle[kept, None]) / half[:, None]
    return _Space(points[:, 0], varied, mean[:, 0] + axes @ middle, axes[:, kept], half, np.clip(scaled, -1.0, 1.0))


def _to_coefficients(count: int) -> FloatArray:
    """Return the matrix from values at Chebyshev nodes to the coefficients of the polynomial."""
    matrix = chebyshev.chebvander(chebyshev.chebpts1(count), count - 1).T * 2 / count
    matrix[0] /= 2
    return np.asarray(matrix)
