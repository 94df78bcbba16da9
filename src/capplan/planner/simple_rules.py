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
    fold: str
    size: float
    value: float


def said_by_rules(its: Study, rows: Sequence[Evidence]) -> dict[str, dict[str, Said]]:
    """Return what each rule says of each figure that is scored, by row id and rule, from the other scenarios.

    A rule errs as Student's t times the root mean square of its errors in the logarithm, where each other scenario of
    the family is said from the rest.
    """
    points = {
        row.id: _Point(scored.family, row.fold, scored.size, row.value)
        for row in rows
        if (scored := its.scored(row)) is not None
    }
    return {
        name: {rule: said for rule, law in its.baselines.items() if (said := _said(law, list(points.values()), point))}
        for name, point in points.items()
    }


def _said(law: Baseline, points: Sequence[_Point], wanted: _Point) -> Said | None:
    others = [point for point in points if point.family == wanted.family and point.fold != wanted.fold]
    if not others:
        return None
    value = _at(law, others, wanted.size)
    half = _discrepancy(law, others).half_width if value > 0 else math.nan
    return Said(value, value * math.exp(-half), value * math.exp(half))


def _discrepancy(law: Baseline, points: Sequence[_Point]) -> Discrepancy:
    errors: dict[str, list[float]] = {}
    for point in points:
        rest = [other for other in points if other.fold != point.fold]
        if rest:
            said = _at(law, rest, point.size)
            errors.setdefault(point.fold, []).append(math.log(said / point.value) if said > 0 else math.inf)
    if not errors:
        return Discrepancy(math.nan)
    squares = [error**2 for made in errors.values() for error in made]
    return Discrepancy(float(np.sqrt(np.mean(squares))), float(len(errors)))


def _at(law: Baseline, points: Sequence[_Point], size: float) -> float:
    ordered = sorted(points, key=lambda point: point.fold)
    return law(np.array([point.size for point in ordered]), np.array([point.value for point in ordered]), size)
