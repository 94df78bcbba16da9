"""How a system is calibrated: its experiments, what its model says of each figure, and what a good fit is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from capplan.calibration.evidence.table import Evidence
from capplan.calibration.system import System
from capplan.calibration.validation.baselines import BASELINES, Baseline
from capplan.models.language.parameter import Values
from capplan.models.language.units import FloatArray

Kind = Literal["rate", "time"]


@dataclass(frozen=True)
class Experiment:
    """One documented load test.

    Attributes
    ----------
    name : str
        The document's name of it.
    fold : str
        The independent scenario that it belongs to.
    scenario : Scenario
        Its layout, a scenario of the system.
    rows : tuple of Evidence
        Its figures that can be compared.
    """

    name: str
    fold: str
    scenario: Any
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
        Whether they are shares, so that people read them in per cent.
    """

    name: str
    value: float
    limit: float
    share: bool = True

    @property
    def met(self) -> bool:
        """Whether it is reached."""
        return self.value <= self.limit


class Scored(NamedTuple):
    """How a figure that was left out is set beside simple rules.

    Attributes
    ----------
    family : str
        The figures that the rules may learn from, in words: those of one family measure the same.
    size : float
        What the rules scale by, such as the number of nodes or the load.
    group : str
        The figures that the verdict speaks of together, in words.
    """

    family: str
    size: float
    group: str


def _none(*_: Any) -> None:
    return None


@dataclass(frozen=True)
class Study:
    """The calibration of a system.

    Attributes
    ----------
    system : System
        The system.
    experiments : function
        Returns the independent load tests; takes a choice (see `choices`) or nothing.
    predicted : function
        Returns what the model says of the figures of some experiments, by row id, in SI: arrays over draws.
    repeatability : function
        Returns the relative standard deviation of a repeat of the load test, beside the rounding of a figure.
    logarithmic : bool
        Whether a repeat scatters in the logarithm: where errors are large, half is then as far off as twice.
    bounds_of : function
        Returns the lowest and the highest prediction that meet the goal of a figure (SI); None where it is not judged
        alone.
    kind_of : function
        Returns whether a left-out figure tells of the discrepancy of rates or of times; None: of neither.
    scored : function
        Returns how a left-out figure is set beside simple rules; None: not at all.
    not_scored : function
        Returns why a figure that was left out is not scored, in words: nothing else speaks of what it hangs on, so that
        the prior is asked without it. Empty: it is scored.
    goals_in_words : str
        The goals, for people.
    goals : function
        Returns the goals that several figures share, from what the model says (medians, SI, by row id).
    start : mapping of float
        Where the search for the most probable parameters starts, by name; empty: at the medians of the priors.
    choices : tuple of mappings
        What the documents leave open, as fields of the scenario; each is fitted, the scenario's defaults are kept.
    group_of : function
        Returns the group of a figure of time: figures of one group share a discrepancy.
    group : function
        Returns the group that the times of a request class of a scenario belong to.
    baselines : mapping of functions
        The simple rules.
    share_of_time : function
        Returns the share of the time in which what a figure counts is at most that figure; None: does not apply.
    """

    system: System
    experiments: Callable[..., tuple[Experiment, ...]]
    predicted: Callable[[Sequence[Experiment], Values], dict[str, FloatArray]]
    repeatability: Callable[[Evidence], float]
    bounds_of: Callable[[Evidence], tuple[float, float] | None]
    kind_of: Callable[[Evidence], Kind | None]
    scored: Callable[[Evidence], Scored | None]
    goals_in_words: str
    goals: Callable[[Mapping[str, float]], tuple[Goal, ...]] = lambda _: ()
    start: Mapping[str, float] = field(default_factory=dict)
    choices: tuple[Mapping[str, str], ...] = ()
    logarithmic: bool = False
    not_scored: Callable[[Evidence], str] = lambda _: ""
    group_of: Callable[[Evidence], str] = lambda _: ""
    group: Callable[[Any, str], str] = lambda *_: ""
    baselines: Mapping[str, Baseline] = field(default_factory=lambda: BASELINES)
    share_of_time: Callable[[Experiment, Evidence, Values], float | None] = _none
