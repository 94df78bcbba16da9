"""What an answer assumes of the layout and the load, and what the load tests had of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from capplan.calibration.observations import LoadTest
from capplan.calibration.system import Case, System
from capplan.models.language.per_dc import per_dc_text
from capplan.models.language.scenario import Scenario, axes_of, options_of
from capplan.models.number_words import rate
from capplan.models.results import Basis
from capplan.planner.explore.sweep_table import rate_fields
from capplan.planner.proposal.proposal import Assumption

NEVER = "never tested"


def assumptions(its: System[Any], case: Case[Any], planned_tps: float) -> tuple[Assumption, ...]:
    """Return the values of the layout's fields and of the rate, each with what the load tests had.

    Parameters
    ----------
    its : System
        The system.
    case : Case
        The layout.
    planned_tps : float
        The planned peak rate, requests per second.
    """
    tests = its.observations.load_tests()
    return (_rate(its, case, planned_tps, tests), *_data(case), *_fields(case, tests))


def _data(case: Case[Any]) -> Iterator[Assumption]:
    """Yield the data that the answer assumes where the load tests had others."""
    if assumed := case.system.assumed_data(case.scenario):
        yield Assumption("data", "data in Cassandra", assumed, "the fresh data of the tests", "extrapolated")


def _rate(its: System[Any], case: Case[Any], planned: float, tests: Sequence[LoadTest[Any]]) -> Assumption:
    """Return the offered rate; the load tests' highest one is that of other layouts, too."""
    rates = [row.value for test in tests for row in test.rows if row.unit == "1/s"]
    highest = its.highest_measured_rate(case.scenario, tests) or max(rates, default=None)
    tested = NEVER if highest is None else f"up to {rate(highest)} per second"
    basis: Basis = "extrapolated" if highest is None or planned > highest else "interpolated"
    return Assumption("rate", "offered peak rate, requests per second", rate(planned), tested, basis)


def _fields(case: Case[Any], tests: Sequence[LoadTest[Any]]) -> Iterator[Assumption]:
    kind: type[Scenario] = type(case.scenario)
    left_out = {"system", "slo", *rate_fields(kind)}
    axes = axes_of(kind)
    for name, option in options_of(kind).items():
        value = getattr(case.scenario, name)
        if name in left_out or value is None:
            continue
        if name not in case.scenario.given():  # replaced by another field
            continue
        measured = [getattr(test.scenario, name) for test in tests]
        tested, basis = _tested(value, measured, name in axes)
        if name not in axes and not _documented(name, tests):
            tested, basis = f"not documented, taken as {tested}", None
        yield Assumption(name, option.label or name, _text(value), tested, basis)


def _documented(name: str, tests: Sequence[LoadTest[Any]]) -> bool:
    """Whether the documents say what a load test had of a field."""
    rows = (row for test in tests for row in test.rows)
    return any(name in row.layout or getattr(row, name, None) is not None for row in rows)


def _tested(value: Any, measured: Sequence[Any], ranged: bool) -> tuple[str, Basis | None]:
    """Return what the tests had, and how the value lies to it."""
    known = list(dict.fromkeys(each for each in measured if each is not None))
    if not known:
        return NEVER, "extrapolated"
    numbers = [number for each in known for number in _numbers(each)]
    if ranged and numbers and _numbers(value):
        low, high = min(numbers), max(numbers)
        text = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        if all(number in numbers for number in _numbers(value)):
            return text, "measured"
        inside = all(low <= number <= high for number in _numbers(value))
        return text, "interpolated" if inside else "extrapolated"
    return " or ".join(_text(each) for each in known), "measured" if value in known else "extrapolated"


def _numbers(value: Any) -> list[float]:
    if isinstance(value, bool):
        return []
    if isinstance(value, tuple):
        return [float(each) for each in value if isinstance(each, int | float)]
    return [float(value)] if isinstance(value, int | float) else []


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        rows = [each if isinstance(each, tuple) else (each,) for each in value]
        return per_dc_text(value) if all(len(row) == 1 for row in rows) else "; ".join("/".join(row) for row in rows)
    return f"{value:g}" if isinstance(value, float) else str(value)
