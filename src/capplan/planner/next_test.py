"""`next-test`: ranks load tests and measurements by how much an hour of them would reveal about a figure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import special

from capplan.answers.condition import Unmeasured
from capplan.answers.objective import Comparison
from capplan.answers.verb_answer import VerbAnswer
from capplan.answers.verdict import CONFIDENCE
from capplan.errors import InputError, one_of
from capplan.layout.case import Case
from capplan.layout.components import MeasuredRange
from capplan.layout.table_rows import NODE_CPU, rows_of
from capplan.layout.table_system import table_of
from capplan.models.language.scenario import Scenario, changed, fields_of, options_of
from capplan.models.language.units import FloatArray
from capplan.planner.conditions import at
from capplan.planner.measured import CAPACITY, THROUGHPUT, Measured, measured, of_cpu, of_pauses, variance_lost
from capplan.planner.ranges import parse_values, value_type


def _of_rate(test: Measured, fields: Mapping[str, Any]) -> Measured:
    """Return a test's figures, without the capacity if the test is of a rate that most draws carry."""
    rate = fields.get("tps")
    if rate is None or CAPACITY not in test.draws or float(np.max(rate)) >= np.median(test.draws[CAPACITY]):
        return test
    return replace(test, draws={name: each for name, each in test.draws.items() if name != CAPACITY})


@dataclass(frozen=True)
class Normal:
    """A normal distribution of the logarithm of a figure."""

    mean: float
    sd: float


def factor(sd: float, scatter: float, level: float = 0.9) -> float:
    """Return the ratio of an end of a repeat's central band to its median: `exp(z sd)`."""
    return math.exp(float(special.ndtri((1 + level) / 2)) * math.hypot(sd, scatter))


def chance_of_change(now: Normal, limit: float, lost: float, scatter: float, confidence: float) -> float:
    """Return the probability that a test changes the answer to whether a figure is at least a limit.

    The answer is yes if a repeat exceeds the limit with the wanted confidence.

    Parameters
    ----------
    now : Normal
        The logarithm of the figure, before the test.
    limit : float
        Logarithm of the limit.
    lost : float
        Variance that the test removes.
    scatter : float
        Standard deviation of a repeat of the logarithm.
    confidence : float
        The wanted confidence, such as 0.95.
    """
    margin = float(special.ndtri(confidence))
    yes = now.mean - limit >= margin * math.hypot(now.sd, scatter)
    after = math.hypot(math.sqrt(max(now.sd**2 - lost, 0.0)), scatter)
    if lost <= 0:
        return 0.0
    likely_yes = float(special.ndtr((now.mean - limit - margin * after) / math.sqrt(lost)))
    return 1 - likely_yes if yes else likely_yes


_LOADS = ("clients", "tps", "slo")
_STATED = ("gc", "data_factor")  # what was measured on a layout, and sets none up
_HELPS = 0.01  # a test helps from this narrowing, or from this probability of a different decision
_MS = 1e3
_HOUR_S = 3600


@dataclass(frozen=True)
class AskedFigure:
    """The figure in question, before any further test.

    Attributes
    ----------
    name
        `capacity`, `throughput`, or class and statistic of a latency such as `read.p99`.
    unit
        `1/s`, `ms` or `%`.
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
    """One load test that could be run, or one measurement on a running node.

    Attributes
    ----------
    changes
        Fields in which its scenario differs from the asked one; none for a measurement.
    words
        Its layout and load, or what is measured, in words.
    new_layout
        Whether its layout must be set up, as no known load test had it.
    states
        Option or column that states the measured value, such as `--gc`; null for a load test.
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
    states: str | None
    hours: float
    low_after: float
    high_after: float
    narrowing: float
    narrowing_per_hour: float
    chance_of_change: float | None
    chance_per_hour: float | None


@dataclass(frozen=True)
class NextTest(VerbAnswer):
    """Load tests and measurements ranked by how much they would reveal, the most useful first.

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
        The candidates, and what can be measured on a running node, best first.
    refused
        Candidates that cannot be tested, with the reason.
    """

    SCHEMA = "capplan.next-test/1"

    system: str
    layout: str
    rank: Literal["band", "decision"]
    answer: bool
    figure: AskedFigure
    tests: tuple[CandidateTest, ...]
    refused: tuple[str, ...]


@dataclass(frozen=True)
class Hours:
    """The cost of a load test, in hours.

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
    """Rank load tests by how much they would reveal about a figure of a layout.

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
        If there is no such figure, nothing can be tested or measured, or a decision is to rank without an objective.
    """
    cost = hours or Hours()
    name, objective = _asked(case, figure)
    if rank == "decision" and objective is None:
        raise InputError(f"no objective is about {name}: give one by --slo, or rank by band")
    now = measured(_without_objectives(case))
    draws, scatter = now.figure(name)
    asked = _Asked(name, np.log(draws), scatter, objective)
    known = set(_known_layouts(case))
    found, refused = [], []
    for fields in candidates:
        try:
            its = replace(case, scenario=_with(case.scenario, fields), offered_per_s=None)
            test = _of_rate(measured(_without_objectives(its), case.scenario), fields)
        except InputError as error:
            refused.append(f"{_in_words(fields)}: {error}")
            continue
        new = _layout(its.scenario) not in known
        candidate = _Candidate(dict(fields), _in_words(fields), new, None, cost.run + (cost.setup if new else 0.0))
        found.append(_ranked(candidate, asked, _lost(test, asked)))
    found += _measurements(case, now, asked, cost)
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
    """Return the name of the figure in question, and the objective about it."""
    simple = [
        each
        for objective in case.objectives
        for each in objective.comparisons()
        if each.relation != "in" and (each.metric.name == CAPACITY or each.metric.kind == "duration")
    ]
    clients = case.closed_clients
    usual = simple[0].metric.name if simple else (CAPACITY if clients is None else THROUGHPUT)
    name = figure or usual
    return name, next((each for each in simple if each.metric.name == name), None)


def _with(scenario: Scenario, fields: Mapping[str, Any]) -> Scenario:
    """Return a scenario with the fields of a candidate; fields that they replace, such as `tps`, are cleared."""
    options = options_of(type(scenario))
    replaced = {other for field in fields for other in options[field].replaces}
    return changed(scenario, **{**dict.fromkeys(replaced), **fields})


def _without_objectives(case: Case[Any]) -> Case[Any]:
    return replace(case, scenario=changed(case.scenario, slo=()))


@dataclass(frozen=True)
class _Asked:
    """The figure in question as the ranking needs it: its logarithms by draw, and the objective about it."""

    name: str
    logs: FloatArray
    scatter: float
    objective: Comparison | None

    @property
    def now(self) -> Normal:
        return Normal(float(np.median(self.logs)), float(np.std(self.logs)))  # as the band is about the median

    @property
    def median(self) -> float:
        return float(np.exp(np.median(self.logs)))

    @property
    def chance_met(self) -> float | None:
        """The probability that a repeat meets the objective; None without one."""
        if self.objective is None:
            return None
        distance = (self.now.mean - _limit(self.objective)) / max(math.hypot(self.now.sd, self.scatter), 1e-12)
        return float(special.ndtr(-distance if self.objective.relation.startswith("<") else distance))

    @property
    def is_met(self) -> bool:
        return (self.chance_met or 0.0) >= CONFIDENCE


@dataclass(frozen=True)
class _Candidate:
    """The fields of a `CandidateTest` that are known before it is ranked."""

    changes: Mapping[str, Any]
    words: str
    new_layout: bool
    states: str | None
    hours: float


def _measurements(case: Case[Any], now: Measured, asked: _Asked, cost: Hours) -> Iterator[CandidateTest]:
    """Yield what can be measured on a running node about what the figures assume, each in the time of a run."""
    pauses, cpu = of_pauses(case, now.rate_per_s, _HOUR_S * cost.run), of_cpu(now)
    if pauses is not None:
        measurement = _Candidate({}, "GC pauses of a node", False, "--gc", cost.run)
        yield _ranked(measurement, asked, _lost(pauses, asked))
    if cpu is not None:
        measurement = _Candidate({}, "CPU of a node", False, NODE_CPU, cost.run)
        yield _ranked(measurement, asked, _lost(cpu, asked))
    for about in case.system.component(MeasuredRange).unmeasured(case.scenario) if asked.objective is not None else ():
        measurement = _Candidate({}, about.measurement, False, f"--{about.field.replace('_', '-')}", cost.run)
        yield _ranked(measurement, asked, 0.0, _chance_of_value(case, about, asked))


def _chance_of_value(case: Case[Any], about: Unmeasured, asked: _Asked) -> float:
    """Return the probability that what nobody measured has a value that changes the answer.

    Its logarithm is taken as normal, with 90 % between the expected values: their ends and their middle stand for it
    (Gauss and Hermite).
    """
    low, high = about.expected
    shares = ((low, 1 / 6), (math.sqrt(low * high), 2 / 3), (high, 1 / 6))
    return sum(share for value, share in shares if _is_met_at(case, about, value, asked) != asked.is_met)


def _is_met_at(case: Case[Any], about: Unmeasured, value: float, asked: _Asked) -> bool:
    try:
        draws, scatter = measured(_without_objectives(at(case, about, value))).figure(asked.name)
    except InputError:  # the load is beyond the capacity
        return False
    return replace(asked, logs=np.log(draws), scatter=scatter).is_met


def _lost(test: Measured, asked: _Asked) -> float:
    names = [name for name, each in test.draws.items() if np.all(np.isfinite(each)) and np.all(each > 0)]
    logs = np.log(np.stack([test.draws[name] for name in names]))
    return variance_lost(asked.logs, logs, np.array([test.scatter[name] for name in names]))


def _ranked(candidate: _Candidate, asked: _Asked, lost: float, chance: float | None = None) -> CandidateTest:
    """Return a candidate that removes some variance of the asked figure, with the given chance of another answer."""
    sd, scatter = asked.now.sd, asked.scatter
    left = math.sqrt(max(sd**2 - lost, 0.0))
    wide = factor(left, scatter)
    narrowing = 1 - math.hypot(left, scatter) / math.hypot(sd, scatter) if sd > 0 else 0.0
    if chance is None and asked.objective is not None:
        chance = _chance(asked.objective, asked.now, lost, scatter)
    return CandidateTest(
        **vars(candidate),
        low_after=asked.median / wide,
        high_after=asked.median * wide,
        narrowing=narrowing,
        narrowing_per_hour=narrowing / candidate.hours,
        chance_of_change=chance,
        chance_per_hour=None if chance is None else chance / candidate.hours,
    )


def _chance(objective: Comparison, now: Normal, lost: float, scatter: float) -> float:
    # A figure that must be small is a negative logarithm that must be large.
    sign = -1.0 if objective.relation.startswith("<") else 1.0
    return chance_of_change(Normal(sign * now.mean, now.sd), sign * _limit(objective), lost, scatter, CONFIDENCE)


def _limit(objective: Comparison) -> float:
    return math.log(objective.bounds[0] * (_MS if objective.metric.kind == "duration" else 1.0))


def _figure(name: str, asked: _Asked) -> AskedFigure:
    wide, objective = factor(asked.now.sd, asked.scatter), asked.objective
    units = {CAPACITY: "1/s", THROUGHPUT: "1/s", NODE_CPU: "%"}
    return AskedFigure(
        name=name,
        unit=units.get(name.rpartition(".")[2], "ms"),
        value=asked.median,
        low=asked.median / wide,
        high=asked.median * wide,
        objective=None if objective is None else objective.text,
        chance_met=asked.chance_met,
    )


def _known_layouts(case: Case[Any]) -> Iterable[Any]:
    table = table_of(case.system)
    if case.fitted.clusters:
        return ()
    if table is not None:
        return [_layout(row.layout) for row in table.read(rows_of(case.fitted))]
    return [_layout(test.scenario) for test in case.system.observations.load_tests()]


def _layout(scenario: Scenario) -> tuple[Any, ...]:
    names = (name for name in fields_of(type(scenario)) if name not in (*_LOADS, *_STATED))
    return tuple(getattr(scenario, name) for name in names)


def _in_words(fields: Mapping[str, Any]) -> str:
    shown = {name: f"{value:,.12g}" if isinstance(value, float) else value for name, value in fields.items()}
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in shown.items())


MOST = 200  # candidates; each solves a network for every draw


def parse_candidates(texts: Sequence[str], scenario: type[Scenario]) -> tuple[dict[str, Any], ...]:
    """Return candidates, each once: all combinations of the values in each text.

    Parameters
    ----------
    texts : sequence of str
        Each has options of the scenario and their values, such as `rf=3,5 clients=128..512:128`.
    scenario : type
        The kind of scenario.

    Raises
    ------
    InputError
        If an option is unknown or repeated, a value cannot be read, or there are too many combinations.
    """
    found: dict[tuple[tuple[str, Any], ...], None] = {}
    for text in texts:
        values = _values(text, scenario)
        for combination in itertools.product(*values.values()):
            found[tuple(zip(values, combination, strict=True))] = None
            if len(found) > MOST:
                raise InputError(f"there are more than {MOST} candidates: give fewer values")
    return tuple(dict(each) for each in found)


def _values(text: str, scenario: type[Scenario]) -> Mapping[str, tuple[Any, ...]]:
    options = [name for name in options_of(scenario) if name != "slo"]
    found: dict[str, tuple[Any, ...]] = {}
    for part in text.split():
        name, sign, values = part.partition("=")
        field = name.removeprefix("--").replace("-", "_")
        if not sign or not values:
            raise InputError(f"candidates {text!r}: {part!r} has no value; write such as clients=128,512")
        one_of(options, field, f"candidates {text!r}: {name!r} is no option of the layout")
        if field in found:
            raise InputError(f"candidates {text!r}: {name!r} appears twice; list its values with commas")
        try:
            found[field] = parse_values(values, value_type(scenario, field))
        except InputError as error:
            raise InputError(f"candidates {text!r}: {name}: {error}") from None
    if not found:
        raise InputError("the candidates are empty: give options and values, such as 'rf=3,5 clients=128,512'")
    for field in found:
        for other in options_of(scenario)[field].replaces:
            if other in found:
                raise InputError(f"candidates {text!r}: {field} and {other} exclude each other; give one of them")
    return found
