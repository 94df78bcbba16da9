"""The precision that a simulation has to reach: `p99<2%` of every class, `acct.p99<1%` of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from capplan.models.errors import InputError, nearest
from capplan.models.results import STATISTICS
from capplan.simulator.analysis.precision import parse_precision

FINEST = 1 / 256  # relative error of a percentile that is read from a histogram


@dataclass(frozen=True)
class PrecisionTarget:
    """A precision that was asked for.

    Attributes
    ----------
    text
        In the user's words.
    classes
        The classes that it is about.
    statistic
        `mean` or a percentile.
    relative
        Half-width of an interval, as a share of its value.
    """

    text: str
    classes: tuple[str, ...]
    statistic: str
    relative: float


def read_precision_target(text: str, classes: Sequence[str], everything: Sequence[str]) -> PrecisionTarget:
    """Read a precision.

    Parameters
    ----------
    text
        Such as `p99<2%` or `acct.p99<1%`.
    classes
        The request classes that it may name.
    everything
        What it is about when it names none.

    Raises
    ------
    InputError
        When it is not a precision, names no class or statistic, or is finer than the resolution of percentiles.
    """
    asked = parse_precision(text)
    subject, _, statistic = asked.statistic.rpartition(".")
    if statistic not in STATISTICS:
        raise InputError(f"{statistic!r} in the precision {text!r} is not a statistic{nearest(statistic, STATISTICS)}")
    if subject and subject not in classes:
        raise InputError(f"{subject!r} in the precision {text!r} is not a request class{nearest(subject, classes)}")
    if statistic != "mean" and asked.relative < FINEST:
        raise InputError(
            f"the precision {text!r} is finer than the resolution of percentiles: ask for {FINEST:.1%} or more, or a "
            "mean"
        )
    return PrecisionTarget(text, (subject,) if subject else tuple(everything), statistic, asked.relative)
