"""Histograms of given latencies."""

import numpy as np

from capplan.simulator.results.histogram import BINS, Histogram, IntArray, bin_of


def histogram_of(ticks: IntArray) -> Histogram:
    """Return the histogram of latencies in ticks (none negative)."""
    return Histogram(np.bincount(bin_of(ticks), minlength=BINS), sum(ticks.tolist()), int(ticks.max(initial=0)))
