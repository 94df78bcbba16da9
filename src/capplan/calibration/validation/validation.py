"""What a validation reports: figures beside the model, goals, scenarios that were left out, bands and their scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from capplan.calibration.fit.fitted_file import Posterior
from capplan.calibration.observations import Goal
from capplan.calibration.validation.backtest import LeftOut

if TYPE_CHECKING:
    import pandas as pd

MODEL = "capplan"
CLOSE = 0.1  # of a documented figure: the goal of all that are measured and not contradicted


@dataclass(frozen=True)
class Compared:
    """One documented figure beside the model (SI).

    Attributes
    ----------
    system, id, scenario, quantity, unit : str
        What it is.
    documented, low, high : float
        The document's figure and the interval of its rounding.
    predicted, band_low, band_high : float
        The model's median and the 90 % band of its parameters.
    error : float
        Signed relative error.
    sound : bool
        Whether it was measured and nothing contradicts it.
    goal_low, goal_high : float or None
        The lowest and the highest prediction that meet the goal; None where the figure has no goal of its own.
    met : bool or None
        Whether the goal is met.
    share_of_time : float or None
        For busy workers: the share of the time in which a policing node has at most the documented number.
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
        """Whether the model is within a share of the figure, or inside the interval of its rounding."""
        return abs(self.error) <= within or self.low <= self.predicted <= self.high


@dataclass(frozen=True)
class Score:
    """How well the model or a rule does on the figures of scenarios that it has not seen.

    Attributes
    ----------
    error : float
        Median of the absolute relative errors.
    interval_score : float
        Mean interval score of the 90 % bands in the logarithm; not a number where there are none.
    half_width : float
        Median of half the width of the bands, as a share of the figure.
    """

    error: float
    interval_score: float
    half_width: float


@dataclass(frozen=True)
class Coverage:
    """How often 90 % bands held figures of scenarios that they had not seen.

    Attributes
    ----------
    figures, held : int
        Figures with a band, and those that were inside.
    scenarios : int
        Independent scenarios that the figures belong to.
    low, high : float
        90 % confidence interval of the share that is held (Clopper and Pearson 1934), as if there were as many figures
        as independent scenarios: those of one scenario are right or wrong together (Korn and Graubard 1998).
    """

    figures: int
    held: int
    scenarios: int
    low: float
    high: float


@dataclass(frozen=True)
class Validation:
    """The report on one system.

    Attributes
    ----------
    system : str
        The system.
    figures : tuple of Compared
        Every documented figure that can be compared.
    goals : tuple of Goal
        Goals that several figures share, then those of the scenarios that were left out.
    goals_in_words : str
        What the goals are.
    left_out : tuple of LeftOut
        Leave-one-scenario-out.
    own : Score or None
        Of capplan, on all figures that are scored; None where there are none.
    scores : dict of Score
        By `capplan` and by rule, on those figures that all rules say something of; empty where there are none.
    coverage : Coverage
        Of capplan's bands.
    draws : int
        Draws of the parameters.
    posterior : Posterior
        How they came about.
    fitted_parameters : int
        Parameters with wide priors.
    free_parameters : int
        All that the figures may move.
    effective_parameters : float
        Parameters that the figures decide.
    verdict : str
        Whether the model beats the baselines, in plain sentences.
    refits : str
        Where the refits come from, in a plain sentence.
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
    verdict: str
    refits: str

    @property
    def passed(self) -> bool:
        """Whether no goal is missed."""
        return all(figure.met is not False for figure in self.figures) and all(goal.met for goal in self.goals)

    def to_frame(self) -> pd.DataFrame:
        """Return the table that the terminal, the CSV, the page and its figures show.

        Returns
        -------
        pandas.DataFrame
            One row per documented figure (SI): the fields of `Compared`; `name`, what it is called among the figures of
            the system; `close`, whether it is within 10 % or its own rounding; those of `_LEFT_OUT`, which are missing
            where a figure was not left out; `<rule>_error`, the signed relative error of each rule, missing where
            the rule gives no estimate.
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
    "group",  # what the verdict speaks of
    "family",  # the figures that the rules learn from; empty: no rule gives an estimate
    "not_scored",  # why it is not scored; empty: it is scored
    "left_out",  # the prediction without the scenario, the ends of its 90 % band, and its signed relative error
    "left_out_low",
    "left_out_high",
    "left_out_error",
    "held",  # whether the band holds the documented figure
)


def _left_out_row(each: LeftOut) -> dict[str, Any]:
    own, errors = each.estimates[MODEL], each.errors()
    values = (each.fold, each.group, each.family, each.not_scored, own.value, own.low, own.high, errors.pop(MODEL))
    row = dict(zip(_LEFT_OUT, (*values, own.holds(each.documented)), strict=True))
    return {"id": each.id, **row, **{f"{name}_error": error for name, error in errors.items()}}


def own_score(left_out: Sequence[LeftOut]) -> Score | None:
    """Score the model on all figures that count."""
    counted = [each for each in left_out if each.counts]
    return _score(MODEL, counted, counted) if counted else None


def scores(left_out: Sequence[LeftOut]) -> dict[str, Score]:
    """Score the model and each rule on the same figures: those that count and that every rule says something of.

    Interval scores are means over the figures where all have one: a straight line may say a negative time.
    """
    shared = [each for each in left_out if each.counts and len(each.estimates) > 1]
    if not shared:
        return {}
    scored = [each for each in shared if all(math.isfinite(score) for score in _interval_scores(each))]
    return {name: _score(name, shared, scored) for name in shared[0].estimates}


def _interval_scores(each: LeftOut) -> list[float]:
    return [said.interval_score(each.documented) for said in each.estimates.values()]


def _score(name: str, left_out: Sequence[LeftOut], banded: Sequence[LeftOut]) -> Score:
    """Score errors and widths on some figures, and intervals on those where there are any."""
    intervals = [each.estimates[name].interval_score(each.documented) for each in banded]
    intervals = [score for score in intervals if not math.isnan(score)]
    widths = [each.estimates[name].half_width() for each in left_out]
    return Score(
        float(np.median([abs(each.errors()[name]) for each in left_out])),
        float(np.mean(intervals)) if intervals else math.nan,
        float(np.median([width for width in widths if not math.isnan(width)] or [math.nan])),
    )


def coverage(left_out: Sequence[LeftOut], level: float = 0.9) -> Coverage:
    """Count how often capplan's bands held the figures that count."""
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
