"""Validation of a calibrated system: every figure as fitted, and every scenario as predicted without it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from capplan.calibration.fit.posterior import Ensemble
from capplan.calibration.fit.refits import figures as figures_of
from capplan.calibration.fit.refits import refits_of, refitted
from capplan.calibration.fit.stages import Progress, Stages, digest, refit_code
from capplan.calibration.validation.backtest import LeftOut, left_out
from capplan.calibration.validation.priors import nearness
from capplan.calibration.validation.validation import (
    CLOSE,
    MODEL,
    Compared,
    Score,
    Validation,
    coverage,
    own_score,
    scores,
)
from capplan.evidence.table import Evidence
from capplan.layout.fitted_file import Fitted, FittedFigure
from capplan.layout.observations import Goal, Observations
from capplan.layout.system import System
from capplan.models.files import writable_cache

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
    """Compare predictions with every documented figure, and with every scenario by fits without it.

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
    """Return the goals that every system has, for figures as fitted and for left-out scenarios."""
    goals = list(_close(figures))
    if own is not None:
        goals.append(Goal("left-out scenarios: median error", own.error, _ERROR))
        if math.isfinite(own.half_width):
            goals.append(Goal("left-out scenarios: median half-width of the 90 % bands", own.half_width, _HALF_WIDTH))
    return (*goals, *_beside_rules(scored))


def _beside_rules(scored: Mapping[str, Score]) -> Iterator[Goal]:
    """Yield the goals of the figures that all simple rules estimate."""
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
    """Return the median absolute relative errors of the model and of each rule, over figures that all estimate."""
    errors = [each.errors() for each in left if len(each.estimates) > 1]
    return {name: float(np.median([abs(each[name]) for each in errors])) for name in errors[0]} if errors else {}


def _verdict(left: Sequence[LeftOut]) -> str:
    """Return whether the model beats the rules in each group, and how its errors are used."""
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
    """Return how the errors widen bands, and which figures are not scored and why."""
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
