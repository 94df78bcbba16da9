"""Percentiles in order: each is found on its own, and one could come out just below a lower one."""

from __future__ import annotations

from dataclasses import replace

from capplan.models.results import STATISTICS, Band, Latency


def in_order(latency: Latency) -> Latency:
    """Return a latency of which no percentile, and no end of its band, lies below that of a lower percentile."""
    low = value = high = 0.0
    found: dict[str, Band] = {}
    for statistic in STATISTICS[1:]:
        band: Band | None = getattr(latency, statistic)
        if band is not None:
            low, value, high = max(low, band.low), max(value, band.value), max(high, band.high)
            found[statistic] = replace(band, low=low, value=value, high=high)
    return replace(latency, **found)
