"""A system that is fitted to its users' load-test tables: its contract, basis, notes and load tests."""

from __future__ import annotations

import hashlib
import json
import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeVar
from zlib import crc32

import numpy as np
from scipy import special

from capplan.answers.results import FIRMEST_FIRST, Band, Basis
from capplan.errors import InputError
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.table import Evidence, Source
from capplan.layout.basis import FigureBasis
from capplan.layout.case import Case
from capplan.layout.components import Machines
from capplan.layout.extrapolation import Extrapolation
from capplan.layout.fitted_file import DRAWS, Fitted, FittedTable
from capplan.layout.layout_factors import correlation, factors, name_of
from capplan.layout.observations import LoadTest, Observations
from capplan.layout.solution import Figures
from capplan.layout.system import System
from capplan.layout.table_components import LayoutFactors, NodeCpu, Rows
from capplan.layout.table_rows import (
    ACROSS_LAYOUTS,
    THROUGHPUT,
    TableRow,
    load_of,
    measured_of,
    node_cpu_of,
    of_run,
    rate_per_s,
    row_of,
    rows_of,
    steady,
    with_mix,
    without_pauses,
)
from capplan.layout.uncertainty import ModelError, Uncertainty
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import Scenario, changed
from capplan.models.language.units import Number

S = TypeVar("S", bound=Scenario)
NOT_PROMISED = (
    "Do not rely on less than 10 % of error on a noisy cluster, on p99.9, or on percentiles above 80 % of the ceiling."
)
_WITH_PAUSES = ("p99", "p999")  # percentiles that pauses of up to 2 % of the time reach
_OTHERS_WAIT = (
    "The load tests had other clients than this layout: closed ones wait while a node pauses, open ones keep coming."
)
_SAME_LOAD = 0.05  # relative distance of loads that count as the same


class TableSystem(System[S]):
    """A system that is fitted to its users' load-test tables and so has no evidence of its own."""

    table: FittedTable | None = None
    """The table that it was fitted to; see `of`."""

    @abstractmethod
    def row_scenario(self, row: LoadTestRow) -> S:
        """Return the layout of a row, and its load: `clients`, or `tps`.

        Raises
        ------
        InputError
            If a column that the system needs is missing or wrong; the message names it.
        """

    def values_in(self, layout: S, values: Values) -> Values:
        """Return a layout's parameter values, with its own factors where `values` contains them."""
        own = self.component(LayoutFactors)
        return own.applied(own.clusters(layout, values), factors(tuple(own.log_sd), own.alike(layout), values))

    def read(self, rows: Sequence[LoadTestRow]) -> tuple[TableRow, ...]:
        """Return rows of a table as the fit reads them, without latencies that grew for as long as the run lasted.

        Raises
        ------
        InputError
            As for `row_scenario`.
        """
        found, class_of = [], self.component(Rows).request_class
        metered: dict[tuple[Any, ...], str | None] = {}  # the class that a run's CPU is read from: others repeat it
        for number, row in enumerate(with_mix(rows)):
            scenario = self.row_scenario(row)
            layout = unloaded(scenario)
            named = row.request_class if class_of is None else class_of(row)
            name = named if named in self.reported else None
            run = row.run_id or str(number + 1)
            if name is not None and name not in self.classes(scenario):
                raise InputError(
                    f"run {run!r} has request_class {name} and read_fraction {row.read_fraction}, which leaves no "
                    f"{name}s: correct one of the two"
                )
            found_row = TableRow(run, name, layout, load_of(row), measured_of(row), row.data_gib)
            used = (
                node_cpu_of(row, sum(self.component(Machines).counts(layout).values()))
                if self.component(NodeCpu).metered
                else {}
            )
            if used and metered.setdefault((run, row.repeat, layout), name) == name:
                found_row = replace(found_row, measured={**found_row.measured, **used})
            found.append(steady(of_run(found_row)))
        return tuple(found)

    def checked(self, fitted: Fitted, where: str) -> Fitted:
        """Check that a calibration, with its table, belongs to this system; return the calibration."""
        names = {
            *(parameter.name for parameter in self.parameters),
            *map(name_of, self.component(LayoutFactors).log_sd),
        }
        known = all(name.split("[")[0] in names for name in fitted.names)
        known = known and {each.name for each in self.parameters if each.free} <= {*fitted.names}
        if fitted.system != self.name or fitted.table is None or not known or len(fitted.draws) != DRAWS:
            raise InputError(
                f"{where!r} is no calibration of {self.name} by this version: run `capplan calibrate {self.name} "
                "--evidence table.csv -o mine.json`"
            )
        if fitted.data_hash != hash_of(fitted.table.rows):
            raise InputError(
                f"{where!r} was edited: its rows do not have the hash that it states. Run `capplan calibrate "
                f"{self.name} --evidence table.csv -o mine.json`"
            )
        return fitted

    def of(self, fitted: Fitted) -> TableSystem[S]:
        """Return the system with the table of a calibration attached."""
        return _with_table(type(self), fitted)

    def usual_scenario(self, fitted: Fitted) -> S:
        """Return the layout with the most fitted rows; of equal ones, the one with the most replicas.

        It has the pauses of its first row.
        """
        rows = self.read(rows_of(fitted))
        counts = Counter(row.tested_layout for row in rows)
        usual = max(counts, key=lambda each: (counts[each], self.component(Rows).copies(each)))
        layout: S = next(row.layout for row in rows if row.tested_layout == usual)
        return layout

    @cached_property
    def evidence(self) -> tuple[Evidence, ...]:
        """No rows: a table of load tests is no documented evidence."""
        return ()

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """No documents."""
        return ()

    @cached_property
    def observations(self) -> Observations[S]:
        """Load tests of the table: their layouts determine what is measured and what is extrapolated."""
        return TableObservations(self)

    def values(self, fitted: Fitted, scenario: S) -> dict[str, Number]:
        """Return all parameter values of a layout, SI."""
        layout = unloaded(scenario)
        values = with_unknown_layouts(self, fitted, [layout])
        return dict(self.values_in(layout, values))

    def median_values(self, fitted: Fitted, scenario: S) -> dict[str, float]:
        """Return one value of each parameter, SI."""
        layout = unloaded(scenario)
        single = self.values_in(layout, with_unknown_layouts(self, fitted, [layout], "none"))
        return {name: float(np.asarray(value)) for name, value in single.items()}

    def extrapolation(
        self, scenario: S, rate_per_s: float | None = None, tests: Sequence[LoadTest[S]] | None = None
    ) -> Extrapolation:
        """Measure how far a layout and a rate lie outside the rows; see `System.extrapolation`.

        The distance along the `scaled` fields is in the draws, so it counts as none.
        """
        far = super().extrapolation(scenario, rate_per_s, tests)
        drawn = {name for axis in self.component(LayoutFactors).scaled for name in axis}
        excess = [each._replace(doublings=0.0) if each.axis.partition(" ")[0] in drawn else each for each in far.excess]
        far = replace(far, excess=tuple(excess))
        if self.table is None or not self.table.clusters:
            return far
        why = f"{len(self.table.clusters)} published clusters; none is yours."
        if far.basis == "extrapolated":
            return replace(far, why=f"{far.why} It rests on {why}")
        return replace(far, basis="population", why=why)

    def uncertainty(self, fitted: Fitted, _scenario: S, seed: int) -> Uncertainty:
        """Return the scatter between repeats, from the table."""
        scatter = {} if fitted.table is None else fitted.table.scatter
        usual = max(scatter.values(), default=ACROSS_LAYOUTS)
        return Uncertainty(
            ModelError(scatter.get(THROUGHPUT, usual)), ModelError(scatter.get("latency_p95_ms", usual)), seed
        )

    def fitted(self) -> Fitted:
        """Return the population of published clusters, if there is one.

        Raises
        ------
        InputError
            If there is none: the system then has no calibration before a user's table is fitted.
        """
        if self.fitted_path.is_file():
            return super().fitted()
        raise InputError(
            f"system {self.name!r} knows no cluster yet: fit it to a table of your load tests with `capplan calibrate "
            f"{self.name} --evidence table.csv -o mine.json`, then give mine.json instead of {self.name}"
        )


def table_of(system: System[S]) -> TableSystem[S] | None:
    """Return a system that is fitted to load-test tables as such; None: it has documents of its own."""
    return system if isinstance(system, TableSystem) else None


def table_cautions(case: Case[Any], _capacity: Band, figures: Figures) -> list[str]:
    """Return what the fitted rows do not state, and whom they measured."""
    system, rows = table_of(case.system), rows_of(case.fitted)
    if system is None or case.fitted.clusters:
        return []
    unlike = not any(_is_like(row, case.scenario) for row in system.read(rows))
    return [*system.component(Rows).unstated(rows), *([_OTHERS_WAIT] if figures.pausing is not None and unlike else [])]


class TableBasis(FigureBasis):
    """The basis of figures fitted to a load-test table: the layouts and loads of the rows that measured each figure."""

    def of_capacity(self) -> Basis:
        """Return the basis of the capacity: measured if a row of the layout comes close to the capacity."""
        return self._of(THROUGHPUT, self.capacity)

    def of_latency(self, _name: str, statistic: str, rate_per_s: float) -> Basis:
        """Return the basis of a latency statistic of a request class.

        Closed clients wait while a node pauses, and open ones keep coming: what one kind measured is interpolated for
        the other, and says nothing of the percentiles that pauses reach.
        """
        column = f"latency_{statistic}_ms"
        found = self._of(column, rate_per_s)
        like = (_is_like(row, self.scenario) for row in self._read if column in row.measured)
        if found in ("model only", "population") or any(like):
            return found
        return "model only" if statistic in _WITH_PAUSES else max(found, "interpolated", key=FIRMEST_FIRST.index)

    def of_utilisation(self, _resource: str, _rate_per_s: float) -> Basis:
        """Return the basis of a resource's utilisation: always `model only`."""
        return "model only"

    @cached_property
    def _read(self) -> tuple[TableRow, ...]:
        table = table_of(self.system)
        return () if table is None else table.read(rows_of(self.fitted))

    def _of(self, column: str, at_per_s: float) -> Basis:
        if self.fitted.clusters:
            return "population"
        rows = [row for row in self._read if column in row.measured]
        if not rows:
            return "model only"
        layout = self.system.extrapolation(self.scenario).basis
        asked_layout = without_pauses(unloaded(self.scenario))
        here = [row for row in rows if row.tested_layout == asked_layout]
        clients = getattr(self.scenario, "clients", None)
        asked = at_per_s if clients is None else float(clients)
        rates = [rate_per_s(row) for row in here or rows]
        loads = rates if clients is None else [float(row.load.clients) for row in here or rows]
        if not min(loads) * (1 - _SAME_LOAD) <= asked <= max(loads) * (1 + _SAME_LOAD):
            return "extrapolated"
        same = any(abs(asked - load) <= _SAME_LOAD * load for load in loads)
        return layout if layout != "measured" or same else "interpolated"


def _is_like(row: TableRow, scenario: Scenario) -> bool:
    """Whether the clients of a row wait for an answer before the next request, or not, as those of a layout do."""
    return (row.load.kind == "closed") == (getattr(scenario, "clients", None) is not None)


class TableObservations(Observations[S]):
    """The load tests of a user's table, one for each layout and load."""

    def __init__(self, system: TableSystem[S]) -> None:
        super().__init__(system)
        self.tables = system

    def load_tests(self, _choice: Mapping[str, str] | None = None) -> tuple[LoadTest[S], ...]:
        """Return the rows of the table as load tests, without documented figures."""
        return self._of_table

    @cached_property
    def _of_table(self) -> tuple[LoadTest[S], ...]:
        if self.tables.table is None:
            return ()
        layouts = dict.fromkeys(row.layout for row in self.tables.read(list(map(row_of, self.tables.table.rows))))
        return tuple(LoadTest(f"layout {at}", f"layout {at}", layout, ()) for at, layout in enumerate(layouts, 1))


@lru_cache(maxsize=8)  # what is kept by system, such as its tested layouts, is found again
def _with_table(kind: Callable[[], TableSystem[Any]], fitted: Fitted) -> TableSystem[Any]:
    own = kind()  # a copy would keep the observations of another table
    own.table = fitted.table
    return own


def unloaded(scenario: S) -> S:
    """Return a scenario's layout without load and objectives."""
    return changed(scenario, tps=None, slo=(), **({"clients": None} if hasattr(scenario, "clients") else {}))


def hash_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the SHA-256 of rows of a table."""
    return hashlib.sha256(json.dumps([dict(row) for row in rows], sort_keys=True).encode()).hexdigest()


@lru_cache(maxsize=8)  # rows take long to read
def _tested(system: TableSystem[Any], fitted: Fitted) -> tuple[Any, ...]:
    """Return the layouts with fitted factors."""
    its = system.component(LayoutFactors)
    layouts = dict.fromkeys(its.alike(row.layout) for row in system.read(rows_of(fitted)))
    return tuple(each for each in layouts if any(name_of(name, each) in fitted.names for name in its.log_sd))


def with_unknown_layouts(
    system: TableSystem[Any],
    fitted: Fitted,
    layouts: Iterable[Any],
    chance: Literal["common", "own", "none"] = "common",
) -> dict[str, Number]:
    """Return the fitted draws with factors for layouts that no row covers.

    Factors are jointly normal in their logarithms, with the `correlation` of layouts: what the fitted ones leave open
    is drawn.

    Parameters
    ----------
    system : TableSystem
        The system.
    fitted : Fitted
        A calibration by `fit_table`.
    layouts : iterable of Scenario
        The layouts.
    chance : {"common", "own", "none"}
        Whether unknown layouts share what is drawn, so that chance does not decide which is better; or each has its
        own, correlated with the layouts before it; or nothing is drawn, with a single value of each parameter.
    """
    found = fitted.values(system.parameters)
    if chance == "none":
        found |= fitted.middle()
    its = system.component(LayoutFactors)
    effects = tuple(its.log_sd)
    unknown = [each for each in dict.fromkeys(map(its.alike, layouts)) if not factors(effects, each, found)]
    if not effects or not unknown:
        return found
    tested = _tested(system, fitted)
    for number, layout in enumerate(unknown):
        given = [*tested, *unknown[:number]] if chance == "own" else tested
        known = correlation([*given, layout], its.scaled)
        if len(tested) == 1:  # its factor is 1; others are relative to it, with twice the variance
            known = (1 + known - known[0] - known[:, :1]) / 2
        gain = np.linalg.pinv(known[:-1, :-1]) @ known[:-1, -1]
        left = math.sqrt(max(float(known[-1, -1] - gain @ known[:-1, -1]), 0.0))
        for at, name in enumerate(effects):
            logs = sum(each * np.log(found[name_of(name, one)]) for each, one in zip(gain, given, strict=True))
            if chance != "none":
                key = [3 + at] if chance == "common" else [at, crc32(repr(layout).encode())]
                order = np.random.default_rng([fitted.seed, *key]).permutation(len(fitted.draws))
                sd = left * fitted.its_table.priors[name_of(name)][1]
                logs = logs + sd * special.ndtri((order + 0.5) / len(fitted.draws))
            found[name_of(name, layout)] = np.exp(logs)
    return found
