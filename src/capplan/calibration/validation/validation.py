"""The result of a validation: figures beside predictions, goals, left-out scenarios, and scores of bands.

Validation of a calibrated system: every figure as fitted, and every scenario as predicted without it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from capplan.answers.verb_answer import VerbAnswer
from capplan.calibration.fit.posterior import Ensemble
from capplan.calibration.fit.refits import figures as figures_of
from capplan.calibration.fit.refits import refits_of, refitted
from capplan.calibration.fit.stages import Progress, Stages, digest, refit_code
from capplan.calibration.validation.backtest import LeftOut, left_out
from capplan.calibration.validation.nearness import Nearness, nearness
from capplan.evidence.table import Evidence
from capplan.files import writable_cache
from capplan.layout.fitted_file import Fitted, FittedFigure, Posterior
from capplan.layout.observations import Goal, Observations
from capplan.layout.system import System

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
    """How well the model or a rule estimates figures of left-out scenarios.

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
    """How many 90 % bands contain their figure in scenarios left out of the fit.

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


@dataclass(frozen=True)
class Validations(VerbAnswer):
    """The JSON that `validate --json` prints.

    Attributes
    ----------
    systems
        The validation of each system that was asked for.
    """

    SCHEMA = "capplan.validation/1"
    UNBOUNDED = (
        *(("Compared", name) for name in ("low", "high", "error")),
        ("LeftOut", "size"),
        *(("IntervalEstimate", name) for name in ("low", "high")),
        *(("Score", name) for name in ("error", "interval_score", "half_width")),
    )

    systems: tuple[Validation, ...]


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
    own, errors = each.estimates[MODEL], dict(each.errors)
    values = (each.fold, each.group, each.family, each.not_scored, own.value, own.low, own.high, errors.pop(MODEL))
    row = dict(zip(_LEFT_OUT, (*values, own.holds(each.documented)), strict=True))
    return {"id": each.id, **row, **{f"{name}_error": error for name, error in errors.items()}}


def own_score(left_out: Sequence[LeftOut]) -> Score | None:
    """Score the model on all scored figures; None if there are none."""
    counted = [each for each in left_out if each.counts]
    return _score(MODEL, counted, counted) if counted else None


def scores(left_out: Sequence[LeftOut]) -> dict[str, Score]:
    """Score the model and each rule on the same figures: those that are scored and that every rule estimates.

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
        float(np.median([abs(each.errors[name]) for each in left_out])),
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


_FAR = 0.1  # highest share of figures that may be further off than `CLOSE`
_ERROR, _HALF_WIDTH = 0.1, 0.25  # goals of left-out scenarios

_KEPT = "The refits come from the fitted file, which this code made from this evidence (--refit repeats them)."
_MADE = "The refits were repeated, because other code made the fitted file or --refit was given."


def stages_of(system: System[Any]) -> int:
    """Return how many times `validate` reports progress at most."""
    return 1 + refits_of(system)


def validate(
    system: System[Any],
    fitted: Fitted | None = None,
    *,
    refit: bool = False,
    progress: Progress = lambda _: None,
) -> Validation:
    """Compare predictions with every documented figure, and with every scenario when fits leave it out.

    Parameters
    ----------
    system : System
        The system.
    fitted : Fitted, optional
        Its calibration; the packaged one by default. Its refits are used if the current code made them.
    refit : bool
        Repeat the refits in any case. This takes minutes; finished stages are saved in the user's cache, so that an
        interrupted validation can resume.
    progress : function
        Called with the name of each stage as it starts.

    Returns
    -------
    Validation
        The comparison, with goals, scores and a verdict.

    Raises
    ------
    InputError
        If the system is not calibrated.
    """
    chosen = fitted or system.fitted()
    if not refit and chosen.code == refit_code(system):
        return report(system, chosen, _KEPT)
    return report(system, _repeated(system, chosen, refit, progress), _MADE)


def _repeated(system: System[Any], fitted: Fitted, again: bool, progress: Progress) -> Fitted:
    """Return the calibration with figures and refits by the current code."""
    cache = writable_cache()
    kept = cache and cache / f"{fitted.system}-refits"
    key = digest(system, fitted.seed, fitted.data_hash, fitted.most_probable, fitted.draws)
    stages = Stages(key, progress, kept)
    if again and stages.complete(stages_of(system)):
        stages.end()
        stages = Stages(key, progress, kept)
    drawn = Ensemble(np.log(np.array(fitted.draws)), 0.0)
    predicted = stages.of("predicting", lambda: figures_of(system, system.observations.load_tests(), drawn))
    refits = refitted(system, fitted.most_probable, fitted.seed, stages)
    for other in cache.glob(f"{fitted.system}-refits.*.stages") if cache else ():
        if other != stages.path:
            other.unlink(missing_ok=True)  # from other code or evidence
    figures = tuple(FittedFigure(*each) for each in predicted)
    return replace(fitted, figures=figures, left_out=refits.left_out, nested=refits.nested)


def report(system: System[Any], fitted: Fitted, refits: str = "") -> Validation:
    """Validate a system by the figures and refits stored in its calibration.

    Parameters
    ----------
    system : System
        The system.
    fitted : Fitted
        Its calibration.
    refits : str
        Origin of the refits, in a plain sentence.

    Returns
    -------
    Validation
        The comparison, with goals, scores and a verdict.
    """
    observations, single = system.observations, fitted.median_values(system.parameters)
    predicted = {figure.id: figure for figure in fitted.figures}
    compared = tuple(
        _compared(observations, system.name, row, predicted[row.id], observations.share_of_time(test, row, single))
        for test in observations.load_tests()
        for row in test.rows
    )
    left = left_out(system, fitted)
    own, scored = own_score(left), scores(left)
    return Validation(
        system=fitted.system,
        figures=compared,
        goals=(
            *observations.goals({name: each.predicted for name, each in predicted.items()}),
            *goals_of(compared, own, scored),
        ),
        goals_in_words=observations.goals_in_words,
        left_out=left,
        own=own,
        scores=scored,
        coverage=coverage(left),
        draws=len(fitted.draws),
        posterior=fitted.posterior,
        fitted_parameters=fitted.fitted_parameters,
        free_parameters=len(fitted.names),
        effective_parameters=fitted.effective_parameters,
        nearness=nearness(system.parameters, fitted.most_probable),
        verdict=_verdict(left),
        refits=refits,
    )


def goals_of(figures: Sequence[Compared], own: Score | None, scored: Mapping[str, Score]) -> tuple[Goal, ...]:
    """Return the goals that every system has: for fitted figures and for left-out scenarios."""
    goals = list(_close(figures))
    if own is not None:
        goals.append(Goal("left-out scenarios: median error", own.error, _ERROR))
        if math.isfinite(own.half_width):
            goals.append(Goal("left-out scenarios: median half-width of the 90 % bands", own.half_width, _HALF_WIDTH))
    return (*goals, *_beside_rules(scored))


def _beside_rules(scored: Mapping[str, Score]) -> Iterator[Goal]:
    """Yield the goals against the best simple rule, on figures that every rule estimates."""
    rules = {name: score for name, score in scored.items() if name != MODEL}
    if not rules:
        return
    own, best = scored[MODEL], min(rules, key=lambda name: rules[name].error)
    yield Goal(f"left-out scenarios: median error, against the best rule ({best})", own.error, rules[best].error)
    banded = [name for name, score in rules.items() if math.isfinite(score.interval_score)]
    if banded:
        sharp = min(banded, key=lambda name: rules[name].interval_score)
        name = f"left-out scenarios: mean interval score, against the best rule ({sharp})"
        yield Goal(name, own.interval_score, rules[sharp].interval_score, share=False)


def goals_of_all(reports: Sequence[Validation]) -> tuple[Goal, ...]:
    """Return the goals that all systems share."""
    return _close([figure for each in reports for figure in each.figures])


def _close(figures: Sequence[Compared]) -> tuple[Goal, ...]:
    sound = [figure for figure in figures if figure.sound]
    if not sound:
        return ()
    far = sum(not figure.close(CLOSE) for figure in sound) / len(sound)
    return (Goal(f"measured figures off by more than 10 % and their rounding (of {len(sound)})", far, _FAR),)


def _compared(
    observations: Observations[Any], system: str, row: Evidence, figure: FittedFigure, share_of_time: float | None
) -> Compared:
    low, high = observations.bounds_of(row) or (None, None)
    statistic = _STATISTICS.get(row.statistic, row.statistic)
    return Compared(
        system=system,
        id=row.id,
        scenario=row.scenario,
        quantity=" ".join(word for word in (row.request_class, row.quantity.replace("_", " "), statistic) if word),
        unit=row.unit,
        documented=row.value,
        low=row.low,
        high=row.high,
        predicted=figure.predicted,
        band_low=figure.low,
        band_high=figure.high,
        error=figure.predicted / row.value - 1,
        sound=row.status == "measured",
        goal_low=low,
        goal_high=high,
        met=None if low is None or high is None else low <= figure.predicted <= high,
        share_of_time=share_of_time,
    )


_STATISTICS = {"mean": "", "ratio": "", "constant": "", "unspecified": "", "maximum": "max"}
"""Words for statistics in the name of a figure; the other statistics keep their name."""


def median_errors(left: Sequence[LeftOut]) -> dict[str, float]:
    """Return the median absolute relative errors of the model and each rule, over figures that every rule estimates."""
    errors = [each.errors for each in left if len(each.estimates) > 1]
    return {name: float(np.median([abs(each[name]) for each in errors])) for name in errors[0]} if errors else {}


def _verdict(left: Sequence[LeftOut]) -> str:
    """Return in words whether the model beats the rules in each group, and how its errors are used."""
    scored = [each for each in left if each.family and each.counts]
    groups = dict.fromkeys(each.group for each in scored)
    errors = {name: median_errors([each for each in scored if each.group == name]) for name in groups}
    sentences = [_verdict_on_group(name, medians) for name, medians in errors.items() if medians]
    if not sentences:
        return f"No left-out scenario could be compared with a simple rule: no two are alike. {_use_of_errors(left)}"
    return f"On left-out scenarios, {' '.join(sentences)} {_use_of_errors(left)}"


def _verdict_on_group(name: str, errors: Mapping[str, float]) -> str:
    best = min((rule for rule in errors if rule != "capplan"), key=lambda rule: errors[rule])
    outcome = "beats" if errors["capplan"] < errors[best] else "does not beat"
    return (
        f"capplan {outcome} the best simple rule for {name}: its median error is {errors['capplan']:.1%}, that of "
        f"{best} {errors[best]:.1%}."
    )


def _use_of_errors(left: Sequence[LeftOut]) -> str:
    """Return in words how the errors widen bands, and which figures are not scored and why."""
    sentences = ["These errors widen the bands of predictions."]
    reasons = dict.fromkeys(each.not_scored for each in left if each.not_scored)
    for reason in reasons:
        folds = dict.fromkeys(each.fold for each in left if each.not_scored == reason)
        some = "Some figures" if any(each.counts and each.fold in folds for each in left) else "Figures"
        sentences.append(f"{some} of {', '.join(folds)} are not scored, because {reason}.")
    alone = [each.id for each in left if each.counts and not each.family]
    if alone and any(each.family for each in left):
        sentences.append(f"No rule estimates {', '.join(alone)}: no other scenario has such a figure.")
    unused = dict.fromkeys(each.fold for each in left if each.counts and not each.widens)
    if unused:
        sentences.append(f"Some figures of {', '.join(unused)} are scored but widen no band.")
    return " ".join(sentences)
