"""What was simulated at some draws of the parameters: latencies of each, its phases mixed, and of all draws pooled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from capplan.models.language.units import FloatArray
from capplan.simulator.results.histogram import Histogram, IntArray, bin_middles
from capplan.simulator.specification.clock import TICKS_PER_S

Phases = Sequence[tuple[float, Histogram]]  # the share of the requests that each has, and their latencies


@dataclass(frozen=True, eq=False)
class Samples:
    """Latencies of one class of requests at some draws.

    Attributes
    ----------
    mean_s : array
        Mean by draw; nan where no request was completed; shape (draws,).
    draw, value_s, weight : array
        Points of the draws' laws: the draw, a latency, and the share of the draw's requests there; shape (points,),
        in the order of the latencies within each draw.
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


def samples(draws: Sequence[Phases]) -> Samples:
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
    return Samples(np.array(means), np.concatenate(draw), np.concatenate(value), np.concatenate(weight))


def _quantile(value: FloatArray, weight: FloatArray, level: float) -> float:
    """Return a quantile of sorted, weighted values, linear between them; nan when there are none."""
    if not len(value):
        return np.nan
    reached = np.cumsum(weight)
    return float(np.interp(level * reached[-1], reached - weight / 2, value))
