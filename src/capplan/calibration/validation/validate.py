"""Holding a calibrated system against its evidence: every figure as fitted, every scenario as said without it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from capplan.calibration.evidence.table import Evidence
from capplan.calibration.fit.fitted_file import Fitted, FittedFigure
from capplan.calibration.fit.posterior import Ensemble
from capplan.calibration.fit.refits import figures as figures_of
from capplan.calibration.fit.refits import refits_of, refitted
from capplan.calibration.fit.stages import Stages, digest, refit_code
from capplan.calibration.observations import Goal, Observations
from capplan.calibration.system import System
from capplan.calibration.validation.backtest import LeftOut, left_out
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
from capplan.models.errors import InputError
from capplan.models.user_cache import user_cache

_FAR = 0.1  # at most this share of them may be further off
_ERROR, _HALF_WIDTH = 0.1, 0.25  # goals of scenarios that were left out

_KEPT = (
    "The refits are those of the fitted file: they were made by this code from this evidence (--refit repeats them)."
)
_MADE = "The refits were repeated: other code made the fitted file, or --refit was given."

Progress = Callable[[str], None]


def stages_of(system: System[Any]) -> int:
    """Return how often `validate` tells its progress at most."""
    return 1 + refits_of(system)


def validate(
    system: System[Any],
    fitted: Fitted | None = None,
    *,
    refit: bool = False,
    progress: Progress = lambda _: None,
) -> Validation:
    """Compare a calibrated system with every documented figure, and each scenario with fits without it.

    Parameters
    ----------
    system : System
        The system.
    fitted : Fitted, optional
        Its calibration; the system's own when left out. The refits in it are used if today's code made them.
    refit : bool
        Repeat the refits in any case: minutes, kept in the user's cache as they come, so that what was interrupted goes
        on.
    progress : function
        Told in words what is being done, if anything takes long.

    Raises
    ------
    InputError
        When the refits cannot be kept.
    """
    chosen = fitted or system.fitted()
    if not refit and chosen.code == refit_code(system):
        return report(system, chosen, _KEPT)
    return report(system, _made_anew(system, chosen, refit, progress), _MADE)


def _made_anew(system: System[Any], fitted: Fitted, again: bool, progress: Progress) -> Fitted:
    """Return the fitted file with figures and refits of today's code."""
    cache = _cache()
    key = digest(system, fitted.seed, fitted.data_hash, fitted.most_probable, fitted.draws)
    stages = Stages(key, progress, cache / f"{fitted.system}-refits")
    if again and stages.complete(stages_of(system)):
        stages.end()
        stages = Stages(key, progress, cache / f"{fitted.system}-refits")
    drawn = Ensemble(np.log(np.array(fitted.draws)), 0.0)
    said = stages.of("predicting", lambda: figures_of(system, system.observations.load_tests(), drawn))
    refits = refitted(system, fitted.most_probable, fitted.seed, stages)
    for other in cache.glob(f"{fitted.system}-refits.*.stages"):
        if other != stages.path:
            other.unlink(missing_ok=True)  # of other code or evidence
    figures = tuple(FittedFigure(*each) for each in said)
    return replace(fitted, figures=figures, left_out=refits.left_out, nested=refits.nested)


def _cache() -> Path:
    folder = user_cache()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error.strerror}; give CAPPLAN_CACHE_DIR another folder") from None
    return folder


def report(system: System[Any], fitted: Fitted, refits: str = "") -> Validation:
    """Report on a calibrated system by the figures and refits that it keeps; `refits` says where those come from."""
    its, single = system.observations, fitted.median_values(system.parameters)
    said = {figure.id: figure for figure in fitted.figures}
    compared = tuple(
        _compared(its, system.name, row, said[row.id], its.share_of_time(test, row, single))
        for test in its.load_tests()
        for row in test.rows
    )
    left = left_out(system, fitted)
    own, scored = own_score(left), scores(left)
    return Validation(
        system=fitted.system,
        figures=compared,
        goals=(*its.goals({name: each.predicted for name, each in said.items()}), *goals_of(compared, own, scored)),
        goals_in_words=its.goals_in_words,
        left_out=left,
        own=own,
        scores=scored,
        coverage=coverage(left),
        draws=len(fitted.draws),
        posterior=fitted.posterior,
        fitted_parameters=fitted.fitted_parameters,
        free_parameters=len(fitted.names),
        effective_parameters=fitted.effective_parameters,
        verdict=_verdict(left),
        refits=refits,
    )


def goals_of(figures: Sequence[Compared], own: Score | None, scored: Mapping[str, Score]) -> tuple[Goal, ...]:
    """Return the goals that every system has: of figures as fitted, and of scenarios that were left out."""
    goals = list(_close(figures))
    if own is not None:
        goals.append(Goal("left out: median error", own.error, _ERROR))
        if math.isfinite(own.half_width):
            goals.append(Goal("left out: median half-width of the 90 % bands", own.half_width, _HALF_WIDTH))
    return (*goals, *_beside_rules(scored))


def _beside_rules(scored: Mapping[str, Score]) -> Iterator[Goal]:
    """Yield the goals of the figures that all simple rules say something of."""
    rules = {name: score for name, score in scored.items() if name != MODEL}
    if not rules:
        return
    own, best = scored[MODEL], min(rules, key=lambda name: rules[name].error)
    yield Goal(f"left out: median error, beside the best rule ({best})", own.error, rules[best].error)
    banded = [name for name, score in rules.items() if math.isfinite(score.interval_score)]
    if banded:
        sharp = min(banded, key=lambda name: rules[name].interval_score)
        name = f"left out: mean interval score, beside the best rule ({sharp})"
        yield Goal(name, own.interval_score, rules[sharp].interval_score, share=False)


def goals_of_all(reports: Sequence[Validation]) -> tuple[Goal, ...]:
    """Return the goals that all systems share."""
    return _close([figure for each in reports for figure in each.figures])


def _close(figures: Sequence[Compared]) -> tuple[Goal, ...]:
    sound = [figure for figure in figures if figure.sound]
    if not sound:
        return ()
    far = sum(not figure.close(CLOSE) for figure in sound) / len(sound)
    return (Goal(f"measured figures further off than 10 % and their own rounding (of {len(sound)})", far, _FAR),)


def _compared(
    its: Observations[Any], system: str, row: Evidence, said: FittedFigure, share_of_time: float | None
) -> Compared:
    low, high = its.bounds_of(row) or (None, None)
    met = None if low is None or high is None else low <= said.predicted <= high
    statistic = _STATISTICS.get(row.statistic, row.statistic)
    figure = " ".join(word for word in (row.request_class, row.quantity.replace("_", " "), statistic) if word)
    what = (system, row.id, row.scenario, figure, row.unit)
    error = said.predicted / row.value - 1
    model = (said.predicted, said.low, said.high)
    sound = row.status == "measured"
    return Compared(*what, row.value, row.low, row.high, *model, error, sound, low, high, met, share_of_time)


_STATISTICS = {"mean": "", "ratio": "", "constant": "", "unspecified": "", "maximum": "max"}
"""Words for statistics; the others are called what they are."""


def median_errors(left: Sequence[LeftOut]) -> dict[str, float]:
    """Median absolute relative error of the model and of each rule, over the figures that all of them say."""
    errors = [each.errors() for each in left if len(each.estimates) > 1]
    return {name: float(np.median([abs(each[name]) for each in errors])) for name in errors[0]} if errors else {}


def _verdict(left: Sequence[LeftOut]) -> str:
    """Say of each group whether the model beats the rules, and what becomes of the errors."""
    scored = [each for each in left if each.family and each.counts]
    groups = dict.fromkeys(each.group for each in scored)
    errors = {name: median_errors([each for each in scored if each.group == name]) for name in groups}
    sentences = [_of_group(name, found) for name, found in errors.items() if found]
    if not sentences:
        return f"No scenario could be left out beside a simple rule: each is of its own kind. {_of_bands(left)}"
    return f"Left out one by one, capplan's {' Its '.join(sentences)} {_of_bands(left)}"


def _of_group(name: str, errors: Mapping[str, float]) -> str:
    best = min((rule for rule in errors if rule != "capplan"), key=lambda rule: errors[rule])
    outcome = "beats" if errors["capplan"] < errors[best] else "does not beat"
    return (
        f"median error of {name} is {errors['capplan']:.1%}; it {outcome} the best baseline, {best}, with "
        f"{errors[best]:.1%}."
    )


def _of_bands(left: Sequence[LeftOut]) -> str:
    """Say how the errors are used, and which figures are not scored, and why."""
    found = ["The bands of predictions are widened by the errors made here."]
    reasons = dict.fromkeys(each.not_scored for each in left if each.not_scored)
    for reason in reasons:
        whose = dict.fromkeys(each.fold for each in left if each.not_scored == reason)
        some = "some figures" if any(each.counts and each.fold in whose for each in left) else "figures"
        found.append(f"Not scored: {some} of {', '.join(whose)}, since {reason}.")
    missed = dict.fromkeys(each.fold for each in left if each.counts and not each.widens)
    if missed:
        found.append(f"Scored, but widening no band: some figures of {', '.join(missed)}.")
    return " ".join(found)
