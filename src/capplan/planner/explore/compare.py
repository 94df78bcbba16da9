"""`compare`: how two layouts differ, under the same parameter draws, model errors and random numbers.

Most of what is uncertain about two layouts is common to both, so their difference is known better than either. Each
draw of the parameters therefore gives one difference, and the interval is over those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Literal, NamedTuple

import numpy as np

from capplan.calibration.case.solution import Figures
from capplan.calibration.case.uncertainty import HIGH, LOW
from capplan.calibration.fit.fitted_file import Fitted
from capplan.calibration.system import Case
from capplan.models.errors import InputError, MissingError
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import FloatArray
from capplan.models.results import STATISTICS, plain
from capplan.planner.explore.sweep_table import rate_fields
from capplan.planner.predict.capacity import DEFAULT_SHARE, rate_at
from capplan.planner.predict.simulated_latency import SimulationSettings, simulated_latency
from capplan.planner.predict.sustained_rate import Relations
from capplan.systems.registry import resolve

SCHEMA = "capplan.comparison/1"
CompareEngine = Literal["compiled", "analytic"]
CAPACITY = "capacity"
MODEL_ERROR = "model error"
"""What no parameter explains: its place among the drivers."""
_SHOWN = ("mean", "p50", "p99")
_TAIL = 0.2  # share of the draws at either end of a parameter, whose figures a tornado compares


@dataclass(frozen=True)
class Interval:
    """A median with its 5th and 95th percentile; null where it is unbounded."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, draws: FloatArray) -> Interval:
        """Return that of some draws."""
        levels = [LOW, 0.5, HIGH]
        if np.all(np.isfinite(draws)):
            low, value, high = np.quantile(draws, levels).tolist()
        else:  # nothing lies between infinities
            low, value, high = np.quantile(draws, levels, method="inverted_cdf").tolist()
        return cls(value, low, high)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How a figure differs between two layouts.

    Attributes
    ----------
    figure
        `capacity`, a latency such as `acct.p99`, or the utilisation of a resource, such as `cassandra.utilisation`.
    unit
        `1/s`, `ms` or `1`.
    first
        The figure of the first layout, with its band.
    second
        That of the second.
    difference
        The second less the first, by draw: its band is that of the difference.
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
class Driver:
    """How far a parameter, or the model error, drives a difference.

    Attributes
    ----------
    parameter
        Its name, or `model error` for what no parameter explains.
    share
        Share of the variance of the difference that it explains alone: its first-order Sobol index, estimated from the
        draws.
    low
        Median difference at the draws with the lowest values of the parameter.
    high
        The same at those with the highest.
    """

    parameter: str
    share: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Comparison:
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
    differences
        The figures.
    driven
        The figure whose difference the drivers explain: the first whose sign is certain, or the capacity.
    drivers
        Parameters, the most important first; empty unless they were asked for.
    engine
        What latencies come from.
    seed
        The seed of every random number.
    version
        The version of capplan.
    """

    system: str
    layouts: tuple[str, str]
    scenarios: tuple[Mapping[str, Any], Mapping[str, Any]]
    changed: tuple[str, ...]
    offered_tps: float
    differences: tuple[Difference, ...]
    driven: str
    drivers: tuple[Driver, ...] = ()
    engine: str
    seed: int
    version: str

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON has it."""
        return {"schema": SCHEMA, **plain(self)}


class _Draws(NamedTuple):
    """A figure by draw (draws,): its unit, as predicted, and as a repeat of the load test would measure."""

    unit: str
    predicted: FloatArray
    repeated: FloatArray


@dataclass(frozen=True)
class _Solved:
    """One of the layouts at the common rate."""

    case: Case[Any]
    figures: Figures
    relations: Relations = field(default_factory=dict)

    def all_draws(self) -> Iterator[tuple[str, _Draws]]:
        """Yield each figure with its name."""
        uncertainty, capacity = self.case.uncertainty, self.case.solution.capacity
        yield CAPACITY, _Draws("1/s", capacity, uncertainty.repeated_capacity(capacity))
        for name in self.figures.asked:
            found, plain_s = self.figures.latencies_s(name), self.figures.without_pauses.latencies_s(name)
            for place, statistic in enumerate(STATISTICS):
                if statistic in _SHOWN:
                    relation = self.relations.get((name, statistic))
                    draws = found[place]
                    if relation is not None:
                        draws = relation.at(plain_s[place]) + (draws - plain_s[place])  # pauses are not simulated
                    repeated = uncertainty.repeated_time(draws * 1e3, name, statistic)
                    yield f"{name}.{statistic}", _Draws("ms", draws * 1e3, repeated)
        for resource in self.case.solution.resources:
            busy = self.figures.utilisation(resource)
            yield f"{resource}.utilisation", _Draws("1", busy, busy)


def compare(
    first: Scenario,
    second: Scenario,
    *,
    fitted: Fitted | None = None,
    engine: CompareEngine = "compiled",
    seed: int = 1,
    drivers: bool = False,
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
    drivers : bool
        Whether to find the parameters that drive the difference, which needs SALib.

    Raises
    ------
    InputError
        If the layouts are of different systems, or of one that has ratios only.
    MissingError
        If SALib is needed and not installed.
    """
    cases = tuple(resolve(each, fitted, seed) for each in (first, second))
    _check(cases)
    rate = _rate(cases)
    solved = tuple(_solved(case.at(rate), rate, engine) for case in cases)
    one, other = (dict(each.all_draws()) for each in solved)
    differences = tuple(_difference(name, one[name], other[name]) for name in one if name in other)
    driven = next((each.figure for each in differences if _is_certain(each)), CAPACITY)
    return Comparison(
        system=first.system,
        layouts=(_layout(cases[0]), _layout(cases[1])),
        scenarios=(first.given(), second.given()),
        changed=_changed(first, second),
        offered_tps=rate,
        differences=differences,
        driven=driven,
        drivers=_drivers(cases[0].fitted, one[driven], other[driven]) if drivers else (),
        engine=engine,
        seed=seed,
        version=version("capplan"),
    )


def _check(cases: Sequence[Case[Any]]) -> None:
    one, other = (case.system.name for case in cases)
    if one != other:
        raise InputError(
            f"{one} and {other} are different systems, whose evidence differs, too: compare two layouts of one"
        )
    clients = next((each.scenario.clients for each in cases if _closed(each)), None)
    if clients is not None:
        raise InputError(
            f"clients = {clients} have no rate in common with another layout, and layouts are compared at one rate: "
            "give tps instead, or run `capplan predict` for each"
        )
    if cases[0].system.ratios_only:
        raise InputError(
            f"{one} cannot be compared: its documents have ratios of throughput only; run `capplan predict {one}`"
        )


def _closed(case: Case[Any]) -> bool:
    """Whether closed clients determine the rate of a layout."""
    return case.system.from_tables and getattr(case.scenario, "clients", None) is not None


def _rate(cases: Sequence[Case[Any]]) -> float:
    given = next((case.given_per_s for case in cases if case.given_per_s is not None), None)
    if given is not None:
        return given
    return rate_at(DEFAULT_SHARE, min(float(np.median(case.solution.capacity)) for case in cases))


def _solved(case: Case[Any], rate: float, engine: CompareEngine) -> _Solved:
    figures = case.solution.at(rate)
    if engine == "analytic":
        return _Solved(case, figures)
    settings = SimulationSettings(case.seed, engine, case.system.budget_s)
    return _Solved(case, figures, simulated_latency(case, figures, settings).relations)


def _layout(case: Case[Any]) -> str:
    return case.system.layout(case.scenario, case.values)


def _changed(first: Scenario, second: Scenario) -> tuple[str, ...]:
    """Return the fields of the layout that differ: not the rate, which is common, nor the objectives."""
    one, other = first.given(), second.given()
    traffic = {*rate_fields(type(first)), "slo"}
    return tuple(
        name for name in dict.fromkeys((*one, *other)) if name not in traffic and one.get(name) != other.get(name)
    )


def _difference(name: str, one: _Draws, other: _Draws) -> Difference:
    gap = _gap(one.repeated, other.repeated)
    return Difference(
        figure=name,
        unit=one.unit,
        first=Interval.of(one.repeated),
        second=Interval.of(other.repeated),
        difference=Interval.of(gap),
        larger=float(np.mean(gap > 0)),
    )


def _gap(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the differences; 0 where both are unbounded."""
    with np.errstate(invalid="ignore"):
        gap = other - one
    return np.where(np.isnan(gap), 0.0, gap)


def _is_certain(difference: Difference) -> bool:
    """Whether the sign of a difference is certain, and the difference bounded."""
    ends = (difference.difference.low, difference.difference.high)
    return bool(np.isfinite(ends).all()) and (min(ends) > 0 or max(ends) < 0)


def _drivers(fitted: Fitted, one: _Draws, other: _Draws) -> tuple[Driver, ...]:
    """Return the parameters and the model error, the most important first."""
    try:
        from SALib.analyze import delta
    except ImportError:
        raise MissingError(
            "the drivers of a difference are found by SALib, which is not installed: install capplan[sensitivity]"
        ) from None
    gap, repeated = _gap(one.predicted, other.predicted), _gap(one.repeated, other.repeated)
    if not np.all(np.isfinite(repeated)) or np.ptp(repeated) == 0:
        return ()
    draws, names = np.array(fitted.draws), list(fitted.names)
    own = float(np.clip(np.var(gap) / np.var(repeated), 0, 1))  # the share of all parameters together
    problem = {"num_vars": len(names), "names": names, "bounds": [[0, 1]] * len(names)}
    alone = (
        delta.analyze(problem, draws, gap, num_resamples=2, seed=1, method="sobol")["S1"]
        if np.ptp(gap)
        else [0.0] * len(names)
    )
    rows = [
        _driver(name, own * float(np.clip(share, 0, 1)), draws[:, place], gap)
        for place, (name, share) in enumerate(zip(names, alone, strict=True))
    ]
    rows.append(_driver(MODEL_ERROR, 1 - own, repeated - gap, repeated))
    return tuple(sorted(rows, key=lambda each: -each.share))


def _driver(name: str, share: float, along: FloatArray, gap: FloatArray) -> Driver:
    """Return a driver, with the median differences at the draws at either end of it."""
    count, order = max(int(_TAIL * len(gap)), 1), np.argsort(along)
    low, high = (float(np.median(gap[each])) for each in (order[:count], order[-count:]))
    return Driver(parameter=name, share=share, low=low, high=high)
