"""From a few simulated draws to all: a control variate, with the analytic solution of every draw as the control.

The analytic solver is wrong about a percentile in nearly the same proportion at every draw of the parameters. So the
logarithm of the simulated figure is modelled as a line over that of the analytic figure, which gives it at all draws.
The slope is a regression over the simulated draws. The level is the figure of all their requests pooled, each latency
divided by what the line says of its draw; its error is a jackknife's over draws. So the noise of finite runs and the
misfit of the line both count as simulation error, which errs on the wide side.

A few noisy draws say little about the slope. A normal prior therefore pulls it towards one, the solver's own (a ratio
estimate); its standard deviation of a half is a guess: slopes of 0.9 to 1.1 were measured at 80 % of capacity, of 0.2
to 1.9 near saturation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from capplan.models.language.units import FloatArray
from capplan.simulator.results.histogram import Histogram, IntArray, bin_middles
from capplan.simulator.specification.clock import TICKS_PER_S

_SLOPE_SD = 0.5
_LEVEL = 0.95  # one-sided: a 90 % band
Phases = Sequence[tuple[float, Histogram]]  # the share of the requests that each has, and their latencies


@dataclass(frozen=True, eq=False)
class DrawLatencies:
    """Latencies of one class of requests at some draws.

    Attributes
    ----------
    mean_s : array
        Mean by draw; nan where no request was completed; shape (draws,).
    draw, value_s, weight : array
        Points of the draws' distributions: the draw, a latency, and the share of the draw's requests there; shape
        (points,), in the order of the latencies within each draw.
    """

    mean_s: FloatArray
    draw: IntArray
    value_s: FloatArray
    weight: FloatArray

    def figures(self, level: float | None) -> FloatArray:
        """Return, by draw, the latency that a share `level` of the requests does not exceed; None: the mean."""
        if level is None:
            return self.mean_s
        ends = np.searchsorted(self.draw, np.arange(len(self.mean_s) + 1))
        parts = [slice(start, end) for start, end in pairwise(ends.tolist())]
        return np.array([_quantile(self.value_s[part], self.weight[part], level) for part in parts])

    def pooled(self, scales: FloatArray, level: float | None) -> tuple[float, FloatArray]:
        """Return a figure of all draws' requests together, each latency divided by its draw's scale.

        A percentile of few requests is biased where latencies come in clusters, as near saturation. Pooled, they are
        as many as in one long run.

        Returns
        -------
        tuple
            The figure; and the figures without one of the draws each, shape (draws,).
        """
        count = len(self.mean_s)
        if level is None:
            scaled = self.mean_s / scales
            return float(scaled.mean()), np.asarray((scaled.sum() - scaled) / (count - 1))
        value = self.value_s / scales[self.draw]
        order = np.argsort(value, kind="stable")
        draw, value, weight = self.draw[order], value[order], self.weight[order]
        kept = (draw != number for number in range(count))
        return _quantile(value, weight, level), np.array([_quantile(value[k], weight[k], level) for k in kept])


def samples(draws: Sequence[Phases]) -> DrawLatencies:
    """Mix the phases of each draw by their shares of the requests."""
    middles = bin_middles()
    means, draw, value, weight = [], [], [], []
    for number, phases in enumerate(draws):
        means.append(sum(share * seen.mean_s for share, seen in phases))
        mixed = np.sum([share * seen.counts / max(seen.count, 1) for share, seen in phases], axis=0)
        used = np.flatnonzero(mixed)
        draw.append(np.full(len(used), number))
        value.append(np.minimum(middles[used], max(seen.largest_ticks for _, seen in phases)) / TICKS_PER_S)
        weight.append(mixed[used])
    return DrawLatencies(np.array(means), np.concatenate(draw), np.concatenate(value), np.concatenate(weight))


def _quantile(value: FloatArray, weight: FloatArray, level: float) -> float:
    """Return a quantile of sorted, weighted values, linear between them; nan when there are none."""
    if not len(value):
        return np.nan
    reached = np.cumsum(weight)
    return float(np.interp(level * reached[-1], reached - weight / 2, value))


@dataclass(frozen=True)
class Relation:
    """Simulated figures as a line over analytic ones, both as logarithms.

    Attributes
    ----------
    centre, level : float
        Mean logarithm of the analytic figures, and the line there.
    slope : float
        Slope of the line.
    error_at_centre : float
        Standard error of the line at the centre.
    error_of_slope : float
        Standard error of the slope, with the prior's help.
    freedom : float
        Degrees of freedom of both errors: simulated draws, less one, less the part of the slope that they decided.
    variance_ratio : float
        Variance of the plain mean over the simulated draws divided by that of the line at the centre.
    """

    centre: float
    level: float
    slope: float
    error_at_centre: float
    error_of_slope: float
    freedom: float
    variance_ratio: float

    def at(self, analytic: FloatArray) -> FloatArray:
        """Return the simulated figure that belongs to analytic ones."""
        return np.asarray(np.exp(self.level + self.slope * (np.log(analytic) - self.centre)))

    def half_width(self, analytic: float) -> float:
        """Return half of the width of the line's 90 % interval there, as a logarithm."""
        from scipy.special import stdtrit

        away = np.log(analytic) - self.centre
        return float(stdtrit(self.freedom, _LEVEL) * np.hypot(self.error_at_centre, self.error_of_slope * away))


def related(analytic: FloatArray, simulated: DrawLatencies, level: float | None) -> Relation:
    """Relate a figure of the simulated draws to the analytic one.

    Parameters
    ----------
    analytic : array
        The solver's positive figures by simulated draw, at least three, in seconds; shape (draws,).
    simulated : DrawLatencies
        What was simulated at these draws; none empty.
    level : float or None
        Which figure: the percentile of this level, or the mean.
    """
    x, y = np.log(analytic), np.log(simulated.figures(level))
    centre, count = float(x.mean()), len(x)
    x, y = x - centre, y - y.mean()
    spread, plain = float(x @ x), float(y @ y)
    by_draws = float(x @ y) / spread if spread > 0 else 1.0
    noise = float(np.sum((y - by_draws * x) ** 2)) / (count - 2)
    prior = noise / _SLOPE_SD**2
    decided = spread / (spread + prior) if spread > 0 else 0.0
    slope = decided * by_draws + (1 - decided)
    freedom = count - 1 - decided
    scatter = float(np.sum((y - slope * x) ** 2)) / freedom
    together, without = simulated.pooled(np.exp(slope * x), level)
    apart = np.log(without) - np.log(without).mean()
    error2 = float(apart @ apart) * (count - 1) / count * (count - 1) / freedom
    return Relation(
        centre=centre,
        level=float(np.log(together)),
        slope=slope,
        error_at_centre=error2**0.5,
        error_of_slope=(scatter / (spread + prior)) ** 0.5 if spread + prior > 0 else 0.0,
        freedom=freedom,
        variance_ratio=plain / (count - 1) / count / error2 if error2 > 0 else np.inf,
    )
