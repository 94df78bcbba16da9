"""Columns of latencies from what a tool has: a merged histogram, a list of samples, or printed percentiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray

from capplan.calibration.evidence.load_tests import PERCENTILES


def percentile_columns(percentiles: Mapping[float, float]) -> dict[str, Any]:
    """Return the columns of the percentiles that the table has.

    Parameters
    ----------
    percentiles : mapping of float to float
        Latency in ms by percentile between 0 and 100.
    """
    columns = {round(100 * share, 6): name for name, share in PERCENTILES.items()}
    return {columns[round(key, 6)]: value for key, value in percentiles.items() if round(key, 6) in columns}


def of_histogram(histogram: HdrHistogram, per_ms: float) -> dict[str, Any]:
    """Return the columns of latencies of a histogram.

    Parameters
    ----------
    histogram : HdrHistogram
        Merged over intervals and threads. Percentiles of parts must never be averaged.
    per_ms : float
        Recorded units in a millisecond.
    """
    if not histogram.get_total_count():
        return {}
    found = histogram.get_percentile_to_value_dict([100 * share for share in PERCENTILES.values()])
    return {
        "latency_mean_ms": float(histogram.get_mean_value()) / per_ms,
        **percentile_columns({key: value / per_ms for key, value in found.items()}),
        "latency_max_ms": float(histogram.get_max_value()) / per_ms,
    }


def of_samples(
    milliseconds: NDArray[np.float64], method: Literal["inverted_cdf", "linear"] = "inverted_cdf"
) -> dict[str, Any]:
    """Return the columns of latencies of a list of samples.

    Parameters
    ----------
    milliseconds : ndarray of float (requests,)
        Latencies.
    method : str
        How the tool finds a percentile: as one of the samples, or between two of them.
    """
    if not len(milliseconds):
        return {}
    found = np.quantile(milliseconds, list(PERCENTILES.values()), method=method)
    columns: dict[str, Any] = dict(zip(PERCENTILES, map(float, found), strict=True))
    return {"latency_mean_ms": float(milliseconds.mean()), **columns, "latency_max_ms": float(milliseconds.max())}
