"""Which load test a customer should run next: of the proposed layout, or of the one that was tested most."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from capplan.calibration.system import Case
from capplan.calibration.tables.fit_table import TableSystem, unloaded
from capplan.calibration.tables.rows import TableRow, rate_per_s, rows_of
from capplan.models.errors import InputError
from capplan.models.language.scenario import Scenario, fields_of
from capplan.models.number_words import rate
from capplan.models.results import rounded
from capplan.planner.next_test.figures import CAPACITY
from capplan.planner.next_test.next_test import CandidateTest, NextTest, next_test
from capplan.planner.proposal.proposal import NextLoadTest

_HELPS = 0.01  # probability of another decision, or share by which a band is narrower, from which a test helps
_MORE = (1, 2)  # times the clients that drove the tested layouts hardest
_NEAR = (0.8, 0.95)  # of the capacity, for tables of offered rates


@dataclass(frozen=True)
class _Candidate:
    words: str
    fields: Mapping[str, Any]


def next_load_test(case: Case[Any]) -> NextLoadTest | None:
    """Return the most useful of a few load tests for the first objective of a proposal, or for its capacity.

    The candidates are the proposed layout and the one with most rows, each at the highest tested load and at twice
    that, in proportion to their capacities; at 80 and 95 % of the capacity where no clients were tested.

    Parameters
    ----------
    case : Case
        The proposed layout at its planned rate.

    Returns
    -------
    NextLoadTest or None
        None if none of them helps.
    """
    candidates = list(_candidates(case))
    found = _ranked(case, [each.fields for each in candidates])
    if found is None:
        return None
    for gain in ("chance_of_change", "narrowing"):  # what may change the decision comes first
        helping = [each for each in found.tests if (getattr(each, gain) or 0.0) >= _HELPS]
        if helping:
            best = max(helping, key=lambda each: getattr(each, gain) / each.hours)
            words = next(each.words for each in candidates if dict(each.fields) == dict(best.changes))
            return _advice(found, best, words)
    return None


def _ranked(case: Case[Any], candidates: list[Mapping[str, Any]]) -> NextTest | None:
    """Return what the candidates tell of the first objective's figure; of the capacity where that is unbounded."""
    for figure in (None, CAPACITY):
        try:
            return next_test(case, candidates, figure=figure)
        except InputError:  # the latency is unbounded in some draw
            continue
    return None


def _advice(found: NextTest, best: CandidateTest, words: str) -> NextLoadTest:
    return NextLoadTest(
        what=words,
        hours=best.hours,
        new_layout=best.new_layout,
        figure=found.figure.name,
        unit=found.figure.unit,
        value=rounded(found.figure.value),
        low=rounded(found.figure.low),
        high=rounded(found.figure.high),
        low_after=rounded(best.low_after),
        high_after=rounded(best.high_after),
        narrowing=rounded(best.narrowing),
        chance_of_change=None if best.chance_of_change is None else rounded(best.chance_of_change),
    )


def _candidates(case: Case[Any]) -> Iterator[_Candidate]:
    system = cast("TableSystem[Any]", case.system)
    rows = system.read(rows_of(case.fitted))
    own, tested = unloaded(case.scenario), system.usual_scenario(case.fitted)
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
            yield _Candidate(f"{unit} on {words}", {**fields, load: amount})


def _differences(own: Any, layout: Any) -> dict[str, Any]:
    kind: type[Scenario] = type(own)
    names = [name for name in fields_of(kind) if name not in ("tps", "clients", "slo")]
    return {name: getattr(layout, name) for name in names if getattr(layout, name) != getattr(own, name)}


def _loads(rows: tuple[TableRow, ...], capacity: float) -> Iterator[tuple[str, Any]]:
    """Yield loads that drive a layout of some capacity as hard as the hardest row, and harder."""
    closed = [row for row in rows if row.load.kind == "closed" and rate_per_s(row)]
    if not closed:
        yield from (("tps", float(round(share * capacity))) for share in _NEAR)
        return
    hardest = max(closed, key=lambda row: row.load.clients)
    clients = hardest.load.clients * max(capacity / max(map(rate_per_s, closed)), 1.0)
    yield from (("clients", math.ceil(times * clients)) for times in _MORE)
