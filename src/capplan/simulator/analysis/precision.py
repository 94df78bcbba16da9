"""Sequential stopping: how many replications make an interval as narrow as was asked for."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from capplan.models.errors import InputError
from capplan.simulator.analysis.output import ConfidenceInterval

FIRST = 10  # replications before the first look
GROWTH = 3  # times as many after a look, at most
_WRITTEN = re.compile(r"\s*([^<>=\s]+)\s*<\s*(\d+\.?\d*|\.\d+)\s*%\s*")


class Precision(NamedTuple):
    """A statistic and the half-width that its interval may have, as a share of its value."""

    statistic: str
    relative: float


def parse_precision(text: str) -> Precision:
    """Read what precision is asked for: `p99<2%`, `mean<0.5%`, `acct.p99<1%`.

    The name of the statistic is not looked up here.

    Raises
    ------
    InputError
        When the text is no name, `<` and percentage, or the percentage is not between 0 and 100, both excluded.
    """
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise InputError(f"{text!r} is not a precision: write a statistic, '<' and a percentage, such as 'p99<2%'")
    percent = float(match[2])
    if not 0 < percent < 100:
        raise InputError(f"{text!r} is not a precision: {match[2]}% must be above 0% and below 100%, such as 'p99<2%'")
    return Precision(match[1], percent / 100)


def replications_needed(figures_so_far: ConfidenceInterval, count: int, relative: float, most: int) -> int:
    """Say how many replications there shall be in all, given the interval of those that are there.

    Parameters
    ----------
    figures_so_far
        The interval from all `count` replications; not looked at while there are fewer than 10.
    count
        Replications that are there.
    relative
        The half-width asked for, as a share of the estimate.
    most
        Replications at most.

    Returns
    -------
    int
        `count` when that is enough (or already `most`), else more; a function of the results alone.

    Raises
    ------
    InputError
        When `relative` is not above 0, or a count is negative.

    Notes
    -----
    The half-width shrinks as one over the root of the number, so a round asks for the number that would do, at least
    one more and at most three times as many (the half-width is itself a guess). Stopping at a look where the interval
    is narrow prefers samples that scatter less than the truth, so the intervals hold it less often than their
    confidence says; the more looks and the fewer replications, the worse (Law & Kelton 2000, section 9.4.1;
    the loss vanishes as `relative` goes to 0, Chow & Robbins 1965). Measured for independent normal figures, a first
    look at 10 and 5 to 300 replications needed: 93.7 to 95.0 % instead of 95 %, the least for 15.
    """
    if not relative > 0 or count < 0 or most < 0:
        raise InputError(
            f"precision {relative:g}, {count} replications of {most}: give a share above 0 and whole numbers"
        )
    if count >= most:
        return count
    if count < FIRST:
        return min(FIRST, most)
    reached = figures_so_far.relative
    if reached <= relative:
        return count
    times = min((reached / relative) ** 2, GROWTH) if math.isfinite(reached) else GROWTH
    return min(max(math.ceil(count * times), count + 1), most)
