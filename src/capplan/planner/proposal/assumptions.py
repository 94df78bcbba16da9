"""What an answer assumes, how a customer measures its inputs himself, and what it does not cover."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from capplan.layout.observations import LoadTest
from capplan.layout.system import Case, System
from capplan.models.language.per_dc import per_dc_text
from capplan.models.language.scenario import Scenario, axes_of, options_of
from capplan.models.number_words import rate
from capplan.models.results import Basis
from capplan.planner.explore.sweep import rate_fields
from capplan.planner.predict.prediction import Prediction
from capplan.planner.proposal.proposal import Assumption, MeasuredInput, MetricName
from capplan.planner.size.sizing import Sizing

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


def measured_inputs(its: System[Any], scenario: Scenario) -> tuple[MeasuredInput, ...]:
    """Return the inputs of a layout that a customer can measure, each with names of metrics and their sources.

    Parameters
    ----------
    its : System
        The system.
    scenario : Scenario
        The layout.
    """
    tables = _tables()
    in_cassandra = its.name == "cassandra" or "consistency_read" in vars(scenario) or "cass_nodes" in vars(scenario)
    return tuple(
        MeasuredInput(
            each["name"],
            each["how"],
            tuple(MetricName(one["name"], tables["sources"][one["source"]]) for one in each["metrics"]),
        )
        for each in tables["inputs"]
        if its.name in each.get("systems", (its.name,))
        and (in_cassandra or not each.get("cassandra", False))
        and _matters(each.get("fields", ()), scenario)
    )


def _matters(fields: list[str], scenario: Scenario) -> bool:
    """Whether an input says something about a layout: one of its fields is in use."""
    given = scenario.given()
    used = [name for name in fields if name == "rate" or given.get(name, False) is not False]
    between_dcs = set(fields) <= {"rtt", "distance"}
    return not fields or (bool(used) and not (between_dcs and getattr(scenario, "dcs", 1) == 1))


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("inputs.toml").read_text(encoding="utf-8"))


def limits(its: System[Any], sizing: Sizing, prediction: Prediction) -> tuple[str, ...]:
    """Return what the answer leaves out or guesses, and what documents only claim.

    Parameters
    ----------
    its : System
        The system.
    sizing : Sizing
        The sizing.
    prediction : Prediction
        The prediction of the layout.
    """
    found = [*prediction.evidence.cautions, *prediction.evidence.claims]
    if sizing.guesses:
        found.append(f"Guesses without a source: {', '.join(sizing.guesses)}.")
    if prediction.tails_not_modelled:
        found.append(f"Slow requests by {_listed(prediction.tails_not_modelled)} are not in the percentiles.")
    if sizing.not_asked:
        losses = _listed(tuple(its.losses[word] for word in sizing.not_asked))
        found.append(
            f"The layout was not asked to survive the loss of {losses}; failures and options show what happens."
        )
    found.append("A confidence holds in each situation on its own. How often a situation occurs is not part of it.")
    return tuple(dict.fromkeys(found))


def _listed(words: tuple[str, ...]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
