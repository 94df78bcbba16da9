"""Runs of one network as a sample: a confidence interval for any statistic, and the runs needed for a precision."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from capplan.errors import InputError
from capplan.models.language.units import FloatArray
from capplan.simulator.output import (
    BATCHES,
    ConfidenceInterval,
    Drift,
    Truncation,
    backlog_drift,
    batch_length,
    batch_variance,
    mser,
    of_parts,
    of_replications,
)
from capplan.simulator.results.run import Run, concatenated, condensed_run, windowed

Horizon = Literal["steady", "finite"]
Statistic = Callable[[Run], float]
ENOUGH = 5  # replications; with fewer, Student's factor exceeds 3 and batches are more precise
NOTHING = Truncation(0, settled=True)


@dataclass(frozen=True, eq=False)
class Observation:
    """A run with a chosen window.

    Attributes
    ----------
    run
        The run.
    warmup_s
        Length of the start that is left out, in seconds.
    settled
        Whether the run was long enough to find its warm-up.
    backlogs
        Backlog in each interval of the window: the mean number of requests in the system, and of visits at all
        stations; shape (2, intervals).
    interval_s
        Length of an interval, in seconds.
    """

    run: Run
    warmup_s: float
    settled: bool
    backlogs: FloatArray
    interval_s: float


def warmup_of(runs: Sequence[Run], *, rising: bool) -> Truncation:
    """Return the number of intervals that all replications leave out at the start of their windows (MSER).

    Parameters
    ----------
    runs : sequence of Run
        Replications with the same window.
    rising : bool
        Whether the network starts empty, so that a start is left out only where it lies below what follows.

    Returns
    -------
    Truncation
        The number of intervals.

    Notes
    -----
    The rule uses the mean number of requests in the system in each interval (120 of them), which by Little's law is the
    latency of all classes, averaged over the runs (Hoad, Robinson & Davies 2010). By itself it is biased: it takes a
    burst near the start for a warm-up, since bursts vary most, but never a lull. Measured for M/M/1 at load 0.8 and
    5,000 requests a replication, that takes 4.6 % off the mean when applied to every run by itself, and 0.8 % for ten
    together; and of the 95 % intervals from ten replications of 60,000 requests of M/M/4 at load 0.9, 91.4 % contain
    the 99th percentile, with `rising` 93.6 %, and 93.3 % where nothing is left out.

    References
    ----------
    Hoad, K., Robinson, S. & Davies, R. (2010). Automating warm-up length estimation. Journal of the Operational
    Research Society 61(9).
    """
    under_way = np.mean([run.series.number[slice(*run.window)].sum(axis=1) for run in runs], axis=0)
    found = mser(under_way, batch=1)
    if rising and found.count and under_way[: found.count].mean() >= under_way[found.count :].mean():
        return Truncation(0, found.settled)
    return found


def observe(run: Run, left_out: Truncation = NOTHING, *, parts: bool) -> Observation:
    """Choose the window of a run.

    Parameters
    ----------
    run : Run
        The run, with its widest window.
    left_out : Truncation
        How many more intervals to leave out.
    parts : bool
        Keep the intervals, so that parts of the run can be compared; without them it takes a fraction of the memory.

    Returns
    -------
    Observation
        The run with its window.
    """
    if left_out.count:
        run = windowed(run, run.window[0] + left_out.count, run.window[1])
    times = np.diff(run.series.boundaries_s[run.window[0] :])
    kept = run if parts else condensed_run(run)
    return Observation(kept, run.warmup_s, left_out.settled, _backlogs(run), float(times[-1]))


def _backlogs(run: Run) -> FloatArray:
    series, window = run.series, slice(*run.window)
    servers = np.array([station.servers for station in run.stations.values()])
    visits = series.station_queue + series.station_utilisation * servers
    return np.stack([series.number[window].sum(axis=1), visits[window].sum(axis=1)])


@dataclass(frozen=True, eq=False)
class Sample:
    """Replications of one network.

    Attributes
    ----------
    observations
        The replications, in the order of their numbers.
    horizon
        `steady` or `finite`.

    Raises
    ------
    InputError
        When there is no replication, they are of different networks or classes, or one appears twice.
    """

    observations: tuple[Observation, ...]
    horizon: Horizon

    def __post_init__(self) -> None:
        if not self.observations:
            raise InputError("there is no replication: simulate at least one")
        first, *others = self.runs
        for run in others:
            if (run.network, run.classes) != (first.network, first.classes):
                raise InputError(
                    f"runs of {first.network!r} and {run.network!r} are not replications: take runs of one network only"
                )
        if len({(run.seed, run.replication) for run in self.runs}) < len(self.runs):
            raise InputError("two of the runs have the same seed and replication: number the replications")

    @property
    def runs(self) -> tuple[Run, ...]:
        """The replications."""
        return tuple(each.run for each in self.observations)

    @property
    def settled(self) -> bool:
        """Whether every run was long enough to determine its warm-up."""
        return all(each.settled for each in self.observations)

    @cached_property
    def together(self) -> Run:
        """All replications as a single run."""
        return concatenated(self.runs)

    @property
    def parts(self) -> int:
        """Number of parts that an interval is based on: replications, or batches of them."""
        alone = self.horizon == "finite" or len(self.runs) >= ENOUGH
        return len(self.runs) * (1 if alone else BATCHES)

    def interval(self, figure: Statistic) -> ConfidenceInterval:
        """Return a statistic of all runs with its 95 % interval.

        Parameters
        ----------
        figure : callable
            Takes a run, or a part of one, and returns the statistic; nan where there are too few data.

        Returns
        -------
        ConfidenceInterval
            Between replications over a finite horizon or from five replications on, else from batches of the runs.
        """
        each = self.each(figure)
        if self.horizon == "finite":
            return of_replications(each)
        value = figure(self.together)
        if len(self.runs) >= ENOUGH:
            return of_replications(each, value=value)
        found = [self._variance(place, figure, whole) for place, whole in enumerate(each.tolist())]
        lengths = np.array([run.window_s for run in self.runs])
        variances, degrees = zip(*found, strict=True)
        return of_parts(variances, degrees, lengths / lengths.sum(), value=value)

    def each(self, figure: Statistic) -> FloatArray:
        """Return a statistic of every run."""
        return np.array([figure(run) for run in self.runs], dtype=np.float64)

    def _variance(self, place: int, figure: Statistic, whole: float) -> tuple[float, float]:
        first, last = self.runs[place].window
        length = batch_length(last - first)
        figures = [figure(batch) for batch in self._batches[place]]
        return batch_variance(figures, batches_length=length, total_length=last - first, value=whole)

    @cached_property
    def _batches(self) -> list[list[Run]]:
        return [_overlapping(run) for run in self.runs]

    def drift(self, offered_per_s: float) -> Drift:
        """Determine from the growth of the backlog whether a network is overloaded or only fluctuates.

        Both the requests in the system and the visits at all stations count, since visits that no request waits for may
        accumulate; the one that grows faster decides.

        Parameters
        ----------
        offered_per_s : float
            Mean offered rate of all classes.

        Returns
        -------
        Drift
            The verdict; see `backlog_drift`.
        """
        shortest = min(each.backlogs.shape[1] for each in self.observations)
        rows = np.array([each.backlogs[:, -shortest:] for each in self.observations])
        length = self.observations[0].interval_s
        found = [backlog_drift(rows[:, kind], length, offered_per_s) for kind in range(2)]
        return max(found, key=lambda drift: (drift.verdict == "overloaded", drift.growth.value))


def _overlapping(run: Run) -> list[Run]:
    first, last = run.window
    length = batch_length(last - first)
    return [windowed(run, start, start + length) for start in range(first, last - length + 1)]


FIRST = 10  # replications before the first check
GROWTH = 3  # the largest factor between two checks
_WRITTEN = re.compile(r"\s*([^<>=\s]+)\s*<\s*(\d+\.?\d*|\.\d+)\s*%\s*")


class Precision(NamedTuple):
    """A statistic and the largest half-width of its interval, as a share of its value."""

    statistic: str
    relative: float


def parse_precision(text: str) -> Precision:
    """Parse a required precision: `p99<2%`, `mean<0.5%`, `acct.p99<1%`.

    Parameters
    ----------
    text : str
        A statistic, `<` and a percentage. The name of the statistic is not checked here.

    Returns
    -------
    Precision
        The statistic and the share.

    Raises
    ------
    InputError
        When the text has another form, or the percentage is not between 0 and 100, both excluded.
    """
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise InputError(f"{text!r} is not a precision: write a statistic, '<' and a percentage, such as 'p99<2%'")
    percent = float(match[2])
    if not 0 < percent < 100:
        raise InputError(f"{text!r} is not a precision: {match[2]}% must be above 0% and below 100%, such as 'p99<2%'")
    return Precision(match[1], percent / 100)


def replications_needed(figures_so_far: ConfidenceInterval, count: int, relative: float, most: int) -> int:
    """Return the total number of replications needed, given the interval of the existing ones.

    Parameters
    ----------
    figures_so_far : ConfidenceInterval
        The interval from all `count` replications; ignored while there are fewer than 10.
    count : int
        Number of existing replications.
    relative : float
        The required half-width, as a share of the estimate.
    most : int
        The largest number of replications.

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
    The half-width shrinks as one over the root of the number of replications. So each round asks for the number that
    would be enough, at least one more and at most three times as many (the half-width is itself an estimate). Stopping
    where the interval is narrow prefers samples that vary less than the truth, so the intervals contain it less often
    than their confidence says; the more rounds and the fewer replications, the worse (Law & Kelton 2000, section 9.4.1;
    the error vanishes as `relative` goes to 0, Chow & Robbins 1965). Measured for independent normal values, a first
    look at 10 and 5 to 300 replications needed: 93.7 to 95.0 % instead of 95 %, the least for 15.

    References
    ----------
    Chow, Y. S. & Robbins, H. (1965). On the asymptotic theory of fixed-width sequential confidence intervals for the
    mean. Annals of Mathematical Statistics 36(2).

    Law, A. M. & Kelton, W. D. (2000). Simulation Modeling and Analysis, third edition. McGraw-Hill.
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
