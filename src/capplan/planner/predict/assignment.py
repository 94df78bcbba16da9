"""How far latencies between idle and full are a guess: the same services, with another queue for each core."""

from __future__ import annotations

from typing import Any

import numpy as np

from capplan.calibration.system import Case
from capplan.models.language.units import FloatArray
from capplan.models.number_words import signed
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import MAX_DROP_RATE, capacity_per_s, solve

_SHARES = (0.5, 0.8)  # of the capacity


def difference(case: Case[Any]) -> dict[str, tuple[float, ...]] | None:
    """Return how much longer mean responses would be with the other assignment of requests to cores.

    Both forms have the same services, at one value of each parameter, and the same rates.

    Parameters
    ----------
    case : Case
        A layout.

    Returns
    -------
    dict of tuples of float, or None
        By reported request class: ratio less 1, at 50 and 80 % of the capacity. None if no station has several servers.
    """
    system, scenario = case.system, case.scenario
    values = system.median_values(case.fitted, scenario)
    other = system.other_assignment(scenario, values)
    if other is None:
        return None
    both = case.middle.analysis, Analysis(other)
    rates = capacity_per_s(both[0], MAX_DROP_RATE) * np.array(_SHARES)[:, None]
    before, after = (_means_s(case, analysis, rates) for analysis in both)
    return {name: tuple(float(each) for each in after[name] / before[name] - 1) for name in before}


def _means_s(case: Case[Any], analysis: Analysis, rates: FloatArray) -> dict[str, FloatArray]:
    point = solve(analysis, rates)
    return {name: point.response_s(*case.system.reported[name])[:, 0] for name in case.system.classes(case.scenario)}


def assignment_note(case: Case[Any]) -> tuple[str, ...]:
    """Return a sentence on that difference; none without a station of several servers."""
    found = difference(case)
    if found is None:
        return ()
    half, most = (max((each[place] for each in found.values()), key=abs) for place in range(len(_SHARES)))
    return (
        "How requests are assigned to cores decides how latency grows between idle and full. With a queue for each "
        "core instead of one for all, or the reverse, the mean response of the same services would change by up to "
        f"{signed(half)} at 50 % of the capacity and {signed(most)} at 80 %. {case.system.notes.assignment}",
    )
