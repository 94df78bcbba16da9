"""Machines that `size` buys from small load tests, beside what larger ones were measured to need.

The rows with few nodes are fitted. Each larger row asks how many nodes carry the rate that it carried. The answer
is compared with the smallest measured layout of the same machines that carried it, and so are the answers of simple
rules, which take the first number of nodes whose estimate reaches the rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from capplan.calibration.tables.fit_table import TableSystem, fit_table, unloaded
from capplan.calibration.tables.rows import with_mix
from capplan.calibration.tables.scores import MODEL
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.layout.baselines import Baseline, affine, linear, power_law
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


@dataclass(frozen=True)
class Decided:
    """One question: a rate that a layout carried, the nodes that it needs, and those that each rule buys."""

    table: str
    rate_tps: float
    needed: int
    bought: dict[str, int | None]


@dataclass(frozen=True)
class Table:
    """A table with a machine axis, and the most nodes that are fitted."""

    system: str
    name: str
    most_nodes: int

    def decided(self, frame: pd.DataFrame) -> Iterator[Decided]:
        """Yield the questions of the larger rows and their answers."""
        system = table_system(self.system)
        rows = [row for row in with_mix(list(LOAD_TESTS.rows(frame))) if row.throughput_tps]
        small = [row for row in rows if _nodes(row) <= self.most_nodes]
        fitted = fit_table(system, small)
        for row in rows:
            if _nodes(row) <= self.most_nodes:
                continue
            rate = float(row.throughput_tps or 0.0)
            needed = min(
                _nodes(each) for each in rows if _same_machines(each, row) and (each.throughput_tps or 0) >= rate
            )
            bought: dict[str, int | None] = {MODEL: _sized(system, fitted, row, rate, min(MOST * needed, LARGEST_DC))}
            bought |= {
                name: _by_rule(rule, row, rate, small, min(MOST * needed, LARGEST_DC)) for name, rule in SCALING.items()
            }
            bought[PER_CORE] = _per_core(row, rate, small)
            yield Decided(self.name, rate, needed, bought)


TABLES = (
    *(
        Table("two-tier", f"rabbitmq_{queue}_{disk}", 5)
        for queue in ("quorum", "mirrored")
        for disk in ("io1", "gp2", "st1")
    ),
    Table("cassandra", "cassandra_netflix_2011", 96),
)


def _nodes(row: LoadTestRow) -> int:
    return int(row.cass_nodes or 0)


def _same_machines(one: LoadTestRow, other: LoadTestRow) -> bool:
    blank = {"cass_nodes": None, "throughput_tps": None, "clients": None, "run_id": None, "note": None}
    return replace(one, **blank) == replace(other, **blank)  # type: ignore[arg-type]  # fields by name


def _sized(system: TableSystem[Any], fitted: Any, row: LoadTestRow, rate: float, most: int) -> int | None:
    """Return the nodes that `size` buys; None if it finds no layout."""
    field = STORE_NODES[system.name]
    base = changed(unloaded(system.row_scenario(row)), tps=rate)
    least = getattr(base, "rf", 1)
    ranges = {name: (getattr(base, name),) * 2 for name in system.sized} | {field: (least, most)}
    found = size(base, SizingQuestion(sized=ranges, engine="analytic"), fitted=fitted).chosen
    return None if found is None else int(found.fields[field])


def _by_rule(rule: Baseline, row: LoadTestRow, rate: float, small: Sequence[LoadTestRow], most: int) -> int | None:
    """Return the first number of nodes whose estimate from equal machines reaches a rate; None if none does."""
    best: dict[int, float] = {}
    for each in small:
        if _same_machines(each, row):
            best[_nodes(each)] = max(best.get(_nodes(each), 0.0), float(each.throughput_tps or 0.0))
    if len(best) < (1 if rule is linear else 2):
        return None
    sizes, rates = np.array(list(best), dtype=float), np.array(list(best.values()))
    return next((nodes for nodes in range(1, most + 1) if rule(sizes, rates, float(nodes)) >= rate), None)


def _per_core(row: LoadTestRow, rate: float, small: Sequence[LoadTestRow]) -> int:
    """Return the nodes for a rate in proportion to cores, from the best small row: a vendor's rule of thumb."""
    best = max(float(each.throughput_tps or 0.0) / (_nodes(each) * (each.node_cores or 1)) for each in small)
    return -int(-rate // (best * (row.node_cores or 1)))


def page(folder: Path) -> str:
    """Return the table of decisions on the tables of a folder."""
    found = [each for table in TABLES for each in table.decided(LOAD_TESTS.read(folder / f"{table.name}.csv"))]
    return "\n".join(_lines(found))


def _lines(found: Sequence[Decided]) -> Iterator[str]:
    names = {MODEL: "capplan", **{rule: RULES[rule] for rule in SCALING}, PER_CORE: PER_CORE}
    tables = len({each.table for each in found})
    yield f"| {tables} tables | rates | too few nodes | no answer | nodes over the needed, mean | worst |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for rule, words in names.items():
        bought = [(each.bought[rule], each.needed) for each in found]
        known = [(nodes, needed) for nodes, needed in bought if nodes is not None]
        few = sum(nodes < needed for nodes, needed in known)
        over = [nodes / needed - 1 for nodes, needed in known if nodes >= needed]
        yield (
            f"| {words} | {len(bought)} | {few} of {len(known)} | {len(bought) - len(known)} "
            f"| {fmean(over) if over else 0:+.0%} of {len(over)} | {max(over, default=0):+.0%} |"
        )
