"""Fit a generic system to a user's load-test table, and predict rows of such a table.

The fit finds the most probable parameters from several starts, then an ensemble of others that explain the table about
as well. Priors are wide, and centred on what the table shows at a glance, such as its shortest latency. A prediction's
band has the spread of the ensemble and the scatter of a repeat, which the residuals of the fit may enlarge.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib.metadata import version
from types import MappingProxyType
from typing import Any, Literal, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from capplan.calibration.fit.posterior import Maximum, best_of, laplace_distance, maximum
from capplan.calibration.tables import errors as solver_error
from capplan.calibration.tables.errors import Effects, chance_errors, correlation, factors, learnt_scatter, name_of
from capplan.calibration.tables.identifiability import Judge
from capplan.calibration.tables.priors import unseen
from capplan.calibration.tables.rows import (
    ACROSS_LAYOUTS,
    LEVELS,
    NODE_CPU,
    ON_CURVES,
    QUANTITIES,
    THROUGHPUT,
    Figure,
    TableRow,
    cells_of,
    check_requests,
    figures_of,
    load_of,
    measured_of,
    node_cpu_of,
    of_run,
    rate_per_s,
    row_of,
    rows_of,
    scatter_of,
    steady,
    with_mix,
    without_pauses,
)
from capplan.calibration.tables.sampler import Coordinates, ensemble
from capplan.calibration.tables.solved_rows import solved_rows
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.table import Evidence, Source
from capplan.layout.basis import FigureBasis
from capplan.layout.extrapolation import RATE, Extrapolation, Responses
from capplan.layout.fitted_file import DRAWS, Fitted, FittedTable, Posterior, rounded
from capplan.layout.observations import LoadTest, Observations
from capplan.layout.solution import Figures
from capplan.layout.system import Case, Notes, System
from capplan.layout.uncertainty import ModelError, Uncertainty
from capplan.models.errors import InputError
from capplan.models.language.network import Network
from capplan.models.language.parameter import Parameter, Values
from capplan.models.language.scenario import Scenario, changed
from capplan.models.language.units import FloatArray, Number
from capplan.models.results import FIRMEST_FIRST, Band, Basis, Parts
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.pauses import RareDelay

S = TypeVar("S", bound=Scenario)
NOT_PROMISED = (
    "Do not rely on less than 10 % of error on a noisy cluster, on p99.9, or on percentiles above 80 % of the ceiling."
)
_WITH_PAUSES = ("p99", "p999")  # percentiles that pauses of up to 2 % of the time reach
_OTHERS_WAIT = (
    "The load tests had other clients than this layout: closed ones wait while a node pauses, open ones keep coming."
)
_PROPOSALS = 256  # in each round
_FEWEST, _MOST, _SOLVED = 3, 7, 42  # rounds at least and at most, and layouts solved in all of them, which take time
_SEARCHED = 8  # evaluations from each start; the best one is then improved
_REFINED = 8  # evaluations of a search after the errors that rows share or their scatter have changed
_TRIED, _LIKELIEST = 256, 2  # prior draws; the search also starts from the most probable ones
_ROOM = 3.9  # standard deviations of the prior from its centre to a start of the search, at most
_EFFECT_STEP = 0.02  # in the logarithm of a factor of a layout
_STEP = 0.5  # step, in prior standard deviations, that tests whether a parameter matters
_BETTER = 1.0  # log of how much more probable a structure must be than one nearer to the usual one
_FREED = 2  # rounds that free parameters which begin to change a figure at the most probable point
_MOVES = 0.02  # standard deviations of a figure
_SAME_LOAD = 0.05  # relative distance of loads that count as the same
_CHUNK = 256  # draws solved at once: limits memory


class TableSystem(System[S]):
    """A system that is fitted to its users' load-test tables and so has no evidence of its own."""

    from_tables = True
    table: FittedTable | None = None
    """The table that it was fitted to; see `of`."""
    seed: int = 1

    @abstractmethod
    def row_scenario(self, row: LoadTestRow) -> S:
        """Return the layout of a row, and its load: `clients`, or `tps`.

        Raises
        ------
        InputError
            If a column that the system needs is missing or wrong; the message names it.
        """

    def request_class(self, row: LoadTestRow) -> str | None:
        """Return the reported class of a row; None if it is one of all requests."""
        return row.request_class if row.request_class in self.reported else None

    def group(self, row: LoadTestRow) -> str:
        """Return what a row tested; groups are fitted separately, because rows of one group do not inform another."""
        del row
        return ""

    times: Sequence[str] = ()
    """Parameters that the unloaded time of a request is the sum of; see `Coordinates`."""
    unseen: str = ""
    """The parameter that lowers the ceiling, and leaves the unloaded time as it is."""
    shared: Sequence[Mapping[str, float]] = ()
    """What several parameters have in common, such as the speed of the machines: for each such thing, the standard
    deviation by which it moves the logarithm of each parameter, in addition to that of the parameter's own prior."""

    def priors(self, rows: Sequence[TableRow]) -> tuple[Parameter, ...]:
        """Return the parameters with priors for a table; those of the system by default.

        Parameters
        ----------
        rows : sequence of TableRow
            The rows to fit.
        """
        del rows
        return self.parameters

    def starts(self, rows: Sequence[TableRow], parameters: Sequence[Parameter]) -> Sequence[Mapping[str, float]]:
        """Return starts of the search, as factors on the prior medians by name; the medians are always tried."""
        del rows, parameters
        return ()

    structures: Mapping[str, Sequence[float]] = MappingProxyType({})
    """Parameters that say how a request flows, with their values in order. All draws have the same one: the fit tries
    them, and takes the one that the rows make most probable."""

    effects: Mapping[str, float] = MappingProxyType({})
    """What layouts differ in beyond the model, with the standard deviation of its logarithm; see `with_effects`."""

    scaled: Sequence[Sequence[str]] = ()
    """Fields of a layout over which its factors change little by little, such as the number of nodes, by axis: those of
    several tiers are one. The fit itself says how figures change along them, so that their scatter does not widen."""

    def alike(self, layout: S) -> S:
        """Return the layout that shares its factors with this one; by default the layout itself."""
        return layout

    def with_effects(self, values: Values, effects: Mapping[str, Number]) -> Values:
        """Return the values with each effect's factor applied, such as a factor on all work of a layout."""
        if effects:
            raise NotImplementedError(f"{self.name} has no effects")
        return values

    def values_in(self, layout: S, values: Values) -> Values:
        """Return a layout's parameter values, with its own factors where `values` contains them."""
        return self.with_effects(
            self.values_for(layout, values), factors(tuple(self.effects), self.alike(layout), values)
        )

    def values_for(self, layout: S, values: Values) -> Values:
        """Return a layout's parameter values; by default every layout has the same."""
        del layout
        return values

    def contends(self, values: Values, *, on_timer: bool = False) -> bool:
        """Whether the values depend on the number of clients or of open requests in flight; see `at_clients`."""
        del values, on_timer
        return False

    def may_fall(self, values: Values) -> bool:
        """Whether throughput may fall with more clients."""
        return self.contends(values)

    def load_test_network(self, scenario: S, values: Values, rate_per_s: Number) -> Network:
        """Return the network as a load test sees it, whose load generator may be a limit; see `System.network`."""
        return self.network(scenario, values, rate_per_s)

    def closed_pauses(
        self, scenario: S, values: Values, analysis: Analysis, rate_per_s: FloatArray, cycle_s: FloatArray
    ) -> Mapping[str, Sequence[RareDelay]]:
        """Return the delays that pauses of nodes cause to closed clients, who hide them; see `System.pauses`.

        Parameters
        ----------
        scenario, values, analysis, rate_per_s
            As for `System.pauses`.
        cycle_s : array (..., draws)
            Mean time from one request of a client to its next, in seconds.
        """
        del scenario, values, analysis, rate_per_s, cycle_s
        return {}

    def left_by_pauses(
        self,
        scenario: S,
        values: Values,
        analysis: Analysis,
        rate_per_s: FloatArray,
        cycle_s: FloatArray,
        response_s: FloatArray,
    ) -> FloatArray:
        """Return the throughput of closed clients whom pauses of nodes hold, over that without pauses (..., draws).

        Parameters
        ----------
        scenario, values, analysis, rate_per_s
            As for `System.pauses`.
        cycle_s, response_s : array (..., draws)
            Mean time from one request of a client to its next, and of a response, without pauses, seconds.
        """
        del scenario, values, analysis, cycle_s, response_s
        return np.ones(rate_per_s.shape)

    def at_clients(self, values: Values, clients: FloatArray, *, on_timer: bool = False) -> dict[str, Number]:
        """Return the values at a number of clients, or of open requests in flight, for each draw."""
        del clients, on_timer
        return dict(values)

    metered: Sequence[str] = ()
    """Kinds of stations whose CPU is an observation, the column `node_cpu_percent`; see the method."""

    def node_cpu_percent(
        self, layout: S, values: Values, busy: Mapping[str, FloatArray], under_way: FloatArray
    ) -> FloatArray:
        """Return the CPU of nodes, percent (draws,).

        Parameters
        ----------
        layout : Scenario
            The layout.
        values : mapping
            Parameter values by name.
        busy : mapping of arrays (draws,)
            Utilisation of each kind of station.
        under_way : array (draws,)
            Requests under way.
        """
        raise NotImplementedError(f"{self.name} has no model of its nodes' CPU")

    def undecided(self, row: TableRow, trained: Sequence[TableRow]) -> str:
        """Return why the trained rows do not identify a row, and which row would help; empty if they do.

        By default nothing is said of what differs; `predict_table` speaks of ceilings and tiers.
        """
        del row, trained
        return ""

    def unstated(self, rows: Iterable[LoadTestRow]) -> tuple[str, ...]:
        """Return what the rows do not state and the model has to assume, in sentences; nothing by default."""
        del rows
        return ()

    @cached_property
    def notes(self) -> Notes[S]:
        """What a reader must know besides the figures: what the fitted rows do not state."""
        return TableNotes(self.evidence)

    def read(self, rows: Sequence[LoadTestRow]) -> tuple[TableRow, ...]:
        """Return rows of a table as the fit reads them, without latencies that grew for as long as the run lasted.

        Raises
        ------
        InputError
            As for `row_scenario`.
        """
        found = []
        metered: dict[tuple[Any, ...], str | None] = {}  # the class that a run's CPU is read from: others repeat it
        for number, row in enumerate(with_mix(rows)):
            scenario = self.row_scenario(row)
            layout = unloaded(scenario)
            name = self.request_class(row)
            run = row.run_id or str(number + 1)
            if name is not None and name not in self.classes(scenario):
                raise InputError(
                    f"run {run!r} has request_class {name} and read_fraction {row.read_fraction}, which leaves no "
                    f"{name}s: correct one of the two"
                )
            found_row = TableRow(run, name, layout, load_of(row), measured_of(row), row.data_gib)
            used = node_cpu_of(row, sum(self.machine_counts(layout).values())) if self.metered else {}
            if used and metered.setdefault((run, row.repeat, layout), name) == name:
                found_row = replace(found_row, measured={**found_row.measured, **used})
            found.append(steady(of_run(found_row)))
        return tuple(found)

    def tails_left_out(self, scenario: S) -> tuple[str, ...]:
        """Return known causes of tail latency that a layout's network does not model."""
        del scenario
        return self.tails_not_modelled

    def checked(self, fitted: Fitted, where: str) -> Fitted:
        """Check that a calibration, with its table, belongs to this system; return the calibration."""
        names = {*(parameter.name for parameter in self.parameters), *map(name_of, self.effects)}
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

    def copies(self, layout: S) -> int:
        """Return how many copies of a row a layout stores; 0 if the system does not define it."""
        del layout
        return 0

    def usual_scenario(self, fitted: Fitted) -> S:
        """Return the layout with the most fitted rows; of equal ones, the one with the most replicas.

        It has the pauses of its first row.
        """
        rows = self.read(rows_of(fitted))
        counts = Counter(row.tested_layout for row in rows)
        usual = max(counts, key=lambda each: (counts[each], self.copies(each)))
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

    def all_values(self, fitted: Fitted, layout: S) -> dict[str, Number]:
        """Return all values of a calibration, with the factors of a layout."""
        return with_unknown_layouts(self, fitted, [layout])

    def promises(self) -> tuple[str, ...]:
        """Return what users cannot rely on in predictions of this system, in sentences."""
        return (NOT_PROMISED,)

    def basis_of_figures(self, scenario: S, fitted: Fitted, capacity: FloatArray) -> FigureBasis:
        """Return the basis of each figure: a figure that no row contains is `model only`."""
        return TableBasis(self, scenario, fitted, capacity)

    def extrapolation(
        self, scenario: S, rate_per_s: float | None = None, tests: Sequence[LoadTest[S]] | None = None
    ) -> Extrapolation:
        """Measure how far a layout and a rate lie outside the rows; see `System.extrapolation`.

        The distance along the `scaled` fields is in the draws, so it counts as none.
        """
        far = super().extrapolation(scenario, rate_per_s, tests)
        drawn = {name for axis in self.scaled for name in axis}
        excess = [each._replace(doublings=0.0) if each.axis.partition(" ")[0] in drawn else each for each in far.excess]
        return replace(far, excess=tuple(excess))

    def uncertainty(self, fitted: Fitted, scenario: S, seed: int) -> Uncertainty:
        """Return the scatter between repeats, from the table."""
        del scenario
        scatter = {} if fitted.table is None else fitted.table.scatter
        usual = max(scatter.values(), default=ACROSS_LAYOUTS)
        return Uncertainty(
            ModelError(scatter.get(THROUGHPUT, usual)), ModelError(scatter.get("latency_p95_ms", usual)), seed
        )

    def fitted(self) -> Fitted:
        """Refuse: this system has no calibration before a user's table is fitted.

        Raises
        ------
        InputError
            Always.
        """
        raise InputError(
            f"system {self.name!r} knows no cluster yet: fit it to a table of your load tests with `capplan calibrate "
            f"{self.name} --evidence table.csv -o mine.json`, then give mine.json instead of {self.name}"
        )


class TableNotes(Notes[S]):
    """What a reader must know of a prediction by a load-test table."""

    def cautions(self, case: Case[S], capacity: Band, figures: Figures) -> list[str]:
        """Return what the fitted rows do not state, and whom they measured."""
        del capacity
        system: Any = case.system
        found = [*system.unstated(rows_of(case.fitted))]
        if figures.pausing is not None and not any(
            _is_like(each, case.scenario) for each in system.read(rows_of(case.fitted))
        ):
            found.append(_OTHERS_WAIT)
        return found


class TableBasis(FigureBasis):
    """The basis of figures fitted to a load-test table: the layouts and loads of the rows that measured each figure."""

    def of_capacity(self) -> Basis:
        """Return the basis of the capacity: measured if a row of the layout comes close to the capacity."""
        return self._of(THROUGHPUT, self.capacity)

    def of_latency(self, name: str, statistic: str, rate_per_s: float) -> Basis:
        """Return the basis of a latency statistic of a request class.

        Closed clients wait while a node pauses, and open ones keep coming: what one kind measured is interpolated for
        the other, and says nothing of the percentiles that pauses reach.
        """
        del name
        column = f"latency_{statistic}_ms"
        found = self._of(column, rate_per_s)
        if found == "model only" or any(_is_like(row, self.scenario) for row in self._read if column in row.measured):
            return found
        return "model only" if statistic in _WITH_PAUSES else max(found, "interpolated", key=FIRMEST_FIRST.index)

    def of_utilisation(self, resource: str, rate_per_s: float) -> Basis:
        """Return the basis of a resource's utilisation: always `model only`."""
        del resource, rate_per_s
        return "model only"

    @cached_property
    def _read(self) -> tuple[TableRow, ...]:
        system: Any = self.system
        rows: tuple[TableRow, ...] = system.read(rows_of(self.fitted))
        return rows

    def _of(self, column: str, at_per_s: float) -> Basis:
        system: Any = self.system
        rows = [row for row in self._read if column in row.measured]
        if not rows:
            return "model only"
        layout = system.extrapolation(self.scenario).basis
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

    def load_tests(self, choice: Mapping[str, str] | None = None) -> tuple[LoadTest[S], ...]:
        """Return the rows of the table as load tests, without documented figures."""
        del choice
        return self._of_table

    @cached_property
    def _of_table(self) -> tuple[LoadTest[S], ...]:
        system: Any = self.system
        if system.table is None:
            return ()
        layouts = dict.fromkeys(row.layout for row in system.read([row_of(cells) for cells in system.table.rows]))
        return tuple(LoadTest(f"layout {at}", f"layout {at}", layout, ()) for at, layout in enumerate(layouts, 1))


@lru_cache(maxsize=8)  # what is kept by system, such as its tested layouts, is found again
def _with_table(kind: Callable[[], TableSystem[Any]], fitted: Fitted) -> TableSystem[Any]:
    own = kind()  # a copy would keep the observations of another table
    own.table, own.seed = fitted.table, fitted.seed
    return own


def unloaded(scenario: S) -> S:
    """Return a scenario's layout without load and objectives."""
    return changed(scenario, tps=None, slo=(), **({"clients": None} if hasattr(scenario, "clients") else {}))


def hash_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the SHA-256 of rows of a table."""
    return hashlib.sha256(json.dumps([dict(row) for row in rows], sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class RowPrediction:
    """A predicted figure of a row of a load-test table.

    Attributes
    ----------
    run_id : str
        Name of the run.
    request_class : str or None
        Its request class; None for all requests of the run.
    quantity : str
        Column of the table, such as `latency_p99_ms`.
    measured : float or None
        What the row has, in the column's unit.
    predicted : Band
        Median, 5th and 95th percentile of what a repeat would measure, in the column's unit.
    identifiable : bool
        Whether the fitted rows decide the figure.
    reason : str
        Why not, and which row would decide it; empty if they do.
    """

    run_id: str
    request_class: str | None
    quantity: str
    measured: float | None
    predicted: Band
    identifiable: bool
    reason: str


class _Problem:
    """Figures of a table, their predictions, and priors, for `maximum` and `resampled`.

    Parameters that move no figure keep the medians of their priors, which saves time and draws.
    """

    def __init__(
        self,
        system: TableSystem[Any],
        rows: Sequence[TableRow],
        figures: Sequence[Figure],
        parameters: Sequence[Parameter],
        *,
        straight: bool = False,
    ) -> None:
        self.system, self.rows, self.figures_to_fit, self.parameters = system, rows, figures, parameters
        self.free = [each for each in parameters if each.free]
        self.fixed = {each.name: each.value for each in parameters if not each.free}
        self.centre = np.log([each.value for each in self.free])
        own = np.array([each.log_sd for each in self.free])
        loadings = np.array([[each.get(p.name, 0.0) for p in self.free] for each in system.shared])
        self.prior = np.diag(own**2) + (loadings.T @ loadings if len(loadings) else 0.0)
        self.spread = np.sqrt(np.diag(self.prior))
        self.prior_whitening = np.linalg.inv(np.linalg.cholesky(self.prior))
        layout = rows[figures[0].row].layout
        self.straight = Coordinates(
            [each.name for each in self.free],
            system.times if straight else (),
            system.unseen if straight else "",
            self.centre,
            lambda values: system.load_test_network(layout, system.values_in(layout, values), 1.0),
            self.fixed,
        )
        self.sd = np.array([each.log_sd for each in figures])
        self.effects: Effects | None = None
        self.of_solver = solver_error.covariance(rows, figures)
        self.of_chance = self._chance_errors(self.straight.points(self.centre[None])[0])
        self.whitening = self._whitening()
        self.logs = np.log([each.value for each in figures])
        wanted: list[list[str]] = [[] for _ in rows]
        for each in figures:
            wanted[each.row].append(each.quantity)
        self.used = [number for number, names in enumerate(wanted) if names]
        self.wanted = [wanted[number] for number in self.used]

    def with_scatter(
        self, scatter: Mapping[str, float], effects: Effects | None, log_point: FloatArray | None = None
    ) -> _Problem:
        """Return the problem with new scatter, errors that rows of one layout share, and errors by chance at a point.

        The errors by chance stay as they are without a point.
        """
        found = copy(self)
        if log_point is not None:
            found.of_chance = self._chance_errors(log_point)
        found.figures_to_fit = figures_of(self.rows, scatter)
        found.sd = np.array([each.log_sd for each in found.figures_to_fit])
        found.effects = effects
        found.whitening = found._whitening()
        return found

    def _chance_errors(self, log_point: FloatArray) -> FloatArray:
        wanted = [(each.row, each.quantity) for each in self.figures_to_fit]
        return chance_errors(self.system, self.rows, wanted, self.values(log_point[None]))

    def layouts(self) -> tuple[list[Any], NDArray[np.intp]]:
        """Return the layouts that have factors of their own, and the index of each figure's layout (figures,)."""
        own = [self.system.alike(self.rows[each.row].layout) for each in self.figures_to_fit]
        layouts = list(dict.fromkeys(own))
        return layouts, np.array([layouts.index(each) for each in own])

    def effects_at(self, log_point: FloatArray) -> Effects | None:
        """Return the layout effects, linearised at a point; None for a single layout or a system without effects."""
        layouts, group = self.layouts()
        names = tuple(self.system.effects)
        if len(layouts) < 2 or not names:
            return None
        values: dict[str, Number] = self.values(np.repeat(log_point[None], 2 * len(names), axis=0))
        for at, name in enumerate(names):
            steps = np.zeros(2 * len(names))
            steps[2 * at : 2 * at + 2] = (_EFFECT_STEP, -_EFFECT_STEP)
            values.update({name_of(name, layout): np.exp(steps) for layout in layouts})
        found = self._predicted_with(values)
        slopes = ((found[::2] - found[1::2]) / (2 * _EFFECT_STEP)).T
        log_sd = np.array([self.system.effects[name] for name in names])
        return Effects(slopes, group, log_sd, correlation(layouts, self.system.scaled))

    def of(self, names: Sequence[str]) -> _Problem:
        """Return the problem with only the named parameters free."""
        held = [each if each.name in names else replace(each, log_sd=0.0) for each in self.parameters]
        return _Problem(self.system, self.rows, self.figures_to_fit, held, straight=True)

    def prior_draws(self, count: int) -> FloatArray:
        """Return prior draws of the free parameters' logarithms (count, free), the same ones in every call."""
        return self.straight.points(np.random.default_rng(0).multivariate_normal(self.centre, self.prior, count))

    def moving(self, points: FloatArray) -> list[str]:
        """Return the parameters that change a figure at one or more of the points (points, free)."""
        step = np.diag(_STEP * self.spread)
        found = self.predicted(np.concatenate([points, *(point + step for point in points)]))
        base, moved = found[: len(points)], found[len(points) :].reshape(len(points), len(self.free), -1)
        most = np.abs(np.nan_to_num(moved - base[:, None], posinf=0.0, neginf=0.0)) / self.sd
        return [each.name for at, each in enumerate(self.free) if float(np.max(most[:, at])) > _MOVES]

    def likeliest(self, count: int) -> FloatArray:
        """Return the most probable of many prior draws (count, free), as logarithms."""
        drawn = self.prior_draws(_TRIED)
        return drawn[np.argsort(-self.log_posterior(drawn))[:count]]

    def values(self, log_points: FloatArray) -> dict[str, Number]:
        """Return parameter values by name at points (draws, free)."""
        logs = self.straight.logs(log_points)
        return {**self.fixed, **{each.name: np.exp(logs[:, at]) for at, each in enumerate(self.free)}}

    def predicted(self, log_points: FloatArray) -> FloatArray:
        """Return the logarithms of the predictions (draws, figures)."""
        starts = range(0, len(log_points), _CHUNK)
        return np.concatenate([self._predicted_with(self.values(log_points[at : at + _CHUNK])) for at in starts])

    def _predicted_with(self, values: Values) -> FloatArray:
        solved = solved_rows(self.system, [self.rows[number] for number in self.used], values, self.wanted)
        by_row = dict(zip(self.used, solved, strict=True))
        return np.stack([np.log(by_row[f.row].figures[f.quantity]) for f in self.figures_to_fit], axis=-1)

    def residuals(self, log_points: FloatArray) -> FloatArray:
        """Return standardised residuals of the figures, then of the priors (draws, figures + free)."""
        errors = self.predicted(log_points) - self.logs
        data = errors @ self.whitening.T
        return np.concatenate(
            [
                np.nan_to_num(data, nan=1e3, posinf=1e3, neginf=-1e3),
                (self.straight.logs(log_points) - self.centre) @ self.prior_whitening.T,
            ],
            axis=-1,
        )

    def other_errors(self) -> FloatArray:
        """Return the covariance (figures, figures) of all errors except those of the layout factors."""
        return np.diag(self.sd**2 + self.of_chance**2) + self.of_solver

    def covariance(self) -> FloatArray:
        """Return the covariance of all errors (figures, figures)."""
        other = self.other_errors()
        return other if self.effects is None else other + self.effects.covariance

    def _whitening(self) -> FloatArray:
        """Return the whitening matrix (figures, figures), which makes the errors independent with unit variance."""
        return np.asarray(np.linalg.inv(np.linalg.cholesky(self.covariance())))

    def log_evidence(self, best: Maximum) -> float:
        """Return the logarithm of the probability of the figures up to a constant, by Laplace's approximation."""
        curvature = np.linalg.slogdet(best.jacobian.T @ best.jacobian)[1]
        return float(np.log(np.diag(self.whitening)).sum() - (best.deviance + curvature) / 2)

    def slopes(self, best: Maximum) -> FloatArray:
        """Return the derivatives of the logarithms of the predictions at the maximum (figures, free)."""
        return np.asarray(np.linalg.solve(self.whitening, best.jacobian[: len(self.sd)]))

    def log_posterior(self, log_points: FloatArray) -> FloatArray:
        """Return the log posterior up to a constant (draws,)."""
        return np.asarray(-(self.residuals(log_points) ** 2).sum(axis=-1) / 2)


def fit_table(system: TableSystem[Any], rows: Sequence[LoadTestRow], *, seed: int = 1) -> Fitted:
    """Fit a system to rows of a load-test table.

    Parameters
    ----------
    system : TableSystem
        The system.
    rows : sequence of LoadTestRow
        The rows.
    seed : int
        Seed of the ensemble.

    Returns
    -------
    Fitted
        The calibration, which holds the rows.

    Raises
    ------
    InputError
        If no row has a figure to fit, or a column is missing or wrong.
    """
    check_requests(rows)
    _check_groups(system, rows)
    read = system.read(rows)
    most = max((row.measured[NODE_CPU] for row in read if NODE_CPU in row.measured), default=100.0)
    if most <= 1:
        raise InputError(f"node_cpu_percent is at most {most:g}: give percent, such as 30, and no share")
    scatter = scatter_of(read)
    figures = figures_of(read, scatter)
    if not figures:
        raise InputError(
            f"the table has no figure to fit: fill one of the columns {', '.join((*QUANTITIES, NODE_CPU))}"
        )
    parameters = unseen(system.priors(read), (row.source for row in rows))
    first = _Problem(system, read, figures, parameters)
    found = _with_structure(_with_effects(first, *_searched(first, system.starts(read, parameters)), _REFINED))
    whole, problem, best, effects, scatter = found.whole, found.problem, found.best, found.effects, found.scatter
    errors = problem.logs - problem.predicted(best.log_point[None])[0]
    if effects is not None:
        effects = replace(effects, log_sd=effects.learnt(errors, problem.other_errors()))
    scatter = _learnt(problem.with_scatter(scatter, effects), best, problem.slopes(best), errors, scatter)
    problem = problem.with_scatter(scatter, effects)
    best = maximum(problem, best.log_point, _REFINED)
    rounds = min(max(_SOLVED // len({row.layout for row in read}), _FEWEST), _MOST)
    drawn = ensemble(problem, best, DRAWS, rounds, _PROPOSALS, seed)
    of_layouts = _of_layouts(problem, effects, drawn.log_points, seed)
    cells = tuple(cells_of(row) for row in rows)
    points = _with_the_others(whole, problem, drawn.log_points, seed)
    points = np.concatenate([points, *(each[:, None] for each in of_layouts.values())], axis=-1)
    draws = tuple(tuple(rounded(float(value)) for value in row) for row in np.exp(points))
    logs = problem.straight.logs(best.log_point[None])[0]
    probable = dict(zip((each.name for each in problem.free), np.exp(logs).tolist(), strict=True))
    return Fitted(
        system=system.name,
        version=version("capplan"),
        seed=seed,
        data_hash=hash_of(cells),
        code="",
        names=(*(each.name for each in whole.free), *of_layouts),
        most_probable=(
            *(rounded(probable.get(each.name, each.value)) for each in whole.free),
            *(rounded(float(np.exp(np.median(each)))) for each in of_layouts.values()),
        ),
        draws=draws,
        fitted_parameters=sum(each.kind == "fitted" for each in whole.free),
        effective_parameters=rounded(max(best.effective_parameters, 0.0)),
        posterior=Posterior(rounded(drawn.effective_size), 0, 0.0, 0.0, rounded(laplace_distance(best, drawn))),
        hypotheses=(),
        figures=(),
        left_out=(),
        nested=(),
        table=FittedTable(
            cells,
            {name: rounded(value) for name, value in scatter.items()},
            {
                **{
                    each.name: (each.value, rounded(float(sd)))
                    for each, sd in zip(whole.free, whole.spread, strict=True)
                },
                **_scatter_of_layouts(system, effects),
            },
        ),
    )


@dataclass(frozen=True)
class _Found:
    """The most probable point of a problem with layout factors; `whole` has all parameters."""

    whole: _Problem
    problem: _Problem
    best: Maximum
    effects: Effects | None
    scatter: dict[str, float]


def _with_effects(whole: _Problem, problem: _Problem, best: Maximum, most: int) -> _Found:
    """Search again with layout factors and errors by chance; return the most probable point."""
    effects = problem.effects_at(best.log_point)
    scatter = scatter_of(problem.rows, None if effects is None else ON_CURVES)
    problem = problem.with_scatter(scatter, effects, best.log_point)
    return _Found(whole, problem, maximum(problem, best.log_point, most), effects, scatter)


def _with_structure(found: _Found) -> _Found:
    """Climb to the model structure that the figures make most probable; return its most probable point."""
    for name, values in found.whole.system.structures.items():
        usual = next(each.value for each in found.whole.parameters if each.name == name)
        at = int(np.argmin(np.abs(np.log(np.array(values) / usual))))  # a backtest displaces priors
        for step in (1, -1):
            began = at
            while 0 <= at + step < len(values):
                other = _structured(found, name, values[at + step])
                if other.problem.log_evidence(other.best) < found.problem.log_evidence(found.best) + _BETTER:
                    break
                found, at = other, at + step
            if at != began:
                break
    return found


def _structured(found: _Found, name: str, value: float) -> _Found:
    """Return the most probable point under another structure; the search starts at the known point."""
    parameters = [replace(each, value=value) if each.name == name else each for each in found.whole.parameters]
    whole = _Problem(found.whole.system, found.whole.rows, found.whole.figures_to_fit, parameters)
    problem = whole.of([each.name for each in found.problem.free])
    start = problem.straight.points(found.problem.straight.logs(found.best.log_point[None]))[0]
    return _with_effects(whole, problem, maximum(problem, start, _SEARCHED), _REFINED)


def _with_the_others(whole: _Problem, problem: _Problem, points: FloatArray, seed: int) -> FloatArray:
    """Return draws of all parameters' logarithms; parameters that change no figure are drawn from their priors.

    The draws respect the priors' correlations with the other parameters.
    """
    random, count = np.random.default_rng([seed, 1]), len(points)
    names = [each.name for each in whole.free]
    moving = [names.index(each.name) for each in problem.free]
    others = [at for at in range(len(names)) if at not in moving]
    found = np.empty((count, len(names)))
    found[:, moving] = problem.straight.logs(points)
    known = whole.prior[np.ix_(moving, moving)]
    gain = np.linalg.solve(known, whole.prior[np.ix_(moving, others)]).T
    left = whole.prior[np.ix_(others, others)] - gain @ whole.prior[np.ix_(moving, others)]
    levels = [(random.permutation(count) + 0.5) / count for _ in others]
    if others:
        means = whole.centre[others] + (found[:, moving] - whole.centre[moving]) @ gain.T
        found[:, others] = means + ndtri(np.stack(levels, axis=-1)) @ np.linalg.cholesky(left).T
    return found


def _check_groups(system: TableSystem[Any], rows: Sequence[LoadTestRow]) -> None:
    groups = list(dict.fromkeys(map(system.group, rows)))
    if len(groups) > 1:
        raise InputError(
            f"the table has rows of {len(groups)} workloads or versions, {groups[0]!r} and {groups[1]!r} among them, "
            f'and {system.name} fits one at a time: keep one by --train, such as "{_what_differs(rows)}"'
        )


def _what_differs(rows: Sequence[LoadTestRow]) -> str:
    """Return a comparison that keeps some of the rows: of a column in which they differ."""
    columns = ("version", "request_class", "row_bytes", "read_fraction")
    values = {each: [value for row in rows if (value := getattr(row, each)) is not None] for each in columns}
    column = next((each for each in columns if len(set(values[each])) > 1), "run_id")
    return f"{column} == {next(iter(values.get(column, [rows[0].run_id])))!r}"


def _searched(whole: _Problem, starts: Sequence[Mapping[str, float]]) -> tuple[_Problem, Maximum]:
    """Return the problem with the parameters that move a figure, and its most probable point.

    The check runs at the prior medians, at likely prior draws, and again at the point found: a parameter such as the
    length of pauses changes nothing where pauses are rare.
    """
    likely = whole.likeliest(_LIKELIEST)
    moving = whole.moving(np.stack([whole.centre, *likely]))
    problem = whole.of(moving)
    best = _best(problem, starts, likely[:, [at for at, each in enumerate(whole.free) if each.name in moving]])
    for _ in range(_FREED):
        found = whole.centre.copy()
        found[[each.name in moving for each in whole.free]] = problem.straight.logs(best.log_point[None])[0]
        more = {*moving, *whole.moving(found[None])}
        if len(more) == len(moving):
            break
        moving = [each.name for each in whole.free if each.name in more]
        problem = whole.of(moving)
        known = [at for at, each in enumerate(whole.free) if each.name in more]
        best = maximum(problem, problem.straight.points(found[None, known])[0])
    return problem, best


def _best(problem: _Problem, starts: Sequence[Mapping[str, float]], likely: FloatArray) -> Maximum:
    """Search from the prior medians, from `starts` (factors on the medians), and from likely points (n, free)."""
    moves = np.log([[start.get(each.name, 1.0) for each in problem.free] for start in ({}, *starts)])
    starts_of = problem.straight.points(np.concatenate([problem.centre + moves, likely]))
    room = _ROOM * problem.spread  # the search has bounds
    return best_of(problem, list(np.clip(starts_of, problem.centre - room, problem.centre + room)), _SEARCHED)


def _of_layouts(problem: _Problem, effects: Effects | None, log_points: FloatArray, seed: int) -> dict[str, FloatArray]:
    """Return draws of each layout's log factors by name; the factors of a single layout are 1."""
    layouts, _ = problem.layouts()
    if effects is None:
        drawn = np.zeros((len(log_points), len(layouts), len(problem.system.effects)))
    else:
        points, copies = np.unique(log_points, axis=0, return_inverse=True)  # resampling repeats points
        errors = (problem.logs - problem.predicted(points))[copies]
        drawn = effects.drawn(errors, problem.other_errors(), np.random.default_rng([seed, 2]))
    return {
        name_of(name, layout): drawn[:, number, at]
        for number, layout in enumerate(layouts)
        for at, name in enumerate(problem.system.effects)
    }


def _scatter_of_layouts(system: TableSystem[Any], effects: Effects | None) -> dict[str, tuple[float, float]]:
    """Return how layout factors scatter; relative to a single fitted layout, other layouts scatter more.

    The logarithm of the ratio of two factors has twice the variance of each.
    """
    usual = math.sqrt(2) * np.array(list(system.effects.values())) if effects is None else effects.log_sd
    return {name_of(name): (1.0, rounded(float(sd))) for name, sd in zip(system.effects, usual, strict=True)}


def _learnt(
    problem: _Problem, best: Maximum, slopes: FloatArray, errors: FloatArray, scatter: Mapping[str, float]
) -> dict[str, float]:
    """Return the scatter, updated from the fit's errors (figures,); slopes are those of `_Problem.slopes`."""
    of_priors = best.jacobian[len(errors) :]
    quantities = [each.quantity for each in problem.figures_to_fit]
    return learnt_scatter(
        quantities, errors, problem.sd, problem.covariance(), slopes, of_priors.T @ of_priors, scatter
    )


@lru_cache(maxsize=8)  # rows take long to read
def _tested(system: TableSystem[Any], fitted: Fitted) -> tuple[Any, ...]:
    """Return the layouts with fitted factors."""
    layouts = dict.fromkeys(system.alike(row.layout) for row in system.read(rows_of(fitted)))
    return tuple(each for each in layouts if any(name_of(name, each) in fitted.names for name in system.effects))


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
    effects = tuple(system.effects)
    unknown = [each for each in dict.fromkeys(map(system.alike, layouts)) if not factors(effects, each, found)]
    if not effects or not unknown:
        return found
    tested = _tested(system, fitted)
    for number, layout in enumerate(unknown):
        given = [*tested, *unknown[:number]] if chance == "own" else tested
        known = correlation([*given, layout], system.scaled)
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
                logs = logs + sd * ndtri((order + 0.5) / len(fitted.draws))
            found[name_of(name, layout)] = np.exp(logs)
    return found


def predict_table(system: TableSystem[Any], fitted: Fitted, rows: Sequence[LoadTestRow]) -> tuple[RowPrediction, ...]:
    """Predict rows of a load-test table.

    Parameters
    ----------
    system : TableSystem
        The system.
    fitted : Fitted
        A calibration by `fit_table`.
    rows : sequence of LoadTestRow
        The rows; figures that they have are not used.

    Returns
    -------
    tuple of RowPrediction
        For each row, its columns of `QUANTITIES`, in order; then the CPU of its nodes, if it was fitted and measured.
    """
    read = system.read(rows)
    values = with_unknown_layouts(system, fitted, (row.layout for row in read))
    wanted = [_wanted(row, fitted) for row in read]
    solved = solved_rows(system, read, values, wanted)
    judge, widening = Judge(system, fitted), Widening(system, fitted)
    by_chance = judge.by_chance(read, wanted)
    found = []
    for number, (row, names, each) in enumerate(zip(read, wanted, solved, strict=True)):
        reason = judge.reason(row, each)
        for name in names:
            band = band_of(each.figures[name], fitted, name, widening.factor(row, name))
            why = reason or by_chance.get((number, name), "")
            found.append(RowPrediction(row.run_id, row.request_class, name, row.measured.get(name), band, not why, why))
    return tuple(found)


def _wanted(row: TableRow, fitted: Fitted) -> list[str]:
    metered = {NODE_CPU} & fitted.its_table.scatter.keys() & row.measured.keys()
    return [*(name for name in QUANTITIES if row.load.kind != "open" or name != THROUGHPUT), *metered]


class Widening:
    """How much more figures of layouts and loads beyond the fitted rows scatter than repeats do.

    Parameters
    ----------
    system : TableSystem
        The system.
    fitted : Fitted
        The calibration.
    """

    def __init__(self, system: TableSystem[Any], fitted: Fitted) -> None:
        self.system, self.fitted = system.of(fitted), fitted
        trained = self.system.read(rows_of(fitted))
        self.most_clients = max((each.load.clients for each in trained if each.load.kind == "closed"), default=0)
        self.layouts: dict[Any, tuple[Extrapolation, Responses]] = {}

    def factor(self, row: TableRow, column: str) -> float:
        """Return the factor of the scatter of a row's figure, at least 1.

        It grows with the doublings beyond the fitted layouts, as in `Case.uncertainty`; that of a percentile grows with
        the doublings beyond the most clients, too.
        """
        if row.layout not in self.layouts:
            far = self.system.extrapolation(row.layout)
            self.layouts[row.layout] = far, self.system.responses(self.fitted, row.layout, far)
        far, responses = self.layouts[row.layout]
        of_times = self.system.classes(row.layout) if row.request_class is None else (row.request_class,)
        figures = (RATE,) if column in (THROUGHPUT, NODE_CPU) else of_times
        found = max(far.factor(self.system.widening, figure, responses) for figure in figures)
        if column in LEVELS and row.load.kind == "closed" and row.load.clients > self.most_clients > 0:
            found *= 1 + self.system.widening * math.log2(row.load.clients / self.most_clients)
        return found


def band_of(draws: FloatArray, fitted: Fitted, name: str, wider: float = 1.0) -> Band:
    """Return the band of what a repeat would measure: the spread of the draws and the scatter around each draw.

    Parameters
    ----------
    draws : array (draws,)
        The figure by parameter draw.
    fitted : Fitted
        The calibration.
    name : str
        Its column.
    wider : float
        Factor of the scatter.
    """
    log_sd = fitted.its_table.scatter[name] * wider
    count = len(draws)
    order = np.random.default_rng([fitted.seed, (*QUANTITIES, NODE_CPU).index(name)]).permutation(count)
    repeated = draws * np.exp(log_sd * ndtri((order + 0.5) / count))
    value = float(np.median(draws))
    low, high = np.quantile(repeated, [0.05, 0.95]).tolist()
    spread = float(np.subtract(*np.quantile(draws, [0.95, 0.05]))) / 2
    return Band(value, min(low, value), max(high, value), Parts(parameter=spread, model_error=value * log_sd * 1.645))
