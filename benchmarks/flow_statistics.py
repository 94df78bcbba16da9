"""Mean and 99th percentile of a request class with their sampling errors, by batches, and how two runs compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import hypot, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

BATCHES = 10
STANDARD_ERRORS, FLOOR = 5.0, 0.01
"""Two runs agree within five standard errors (of ten batches, themselves uncertain) and one per cent."""

ENOUGH_FOR_P99 = 1000  # requests of a class; a quick run has fewer

LOAD_TOLERANCE = 0.25
"""Of utilisations: times the square root of 20,000 over the requests; arrivals of sessions of eight scatter much."""


def figures(latencies_s: ArrayLike) -> dict[str, float]:
    """Return count, mean and 99th percentile, each with its standard error from ten batches in the order of time."""
    latencies = np.asarray(latencies_s, dtype=np.float64)
    parts = np.array_split(latencies, BATCHES)
    means, tails = [part.mean() for part in parts], [np.quantile(part, 0.99) for part in parts]
    return {
        "count": len(latencies),
        "mean_s": float(latencies.mean()),
        "mean_error_s": float(np.std(means, ddof=1)) / BATCHES**0.5,
        "p99_s": float(np.quantile(latencies, 0.99)),
        "p99_error_s": float(np.std(tails, ddof=1)) / BATCHES**0.5,
    }


def differences(answer: Mapping[str, Any], yardstick: Mapping[str, Any]) -> Iterator[str]:
    """Say in which figures a run of the flow differs from the yardstick's by more than chance.

    Sampling errors are the yardstick's own; those of the other run follow from its number of requests.
    """
    for name, theirs in yardstick["classes"].items():
        mine = answer["classes"][name]
        for figure in ("mean", "p99") if min(mine["count"], theirs["count"]) >= ENOUGH_FOR_P99 else ("mean",):
            a, b, error = mine[f"{figure}_s"], theirs[f"{figure}_s"], theirs[f"{figure}_error_s"]
            both = hypot(error, error * sqrt(theirs["count"] / mine["count"]))
            if abs(a - b) > STANDARD_ERRORS * both + FLOOR * b:
                yield f"{figure} of {name} is {a * 1e3:.3f} ms, by hand {b * 1e3:.3f} ms"
    for place, load in yardstick["utilisation"].items():
        mine = answer["utilisation"][place]
        if abs(mine / load - 1) > LOAD_TOLERANCE * sqrt(20_000 / min(answer["requests"], yardstick["requests"])):
            yield f"utilisation of {place} is {mine:.4f}, by hand {load:.4f}"
