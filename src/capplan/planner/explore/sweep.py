"""`sweep`: many layouts at many rates, one row a point.

One layout with all its rates is one task of an experiment: what the rates have in common is computed once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property, lru_cache
from importlib.metadata import version
from typing import Any, Literal

from capplan.calibration.fit.fitted_file import Fitted
from capplan.models.code_digest import code_digest
from capplan.models.errors import InputError
from capplan.models.language.scenario import changed
from capplan.models.results import plain
from capplan.planner.explore.ranges import MOST_POINTS
from capplan.planner.explore.sweep_analytic import analytic_rows
from capplan.planner.explore.sweep_compiled import simulated_rows
from capplan.planner.explore.sweep_table import Row, empty_row
from capplan.planner.simulate.precision_target import Wish, read_wish
from capplan.simulator.experiments.experiment import Configuration, Experiment
from capplan.systems.openprovider.network import REPORTED
from capplan.systems.openprovider.scenario import OpenproviderScenario

RatesAs = Literal["given", "load", "default"]
SweepEngine = Literal["analytic", "compiled"]
ENGINES: tuple[SweepEngine, ...] = ("analytic", "compiled")
DEFAULT_WISH = read_wish("p99<2%", (), tuple(REPORTED))
DEFAULT_DRAWS = 48  # of the ensemble's 512: medians within 1 % (times of encrypted links 4 %), ends within 5 %
# Rates of one task: more are several tasks, so that one layout keeps several processors busy, and little is lost.
MOST_RATES: dict[SweepEngine, int] = {"analytic": 200, "compiled": 1}


@dataclass(frozen=True)
class Rates:
    """At which rates layouts are looked at.

    Attributes
    ----------
    kind
        What `values` are: rates that were `given`, shares of each layout's predicted capacity as a `load`, or the
        `default` share.
    values
        Peak rates over all data centres, per second, or shares.
    """

    kind: RatesAs
    values: tuple[float, ...]


@dataclass(frozen=True)
class Task:
    """One layout and its rates.

    Attributes
    ----------
    scenario, rates
        What is asked about; the scenario's own rate is not looked at.
    fitted
        The calibration to use; None is the system's own.
    draws
        How many draws of the ensemble stand for all.
    engine, seed
        What answers.
    wish
        How precise simulated latencies shall be; not looked at by the analytic engine.
    """

    scenario: OpenproviderScenario
    rates: Rates
    fitted: Fitted | None
    draws: int
    engine: SweepEngine
    seed: int
    wish: Wish = DEFAULT_WISH

    @cached_property
    def key(self) -> str:
        """A digest of all that its rows depend on."""
        said: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        said |= {name: asdict(said[name]) for name in ("scenario", "rates", "wish")}
        said["fitted"] = _digest(self.fitted or load_fitted(self.scenario.system))
        said["code"] = code_digest(suffixes=(".py", ".c", ".h", ".csv", ".toml", ".json"))
        return hashlib.sha256(json.dumps(plain(said), sort_keys=True).encode()).hexdigest()[:32]


@lru_cache(maxsize=4)
def _digest(fitted: Fitted) -> str:
    """Return a digest of a calibration, the system's own too: it may be fitted anew between two calls."""
    return hashlib.sha256(json.dumps(plain(asdict(fitted)), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Layout:
    """One combination of the swept options.

    Attributes
    ----------
    fields
        All fields of a scenario, as they were asked for.
    scenario
        The scenario that they make; None when they break a rule.
    refused
        The rule, in one sentence.
    """

    fields: Mapping[str, Any]
    scenario: OpenproviderScenario | None
    refused: str | None = None


@dataclass(frozen=True)
class Sweep:
    """What is swept.

    Attributes
    ----------
    layouts
        The combinations, in the order of the rows.
    rates
        At which rates each is looked at.
    fitted, draws, engine, seed, wish
        As in `Task`.
    """

    layouts: tuple[Layout, ...]
    rates: Rates
    fitted: Fitted | None = None
    draws: int = DEFAULT_DRAWS
    engine: SweepEngine = "analytic"
    seed: int = 1
    wish: Wish = DEFAULT_WISH

    def __post_init__(self) -> None:
        if self.points > MOST_POINTS:
            raise InputError(
                f"{len(self.layouts):,} layouts at {len(self.rates.values):,} rates are {self.points:,} points: a "
                f"sweep has at most {MOST_POINTS:,}, take larger steps"
            )

    @property
    def points(self) -> int:
        """How many rows there are."""
        return len(self.layouts) * len(self.rates.values)

    def cases(self) -> list[Configuration[Task]]:
        """Return what there is to compute, in the order of the rows."""
        return [Configuration(task.key, task) for layout in self.layouts for task in self._tasks(layout)]

    def _tasks(self, layout: Layout) -> Iterator[Task]:
        if layout.scenario is None:
            return
        values, most = self.rates.values, MOST_RATES[self.engine]
        for start in range(0, len(values), most):
            some = Rates(self.rates.kind, values[start : start + most])
            yield Task(layout.scenario, some, self.fitted, self.draws, self.engine, self.seed, self.wish)

    def rows(self, found: Mapping[str, Sequence[Row]]) -> list[Row]:
        """Return the rows of what has been found so far, by the keys of the cases; refused layouts included."""
        rows: list[Row] = []
        for layout in self.layouts:
            if layout.refused is not None:
                rows += self._refused(layout)
            for task in self._tasks(layout):
                rows += found.get(task.key, ())
        return rows

    def _refused(self, layout: Layout) -> Iterator[Row]:
        for value in self.rates.values:
            yield refused_row(layout.fields, layout.refused or "", self, value)


def layouts(base: OpenproviderScenario, combinations: Sequence[Mapping[str, Any]]) -> tuple[Layout, ...]:
    """Return a layout for each combination of fields that are changed in `base`; those that break a rule say which."""
    own = {name: value for name, value in vars(base).items() if name in base.__dataclass_fields__}
    found = []
    for combination in combinations:
        every = {**own, **combination, "tps": None}
        try:
            found.append(Layout(every, changed(base, **{**combination, "tps": None})))
        except InputError as error:
            found.append(Layout(every, None, str(error).removeprefix(f"{type(base).__name__}: ")))
    return tuple(found)


def refused_row(fields: Mapping[str, Any], why: str, asked: Sweep | Task, value: float) -> Row:
    """Return the row of a point that has no answer, with the reason."""
    rates = asked.rates
    return {
        **empty_row(fields),
        "offered_tps": value if rates.kind == "given" else None,
        "offered_source": rates.kind,
        "load": None if rates.kind == "given" else value,
        "engine": asked.engine,
        "seed": asked.seed,
        "version": version("capplan"),
        "refused": why,
    }


def rows_of_task(task: Task, replication: int) -> list[Row]:
    """Compute the rows of a task; what an experiment runs."""
    del replication  # there is one
    scenario, rates = task.scenario, task.rates
    try:
        rows = list(analytic_rows(scenario, (rates.kind, rates.values), task.fitted, task.draws, task.seed))
        if task.engine == "analytic":
            return rows
        return list(simulated_rows(rows, scenario, task.fitted, task.wish, task.seed))
    except InputError as error:
        return [refused_row(vars(scenario), str(error), task, value) for value in rates.values]


def wanted(task: Task, found: Sequence[Sequence[Row]]) -> int:
    """Return how often a task is computed: once."""
    del task, found
    return 1


def experiment() -> Experiment[Task]:
    """Return the sweep as an experiment over tasks."""
    return Experiment(rows_of_task, wanted)
