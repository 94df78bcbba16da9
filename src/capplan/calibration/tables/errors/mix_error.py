"""What the mix of a run does to percentiles of all its requests.

A run has a few reads more or fewer than its share. A percentile whose level is about the share of the faster class then
moves far, from the slowest requests of one class to the fastest of the other: the median of as many reads as writes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from capplan.calibration.tables.errors.layout_effects import name_of
from capplan.calibration.tables.model import solved_rows
from capplan.calibration.tables.rows import LEVELS, TableRow
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import changed
from capplan.models.language.units import FloatArray

if TYPE_CHECKING:
    from capplan.calibration.tables.fit_table import TableSystem

_REQUESTS = 10_000  # of a run, of which each is a read by chance: few, so that the error is rather too large
_AWAY = 2.0  # standard deviations of the share of reads at which percentiles are compared


def share_sd(share: float) -> float:
    """Return the standard deviation of the share of reads of a run, from its mean."""
    return math.sqrt(share * (1 - share) / _REQUESTS)


def mix_errors(
    system: TableSystem[Any], rows: Sequence[TableRow], wanted: Sequence[tuple[int, str]], values: Values
) -> FloatArray:
    """Return how far the mix of a run moves figures: the standard deviations of their logarithms.

    Parameters
    ----------
    system : TableSystem
        The system.
    rows : sequence of TableRow
        The rows.
    wanted : sequence of (int, str)
        Number of the row and column of each figure.
    values : mapping
        One value of each parameter, SI.

    Returns
    -------
    array (figures,)
        0 for what is no percentile of several classes, and for a percentile without bounds.
    """
    found = np.zeros(len(wanted))
    columns: dict[int, list[str]] = {}
    for number, name in wanted:
        if name in LEVELS and _is_mixed(rows[number]):
            columns.setdefault(number, []).append(name)
    if not columns:
        return found
    moved = [(number, side) for number in columns for side in (-1, 1)]
    own, known = [], dict(values)
    for number, side in moved:
        row = rows[number]
        share = row.layout.read_fraction
        moved_share = min(max(share + side * _AWAY * share_sd(share), 0.0), 1.0)
        layout = changed(row.layout, read_fraction=moved_share)
        known.update(_factors_of(system, row.layout, layout, values))
        own.append(replace(row, layout=layout))
    solved = dict(zip(moved, solved_rows(system, own, known, [columns[number] for number, _ in moved]), strict=True))
    for at, (number, name) in enumerate(wanted):
        if name in columns.get(number, ()):
            less, more = (float(solved[number, side].figures[name][0]) for side in (-1, 1))
            if math.isfinite(less) and math.isfinite(more):
                found[at] = abs(math.log(more / less)) / (2 * _AWAY)
    return found


def _is_mixed(row: TableRow) -> bool:
    """Tell whether a row has all requests of a run of reads and others."""
    return row.request_class is None and 0 < getattr(row.layout, "read_fraction", 0.0) < 1


def _factors_of(system: TableSystem[Any], layout: Any, other: Any, values: Values) -> Mapping[str, Any]:
    """Return the factors of a layout under the names of another one."""
    names = [(name_of(each, system.alike(layout)), name_of(each, system.alike(other))) for each in system.effects]
    return {its: values[own] for own, its in names if own in values}
