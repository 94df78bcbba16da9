"""What simple rules say of a figure that they have not seen, with the band that their own errors give them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from capplan.calibration.case.model_error import ModelError
from capplan.calibration.evidence.table import Evidence
from capplan.calibration.observations import Observations
from capplan.calibration.validation.baselines import Baseline
from capplan.calibration.validation.estimate import IntervalEstimate


class _Point(NamedTuple):
    """A figure that rules learn from."""

    family: str
    unit: str
    fold: str
    size: float
    value: float


def estimates_by_rules(its: Observations[Any], rows: Sequence[Evidence]) -> dict[str, dict[str, IntervalEstimate]]:
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
    said: dict[str, dict[str, IntervalEstimate]] = {name: {} for name in points}
    for rule, law in its.baselines.items():
        for family, fold in dict.fromkeys((point.family, point.fold) for point in points.values()):
            asked = {name: each for name, each in points.items() if (each.family, each.fold) == (family, fold)}
            unseen = [point for point in points.values() if point.fold != fold]
            for name, found in _said(law, unseen, asked).items():
                said[name][rule] = found
    return said


def _said(law: Baseline, unseen: Sequence[_Point], asked: Mapping[str, _Point]) -> dict[str, IntervalEstimate]:
    """Say figures of one family and scenario from the other scenarios, if any."""
    first = next(iter(asked.values()))
    others = _family(unseen, first.family)
    if not others:
        return {}
    half = _discrepancy(law, unseen, first).half_width
    return {name: _banded(_at(law, others, point.size), half) for name, point in asked.items()}


def _banded(value: float, half: float) -> IntervalEstimate:
    if value <= 0:
        return IntervalEstimate(value, value, value)
    return IntervalEstimate(value, value * math.exp(-half), value * math.exp(half))


def _family(points: Sequence[_Point], name: str) -> list[_Point]:
    return [point for point in points if point.family == name]


def _discrepancy(law: Baseline, points: Sequence[_Point], wanted: _Point) -> ModelError:
    """Estimate how far a rule is off in the family of a figure; `points` are without the scenario of that figure."""
    errors = _errors(law, _family(points, wanted.family))
    if not errors:
        alike = dict.fromkeys(point.family for point in points if point.unit == wanted.unit)
        errors = [error for name in alike for error in _errors(law, _family(points, name))]
    if not errors:
        return ModelError(math.nan)
    root_mean_square = float(np.sqrt(np.mean([size**2 for _, size in errors])))
    return ModelError(root_mean_square, float(len({fold for fold, _ in errors})))


def _errors(law: Baseline, family: Sequence[_Point]) -> list[tuple[str, float]]:
    """Return a rule's errors in the logarithm, by scenario: each is said from the others of its family, if any."""
    said: dict[tuple[str, float], float] = {}  # figures of one size are said alike
    found = []
    for point in family:
        rest = [other for other in family if other.fold != point.fold]
        if rest:
            asked = (point.fold, point.size)
            said[asked] = said[asked] if asked in said else _at(law, rest, point.size)
            found.append((point.fold, math.log(said[asked] / point.value) if said[asked] > 0 else math.inf))
    return found


def _at(law: Baseline, points: Sequence[_Point], size: float) -> float:
    ordered = sorted(points, key=lambda point: point.fold)
    return law(np.array([point.size for point in ordered]), np.array([point.value for point in ordered]), size)
