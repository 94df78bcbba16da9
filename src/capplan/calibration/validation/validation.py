"""The result of a validation: figures beside predictions, goals, left-out scenarios, and scores of bands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from capplan.calibration.validation.backtest import LeftOut
from capplan.calibration.validation.priors import Nearness
from capplan.layout.fitted_file import Posterior
from capplan.layout.observations import Goal

if TYPE_CHECKING:
    import pandas as pd

MODEL = "capplan"
CLOSE = 0.1  # relative error that counts as close: the goal of figures that are measured and not contradicted


@dataclass(frozen=True)
class Compared:
    """One documented figure beside its prediction, SI.

    Attributes
    ----------
    system, id, scenario, quantity, unit : str
        System, row id, scenario, quantity in words, and SI unit.
    documented, low, high : float
        The documented figure and the interval of its rounding.
    predicted, band_low, band_high : float
        Median prediction, and the 90 % band of the parameters.
    error : float
        Signed relative error.
    sound : bool
        Whether it was measured and is not contradicted.
    goal_low, goal_high : float or None
        Lowest and highest prediction that meet its goal; None if the figure has no goal of its own.
    met : bool or None
        Whether the goal is met; None if there is none.
    share_of_time : float or None
        Share of time during which the quantity is at most the figure; None if this does not apply.
    """

    system: str
    id: str
    scenario: str
    quantity: str
    unit: str
    documented: float
    low: float
    high: float
    predicted: float
    band_low: float
    band_high: float
    error: float
    sound: bool
    goal_low: float | None
    goal_high: float | None
    met: bool | None
    share_of_time: float | None

    def close(self, within: float) -> bool:
        """Whether the prediction is within the share `within` of the figure, or inside the interval of its rounding."""
        return abs(self.error) <= within or self.low <= self.predicted <= self.high


@dataclass(frozen=True)
class Score:
    """How well the model or a rule estimates figures of scenarios that it has not seen.

    Attributes
    ----------
    error : float
        Median absolute relative error.
    interval_score : float
        Mean interval score of the 90 % bands in the logarithm; not a number if there are none.
    half_width : float
        Median half-width of the bands, as a share of the figure.
    """

    error: float
    interval_score: float
    half_width: float


@dataclass(frozen=True)
class Coverage:
    """How many 90 % bands contain their figure, in scenarios that they had not seen.

    Attributes
    ----------
    figures, held : int
        Number of figures with a band, and of those inside their band.
    scenarios : int
        Number of independent scenarios of these figures.
    low, high : float
        90 % confidence interval of the share inside (Clopper and Pearson 1934). It counts one figure per independent
        scenario, because figures of one scenario tend to be inside or outside together (Korn and Graubard 1998).
    """

    figures: int
    held: int
    scenarios: int
    low: float
    high: float


@dataclass(frozen=True)
class Validation:
    """The validation of one system.

    Attributes
    ----------
    system : str
        Name of the system.
    figures : tuple of Compared
        Every documented figure that the model predicts.
    goals : tuple of Goal
        Goals that several figures share, then goals of the left-out scenarios.
    goals_in_words : str
        The goals, in words.
    left_out : tuple of LeftOut
        Figures estimated without their scenario.
    own : Score or None
        Score of capplan on all scored figures; None if there are none.
    scores : dict of Score
        Scores of `capplan` and of each rule on the figures that all rules estimate; empty if there are none.
    coverage : Coverage
        Coverage of capplan's bands.
    draws : int
        Number of parameter draws.
    posterior : Posterior
        Diagnostics of the draws.
    fitted_parameters : int
        Number of parameters with wide priors.
    free_parameters : int
        Number of parameters that the fit may change.
    effective_parameters : float
        Number of parameters that the figures determine.
    nearness : Nearness
        Distance of the most probable parameters from the medians of their priors.
    verdict : str
        Whether the model beats the simple rules, in plain sentences.
    refits : str
        Origin of the refits, in a plain sentence.
    """

    system: str
    figures: tuple[Compared, ...]
    goals: tuple[Goal, ...]
    goals_in_words: str
    left_out: tuple[LeftOut, ...]
    own: Score | None
    scores: dict[str, Score]
    coverage: Coverage
    draws: int
    posterior: Posterior
    fitted_parameters: int
    free_parameters: int
    effective_parameters: float
    nearness: Nearness
    verdict: str
    refits: str

    @property
    def passed(self) -> bool:
        """Whether all goals are met."""
        return all(figure.met is not False for figure in self.figures) and all(goal.met for goal in self.goals)

    def to_frame(self) -> pd.DataFrame:
        """Return one table of all figures.

        Returns
        -------
        pandas.DataFrame
            One row per documented figure, SI, with the columns

            - the fields of `Compared`,
            - `name`, a unique name within the system,
            - `close`, whether the prediction is within 10 % or inside the rounding,
            - those of `_LEFT_OUT`, missing if the figure was not left out,
            - `<rule>_error`, the signed relative error of each rule, missing if the rule gives no estimate.
        """
        import pandas as pd  # slow to import

        compared = pd.DataFrame(
            [asdict(each) for each in self.figures], columns=[each.name for each in fields(Compared)]
        )
        compared = compared.astype(dict.fromkeys(("goal_low", "goal_high", "share_of_time"), float))
        names = compared.scenario + " " + compared.quantity
        compared["name"] = names if names.is_unique else compared.id
        compared["close"] = [each.close(CLOSE) for each in self.figures]
        rules = dict.fromkeys(f"{name}_error" for each in self.left_out for name in each.estimates if name != MODEL)
        left_out = pd.DataFrame(map(_left_out_row, self.left_out), columns=["id", *_LEFT_OUT, *rules])
        return compared.merge(left_out, on="id", how="left")


_LEFT_OUT = (
    "fold",  # the independent scenario that was left out
    "group",  # its group in the verdict
    "family",  # the figures that the rules learn from; empty: no rule gives an estimate
    "not_scored",  # why it is not scored; empty: it is scored
    "left_out",  # the prediction without the scenario, the ends of its 90 % band, and its signed relative error
    "left_out_low",
    "left_out_high",
    "left_out_error",
    "held",  # whether the band contains the documented figure
)


def _left_out_row(each: LeftOut) -> dict[str, Any]:
    own, errors = each.estimates[MODEL], each.errors()
    values = (each.fold, each.group, each.family, each.not_scored, own.value, own.low, own.high, errors.pop(MODEL))
    row = dict(zip(_LEFT_OUT, (*values, own.holds(each.documented)), strict=True))
    return {"id": each.id, **row, **{f"{name}_error": error for name, error in errors.items()}}


def own_score(left_out: Sequence[LeftOut]) -> Score | None:
    """Score the model on all scored figures; None if there are none."""
    counted = [each for each in left_out if each.counts]
    return _score(MODEL, counted, counted) if counted else None


def scores(left_out: Sequence[LeftOut]) -> dict[str, Score]:
    """Score the model and each rule on the same figures: scored ones that every rule estimates.

    Interval scores are means over figures for which all have a band.
    """
    shared = [each for each in left_out if each.counts and len(each.estimates) > 1]
    if not shared:
        return {}
    scored = [each for each in shared if all(math.isfinite(score) for score in _interval_scores(each))]
    return {name: _score(name, shared, scored) for name in shared[0].estimates}


def _interval_scores(each: LeftOut) -> list[float]:
    return [estimate.interval_score(each.documented) for estimate in each.estimates.values()]


def _score(name: str, left_out: Sequence[LeftOut], banded: Sequence[LeftOut]) -> Score:
    """Score errors and widths on `left_out`, and intervals on `banded`."""
    intervals = [each.estimates[name].interval_score(each.documented) for each in banded]
    intervals = [score for score in intervals if not math.isnan(score)]
    widths = [each.estimates[name].half_width() for each in left_out]
    return Score(
        float(np.median([abs(each.errors()[name]) for each in left_out])),
        float(np.mean(intervals)) if intervals else math.nan,
        float(np.median([width for width in widths if not math.isnan(width)] or [math.nan])),
    )


def coverage(left_out: Sequence[LeftOut], level: float = 0.9) -> Coverage:
    """Return the coverage of capplan's bands on all scored figures, with a confidence interval of level `level`."""
    from scipy.special import betaincinv

    banded = [each for each in left_out if each.counts and np.isfinite(each.estimates["capplan"].high)]
    held = sum(each.estimates["capplan"].holds(each.documented) for each in banded)
    scenarios = len({each.fold for each in banded})
    if not banded:
        return Coverage(0, 0, 0, 0.0, 1.0)
    successes = held / len(banded) * scenarios
    failures = scenarios - successes
    tail = (1 - level) / 2
    low = float(betaincinv(successes, failures + 1, tail)) if successes > 0 else 0.0
    high = float(betaincinv(successes + 1, failures, 1 - tail)) if failures > 0 else 1.0
    return Coverage(len(banded), held, scenarios, low, high)
