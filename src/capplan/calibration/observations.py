"""What load tests of a system measured, what its model says of each figure, and what a good fit is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from capplan.calibration.evidence.table import Evidence, select
from capplan.calibration.validation.baselines import BASELINES, Baseline
from capplan.models.errors import InputError
from capplan.models.language.network import Network
from capplan.models.language.parameter import Parameter, Values
from capplan.models.language.scenario import Scenario, fields_of
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import MAX_DROP_RATE, capacity_per_s, peak_ratio, solve

S = TypeVar("S", bound=Scenario)
Kind = Literal["rate", "time"]


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

    def network(self, scenario: S, values: Values, rate_per_s: Number, lost: frozenset[str] = frozenset()) -> Network:
        """Compose the system."""


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

    The defaults read one load test per `scenario` of the evidence. They compare rates with the capacity, mean times
    with the response time at that capacity, and percentiles likewise.

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
        """Return the documented load tests; `choice` overrides fields that the documents leave open."""
        rows = [row for row in self.system.evidence if row.use in ("fit", "check") and row.scenario != "all"]
        return tuple(
            LoadTest(name, own[0].fold or name, self._scenario(own[0], choice or {}), own)
            for name in dict.fromkeys(row.scenario for row in rows)
            if (own := select(rows, scenario=name))
        )

    def _scenario(self, row: Evidence, choice: Mapping[str, str]) -> S:
        known = fields_of(self.system.scenario)
        columns = {name: getattr(row, name) for name in ("dcs", "front_nodes", "cass_nodes", "rf", "proxy", "ldap")}
        given = {name: value for name, value in columns.items() if name in known and value is not None}
        layout = {name: _read(text) for name, text in row.layout.items() if name in known}
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
        """
        found: dict[str, FloatArray] = {}
        for test in tests:
            analysis = Analysis(self.system.network(test.scenario, values, 1.0))
            capacity = capacity_per_s(analysis, MAX_DROP_RATE)
            given = test.scenario.offered_per_s()
            rate = capacity if given is None else np.broadcast_to(np.asarray(given, dtype=float), capacity.shape)
            point = solve(analysis, rate if given is None else rate / peak_ratio(analysis))
            for row in test.rows:
                if row.unit == "1/s":
                    found[row.id] = np.asarray(capacity * peak_ratio(analysis))
                elif row.unit == "s":
                    classes = self.system.reported.get(row.request_class, tuple(analysis.share))
                    found[row.id] = np.asarray(point.response_s(*classes))
                else:
                    raise InputError(f"{row.id} is neither a rate nor a time: its system must say how to predict it")
        return found

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
        return {"1/s": "rate", "s": "time"}.get(row.unit)  # type: ignore[return-value]  # dict.get of literals

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
