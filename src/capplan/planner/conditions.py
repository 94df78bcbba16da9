"""What nobody measured about a layout: up to which value an answer holds, and what it becomes at the expected ones.

Every verb takes its conditions from here, and its verdict from `verdict_of`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from capplan.layout.system import Case
from capplan.models.condition import MOST, Condition, Consequence, Unmeasured, condition
from capplan.models.language.scenario import changed
from capplan.models.results import rounded
from capplan.models.verdict import Verdict
from capplan.planner.sustained import Judged

_WITHIN = 1.002  # ratio of the two values between which a break-even lies
_BESIDE = 1.0008  # the step beyond a guess, so that the next one lies on its other side


def verdict_of(judged: Judged) -> Verdict:
    """Return the verdict on a layout, with what it takes for granted."""
    found = judged.verdict()
    return replace(found, conditions=tuple(_of_verdict(judged, found)))


def _of_verdict(judged: Judged, found: Verdict) -> Iterator[Condition]:
    for about in judged.case.system.unmeasured(judged.case.scenario):
        most = break_even(partial(_margin, judged, found, about), about.value)
        yield condition(about, most, *_capacities(judged.case, about))


def _margin(judged: Judged, found: Verdict, about: Unmeasured, value: float) -> float:
    """Return how far a verdict is from changing at a value, with the simulated latencies of the answer over analytic.

    Without objectives, and for a *yes*, it is the log ratio of the held to the offered rate; else only its sign counts.
    """
    situations = [each.conditions for each in judged.strains.values()]
    other = Judged(
        at(judged.case, about, value), situations, judged.offered_per_s, judged.confidence, given=judged.given
    )
    if found.answer == "yes" and not judged.case.objectives:
        return -max(each.shortfall(judged.confidence) for each in other.strains.values())
    other.relations = judged.relations
    return sign(other.verdict().answer == found.answer)


def of_prediction(case: Case[Any], rate_per_s: float, verdict: Verdict | None) -> tuple[Condition, ...]:
    """Return the conditions of a prediction; without a verdict, the rate is to stay below the median capacity."""
    return tuple(_of_rate(case, rate_per_s)) if verdict is None else verdict.conditions


def _of_rate(case: Case[Any], rate_per_s: float) -> Iterator[Condition]:
    for about in case.system.unmeasured(case.scenario):
        most = break_even(partial(_spare, case, about, rate_per_s), about.value)
        yield condition(about, most, *_capacities(case, about))


def _spare(case: Case[Any], about: Unmeasured, rate_per_s: float, value: float) -> float:
    return math.log(_capacity(case, about, value) / rate_per_s)


def sign(holds: bool) -> float:
    """Return the margin of an answer of which only a yes or no is known."""
    return math.inf if holds else -math.inf


def at(case: Case[Any], about: Unmeasured, value: float) -> Case[Any]:
    """Return a case in which something that nobody measured has a value."""
    return case.changed(changed(case.scenario, **{about.field: value}))


def break_even(margin: Callable[[float], float], start: float) -> float | None:
    """Return the highest value at which an answer stays the same, within 0.2 %; None if it does at `MOST`.

    Parameters
    ----------
    margin : function
        How far an answer is from changing at a value: negative where it has changed; infinite where only its sign is
        known. A finite one falls about as the logarithm of the value rises, which saves steps.
    start : float
        The value in the answer, at which it has not changed.
    """
    low, high, value = start, start * MOST, start * math.exp(min(margin(start), math.log(MOST)))
    while high / low > _WITHIN:
        if not low < value < high:
            value = start * MOST if low == start and high == start * MOST else math.sqrt(low * high)
        spare = margin(value)
        if value == start * MOST and spare >= 0:
            return None
        low, high = (value, high) if spare >= 0 else (low, value)
        value *= math.exp(max(min(spare, 9.0), -9.0)) * (_BESIDE if spare >= 0 else 1 / _BESIDE)
    return low


def _capacities(case: Case[Any], about: Unmeasured) -> tuple[Consequence, Consequence]:
    low, high = (
        Consequence(value=value, capacity_tps=rounded(_capacity(case, about, value))) for value in about.expected
    )
    return low, high


def _capacity(case: Case[Any], about: Unmeasured, value: float) -> float:
    """Return the median capacity of a layout without objectives, requests per second."""
    return float(np.median(at(case, about, value).solution.capacity))
