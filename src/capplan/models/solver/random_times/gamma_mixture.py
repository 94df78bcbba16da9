"""Quantiles of mixtures of gamma distributions, for many mixtures and levels at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from capplan.models.language.units import FloatArray
from capplan.models.solver.random_times.random_time import RandomTime

_TABLE = 8  # points of the table of the approximate distribution
_ENDS = (1e-3, 1 - 1e-4)  # levels at the ends of the table
_EXACT = 40  # steps on the exact distribution before bisection takes over; one or two suffice for parts that are alike
_CLOSE = 1e-7  # cube of the relative step size times the shape: the relative error that is left
_NARROW = 1e-2  # spread of means, relative to the standard deviation, below which parts are merged
_FORMS = 4  # of a group: all parts merged, two thirds of them, a third, or none
_HALVINGS = 40  # bisection steps between the quantiles of the components


@dataclass(frozen=True)
class GammaMixture:
    """Mixtures of gamma distributions.

    Attributes
    ----------
    weight, mean_s, variance_s2 : array (draws, parts)
        Weight, mean (s) and variance (s²) of each part; the weights of a draw add up to 1.
    """

    weight: FloatArray
    mean_s: FloatArray
    variance_s2: FloatArray

    def with_merged(self, count: int) -> tuple[NDArray[np.bool_], GammaMixture]:
        """Merge the first `count` parts of each draw into one with the same two moments.

        Tell also for which draws (draws,) these parts are nearly equal. Quantiles then change by less than a
        ten-thousandth: by the square of the spread of means, in standard deviations.
        """
        first = slice(None, count)
        share = self.weight[:, first].sum(axis=-1, keepdims=True)
        weight = self.weight[:, first] / np.maximum(share, 1e-300)
        with np.errstate(invalid="ignore"):  # a mean may be infinite
            mean, within = (np.vecdot(weight, each[:, first])[:, None] for each in (self.mean_s, self.variance_s2))
            between = np.vecdot(weight, (self.mean_s[:, first] - mean) ** 2)[:, None]
        merged = (share, mean, within + between)
        parts = (self.weight, self.mean_s, self.variance_s2)
        joined = [np.concatenate([one, every[:, count:]], axis=-1) for one, every in zip(merged, parts, strict=True)]
        return (between <= _NARROW**2 * within)[:, 0], GammaMixture(*joined)

    def forms(self) -> tuple[NDArray[np.intp], list[GammaMixture]]:
        """Return the mixtures with fewer and fewer parts merged, and the first of them that does for each draw."""
        parts = self.weight.shape[-1]
        counts = sorted({max(parts * thirds // 3, 1) for thirds in (1, 2, 3)}, reverse=True)
        near, merged = zip(*(self.with_merged(count) for count in counts), strict=True)
        return np.argmax([*near, np.ones(len(self.weight), dtype=bool)], axis=0), [*merged, self]

    def rows(self, chosen: NDArray[np.bool_]) -> GammaMixture:
        """Return the mixtures of the chosen draws."""
        return GammaMixture(self.weight[chosen], self.mean_s[chosen], self.variance_s2[chosen])

    def quantiles_s(self, levels: Sequence[float]) -> FloatArray:
        """Return quantiles with a relative error below 1e-6.

        Halley's method on the exact distribution starts from the Wilson-Hilferty approximation (the cube root of a
        gamma variate is nearly normal). A value depends only on its own draw and level.

        Parameters
        ----------
        levels : sequence of float
            Probabilities above 0 and below 1.

        Returns
        -------
        array (levels, draws)
            Seconds.
        """
        mean, shape = map(np.asarray, RandomTime(0.0, self.mean_s, self.variance_s2).gamma())
        found = np.full((len(levels), len(mean)), np.nan)
        finite = np.isfinite(mean).all(axis=-1)
        if finite.any():
            found[:, finite] = _stepped(self.weight[finite], mean[finite], shape[finite], np.asarray(levels))
        for level, row in zip(*np.nonzero(~np.isfinite(found)), strict=True):
            found[level, row] = self._bisected_s(int(row), levels[level])
        return found

    def _bisected_s(self, row: int, level: float) -> float:
        """Return a quantile of one mixture by bisection between the quantiles of its parts: slow but safe."""
        finite = np.isfinite(self.mean_s[row])
        weight = self.weight[row, finite]
        if weight.sum() < level * (1 - 1e-12):  # the quantile is among the infinite parts
            return np.inf
        mean, shape = RandomTime(0.0, self.mean_s[row, finite], self.variance_s2[row, finite]).gamma()
        parts = special.gammaincinv(shape, level) * mean / shape
        low, high = float(parts.min()), float(parts.max())
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            below = float((weight * special.gammainc(shape, middle * shape / mean)).sum()) < level
            low, high = (middle, high) if below else (low, middle)
        return (low + high) / 2


def quantiles_of_groups_s(groups: Sequence[GammaMixture], levels: Sequence[float]) -> FloatArray:
    """Return quantiles of the union of several mixtures.

    Parts of a group that are nearly equal are merged first (`GammaMixture.forms`). Draws with the same number of parts
    are solved together.

    Parameters
    ----------
    groups : sequence of GammaMixture
        The mixtures, whose weights add up to 1 over all groups.
    levels : sequence of float
        Probabilities above 0 and below 1.

    Returns
    -------
    array (levels, draws)
        Seconds.
    """
    forms = [group.forms() for group in groups]
    pattern = sum(which * (_FORMS**place) for place, (which, _) in enumerate(forms))
    found = np.empty((len(levels), len(groups[0].weight)))
    for each in np.unique(pattern):
        chosen = pattern == each
        parts = [form[each // _FORMS**place % _FORMS].rows(chosen) for place, (_, form) in enumerate(forms)]
        columns = ([getattr(part, name) for part in parts] for name in ("weight", "mean_s", "variance_s2"))
        found[:, chosen] = GammaMixture(*(np.concatenate(column, axis=-1) for column in columns)).quantiles_s(levels)
    return found


def _stepped(weight: FloatArray, mean: FloatArray, shape: FloatArray, levels: FloatArray) -> FloatArray:
    """Return quantiles (levels, draws) by Halley's method; NaN where it does not converge."""
    draws = len(weight)
    log_time = 3 * np.log(_near_cube_roots(weight, mean, shape, levels)).ravel()
    log_rate, log_gamma = np.log(shape / mean), special.gammaln(shape)
    steepest = shape.max(axis=-1)
    found = np.full(log_time.shape, np.nan)
    left = np.flatnonzero(np.isfinite(log_time))
    low, high = np.full(log_time.shape, -np.inf), np.full(log_time.shape, np.inf)
    for _ in range(_EXACT):
        row = left % draws
        log_scaled, share, a = log_time[left, None] + log_rate[row], weight[row], shape[row]
        scaled = np.exp(log_scaled)
        error = np.vecdot(share, special.gammainc(a, scaled)) - levels[left // draws]
        density = share * np.exp(a * log_scaled - scaled - log_gamma[row])  # with respect to the logarithm of time
        slope, bend = density.sum(axis=-1), np.vecdot(density, a - scaled)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = -error / (slope - error * bend / (2 * slope))
        here = log_time[left]
        low[left], high[left] = np.where(error < 0, here, low[left]), np.where(error > 0, here, high[left])
        # Between parts that are far apart the distribution is flat, and steps leave the interval of the quantile.
        there = here - np.sign(error) * np.fmin(np.abs(step), 0.5)
        inside = (there > low[left]) & (there < high[left])
        with np.errstate(invalid="ignore"):  # nothing is known yet where the first time is the quantile itself
            between = (low[left] + high[left]) / 2
        log_time[left] = np.where(inside | ~np.isfinite(between), there, between)
        settled = np.abs(step) ** 3 * steepest[row] < _CLOSE
        found[left[settled]] = np.exp(log_time[left[settled]])
        left = left[~settled]
        if not len(left):
            break
    return found.reshape(len(levels), draws)


def _near_cube_roots(weight: FloatArray, mean: FloatArray, shape: FloatArray, levels: FloatArray) -> FloatArray:
    """Return cube roots (levels, draws) of the quantiles of the Wilson-Hilferty approximation.

    A table of the distribution, linearised by the normal quantile function, gives the start of one Newton step.
    """
    deviations = 3 * np.sqrt(shape)
    slope, offset = deviations / np.cbrt(mean), deviations - 1 / deviations  # these make cube roots standard normal
    low, high = ((end + offset) / slope for end in special.ndtri(_ENDS))
    low, high = np.maximum(low.min(axis=-1), 1e-12), np.maximum(high.max(axis=-1), 2e-12)
    grid = low + (high - low) * np.linspace(0, 1, _TABLE)[:, None]
    table = special.ndtri(np.clip(np.vecdot(weight, special.ndtr(grid[..., None] * slope - offset)), 1e-9, 1 - 1e-9))
    roots, start, end = _inverted(special.ndtri(levels), table, grid)
    normal = roots[..., None] * slope - offset
    error = np.vecdot(weight, special.ndtr(normal)) - levels[:, None]
    density = np.vecdot(weight * slope, np.exp(normal * normal / -2)) / np.sqrt(2 * np.pi)
    newton = roots - error / np.maximum(density, 1e-300)
    return np.where((newton > start) & (newton < end), newton, roots)  # where it is flat, Newton's step leads astray


def _inverted(wanted: FloatArray, table: FloatArray, grid: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return where rising columns of `table` (points, draws) reach `wanted`, interpolated linearly (levels, draws).

    The points of the table below and above follow.
    """
    right = np.clip((table <= wanted[:, None, None]).sum(axis=1), 1, len(table) - 1)
    (below, above), (low, high) = (
        (np.take_along_axis(each, right - 1, axis=0), np.take_along_axis(each, right, axis=0)) for each in (table, grid)
    )
    share = (wanted[:, None] - below) / np.maximum(above - below, 1e-300)
    return low + np.clip(share, 0.0, 1.0) * (high - low), low, high
