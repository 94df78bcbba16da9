"""Bias and calibration of predictions by kind of figure.

Figures of one cluster share its nodes and its fit, so clusters are what is independent: intervals come from the scatter
between clusters. A kind is unbiased if the interval of its ratio lies within what is tolerated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.stats import beta, binomtest, norm
from scipy.stats import t as student

from capplan.models.language.units import FloatArray

Bias = Literal["unbiased", "low", "high", "not decided"]
LEVELS = (0.5, 0.8, 0.9, 0.95)
CONFIDENCE = 0.9
_BINS = 5
_END = 0.95  # percentile of the upper end of a predicted band


class Outcome(NamedTuple):
    """A figure that was predicted and then measured; both are positive.

    Attributes
    ----------
    cluster : str
        What it shares with figures that are not independent of it.
    predicted, low, high : float
        Median, 5th and 95th percentile of the prediction.
    measured : float
        The measurement.
    """

    cluster: str
    predicted: float
    low: float
    high: float
    measured: float


@dataclass(frozen=True)
class HeldBands:
    """How many measured figures lie in the bands of one level.

    Attributes
    ----------
    level
        What the bands promise, as a share.
    held
        The share of figures that lie in them.
    low
        Lower end of its 90 % interval, by cluster.
    high
        Upper end of the same.
    """

    level: float
    held: float
    low: float
    high: float


@dataclass(frozen=True)
class KindOfFigure:
    """The score of one kind of figure.

    Attributes
    ----------
    kind
        The kind in words, such as `p99, open requests`.
    figures
        Figures that were judged.
    clusters
        Clusters that they come from.
    ratio
        Predicted over measured: the median of a cluster, averaged over clusters (geometric mean).
    ratio_low
        Lower end of its 90 % interval (Student's t, by cluster); null with one cluster.
    ratio_high
        Upper end of the same.
    below
        Figures that were predicted too low.
    sign_p
        Probability that a fair coin is as one-sided (two-sided sign test; it takes figures as independent).
    bands
        Shares in the bands of 50, 80, 90 and 95 %. The others follow from the 90 % band, as a lognormal distribution
        with a spread of its own on each side.
    pit
        Figures by the fifth of the predicted distribution that they lie in, from the lowest; equal counts are right.
    verdict
        `unbiased`: the interval lies within what is tolerated. `low` or `high`: the ratio is beyond that, and 1 outside
        the interval. Or `not decided`.
    more_clusters
        About how many more clusters would decide; 0 if it is decided.
    """

    kind: str
    figures: int
    clusters: int
    ratio: float
    ratio_low: float | None
    ratio_high: float | None
    below: int
    sign_p: float
    bands: tuple[HeldBands, ...]
    pit: tuple[int, ...]
    verdict: Bias
    more_clusters: int


def scored(kind: str, outcomes: Sequence[Outcome], tolerated: float) -> KindOfFigure:
    """Return the score of a kind of figure.

    Parameters
    ----------
    kind : str
        The kind in words.
    outcomes : sequence of Outcome
        Its figures, at least one.
    tolerated : float
        Factor within which the ratio is called unbiased.
    """
    clusters = [each.cluster for each in outcomes]
    logs = np.array([math.log(each.predicted / each.measured) for each in outcomes])
    places = np.array([place(each) for each in outcomes])
    medians = [float(np.median(each)) for each in _by_cluster(logs, clusters)]
    mean, width = float(np.mean(medians)), half_width_of_mean(medians)
    verdict = _verdict(mean, width, math.log(tolerated))
    below, above = int(np.sum(logs < 0)), int(np.sum(logs > 0))
    return KindOfFigure(
        kind=kind,
        figures=len(outcomes),
        clusters=len(medians),
        ratio=math.exp(mean),
        ratio_low=None if width is None else math.exp(mean - width),
        ratio_high=None if width is None else math.exp(mean + width),
        below=below,
        sign_p=float(binomtest(below, below + above).pvalue) if below + above else 1.0,
        bands=tuple(held_bands(places, clusters, level) for level in LEVELS),
        pit=tuple(np.histogram(places, _BINS, (0.0, 1.0))[0].tolist()),
        verdict=verdict,
        more_clusters=_more(mean, medians, math.log(tolerated)) if verdict == "not decided" else 0,
    )


def _by_cluster(values: FloatArray, clusters: Sequence[str]) -> Iterator[FloatArray]:
    for name in dict.fromkeys(clusters):
        yield values[[own == name for own in clusters]]


def place(outcome: Outcome) -> float:
    """Return where a measured figure lies in the predicted distribution, 0 to 1 (probability integral transform)."""
    gap = math.log(outcome.measured / outcome.predicted)
    end = outcome.high / outcome.predicted if gap > 0 else outcome.predicted / max(outcome.low, 1e-12)
    return float(norm.cdf(gap / max(math.log(end), 1e-12) * norm.ppf(_END)))


def half_width_of_mean(values: Sequence[float] | FloatArray) -> float | None:
    """Return the half-width of Student's interval of a mean, in the unit of the values; None of one value."""
    count = len(values)
    if count == 1:
        return None
    return float(student.ppf((1 + CONFIDENCE) / 2, count - 1) * np.std(values, ddof=1) / math.sqrt(count))


def held_bands(places: FloatArray, clusters: Sequence[str], level: float) -> HeldBands:
    """Return the share of places in a central band, with the 90 % interval of Korn and Graubard.

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
    independent = share * (1 - share) / count
    variance = max(sum(each**2 for each in gaps) * groups / max(groups - 1, 1) / count**2, independent)
    effective = count * independent / variance if independent and groups > 1 else groups
    yes, no, tail = effective * share, effective * (1 - share), (1 - CONFIDENCE) / 2
    low = float(beta.ppf(tail, yes, no + 1)) if yes > 0 else 0.0
    return HeldBands(level, share, low, float(beta.ppf(1 - tail, yes + 1, no)) if no > 0 else 1.0)


def _verdict(mean: float, width: float | None, tolerated: float) -> Bias:
    if width is not None and abs(mean) + width <= tolerated:
        return "unbiased"
    if width is None or abs(mean) <= max(width, tolerated):
        return "not decided"
    return "low" if mean < 0 else "high"


def _more(mean: float, medians: Sequence[float], tolerated: float) -> int:
    """Return how many more clusters would give an interval that is narrow enough, at least one."""
    if len(medians) == 1:
        return 1
    width = max(tolerated - abs(mean), tolerated / 2)
    needed = math.ceil((norm.ppf((1 + CONFIDENCE) / 2) * np.std(medians, ddof=1) / width) ** 2) + 1
    return max(needed - len(medians), 1)
