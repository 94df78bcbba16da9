"""Output analysis: how sure an estimate from simulated figures is. Functions on arrays that know nothing of runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from capplan.models.errors import InputError
from capplan.models.language.units import FloatArray

CONFIDENCE = 0.95
BATCHES = 5  # what `batch_length` cuts a run into
_FEWEST_FOR_MSER = 10  # batches; with fewer, the minimum is mostly chance


@dataclass(frozen=True)
class ConfidenceInterval:
    """An estimate and the half-width of its confidence interval.

    Attributes
    ----------
    value
        The estimate, in any unit.
    half_width
        In the unit of `value`; None where there are too few data for an interval.
    confidence
        The share of such intervals that shall hold the truth.
    """

    value: float
    half_width: float | None
    confidence: float = CONFIDENCE

    @property
    def low(self) -> float:
        """The lower end; minus infinity without a half-width."""
        return -math.inf if self.half_width is None else self.value - self.half_width

    @property
    def high(self) -> float:
        """The upper end; infinity without a half-width."""
        return math.inf if self.half_width is None else self.value + self.half_width

    @property
    def relative(self) -> float:
        """Half-width as a share of the estimate's size; infinity where there is none or the estimate is 0 or nan."""
        if self.half_width is None:
            return math.inf
        if self.half_width == 0:
            return 0.0
        return self.half_width / abs(self.value) if self.value else math.inf


@dataclass(frozen=True)
class Truncation:
    """How many observations at the start of a series are its warm-up, and whether the rest is long enough to tell."""

    count: int
    settled: bool


@dataclass(frozen=True)
class PairedDifference:
    """What two variants differ by, simulated with common random numbers.

    Attributes
    ----------
    difference
        Mean of first minus second, with its interval.
    correlation
        Between the variants, over replications; None where a variant does not scatter.
    variance_ratio
        Variance of the difference over that of independent runs of the same number; below 1 is a gain. None likewise.
    """

    difference: ConfidenceInterval
    correlation: float | None
    variance_ratio: float | None


def check_confidence(confidence: float) -> None:
    """Raise `InputError` unless `confidence` is a share between 0 and 1, both excluded."""
    if not 0 < confidence < 1:
        raise InputError(f"{confidence:g} is not a confidence: it must be above 0 and below 1, such as 0.95")


def figures_of(values: ArrayLike, what: str, dimensions: int = 1) -> FloatArray:
    """Return an array of float64; raise `InputError` when it has not that many dimensions."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != dimensions:
        raise InputError(f"{what} have {array.ndim} dimensions: give an array of {dimensions}")
    return array


def student(confidence: float, degrees: float) -> float:
    """Half-width, in standard errors, of a two-sided interval of Student's law; `degrees` may be a fraction."""
    from scipy.special import stdtrit  # what only reads an estimate does not pay for the import

    return float(stdtrit(degrees, (1 + confidence) / 2))


def interval(value: float, variance: float, degrees: float, confidence: float) -> ConfidenceInterval:
    """Student's interval around an estimate; without a half-width where the degrees of freedom are below 1.

    Parameters
    ----------
    value
        The estimate.
    variance
        Of the estimate, itself estimated; in the unit of `value` squared.
    degrees
        Degrees of freedom of `variance`.
    confidence
        Above 0, below 1.

    Raises
    ------
    InputError
        When `confidence` is no share.
    """
    check_confidence(confidence)
    if degrees < 1 or not math.isfinite(variance):
        return ConfidenceInterval(float(value), None, confidence)
    return ConfidenceInterval(float(value), student(confidence, degrees) * math.sqrt(max(variance, 0.0)), confidence)


def mser(values: ArrayLike, batch: int = 5, largest_share: float = 0.5) -> Truncation:
    """Say how many observations at the start of a series to leave out (MSER-5).

    Parameters
    ----------
    values : array of shape (n,)
        Observations in order of time, such as means of equal intervals. nan is an interval without observations.
    batch
        Observations that are averaged before the rule is applied, at least 1.
    largest_share
        The largest share of the series that may be left out, above 0 and below 1.

    Returns
    -------
    Truncation
        A multiple of `batch`. Not `settled` when the minimum lies at the largest allowed place (the series is too
        short for its warm-up), or when there are fewer than 10 batches (then the count is 0).

    Raises
    ------
    InputError
        When `values` has not one dimension, `batch` is below 1, or the share is none.

    Notes
    -----
    The count minimises the squared standard error of the mean of what is left, as if that were independent:
    ``sum (y - mean)^2 / left^2`` over batch means y (White 1997; White, Cobb & Spratt 2000). A remainder that fills no
    batch is not looked at.
    """
    series = figures_of(values, "values")
    if batch < 1 or not 0 < largest_share < 1:
        raise InputError(
            f"batch {batch} and largest share {largest_share:g}: they must be at least 1, and within 0 to 1"
        )
    means = _batch_means(series, batch)
    if np.isfinite(means).sum() < _FEWEST_FOR_MSER:
        return Truncation(0, False)
    last = int(len(means) * largest_share)
    place = int(np.argmin(_squared_errors(means)[: last + 1]))
    return Truncation(place * batch, place < last)


def _batch_means(series: FloatArray, batch: int) -> FloatArray:
    """Means of batches that do not overlap; nan where a batch has no observation."""
    rows = series[: len(series) // batch * batch].reshape(-1, batch)
    there = np.isfinite(rows)
    total = np.where(there, rows, 0.0).sum(axis=1)
    means = np.full(len(rows), np.nan)
    np.divide(total, there.sum(axis=1), out=means, where=there.any(axis=1))
    return means


def _squared_errors(means: FloatArray) -> FloatArray:
    """Squared standard error of the mean of means[d:], for every d; batches of nan do not count."""
    there = np.isfinite(means)
    # The median lies in what remains, so no digits cancel; and a constant series gives exactly 0.
    centred = np.where(there, means - np.median(means[there]), 0.0)
    left, total, squares = (np.cumsum(each[::-1])[::-1] for each in (there, centred, centred**2))
    with np.errstate(invalid="ignore", divide="ignore"):  # no batch is left behind the last one that is there
        errors = np.maximum(squares - total**2 / left, 0.0) / left**2
    return np.asarray(np.where(left > 0, errors, np.inf))


def of_replications(
    figures: ArrayLike, *, value: float | None = None, confidence: float = CONFIDENCE
) -> ConfidenceInterval:
    """ConfidenceInterval from independent replications (Student).

    Parameters
    ----------
    figures : array of shape (replications,)
        The figure of every replication. nan is a replication that could not measure it and is left out.
    value
        The centre, where a better estimate than the mean of the figures is known: a percentile of all replications
        together is less biased than the mean of their percentiles.
    confidence
        Above 0, below 1.

    Returns
    -------
    ConfidenceInterval
        Without a half-width below two figures.

    Raises
    ------
    InputError
        When `figures` has not one dimension or `confidence` is no share.

    Notes
    -----
    Exact for independent normal figures. A percentile of a short replication is skewed and biased: measured for p99 of
    M/M/1 at load 0.8, with ten replications and the percentile of all together as centre, 95 % intervals hold the truth
    in 84 % of the cases with 3,000 jobs a replication, 92 % with 10,000, 93 % with 30,000 and 94 % with 100,000.
    """
    each = figures_of(figures, "figures")
    each = each[~np.isnan(each)]
    count = len(each)
    centre = (float(each.mean()) if count else math.nan) if value is None else value
    return interval(centre, _variance(each) / count if count > 1 else math.nan, count - 1, confidence)


def _variance(each: FloatArray) -> float:
    """Sample variance; exactly 0 for equal figures, which a rounded mean would not give, nan for infinite ones."""
    if not np.isfinite(each).all():
        return math.nan
    return float((each - each[0]).var(ddof=1))


def batch_length(count: int) -> int:
    """Return how many of `count` equal intervals of a run make a batch: a fifth, at least 1.

    That leaves six degrees of freedom, so the interval is 13 % wider than with tenths, but batches must be long beside
    the memory of a queue, above all for percentiles. Measured for M/M/1 at load 0.8 (2,000 experiments of 100
    intervals; a fifth, and in brackets a tenth): of 95 % intervals for p99, 86 (80) % hold the truth after 20,000 jobs
    and 93 (92) % after 100,000; for the mean 94 (92) % and 96 (95) %. A percentile from one run of a busy system wants
    100,000 requests and more; replications are the safer way.
    """
    return max(1, count // BATCHES)


def overlapping_batch_means(values: ArrayLike, length: int) -> FloatArray:
    """Means of all batches of `length` consecutive values, shape (n - length + 1,).

    Raises
    ------
    InputError
        When `values` has not one dimension, or `length` is not from 1 to n.
    """
    series = figures_of(values, "values")
    if not 1 <= length <= len(series):
        raise InputError(f"a batch of {length} of {len(series)} values: its length must be from 1 to {len(series)}")
    centre = series.mean()  # sums of what is left keep their digits
    sums = np.concatenate([[0.0], np.cumsum(series - centre)])
    return np.asarray(centre + (sums[length:] - sums[:-length]) / length)


def of_overlapping_batches(
    figures: ArrayLike, *, batches_length: int, total_length: int, value: float, confidence: float = CONFIDENCE
) -> ConfidenceInterval:
    """ConfidenceInterval from one run, by overlapping batches; for a mean or a quantile.

    Parameters
    ----------
    figures : array of shape (total_length - batches_length + 1,)
        The same statistic of every batch of consecutive intervals. nan is a batch without observations.
    batches_length, total_length
        Equal intervals in a batch (m) and in the whole run (n).
    value
        The statistic of the whole run.
    confidence
        Above 0, below 1.

    Returns
    -------
    ConfidenceInterval
        Without a half-width where less than one degree of freedom is left.

    Raises
    ------
    InputError
        When the number of figures is not that of the batches, or `confidence` is no share.

    Notes
    -----
    The variance of the statistic of n intervals is ``m / (n - m)`` times the mean squared difference between a batch
    and the whole run, exact for means of independent intervals (Meketon & Schmeiser 1984). Quantiles obey the same
    law asymptotically, as they are means of their indicator divided by the density (Alexopoulos, Goldsman & Wilson
    2012); the bias of a batch's quantile widens the interval. Degrees of freedom are ``1.5 (n / m - 1)``, and at most
    those of n - m + 1 batches. Correlation beyond a batch makes the interval too narrow: see `batch_length`.
    """
    variance, degrees = batch_variance(figures, batches_length=batches_length, total_length=total_length, value=value)
    return interval(value, variance, degrees, confidence)


def batch_variance(figures: ArrayLike, *, batches_length: int, total_length: int, value: float) -> tuple[float, float]:
    """Variance of the statistic of a whole run by overlapping batches, and its degrees of freedom.

    Arguments and errors are those of `of_overlapping_batches`; nan with no degrees where there are too few batches.
    """
    each = figures_of(figures, "figures")
    if not 1 <= batches_length <= total_length or len(each) != total_length - batches_length + 1:
        raise InputError(
            f"{len(each)} figures of batches of {batches_length} of {total_length} intervals: "
            "give one for every batch, total - length + 1 in all"
        )
    left = total_length - batches_length
    there = each[~np.isnan(each)]
    if left == 0 or len(there) < 2:
        return math.nan, 0.0
    squared = float(((there - value) ** 2).mean())
    return squared * batches_length / left, min(1.5 * left / batches_length, len(there) - 1)


def of_parts(
    variances: ArrayLike, degrees: ArrayLike, shares: ArrayLike, *, value: float, confidence: float = CONFIDENCE
) -> ConfidenceInterval:
    """ConfidenceInterval of a weighted mean of independent runs, from a variance of each.

    Parameters
    ----------
    variances, degrees : array of shape (runs,)
        Of the statistic of every run, such as `batch_variance` gives them; runs of nan variance leave no interval.
    shares : array of shape (runs,)
        Weight of every run, with sum 1.
    value
        The statistic of all runs together.
    confidence
        Above 0, below 1.

    Raises
    ------
    InputError
        When `confidence` is no share.

    Notes
    -----
    Degrees of freedom by Welch and Satterthwaite (Satterthwaite 1946).
    """
    parts = figures_of(variances, "variances") * figures_of(shares, "shares") ** 2
    total = float(parts.sum())
    if not np.isfinite(total):
        return interval(value, math.nan, 0, confidence)
    squares = float((parts**2 / figures_of(degrees, "degrees")).sum())
    return interval(value, total, total**2 / squares if squares else float(np.sum(degrees)), confidence)


def paired_difference(first: ArrayLike, second: ArrayLike, confidence: float = CONFIDENCE) -> PairedDifference:
    """Compare two variants replication by replication (common random numbers).

    Parameters
    ----------
    first, second : array of shape (replications,)
        A figure of both variants; the same place is the same replication number, so the same random numbers. Where
        either is nan the pair is left out.
    confidence
        Above 0, below 1.

    Returns
    -------
    PairedDifference
        First minus second.

    Raises
    ------
    InputError
        When the two are not of one length, or `confidence` is no share.
    """
    one, two = figures_of(first, "figures"), figures_of(second, "figures")
    if len(one) != len(two):
        raise InputError(
            f"{len(one)} and {len(two)} replications are no pairs: give as many of the one as of the other"
        )
    both = ~np.isnan(one - two)
    one, two = one[both], two[both]
    difference = of_replications(one - two, confidence=confidence)
    if len(one) < 2 or 0 in (alone := (_variance(one), _variance(two))):
        return PairedDifference(difference, None, None)
    correlation = float(np.corrcoef(one, two)[0, 1])
    return PairedDifference(difference, correlation, _variance(one - two) / sum(alone))
