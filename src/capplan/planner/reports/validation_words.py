"""What a validation says, in words and cells of tables: figures with their units, goals, bands, what is missed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from capplan.calibration.study import Goal
from capplan.calibration.validation.estimate import IntervalEstimate
from capplan.calibration.validation.validate import CLOSE, goals_of_all
from capplan.calibration.validation.validation import MODEL, Compared, Coverage, Score, Validation
from capplan.planner.reports.number_words import rate, share, signed, significant


def number(value: float, unit: str) -> str:
    """Return a figure in the unit that people read it in, without that unit: times are in milliseconds."""
    if unit == "s":
        return significant(value * 1e3)
    return rate(value) if unit == "1/s" else significant(value)


def with_unit(value: float, unit: str) -> str:
    """Return a figure with its unit: `4.00 ms`, `7,200/s`, `0.958`."""
    return number(value, unit) + {"s": " ms", "1/s": "/s"}.get(unit, "")


def banded(value: float, low: float, high: float, unit: str) -> str:
    """Return a figure with its band: `7,060 (7,000 to 7,100)`."""
    return f"{number(value, unit)} ({number(low, unit)} to {number(high, unit)})"


def names(figures: Sequence[Compared]) -> dict[str, str]:
    """Return what the figures of a system are called: scenario and quantity, or the id where those are not enough."""
    spoken = {figure.id: f"{figure.scenario} {figure.quantity}" for figure in figures}
    return spoken if len(set(spoken.values())) == len(figures) else {figure.id: figure.id for figure in figures}


def best_rule(scores: Mapping[str, Score]) -> str | None:
    """Return the simple rule with the smallest error; None where no rule says anything."""
    rules = [name for name in scores if name != MODEL]
    return min(rules, key=lambda name: scores[name].error) if rules else None


def sharpest_rule(scores: Mapping[str, Score]) -> str | None:
    """Return the simple rule with the smallest interval score; None where no rule has bands."""
    rules = [name for name in scores if name != MODEL and math.isfinite(scores[name].interval_score)]
    return min(rules, key=lambda name: scores[name].interval_score) if rules else None


def goal_cells(goal: Goal) -> tuple[str, str, str, str]:
    """Return a goal as name, value, limit and verdict."""
    form = _tenths if goal.share else significant
    return goal.name, form(goal.value), form(goal.limit), verdict(goal.met)


def _tenths(value: float) -> str:
    """Return a share to a tenth of a per cent: what just misses a goal must not look as if it met it."""
    return f"{value:.1%}".removesuffix("%").removesuffix(".0") + " %"


def verdict(met: bool | None) -> str:
    """Say whether a goal is met."""
    return "" if met is None else "met" if met else "**missed**"


def judged(report: Validation) -> list[bool]:
    """Return which of the goals are met: those of single figures, then those that figures share."""
    return [each.met for each in report.figures if each.met is not None] + [goal.met for goal in report.goals]


def close(report: Validation) -> list[bool]:
    """Return which of the sound figures are met within 10 % or their own rounding."""
    return [figure.close(CLOSE) for figure in report.figures if figure.sound]


def missed(reports: Sequence[Validation]) -> list[str]:
    """Say each target that is missed, in a sentence."""
    found: list[str] = []
    for report in reports:
        named = names(report.figures)
        found += [_missed_figure(figure, named[figure.id]) for figure in report.figures if figure.met is False]
        found += [_missed_goal(report.system, goal) for goal in report.goals if not goal.met]
    if len(reports) > 1:
        found += [_missed_goal("all systems", goal) for goal in goals_of_all(reports) if not goal.met]
    return found


def _missed_figure(figure: Compared, name: str) -> str:
    limits = f"{number(figure.goal_low or 0.0, figure.unit)} to {with_unit(figure.goal_high or 0.0, figure.unit)}"
    return (
        f"**{figure.system}**, {name}: documented {with_unit(figure.documented, figure.unit)}, capplan says "
        f"{with_unit(figure.predicted, figure.unit)} ({signed(figure.error)}); the goal is {limits}."
    )


def _missed_goal(system: str, goal: Goal) -> str:
    name, value, limit, _ = goal_cells(goal)
    return f"**{system}**, {name}: {value}, where at most {limit} is the goal."


def held(said: IntervalEstimate, documented: float, counts: bool = True) -> str:
    """Say whether a band holds a figure, which way it misses, and whether that counts."""
    way = "held" if said.holds(documented) else "**too low**" if documented > said.high else "**too high**"
    text = way if math.isfinite(said.high) else "no band"
    return text if counts else f"{text}, not counted"


def covered(found: Coverage) -> str:
    """Say how often bands held."""
    if not found.figures:
        return "No scenario has a band of its own."
    return (
        f"Capplan's 90 % bands held {found.held} of {found.figures} figures: {share(found.held / found.figures)}. With "
        f"{found.scenarios} independent scenarios the true share lies between {share(found.low)} and "
        f"{share(found.high)} (Clopper and Pearson, 90 %)."
    )
