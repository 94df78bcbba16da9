"""The capacity of a layout, with its objectives met: by the figures that a prediction shows, and with their errors.

A figure that an objective limits rises with the rate. So a draw's capacity is the highest rate at which the draw meets
the objectives, and the median over draws is the rate at which the median figure is at its limit. A repeat of the load
test measures other figures; the rates at which these are at their limit give the band.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from capplan.calibration.case.uncertainty import HIGH, LOW
from capplan.calibration.system import Case
from capplan.models.language.traffic import Bursty
from capplan.models.language.units import FloatArray
from capplan.models.objective import Objective
from capplan.models.results import Band, Capacity, Parts
from capplan.models.solver.operating_point import MAX_DROP_RATE
from capplan.planner.predict.sustained_rate import Relations, SustainedRate, sustained_rate

DEFAULT_SHARE = 0.8  # of the capacity, where no rate is given


def capacity_of(case: Case[Any], relations: Relations | None = None, over: FloatArray | None = None) -> Band:
    """Return the highest peak rate that a layout completes with its objectives met, requests per second.

    Parameters
    ----------
    case : Case
        The layout. With objectives, its offered rate says how far latencies are extrapolated.
    relations : mapping, optional
        Simulated over analytic latencies near the capacity; those that are missing are taken as solved.
    over : array (draws,), optional
        What the rate is divided by, such as the burst ratio for the mean rate; 1 by default.

    Raises
    ------
    InputError
        When an objective of the scenario cannot be read.
    """
    band = _band(case, relations or {}, np.ones(1) if over is None else over)
    if case.upper_bound is None:
        return band
    return at_most(band, capacity_of(case.upper_bound, relations, over).high)


def peak_and_mean(case: Case[Any], relations: Relations | None = None) -> Capacity:
    """Return the capacity as peak and as mean rate, and the rate of overload, without the basis of each.

    Parameters
    ----------
    case, relations
        As for `capacity_of`.

    Raises
    ------
    InputError
        When an objective of the scenario cannot be read.
    """
    ratio = case.solution.burst_ratio
    low, middle, high = np.quantile(ratio, (LOW, 0.5, HIGH)).tolist()
    peak, bound = capacity_of(case, relations), case.upper_bound
    overload = case.uncertainty.of_rate(case.solution.capacity)
    if bound is not None:
        overload = at_most(overload, bound.uncertainty.of_rate(bound.solution.capacity).high)
    return Capacity(
        peak_tps=peak,
        mean_tps=capacity_of(case, relations, ratio) if middle > 1 else peak,
        overload_tps=overload,
        burst_ratio=Band(middle, low, high, Parts(parameter=_half_width(ratio)))
        if high > low
        else Band.exactly(middle),
        criterion=_criterion(case),
    )


def _criterion(case: Case[Any]) -> str:
    """Return what "carries" means, in words."""
    rate = "peak rate" if isinstance(case.solution.analysis.arrivals, Bursty) else "rate"
    words = f"highest {rate} with a drop rate of at most {MAX_DROP_RATE:.1%} and no backlog that grows"
    if case.objectives:
        words += " and " + ", ".join(objective.text for objective in case.objectives)
    return words


def default_rate(case: Case[Any]) -> float:
    """Return the peak rate to evaluate when none is given: 80 % of the median capacity.

    If no rate meets the objectives, it is a share of the capacity without them.

    Raises
    ------
    InputError
        When an objective of the scenario cannot be read.
    """
    return rate_at(DEFAULT_SHARE, capacity_of(case).value or float(np.median(case.solution.capacity)))


def rate_at(share: float, capacity: float) -> float:
    """Return a share of the capacity, rounded to tens; a trickle when the capacity is 0."""
    return max(round(share * capacity, -1), 1.0)


def at_most(band: Band, highest: float) -> Band:
    """Return a band of which nothing lies above a bound."""
    return replace(band, value=min(band.value, highest), low=min(band.low, highest), high=min(band.high, highest))


def objectives_at_a_rate(case: Case[Any]) -> tuple[Objective, ...]:
    """Return the objectives that speak of figures at one rate, so not of the capacity itself."""
    return tuple(each for each in case.objectives if all(metric.name != "capacity" for metric in each.metrics()))


def _band(case: Case[Any], relations: Relations, over: FloatArray) -> Band:
    objectives = objectives_at_a_rate(case)
    plain = case.uncertainty.of_rate(case.solution.capacity / over)
    if not objectives:
        return plain
    free = case.uncertainty.repeated_rate(case.solution.capacity) / over
    return band_of(SustainedRate(*(each / over for each in _found(case, objectives, relations))), plain, free)


def band_of(found: SustainedRate, plain: Band, free: FloatArray) -> Band:
    """Return the band of a capacity with the objectives met.

    Parameters
    ----------
    found : SustainedRate
        The rates at which they are met.
    plain : Band
        The band of the capacity without objectives, which stays where none of them limits it.
    free : array (draws,)
        What repeats of the load test would measure without them.
    """
    predicted, repeated = found
    value = float(np.median(predicted))
    if value == plain.value and np.allclose(repeated, free):
        return plain
    low, high = (float(each) for each in np.quantile(repeated, [LOW, HIGH]))
    parameter = _half_width(predicted)
    error = max(_half_width(repeated) ** 2 - parameter**2, 0.0) ** 0.5
    return Band(value, min(low, value), max(high, value), Parts(parameter=parameter, model_error=error))


def _half_width(draws: FloatArray) -> float:
    return float(np.subtract(*np.quantile(draws, [HIGH, LOW]))) / 2


def _found(case: Case[Any], objectives: Sequence[Objective], relations: Relations) -> SustainedRate:
    return sustained_rate(case.solution, case.uncertainty, objectives, relations, along=case.along)
