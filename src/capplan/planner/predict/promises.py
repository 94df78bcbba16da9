"""What percentiles can be promised at the asked confidence, and whether GC pauses decide it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from capplan.answers.results import SIGNIFICANT, STATISTIC_NAMES, STATISTICS
from capplan.layout.solution import Figures
from capplan.layout.uncertainty import Uncertainty
from capplan.models.language.units import FloatArray
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
    both = figures, figures.without_pauses
    every = [(name, statistic) for name in figures.asked for statistic in PROMISED]
    return tuple(
        _promise(of, uncertainty, confidence, *(_ms(each, of, relations.get(of)) for each in both)) for of in every
    )


def _ms(figures: Figures, of: tuple[str, str], relation: Relation | None) -> FloatArray:
    """Return a percentile of a class (draws,), ms."""
    if relation is not None:
        return np.asarray(1e3 * figures.corrected_s(*of, relation.at))
    return np.asarray(1e3 * figures.latencies_s(of[0])[STATISTICS.index(of[1])])


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
