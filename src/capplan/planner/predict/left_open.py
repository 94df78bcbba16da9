"""What the rows that a system was fitted to leave open of an answer, and which row would decide it."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from capplan.calibration.case.solution import Figures
from capplan.calibration.system import Case
from capplan.calibration.tables.fit_table import TableSystem, unloaded
from capplan.calibration.tables.identifiability import Judge
from capplan.calibration.tables.model import Solved
from capplan.calibration.tables.rows import Load, TableRow


def left_open(case: Case[Any], load: Load, solved: Solved) -> tuple[str, ...]:
    """Return a sentence on what the fitted rows do not decide of a layout under a load; none if they do.

    Parameters
    ----------
    case : Case
        The layout with its calibration.
    load : Load
        The load that is asked about.
    solved : Solved
        The layout under it.
    """
    row = TableRow("asked", None, unloaded(case.scenario), load, {})
    why = Judge(cast("TableSystem[Any]", case.system), case.fitted).reason(row, solved)
    return (why[0].upper() + why[1:] + ".",) if why else ()


def left_open_at_a_rate(case: Case[Any], figures: Figures) -> tuple[str, ...]:
    """Return the same for a rate that comes whatever happens, from the figures at it."""
    solution = case.solution
    busy = {name: figures.utilisation(name) for name in solution.resources}
    load = Load("open", rate_per_s=float(np.median(figures.peak_rate)))
    return left_open(case, load, Solved({}, solution.capacity, busy, {}, uneven=False))
