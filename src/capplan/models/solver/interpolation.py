"""Interpolation: of a costly smooth function at many points that lie in few dimensions, and between values on a line.

Draws of many parameters, at several rates, often differ in few ways that matter to one function: in one ratio of times,
for example. The logarithms of the arguments then lie in a space of few dimensions, which their covariance matrix shows.
A Chebyshev polynomial there needs dozens of values instead of thousands.

The coefficients of a function that is analytic around a box decrease geometrically along each axis: the faster, the
narrower the box (Trefethen, chapter 8). The polynomial has the terms whose product of these factors is above the
accuracy. It equals the function at as many points, one for each term: a sparse grid of Leja points.

References
----------
L. N. Trefethen, *Approximation Theory and Approximation Practice*, SIAM, 2013.
A. Chkifa, A. Cohen and C. Schwab, "High-dimensional adaptive sparse polynomial interpolation", Found. Comput. Math. 14
(2014) 601-633.
F. N. Fritsch and J. Butland, "A method for constructing local monotone piecewise cubic interpolants", SIAM J. Sci.
Stat. Comput. 5 (1984) 300-304.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike, NDArray

from capplan.models.language.units import FloatArray

ACCURACY = 5e-7  # usual relative difference from the function, at the points where it is checked
_CHECKS = 8  # points where the function is evaluated to check the polynomial
_SMOOTH = 1.2  # distance of the nearest singularity from the box, as a logarithm
_DIGITS = (1.35, 1.7)  # factors on the number of digits up to which terms are kept, tried in turn
_WORTHWHILE = 0.4  # evaluations per point above which the function itself is evaluated everywhere
_FLAT = 1e-9  # extent of an axis, as a logarithm, that does not matter


def evaluated(
    function: Callable[[FloatArray], FloatArray], points: FloatArray, accuracy: ArrayLike = ACCURACY
) -> FloatArray:
    """Evaluate a function at many points, by interpolation where that is accurate and saves time.

    Parameters
    ----------
    function : callable
        A smooth function of arrays (arguments, n) that returns arrays (results, n).
    points : array (arguments, n)
        Arguments, at least 0.
    accuracy : number or array (results,)
        Relative error that a result may have.

    Returns
    -------
    array (results, n)
        Results with an error of about the accuracy, or exact.
    """
    most = int(_WORTHWHILE * points.shape[1]) - _CHECKS
    space = _space(points) if most > 0 else None
    if space is None:
        return function(points)
    checks, allowed = np.linspace(0, points.shape[1] - 1, _CHECKS).astype(np.intp), np.reshape(accuracy, (-1, 1))
    for factor in _DIGITS:
        terms = space.terms(-np.log(ACCURACY) * factor, most)
        if terms is None:
            break
        grid = _grid(terms.tobytes(), terms.shape)
        values = function(np.concatenate([space.arguments(grid.nodes), points[:, checks]], axis=1))
        found = _sums(space.places, terms, grid.coefficients(values[:, :-_CHECKS].T))
        exact = values[:, -_CHECKS:]
        if np.all(np.abs(found[:, checks] - exact) <= allowed * np.abs(exact)):
            return found
    return function(points)


def evaluated_apart(
    function: Callable[[FloatArray], FloatArray],
    points: FloatArray,
    sides: NDArray[np.bool_],
    accuracy: ArrayLike = ACCURACY,
) -> FloatArray:
    """Evaluate a function with bends: at the points on the same side of all of them together.

    Parameters
    ----------
    function, points, accuracy
        As for `evaluated`; the function is smooth on each side.
    sides : array (bends, n)
        On which side of each bend a point lies.

    Returns
    -------
    array (results, n)
    """
    if np.all(sides == sides[:, :1]):
        return evaluated(function, points, accuracy)
    _, group = np.unique(sides, axis=1, return_inverse=True)
    order = np.argsort(group, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    return np.concatenate([evaluated(function, points[:, part], accuracy) for part in parts], axis=1)[
        :, np.argsort(order)
    ]


def monotone_cubic(nodes: FloatArray, values: FloatArray, at: FloatArray) -> FloatArray:
    """Interpolate by cubics that rise and fall only where the values do.

    It is scipy's `PchipInterpolator`, whose import takes longer than a prediction has time for.

    Parameters
    ----------
    nodes : array (nodes,)
        At least three, in ascending order.
    values : array (nodes, ...)
        Values there.
    at : array (points,) or (points, ...)
        Where to interpolate, between the first node and the last; with all axes of the values, each at its own places.

    Returns
    -------
    array (points, ...)
    """
    shape = (-1, *(1,) * (values.ndim - 1))
    step = np.diff(nodes).reshape(shape)
    slope = np.diff(values, axis=0) / step
    before, after, rise, next_rise = step[:-1], step[1:], slope[:-1], slope[1:]
    weights = (2 * after + before, after + 2 * before)
    level = rise * next_rise <= 0
    inverse = (weights[0] / np.where(level, 1.0, rise) + weights[1] / np.where(level, 1.0, next_rise)) / sum(weights)
    inner = np.where(level, 0.0, 1 / np.where(level, 1.0, inverse))
    ends = [_slope_at_end(step[:2], slope[:2]), _slope_at_end(step[:-3:-1], slope[:-3:-1])]
    tangent = np.concatenate([ends[0][None], inner, ends[1][None]])
    left = np.clip(np.searchsorted(nodes, at, side="right") - 1, 0, len(nodes) - 2)
    width, beyond = np.diff(nodes)[left], at - nodes[left]
    if at.ndim == 1:
        width, share = width.reshape(shape), beyond.reshape(shape) / width.reshape(shape)
        first, last, begin, end = values[left], values[left + 1], tangent[left], tangent[left + 1]
    else:
        share = beyond / width
        first, last = (np.take_along_axis(values, each, axis=0) for each in (left, left + 1))
        begin, end = (np.take_along_axis(tangent, each, axis=0) for each in (left, left + 1))
    back = 1 - share
    found = first * back**2 * (1 + 2 * share) + last * share**2 * (1 + 2 * back)
    return np.asarray(found + width * share * back * (begin * back - end * share))


def _slope_at_end(step: FloatArray, slope: FloatArray) -> FloatArray:
    """Return the tangent at the first of three nodes: that of their parabola, if the cubic stays monotone."""
    found = ((2 * step[0] + step[1]) * slope[0] - step[0] * slope[1]) / (step[0] + step[1])
    found = np.where(np.sign(found) == np.sign(slope[0]), found, 0.0)
    steep = (np.sign(slope[0]) != np.sign(slope[1])) & (np.abs(found) > 3 * np.abs(slope[0]))
    return np.asarray(np.where(steep, 3 * slope[0], found))


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

    def arguments(self, places: FloatArray) -> FloatArray:
        """Return the arguments (arguments, n) at places in the box (dimensions, n)."""
        found = np.repeat(self.constant[:, None], places.shape[1], axis=1)
        found[self.varied] = np.exp(self.centre[:, None] + self.axes @ (self.half_width[:, None] * places))
        return found

    def terms(self, least: float, most: int) -> NDArray[np.intp] | None:
        """Return the degrees (dimensions, terms) of the terms along each axis; None if there are more than `most`.

        `least` is the logarithm of how much less a term may contribute than the constant one. Along an axis, terms
        decrease by a factor for each degree: the sum of the half-axes of the largest ellipse without a singularity.
        """
        ratio = _SMOOTH / self.half_width
        left, degrees = np.full(1, least), np.zeros((0, 1), dtype=np.intp)
        for decrease in np.log(ratio + np.sqrt(ratio**2 + 1)):
            counts = (left // decrease).astype(np.intp) + 1
            if counts.sum() > most:
                return None
            own = np.concatenate([np.arange(count) for count in counts])
            degrees = np.concatenate([np.repeat(degrees, counts, axis=1), own[None]])
            left = np.repeat(left, counts) - own * decrease
        return degrees if degrees.shape[1] <= most else None


@dataclass(frozen=True)
class _Grid:
    """A sparse grid of Leja points.

    Attributes
    ----------
    terms : array of int (dimensions, terms)
        Degrees of the terms along each axis: a lower set, which has all terms below each of its terms.
    nodes : array (dimensions, terms)
        A point for each term.
    lines : array of int (dimensions, terms)
        For each axis, the number of the line along it on which the point of a term lies.
    """

    terms: NDArray[np.intp]
    nodes: FloatArray
    lines: NDArray[np.intp]

    def coefficients(self, values: FloatArray) -> FloatArray:
        """Return the coefficients (terms, results) of the polynomial with given values at the nodes (terms, results).

        On a lower set, the inverse triangular factors can be applied axis by axis.
        """
        for factor in _inverse_factors(int(self.terms.max(initial=0)) + 1):
            for degrees, lines in zip(self.terms, self.lines, strict=True):
                count = int(degrees.max()) + 1
                table = np.zeros((int(lines.max()) + 1, count, values.shape[1]))
                table[lines, degrees] = values
                values = (factor[:count, :count] @ table)[lines, degrees]
        return values


@lru_cache(maxsize=256)  # few sets of terms occur, and each often
def _grid(terms: bytes, shape: tuple[int, int]) -> _Grid:
    degrees = np.frombuffer(terms, dtype=np.intp).reshape(shape)
    lines = [
        np.unique(np.delete(degrees, axis, axis=0), axis=1, return_inverse=True)[1].ravel() for axis in range(shape[0])
    ]
    nodes = _leja(int(degrees.max(initial=0)) + 1)[degrees]
    return _Grid(degrees, nodes, np.array(lines, dtype=np.intp).reshape(shape))


@lru_cache
def _inverse_factors(count: int) -> tuple[FloatArray, FloatArray]:
    """Return the inverses of the LU factors of a Chebyshev-Vandermonde matrix; Leja points need no pivots."""
    upper, lower = chebyshev.chebvander(_leja(count), count - 1), np.eye(count)
    for place in range(count):
        lower[place + 1 :, place] = upper[place + 1 :, place] / upper[place, place]
        upper[place + 1 :] -= np.outer(lower[place + 1 :, place], upper[place])
    return np.asarray(np.linalg.inv(lower), dtype=float), np.asarray(np.linalg.inv(upper), dtype=float)


def _leja(count: int) -> FloatArray:
    """Return the first points of a Leja sequence (count,) in the interval from -1 to 1, its centre first."""
    angles = [0.0, np.pi, np.pi / 2]
    for place in range(2, 2 + count // 2):
        angles += [angles[place] / 2, angles[place] / 2 + np.pi]
    return np.asarray(np.cos([angles[2], *angles[:2], *angles[3:]][:count]))


def _basis(places: FloatArray, terms: NDArray[np.intp]) -> FloatArray:
    """Return the value of each term at each place (n, terms)."""
    found = np.ones((places.shape[1], terms.shape[1]))
    for place, degrees in zip(places, terms, strict=True):
        found *= chebyshev.chebvander(place, int(degrees.max(initial=0)))[:, degrees]
    return found


def _sums(places: FloatArray, terms: NDArray[np.intp], coefficients: FloatArray) -> FloatArray:
    """Return the sum of the terms (results, n) at each place. The last axis, mostly the widest, is summed first."""
    if not len(terms):
        return np.repeat(coefficients.T, places.shape[1], axis=1)
    heads, head = np.unique(terms[:-1], axis=1, return_inverse=True)
    table = np.zeros((int(terms[-1].max()) + 1, heads.shape[1], coefficients.shape[1]))
    table[terms[-1], head.ravel()] = coefficients
    along = np.tensordot(chebyshev.chebvander(places[-1], len(table) - 1), table, axes=1)
    return np.asarray(np.einsum("nh,nhr->rn", _basis(places[:-1], heads), along))


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
