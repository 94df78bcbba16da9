"""Estimates the time of an answer before it begins, to limit what one command computes without consent.

The estimates are to an order of magnitude. The time of a layout grows with the number of pairs of data centres, and
hardly with the number of machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from capplan.errors import InputError
from capplan.models.language.scenario import Scenario
from capplan.simulator.effort import CONSENT, LONGEST_S

if TYPE_CHECKING:
    from capplan.planner.size.search import Family
    from capplan.planner.sweep import Sweep, SweepEngine


LONGEST_LAYOUT_S = 60.0
_SOLVING_S, _SOLVING_OF_PAIR_S = 0.5, 0.05  # openprovider with 1 to 50 data centres: 0.6 s to 128 s
_POINT_S, _POINT_OF_PAIR_S = 0.05, 0.012  # of a sweep
_RATE_S: dict[SweepEngine, float] = {"analytic": 0.005, "compiled": 3.0}
_SOLVED_OF_FAMILY = 10  # layouts of a family that a sizing solves


def layout_s(scenario: Scenario) -> float:
    """Return the time to solve a layout on a nominal machine, in seconds, without its simulation."""
    return _SOLVING_S + _SOLVING_OF_PAIR_S * _dcs(scenario) ** 2


def sweep_s(sweep: Sweep) -> float:
    """Return the time of a sweep on one processor of a nominal machine, in seconds."""
    layouts = [layout.scenario for layout in sweep.layouts if layout.scenario is not None]
    rates = len(sweep.rates.values) * _RATE_S[sweep.engine]
    return sum(_point_s(_dcs(each)) + rates for each in layouts)


def sizing_s(base: Scenario, families: Iterable[Family]) -> float:
    """Return the time of a search for the cheapest layout on one processor of a nominal machine, in seconds."""
    layouts = ((min(each.layouts, _SOLVED_OF_FAMILY), each.fixed.get("dcs", _dcs(base))) for each in families)
    return sum(count * _point_s(int(dcs)) for count, dcs in layouts)


def check_layout(scenario: Scenario, situations: int = 1) -> None:
    """Refuse a layout that takes longer than a minute to solve in the given number of situations.

    Raises
    ------
    InputError
        Names the estimate, the limit, and the option that accepts it.
    """
    what, fewer = f"a layout of {_dcs(scenario)} data centres", "data centres"
    if situations != 1:
        what, fewer = f"{what} in {situations} situations", "data centres or situations"
    _check_solving(f"{what} takes", situations * layout_s(scenario), fewer)


def check_layouts(scenarios: Sequence[Scenario]) -> None:
    """Refuse layouts that together take longer than a minute to solve.

    Raises
    ------
    InputError
        As for `check_layout`.
    """
    each = " and ".join(str(_dcs(scenario)) for scenario in scenarios)
    _check_solving(f"layouts of {each} data centres take", sum(map(layout_s, scenarios)), "data centres")


def _check_solving(what: str, time_s: float, fewer: str) -> None:
    if time_s > LONGEST_LAYOUT_S:
        raise InputError(
            f"{what} about {_in_words(time_s)} to solve, and the limit is a minute: ask for fewer {fewer}, or add "
            f"{CONSENT}"
        )


def check_sweep(sweep: Sweep, processes: int) -> None:
    """Refuse a sweep that takes longer than an hour on the given number of processors.

    Raises
    ------
    InputError
        As for `check_layout`.
    """
    _check(
        f"a sweep of {sweep.points:,} points takes", sweep_s(sweep) / processes, "take larger steps or shorter ranges"
    )


def check_sizing(base: Scenario, families: Sequence[Family], processes: int) -> None:
    """Refuse a search for the cheapest layout that takes longer than an hour on the given number of processors.

    Raises
    ------
    InputError
        As for `check_layout`.
    """
    time_s = sizing_s(base, families) / min(processes, len(families) or 1)
    _check(f"a search of {len(families):,} families of layouts takes", time_s, "narrow a range")


def _check(what: str, time_s: float, instead: str) -> None:
    if time_s > LONGEST_S:
        raise InputError(f"{what} about {_in_words(time_s)}, and the limit is an hour: {instead}, or add {CONSENT}")


def _point_s(dcs: int) -> float:
    return _POINT_S + _POINT_OF_PAIR_S * dcs**2


def _in_words(time_s: float) -> str:
    return f"{time_s / 60:,.0f} minutes" if time_s < 2 * LONGEST_S else f"{time_s / 3600:,.0f} hours"


def _dcs(scenario: Scenario) -> int:
    return int(getattr(scenario, "dcs", 1))
