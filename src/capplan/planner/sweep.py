"""`sweep`: predicts a grid of layouts at many rates, one row per point, solved or simulated to a precision."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_type_hints

import numpy as np

from capplan.answers.results import STATISTICS, Band, Latency, plain, rounded
from capplan.answers.verb_answer import VerbAnswer
from capplan.answers.verdict import NORMAL, Verdict
from capplan.code_digest import code_digest
from capplan.errors import InputError
from capplan.files import replace_file
from capplan.layout.case import Case
from capplan.layout.components import Machines, Ratios
from capplan.layout.ensemble import evenly_along
from capplan.layout.fitted_file import DRAWS, Fitted
from capplan.layout.solution import Figures
from capplan.layout.system import System
from capplan.layout.uncertainty import HIGH, LOW, ends
from capplan.models.language.per_dc import is_per_dc, per_dc_text
from capplan.models.language.scenario import Option, Scenario, changed, options_of
from capplan.models.language.units import FloatArray
from capplan.planner.predict.capacity import DEFAULT_SHARE, Relations, capacity_of, rate_at
from capplan.planner.predict.predict import Question, capacity_limit, predict_case
from capplan.planner.predict.simulated_latency import (
    ChosenDraws,
    DrawPhases,
    RateSimulation,
    SimulationSettings,
    enough_requests,
    extended_to_all,
    is_too_slow,
    mean_response_s,
    relations_of,
    settling_s,
)
from capplan.planner.ranges import MAX_POINTS, as_number
from capplan.planner.simulate.simulation import PrecisionTarget, read_precision_target
from capplan.planner.sustained import NONE, Conditions, Judged
from capplan.simulator.experiment import Configuration, Experiment
from capplan.systems.registry import resolve, system

if TYPE_CHECKING:
    import pandas as pd


RateSource = Literal["given", "load", "default"]
SweepPoint = dict[str, Any]
"""A row: a layout at an offered rate, by column."""


@dataclass(frozen=True)
class SweepTable(VerbAnswer):
    """The answer of `sweep`.

    Attributes
    ----------
    points
        A row for each layout at each rate, by column; the columns are those of the system, see `columns_of`.
    """

    SCHEMA = "capplan.sweep/3"

    points: tuple[Mapping[str, str | float | bool | None], ...]


def band_columns(name: str) -> tuple[str, str, str]:
    """Return the columns of a figure with a band: its median, and the 5th and 95th percentile."""
    return name, f"{name}_low", f"{name}_high"


def band_cells(name: str, figures: FloatArray | Sequence[float]) -> SweepPoint:
    """Return the cells of a figure with a band, rounded to significant digits; nan becomes empty."""
    numbers = (None if math.isnan(figure) else rounded(float(figure)) for figure in figures)
    return dict(zip(band_columns(name), numbers, strict=True))


def rate_fields(scenario: type[Scenario]) -> tuple[str, ...]:
    """Return the fields that set the offered load, `tps` first."""
    options = options_of(scenario)
    others = [name for name, option in options.items() if "tps" in option.replaces]
    return tuple(dict.fromkeys(("tps", *options["tps"].replaces, *others)))


def layout_fields(scenario: Scenario) -> dict[str, Any]:
    """Return the fields of a layout that are given, without its rate and its objectives."""
    others = {*rate_fields(type(scenario)), "slo"}
    return {name: value for name, value in scenario.given().items() if name not in others}


def layout_options(scenario: type[Scenario]) -> dict[str, Option]:
    """Return the options of the layout fields, by field."""
    others = {*rate_fields(scenario), "slo"}
    return {name: option for name, option in options_of(scenario).items() if name not in others}


def column_of(field: str, option: Option) -> str:
    """Return the column of a field: its name, with the unit if it has one."""
    return f"{field}_{option.unit}" if option.unit else field


def latency_columns(system: System[Any]) -> tuple[str, ...]:
    """Return the columns of the latencies, without those of their bands."""
    return tuple(f"{name}_{statistic}_ms" for name in system.reported for statistic in STATISTICS)


@lru_cache(maxsize=16)
def columns_of(system: System[Any]) -> dict[str, str]:
    """Return the columns in their order, with their types as pandas has them.

    Other than the name says: `load` is the offered rate over the median capacity, `answer` whether the layout carries
    the rate with the objectives met (`yes`, `uncertain` or `no`), `risk` the probability that it does not, and
    `simulation` how much of the band of latencies the simulation causes, as a share of the figure; empty where
    latencies are not simulated.
    """
    hints = get_type_hints(system.scenario)
    layout = {
        column_of(name, option): "Float64" if option.unit else _dtype(hints[name])
        for name, option in layout_options(system.scenario).items()
    }
    bands = ("bottleneck_utilisation", "throughput_tps", "drop_rate", *latency_columns(system))
    return {
        "system": "string",
        **layout,
        **({"clients": "Int64"} if "clients" in rate_fields(system.scenario) else {}),
        "offered_tps": "Float64",
        "offered_source": "string",
        "load": "Float64",
        **dict.fromkeys(band_columns("capacity_tps"), "Float64"),
        "answer": "string",
        "risk": "Float64",
        "bottleneck": "string",
        **{column: "Float64" for name in bands for column in band_columns(name)},
        "simulation": "Float64",
        "basis": "string",
        "engine": "string",
        "seed": "Int64",
        "version": "string",
        "refused": "string",
    }


def _dtype(hint: Any) -> str:
    kinds = {hint, *get_args(hint)}
    if is_per_dc(hint):
        return "Int64"  # text in a table with unequal data centres, see `to_frame`
    known = {bool: "boolean", int: "Int64", float: "Float64"}
    return next((dtype for kind, dtype in known.items() if kind in kinds), "string")


def layout_point(system: System[Any], fields: Mapping[str, Any]) -> SweepPoint:
    """Return a row with only the layout, from the fields of its scenario."""
    point: SweepPoint = dict.fromkeys(columns_of(system)) | {"system": system.name}
    for name, option in layout_options(system.scenario).items():
        point[column_of(name, option)] = _cell(option, fields.get(name))
    return point


def _cell(option: Option, value: Any) -> Any:
    """Return a field's value for the table: a number in the option's unit, or `6/6/3` for unequal DCs."""
    if option.unit and value is not None:
        return as_number(option, value)
    return per_dc_text(value) if isinstance(value, tuple) else value


def to_frame(points: Iterable[SweepPoint], columns: Mapping[str, str]) -> pd.DataFrame:
    """Return rows as a data frame; a column of counts is text if data centres differ in some row (`6/6/3`)."""
    import pandas as pd  # a table for people needs none

    rows = list(points)
    written = {name for row in rows for name, value in row.items() if isinstance(value, str)}
    dtypes = {name: "string" if dtype == "Int64" and name in written else dtype for name, dtype in columns.items()}
    return pd.DataFrame(rows, columns=list(columns)).astype(dtypes)


def csv_text(points: Iterable[SweepPoint], columns: Mapping[str, str]) -> str:
    """Return rows as CSV with a header; missing and unbounded numbers are empty, verdicts `true` or `false`."""
    frame = to_frame(points, columns)
    frame = frame.mask(frame.isin([math.inf, -math.inf]))
    verdicts = [name for name, dtype in columns.items() if dtype == "boolean"]
    words = {name: frame[name].map({True: "true", False: "false"}) for name in verdicts}
    return str(frame.assign(**words).to_csv(index=False, lineterminator="\n"))


def write_table(points: Sequence[SweepPoint], columns: Mapping[str, str], path: Path) -> None:
    """Write rows to a CSV or Parquet file, by its ending, atomically.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    if path.suffix.lower() == ".csv":
        replace_file(path, csv_text(points, columns))
    else:
        replace_file(path, lambda beside: to_frame(points, columns).to_parquet(beside, index=False))


_NO_DROPS = 1e-9  # share of the requests; less counts as none
_TOGETHER = 10  # rates that are solved together: enough that numpy's own work counts, few enough for the caches


class AnalyticPoints:
    """A solved layout, at any offered rate.

    Parameters
    ----------
    case : Case
        The layout; how many draws it solves decides how long a point takes.
    capacity : Band, optional
        Its capacity, requests per second, where it is simulated; by default as solved.

    Raises
    ------
    InputError
        When an objective cannot be read.
    """

    def __init__(self, case: Case[Any], capacity: Band | None = None) -> None:
        self.case = case
        self.capacity = capacity or capacity_of(case)
        self.shared = {
            **layout_point(case.system, case.scenario.given()),
            **band_cells("capacity_tps", _ends(self.capacity)),
            "bottleneck": case.solution.bottleneck,
            "engine": "analytic",
            "seed": case.seed,
            "version": version("capplan"),
        }

    def at(self, offered: Sequence[float], source: RateSource = "given") -> Iterator[SweepPoint]:
        """Yield a point for each offered peak rate, requests per second."""
        for start in range(0, len(offered), _TOGETHER):
            yield from self._together(offered[start : start + _TOGETHER], source)

    def _together(self, offered: Sequence[float], source: RateSource) -> Iterator[SweepPoint]:
        figures = self.case.solution.at(np.array(offered)[:, None])
        busy, drops = self._busy(figures), figures.drop_rate
        drop_rate = np.quantile(np.where(drops < _NO_DROPS, 0.0, drops), [0.5, LOW, HIGH], axis=-1)
        done = np.quantile(figures.throughput_per_s, [0.5, LOW, HIGH], axis=-1)
        times = self._latencies(offered, figures)
        for place, rate in enumerate(offered):
            yield {
                **self.shared,
                "offered_tps": rate,
                "offered_source": source,
                "load": rounded(rate / self.capacity.value) if self.capacity.value > 0 else None,
                **verdict_cells(self.case, rate, source),
                **band_cells("bottleneck_utilisation", busy[:, place]),
                **band_cells("throughput_tps", done[:, place]),
                **band_cells("drop_rate", drop_rate[:, place]),
                "basis": self.case.at(rate).extrapolation.basis,
                **next(times),
            }

    def _latencies(self, offered: Sequence[float], figures: Figures) -> Iterator[SweepPoint]:
        """Yield the latencies at the rates of the figures."""
        milliseconds = {name: figures.latencies_s(name) * 1e3 for name in figures.asked}
        for place, rate in enumerate(offered):
            uncertainty = self.case.at(rate).uncertainty
            cells: SweepPoint = {}
            for name, draws in milliseconds.items():
                bands = uncertainty.spread_of_times(draws[:, place], name)
                bands[:, 1:] = np.maximum.accumulate(bands[:, 1:], axis=1)  # percentiles in order, as in `predict`
                for number, statistic in enumerate(STATISTICS):
                    cells |= band_cells(f"{name}_{statistic}_ms", bands[:, number])
            yield cells

    def _busy(self, figures: Figures) -> FloatArray:
        """Return the band (3, rates) of the bottleneck's utilisation: a kind of station, or the workers."""
        case, uncertainty = self.case, self.case.uncertainty
        if case.solution.bottleneck in case.solution.resources:
            busy = figures.utilisation(case.solution.bottleneck)
            return np.minimum(ends(busy, uncertainty.repeated_rate(busy)), 1.0)
        units = next(iter(case.system.component(Machines).workers(case.scenario).values()), None)
        if case.solution.bottleneck != "workers" or units is None:
            return np.full((3, len(figures.peak_rate)), np.nan)  # threads of a pool inside: not modelled
        busy = figures.busy_workers() / np.max(units)
        return np.minimum(ends(busy, uncertainty.repeated_number(busy)), 1.0)


def verdict_cells(case: Case[Any], rate: float, source: RateSource, relations: Relations = NONE) -> SweepPoint:
    """Return the verdict's cells at a peak rate; `relations` map analytic to simulated latencies there.

    As in `predict`, objectives alone are judged at a default rate.
    """
    judged = Judged(case, (Conditions(NORMAL),), rate, given=source != "default" or not case.objectives)
    judged.relations[NORMAL] = relations
    return _verdict(judged.verdict())


def _verdict(found: Verdict | None) -> SweepPoint:
    return {} if found is None else {"answer": found.answer, "risk": rounded(found.risk)}


CLIENTS = "clients"


def closed_points(
    scenario: Scenario, clients: Sequence[float], fitted: Fitted | None, seed: int
) -> Iterator[SweepPoint]:
    """Yield a point for each number of closed clients; it has a throughput but no offered rate.

    Parameters
    ----------
    scenario : Scenario
        The layout.
    clients : sequence of float
        Numbers of clients.
    fitted : Fitted or None
        The calibration.
    seed : int
        Seed of every random number.
    """
    for count in clients:
        case = resolve(changed(scenario, tps=None, clients=int(count)), fitted, seed)
        found = predict_case(case, Question(engine="analytic"))
        throughput = found.peak_tps
        if throughput is None:
            raise ValueError("closed clients have a throughput")
        busiest = found.limits[0]
        point: SweepPoint = {
            **layout_point(case.system, case.scenario.given()),
            CLIENTS: int(count),
            **_verdict(found.verdict),
            **band_cells("throughput_tps", _ends(throughput)),
            "bottleneck": busiest.resource,
            **band_cells("bottleneck_utilisation", _ends(found.utilisation[busiest.resource])),
            **band_cells("drop_rate", (0.0, 0.0, 0.0)),
            "basis": throughput.basis,
            "engine": found.engine,
            "seed": found.seed,
            "version": found.version,
        }
        yield point | _cells(found.latency_ms)


def _ends(band: Band) -> tuple[float, float, float]:
    return band.value, band.low, band.high


REQUESTS = 20_000  # measured at each draw
FIRST_DRAWS = 8
FEWEST_MORE = 2  # draws of a further round
GROWTH = 3.0  # times as many draws from round to round, at most: the width itself is an estimate
USUAL_LOAD = 0.8  # of the capacity, at which draws are put in order
MAX_DRAWS = 128  # near saturation no acceptable number is enough


def simulated_points(points: Sequence[SweepPoint], case: Case[Any], target: PrecisionTarget) -> Iterator[SweepPoint]:
    """Yield analytic points of one layout with their latencies simulated.

    Points where `predict` does not simulate keep the solver's: where a queue grows without bound, where full buffers
    push back, and where it takes too long to settle.

    Parameters
    ----------
    points : sequence of SweepPoint
        Analytic points of the layout.
    case : Case
        The layout, with all draws.
    target : PrecisionTarget
        How precise the simulation must be.
    """
    limit = float(np.median(case.solution.capacity))
    for point in points:
        found: SweepPoint = {"engine": "compiled"}
        if case.solution.finite_at_capacity or point["offered_tps"] <= limit:
            found |= _latencies(case, point["offered_tps"], point["offered_source"], target)
        yield point | found


def _latencies(case: Case[Any], rate: float, source: RateSource, target: PrecisionTarget) -> SweepPoint:
    """Return the simulated latencies at a rate and their precision; nothing if none can be simulated."""
    solved, drawn = _drawn(case)
    figures, uncertainty = solved.solution.at(rate), solved.at(rate).uncertainty
    requests, settles_s = enough_requests(REQUESTS, case, figures), settling_s(case, figures)
    if figures.is_pushed_back or is_too_slow(figures, requests, settles_s):
        return {}
    if figures.closed is None:
        requests = max(requests, int(settles_s * rate))
    course = RateSimulation(drawn, figures.peak_rate, requests, SimulationSettings(case.seed, "compiled", threads=1))
    names = [name for name in target.classes if name in figures.asked] or figures.asked
    count, phases = FIRST_DRAWS, list[DrawPhases]()
    while count > len(phases):
        phases += course.run(range(len(phases), count))
        relations = relations_of(phases, drawn.chosen[:count], figures)
        latency = extended_to_all(relations, figures, uncertainty)
        width = max(_width(latency[name], target) for name in names)
        count = _next_count(width, count, target)
    known = {key: each for key, each in relations.items() if each is not None}
    return _cells(latency) | {"simulation": rounded(plain(width))} | verdict_cells(case, rate, source, known)


def _width(latency: Latency, target: PrecisionTarget) -> float:
    """Return the simulation error of the target statistic, as a share of the figure."""
    band: Band | None = getattr(latency, target.statistic)
    if band is None or band.parts.simulation is None:
        return math.inf
    return band.parts.simulation / band.value


def _next_count(width: float, count: int, target: PrecisionTarget) -> int:
    """Return the required number of draws, as the width falls with the square root of their number."""
    if width <= target.relative:
        return count
    times = min((width / target.relative) ** 2, GROWTH)
    return min(max(math.ceil(count * times), count + FEWEST_MORE), MAX_DRAWS)


@lru_cache(maxsize=2)  # rates of a layout come one after another
def _drawn(case: Case[Any]) -> tuple[Case[Any], ChosenDraws]:
    """Return a solved layout and its draws available for simulation."""
    busy = case.solution.at(USUAL_LOAD * float(np.median(case.solution.capacity)))
    return case, ChosenDraws(case, evenly_along(mean_response_s(busy), MAX_DRAWS, in_rounds=True))


def _cells(latency: Mapping[str, Latency]) -> SweepPoint:
    """Return the cells of latencies by request class; those of a statistic without a figure are empty."""
    cells: SweepPoint = {}
    for name, statistics in latency.items():
        for statistic in STATISTICS:
            band: Band | None = getattr(statistics, statistic)
            cells |= band_cells(f"{name}_{statistic}_ms", (math.nan,) * 3 if band is None else _ends(band))
    return cells


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

    source: RateSource
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
        """A digest of all inputs of the task's points."""
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
    """The layouts and rates of a sweep.

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
        system(self.system).component(Ratios).refuse(
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
        """The number of rows."""
        return len(self.layouts) * len(self.rates.values)

    @cached_property
    def columns(self) -> dict[str, str]:
        """Columns of the table, with their types."""
        return columns_of(system(self.system))

    def configurations(self) -> list[Configuration[SweepTask]]:
        """Return the configurations to compute, in the order of the rows."""
        return [Configuration(task.key, task) for layout in self.layouts for task in self._tasks(layout)]

    def _tasks(self, layout: SweepLayout) -> Iterator[SweepTask]:
        if layout.scenario is None:
            return
        values, most = self.rates.values, MAX_RATES[self.engine]
        for start in range(0, len(values), most):
            some = replace(self.rates, values=values[start : start + most])
            yield SweepTask(layout.scenario, some, self.fitted, self.draws, self.engine, self.seed, self.precision)

    def table(self, found: Mapping[str, Sequence[SweepPoint]]) -> list[SweepPoint]:
        """Return the rows computed so far, by the keys of the tasks, together with refused layouts."""
        points: list[SweepPoint] = []
        for layout in self.layouts:
            if layout.refused is not None:
                points += refused_points(self.system, layout.fields, self, layout.refused)
            for task in self._tasks(layout):
                points += found.get(task.key, ())
        return points


def layouts_of(base: Scenario, axes: Mapping[str, Sequence[Any]]) -> tuple[SweepLayout, ...]:
    """Return a layout for each combination of values; an invalid one carries the broken rule.

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
    shown = options if "dcs" in axes else base.given()  # one data centre has no round trip
    own = {name: value for name, value in vars(base).items() if name in options and name in shown}
    emptied = dict.fromkeys((*rate_fields(type(base)), *(each for name in axes for each in options[name].replaces)))
    found = []
    for values in itertools.product(*axes.values()):
        swept = {**emptied, **dict(zip(axes, values, strict=True))}
        try:
            found.append(SweepLayout({**own, **swept}, changed(base, **swept)))
        except InputError as error:
            found.append(SweepLayout({**own, **swept}, None, str(error)))
    return tuple(found)


def refused_points(name: str, fields: Mapping[str, Any], asked: Sweep | SweepTask, why: str) -> Iterator[SweepPoint]:
    """Yield the points of a layout without an answer, with the reason."""
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
    """Compute the points of a task; the experiment calls this function."""
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
        points = list(solved.at(offered, task.rates.source))
        if task.engine == "analytic":
            return points
        target = task.precision or precision_target(DEFAULT_PRECISION, case.system)
        return list(simulated_points(points, case, target))
    except InputError as error:
        return list(refused_points(task.scenario.system, task.scenario.given(), task, str(error)))


@lru_cache(maxsize=2)  # rates of a layout come one after another
def _solved(case: Case[Any], draws: int, engine: SweepEngine) -> AnalyticPoints:
    """Return a solved layout with its capacity, as in `predict` unless there are fewer draws."""
    if draws < len(case.fitted.draws):
        return AnalyticPoints(replace(case, draws=draws))
    return AnalyticPoints(case, capacity_limit(case, Question(engine)).capacity.peak_tps)


def precision_target(text: str, its: System[Any]) -> PrecisionTarget:
    """Read the required precision of a system's simulated latencies, such as `p99<2%`."""
    return read_precision_target(text, tuple(its.reported), tuple(its.reported))


def _offered(task: SweepTask, case: Case[Any], value: float, capacity: float) -> float:
    """Return a rate of a task in requests per second over the whole layout."""
    if task.rates.source == "given":
        return case.system.offered_per_s(changed(task.scenario, **{task.rates.field: value}), case.values) or 0.0
    rate = rate_at(value, capacity)
    return min(rate, max(math.floor(capacity), 1.0)) if value <= 1 else rate  # rounding must not exceed all of it


def experiment() -> Experiment[SweepTask]:
    """Return the sweep as an experiment over tasks."""
    return Experiment(points_of, lambda _task, _found: 1)  # each is computed once


def check_objectives(layouts: Sequence[SweepLayout], fitted: Fitted | None = None) -> None:
    """Parse the objectives before all layouts, in one layout for each set of request classes.

    Raises
    ------
    InputError
        When one cannot be read, or names a request class that no layout has.
    """
    refused = []
    scenarios = [each.scenario for each in layouts if each.scenario is not None]
    for scenario in {system(each.system).classes(each): each for each in scenarios}.values():
        try:
            _ = replace(resolve(scenario, fitted), draws=1).objectives
        except InputError as error:
            refused.append(error)
        else:
            return
    if refused:
        raise refused[0]
