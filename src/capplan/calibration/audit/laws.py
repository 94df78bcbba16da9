"""Laws in the shapes that the figures of more than one system take: what must not fall, what must be one constant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from capplan.calibration.audit.finding import Finding, at_least, compare
from capplan.calibration.evidence.interval import Interval
from capplan.calibration.evidence.table import Evidence


@dataclass(frozen=True)
class Candidate:
    """What some rows give for a quantity, and what to call them in a sentence."""

    label: str
    value: Interval
    rows: tuple[Evidence, ...]


def of_row(row: Evidence, label: str) -> Candidate:
    """Take a row as it stands."""
    return Candidate(label, row.interval, (row,))


def never_falls(name: str, law: str, series: Sequence[Candidate], what: str, unit: str) -> Finding:
    """Judge the deepest fall within `series`, which stands in the order in which it must not fall.

    `what` names the quantity, such as "the mean time on 3 nodes"; labels complete "From ... to ...".
    """
    before, after = min(combinations(series, 2), key=lambda pair: pair[1].value.value - pair[0].value.value)
    sentence = f"From {before.label} to {after.label} {what} should be {{expected}}, the document has {{documented}}."
    rows = before.rows + after.rows
    return compare(name, law, rows, at_least(before.value), after.value, sentence, unit)


def one_constant(name: str, law: str, candidates: Sequence[Candidate], what: str, unit: str) -> Finding:
    """Judge whether one constant serves every candidate: intervals share a point exactly when every two of them do."""
    least = min(candidates, key=lambda one: one.value.high)
    most = max(reversed(candidates), key=lambda one: one.value.low)
    rows = tuple({row.id: row for row in least.rows + most.rows}.values())
    sentence = f"{what}: {{expected}} from {least.label}, {{documented}} from {most.label}."
    return compare(name, law, rows, least.value, most.value, sentence, unit)
