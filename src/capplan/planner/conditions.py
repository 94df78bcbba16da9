"""What nobody measured about a layout: up to which value an answer holds, and what it becomes at the expected ones.

Every verb takes its conditions from here, and its verdict from `verdict_of`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from capplan.answers.condition import Condition, Consequence, Unmeasured, condition
from capplan.answers.results import rounded
from capplan.answers.verdict import Answer, Verdict
from capplan.layout.case import Case
from capplan.layout.components import MeasuredRange
from capplan.models.language.scenario import changed
from capplan.planner.assumed_pauses import assumed_pauses
from capplan.planner.sustained import Judged, Strains

_WITHIN = 0.01  # log ratio of the two values between which a break-even lies
_BESIDE = 0.004  # the step beyond a guess, so that the next one lies on its other side
_LEAST_RISK = 1e-4  # risks are shares of some hundreds of draws


def verdict_of(judged: Judged) -> Verdict:
    """Return the verdict on a layout, with what it takes for granted."""
    found = judged.verdict()
    return replace(found, conditions=tuple(_of_verdict(judged, found)))


def _of_verdict(judged: Judged, found: Verdict) -> Iterator[Condition]:
    for about in unmeasured(judged.case, judged.offered_per_s):
        ends = partial(_capacities, judged.case, about)
        margin = cache(partial(_margin, judged, "yes" if about.drawn else found.answer, about))
        if not about.drawn and found.answer == "no":  # more work leaves it a no
            yield condition(about, None, *ends(None))
        elif not about.drawn or found.answer == "yes" or margin(about.looked_at[0]) >= 0:
            yield from decisive(about, margin, ends)


def unmeasured(case: Case[Any], offered_per_s: float) -> Iterator[Unmeasured]:
    """Yield what the objectives of a layout depend on, at an offered rate, and nobody measured."""
    yield from case.system.component(MeasuredRange).unmeasured(case.scenario)
    pauses = assumed_pauses(case, offered_per_s)
    if pauses is not None:
        yield pauses


def decisive(
    about: Unmeasured, margin: Callable[[float], float], ends: Callable[[float | None], Iterable[Consequence]]
) -> Iterator[Condition]:
    """Yield a condition of an answer, unless it is a drawn one whose likely values all give the same answer.

    Parameters
    ----------
    about : Unmeasured
        What nobody measured.
    margin : function
        As for `break_even`.
    ends : function
        Returns what the answer becomes at the expected values; a function of the break-even.
    """
    margin, (least, most) = cache(margin), about.looked_at
    if about.drawn and not margin(most) < 0 <= margin(least):
        return
    found = break_even(margin, least, most)
    yield condition(about, found, *ends(found))


def _margin(judged: Judged, wanted: Answer, about: Unmeasured, value: float) -> float:
    """Return how far a verdict is from another than wanted, with the simulated latencies of the answer over analytic.

    Without objectives and limits of nodes, and for a *yes*, it is the log ratio of the held to the offered rate, else
    that of risks.
    """
    situations = [each.conditions for each in judged.strains.values()]
    other = Judged(
        at(judged.case, about, value), situations, judged.offered_per_s, judged.confidence, given=judged.given
    )
    alone = spare_of_rate(other.strains, other.limits, judged.confidence) if wanted == "yes" else None
    if alone is not None:
        return alone
    other.relations = judged.relations
    verdict, limits = other.verdict(), {"yes": 1 - judged.confidence, "no": judged.confidence}
    nearest = min(
        (limits[each] for each in limits if wanted in (each, "uncertain")), key=lambda x: abs(x - verdict.risk)
    )
    return by_risk(verdict.risk, nearest, same=verdict.answer == wanted)


def spare_of_rate(strains: Strains, limits: Sequence[object], confidence: float) -> float | None:
    """Return the log ratio of the held to the offered rate; None if objectives or limits of nodes count, too."""
    if limits or any(each.case.objectives for each in strains.values()):
        return None
    return -max(each.shortfall(confidence) for each in strains.values())


def of_prediction(case: Case[Any], rate_per_s: float, verdict: Verdict | None) -> tuple[Condition, ...]:
    """Return the conditions of a prediction; without a verdict, the rate is to stay below the median capacity."""
    return tuple(_of_rate(case, rate_per_s)) if verdict is None else verdict.conditions


def _of_rate(case: Case[Any], rate_per_s: float) -> Iterator[Condition]:
    for about in case.system.component(MeasuredRange).unmeasured(case.scenario):
        yield from decisive(about, partial(_spare, case, about, rate_per_s), partial(_capacities, case, about))


def _spare(case: Case[Any], about: Unmeasured, rate_per_s: float, value: float) -> float:
    return math.log(_capacity(case, about, value) / rate_per_s)


def by_risk(risk: float, limit: float, *, same: bool) -> float:
    """Return the margin of an answer that a risk decides: its log ratio to the limit, below 0 unless it is the same."""
    distance = abs(math.log(max(limit, _LEAST_RISK) / max(risk, _LEAST_RISK))) + _LEAST_RISK
    return distance if same else -distance


def at(case: Case[Any], about: Unmeasured, value: float) -> Case[Any]:
    """Return a case in which something that nobody measured has a value."""
    return case.beside(changed(case.scenario, **{about.field: about.as_field(value)}))


def break_even(margin: Callable[[float], float], start: float, most: float) -> float | None:
    """Return the highest value at which an answer stays the same, within 1 %; None if it does at the most.

    Parameters
    ----------
    margin : function
        How far an answer is from changing at a value: negative where it has changed. The first guess is right where it
        falls as the logarithm of the value rises; where it is infinite, only its sign is known.
    start : float
        A value at which it has not changed.
    most : float
        The highest value that is looked at.
    """
    at_most, low, spare = math.log(most), math.log(start), margin(start)
    for step in (0.0, _BESIDE, math.inf):
        high = min(low + spare + step, at_most)
        short = margin(math.exp(high))
        if short < 0:
            break
        if high == at_most:
            return None
        low, spare = high, short
    by_halves = True
    while high - low > _WITHIN:
        before, by_halves = high - low, not by_halves
        value = (low + high) / 2 if by_halves else _between(low, spare, high, short)
        found = margin(math.exp(value))
        if found >= 0:
            low, spare = value, found
        else:
            high, short = value, found
        by_halves = by_halves or high - low < before / 2  # else a half comes next: one end may stay for long
    return math.exp(low)


def _between(low: float, spare: float, high: float, short: float) -> float:
    """Return where a line through two margins is 0, a little nearer to the end that is farther away."""
    if math.isinf(spare) or math.isinf(short):
        return (low + high) / 2
    value = low + (high - low) * spare / (spare - short)
    value += math.copysign(_BESIDE, (low + high) / 2 - value)
    return min(max(value, low + _BESIDE), high - _BESIDE)


def _capacities(case: Case[Any], about: Unmeasured, _break_even: float | None) -> Iterator[Consequence]:
    for value in () if about.drawn else about.expected:  # what is drawn is about times, and moves no capacity
        yield Consequence(value=value, capacity_tps=rounded(_capacity(case, about, value)))


def _capacity(case: Case[Any], about: Unmeasured, value: float) -> float:
    """Return the median capacity of a layout without objectives, requests per second."""
    return float(np.median(at(case, about, value).solution.capacity))
