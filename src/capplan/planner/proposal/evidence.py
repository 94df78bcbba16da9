"""The basis of a proposal: assumptions, evidence and what the answer leaves out."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal, cast

import numpy as np

from capplan.answers.number_words import as_given, listed, rate
from capplan.answers.results import Basis
from capplan.calibration.tables.backtest import accuracy, remarks
from capplan.calibration.tables.fit_table import fit_table
from capplan.calibration.tables.row_predictions import predict_table
from capplan.calibration.tables.scores import BacktestRow, backtest_row, summary
from capplan.calibration.validation.validation import report
from capplan.errors import InputError
from capplan.evidence.load_test_row import LoadTestRow
from capplan.grouped import grouped
from capplan.layout.case import Case
from capplan.layout.components import Machines, MeasuredRange
from capplan.layout.extrapolation import RATE
from capplan.layout.observations import LoadTest
from capplan.layout.situations import Losses
from capplan.layout.system import System
from capplan.layout.table_rows import TableRow, rate_per_s, rows_of, with_mix
from capplan.layout.table_system import TableSystem, table_of, unloaded
from capplan.models.language.parameter import defaults
from capplan.models.language.per_dc import per_dc_text
from capplan.models.language.scenario import Scenario, axes_of, fields_of, options_of
from capplan.planner.measured import CAPACITY
from capplan.planner.next_test import NextTest, next_test
from capplan.planner.predict.prediction import Prediction
from capplan.planner.proposal.proposal import (
    Assumption,
    EvidenceUsed,
    MeasuredInput,
    MetricName,
    UnseenRows,
)
from capplan.planner.rule_names import statistic
from capplan.planner.size.sizing import Sizing, steady
from capplan.planner.sweep import rate_fields


def evidence_used(case: Case[Any]) -> EvidenceUsed:
    """Return the evidence behind a case, from the figures and refits in its calibration, and what to measure next."""
    its, table = case.system, case.fitted.table
    tests = its.observations.load_tests()
    same: dict[str, Any] = {
        **{"load_tests": len(tests), "why": case.extrapolation.why, "half_width": _half_width(case)},
        **{"unmeasured": tuple(_unmeasured(case)), "next_test": next_load_test(case)},
    }
    if table is not None:  # a user's load tests, without documents
        sources = dict.fromkeys(str(row["source"]).split(", line ")[0] for row in table.rows if row.get("source"))
        count, basis = len(table.rows), case.basis.of_capacity()
        return EvidenceUsed(rows=count, fitted_rows=count, sources=tuple(sources), basis=basis, **same)
    rows, backtest = its.evidence, report(its, case.fitted)
    return EvidenceUsed(
        rows=len(rows),
        fitted_rows=sum(row.use == "fit" for row in rows),
        scenarios=len({test.fold for test in tests}),
        sources=tuple(source.citation for source in its.sources),
        defects=tuple(defect for source in its.sources for defect in source.defects),
        basis=case.extrapolation.basis,
        left_out_figures=sum(each.counts for each in backtest.left_out),
        left_out_error=None if backtest.own is None else steady(backtest.own.error),
        left_out_held=backtest.coverage.held,
        left_out_banded=backtest.coverage.figures,
        verdict=backtest.verdict,
        **same,
    )


def _half_width(case: Case[Any]) -> float:
    """Return the relative half-width of the capacity's band."""
    far = case.system.extrapolation(case.scenario, float(np.median(case.solution.capacity)))
    measured = case.system.uncertainty(case.fitted, case.scenario, case.seed)
    widened = measured.widened(rate=case.layout.widening(far, RATE))
    band = widened.of_rate(case.solution.capacity)
    return steady((band.high - band.low) / 2 / band.value)


def _unmeasured(case: Case[Any]) -> Iterator[str]:
    """Yield the figures in objectives that no load test reports, in words."""
    rate = case.offered_per_s or float(np.median(case.solution.capacity))
    metrics = dict.fromkeys(
        metric for each in case.objectives for metric in each.metrics() if metric.kind == "duration"
    )
    for metric in metrics:
        if case.basis.of_latency(metric.subject, metric.statistic, rate) == "model only":
            yield f"the {statistic(metric.statistic)} of {metric.subject}"


_SHARE = 0.25  # of the loads of a single layout: the highest ones are left out
_FEWEST_LOADS = 3


@dataclass(frozen=True)
class Fold:
    """The rows that a refit leaves out, in words and by index."""

    words: str
    unseen: tuple[int, ...]


def fold_of(system: TableSystem[Any], rows: Sequence[LoadTestRow]) -> Fold | None:
    """Return what a refit leaves out: a layout, or else the highest loads; None if too few rows would remain.

    Of several layouts, it is the one with the highest throughput: a proposal asks for more than was tested. Of one
    layout, it is the quarter of its loads that is highest. One refit takes seconds, each further one as long.

    Parameters
    ----------
    system : TableSystem
        The system.
    rows : sequence of LoadTestRow
        The fitted rows.
    """
    read = system.read(rows)
    places = grouped(range(len(read)), lambda place: read[place].layout)
    if len(places) == 1:
        return _highest_loads(read)
    fastest = max(places, key=lambda layout: max(_speed(read[place]) for place in places[layout]))
    words = system.layout(fastest, defaults(system.parameters))
    return Fold(f"the layout with the highest throughput ({words})", tuple(places[fastest]))


def _highest_loads(rows: Sequence[TableRow]) -> Fold | None:
    loads = sorted({_load(row) for row in rows})
    if len(loads) < _FEWEST_LOADS:
        return None
    last = set(loads[-max(round(_SHARE * len(loads)), 1) :])
    words = f"the {len(last)} highest loads" if len(last) > 1 else "the highest load"
    return Fold(words, tuple(place for place, row in enumerate(rows) if _load(row) in last))


def _load(row: TableRow) -> tuple[str, int, float]:
    return row.load.kind, row.load.clients, row.load.rate_per_s


def _speed(row: TableRow) -> float:
    """Return the rate of a row; if it is unknown, the inverse of its shortest latency."""
    return rate_per_s(row) or 1 / max(min(row.measured.values(), default=1e9), 1e-9)


def predicted_unseen(
    system: TableSystem[Any], rows: Sequence[LoadTestRow], fold: Fold, seed: int
) -> tuple[BacktestRow, ...]:
    """Refit without the rows of a fold, and predict their figures.

    Parameters
    ----------
    system : TableSystem
        The system.
    rows : sequence of LoadTestRow
        The fitted rows.
    fold : Fold
        What to leave out.
    seed : int
        Seed of the refit's ensemble.
    """
    completed = with_mix(rows)
    trained = [row for place, row in enumerate(completed) if place not in fold.unseen]
    unseen = {str(place): replace(completed[place], run_id=str(place)) for place in fold.unseen}
    predicted = predict_table(system, fit_table(system, trained, seed=seed), tuple(unseen.values()))
    return tuple(
        backtest_row(unseen[str(each.run_id)], str(each.run_id), each, trained) for each in predicted if each.measured
    )


def unseen_rows(fold: Fold | None, rows: Sequence[BacktestRow]) -> UnseenRows:
    """Return the scores of predictions made without their rows; undetermined predictions are only remarked on."""
    decided = [row for row in rows if row.identifiable]
    scores, by_quantity = summary(decided), grouped(decided, lambda row: row.quantity)
    return UnseenRows(
        left_out="" if fold is None else fold.words,
        answer={quantity: accuracy(scores[quantity], own) for quantity, own in by_quantity.items()},
        remarks=tuple(remarks(rows)),
    )


_HELPS = 0.01  # a test helps from this probability of a different decision, or this narrowing of the band
_MORE = (1, 2)  # times the clients that drove the tested layouts hardest
_NEAR = (0.8, 0.95)  # of the capacity, for tables of offered rates


def next_load_test(case: Case[Any]) -> NextTest | None:
    """Rank a few load tests for the proposal's first objective, or for its capacity if that figure is unbounded.

    The candidates are the proposed layout and, of a user's table, the one with most rows. With a table they are tested
    at the highest tested load and at twice that, in proportion to their capacities; at 80 and 95 % of the capacity
    where no clients were tested.

    Parameters
    ----------
    case : Case
        The proposed layout at its planned rate.

    Returns
    -------
    NextTest or None
        The most useful test first; None if none of them helps.
    """
    proposed = {name: getattr(case.scenario, name) for name in case.system.component(Machines).sized}
    candidates = [("the proposed layout", proposed)] if case.fitted.table is None else list(_candidates(case))
    for figure in (None, CAPACITY):
        with suppress(InputError):  # the latency is unbounded in some draw
            found = next_test(case, [fields for _, fields in candidates], figure=figure)
            break
    else:
        return None
    words = {str(fields): words for words, fields in candidates}
    tests = [replace(each, words=words.get(str(dict(each.changes)), each.words)) for each in found.tests]
    gains: tuple[tuple[str, Literal["decision", "band"]], ...]
    gains = ("chance_of_change", "decision"), ("narrowing", "band")  # what may change the decision comes first
    for gain, rank in gains:
        if any((getattr(each, gain) or 0.0) >= _HELPS for each in tests):
            tests.sort(key=lambda each: -(getattr(each, gain) or 0.0) / each.hours)
            return replace(found, rank=rank, answer=True, tests=tuple(tests), refused=())
    return None


def _candidates(case: Case[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield load tests in words, each with the fields in which it differs from the proposal."""
    system = cast("TableSystem[Any]", case.system)
    own = unloaded(case.scenario)
    of_others = case.fitted.clusters  # whose layouts nobody can load again
    rows = () if of_others else system.read(rows_of(case.fitted))
    tested = own if of_others else system.usual_scenario(case.fitted)
    capacity = float(np.median(case.solution.capacity))
    known = replace(case, scenario=tested, offered_per_s=None)
    layouts = [("the proposed layout", own, capacity)]
    if tested != own:
        words = f"the layout with most rows ({system.layout(tested, case.values)})"
        layouts.append((words, tested, float(np.median(known.solution.capacity))))
    for words, layout, highest in layouts:
        fields = _differences(own, layout)
        for load, amount in _loads(rows, highest):
            unit = f"{amount:,} clients" if load == "clients" else f"{rate(amount)} requests per second"
            yield f"{unit} on {words}", {**fields, load: amount}


def _differences(own: Any, layout: Any) -> dict[str, Any]:
    kind: type[Scenario] = type(own)
    names = [name for name in fields_of(kind) if name not in ("tps", "clients", "slo")]
    return {name: getattr(layout, name) for name in names if getattr(layout, name) != getattr(own, name)}


def _loads(rows: tuple[TableRow, ...], capacity: float) -> Iterator[tuple[str, Any]]:
    """Yield loads that stress a layout of some capacity as much as the hardest row, and more."""
    closed = [row for row in rows if row.load.kind == "closed" and rate_per_s(row)]
    if not closed:
        yield from (("tps", float(round(share * capacity))) for share in _NEAR)
        return
    hardest = max(closed, key=lambda row: row.load.clients)
    clients = hardest.load.clients * max(capacity / max(map(rate_per_s, closed)), 1.0)
    yield from (("clients", math.ceil(times * clients)) for times in _MORE)


NEVER = "never tested"


def assumptions(case: Case[Any], planned_tps: float) -> tuple[Assumption, ...]:
    """Return the values of the layout's fields and of the rate, each beside the load tests' values.

    Parameters
    ----------
    case : Case
        The layout.
    planned_tps : float
        The planned peak rate, requests per second.
    """
    tests = case.system.observations.load_tests()
    return (_rate(case, planned_tps, tests), *_data(case), *_fields(case, tests))


def _data(case: Case[Any]) -> Iterator[Assumption]:
    """Yield what nobody measured, at its value in the figures."""
    for each in case.system.component(MeasuredRange).unmeasured(case.scenario):
        low, high = map(as_given, each.expected)
        tested = f"{each.as_tested}; {each.otherwise.format(low, high)} ({each.source})"
        yield Assumption(each.field, each.name, f"{as_given(each.value)}, as tested", tested, "measured")


def _rate(case: Case[Any], planned: float, tests: Sequence[LoadTest[Any]]) -> Assumption:
    """Return the assumption about the offered rate; the highest tested rate also counts other layouts."""
    its, rates = case.system, [row.value for test in tests for row in test.rows if row.unit == "1/s"]
    table = table_of(its)
    if table is not None:
        rates += filter(None, map(rate_per_s, table.read(rows_of(case.fitted))))
    highest = its.component(MeasuredRange).highest_rate(case.scenario, tests) or max(rates, default=None)
    tested = NEVER if highest is None else f"up to {rate(highest)} per second"
    basis: Basis = "extrapolated" if highest is None or planned > highest else "interpolated"
    return Assumption("rate", "offered peak rate, requests per second", rate(planned), tested, basis)


def _fields(case: Case[Any], tests: Sequence[LoadTest[Any]]) -> Iterator[Assumption]:
    kind: type[Scenario] = type(case.scenario)
    left_out = {"system", "slo", *rate_fields(kind)}
    axes = axes_of(kind)
    for name, option in options_of(kind).items():
        value = getattr(case.scenario, name)
        if name in left_out or value is None or name not in case.scenario.given():  # replaced by another field
            continue
        measured = [getattr(test.scenario, name) for test in tests]
        tested, basis = _tested(value, measured, name in axes)
        if name not in axes and not _documented(name, case, tests):
            tested, basis = ("not documented" if tested == NEVER else f"not documented; {tested} assumed"), None
        yield Assumption(name, option.label or name, (option.shown or _text)(value), tested, basis)


def _documented(name: str, case: Case[Any], tests: Sequence[LoadTest[Any]]) -> bool:
    """Whether the documents, or a user's table, state a field's value for a load test."""
    rows = (row for test in tests for row in test.rows)
    cells = () if case.fitted.table is None else case.fitted.table.rows
    return any(name in row.layout or getattr(row, name, None) is not None for row in rows) or any(
        name in row for row in cells
    )


def _tested(value: Any, measured: Sequence[Any], ranged: bool) -> tuple[str, Basis | None]:
    """Return the tests' values, and whether the value lies inside their range."""
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
    every = value if isinstance(value, tuple) else (value,)
    return [float(each) for each in every if isinstance(each, int | float) and not isinstance(value, bool)]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        rows = [each if isinstance(each, tuple) else (each,) for each in value]
        return per_dc_text(value) if all(len(row) == 1 for row in rows) else "; ".join("/".join(row) for row in rows)
    return f"{value:g}" if isinstance(value, float) else str(value)


def measured_inputs(its: System[Any], scenario: Scenario) -> tuple[MeasuredInput, ...]:
    """Return the inputs of a layout that a customer can measure, with metric names and their sources.

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
    """Whether an input affects a layout: whether one of its fields is in use."""
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
        found.append(f"Slow requests by {listed(prediction.tails_not_modelled)} are not in the percentiles.")
    if sizing.not_asked:
        losses = listed([its.component(Losses).kinds[word] for word in sizing.not_asked])
        found.append(
            f"The layout was not asked to survive the loss of {losses}; failures and options show what happens."
        )
    found.append("A confidence holds in each situation on its own. How often a situation occurs is not part of it.")
    return tuple(dict.fromkeys(found))
