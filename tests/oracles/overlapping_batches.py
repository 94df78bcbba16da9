"""Overlapping batch means and the confidence interval of one run, by the published formulas."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from capplan.models.language.units import FloatArray
from capplan.simulator.output import CONFIDENCE, ConfidenceInterval, batch_variance, interval


def overlapping_batch_means(values: ArrayLike, length: int) -> FloatArray:
    return np.asarray(sliding_window_view(np.asarray(values, dtype=np.float64), length).mean(axis=1))


def of_overlapping_batches(
    figures: ArrayLike, *, batches_length: int, total_length: int, value: float
) -> ConfidenceInterval:
    variance, degrees = batch_variance(figures, batches_length=batches_length, total_length=total_length, value=value)
    return interval(value, variance, degrees, CONFIDENCE)
