"""Machines that `size` buys from small load tests, beside what larger ones were measured to need.

The rows with few nodes are fitted. Each larger row asks how many nodes carry the rate that it carried. The answer
is compared with the smallest measured layout of the same machines that carried it, and so are the answers of simple
rules, which take the first number of nodes whose estimate reaches the rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from vendor_rating import RATING, rated_nodes

from capplan.answers.verdict import CONFIDENCE
from capplan.calibration.tables.fit_table import fit_table
from capplan.calibration.tables.scores import MODEL
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.layout.baselines import Baseline, affine, linear, power_law
from capplan.layout.case import Case
from capplan.layout.components import Machines
from capplan.layout.fitted_file import Fitted
from capplan.layout.table_rows import with_mix
from capplan.layout.table_system import TableSystem, unloaded
from capplan.models.language.scenario import changed
from capplan.planner.rule_names import RULES
from capplan.planner.size.size import SizingQuestion, size
from capplan.systems.components.data_centres import LARGEST_DC
from capplan.systems.registry import table_system

MOST = 4
"""How many times the needed nodes may be bought."""
SCALING: dict[str, Baseline] = {"linear": linear, "affine": affine, "power_law": power_law}
PER_CORE = "ops per vCPU"
STORE_NODES = {"two-tier": "store_nodes", "cassandra": "cass_nodes"}
_RESAMPLES = 2000


@dataclass(frozen=True)
class Decided:
    """One question: a rate that a layout carried, the nodes that it needs, and those that each rule buys.

    `surprise` is the logarithm of what the needed nodes carried over that of the predicted capacity, in standard
    deviations of what a repeat would measure.
    """

    table: str
    rate_tps: float
    needed: int
    bought: dict[str, int | None]
    surprise: float


@dataclass(frozen=True)
class Table:
    """A table with a machine axis, the most nodes that are fitted, and what is special about it."""

    system: str
    name: str
    most_nodes: int
    about: str

    def decided(self, frame: pd.DataFrame) -> Iterator[Decided]:
        """Yield the questions of the larger rows and their answers."""
        system = table_system(self.system)
        rows = [row for row in with_mix(list(LOAD_TESTS.rows(frame))) if row.throughput_tps]
        small = [row for row in rows if nodes_of(row) <= self.most_nodes]
        fitted = fit_table(system, small)
        for row in rows:
            if nodes_of(row) <= self.most_nodes:
                continue
            rate = float(row.throughput_tps or 0.0)
            enough = [each for each in rows if _same_machines(each, row) and (each.throughput_tps or 0) >= rate]
            least = min(enough, key=nodes_of)
            needed = nodes_of(least)
            bought: dict[str, int | None] = {MODEL: _sized(system, fitted, row, rate, min(MOST * needed, LARGEST_DC))}
            bought |= {
                name: _by_rule(rule, row, rate, small, min(MOST * needed, LARGEST_DC)) for name, rule in SCALING.items()
            }
            bought[PER_CORE] = _per_core(row, rate, small)
            rated = self.system == "cassandra" and row.node_cores is not None  # the ratings are of a Cassandra service
            bought[RATING] = rated_nodes(rate, int(row.node_cores or 0)) if rated else None
            yield Decided(self.name, rate, needed, bought, _surprise(system, fitted, least))


USUAL, NEWER, CHECK = "two studies", "a third", "a check: clients on the nodes"
TABLES = (
    *(
        Table("two-tier", f"rabbitmq_{queue}_{disk}", 5, USUAL)
        for queue in ("quorum", "mirrored")
        for disk in ("io1", "gp2", "st1")
    ),
    Table("cassandra", "cassandra_netflix_2011", 96, USUAL),
    Table("cassandra", "cassandra_endpoint_2015", 4, NEWER),
    Table("cassandra", "cassandra_ec2_2013", 2, CHECK),
)


def nodes_of(row: LoadTestRow) -> int:
    """Return the nodes of a row's store."""
    return int(row.cass_nodes or 0)


def _same_machines(one: LoadTestRow, other: LoadTestRow) -> bool:
    blank = {"cass_nodes": None, "throughput_tps": None, "clients": None, "run_id": None, "note": None}
    return replace(one, **blank) == replace(other, **blank)  # type: ignore[arg-type]  # fields by name


def _sized(system: TableSystem[Any], fitted: Fitted, row: LoadTestRow, rate: float, most: int) -> int | None:
    """Return the nodes that `size` buys; None if it finds no layout."""
    field = STORE_NODES[system.name]
    base = changed(unloaded(system.row_scenario(row)), tps=rate)
    least = getattr(base, "rf", 1)
    ranges = {name: (getattr(base, name),) * 2 for name in system.component(Machines).sized} | {field: (least, most)}
    found = size(base, SizingQuestion(sized=ranges, engine="analytic"), fitted=fitted).chosen
    return None if found is None else int(found.fields[field])


def _surprise(system: TableSystem[Any], fitted: Fitted, row: LoadTestRow) -> float:
    """Return how far the throughput of a row lies from the predicted capacity, in standard deviations."""
    case = Case(system.of(fitted), unloaded(system.row_scenario(row)), fitted)
    logs = np.log(case.uncertainty.repeated_rate(case.solution.capacity))
    return float((math.log(row.throughput_tps or 0.0) - np.median(logs)) / logs.std())


def _by_rule(rule: Baseline, row: LoadTestRow, rate: float, small: Sequence[LoadTestRow], most: int) -> int | None:
    """Return the first number of nodes whose estimate from equal machines reaches a rate; None if none does."""
    best: dict[int, float] = {}
    for each in small:
        if _same_machines(each, row):
            best[nodes_of(each)] = max(best.get(nodes_of(each), 0.0), float(each.throughput_tps or 0.0))
    if len(best) < (1 if rule is linear else 2):
        return None
    sizes, rates = np.array(list(best), dtype=float), np.array(list(best.values()))
    return next((nodes for nodes in range(1, most + 1) if rule(sizes, rates, float(nodes)) >= rate), None)


def _per_core(row: LoadTestRow, rate: float, small: Sequence[LoadTestRow]) -> int:
    """Return the nodes for a rate in proportion to cores, from the best small row: a vendor's rule of thumb."""
    best = max(float(each.throughput_tps or 0.0) / (nodes_of(each) * (each.node_cores or 1)) for each in small)
    return -int(-rate // (best * (row.node_cores or 1)))


def page(folder: Path) -> str:
    """Return the tables of decisions on the tables of a folder."""
    by_kind: dict[str, list[Decided]] = {}
    for table in TABLES:
        by_kind.setdefault(table.about, []).extend(table.decided(LOAD_TESTS.read(folder / f"{table.name}.csv")))
    every = [each for found in by_kind.values() for each in found]
    return "\n".join((*_rules(by_kind[USUAL]), "", *_scores({**by_kind, "all": every})))


def _rules(found: Sequence[Decided]) -> Iterator[str]:
    names = {MODEL: "capplan", **{rule: RULES[rule] for rule in SCALING}, PER_CORE: PER_CORE, RATING: RATING}
    tables = len({each.table for each in found})
    yield f"| {tables} tables | rates | too few nodes | no answer | over the needed, mean | worst | pinball loss |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for rule, words in names.items():
        answered = [each for each in found if each.bought[rule] is not None]
        over = _over(answered, rule)
        yield (
            f"| {words} | {len(found)} | {_too_few(answered, rule)} of {len(answered)} | {len(found) - len(answered)} "
            f"| {fmean(over) if over else 0:+.0%} of {len(over)} | {max(over, default=0):+.0%} "
            f"| {_pinball(answered, rule):.3f} |"
        )


def _scores(by_kind: dict[str, list[Decided]]) -> Iterator[str]:
    yield "| capplan | tables | rates | too few nodes | nodes over the needed | pinball loss | rms of z |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for kind, found in by_kind.items():
        over = _over(found)
        cells = [_with_interval(found, score) for score in (_pinball, _rms_of_surprises)]
        yield (
            f"| {kind} | {len({each.table for each in found})} | {len(found)} | {_too_few(found)} of {len(found)} "
            f"| {fmean(over) if over else 0:+.0%} of {len(over)} | {cells[0]} | {cells[1]} |"
        )


def _ratio(one: Decided, rule: str) -> float:
    """Return bought over needed nodes; without an answer, the most that may be bought."""
    bought = one.bought[rule]
    return MOST if bought is None else bought / one.needed


def _too_few(found: Sequence[Decided], rule: str = MODEL) -> int:
    return sum(_ratio(each, rule) < 1 for each in found)


def _over(found: Sequence[Decided], rule: str = MODEL) -> list[float]:
    return [ratio - 1 for each in found if (ratio := _ratio(each, rule)) >= 1]


def _pinball(found: Sequence[Decided], rule: str = MODEL) -> float:
    """Return the mean pinball loss of the logarithm of nodes: a node too few costs nine times one too many."""
    far = [math.log(_ratio(each, rule)) for each in found]
    return fmean(max((1 - CONFIDENCE) * each, -CONFIDENCE * each) for each in far)


def _rms_of_surprises(found: Sequence[Decided]) -> float:
    return math.sqrt(fmean(each.surprise**2 for each in found))


def _with_interval(found: Sequence[Decided], score: Callable[[Sequence[Decided]], float]) -> str:
    """Return a score with its 90 % interval by a bootstrap of tables; without one for a single table."""
    tables = list(dict.fromkeys(each.table for each in found))
    own = {table: [each for each in found if each.table == table] for table in tables}
    if len(tables) == 1:
        return f"{score(found):.3f}"
    drawn = np.random.default_rng(1).integers(len(tables), size=(_RESAMPLES, len(tables)))
    scores = [score([each for at in one for each in own[tables[at]]]) for one in drawn]
    low, high = np.quantile(scores, [0.05, 0.95])
    return f"{score(found):.3f} ({low:.3f} to {high:.3f})"
