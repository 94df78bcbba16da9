"""`sweep`: predict a grid of layouts at many rates, one row per point.

A layout with its rates is one task of an experiment: what the rates have in common is computed once.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, lru_cache
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from capplan.calibration.fit.fitted_file import DRAWS, Fitted
from capplan.calibration.system import Case, System
from capplan.models.code_digest import code_digest
from capplan.models.errors import InputError
from capplan.models.language.scenario import Scenario, changed, options_of
from capplan.models.results import plain
from capplan.planner.explore.ranges import MAX_POINTS
from capplan.planner.explore.sweep_analytic import AnalyticPoints
from capplan.planner.explore.sweep_closed import CLIENTS, closed_points
from capplan.planner.explore.sweep_compiled import simulated_points
from capplan.planner.explore.sweep_table import SweepPoint, columns_of, layout_point, rate_fields
from capplan.planner.predict.capacity import DEFAULT_SHARE, rate_at
from capplan.planner.predict.predict import Question, capacity_limit
from capplan.planner.simulate.precision_target import PrecisionTarget, read_precision_target
from capplan.simulator.experiments.experiment import Configuration, Experiment
from capplan.systems.registry import resolve, system

SweepEngine = Literal["analytic", "compiled"]
ENGINES: tuple[SweepEngine, ...] = ("analytic", "compiled")
DEFAULT_PRECISION = "p99<2%"
DEFAULT_DRAWS = DRAWS
"""All of them, as in `predict`.

With 64, which is faster, medians of documented systems are within 1 % (percentiles with pauses 2 %, times of encrypted
links 4 %) and ends of bands within 5 %. Draws of a system that is fitted to a table differ more: then capacities are
within 10 %, means within 9 % and percentiles within 40 %.
"""
# More rates of a layout are several tasks: one layout keeps several processors busy, and an interruption costs little.
MAX_RATES: dict[SweepEngine, int] = {"analytic": 200, "compiled": 1}


@dataclass(frozen=True)
class OfferedRates:
    """The rates at which every layout is predicted.

    Attributes
    ----------
    source : str
        What `values` are: rates that were `given`, shares of each layout's capacity as a `load`, or the `default`
        share.
    values : tuple of float
        Rates as `field` has them, or shares.
    field : str
        The field of the scenario that takes a given rate.
    """

    source: Literal["given", "load", "default"]
    values: tuple[float, ...]
    field: str = "tps"


DEFAULT_RATES = OfferedRates("default", (DEFAULT_SHARE,))


@dataclass(frozen=True)
class SweepTask:
    """One layout and its rates.

    Attributes
    ----------
    scenario : Scenario
        The layout and the objectives that its capacity must meet, without a rate.
    rates : OfferedRates
        The rates.
    fitted : Fitted or None
        The calibration; None: the system's own.
    draws : int
        How many draws of the ensemble the analytic solver solves, each for those near it.
    engine, seed
        What answers.
    precision : PrecisionTarget or None
        How precise simulated latencies must be; the analytic engine ignores it.
    """

    scenario: Scenario
    rates: OfferedRates
    fitted: Fitted | None
    draws: int
    engine: SweepEngine
    seed: int
    precision: PrecisionTarget | None = None

    @cached_property
    def key(self) -> str:
        """A digest of everything that its points depend on."""
        parts: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        parts["scenario"] = asdict(self.scenario)  # type: ignore[call-overload]  # scenarios are pydantic dataclasses
        parts["fitted"] = _digest(self.fitted or system(self.scenario.system).fitted())
        parts["code"] = code_digest(suffixes=(".py", ".c", ".h", ".csv", ".toml", ".json"))
        return hashlib.sha256(json.dumps(plain(parts), sort_keys=True).encode()).hexdigest()[:32]


@lru_cache(maxsize=4)
def _digest(fitted: Fitted) -> str:
    return hashlib.sha256(json.dumps(plain(asdict(fitted)), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class SweepLayout:
    """One combination of the swept fields.

    Attributes
    ----------
    fields : mapping
        All fields of the scenario, as they were asked for.
    scenario : Scenario or None
        The scenario that they make; None if they break a rule.
    refused : str or None
        That rule, in one sentence.
    """

    fields: Mapping[str, Any]
    scenario: Scenario | None
    refused: str | None = None


@dataclass(frozen=True)
class Sweep:
    """What is swept.

    Attributes
    ----------
    system : str
        Name of the system.
    layouts : tuple of SweepLayout
        The layouts, in the order of the rows.
    rates : OfferedRates
        The rates at which each is predicted.
    fitted, draws, engine, seed, precision
        As in `SweepTask`.

    Raises
    ------
    InputError
        When there are too many points, or the system has no rates.
    """

    system: str
    layouts: tuple[SweepLayout, ...]
    rates: OfferedRates
    fitted: Fitted | None = None
    draws: int = DEFAULT_DRAWS
    engine: SweepEngine = "analytic"
    seed: int = 1
    precision: PrecisionTarget | None = None

    def __post_init__(self) -> None:
        if system(self.system).ratios_only:
            raise InputError(
                f"{self.system} cannot be swept: its documents have ratios of throughput only, and no rates; ask "
                f"`capplan predict {self.system}` for each layout"
            )
        if self.rates.field == CLIENTS and self.engine != "analytic":
            raise InputError(
                "--clients are closed clients, which a sweep solves: leave --engine out, or run `capplan simulate`"
            )
        if self.points > MAX_POINTS:
            raise InputError(
                f"{len(self.layouts):,} layouts at {len(self.rates.values):,} rates are {self.points:,} points: a "
                f"sweep has at most {MAX_POINTS:,}, take larger steps"
            )

    @property
    def points(self) -> int:
        """How many rows there are."""
        return len(self.layouts) * len(self.rates.values)

    @cached_property
    def columns(self) -> dict[str, str]:
        """Columns of the table, with their types."""
        return columns_of(system(self.system))

    def configurations(self) -> list[Configuration[SweepTask]]:
        """Return what there is to compute, in the order of the rows."""
        return [Configuration(task.key, task) for layout in self.layouts for task in self._tasks(layout)]

    def _tasks(self, layout: SweepLayout) -> Iterator[SweepTask]:
        if layout.scenario is None:
            return
        values, most = self.rates.values, MAX_RATES[self.engine]
        for start in range(0, len(values), most):
            some = replace(self.rates, values=values[start : start + most])
            yield SweepTask(layout.scenario, some, self.fitted, self.draws, self.engine, self.seed, self.precision)

    def table(self, found: Mapping[str, Sequence[SweepPoint]]) -> list[SweepPoint]:
        """Return the rows of what has been computed so far, by the keys of the tasks; refused layouts included."""
        points: list[SweepPoint] = []
        for layout in self.layouts:
            if layout.refused is not None:
                points += refused_points(self.system, layout.fields, self, layout.refused)
            for task in self._tasks(layout):
                points += found.get(task.key, ())
        return points


def layouts_of(base: Scenario, axes: Mapping[str, Sequence[Any]]) -> tuple[SweepLayout, ...]:
    """Return a layout for each combination of values; one that breaks a rule has the rule.

    Parameters
    ----------
    base : Scenario
        What is not swept.
    axes : mapping
        Values by field; a field takes the place of those that its option replaces.

    Raises
    ------
    InputError
        When there are too many, or an objective cannot be read.
    """
    count = math.prod(len(values) for values in axes.values())
    if count > MAX_POINTS:
        raise InputError(f"{count:,} layouts are too many: a sweep has at most {MAX_POINTS:,} points, leave some out")
    options = options_of(type(base))
    own = {name: value for name, value in vars(base).items() if name in options}
    emptied = dict.fromkeys((*rate_fields(type(base)), *(each for name in axes for each in options[name].replaces)))
    found = []
    for values in itertools.product(*axes.values()):
        swept = {**emptied, **dict(zip(axes, values, strict=True))}
        try:
            found.append(SweepLayout({**own, **swept}, changed(base, **swept)))
        except InputError as error:
            found.append(SweepLayout({**own, **swept}, None, str(error).removeprefix(f"{type(base).__name__}: ")))
    return tuple(found)


def refused_points(name: str, fields: Mapping[str, Any], asked: Sweep | SweepTask, why: str) -> Iterator[SweepPoint]:
    """Yield the points of a layout that has no answer, with the reason."""
    rates = asked.rates
    for value in rates.values:
        yield {
            **layout_point(system(name), fields),
            "offered_tps": value if rates.source == "given" and rates.field == "tps" else None,
            "offered_source": rates.source,
            **({CLIENTS: int(value)} if rates.field == CLIENTS else {}),
            "load": None if rates.source == "given" else value,
            "engine": asked.engine,
            "seed": asked.seed,
            "version": version("capplan"),
            "refused": why,
        }


def points_of(task: SweepTask, replication: int) -> list[SweepPoint]:
    """Compute the points of a task; what an experiment runs."""
    del replication  # there is one
    try:
        if task.rates.field == CLIENTS:
            found = closed_points(task.scenario, task.rates.values, task.fitted, task.seed)
            return [{**point, "offered_source": task.rates.source} for point in found]
        case = resolve(task.scenario, task.fitted, task.seed)
        solved = _solved(case, task.draws, task.engine)
        case = case if task.draws < len(case.fitted.draws) else solved.case
        highest = solved.capacity.value or float(np.median(solved.case.solution.capacity))  # where none meets the slo
        offered = [_offered(task, case, value, highest) for value in task.rates.values]
        points = [{**point, "offered_source": task.rates.source} for point in solved.at(offered)]
        if task.engine == "analytic":
            return points
        target = task.precision or precision_target(DEFAULT_PRECISION, case.system)
        return list(simulated_points(points, case, target))
    except InputError as error:
        return list(refused_points(task.scenario.system, task.scenario.given(), task, str(error)))


@lru_cache(maxsize=2)  # rates of a layout come one after another
def _solved(case: Case[Any], draws: int, engine: SweepEngine) -> AnalyticPoints:
    """Return a solved layout with its capacity, as `predict` finds it unless there are fewer draws."""
    if draws < len(case.fitted.draws):
        return AnalyticPoints(replace(case, draws=draws))
    return AnalyticPoints(case, capacity_limit(case, Question(engine)).capacity.peak_tps)


def precision_target(text: str, its: System[Any]) -> PrecisionTarget:
    """Read how precise simulated latencies of a system must be, such as `p99<2%`."""
    return read_precision_target(text, tuple(its.reported), tuple(its.reported))


def _offered(task: SweepTask, case: Case[Any], value: float, capacity: float) -> float:
    """Return a rate of a task in requests per second over the whole layout."""
    if task.rates.source == "given":
        return case.system.offered_per_s(changed(task.scenario, **{task.rates.field: value}), case.values) or 0.0
    rate = rate_at(value, capacity)
    return min(rate, max(math.floor(capacity), 1.0)) if value <= 1 else rate  # rounding must not exceed all of it


def wanted(task: SweepTask, found: Sequence[Sequence[SweepPoint]]) -> int:
    """Return how often a task is computed: once."""
    del task, found
    return 1


def experiment() -> Experiment[SweepTask]:
    """Return the sweep as an experiment over tasks."""
    return Experiment(points_of, wanted)


def check_objectives(base: Scenario, fitted: Fitted | None = None) -> None:
    """Read the objectives once, before all layouts.

    Raises
    ------
    InputError
        When one cannot be read or names an unknown request class.
    """
    _ = replace(resolve(base, fitted), draws=1).objectives
