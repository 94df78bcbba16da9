"""The capacity of a network without a closed form: rates are tried until the criterion holds below and fails above."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from capplan.models.errors import InputError
from capplan.models.objective import Objective
from capplan.models.results import Band, Parts
from capplan.planner.predict_network.network_figures import Source

_CLOSE = 1.005  # ratio of the rates that bracket the capacity
_SPREAD = 1.01  # step to the first rate beyond the bracket where that is still in doubt; then twice as far, and so on
_DOUBLINGS = 5
_FIRST_STEP, _LARGEST_STEP = 1.1, 4.0
_FURTHEST = 1e3  # ratio of a rate to the first one, at most


@dataclass
class _Search:
    """Tries rates and keeps what they showed.

    Attributes
    ----------
    source
        The figures at a rate.
    objectives
        What must be met, too.
    ceiling
        Rate that is known to be the highest sustained one; below it, only the objectives are in question.
    """

    source: Source
    objectives: Sequence[Objective]
    ceiling: float = math.inf
    sure: dict[bool, list[float]] = field(default_factory=lambda: {True: [], False: []})

    def sustained(self, rate: float) -> bool:
        """Return whether the figures at a rate meet the criterion; remember it if their bands agree."""
        if rate >= self.ceiling:
            self.sure[False].append(rate)
            return False
        figures = self.source.at(rate)
        failed = [objective for objective in self.objectives if objective.met(figures.figure) is False]
        known = self.ceiling < math.inf
        sustained, surely = figures.sustained or known, figures.surely or known
        met = sustained and not failed
        if met:
            certain = surely and all(objective.sure(figures.figure) for objective in self.objectives)
        else:
            certain = (not sustained and surely) or any(objective.sure(figures.figure) for objective in failed)
        if certain:
            self.sure[met].append(rate)
        return met


def highest_rate(source: Source, start: float, objectives: Sequence[Objective] = (), ceiling: float = math.inf) -> Band:
    """Return the highest mean rate with at most `MAX_DROP_RATE`, no growing backlog and the objectives met.

    Parameters
    ----------
    source : Source
        The figures at a rate.
    start : float
        Where to begin, requests per second.
    objectives : sequence of Objective
        Objectives that speak of figures at a rate.
    ceiling : float
        The highest sustained rate whatever the objectives, if it is known.

    Returns
    -------
    Band
        From the highest rate that surely meets the criterion to the lowest that surely does not, requests per second.
        It is 0 where no rate does.

    Raises
    ------
    InputError
        When no rate is too high: nothing limits the capacity.
    """
    search = _Search(source, objectives, ceiling)
    low, high = _bracket(search, start)
    if not low:
        return Band(0.0, 0.0, 0.0, basis="model only")
    while high / low > _CLOSE:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if search.sustained(middle) else (low, middle)
    value = math.sqrt(low * high) if high < ceiling else min(high, ceiling)
    least, most = _end(search, value, True), _end(search, value, False)
    least, most = min(least, value), min(max(most, value), ceiling)
    return Band(value, least, most, Parts(simulation=(most - least) / 2 if most < math.inf else None), "model only")


def _bracket(search: _Search, start: float) -> tuple[float, float]:
    """Return a sustained rate and one that is not; 0 for the first where none is."""
    rate, step = start, _FIRST_STEP
    upwards = search.sustained(rate)
    while start / _FURTHEST < rate < start * _FURTHEST:
        following = rate * step if upwards else rate / step
        if search.sustained(following) != upwards:
            return (rate, following) if upwards else (following, rate)
        rate, step = following, min(step**2, _LARGEST_STEP)
    if not upwards:
        return 0.0, rate
    raise InputError(
        f"nothing limits the rate up to {rate:.3g} per second, so no capacity is predicted: give a station a "
        "demand, or run `capplan simulate`"
    )


def _end(search: _Search, value: float, sustained: bool) -> float:
    """Return the rate nearest to a value that surely meets the criterion, or surely does not; tries some beyond."""
    sign = -1 if sustained else 1
    for doubling in range(_DOUBLINGS + 1):
        beyond = [rate for rate in search.sure[sustained] if (rate <= value if sustained else rate >= value)]
        if beyond:
            return max(beyond) if sustained else min(beyond)
        if doubling < _DOUBLINGS:
            search.sustained(value * _SPREAD ** (sign * 2**doubling))
    return 0.0 if sustained else math.inf
