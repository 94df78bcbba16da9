"""What a proposal might be instead: the cheapest layout that survives less or more, or is less or more certain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from capplan.calibration.fit.fitted_file import Fitted
from capplan.calibration.system import System
from capplan.models.language.scenario import Scenario
from capplan.planner.proposal.proposal import Option
from capplan.planner.size.size import SizingQuestion, size
from capplan.planner.size.sizing import SizedLayout, Sizing
from capplan.simulator.experiments.workers import Workers
from capplan.systems.registry import system

CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99)


def survival_options(
    base: Scenario, question: SizingQuestion, fitted: Fitted | None, sizing: Sizing, workers: Workers
) -> tuple[Option, ...]:
    """Return the cheapest layout for each choice of what to survive, from nothing to all losses.

    Parameters
    ----------
    base, question, fitted
        As for `size`.
    sizing : Sizing
        Its answer.
    workers : Workers
        Where layouts are searched.
    """
    its: System[Any] = system(base.system)
    own = tuple(word for word in sizing.conditions if word != "normal")
    alone = [(word,) for word in its.losses]
    more = [(*own, *(word for word in its.losses if word not in own))]
    every = dict.fromkeys([(), *alone, own, *more])
    return tuple(
        _proposed(sizing) if survive == own else _option(base, replace(question, survive=survive), fitted, workers)
        for survive in sorted(every, key=len)
    )


def confidence_options(
    base: Scenario, question: SizingQuestion, fitted: Fitted | None, sizing: Sizing, workers: Workers
) -> tuple[Option, ...]:
    """Return the cheapest layout for each of several confidences, in ascending order.

    Parameters
    ----------
    base, question, fitted, sizing, workers
        As for `survival_options`.
    """
    return tuple(
        _proposed(sizing)
        if confidence == sizing.confidence
        else _option(base, replace(question, confidence=confidence), fitted, workers)
        for confidence in sorted({*CONFIDENCES, sizing.confidence})
    )


def _proposed(sizing: Sizing) -> Option:
    return replace(_of(sizing), proposed=True)


def _option(base: Scenario, question: SizingQuestion, fitted: Fitted | None, workers: Workers) -> Option:
    return _of(size(base, question, workers, fitted))


def _of(sizing: Sizing) -> Option:
    survive = tuple(word for word in sizing.conditions if word != "normal")
    chosen = sizing.chosen
    if chosen is None:
        return Option(survive, sizing.confidence, "", {}, None, _why_not(sizing))
    return Option(survive, sizing.confidence, chosen.layout, chosen.machines, chosen.cost)


def _why_not(sizing: Sizing) -> str:
    reasons: Sequence[str] = [each.reason for each in sizing.impossible]
    nearest: SizedLayout | None = max(sizing.near_misses, key=lambda each: each.sustained_tps, default=None)
    if nearest is None:
        return reasons[-1] if reasons else "no such layout"
    return f"no layout with up to {sum(nearest.machines.values())} machines is certain enough"
