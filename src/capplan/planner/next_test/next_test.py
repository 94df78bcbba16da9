"""`next-test`: which load test to run next, by what it would tell of an asked figure per hour of testing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from capplan.calibration.fit.from_table import TableSystem, rows_of
from capplan.calibration.system import Case
from capplan.models.errors import InputError
from capplan.models.language.scenario import Scenario, changed, fields_of
from capplan.models.objective import Comparison
from capplan.models.results import plain
from capplan.planner.next_test.figures import CAPACITY, THROUGHPUT, Measured, measured
from capplan.planner.next_test.gain import Normal, chance_of_change, half_width, variance_lost

SCHEMA = "capplan.next-test/1"
CONFIDENCE = 0.95
"""Probability with which a repeat must meet the objective for the answer yes."""
_LOADS = ("clients", "tps", "slo")
_HELPS = 0.01  # narrowing of the half-width, or probability of another decision, from which a test helps
_MS = 1e3


@dataclass(frozen=True)
class AskedFigure:
    """The figure that a test should tell of, before any further test.

    Attributes
    ----------
    name
        `capacity`, `throughput`, or class and statistic of a latency such as `read.p99`.
    unit
        `1/s` or `ms`.
    value
        Its median.
    low
        The 5th percentile of what a repeat would measure.
    high
        The 95th percentile.
    half_width
        Half-width of this band, as a share of the median.
    objective
        The objective about it; null if there is none.
    chance_met
        Probability that a repeat meets the objective; null without one.
    """

    name: str
    unit: str
    value: float
    low: float
    high: float
    half_width: float
    objective: str | None
    chance_met: float | None


@dataclass(frozen=True)
class CandidateTest:
    """One load test that could be run.

    Attributes
    ----------
    changes
        Fields in which its scenario differs from the asked one.
    words
        Its layout and load in words.
    new_layout
        Whether its layout must be set up, as no known load test had it.
    hours
        Hours of testing.
    half_width_after
        Expected half-width of the asked figure's band after it, as a share of the median.
    narrowing
        Share of the half-width that it is expected to remove.
    narrowing_per_hour
        The same per hour of testing.
    chance_of_change
        Probability that it changes the answer to the objective; null without one.
    chance_per_hour
        The same per hour of testing; null without an objective.
    """

    changes: Mapping[str, Any]
    words: str
    new_layout: bool
    hours: float
    half_width_after: float
    narrowing: float
    narrowing_per_hour: float
    chance_of_change: float | None
    chance_per_hour: float | None


@dataclass(frozen=True)
class NextTest:
    """Load tests by what they would tell, the most useful first.

    Attributes
    ----------
    system
        The system.
    layout
        The asked layout in words.
    rank
        What ranks the tests: `band` or `decision`, both per hour.
    answer
        Whether a test helps: it narrows the band, or changes the decision, by one per cent or more. Exit code 0.
    figure
        The asked figure.
    tests
        The candidates, best first.
    refused
        Candidates that cannot be tested, with the reason.
    """

    system: str
    layout: str
    rank: Literal["band", "decision"]
    answer: bool
    figure: AskedFigure
    tests: tuple[CandidateTest, ...]
    refused: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values, with the name of its schema."""
        return {"schema": SCHEMA, **plain(self)}


@dataclass(frozen=True)
class Hours:
    """What a load test costs, in hours.

    Attributes
    ----------
    run : float
        A run.
    setup : float
        Setting up a layout that no known load test had.
    """

    run: float = 0.5
    setup: float = 4.0


def next_test(
    case: Case[Any],
    candidates: Sequence[Mapping[str, Any]],
    *,
    figure: str | None = None,
    hours: Hours | None = None,
    rank: Literal["band", "decision"] | None = None,
) -> NextTest:
    """Rank load tests by what they would tell of a figure of a layout.

    Parameters
    ----------
    case : Case
        The layout and load whose figure is asked for, with its calibration.
    candidates : sequence of mappings
        Each has the fields in which a test's scenario differs from the asked one.
    figure : str, optional
        `capacity`, `throughput`, or a latency such as `read.p99`; by default that of the first objective, the
        throughput where clients are given, or else the capacity.
    hours : Hours, optional
        What a test costs.
    rank : {"band", "decision"}, optional
        What ranks the tests; by default the decision where there is an objective about the figure.

    Returns
    -------
    NextTest

    Raises
    ------
    InputError
        If there is no such figure, no candidate can be tested, or a decision is to rank without an objective.
    """
    cost = hours or Hours()
    name, objective = _asked(case, figure)
    if rank == "decision" and objective is None:
        raise InputError(f"no objective is about {name}: give one by --slo, or rank by band")
    draws, scatter = measured(_without_objectives(case)).figure(name)
    now = Normal.of(np.log(draws))
    known = set(_known_layouts(case))
    found, refused = [], []
    for fields in candidates:
        try:
            its = replace(case, scenario=changed(case.scenario, **fields), offered_per_s=None)
            test = measured(_without_objectives(its))
        except InputError as error:
            refused.append(f"{_in_words(fields)}: {error}")
            continue
        found.append(_candidate(case, its, fields, test, (np.log(draws), scatter, now), objective, cost, known))
    if not found:
        raise InputError(f"no candidate can be tested; the first: {refused[0]}" if refused else "give a candidate")
    by = rank or ("decision" if objective is not None else "band")
    found.sort(key=lambda each: -(each.narrowing_per_hour if by == "band" else each.chance_per_hour or 0.0))
    best = max((each.narrowing if by == "band" else each.chance_of_change or 0.0) for each in found)
    return NextTest(
        system=case.system.name,
        layout=case.system.layout(case.scenario, case.values),
        rank=by,
        answer=best >= _HELPS,
        figure=_figure(name, draws, scatter, now, objective),
        tests=tuple(found),
        refused=tuple(refused),
    )


def _asked(case: Case[Any], figure: str | None) -> tuple[str, Comparison | None]:
    """Return the name of the asked figure, and the objective about it."""
    simple = [
        each
        for objective in case.objectives
        for each in objective.comparisons()
        if each.relation != "in" and (each.metric.name == CAPACITY or each.metric.kind == "duration")
    ]
    clients = case.system.clients(case.scenario)
    usual = simple[0].metric.name if simple else (CAPACITY if clients is None else THROUGHPUT)
    name = figure or usual
    return name, next((each for each in simple if each.metric.name == name), None)


def _without_objectives(case: Case[Any]) -> Case[Any]:
    return replace(case, scenario=changed(case.scenario, slo=()))


def _candidate(
    case: Case[Any],
    its: Case[Any],
    fields: Mapping[str, Any],
    test: Measured,
    asked: tuple[Any, float, Normal],
    objective: Comparison | None,
    cost: Hours,
    known: set[Any],
) -> CandidateTest:
    logs, scatter, now = asked
    names = [name for name, each in test.draws.items() if np.all(np.isfinite(each)) and np.all(each > 0)]
    lost = variance_lost(
        logs, np.log(np.stack([test.draws[name] for name in names])), np.array([test.scatter[name] for name in names])
    )
    before = half_width(now.sd, scatter)
    after = half_width(math.sqrt(max(now.sd**2 - lost, 0.0)), scatter)
    new = _layout(its.scenario) not in known
    hours = cost.run + (cost.setup if new else 0.0)
    chance = None if objective is None else _chance(objective, now, lost, scatter)
    return CandidateTest(
        changes=dict(fields),
        words=_in_words(fields) or "the asked layout and load",
        new_layout=new,
        hours=hours,
        half_width_after=after,
        narrowing=1 - after / before if before > 0 else 0.0,
        narrowing_per_hour=(1 - after / before) / hours if before > 0 else 0.0,
        chance_of_change=chance,
        chance_per_hour=None if chance is None else chance / hours,
    )


def _chance(objective: Comparison, now: Normal, lost: float, scatter: float) -> float:
    limit = _limit(objective)
    if objective.relation.startswith("<"):  # a figure that must be small is a negative logarithm that must be large
        return chance_of_change(Normal(-now.mean, now.sd), -limit, lost, scatter, CONFIDENCE)
    return chance_of_change(now, limit, lost, scatter, CONFIDENCE)


def _limit(objective: Comparison) -> float:
    return math.log(objective.bounds[0] * (_MS if objective.metric.kind == "duration" else 1.0))


def _figure(name: str, draws: Any, scatter: float, now: Normal, objective: Comparison | None) -> AskedFigure:
    from scipy.special import ndtr

    width = half_width(now.sd, scatter)
    middle = float(np.median(draws))
    chance = None
    if objective is not None:
        distance = (now.mean - _limit(objective)) / max(math.hypot(now.sd, scatter), 1e-12)
        chance = float(ndtr(-distance if objective.relation.startswith("<") else distance))
    return AskedFigure(
        name=name,
        unit="1/s" if name.rpartition(".")[2] in (CAPACITY, THROUGHPUT) else "ms",
        value=middle,
        low=middle / (1 + width),
        high=middle * (1 + width),
        half_width=width,
        objective=None if objective is None else objective.text,
        chance_met=chance,
    )


def _known_layouts(case: Case[Any]) -> Iterable[Any]:
    if isinstance(case.system, TableSystem):
        return [_layout(case.system.row_scenario(row)) for row in rows_of(case.fitted)]
    return [_layout(test.scenario) for test in case.system.observations.load_tests()]


def _layout(scenario: Scenario) -> tuple[Any, ...]:
    return tuple(getattr(scenario, name) for name in fields_of(type(scenario)) if name not in _LOADS)


def _in_words(fields: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in fields.items())
