"""Runs of one network as a sample: their windows chosen, and an interval for any figure of theirs.

Steady state and finite horizon are different questions. In *steady state* the beginning of a run is left out, a figure
is that of all runs together, and parts of a long run tell how much it scatters. Over a *finite horizon* (the mean of 60
seconds from an empty start, the longest of two hours) a run is one observation, the figure is the mean over runs, and
nothing but more runs tells how much it scatters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from capplan.models.errors import InputError
from capplan.models.language.units import FloatArray
from capplan.simulator.analysis.drift import Drift, backlog_drift
from capplan.simulator.analysis.output import (
    BATCHES,
    ConfidenceInterval,
    PairedDifference,
    Truncation,
    batch_length,
    batch_variance,
    mser,
    of_parts,
    of_replications,
    paired_difference,
)
from capplan.simulator.results.run import Run, concatenated, condensed_run, windowed

Horizon = Literal["steady", "finite"]
Statistic = Callable[[Run], float]
ENOUGH = 5  # replications: fewer leave Student's factor above 3, and their parts tell more
NOTHING = Truncation(0, settled=True)


@dataclass(frozen=True, eq=False)
class Observation:
    """A run with its window chosen.

    Attributes
    ----------
    run
        The run.
    warmup_s
        How much of its beginning is left out.
    settled
        Whether it was long enough to tell its warm-up.
    backlogs
        What was under way in each interval of the window: the mean number of requests that clients wait for, and of
        visits at all stations; shape (2, intervals).
    interval_s
        Length of an interval.
    """

    run: Run
    warmup_s: float
    settled: bool
    backlogs: FloatArray
    interval_s: float


def warmup_of(runs: Sequence[Run], *, rising: bool) -> Truncation:
    """Return how many intervals at the beginning of their windows replications leave out, the same of each (MSER).

    Parameters
    ----------
    runs
        Some replications, with one and the same window.
    rising
        Whether the network begins empty, so that a beginning is left out only where it lies below what follows.

    Notes
    -----
    The rule looks at the mean number of requests under way in each interval (120 of them), which by Little's law is the
    latency of all classes, averaged over the runs (Hoad, Robinson & Davies 2010). By itself it is biased: it takes a
    burst near the beginning for a warm-up, as bursts scatter most, but never a lull. Measured for M/M/1 at load 0.8 and
    5,000 requests a replication, that takes 4.6 % off the mean where it is applied to every run by itself, and 0.8 % to
    ten together; and of the 95 % intervals from ten replications of 60,000 requests of M/M/4 at load 0.9, 91.4 % hold
    the 99th percentile, with `rising` 93.6 %, and 93.3 % where nothing is left out.
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
    run
        The run, with its widest window.
    left_out
        How many intervals to leave out, beyond what is left out already.
    parts
        Keep the intervals, so that parts of the run can be looked at; without them it takes a fraction of the memory.
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
        When there is no replication, they are of different networks or classes, or one is there twice.
    """

    observations: tuple[Observation, ...]
    horizon: Horizon

    def __post_init__(self) -> None:
        if not self.observations:
            raise InputError("no replication was given: simulate at least one")
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
        """Whether every run was long enough to tell its warm-up."""
        return all(each.settled for each in self.observations)

    @cached_property
    def together(self) -> Run:
        """All replications as one run."""
        return concatenated(self.runs)

    @property
    def parts(self) -> int:
        """How many parts of the time simulated are compared for an interval: replications, or batches of them."""
        alone = self.horizon == "finite" or len(self.runs) >= ENOUGH
        return len(self.runs) * (1 if alone else BATCHES)

    def interval(self, figure: Statistic) -> ConfidenceInterval:
        """Return a figure of all runs with its 95 % interval.

        Parameters
        ----------
        figure
            Takes it from a run, or from a part of one; nan where that has seen too little of it.
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
        """Return a figure of every run."""
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
        """Tell an overloaded network from a noisy one by the growth of what is under way in it.

        Both the requests that clients wait for and the visits at all stations are looked at, since work may pile up
        that nobody waits for; the one that grows faster decides.

        Parameters
        ----------
        offered_per_s
            Mean offered rate of all classes.
        """
        shortest = min(each.backlogs.shape[1] for each in self.observations)
        rows = np.array([each.backlogs[:, -shortest:] for each in self.observations])
        length = self.observations[0].interval_s
        found = [backlog_drift(rows[:, kind], length, offered_per_s) for kind in range(2)]
        return max(found, key=lambda drift: (drift.verdict == "overloaded", drift.growth.value))


def difference(first: Sample, second: Sample, figure: Statistic) -> PairedDifference:
    """Return what a figure of two variants differs by, first less second, replication by replication.

    Equal seeds give both the same arrivals and demands (common random numbers), so a difference is known much better
    than either figure.

    Raises
    ------
    InputError
        When they have not the same seeds and numbers of replications.
    """
    numbers = [[(run.seed, run.replication) for run in sample.runs] for sample in (first, second)]
    if numbers[0] != numbers[1]:
        raise InputError("the two samples have different random numbers: run both with the same seed and replications")
    return paired_difference(first.each(figure), second.each(figure))


def _overlapping(run: Run) -> list[Run]:
    first, last = run.window
    length = batch_length(last - first)
    return [windowed(run, start, start + length) for start in range(first, last - length + 1)]
