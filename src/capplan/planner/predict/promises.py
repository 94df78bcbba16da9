"""What percentiles can be promised at the asked confidence, and whether GC pauses decide it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from capplan.layout.solution import Figures
from capplan.layout.uncertainty import Uncertainty
from capplan.models.language.units import FloatArray
from capplan.models.results import SIGNIFICANT, STATISTIC_NAMES, STATISTICS
from capplan.planner.predict.simulated_latency import Relation

PROMISED = ("p99", "p999")
"""Percentiles that promises are made of."""
_DECIDES = 0.75  # pauses decide a promise that falls below this share of it without them


@dataclass(frozen=True)
class Promise:
    """What can be promised of a percentile of a request class at the offered rate.

    Attributes
    ----------
    metric
        The percentile, such as `acct.p99`, as objectives name it.
    confidence
        Probability that a repeat of the load measures at most the promise.
    promise_ms
        The promise; null where latency may grow without bound.
    without_pauses_ms
        The median over the uncertainty, if nodes never paused for garbage collection.
    promise_without_pauses_ms
        The promise in that case.
    decided_by_pauses
        Whether the promise would fall by a quarter or more without pauses.
    """

    metric: str
    confidence: float
    promise_ms: float
    without_pauses_ms: float
    promise_without_pauses_ms: float
    decided_by_pauses: bool


def promises(
    figures: Figures, relations: Mapping[tuple[str, str], Relation], uncertainty: Uncertainty, confidence: float
) -> tuple[Promise, ...]:
    """Return what can be promised of each percentile of `PROMISED`; nothing of nodes that do not pause.

    Parameters
    ----------
    figures : Figures
        The layout at the offered rate.
    relations : mapping
        Simulated over solved latencies, where they are simulated.
    uncertainty : Uncertainty
        The model error.
    confidence : float
        Probability with which a promise is kept.
    """
    if figures.pausing is None:
        return ()
    return tuple(
        _promise((name, statistic), uncertainty, confidence, *draws)
        for name in figures.asked
        for statistic, draws in _by_statistic(figures, relations, name)
    )


def _by_statistic(
    figures: Figures, relations: Mapping[tuple[str, str], Relation], name: str
) -> Iterator[tuple[str, tuple[FloatArray, FloatArray]]]:
    """Yield each percentile with its draws, in ms, with pauses and without."""
    paused, plain = (1e3 * each.latencies_s(name) for each in (figures, figures.without_pauses))
    for statistic in PROMISED:
        place, relation = STATISTICS.index(statistic), relations.get((name, statistic))
        if relation is None:
            yield statistic, (paused[place], plain[place])
        else:
            own = 1e3 * relation.at(plain[place] / 1e3)
            yield statistic, (1e3 * figures.corrected_s(name, statistic, relation.at), own)


def _promise(
    of: tuple[str, str], uncertainty: Uncertainty, confidence: float, paused: FloatArray, plain: FloatArray
) -> Promise:
    promise, kept = (
        float(np.quantile(uncertainty.repeated_time(each, *of), confidence, method="inverted_cdf"))
        for each in (paused, plain)
    )
    without = float(np.quantile(plain, 0.5, method="inverted_cdf"))
    metric = f"{of[0]}.{STATISTIC_NAMES.get(of[1], of[1])}"
    decided = bool(kept < _DECIDES * promise)
    promise, without, kept = (float(f"{each:.{SIGNIFICANT}g}") for each in (promise, without, kept))
    return Promise(metric, confidence, promise, without, kept, decided)
