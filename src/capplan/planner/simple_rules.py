"""What simple rules say of a figure that they have not seen, with the band that their own errors give them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from capplan.calibration.baselines import Baseline
from capplan.calibration.evidence_table import Evidence
from capplan.calibration.study import Study
from capplan.planner.discrepancy import Discrepancy
from capplan.planner.said import Said


class _Point(NamedTuple):
    """A figure that rules learn from."""

    family: str
    unit: str
    fold: str
    size: float
    value: float


def said_by_rules(its: Study, rows: Sequence[Evidence]) -> dict[str, dict[str, Said]]:
    """Return what each rule says of each figure that is scored, by row id and rule, from the other scenarios.

    A rule errs as Student's t times the root mean square of its errors in the logarithm, where each other scenario of
    the family is said from the rest. Where the family has one other scenario only, its errors are those on the other
    families of the same unit, without the scenario that is said.
    """
    points = {
        row.id: _Point(scored.family, row.unit, row.fold, scored.size, row.value)
        for row in rows
        if (scored := its.scored(row)) is not None
    }
    return {
        name: {rule: said for rule, law in its.baselines.items() if (said := _said(law, list(points.values()), point))}
        for name, point in points.items()
    }


def _said(law: Baseline, points: Sequence[_Point], wanted: _Point) -> Said | None:
    unseen = [point for point in points if point.fold != wanted.fold]
    others = _family(unseen, wanted.family)
    if not others:
        return None
    value = _at(law, others, wanted.size)
    half = _discrepancy(law, unseen, wanted).half_width if value > 0 else math.nan
    return Said(value, value * math.exp(-half), value * math.exp(half))


def _family(points: Sequence[_Point], name: str) -> list[_Point]:
    return [point for point in points if point.family == name]


def _discrepancy(law: Baseline, points: Sequence[_Point], wanted: _Point) -> Discrepancy:
    """Estimate how far a rule is off in the family of a figure; `points` are without the scenario of that figure."""
    errors = _errors(law, _family(points, wanted.family))
    if not errors:
        alike = dict.fromkeys(point.family for point in points if point.unit == wanted.unit)
        errors = [error for name in alike for error in _errors(law, _family(points, name))]
    if not errors:
        return Discrepancy(math.nan)
    root_mean_square = float(np.sqrt(np.mean([size**2 for _, size in errors])))
    return Discrepancy(root_mean_square, float(len({fold for fold, _ in errors})))


def _errors(law: Baseline, family: Sequence[_Point]) -> list[tuple[str, float]]:
    """Return a rule's errors in the logarithm, by scenario: each is said from the others of its family, if any."""
    found = []
    for point in family:
        rest = [other for other in family if other.fold != point.fold]
        if rest:
            said = _at(law, rest, point.size)
            found.append((point.fold, math.log(said / point.value) if said > 0 else math.inf))
    return found


def _at(law: Baseline, points: Sequence[_Point], size: float) -> float:
    ordered = sorted(points, key=lambda point: point.fold)
    return law(np.array([point.size for point in ordered]), np.array([point.value for point in ordered]), size)
