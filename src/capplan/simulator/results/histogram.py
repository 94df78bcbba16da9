"""Histograms of latencies with bins of equal relative width: a few kilobytes for any number of requests.

Ticks below 512 have one bin each; above, every power of two is cut into 256 equal bins. A quantile is interpolated
within its bin, so its error is at most 1/256 (0.4 %), and far less where latencies spread over the bin. Counts, sum and
maximum are exact. Histograms of several runs can be added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from capplan.errors import InputError
from capplan.models.language.units import FloatArray
from capplan.simulator.specification.clock import to_seconds

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram

IntArray = NDArray[np.int64]
FINE_BITS = 9  # below 2**9 ticks every tick has its own bin
HALF = 1 << (FINE_BITS - 1)  # bins for each power of two above
BINS = 14336  # enough for 63 bits: 54 * 256 + 512
SIGNIFICANT_FIGURES = 3  # of the exported histogram


def bin_of(ticks: IntArray) -> IntArray:
    """Return the bin of each duration: the duration itself below 512, else ``shift * 256 + (ticks >> shift)``.

    `shift` is the number of bits less 9, so that 9 bits remain. Compiled code does the same.
    """
    shift = np.zeros(ticks.shape, dtype=np.int64)
    for step in (32, 16, 8, 4, 2, 1):  # halving finds the length without rounding, which a float64 would not
        shift += np.where(ticks >> shift >= 1 << (step + FINE_BITS - 1), step, 0)
    return shift * HALF + (ticks >> shift)


def bin_starts() -> IntArray:
    """Return the smallest number of ticks of each bin."""
    bins = np.arange(BINS)
    shift = np.maximum(bins // HALF - 1, 0)
    starts: IntArray = (bins - shift * HALF) << shift
    return starts


def bin_span(place: int) -> tuple[int, int]:
    """Return the smallest number of ticks in a bin, and the number of tick values that it covers."""
    shift = max(place // HALF - 1, 0)
    return (place - shift * HALF) << shift, 1 << shift


def bin_middles() -> IntArray:
    """Return the middle of each bin, in ticks."""
    bins = np.arange(BINS)
    return bin_starts() + ((1 << np.maximum(bins // HALF - 1, 0)) >> 1)


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counted latencies.

    Attributes
    ----------
    counts
        Number of latencies in each of the 14,336 bins.
    total_ticks
        Their exact sum.
    largest_ticks
        The largest; 0 when there are none.
    """

    counts: IntArray
    total_ticks: int
    largest_ticks: int

    def __add__(self, other: Histogram) -> Histogram:
        """Return the histogram of both."""
        largest = max(self.largest_ticks, other.largest_ticks)
        return Histogram(self.counts + other.counts, self.total_ticks + other.total_ticks, largest)

    @property
    def count(self) -> int:
        """The number of latencies."""
        return int(self.counts.sum())

    @property
    def mean_s(self) -> float:
        """The mean, exact, in seconds; nan when there are no latencies."""
        return to_seconds(self.total_ticks / self.count) if self.count else math.nan

    @property
    def max_s(self) -> float:
        """The maximum, exact, in seconds; nan when there are no latencies."""
        return to_seconds(self.largest_ticks) if self.count else math.nan

    def quantile_s(self, probability: float) -> float:
        """Return a quantile in seconds, to 0.4 %; nan when there are no latencies.

        Latencies count as evenly spread over their bin, and never above the maximum.

        Parameters
        ----------
        probability : float
            From 0 to 1.

        Raises
        ------
        InputError
            When `probability` is not from 0 to 1.
        """
        if not 0 <= probability <= 1:
            raise InputError(f"{probability:g} is not the probability of a quantile: it must be from 0 to 1")
        if not self.count:
            return math.nan
        rank = max(1, math.ceil(probability * self.count - 1e-6))  # 0.07 * 100 counts as 7, despite its rounding error
        place = int(np.searchsorted(np.cumsum(self.counts), rank))
        before, there = int(self.counts[:place].sum()), int(self.counts[place])
        start, width = bin_span(place)
        ticks = start + int((rank - before - 0.5) / there * width)
        return to_seconds(min(ticks, self.largest_ticks))

    def cdf(self) -> tuple[FloatArray, FloatArray]:
        """Return points of the distribution function.

        Each bin that is not empty has one point, at its end (the last one at the maximum).

        Returns
        -------
        latencies_s, shares : array of shape (points,)
            Latencies in seconds, and the share of requests that took at most so long.
        """
        used = np.flatnonzero(self.counts)
        ends = np.minimum(np.append(bin_starts()[1:], np.iinfo(np.int64).max)[used] - 1, self.largest_ticks)
        return ends / 1e9, np.cumsum(self.counts[used]) / max(self.count, 1)

    def to_hdr(self) -> HdrHistogram:
        """Return an HdrHistogram in nanoseconds, with three significant figures and a range up to the maximum."""
        from hdrh.histogram import HdrHistogram  # only an export needs it

        histogram = HdrHistogram(1, max(self.largest_ticks, 2), SIGNIFICANT_FIGURES)
        used = np.flatnonzero(self.counts)
        values = np.minimum(bin_middles()[used], self.largest_ticks)
        for value, count in zip(values.tolist(), self.counts[used].tolist(), strict=True):
            histogram.record_value(value, count)
        return histogram

    def encoded(self) -> str:
        """Return the histogram in HdrHistogram's text format (V2, compressed, base64)."""
        return str(self.to_hdr().encode().decode("ascii"))
