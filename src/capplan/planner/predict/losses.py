"""Outages: the rate that the survivors sustain, their latencies, and their utilisation.

A few draws are solved with and without the loss. The ratio of the two figures then scales the figure of every draw of
the whole layout, so that an outage is compared with the layout under the same draws, errors and solver.

A loss improves no figure at the same levels: the ratio of capacities is at most 1, and that of times at least 1. The
solver may say otherwise, as fewer RADIUS servers let fewer requests into a busy Cassandra. Only times after the loss of
a data centre may fall, since it may have been the farthest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from capplan.answers.objective import Objective
from capplan.answers.results import STATISTICS, Band, Latency, Outage, Relief
from capplan.answers.verdict import CONFIDENCE, answer
from capplan.layout.case import Case
from capplan.layout.ensemble import SMALL_ENSEMBLE, Places, Representatives, at_draws, representatives
from capplan.layout.situations import Loss, Losses, Remainder
from capplan.layout.solution import Figures, Solution
from capplan.layout.uncertainty import Uncertainty
from capplan.models.language.parameter import Values
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.planner.predict.capacity import (
    Relations,
    SustainedRate,
    at_most,
    band_of_rates,
    objectives_at_a_rate,
    sustained_rate,
)
from capplan.planner.predict.prediction import model_only
from capplan.planner.predict.simulated_latency import in_order

_OVERLOADED = 0.5  # probability of overload above which the survivors have no latency to show
_FEW_DRAWS = 0.01  # error of a survivors-to-whole ratio at a few draws; smaller differences do not count
_ROUNDING = 1e-6  # relative; smaller differences of times come from rounding
WORKERS = "workers"
"""Name of the outermost pools among the resources, as in `Solution.bottleneck`."""


@dataclass(frozen=True)
class Whole:
    """The whole layout at the offered rate.

    Attributes
    ----------
    case : Case
        The layout.
    figures : Figures
        Its analytic figures at the offered peak rate.
    latency_ms : mapping of Latency
        Its latencies as the prediction has them, by request class.
    relations : mapping of Relation
        Simulated over analytic latencies near its capacity, as for `capacity_of`.
    at_capacity : Case or None
        The layout at the rate that its capacity with objectives was found at; None: at the offered rate.
    confidence : float
        Confidence of the verdicts.
    """

    case: Case[Any]
    figures: Figures
    latency_ms: Mapping[str, Latency]
    relations: Relations = field(default_factory=dict)
    at_capacity: Case[Any] | None = None
    confidence: float = CONFIDENCE

    @property
    def near(self) -> Case[Any]:
        """The layout at the rate that determines the extrapolation of latencies at its capacity."""
        return self.at_capacity or self.case

    @property
    def offered_per_s(self) -> float:
        """Offered peak rate, requests per second."""
        return float(np.max(self.figures.peak_rate))

    @cached_property
    def few(self) -> Representatives:
        """A few draws that represent all of them; the solved draws if not all are solved."""
        return self.case.representatives or representatives(self.every_value, SMALL_ENSEMBLE)

    @cached_property
    def every_value(self) -> Values:
        """All parameter values for all draws."""
        return self.case.system.values(self.case.fitted, self.case.scenario)

    @cached_property
    def capacity(self) -> FloatArray:
        """Capacity of all draws, each taken from its representative draw (draws,)."""
        found = self.case.solution.capacity
        return found if self._solved is None else found[self._solved]

    @cached_property
    def objectives(self) -> tuple[Objective, ...]:
        """The objectives that limit the capacity."""
        return objectives_at_a_rate(self.case)

    @cached_property
    def limited(self) -> SustainedRate:
        """Its capacity with the objectives met (draws,)."""
        case = self.case
        return sustained_rate(
            case.solution, self.near.uncertainty, self.objectives, self.relations, along=case.layout.along
        )

    @cached_property
    def limited_few(self) -> SustainedRate:
        """The capacity with the objectives met, each draw's value taken from its representative (draws,)."""
        few = self.case if self.case.representatives is not None else replace(self.case, draws=SMALL_ENSEMBLE)
        return sustained_rate(few.solution, self.near.uncertainty, self.objectives, self.relations)

    @cached_property
    def times_s(self) -> Mapping[str, FloatArray]:
        """Times by reported class, each draw's value taken from its representative (statistics, draws)."""
        few = self.figures if self._solved is None else self.figures.represented(self._solved)
        return {name: few.latencies_s(name) for name in few.asked}

    @property
    def _solved(self) -> Places | None:
        """For each draw, the draw that represents it; None if only representatives are solved anyway."""
        return self.few.chosen[self.few.place] if self.case.representatives is None else None


def outages(whole: Whole, losses: Sequence[Loss] = ()) -> tuple[Outage, ...]:
    """Return what remains of a layout after each loss; without given losses, after those that the system proposes."""
    case = whole.case
    found = tuple(_outage(whole, left) for left in case.system.component(Losses).remainders(case, losses))
    if case.upper_bound is None:
        return found
    bound = Whole(case.upper_bound, case.upper_bound.solution.at(whole.offered_per_s), {}, whole.relations)
    bounds = (
        _outage(bound, left).capacity_tps for left in case.system.component(Losses).remainders(case.upper_bound, losses)
    )
    return tuple(
        replace(each, capacity_tps=at_most(each.capacity_tps, most.high)) if each.capacity_tps and most else each
        for each, most in zip(found, bounds, strict=True)
    )


def _outage(whole: Whole, left: Remainder) -> Outage:
    if left.solved is None:
        return _described(left, Band.exactly(0.0), 1.0, whole.confidence, latency_ms={}, utilisation={})
    solution = left.solved(at_draws(whole.every_value, whole.few.chosen), whole.few.place)
    draws, uncertainty = _capacity_draws(whole, left, solution), whole.case.uncertainty
    probability = uncertainty.chance_of_less(draws, whole.offered_per_s)
    capacity = model_only(uncertainty.of_rate(draws))
    figures = solution.at(whole.offered_per_s)
    busy = {name: model_only(uncertainty.of_share(figures.utilisation(name))) for name in solution.resources}
    if (workers := figures.pool_utilisation()) is not None:
        busy[WORKERS] = model_only(uncertainty.of_busy(workers, 1.0))
    offset = uncertainty.offset if left.offset is None else left.offset(whole.every_value)
    times = replace(uncertainty, offset=offset)
    latency = {} if probability > _OVERLOADED else _latency(whole, left, figures, times)
    if whole.objectives:
        limited = _limited(whole, left, solution, replace(whole.near.uncertainty, offset=offset))
        capacity = model_only(band_of_rates(limited, capacity, whole.near.uncertainty.repeated_rate(draws)))
        probability = max(float(np.mean(limited.repeated < whole.offered_per_s)), probability)
    better = bool(left.lowered) or _is_better(whole, capacity, latency)
    eased = _eased(whole, left, solution) if better else ()
    return _described(left, capacity, probability, whole.confidence, latency_ms=latency, utilisation=busy, eased=eased)


def _is_better(whole: Whole, capacity: Band, latency_ms: Mapping[str, Latency]) -> bool:
    """Whether the survivors carry more than the whole layout or answer faster."""
    times = [
        (getattr(latency, statistic), getattr(whole.latency_ms.get(name), statistic, None))
        for name, latency in latency_ms.items()
        for statistic in STATISTICS
    ]
    least = 1 + _FEW_DRAWS
    faster = any(its is not None and other is not None and its.value * least < other.value for its, other in times)
    return faster or capacity.value > float(np.median(whole.limited.predicted)) * least


def _eased(whole: Whole, left: Remainder, solution: Solution) -> tuple[Relief, ...]:
    """Return why requests are cheaper or faster than in the whole layout even without queueing."""
    before, after = whole.case.solution.analysis, solution.analysis
    less_s, sooner_s = (of(before) - of(after) for of in (_work_s, _alone_s))
    found: dict[Relief, bool] = {
        "lower levels": bool(left.lowered),
        "fewer replicas": less_s > _ROUNDING * _work_s(before),
        "nearer replicas": sooner_s > max(less_s, 0.0) + _ROUNDING * _alone_s(before),
    }
    return tuple(reason for reason, holds in found.items() if holds)


def _work_s(analysis: Analysis) -> float:
    """Return the work of a mean request at all stations, seconds."""
    return sum(float(np.median(each.mean_s)) * analysis.members[name] for name, each in analysis.demands.items())


def _alone_s(analysis: Analysis) -> float:
    """Return the time of a mean request that is alone in the system, seconds."""
    return float(np.median(analysis.averaged(analysis.unloaded)))


def _limited(whole: Whole, left: Remainder, solution: Solution, uncertainty: Uncertainty) -> SustainedRate:
    """Return the capacity of the survivors with the objectives met, at all draws."""
    few = sustained_rate(solution, uncertainty, whole.objectives, whole.relations)
    most = np.inf if left.lowered else 1.0
    pairs = zip(few, whole.limited_few, strict=True)
    ratios = [np.minimum(after / np.maximum(before, 1e-9), most) for after, before in pairs]
    return SustainedRate(*(of_all * ratio for of_all, ratio in zip(whole.limited, ratios, strict=True)))


def _described(left: Remainder, capacity: Band, risk: float, confidence: float, **figures: Any) -> Outage:
    same = ("name", "lost", "lost_dcs", "lowered", "assumed", "cost")
    return Outage(
        **{name: getattr(left, name) for name in same},
        available=left.solved is not None,
        capacity_tps=capacity,
        risk=risk,
        answer=answer(risk, confidence),
        **figures,
    )


def _capacity_draws(whole: Whole, left: Remainder, solution: Solution) -> FloatArray:
    """Return the capacity of the survivors at all draws, requests per second."""
    ratio = solution.capacity / np.maximum(whole.capacity, 1e-9)
    ratio = ratio if left.lowered else np.minimum(ratio, 1.0)
    return np.asarray(whole.case.solution.capacity * ratio)


def _latency(whole: Whole, left: Remainder, figures: Figures, uncertainty: Uncertainty) -> dict[str, Latency]:
    """Return the latencies of the survivors: those of the layout, times the ratio of the analytic figures."""
    found, least = {}, 0.0 if left.lowered or "dc" in left.lost else 1.0
    for name in figures.asked:
        whole_s, left_s = whole.figures.latencies_s(name), figures.latencies_s(name)
        bands: dict[str, Band] = {}
        for place, statistic in enumerate(STATISTICS):
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = np.maximum(left_s[place] / whole.times_s[name][place], least)
                draws = whole_s[place] * ratio * _correction(whole, name, statistic, whole_s[place]) * 1e3
            draws = np.where(np.isnan(draws), np.inf, draws)
            bands[statistic] = model_only(uncertainty.of_time(draws, name, statistic))
        found[name] = in_order(Latency(**bands))
    return found


def _correction(whole: Whole, name: str, statistic: str, analytic_s: FloatArray) -> float:
    """Return the ratio of simulated to analytic figure of the whole layout; 1 if either is unbounded."""
    shown = getattr(whole.latency_ms.get(name), statistic, None)
    middle = float(np.median(analytic_s)) * 1e3
    if shown is None or not np.isfinite(shown.value) or not np.isfinite(middle) or middle <= 0:
        return 1.0
    return float(shown.value) / middle
