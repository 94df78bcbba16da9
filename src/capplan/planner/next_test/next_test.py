"""`next-test`: which load test to run next, by what it would tell of an asked figure per hour of testing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from capplan.calibration.system import Case
from capplan.calibration.tables.fit_table import TableSystem
from capplan.calibration.tables.rows import rows_of
from capplan.models.errors import InputError
from capplan.models.language.scenario import Scenario, changed, fields_of, options_of
from capplan.models.language.units import FloatArray
from capplan.models.objective import Comparison
from capplan.models.results import plain
from capplan.models.verdict import CONFIDENCE
from capplan.planner.next_test.figures import CAPACITY, THROUGHPUT, Measured, clients_of, measured
from capplan.planner.next_test.gain import Normal, chance_of_change, factor, variance_lost

SCHEMA = "capplan.next-test/1"
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
    low_after
        Expected 5th percentile of the asked figure after it, if the median stays.
    high_after
        Expected 95th percentile.
    narrowing
        Share of the width of the band, in the logarithm, that it is expected to remove.
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
    low_after: float
    high_after: float
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
    asked = _Asked(np.log(draws), scatter, objective)
    known = set(_known_layouts(case))
    found, refused = [], []
    for fields in candidates:
        try:
            its = replace(case, scenario=_with(case.scenario, fields), offered_per_s=None)
            test = measured(_without_objectives(its))
        except InputError as error:
            refused.append(f"{_in_words(fields)}: {error}")
            continue
        found.append(_candidate(fields, test, asked, _layout(its.scenario) not in known, cost))
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
        figure=_figure(name, asked),
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
    clients = clients_of(case)
    usual = simple[0].metric.name if simple else (CAPACITY if clients is None else THROUGHPUT)
    name = figure or usual
    return name, next((each for each in simple if each.metric.name == name), None)


def _with(scenario: Scenario, fields: Mapping[str, Any]) -> Scenario:
    """Return a scenario with the fields of a candidate; those that they replace are emptied, such as `tps`."""
    options = options_of(type(scenario))
    replaced = {other for field in fields for other in options[field].replaces}
    return changed(scenario, **{**dict.fromkeys(replaced), **fields})


def _without_objectives(case: Case[Any]) -> Case[Any]:
    return replace(case, scenario=changed(case.scenario, slo=()))


@dataclass(frozen=True)
class _Asked:
    """The asked figure as the ranking needs it: its logarithms by draw, and the objective about it."""

    logs: FloatArray
    scatter: float
    objective: Comparison | None

    @property
    def now(self) -> Normal:
        return replace(Normal.of(self.logs), mean=float(np.median(self.logs)))  # as the band is about the median

    @property
    def median(self) -> float:
        return float(np.exp(np.median(self.logs)))


def _candidate(fields: Mapping[str, Any], test: Measured, asked: _Asked, new: bool, cost: Hours) -> CandidateTest:
    names = [name for name, each in test.draws.items() if np.all(np.isfinite(each)) and np.all(each > 0)]
    logs = np.log(np.stack([test.draws[name] for name in names]))
    lost = variance_lost(asked.logs, logs, np.array([test.scatter[name] for name in names]))
    sd, scatter = asked.now.sd, asked.scatter
    left = math.sqrt(max(sd**2 - lost, 0.0))
    wide = factor(left, scatter)
    narrowing = 1 - math.hypot(left, scatter) / math.hypot(sd, scatter) if sd > 0 else 0.0
    hours = cost.run + (cost.setup if new else 0.0)
    chance = None if asked.objective is None else _chance(asked.objective, asked.now, lost, scatter)
    return CandidateTest(
        changes=dict(fields),
        words=_in_words(fields),
        new_layout=new,
        hours=hours,
        low_after=asked.median / wide,
        high_after=asked.median * wide,
        narrowing=narrowing,
        narrowing_per_hour=narrowing / hours,
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


def _figure(name: str, asked: _Asked) -> AskedFigure:
    from scipy.special import ndtr

    wide, objective = factor(asked.now.sd, asked.scatter), asked.objective
    chance = None
    if objective is not None:
        distance = (asked.now.mean - _limit(objective)) / max(math.hypot(asked.now.sd, asked.scatter), 1e-12)
        chance = float(ndtr(-distance if objective.relation.startswith("<") else distance))
    return AskedFigure(
        name=name,
        unit="1/s" if name.rpartition(".")[2] in (CAPACITY, THROUGHPUT) else "ms",
        value=asked.median,
        low=asked.median / wide,
        high=asked.median * wide,
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
