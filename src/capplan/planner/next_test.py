"""`next-test`: ranks load tests by how much an hour of testing would reveal about a figure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr, ndtri

from capplan.calibration.tables.fit_table import TableSystem, unloaded, with_unknown_layouts
from capplan.calibration.tables.rows import NODE_CPU, QUANTITIES, Load, TableRow, rows_of
from capplan.calibration.tables.solved_rows import solved_rows
from capplan.layout.fitted_file import Fitted
from capplan.layout.system import Case
from capplan.layout.uncertainty import Uncertainty
from capplan.models.errors import InputError, one_of
from capplan.models.language.scenario import Scenario, changed, fields_of, options_of
from capplan.models.language.units import FloatArray
from capplan.models.objective import Comparison
from capplan.models.verb_answer import VerbAnswer
from capplan.models.verdict import CONFIDENCE
from capplan.planner.ranges import parse_values, value_type

CAPACITY, THROUGHPUT = "capacity", "throughput"
REPEAT = {CAPACITY: 0.05, THROUGHPUT: 0.05, "mean": 0.05, "p50": 0.05, "p90": 0.075, "p95": 0.075, "p99": 0.1}
"""Scatter of a repeat, as a standard deviation of the logarithm, where no repeat was measured: guesses."""
STATISTICS = ("mean", "p50", "p90", "p95", "p99")
_COLUMNS = {THROUGHPUT: "throughput_tps", **{name: f"latency_{name}_ms" for name in STATISTICS}}
_NORMAL = 1.6449  # standard deviations from the median to an end of a 90 % band


@dataclass(frozen=True)
class Measured:
    """Figures of one layout at one load.

    Attributes
    ----------
    draws : mapping of arrays (draws,)
        Figures by name (`capacity`, `throughput`, `p99` or `read.p99`): per second, or milliseconds.
    scatter : mapping of float
        Standard deviation of the logarithm of a repeat, with the model error, by name.
    """

    draws: Mapping[str, FloatArray]
    scatter: Mapping[str, float]

    def figure(self, name: str) -> tuple[FloatArray, float]:
        """Return the draws of a figure and its scatter.

        Raises
        ------
        InputError
            If there is no such figure, or it is unbounded because the load is beyond the capacity.
        """
        one_of(self.draws, name, f"figure {name!r} is not measured by a test of this layout")
        found = self.draws[name]
        if not np.all(np.isfinite(found)):
            raise InputError(f"{name} is unbounded: the load is beyond the capacity. Ask for capacity, or a lower load")
        return found, self.scatter[name]


def measured(case: Case[Any], question: Scenario | None = None) -> Measured:
    """Return a layout's figures at its load: clients, offered rate, or else 80 % of the capacity.

    Parameters
    ----------
    case : Case
        The layout with its calibration.
    question : Scenario, optional
        The layout in question, whose chance has a part in common with this one's; by default the same.
    """
    if isinstance(case.system, TableSystem):
        return _of_table(case.system, case.fitted, case.scenario, question or case.scenario)
    return _of_case(case)


def _of_rate(test: Measured, fields: Mapping[str, Any]) -> Measured:
    """Return a test's figures, without the capacity if the test is of a rate that most draws carry."""
    rate = fields.get("tps")
    if rate is None or CAPACITY not in test.draws or float(np.max(rate)) >= np.median(test.draws[CAPACITY]):
        return test
    return replace(test, draws={name: each for name, each in test.draws.items() if name != CAPACITY})


def _of_table(system: TableSystem[Any], fitted: Fitted, scenario: Scenario, question: Scenario) -> Measured:
    clients = getattr(scenario, "clients", None)
    rate = scenario.offered_per_s()
    layout = unloaded(scenario)
    values = with_unknown_layouts(system, fitted, [unloaded(question), layout], "own")
    row = TableRow("", None, layout, Load("open", 0, 1.0), {})
    if clients is None:
        (alone,) = solved_rows(system, [row], values, [[]], service=True)
        offered = 0.8 * float(np.median(alone.capacity_per_s)) if rate is None else float(np.max(rate))
        load = Load("open", 0, offered)
    else:
        load = Load("closed", clients)
    classes = system.classes(scenario)
    asked = [None, *(classes if len(classes) > 1 else ())]
    rows = [TableRow("", name, layout, load, {}) for name in asked]
    columns = [name for name in QUANTITIES if load.kind == "closed" or name != QUANTITIES[0]]
    known = {} if fitted.table is None else fitted.table.scatter
    metered = [NODE_CPU] if NODE_CPU in known else []
    wanted = [[*columns, *metered], *([columns] * (len(rows) - 1))]
    solved = solved_rows(system, rows, values, wanted, service=clients is None)
    draws: dict[str, FloatArray] = {} if clients is not None else {CAPACITY: solved[0].capacity_per_s}
    if metered:
        draws[NODE_CPU] = solved[0].figures[NODE_CPU]
    for name, each in zip(asked, solved, strict=True):
        for short, column in _COLUMNS.items():
            if column in each.figures:
                draws[f"{name}.{short}" if name else short] = each.figures[column]
    if len(classes) == 1:
        draws.update({f"{classes[0]}.{name}": draws[name] for name in STATISTICS if name in draws})
    scatter = {name: known.get(_COLUMNS.get(_statistic(name), QUANTITIES[0]), 0.05) for name in draws}
    if metered:
        scatter[NODE_CPU] = known[NODE_CPU]
    return Measured({name: np.broadcast_to(each, (len(fitted.draws),)) for name, each in draws.items()}, scatter)


def _of_case(case: Case[Any]) -> Measured:
    if case.system.ratios_only:
        raise InputError(f"{case.system.name} is documented as ratios only: no load test of it measures a rate")
    capacity = case.solution.capacity
    given = case.given_per_s
    at = case.at(0.8 * float(np.median(capacity)) if given is None else given)
    figures = at.solution.at(float(at.offered_per_s or 0.0))
    names = case.system.classes(case.scenario)
    draws = {f"{name}.{each}": 1e3 * figures.latency_s(name, each) for name in names for each in STATISTICS}
    draws = {CAPACITY: capacity, **draws}
    return Measured(draws, {name: _scatter(at.uncertainty, name) for name in draws})


def _scatter(errors: Uncertainty, name: str) -> float:
    """Return the scatter of a figure's logarithm in a repeat: of the repeat itself, and of the model error."""
    own = errors.rate if name == CAPACITY else errors.by_class.get(name.rpartition(".")[0], errors.time)
    model = own.half_width / _NORMAL if math.isfinite(own.half_width) else 0.0
    return math.hypot(REPEAT.get(_statistic(name), 0.1), model)


def _statistic(name: str) -> str:
    return name.rpartition(".")[2]


@dataclass(frozen=True)
class Normal:
    """A normal distribution of the logarithm of a figure."""

    mean: float
    sd: float


def variance_lost(asked: FloatArray, measured: FloatArray, scatter: FloatArray) -> float:
    """Return how much a test is expected to reduce the variance of the figure in question.

    Parameters
    ----------
    asked : array (draws,)
        Logarithms of the asked figure.
    measured : array (figures, draws)
        Logarithms of what the test would measure.
    scatter : array (figures,)
        Standard deviation of a repeat of each of these logarithms.

    Returns
    -------
    float
        Between 0 and the variance of the asked figure.
    """
    around = measured - measured.mean(axis=-1, keepdims=True)
    own = asked - asked.mean()
    count = len(asked)
    covariance = around @ around.T / count + np.diag(scatter**2)
    shared = around @ own / count
    lost = float(shared @ np.linalg.pinv(covariance, hermitian=True) @ shared)  # figures may be redundant
    return min(max(lost, 0.0), float(own @ own / count))


def factor(sd: float, scatter: float, level: float = 0.9) -> float:
    """Return the ratio of an end of a repeat's central band to its median: `exp(z sd)`."""
    return math.exp(float(ndtri((1 + level) / 2)) * math.hypot(sd, scatter))


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
    margin = float(ndtri(confidence))
    yes = now.mean - limit >= margin * math.hypot(now.sd, scatter)
    after = math.hypot(math.sqrt(max(now.sd**2 - lost, 0.0)), scatter)
    if lost <= 0:
        return 0.0
    likely_yes = float(ndtr((now.mean - limit - margin * after) / math.sqrt(lost)))
    return 1 - likely_yes if yes else likely_yes


_LOADS = ("clients", "tps", "slo")
_HELPS = 0.01  # a test helps from this narrowing, or from this probability of a different decision
_MS = 1e3


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
class NextTest(VerbAnswer):
    """Load tests ranked by how much they would reveal, the most useful first.

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
            test = _of_rate(measured(_without_objectives(its), case.scenario), fields)
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
    """Return the name of the figure in question, and the objective about it."""
    simple = [
        each
        for objective in case.objectives
        for each in objective.comparisons()
        if each.relation != "in" and (each.metric.name == CAPACITY or each.metric.kind == "duration")
    ]
    clients = getattr(case.scenario, "clients", None) if isinstance(case.system, TableSystem) else None
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

    logs: FloatArray
    scatter: float
    objective: Comparison | None

    @property
    def now(self) -> Normal:
        return Normal(float(np.median(self.logs)), float(np.std(self.logs)))  # as the band is about the median

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
    # A figure that must be small is a negative logarithm that must be large.
    sign = -1.0 if objective.relation.startswith("<") else 1.0
    return chance_of_change(Normal(sign * now.mean, now.sd), sign * _limit(objective), lost, scatter, CONFIDENCE)


def _limit(objective: Comparison) -> float:
    return math.log(objective.bounds[0] * (_MS if objective.metric.kind == "duration" else 1.0))


def _figure(name: str, asked: _Asked) -> AskedFigure:
    wide, objective = factor(asked.now.sd, asked.scatter), asked.objective
    chance = None
    if objective is not None:
        distance = (asked.now.mean - _limit(objective)) / max(math.hypot(asked.now.sd, asked.scatter), 1e-12)
        chance = float(ndtr(-distance if objective.relation.startswith("<") else distance))
    units = {CAPACITY: "1/s", THROUGHPUT: "1/s", NODE_CPU: "%"}
    return AskedFigure(
        name=name,
        unit=units.get(name.rpartition(".")[2], "ms"),
        value=asked.median,
        low=asked.median / wide,
        high=asked.median * wide,
        objective=None if objective is None else objective.text,
        chance_met=chance,
    )


def _known_layouts(case: Case[Any]) -> Iterable[Any]:
    if isinstance(case.system, TableSystem):
        return [_layout(row.layout) for row in case.system.read(rows_of(case.fitted))]
    return [_layout(test.scenario) for test in case.system.observations.load_tests()]


def _layout(scenario: Scenario) -> tuple[Any, ...]:
    return tuple(getattr(scenario, name) for name in fields_of(type(scenario)) if name not in _LOADS)


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
