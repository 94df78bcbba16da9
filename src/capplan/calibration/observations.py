"""What load tests of a system measured, what its model says of each figure, and what a good fit is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from capplan.calibration.case.solution import Solution
from capplan.calibration.evidence.table import PERCENTILES, Evidence
from capplan.calibration.validation.baselines import BASELINES, Baseline
from capplan.models.errors import InputError, nearest
from capplan.models.language.parameter import Parameter, Values
from capplan.models.language.scenario import Scenario, fields_of
from capplan.models.language.units import FloatArray

S = TypeVar("S", bound=Scenario)
Kind = Literal["rate", "time"]
UTILISATION = "utilisation"
_BELOW_CAPACITY = 0.999  # where no time is finite at the capacity


class Observed(Protocol[S]):
    """What observations need of the system that was measured: see `capplan.calibration.system.System`."""

    name: str
    scenario: type[S]
    parameters: tuple[Parameter, ...]

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Every row of evidence."""

    @property
    def reported(self) -> Mapping[str, tuple[str, ...]]:
        """Request classes as reported."""

    def solution(self, scenario: S, values: Values) -> Solution:
        """Analyse a layout."""


@dataclass(frozen=True)
class LoadTest(Generic[S]):
    """One documented load test.

    Attributes
    ----------
    name : str
        The document's name of it.
    fold : str
        The independent scenario that it belongs to; cross-validation leaves out whole folds.
    scenario : Scenario
        Its layout.
    rows : tuple of Evidence
        Its figures that can be compared with the model.
    """

    name: str
    fold: str
    scenario: S
    rows: tuple[Evidence, ...]


@dataclass(frozen=True)
class Goal:
    """A goal that several figures share.

    Attributes
    ----------
    name : str
        What has to be small, in words.
    value, limit : float
        What it is, and the most that it may be.
    share : bool
        Whether they are shares, shown in per cent.
    """

    name: str
    value: float
    limit: float
    share: bool = True

    @property
    def met(self) -> bool:
        """Whether the goal is met."""
        return self.value <= self.limit


class Scored(NamedTuple):
    """How a left-out figure is compared with simple rules.

    Attributes
    ----------
    family : str
        The figures that the rules may learn from; figures of one family measure the same thing.
    size : float
        What the rules scale by, such as the number of nodes or the load.
    group : str
        The figures that a verdict covers together.
    """

    family: str
    size: float
    group: str


class Observations(Generic[S]):
    """What load tests of a system measured, and what its model says of each figure.

    By default, rows of one `scenario` with one layout are a load test, and rows of one `fold` (of one scenario where
    the column is empty) are left out together. The defaults predict

    - rates (unit `1/s`): the capacity,
    - times (unit `s`, a mean or a percentile): at the offered rate of the layout (`tps=...`), at most at the capacity;
      at the capacity where the layout has no rate and times are finite there,
    - `utilisation` (unit `1` or `%`): of the most loaded kind of station, at that rate.

    Attributes
    ----------
    start : mapping of float
        Where the search for the most probable parameters starts, by name; empty: at the medians of the priors.
    choices : tuple of mappings
        What the documents leave open, as fields of the scenario. Each is fitted; the scenario's defaults are kept.
    logarithmic : bool
        Whether repeats scatter in the logarithm: half is then as far off as twice.
    baselines : mapping of functions
        The simple rules that predictions are compared with.
    goals_in_words : str
        What counts as a good fit, for people.
    """

    start: Mapping[str, float] = MappingProxyType({})
    choices: tuple[Mapping[str, str], ...] = ()
    logarithmic: bool = False
    baselines: Mapping[str, Baseline] = BASELINES
    goals_in_words: str = ""

    def __init__(self, system: Observed[S]) -> None:
        self.system = system

    def load_tests(self, choice: Mapping[str, str] | None = None) -> tuple[LoadTest[S], ...]:
        """Return the documented load tests: the rows of one `scenario` with one layout.

        Parameters
        ----------
        choice : mapping of str, optional
            Values of the fields that the documents leave open; the scenario's defaults when left out.

        Raises
        ------
        InputError
            When the `layout` of a row names what is no field of the scenario.
        """
        groups: dict[tuple[str, S], list[Evidence]] = {}
        for row in self.system.evidence:
            if row.use in ("fit", "check") and row.scenario != "all":
                own = replace(row, fold=row.fold or row.scenario)
                groups.setdefault((row.scenario, self._scenario(row, choice or {})), []).append(own)
        return tuple(LoadTest(name, rows[0].fold, layout, tuple(rows)) for (name, layout), rows in groups.items())

    def _scenario(self, row: Evidence, choice: Mapping[str, str]) -> S:
        known = fields_of(self.system.scenario)
        columns = {name: getattr(row, name) for name in ("dcs", "front_nodes", "cass_nodes", "rf", "proxy", "ldap")}
        given = {name: value for name, value in columns.items() if name in known and value is not None}
        for name in row.layout:
            if name not in known:
                raise InputError(f"{row.id}: {name!r} in its layout is no field of the scenario{nearest(name, known)}")
        layout = {name: _read(text) for name, text in row.layout.items()}
        return self.system.scenario(**{**given, **layout, **choice})

    def predicted(self, tests: Sequence[LoadTest[S]], values: Values) -> dict[str, FloatArray]:
        """Return what the model says of every figure of some load tests.

        Parameters
        ----------
        tests : sequence of LoadTest
            The load tests.
        values : mapping
            Parameter values, SI; numbers, or arrays over draws.

        Returns
        -------
        dict of arrays (draws,)
            By row id, SI.

        Raises
        ------
        InputError
            When a row is none of those that the defaults can predict.
        """
        return {row.id: figure for test in tests for row, figure in self._figures(test, values)}

    def _figures(self, test: LoadTest[S], values: Values) -> Iterator[tuple[Evidence, FloatArray]]:
        solution, offered = self.system.solution(test.scenario, values), test.scenario.offered_per_s()
        highest = solution.capacity if solution.finite_at_capacity else _BELOW_CAPACITY * solution.capacity
        figures = solution.at(highest if offered is None else np.minimum(offered, highest))
        for row in test.rows:
            if row.unit == "1/s":
                yield row, solution.capacity
            elif offered is None and not solution.finite_at_capacity:
                raise InputError(f"{row.id} has no offered rate: add tps=... to its layout")
            elif row.quantity == UTILISATION:
                yield row, figures.utilisation(solution.resources[0])
            else:
                yield row, figures.time_s(self._classes(row, figures.asked), _level(row))

    def _classes(self, row: Evidence, asked: Sequence[str]) -> tuple[str, ...]:
        """Return the classes of the network that a row sums up; all that are asked where it names none."""
        reported = self.system.reported
        if row.request_class and row.request_class not in reported:
            known = nearest(row.request_class, reported)
            raise InputError(f"{row.id}: request class {row.request_class!r} does not exist{known}")
        names = (row.request_class,) if row.request_class else asked
        return tuple(name for each in names for name in reported[each])

    def repeatability(self, row: Evidence) -> float:
        """Return the relative standard deviation of a repeat of the load test, besides the rounding."""
        del row
        return 0.05

    def bounds_of(self, row: Evidence) -> tuple[float, float] | None:
        """Return the lowest and highest prediction that meet the goal of a figure, SI; None: it has no goal."""
        del row
        return None

    def kind_of(self, row: Evidence) -> Kind | None:
        """Return whether the error of a left-out figure is one of rates or of times; None: of neither."""
        if row.unit == "s":
            return "time"
        return "rate" if row.unit == "1/s" or row.quantity == UTILISATION else None

    def scored(self, row: Evidence) -> Scored | None:
        """Return how a left-out figure is compared with simple rules; None: it is not."""
        del row
        return None

    def not_scored(self, row: Evidence) -> str:
        """Return why a left-out figure is not scored; empty: it is."""
        del row
        return ""

    def goals(self, medians: Mapping[str, float]) -> tuple[Goal, ...]:
        """Return the goals that several figures share, from the medians of the predictions (SI, by row id)."""
        del medians
        return ()

    def group_of(self, row: Evidence) -> str:
        """Return the group of a measured time; times of one group share a model error."""
        del row
        return ""

    def group(self, scenario: S, request_class: str) -> str:
        """Return the group that the times of a request class of a scenario belong to."""
        del scenario, request_class
        return ""

    def share_of_time(self, test: LoadTest[S], row: Evidence, values: Values) -> float | None:
        """Return the share of time during which a counted quantity is at most the figure; None: does not apply."""
        del test, row, values
        return None


def _level(row: Evidence) -> float | None:
    """Return the level of a percentile; None for a mean."""
    if row.unit == "s" and row.statistic in ("mean", "unspecified"):
        return None
    if row.unit == "s" and row.statistic in PERCENTILES:
        return PERCENTILES[row.statistic]
    raise InputError(f"{row.id}: a {row.statistic} of {row.quantity} needs a prediction of the system's own")


def _read(text: str) -> Any:
    """Read a value of a `layout` column: a number, yes or no, or a word."""
    if text in ("yes", "no"):
        return text == "yes"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
