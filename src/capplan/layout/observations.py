"""Observations: measured figures of load tests, their predictions, and the goals of a good fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from capplan.errors import InputError, nearest, one_of
from capplan.evidence.table import PERCENTILES, Evidence
from capplan.layout.baselines import BASELINES, Baseline
from capplan.layout.solution import Solution
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import Scenario, fields_of
from capplan.models.language.units import FloatArray

S = TypeVar("S", bound=Scenario)
Kind = Literal["rate", "time"]
UTILISATION = "utilisation"
_BELOW_CAPACITY = 0.999  # share of the capacity at which times are predicted if they are infinite at the capacity


@dataclass(frozen=True)
class LoadTest(Generic[S]):
    """One documented load test.

    Attributes
    ----------
    name : str
        Its name in the document.
    fold : str
        Its independent scenario; cross-validation leaves out whole folds.
    scenario : Scenario
        Its layout and traffic.
    rows : tuple of Evidence
        Its figures that the model can predict.
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
        What must be small, in words.
    value, limit : float
        The value reached, and the highest value that meets the goal.
    share : bool
        Whether both are shares, shown in per cent.
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
    """How to compare a left-out figure with simple rules.

    Attributes
    ----------
    family : str
        Name of the figures that the rules may learn from; figures of one family measure the same quantity.
    size : float
        The variable that the rules scale by, such as the number of nodes or the load.
    group : str
        Name of the figures that a verdict summarises together.
    """

    family: str
    size: float
    group: str


class Figure(NamedTuple):
    """A figure of a prediction.

    Attributes
    ----------
    quantity : str
        `capacity`, `latency` or `utilisation`.
    subject : str
        The reported request class of a latency (empty: all of them), or the resource of a utilisation.
    statistic : str
        `mean`, `p99` and so on.
    """

    quantity: str
    subject: str = ""
    statistic: str = ""


class Measured(Protocol[S]):
    """What observations need of the system that they are of."""

    scenario: type[S]

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """All rows of evidence about the system."""

    @property
    def reported(self) -> Mapping[str, tuple[str, ...]]:
        """Network classes by the request class that reports combine them into."""

    def solution(self, scenario: S, values: Values, /) -> Solution:
        """Analyse a layout once."""


class Observations(Generic[S]):
    """What load tests of a system measured, and what its model predicts for each figure.

    A system overrides what the defaults do not cover. By default, rows with the same `scenario` and layout are one load
    test, and rows of one `fold` (of one scenario if the column is empty) are left out together. The defaults predict

    - rates (unit `1/s`) as the capacity,
    - times (unit `s`, a mean or a percentile) at the offered rate of the layout (`tps=...`), limited to the capacity;
      without an offered rate, at the capacity, provided that times are finite there,
    - `utilisation` (unit `1` or `%`) as that of the most loaded kind of station, at the same rate.

    Parameters
    ----------
    system : System
        The measured system.

    Attributes
    ----------
    start : mapping of float
        Start of the search for the most probable parameters, by name, SI; empty: the medians of the priors.
    choices : tuple of mappings
        Choices that the documents leave open, as fields of the scenario. Each is fitted, to compare their deviance; the
        calibration uses the scenario's defaults.
    logarithmic : bool
        Whether the logarithm of a figure scatters between repeats: half the figure is then as far off as twice.
    baselines : mapping of functions
        The simple rules that predictions are compared with, by name.
    goals_in_words : str
        The goals, in words for the reader.
    """

    start: Mapping[str, float] = MappingProxyType({})
    choices: tuple[Mapping[str, str], ...] = ()
    logarithmic: bool = False
    baselines: Mapping[str, Baseline] = BASELINES
    goals_in_words: str = ""

    def __init__(self, system: Measured[S]) -> None:
        self.system = system

    def load_tests(self, choice: Mapping[str, str] | None = None, /) -> tuple[LoadTest[S], ...]:
        """Return the documented load tests.

        Parameters
        ----------
        choice : mapping of str, optional
            Values of scenario fields that the documents leave open; the scenario's defaults by default.

        Returns
        -------
        tuple of LoadTest
            One per `scenario` and layout of the evidence.

        Raises
        ------
        InputError
            If the `layout` of a row has a key that is not a field of the scenario.
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
            one_of(known, name, f"{row.id}: {name!r} in its layout is not a field of the scenario")
        layout = {name: _read(text) for name, text in row.layout.items()}
        return self.system.scenario(**{**given, **layout, **choice})

    def predicted(self, tests: Sequence[LoadTest[S]], values: Values) -> dict[str, FloatArray]:
        """Predict every figure of some load tests.

        Parameters
        ----------
        tests : sequence of LoadTest
            The load tests.
        values : mapping
            Parameter values by name, SI; numbers, or arrays (draws,).

        Returns
        -------
        dict of arrays (draws,)
            Predictions by row id, SI.

        Raises
        ------
        InputError
            If the defaults cannot predict a row.
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
        """Return the network classes that a row covers; all classes in the traffic if the row names none."""
        reported = self.system.reported
        if row.request_class and row.request_class not in reported:
            known = nearest(row.request_class, reported)
            raise InputError(f"{row.id}: request class {row.request_class!r} does not exist{known}")
        names = (row.request_class,) if row.request_class else asked
        return tuple(name for each in names for name in reported[each])

    def figure_of(self, row: Evidence) -> Figure | None:
        """Return the figure of a prediction that a row measures; None if there is no such figure.

        Parameters
        ----------
        row : Evidence
            The row.
        """
        if row.unit == "1/s":
            return Figure("capacity")
        if row.quantity == "latency":
            statistic = "mean" if row.statistic == "unspecified" else row.statistic
            return Figure("latency", row.request_class, statistic)
        return None

    def repeatability(self, _row: Evidence, /) -> float:
        """Return the relative standard deviation of a figure between repeats of its load test, without the rounding.

        Parameters
        ----------
        row : Evidence
            The figure.
        """
        return 0.05

    def bounds_of(self, _row: Evidence, /) -> tuple[float, float] | None:
        """Return the lowest and highest prediction that meet a figure's own goal, SI; None if it has none."""
        return None

    def kind_of(self, row: Evidence) -> Kind | None:
        """Return the model error that a left-out figure contributes to; None if it contributes to none."""
        if row.unit == "s":
            return "time"
        return "rate" if row.unit == "1/s" or row.quantity == UTILISATION else None

    def scored(self, _row: Evidence, /) -> Scored | None:
        """Return how to compare a left-out figure with simple rules; None if it is not scored."""
        return None

    def not_scored(self, _row: Evidence, /) -> str:
        """Return why a left-out figure is not scored, as a clause after "because"; empty if it is scored."""
        return ""

    def goals(self, _medians: Mapping[str, float], /) -> tuple[Goal, ...]:
        """Return the goals that several figures share.

        Parameters
        ----------
        medians : mapping of float
            Median predictions by row id, SI.
        """
        return ()

    def group_of(self, _row: Evidence, /) -> str:
        """Return the group of a measured time; all times of one group share a model error."""
        return ""

    def group(self, _scenario: S, _request_class: str, /) -> str:
        """Return the group of times for a request class in a scenario."""
        return ""

    def share_of_time(self, _test: LoadTest[S], _row: Evidence, _values: Values, /) -> float | None:
        """Return the share of time during which a quantity is at most the documented figure.

        Parameters
        ----------
        test, row
            The load test, and its figure.
        values : mapping of float
            One value of each parameter, SI.

        Returns
        -------
        float or None
            The share; None if this does not apply to the figure.
        """
        return None


def _level(row: Evidence) -> float | None:
    """Return the level of a row's percentile; None for a mean."""
    if row.unit == "s" and row.statistic in ("mean", "unspecified"):
        return None
    if row.unit == "s" and row.statistic in PERCENTILES:
        return PERCENTILES[row.statistic]
    raise InputError(
        f"{row.id}: the defaults cannot predict the {row.statistic} of {row.quantity}: override `predicted` in the "
        "system's observations"
    )


def _read(text: str) -> Any:
    """Convert a value of a `layout` column: a number, yes or no, or a word."""
    if text in ("yes", "no"):
        return text == "yes"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
