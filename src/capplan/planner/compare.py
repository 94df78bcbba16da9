"""`compare`: differences between two layouts, under the same parameter draws and random numbers.

The figures of each layout are those of `predict`. Each draw of the parameters gives one difference, and the interval is
over those. A model error is a property of a layout: the same layout has the same error, and errors of different layouts
are correlated as was measured (see `capplan.layout.uncertainty`). A figure that the change does not move in
any draw differs by nothing.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from capplan.answers.results import STATISTICS, Band, plain
from capplan.answers.verb_answer import VerbAnswer
from capplan.answers.verdict import NORMAL, Verdict
from capplan.errors import InputError
from capplan.layout.case import Case
from capplan.layout.components import Ratios
from capplan.layout.fitted_file import Fitted
from capplan.layout.notes import Notes
from capplan.layout.solution import Occupancy
from capplan.layout.uncertainty import HIGH, LOW
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import FloatArray
from capplan.planner.conditions import verdict_of
from capplan.planner.predict.capacity import objectives_at_a_rate, sustained_rate
from capplan.planner.predict.predict import AtRate, CapacityLimit, Question, capacity_limit, solved_at, utilisation
from capplan.planner.sustained import Conditions, Judged, JudgingEngine
from capplan.planner.sweep import layout_fields
from capplan.systems.registry import resolve

CAPACITY = "capacity"
_SHOWN = ("mean", "p50", "p99")


@dataclass(frozen=True)
class Interval:
    """A figure with its 5th and 95th percentile; null where it is unbounded."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, predicted: FloatArray, repeated: FloatArray) -> Interval:
        """Return the median over the predicted draws, with the ends of the simulated repeats' band."""
        value, *_ = _quantiles(predicted, [0.5])
        low, high = _quantiles(repeated, [LOW, HIGH])
        return cls(value, min(low, value), max(high, value))


def _quantiles(draws: FloatArray, levels: Sequence[float]) -> list[float]:
    finite = np.all(np.isfinite(draws))  # nothing lies between infinities
    return list(map(float, np.quantile(draws, levels, method="linear" if finite else "inverted_cdf")))


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The difference of one figure between two layouts.

    Attributes
    ----------
    figure
        `capacity`, a latency such as `acct.p99`, or the utilisation of a resource, such as `cassandra.utilisation`.
    unit
        `1/s`, `ms` or `1`.
    first
        The figure of the first layout at the common rate, with its band, as `predict` shows it.
    second
        That of the second.
    difference
        The second less the first: the median over draws, and the band of what repeats of both load tests would measure.
    larger
        Probability that the second is larger.
    """

    figure: str
    unit: str
    first: Interval
    second: Interval
    difference: Interval
    larger: float


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A resource that limits one of two layouts or both; in both, capacity is at most members over their work.

    Attributes
    ----------
    resource
        Its name.
    first, second
        What requests take of it.
    limits
        Which layouts it limits: 1, 2.
    """

    resource: str
    first: Occupancy
    second: Occupancy
    limits: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Comparison(VerbAnswer):
    """The answer of `compare`.

    Attributes
    ----------
    system
        Name of the system.
    layouts
        The two layouts in words.
    scenarios
        Their fields.
    changed
        The fields that differ.
    offered_tps
        Peak rate of the latencies and utilisations, requests per second over all data centres.
    verdicts
        Whether each of the two carries the rate with its objectives met; empty where neither was given.
    differences
        The figures.
    limits
        What requests take of each resource that limits one of the layouts: the reason for the capacities.
    engine
        What latencies come from.
    seed
        The seed of every random number.
    version
        The version of capplan.
    """

    SCHEMA = "capplan.comparison/4"
    UNBOUNDED = tuple(("Interval", number) for number in ("value", "low", "high"))

    system: str
    layouts: tuple[str, str]
    scenarios: tuple[Mapping[str, Any], Mapping[str, Any]]
    changed: tuple[str, ...]
    offered_tps: float
    verdicts: tuple[Verdict, ...]
    differences: tuple[Difference, ...]
    limits: tuple[Limit, ...]
    engine: str
    seed: int
    version: str


class _Figure(NamedTuple):
    """A figure of a layout: its unit, its band in `predict`, and its predicted and repeated values by draw."""

    unit: str
    band: Band
    predicted: FloatArray
    repeated: FloatArray


def _figures_of(
    limit: CapacityLimit, found: AtRate, other_limit: CapacityLimit, other: AtRate
) -> Iterator[tuple[str, _Figure]]:
    """Yield a layout's figures by name, for comparison with another layout: the capacity, and figures at a rate."""
    near, band, number = limit.near, limit.capacity.peak_tps, _number(found.case)
    uncertainty = replace(near.uncertainty_beside(other_limit.near), layout=number)
    highest = sustained_rate(near.solution, uncertainty, objectives_at_a_rate(near), limit.relations)
    most = math.inf if near.upper_bound is None else band.high
    yield CAPACITY, _Figure("1/s", band, *(np.minimum(each, most) for each in highest))
    figures, uncertainty = found.figures, replace(found.case.uncertainty_beside(other.case), layout=number)
    for name, latency in found.latency_ms.items():
        for statistic, solved_s in zip(STATISTICS, figures.latencies_s(name), strict=True):
            shown: Band | None = getattr(latency, statistic)
            if statistic in _SHOWN and shown is not None:
                relation = found.relations.get((name, statistic))
                draws = solved_s if relation is None else figures.corrected_s(name, statistic, relation.at)
                repeated = uncertainty.repeated_time(draws * 1e3, name, statistic)
                yield f"{name}.{statistic}", _Figure("ms", shown, draws * 1e3, repeated)
    for resource, busy in utilisation(found.case, figures, float(np.max(figures.peak_rate))).items():
        draws = figures.utilisation(resource)
        repeated = np.minimum(uncertainty.repeated_rate(draws), 1.0)
        yield f"{resource}.utilisation", _Figure("1", busy, draws, repeated)


def _number(case: Case[Any]) -> int:
    """Return a number that identifies the layout; it does not depend on rate or objectives."""
    text = json.dumps(plain(layout_fields(case.scenario)), sort_keys=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def compare(
    first: Scenario,
    second: Scenario,
    *,
    fitted: Fitted | None = None,
    engine: JudgingEngine = "compiled",
    seed: int = 1,
) -> Comparison:
    """Compare two layouts of a system.

    Parameters
    ----------
    first, second : Scenario
        The layouts. The rate is that of the first, else that of the second, else 80 % of the lower capacity.
    fitted : Fitted, optional
        The calibration to use for both; the system's own by default.
    engine : str
        `compiled` simulates both layouts with the same random numbers; `analytic` takes the solver's latencies.
    seed : int
        Seed of every random number.

    Raises
    ------
    InputError
        If the layouts are of different systems, or of one that has ratios only.
    """
    cases = tuple(resolve(each, fitted, seed) for each in (first, second))
    _check(cases)
    question = Question(engine)
    limits = tuple(capacity_limit(case, question) for case in cases)
    given = next((case.given_per_s for case in cases if case.given_per_s is not None), None)
    rate = min(each.default_rate for each in limits) if given is None else given
    solved = [(limit, solved_at(case, rate, question)) for limit, case in zip(limits, cases, strict=True)]
    one, other = (dict(_figures_of(*own, *beside)) for own, beside in (solved, solved[::-1]))
    differences = tuple(_difference(name, one[name], other[name]) for name in one if name in other)
    return Comparison(
        system=first.system,
        layouts=(_layout(cases[0]), _layout(cases[1])),
        scenarios=(first.given(), second.given()),
        changed=_changed(first, second),
        offered_tps=rate,
        verdicts=tuple(_verdict(each, rate, engine, given is not None) for _, each in solved)
        if given or any(each.objectives for each in cases)
        else (),
        differences=differences,
        limits=tuple(_limits(cases)),
        engine=engine,
        seed=seed,
        version=version("capplan"),
    )


def _limits(cases: Sequence[Case[Any]]) -> Iterator[Limit]:
    """Yield the resources that limit; none for a pool of workers, whose work is waiting."""
    one, other = (case.solution for case in cases)
    for resource in dict.fromkeys((one.bottleneck, other.bottleneck)):
        if resource in one.resources and resource in other.resources:
            yield Limit(
                resource=cases[0].system.component(Notes).resource_name(cases[0].scenario, resource),
                first=one.occupancy(resource),
                second=other.occupancy(resource),
                limits=tuple(n for n, each in enumerate((one, other), 1) if each.bottleneck == resource),
            )


def _verdict(solved: AtRate, rate: float, engine: JudgingEngine, given: bool) -> Verdict:
    judged = Judged(solved.case, (Conditions(NORMAL),), rate, given=given)
    if engine != "analytic":
        judged.simulate(solved.case.seed, {NORMAL: solved.relations})
    return verdict_of(judged)


def _check(cases: Sequence[Case[Any]]) -> None:
    one, other = (case.system.name for case in cases)
    if one != other:
        raise InputError(
            f"{one} and {other} are different systems, whose evidence differs, too: compare two layouts of one"
        )
    closed = (each.closed_clients for each in cases)
    clients = next((each for each in closed if each is not None), None)
    if clients is not None:
        raise InputError(
            f"clients = {clients} have no rate in common with another layout, and layouts are compared at one rate: "
            "give tps instead, or run `capplan predict` for each"
        )
    cases[0].system.component(Ratios).refuse(
        f"{one} cannot be compared: its documents have ratios of throughput only; run `capplan predict {one}`"
    )


def _layout(case: Case[Any]) -> str:
    return case.system.layout(case.scenario, case.values)


def _changed(first: Scenario, second: Scenario) -> tuple[str, ...]:
    """Return the fields that differ: of the layout, and the objectives, which limit a capacity and decide an answer."""
    one, other = ({**layout_fields(each), "slo": each.slo} for each in (first, second))
    return tuple(name for name in dict.fromkeys((*one, *other)) if one.get(name) != other.get(name))


def _difference(name: str, one: _Figure, other: _Figure) -> Difference:
    predicted, repeated = _gaps(one, other)
    return Difference(
        figure=name,
        unit=one.unit,
        first=Interval(one.band.value, one.band.low, one.band.high),
        second=Interval(other.band.value, other.band.low, other.band.high),
        difference=Interval.of(predicted, repeated),
        larger=float(np.mean(repeated > 0)),
    )


def _gaps(one: _Figure, other: _Figure) -> tuple[FloatArray, FloatArray]:
    """Return the differences by draw, predicted and repeated; 0 where both figures are unbounded.

    What the model tells apart in no draw has one model error.
    """
    with np.errstate(invalid="ignore"):
        gaps = np.stack([other.predicted - one.predicted, other.repeated - one.repeated])
    if np.array_equal(one.predicted, other.predicted):
        gaps[:] = 0.0
    predicted, repeated = np.where(np.isnan(gaps), 0.0, gaps)
    return predicted, repeated
