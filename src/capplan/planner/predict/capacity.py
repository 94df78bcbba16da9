"""The capacity of a layout: the highest rate at which each parameter draw meets its objectives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from capplan.answers.objective import Metric, Objective
from capplan.answers.results import Band, Capacity, Latency, Parts
from capplan.answers.verdict import CONFIDENCE
from capplan.calibration.tables.row_predictions import Widening, band_of
from capplan.calibration.tables.solved_rows import Solved, solved_rows
from capplan.errors import InputError, RefusedError
from capplan.layout.case import Case
from capplan.layout.notes import Notes
from capplan.layout.solution import Figures, Solution
from capplan.layout.table_components import Rows
from capplan.layout.table_rows import LEVELS, MEAN, QUANTITIES, THROUGHPUT, Load, TableRow, rows_of
from capplan.layout.table_system import NOT_PROMISED, table_of, with_unknown_layouts
from capplan.layout.uncertainty import HIGH, LOW, Uncertainty, half_width
from capplan.models.language.scenario import changed
from capplan.models.language.traffic import Bursty
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import MAX_DROP_RATE
from capplan.planner.predict.prediction import (
    EvidenceSummary,
    Limit,
    Prediction,
    judged_by_bands,
    left_open,
    with_basis,
)
from capplan.planner.predict.simulated_latency import Relation, in_order

_HIGH = (0.9, 0.92, 0.94, 0.955, 0.97, 0.98, 0.985, 0.99, 0.995, 0.998, 1.0)
SHARES: FloatArray = np.array([0.001, 0.1, 0.2, *np.arange(0.3, 0.89, 0.025), *_HIGH])
"""Rates at which figures may be solved, relative to the capacity without objectives; values between are interpolated.

They are close because a percentile may grow tenfold from one to the next, where pauses of nodes begin to reach it. A
draw that meets the objectives at the highest counts as sustaining its whole capacity, one that does not at the lowest
as sustaining nothing.
"""
_PLACES = np.arange(len(SHARES))
_HALVINGS = 20
_TINY, _HUGE = 1e-12, 1e12  # stand for zero and for infinity between two rates

Relations = Mapping[tuple[str, str], Relation]
"""Simulated over analytic latencies, by reported request class and statistic."""


class SustainedRate(NamedTuple):
    """Rates by parameter draw, requests per second: predicted, and in simulated repeats of the load test."""

    predicted: FloatArray
    repeated: FloatArray


def sustained_rate(
    solution: Solution,
    uncertainty: Uncertainty,
    objectives: Sequence[Objective],
    relations: Relations | None = None,
    along: Solution | None = None,
) -> SustainedRate:
    """Return the highest peak rate at which each draw meets the objectives.

    Parameters
    ----------
    solution : Solution
        The analysed layout.
    uncertainty : Uncertainty
        The model errors of its figures.
    objectives : sequence of Objective
        Objectives about figures at one rate; if empty, only overload limits the rate.
    relations : mapping, optional
        Simulated over analytic latencies; those that are missing are taken as solved.
    along : Solution, optional
        The layout at `SHARES` of the capacity, as `SolvedLayout.along`; `solution` by default.

    Returns
    -------
    SustainedRate
        Arrays (draws,).
    """
    plain = solution.capacity
    if not objectives:
        return SustainedRate(plain, uncertainty.repeated_rate(plain))
    curves = _Curves(along or solution, uncertainty, objectives, relations or {})
    repeated = uncertainty.repeated_rate(plain * curves.highest_share(curves.repeated))
    return SustainedRate(plain * curves.highest_share(curves.predicted), repeated)


def repeated_at_rate(
    solution: Solution, uncertainty: Uncertainty, metric: Metric, rate_per_s: FloatArray, relations: Relations
) -> FloatArray:
    """Return simulated repeats of a latency at a rate, seconds (draws,).

    Parameters
    ----------
    solution, uncertainty, relations
        As for `sustained_rate`.
    metric : Metric
        The latency.
    rate_per_s : array (draws,)
        Offered peak rate, requests per second.

    Returns
    -------
    array (draws,)
        Infinite where the rate exceeds the capacity.
    """
    share = rate_per_s / np.maximum(uncertainty.repeated_rate(solution.capacity), _TINY)
    curves = _Curves(solution, uncertainty, (), relations, (metric,))
    return np.where(share > 1, np.inf, curves.repeated(metric, np.interp(share, SHARES, _PLACES)))


def held_at_rate(
    solution: Solution,
    uncertainty: Uncertainty,
    objectives: Sequence[Objective],
    rate_per_s: FloatArray,
    relations: Relations,
) -> NDArray[np.bool_]:
    """Return whether each simulated repeat of the load test sustains a rate with the objectives met (draws,).

    Each draw is solved at this very rate, so nothing is interpolated; the solution has all draws.

    Parameters
    ----------
    solution, uncertainty, objectives, relations
        As for `sustained_rate`.
    rate_per_s : array (draws,)
        Offered peak rate, requests per second.
    """
    plain = solution.capacity
    if not objectives:
        return np.asarray(uncertainty.repeated_rate(plain) >= rate_per_s)
    share = rate_per_s / np.maximum(uncertainty.repeated_rate(plain), _TINY)
    figures = solution.at(np.minimum(share, 1.0) * plain)

    def repeated(metric: Metric) -> FloatArray:
        found = _value(figures, metric, relations.get((metric.subject, metric.statistic)))
        return _repeated(found, metric, uncertainty)

    return np.asarray((share <= 1) & np.all([each.holds(repeated) for each in objectives], axis=0))


def _repeated(found: FloatArray, metric: Metric, uncertainty: Uncertainty) -> FloatArray:
    """Return what simulated repeats of a load test measure of a figure, SI (..., draws)."""
    if metric.kind != "duration":
        return found
    return uncertainty.repeated_time(found * 1e3, metric.subject, metric.statistic) / 1e3


class _Curves:
    """The figures in objectives as functions of the rate, by parameter draw."""

    def __init__(
        self,
        solution: Solution,
        uncertainty: Uncertainty,
        objectives: Sequence[Objective],
        relations: Relations,
        asked: Sequence[Metric] = (),
    ) -> None:
        self.objectives, self.uncertainty, self.draws = objectives, uncertainty, solution.capacity.shape[-1]
        metrics = {*asked, *(metric for objective in objectives for metric in objective.metrics())}
        self.values = {
            metric: _curve(solution, metric, relations.get((metric.subject, metric.statistic))) for metric in metrics
        }

    def predicted(self, metric: Metric, place: FloatArray) -> FloatArray:
        """Return a figure at places in `SHARES`, or between them (draws,)."""
        ends = np.stack([np.floor(place), np.ceil(place)]).astype(np.intp)
        low, high = self.values[metric].logs(ends)
        return np.asarray(np.exp(low + (place - ends[0]) * (high - low)))

    def repeated(self, metric: Metric, place: FloatArray) -> FloatArray:
        """Return simulated repeats of a figure at places in `SHARES` (draws,)."""
        return _repeated(self.predicted(metric, place), metric, self.uncertainty)

    def highest_share(self, value: Callable[[Metric, FloatArray], FloatArray]) -> FloatArray:
        """Return the share of the capacity up to which each draw meets the objectives; 0 if it never does.

        The search halves the range of shares on `SHARES` first, then between two of them, so few rates are solved. Of
        several shares at which a figure crosses its limit, it finds one.
        """
        low, high = np.full(self.draws, -1.0), np.full(self.draws, float(_PLACES[-1]))
        low = np.where(self._hold(value, high), high, low)
        while np.any(wide := high - low > 1):
            middle = np.interp((_share(low) + _share(high)) / 2, SHARES, _PLACES)
            middle = np.where(wide, np.clip(np.rint(middle), low + 1, high - 1), high)
            holds = self._hold(value, middle)
            low, high = np.where(wide & holds, middle, low), np.where(wide & np.logical_not(holds), middle, high)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            holds = self._hold(value, np.maximum(middle, 0.0))
            low, high = np.where(holds, middle, low), np.where(holds, high, middle)
        return _share(low)

    def _hold(self, value: Callable[[Metric, FloatArray], FloatArray], place: FloatArray) -> FloatArray:
        return np.asarray(np.all([each.holds(lambda metric: value(metric, place)) for each in self.objectives], axis=0))


def _share(place: FloatArray) -> FloatArray:
    """Return the share at places in `SHARES`, or between them; 0 before the first."""
    return np.where(place < 0, 0.0, np.interp(place, _PLACES, SHARES))


class _Rates:
    """Rates at which a network is solved: each draw at one of `SHARES` of the capacity."""

    def __init__(self, draws: int) -> None:
        self.places = list[NDArray[np.intp]]()
        self._number = np.full((len(SHARES), draws), -1)  # of the rates with a draw at a share

    def numbers(self, places: NDArray[np.intp], draws: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return which of the rates have some draws at their places in `SHARES`; add those that are missing.

        Of each draw, rates have one place: where none is asked for, the one that most draws are asked for.
        """
        while np.any(missing := self._number[places, draws] < 0):
            at = np.full(self._number.shape[1], np.bincount(places[missing]).argmax())
            at[draws[missing]] = places[missing]
            self.places.append(at)
            self._number[at, np.arange(len(at))] = len(self.places) - 1
        return self._number[places, draws]


class _Curve:
    """A figure at `SHARES` of the capacity, solved where it is asked for."""

    def __init__(self, solution: Solution, metric: Metric, relation: Relation | None) -> None:
        self._solution, self._metric, self._relation = solution, metric, relation
        self._rates = _rates(solution.analysis)
        self._logs = np.zeros((len(SHARES), solution.capacity.shape[-1]))
        self._solved = np.zeros(self._logs.shape, dtype=bool)
        self._place = np.arange(self._logs.shape[1]) if solution.place is None else solution.place
        self._known: dict[int, Callable[[NDArray[np.intp]], FloatArray]] = {}

    def logs(self, shares: NDArray[np.intp]) -> FloatArray:
        """Return logarithms of the figure of each draw at some of `SHARES`, by their places (n, draws)."""
        columns = np.broadcast_to(np.arange(shares.shape[-1]), shares.shape)
        new = ~self._solved[shares, columns]
        places, draws = shares[new], columns[new]
        numbers = self._rates.numbers(places, self._place[draws])
        for number in np.unique(numbers).tolist():
            if number not in self._known:
                self._known[number] = self._at(_figures(self._solution, self._rates.places[number].tobytes()))
            at = places[numbers == number], draws[numbers == number]
            self._logs[at] = np.log(np.clip(self._known[number](at[1]), _TINY, _HUGE))
            self._solved[at] = True
        return self._logs[shares, columns]

    def _at(self, figures: Figures) -> Callable[[NDArray[np.intp]], FloatArray]:
        """Return the figure as a function of draws; percentiles with pauses are solved for these alone."""
        metric = self._metric
        if metric.kind != "duration" or metric.statistic == "mean" or figures.pausing is None or figures.closed:
            values = _value(figures, metric, self._relation)[0]
            return lambda draws: np.asarray(values[draws])
        corrected = None if self._relation is None else self._relation.at
        percentile = figures.percentile(metric.subject, metric.statistic, corrected)
        return lambda draws: percentile((np.zeros_like(draws), draws))


@lru_cache(maxsize=8)  # a prediction needs the same curves several times
def _curve(solution: Solution, metric: Metric, relation: Relation | None) -> _Curve:
    return _Curve(solution, metric, relation)


@lru_cache(maxsize=16)  # so that objectives over one network share what is solved
def _rates(analysis: Analysis) -> _Rates:
    return _Rates(analysis.draws)


@lru_cache(maxsize=128)  # an objective needs about a hundred, each of up to 3 MB
def _figures(solution: Solution, places: bytes) -> Figures:
    return solution.at_shares(SHARES[None, np.frombuffer(places, dtype=np.intp)])


def _value(figures: Figures, metric: Metric, relation: Relation | None) -> FloatArray:
    """Return a figure with pauses (..., draws). A relation corrects its part without them, which is simulated."""
    of = metric.subject, metric.statistic
    found = figures.value(metric) if relation is None else figures.corrected_s(*of, relation.at)
    return np.asarray(np.clip(found, _TINY, _HUGE))


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
    """Return the capacity as peak and mean rate, and the overload rate, each without its basis.

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
        burst_ratio=Band(middle, low, high, Parts(parameter=half_width(ratio))) if high > low else Band.exactly(middle),
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
    """Return a share of the capacity, rounded to tens; a tiny rate if the capacity is 0."""
    return max(round(share * capacity, -1), 1.0)


def at_most(band: Band, highest: float) -> Band:
    """Return a band capped at an upper bound."""
    return replace(band, value=min(band.value, highest), low=min(band.low, highest), high=min(band.high, highest))


def objectives_at_a_rate(case: Case[Any]) -> tuple[Objective, ...]:
    """Return the objectives about figures at one rate, as opposed to the capacity."""
    return tuple(each for each in case.objectives if all(metric.name != "capacity" for metric in each.metrics()))


def _band(case: Case[Any], relations: Relations, over: FloatArray) -> Band:
    objectives = objectives_at_a_rate(case)
    plain = case.uncertainty.of_rate(case.solution.capacity / over)
    if not objectives:
        return plain
    free = case.uncertainty.repeated_rate(case.solution.capacity) / over
    found = sustained_rate(case.solution, case.uncertainty, objectives, relations, along=case.layout.along)
    return band_of_rates(SustainedRate(*(each / over for each in found)), plain, free)


def band_of_rates(found: SustainedRate, plain: Band, free: FloatArray) -> Band:
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
    parameter = half_width(predicted)
    error = max(half_width(repeated) ** 2 - parameter**2, 0.0) ** 0.5
    return Band(value, min(low, value), max(high, value), Parts(parameter=parameter, model_error=error))


NOTE = (
    "Closed clients send their next request when they have an answer, so they have no rate to raise. Throughput and "
    "latencies come from the analytic solver."
)
_STATISTICS = {MEAN: "mean", **{name: name.removeprefix("latency_").removesuffix("_ms") for name in LEVELS}}
_SHOWN = ("mean", "p50", "p90", "p95", "p99")
_UNEVEN = (
    "More clients than the nodes or data centres take: they wait unevenly, and the solver has no percentiles of that."
)


def predict_closed(case: Case[Any], lose: Sequence[str] = (), confidence: float = CONFIDENCE) -> Prediction:
    """Predict the throughput and latencies of closed clients.

    Parameters
    ----------
    case : Case
        The layout with its clients and its calibration.
    lose : sequence of str
        What is lost; nothing can be.
    confidence : float
        Confidence of the verdict.

    Raises
    ------
    InputError
        If something is lost.
    RefusedError
        If the solver does not have so many clients in such a layout.
    """
    if lose:
        raise InputError(
            f"--lose {lose[0]} asks what is left of a rate, and closed clients have none: give --tps instead"
        )
    _ = case.objectives  # refuse one that cannot be read before anything is solved
    scenario, fitted, system = case.scenario, case.fitted, table_of(case.system)
    if system is None:
        raise ValueError(f"{case.system.name} has no rows of closed clients")
    notes, clients = system.component(Notes), int(scenario.clients)
    layout = changed(scenario, clients=None, slo=())
    load = Load("closed", clients)
    classes = system.classes(scenario)
    rows = [TableRow("asked", name, layout, load, {}) for name in (None, *classes)]
    try:
        solved = solved_rows(
            system, rows, with_unknown_layouts(system, fitted, [layout]), [list(QUANTITIES)] * len(rows)
        )
    except RefusedError as error:
        raise RefusedError(f"{error}, or ask for a rate with --tps") from None
    whole = solved[0]
    basis = case.basis.of_capacity()
    widening = Widening(system, fitted)
    factor = widening.factor(rows[0], THROUGHPUT)
    throughput = with_basis(band_of(whole.figures[THROUGHPUT], fitted, THROUGHPUT, factor), basis)
    latency = {
        name: _latency(case, each, row, widening) for name, each, row in zip(classes, solved[1:], rows[1:], strict=True)
    }
    most_first = sorted({**whole.busy, **whole.held}.items(), key=lambda each: -float(np.median(each[1])))
    busy = {name: _busy(each) for name, each in most_first}
    prediction = Prediction(
        system=system.name,
        layout=f"{system.layout(scenario, case.values)}, {clients:,} clients",
        scenario=scenario.given(),
        capacity=Capacity(
            peak_tps=throughput,
            mean_tps=throughput,
            overload_tps=throughput,
            burst_ratio=Band.exactly(1.0),
            criterion=f"throughput of the {clients:,} closed clients, which has no rate to raise",
        ),
        limits=tuple(Limit(name, notes.resource_name(scenario, name), False, band) for name, band in busy.items()),
        latency_ms=latency,
        tails_guessed=() if getattr(scenario, "gc", None) is not None else ("GC pauses",),
        tails_not_modelled=notes.tails_not_modelled(scenario),
        utilisation=busy,
        evidence=EvidenceSummary(
            (),
            case.extrapolation.basis,
            case.extrapolation.why,
            (),
            _cautions(case, whole, left_open(case, load, whole)),
            (notes.rates, NOTE, NOT_PROMISED),
        ),
        engine="analytic",
        seed=case.seed,
        version=version("capplan"),
    )
    return judged_by_bands(prediction, case.objectives, partial(_figure, prediction), confidence)


def _cautions(case: Case[Any], solved: Solved, undecided: Sequence[str]) -> tuple[str, ...]:
    uneven = [_UNEVEN] if solved.uneven else []
    if case.fitted.clusters:  # what the answer rests on comes first
        return (*undecided, *uneven)
    return (*case.system.component(Rows).unstated(rows_of(case.fitted)), *uneven, *undecided)


def _figure(prediction: Prediction, metric: Metric) -> Band | None:
    """Return the figure of an objective; closed clients wait, so nothing is dropped."""
    return Band.exactly(0.0) if metric.name == "drop_rate" else prediction.figure(metric)


def _latency(case: Case[Any], solved: Solved, row: TableRow, widening: Widening) -> Latency:
    bands, name = {}, str(row.request_class)
    for quantity, statistic in _STATISTICS.items():
        if statistic in (("mean",) if solved.uneven else _SHOWN):
            band = band_of(solved.figures[quantity], case.fitted, quantity, widening.factor(row, quantity))
            bands[statistic] = with_basis(band, case.basis.of_latency(name, statistic, 0.0))
    return in_order(Latency(**bands))


def _busy(share: Any) -> Band:
    low, middle, high = np.quantile(share, (0.05, 0.5, 0.95)).tolist()
    return Band(middle, low, high, basis="model only")
