"""Bias and calibration of live predictions, by kind of figure.

Figures of one cluster share its nodes and its fit, so clusters are what is independent here: intervals come from the
scatter between clusters. A kind is unbiased if the interval of its ratio lies within what is tolerated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from scipy.stats import beta, binomtest, norm
from scipy.stats import t as student

from capplan.models.language.units import FloatArray
from capplan.planner.live.live_validation import CONFIDENCE, HeldBands, KindOfFigure, LiveFigure, Quantity

TOLERATED: Mapping[Quantity, float] = {"capacity": 1.15, "p50": 1.18, "p99": 1.33, "added p50": 1.15, "not found": 1.33}
"""Factors within which the ratio of a kind is called unbiased."""
LEVELS = (0.5, 0.8, 0.9)
_BINS = 5
_MESSAGES = ("read", "write")
_END = 0.95  # percentile of the upper end of a predicted band


def kinds_of(figures: Sequence[LiveFigure], unmodelled: Sequence[str] = ()) -> tuple[KindOfFigure, ...]:
    """Return the score of each kind of figure.

    Parameters
    ----------
    figures : sequence of LiveFigure
        All figures; those that were not judged, or that are no positive number, do not count.
    unmodelled : sequence of str
        Clusters with something that the model is known not to have.
    """
    quantities = list(TOLERATED)
    found: dict[str, list[LiveFigure]] = {}
    for each in sorted(figures, key=lambda figure: (quantities.index(figure.quantity), _kind(figure))):
        if (
            each.verdict != "not judged"
            and each.stage not in unmodelled
            and min(each.predicted, each.measured or 0) > 0
        ):
            found.setdefault(_kind(each), []).append(each)
    return tuple(_scored(kind, own) for kind, own in found.items())


def _kind(figure: LiveFigure) -> str:
    if figure.quantity == "added p50":
        return "added p50" if figure.rtt_ms else "added p50, no round trip"
    if figure.quantity in {"capacity", "not found"}:
        return figure.quantity
    if figure.operation not in _MESSAGES:
        return f"{figure.quantity}, sessions"
    return f"{figure.quantity}, {'open requests' if figure.clients is None else 'closed clients'}"


def _scored(kind: str, figures: Sequence[LiveFigure]) -> KindOfFigure:
    clusters = [each.stage for each in figures]
    logs = np.array([math.log(each.predicted / (each.measured or 1.0)) for each in figures])
    places = np.array([_place(each) for each in figures])
    medians = [float(np.median(each)) for each in _by_cluster(logs, clusters)]
    mean, width = float(np.mean(medians)), _half_width(medians)
    below = int(np.sum(logs < 0))
    return KindOfFigure(
        kind=kind,
        figures=len(figures),
        clusters=len(medians),
        ratio=math.exp(mean),
        ratio_low=None if width is None else math.exp(mean - width),
        ratio_high=None if width is None else math.exp(mean + width),
        below=below,
        sign_p=float(binomtest(below, len(figures)).pvalue),
        bands=tuple(_held(places, clusters, level) for level in LEVELS),
        pit=tuple(np.histogram(places, _BINS, (0.0, 1.0))[0].tolist()),
        verdict=_verdict(mean, width, medians, math.log(TOLERATED[figures[0].quantity])),
    )


def _by_cluster(values: FloatArray, clusters: Sequence[str]) -> Iterator[FloatArray]:
    for name in dict.fromkeys(clusters):
        yield values[[own == name for own in clusters]]


def _place(figure: LiveFigure) -> float:
    """Return where a measured figure lies in the predicted distribution, 0 to 1 (probability integral transform)."""
    gap = math.log((figure.measured or 1.0) / figure.predicted)
    end = figure.high / figure.predicted if gap > 0 else figure.predicted / max(figure.low, 1e-12)
    return float(norm.cdf(gap / max(math.log(end), 1e-12) * norm.ppf(_END)))


def _half_width(medians: Sequence[float]) -> float | None:
    count = len(medians)
    if count == 1:
        return None
    return float(student.ppf((1 + CONFIDENCE) / 2, count - 1) * np.std(medians, ddof=1) / math.sqrt(count))


def _held(places: FloatArray, clusters: Sequence[str], level: float) -> HeldBands:
    """Return the share of places in a central band, with the interval of Korn and Graubard.

    That is Clopper and Pearson's interval for as many independent figures as would scatter like the clusters do.

    References
    ----------
    E. L. Korn, B. I. Graubard, Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data, Survey Methodology 24(2), 1998.
    """
    held = np.abs(places - 0.5) <= level / 2
    share, count = float(held.mean()), len(held)
    gaps = [float(np.sum(each - share)) for each in _by_cluster(held.astype(float), clusters)]
    groups = len(gaps)
    variance = sum(each**2 for each in gaps) * groups / max(groups - 1, 1) / count**2
    effective = min(share * (1 - share) / variance, count) if variance > 0 and groups > 1 else groups
    yes, no, tail = effective * share, effective * (1 - share), (1 - CONFIDENCE) / 2
    low = float(beta.ppf(tail, yes, no + 1)) if yes > 0 else 0.0
    return HeldBands(level, share, low, float(beta.ppf(1 - tail, yes + 1, no)) if no > 0 else 1.0)


def _verdict(mean: float, width: float | None, medians: Sequence[float], tolerated: float) -> str:
    if width is None:
        return "not decided: at least 1 more cluster"
    if abs(mean) + width <= tolerated:
        return "unbiased"
    if abs(mean) > width:
        return f"{'low' if mean < 0 else 'high'} by {abs(math.expm1(mean)):.0%}"
    more = _enough(float(np.std(medians, ddof=1)), max(tolerated - abs(mean), tolerated / 2)) - len(medians)
    return f"not decided: {max(more, 1)} more cluster{'s' * (more > 1)}"


def _enough(deviation: float, width: float) -> int:
    """Return how many clusters give an interval of a half-width."""
    return math.ceil((norm.ppf((1 + CONFIDENCE) / 2) * deviation / width) ** 2) + 1
