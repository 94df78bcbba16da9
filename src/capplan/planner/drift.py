"""`drift`: compares the bands of a saved answer with measurements, claim by claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

import pandas as pd

from capplan.answers.number_words import rate, significant
from capplan.answers.objective import Comparison, parse
from capplan.answers.results import STATISTICS, Band
from capplan.answers.verb_answer import VerbAnswer
from capplan.answers.verdict import NORMAL
from capplan.errors import InputError
from capplan.evidence.audit.audit import RowVerdict, audit_load_tests
from capplan.evidence.load_test_row import ALL, LATENCIES, LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.grouped import grouped
from capplan.models.language.per_dc import by_dc
from capplan.planner.check import ALL_AT_ONCE, NO_OVERLOAD, Checked
from capplan.planner.predict.prediction import Prediction
from capplan.planner.proposal.proposal import Proposal
from capplan.planner.saved_document import read_document
from capplan.planner.size.sizing import Sizing


@dataclass(frozen=True)
class SavedAnswer:
    """The claims of an answer that measurements can test.

    Attributes
    ----------
    system : str
        Its system.
    layout : str
        Its layout in words.
    scenario : mapping
        The fields of its scenario that are known.
    capacity_tps : Band or None
        What it says can be carried, requests per second.
    offered_tps : float or None
        The rate at which its latencies hold.
    latencies_ms : mapping of (str, str) to Band
        By request class and statistic.
    """

    system: str
    layout: str
    scenario: Mapping[str, Any]
    capacity_tps: Band | None
    offered_tps: float | None
    latencies_ms: Mapping[tuple[str, str], Band]

    @property
    def closed(self) -> bool:
        """Whether the answer is for closed clients rather than for an offered rate."""
        return self.offered_tps is None and self.scenario.get("clients") is not None


def read_answer(path: Path) -> SavedAnswer:
    """Read an answer.

    Raises
    ------
    InputError
        If the file is none, or a part of it is missing.
    """
    known: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], SavedAnswer]]] = {
        Prediction.SCHEMA: ("predict --json", predicted),
        Sizing.SCHEMA: ("size --json", _sized),
        Checked.SCHEMA: ("check --json", _checked),
        Proposal.SCHEMA: ("proposal -o proposal.json", lambda proposal: predicted(proposal["prediction"])),
    }
    content = read_document(path, {schema: verb for schema, (verb, _) in known.items()})
    try:
        return known[content["schema"]][1](content)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} lacks a part of its answer ({error!r}): save it again") from None


def predicted(content: Mapping[str, Any]) -> SavedAnswer:
    """Return the claims of a prediction in JSON."""
    capacity = content.get("capacity") or {}
    # beyond the capacity with objectives a layout still completes more, so measurements test the one without
    carried = capacity.get("overload_tps") or capacity.get("peak_tps")
    return SavedAnswer(
        system=content["system"],
        layout=content["layout"],
        scenario=content["scenario"],
        capacity_tps=None if carried is None else _range(carried),
        offered_tps=(content.get("offered") or {}).get("peak_tps"),
        latencies_ms={
            (name, statistic): _range(band)
            for name, statistics in (content.get("latency_ms") or {}).items()
            for statistic, band in statistics.items()
            if band is not None and band["value"] is not None  # an unbounded latency claims nothing
        },
    )


def _range(band: Mapping[str, Any]) -> Band:
    return Band(band["value"], band["low"], math.inf if band["high"] is None else band["high"])


def _sized(content: Mapping[str, Any]) -> SavedAnswer:
    """Return the claims of a sizing: the sustained rate, and latency limits at the planned rate."""
    chosen = content["chosen"]
    if chosen is None:
        raise InputError("the sizing found no layout, so that it claims nothing: size again")
    if chosen["cells"] > 1:
        raise InputError(
            f"the sizing has {chosen['cells']} cells, and a load test measures one: save a prediction of one cell"
        )
    normal = next(each for each in chosen["safety"] if each["conditions"] == NORMAL)
    sustained = normal["held_tps"]
    limits = {name.rpartition("."): value for name, value in normal["reached_ms"].items() if value is not None}
    return SavedAnswer(
        system=content["system"],
        layout=chosen["layout"],
        scenario={**content["scenario"], **chosen["fields"]},
        capacity_tps=Band(sustained, sustained, math.inf),
        offered_tps=content["planned_tps"],
        latencies_ms={
            (request_class, statistic): Band(value, 0.0, value)
            for (request_class, _, statistic), value in limits.items()
        },
    )


def _checked(content: Mapping[str, Any]) -> SavedAnswer:
    """Return the claims of a check: the objectives that it reports as met in normal operation."""
    normal = [each for each in content["objectives"] if each["conditions"] == NORMAL]
    held = [each["objective"] for each in normal if each["answer"] == "yes" and each["objective"] != ALL_AT_ONCE]
    rate = content["offered_tps"]
    return SavedAnswer(
        system=content["system"],
        layout=content["layout"],
        scenario=content["scenario"],
        capacity_tps=Band(rate, rate, math.inf) if held else None,
        offered_tps=rate,
        latencies_ms=dict(each for text in held for each in _limits(text)),
    )


def _limits(objective: str) -> Iterator[tuple[tuple[str, str], Band]]:
    """Yield the upper latency limits that an objective certainly sets, so none behind an `or`."""
    if objective == NO_OVERLOAD:
        return
    waiting = [parse(objective).root]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, Comparison):
            if each.relation.startswith("<") and each.metric.statistic in STATISTICS:
                limit_ms = 1000 * each.bounds[0]
                yield (each.metric.subject, each.metric.statistic), Band(limit_ms, 0.0, limit_ms)
        elif each.word == "and":
            waiting.extend(each.parts)


NEAR = 0.1  # share of the offered rate; a run this close tests its latencies
_LAYOUT: Mapping[str, tuple[str, ...]] = {  # columns of a table, and what scenarios call them
    "dcs": ("dcs",),
    "cass_nodes": ("cass_nodes", "store_nodes", "nodes"),
    "rf": ("rf",),
    "front_nodes": ("front_nodes",),
    "clients": ("clients",),
}
_COLUMNS = {name.removeprefix("latency_").removesuffix("_ms"): name for name in LATENCIES}
Status = Literal["held", "worse", "better", "untested"]


@dataclass(frozen=True)
class Claim:
    """One figure of the answer beside its measurement.

    Attributes
    ----------
    name
        `capacity`, `throughput` of clients that wait, or class and statistic of a latency such as `acct.p99`.
    unit
        `TPS` or `ms`.
    value
        The answer's median.
    low
        Lower end of its band.
    high
        Upper end of its band; null where it has none.
    measured
        What was measured; null where nothing tests the claim.
    runs
        The runs that test it.
    status
        `held`: inside the band. `worse`: outside, on the bad side. `better`: outside, on the good side. `untested`.
    sentence
        The same in words.
    """

    name: str
    unit: str
    value: float
    low: float
    high: float | None
    measured: float | None
    runs: tuple[str, ...]
    status: Status
    sentence: str


@dataclass(frozen=True)
class Drift(VerbAnswer):
    """The result of comparing an answer with measurements.

    Attributes
    ----------
    system
        The system of the answer.
    layout
        The layout of the answer, in words.
    answer
        Whether no tested claim has become worse: exit code 0.
    claims
        The capacity first, then latencies.
    rows_refused
        Rows that the audit refuses.
    rows_of_other_layouts
        Rows that state another layout than that of the answer.
    """

    SCHEMA = "capplan.drift/1"

    system: str
    layout: str
    answer: bool
    claims: tuple[Claim, ...]
    rows_refused: int
    rows_of_other_layouts: int


@dataclass(frozen=True)
class _Run:
    """The believed rows of one run by class, and the saturation verdict of the run."""

    name: str
    rows: Mapping[str, LoadTestRow]
    overloaded: bool

    @property
    def throughput_tps(self) -> float | None:
        """Completed requests of all classes per second."""
        if ALL in self.rows:
            return self.rows[ALL].throughput_tps
        known = [row.throughput_tps for row in self.rows.values()]
        return None if None in known else sum(value for value in known if value is not None)


def drift(answer: SavedAnswer, measured: pd.DataFrame) -> Drift:
    """Compare an answer with measurements.

    Parameters
    ----------
    answer : SavedAnswer
        As `read_answer` returns it.
    measured : pandas.DataFrame
        A load-test table.

    Returns
    -------
    Drift

    Raises
    ------
    InputError
        If no run tests any claim.
    """
    verdicts = audit_load_tests(measured).rows
    rows = list(zip(verdicts, LOAD_TESTS.rows(measured), strict=True))
    believed = [(verdict, row) for verdict, row in rows if verdict.believed]
    alike = [(verdict, row) for verdict, row in believed if _same_layout(row, answer.scenario)]
    runs = list(_runs(alike))
    claims = (*_capacity(answer, runs), *_latencies(answer, runs))
    if all(each.status == "untested" for each in claims):
        why = "; ".join(each.sentence for each in claims[:2]) or "it has neither a capacity nor latencies at a rate"
        others = len(believed) - len(alike)
        left = f"; {others} row{'s' * (others > 1)} of other layouts left out" if others else ""
        raise InputError(f"no run tests a claim of the answer about {answer.system}: {why}{left}")
    return Drift(
        answer.system,
        answer.layout,
        not any(each.status == "worse" for each in claims),
        claims,
        len(rows) - len(believed),
        len(believed) - len(alike),
    )


def _same_layout(row: LoadTestRow, scenario: Mapping[str, Any]) -> bool:
    """Whether a row states no other layout than a scenario: a number of each data centre may stand once."""
    dcs = scenario.get("dcs") or 1

    def differs(column: str, name: str) -> bool:
        stated, asked = getattr(row, column), scenario.get(name)
        if stated is None or asked is None:
            return False
        return by_dc(stated, dcs) != by_dc(tuple(asked) if isinstance(asked, list) else asked, dcs)

    return not any(differs(column, name) for column, names in _LAYOUT.items() for name in names)


def _runs(rows: Sequence[tuple[RowVerdict, LoadTestRow]]) -> Iterator[_Run]:
    for found in grouped(rows, lambda each: (each[1].run_id or each[0].line, each[1].repeat)).values():
        first = found[0][0]
        overloaded = any(verdict.saturation in ("overloaded", "backlogged") for verdict, _ in found)
        by_class = {(row.request_class or ALL).casefold(): row for _, row in found}
        yield _Run(first.run_id or f"row {first.line}", by_class, overloaded)


def _capacity(answer: SavedAnswer, runs: Sequence[_Run]) -> Iterator[Claim]:
    """Compare the capacity with the best run above it, or with the highest rate that was carried.

    The capacity of clients that wait for their answers is their throughput, which each run of theirs measures.
    """
    band, name = answer.capacity_tps, "throughput" if answer.closed else "capacity"
    if band is None:
        return
    said = f"{name} {rate(band.value)} TPS ({_words(band, 'TPS')})"
    known = [(value, each) for each in runs if (value := each.throughput_tps) is not None]
    beyond = any(each.overloaded for _, each in known)
    found, best = max(known, key=lambda pair: pair[0], default=(0.0, None))
    if answer.closed and best is not None:
        found = median(value for value, _ in known)
    elif best is None or (not beyond and found < band.low):
        reached = (
            f"the highest load measured is {rate(found)} TPS" if known else "no run of this layout has a throughput"
        )
        yield _claim(name, "TPS", band, None, (), "untested", f"{said}: {reached}")
        return
    status: Status = "worse" if found < band.low else ("better" if found > band.high else "held")
    how = "measured" if answer.closed else "completed beyond it" if best.overloaded else "carried"
    names = tuple(each.name for _, each in known) if answer.closed else (best.name,)
    yield _claim(name, "TPS", band, found, names, status, f"{said}: {rate(found)} TPS {how}")


def _claim(
    name: str, unit: str, band: Band, found: float | None, runs: tuple[str, ...], status: Status, sentence: str
) -> Claim:
    high = None if math.isinf(band.high) else band.high
    return Claim(name, unit, band.value, band.low, high, found, runs, status, sentence)


def _latencies(answer: SavedAnswer, runs: Sequence[_Run]) -> Iterator[Claim]:
    offered = answer.offered_tps
    classes = {name for name, _ in answer.latencies_ms}
    near = [
        each
        for each in runs
        if not each.overloaded
        and (answer.closed or (offered and abs((each.throughput_tps or 0.0) - offered) <= NEAR * offered))
    ]
    for (name, statistic), band in answer.latencies_ms.items():
        column = _COLUMNS.get(statistic)
        if column is None:
            continue
        chosen = [row for each in near if (row := _of_class(each, name, alone=len(classes) == 1)) is not None]
        found = [value for row in chosen if (value := getattr(row, column)) is not None]
        yield _latency(f"{name}.{statistic}", band, found, tuple(str(row.run_id) for row in chosen), _where(answer))


def _of_class(run: _Run, name: str, alone: bool) -> LoadTestRow | None:
    return run.rows.get(name.casefold()) or (run.rows.get(ALL) if alone or name == ALL else None)


def _where(answer: SavedAnswer) -> str:
    """Return in words the load at which a run tests the latencies of an answer."""
    if answer.closed:
        return f"with {answer.scenario['clients']} clients"
    if answer.offered_tps is None:
        return "at a rate, for the answer has none"
    return f"within {100 * NEAR:g} % of {rate(answer.offered_tps)} TPS"


def _latency(name: str, band: Band, found: Sequence[float], runs: tuple[str, ...], where: str) -> Claim:
    said = f"{name} {significant(band.value)} ms ({_words(band, 'ms')})"
    if not found:
        return _claim(name, "ms", band, None, (), "untested", f"{said}: no steady run has it {where}")
    value = median(found)
    status: Status = "worse" if value > band.high else ("better" if value < band.low else "held")
    return _claim(name, "ms", band, value, runs, status, f"{said}: {significant(value)} ms measured")


def _words(band: Band, unit: str) -> str:
    low, high = ((rate if unit == "TPS" else significant)(end) for end in (band.low, band.high))
    if math.isinf(band.high):
        return f"{low} or more"
    return f"{low} to {high}" if band.low else f"{high} or less"
