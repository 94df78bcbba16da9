"""The data factor: CPU that a request takes of full nodes on aged data, over that on fresh data.

Nodes that are not full also use CPU when they wait, which the ratio at one rate would count as work of both. Of full
nodes the ratio divides the capacity. Below, what aged data add is known: it hardly depends on the rate
(docs/reference/data-volume.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from capplan.answers.results import Band
from capplan.answers.verb_answer import VerbAnswer
from capplan.errors import InputError
from capplan.evidence.audit.load_tests import LAYOUT
from capplan.evidence.load_test_row import ALL, LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.row_choice import chosen_rows
from capplan.grouped import grouped
from capplan.models.language.units import FloatArray

FULL_PERCENT = 95.0
"""CPU of nodes from which they are full: in the lab, full nodes had 96 to 99 %, and some that waited 87 %."""
NEAR_HIGHEST = 0.8
"""Share of the highest rate of full nodes from which a run is of full nodes: a slower one waited, too. A choice."""
ALIKE = 0.03
"""Difference of two rates, as a share, up to which they are the same."""
SCATTER, FREEDOM = 0.063, 8
"""Of CPU per request between repeats of full nodes (logarithm), and the degrees of freedom that it counts for.

In the lab, repeats of full nodes scatter by 6.3 % for reads and 6.4 % for writes, those at one rate by 2.3 and 2.8 %
(docs/reference/data-volume).
"""
RATE_ERROR = 0.1
"""Of what aged data add at one rate, against full nodes: root mean square of six cells of reads in the lab."""
_COMPARED = (*(name for name in LAYOUT if name not in ("load_kind", "think_time_ms")), "read_fraction")
_LEAST, _MOST = 0.2, 20.0  # factors that can be stated
_NORMAL = 1.645  # standard deviations of a normal error in the half of a 90 % band
Data = Literal["fresh", "aged"]
_SIDES: tuple[Data, Data] = ("fresh", "aged")


@dataclass(frozen=True)
class CpuOfRequest:
    """CPU that requests take in runs at about one rate.

    Attributes
    ----------
    data
        `fresh` or `aged`.
    rate_tps
        Requests per second.
    busy_percent
        CPU of the nodes, per cent.
    cpu_percent
        CPU of the nodes that 1,000 requests per second take, per cent.
    runs
        Number of runs.
    """

    data: Data
    rate_tps: float
    busy_percent: float
    cpu_percent: float
    runs: int


@dataclass(frozen=True)
class DataFactor(VerbAnswer):
    """How much more CPU of full nodes a request takes on aged data.

    Attributes
    ----------
    factor
        Aged over fresh, with its 90 % band.
    way
        `full nodes`: the ratio of both. `one rate`: what aged data add at a rate that both have, over what a request
        takes of full nodes with fresh data.
    runs
        The runs that it comes from, by data and rate.
    """

    SCHEMA = "capplan.data-factor/1"

    factor: Band
    way: Literal["full nodes", "one rate"]
    runs: tuple[CpuOfRequest, ...]

    @property
    def option(self) -> str:
        """The option that states the factor: `--data-factor 1.31..1.54`."""
        low, high = (min(max(end, _LEAST), _MOST) for end in (self.factor.low, self.factor.high))
        return f"--data-factor {low:.3g}..{high:.3g}"


class _Run(NamedTuple):
    rate_tps: float
    busy_percent: float
    cpu_percent: float  # for 1,000 requests per second


def data_factor(frame: pd.DataFrame, fresh: str, aged: str) -> DataFactor:
    """Return by how much more CPU of full nodes a request takes in the aged runs of a table than in the fresh ones.

    Parameters
    ----------
    frame : pandas.DataFrame
        A load-test table.
    fresh, aged : str
        Expressions that choose the rows of each; see `row_choice`.

    Raises
    ------
    InputError
        If an expression keeps no row, a run lacks its CPU or throughput, layouts differ, no fresh run has full nodes,
        or neither has an aged one nor do both have a common rate.
    """
    chosen = [list(LOAD_TESTS.rows(frame[chosen_rows(frame, expression)])) for expression in (fresh, aged)]
    for expression, rows in zip((fresh, aged), chosen, strict=True):
        if not rows:
            raise InputError(f"{expression!r} keeps none of the {len(frame)} rows: choose those of some runs")
    _check_alike([*chosen[0], *chosen[1]])
    fresh_runs, aged_runs = (list(_runs(rows)) for rows in chosen)
    full_fresh, full_aged = map(_full, (fresh_runs, aged_runs))
    if not full_fresh:
        busiest = max(run.busy_percent for run in fresh_runs)
        raise InputError(
            f"fresh nodes use at most {busiest:.0f} % of their CPU: add a run that fills them, to {FULL_PERCENT:.0f} % "
            "or more, as nodes that wait hide what a request takes"
        )
    if full_aged:
        return _of_full_nodes(full_fresh, full_aged)
    pairs = list(_pairs(fresh_runs, aged_runs))
    if not pairs:
        raise InputError(
            f"no aged run fills its nodes, to {FULL_PERCENT:.0f} % or more, and none has the rate of a fresh one, "
            f"within {ALIKE:.0%}: add one of both"
        )
    return _of_one_rate(full_fresh, pairs)


def _check_alike(rows: Sequence[LoadTestRow]) -> None:
    for name in _COMPARED:
        cells = [getattr(row, name) for row in rows]
        values = list(dict.fromkeys(round(cell, 2) if isinstance(cell, float) else cell for cell in cells))
        if len(values) > 1:
            raise InputError(
                f"rows differ in {name} ({values[0]} and {values[1]}): choose runs that differ in their data only"
            )


def _runs(rows: Sequence[LoadTestRow]) -> Iterator[_Run]:
    """Yield the runs of some rows; a row without run_id is a run."""
    for classes in grouped(enumerate(rows), lambda each: (each[1].run_id or each[0], each[1].repeat)).values():
        of_run = [row for _, row in classes]
        whole = [row for row in of_run if row.request_class in (None, ALL)] or of_run
        for name in ("throughput_tps", "node_cpu_percent"):
            if not all(getattr(row, name) for row in whole):
                which = f"run {whole[0].run_id}" if whole[0].run_id else "a run without run_id"
                raise InputError(f"{which} has no {name}: fill the column, or choose other runs")
        rate, busy = sum(row.throughput_tps or 0.0 for row in whole), whole[0].node_cpu_percent or 0.0
        yield _Run(rate, busy, 1000 * busy / rate)


def _full(runs: Sequence[_Run]) -> list[_Run]:
    busy = [run for run in runs if run.busy_percent >= FULL_PERCENT]
    most = max((run.rate_tps for run in busy), default=0.0)
    return [run for run in busy if run.rate_tps >= NEAR_HIGHEST * most]


def _pairs(fresh: Sequence[_Run], aged: Sequence[_Run]) -> Iterator[tuple[list[_Run], list[_Run]]]:
    """Yield fresh and aged runs at each rate that both have."""
    for group in grouped(fresh, lambda run: next(each.rate_tps for each in fresh if _alike(each, run))).values():
        others = [run for run in aged if _alike(group[0], run)]
        if others:
            yield group, others


def _alike(run: _Run, other: _Run) -> bool:
    return abs(math.log(other.rate_tps / run.rate_tps)) <= ALIKE


def _of_full_nodes(fresh: Sequence[_Run], aged: Sequence[_Run]) -> DataFactor:
    ratio = float(np.mean(_logs(aged)) - np.mean(_logs(fresh)))
    half = _half_width([fresh, aged]) * math.sqrt(1 / len(fresh) + 1 / len(aged))
    band = Band(math.exp(ratio), math.exp(ratio - half), math.exp(ratio + half))
    return DataFactor(band, "full nodes", (_summary("fresh", fresh), _summary("aged", aged)))


def _of_one_rate(full: Sequence[_Run], pairs: Sequence[tuple[list[_Run], list[_Run]]]) -> DataFactor:
    """Return the factor of what aged data add, with equal weight for each rate."""
    work = _middle(full)
    half = _half_width([full, *(side for pair in pairs for side in pair)])
    added = [(_middle(aged) - _middle(fresh)) / work for fresh, aged in pairs]
    squares = [_middle(side) ** 2 / len(side) / work**2 for pair in pairs for side in pair]
    more = float(np.mean(added))
    by_chance = half * math.sqrt(sum(squares) / len(pairs) ** 2 + more**2 / len(full))
    error = math.hypot(by_chance, _NORMAL * RATE_ERROR * more)
    value = max(1 + more, _LEAST)
    sides = ((data, side) for pair in pairs for data, side in zip(_SIDES, pair, strict=True))
    runs = (_summary("fresh", full), *(_summary(data, side) for data, side in sides))
    return DataFactor(Band(value, max(value - error, _LEAST), value + error), "one rate", runs)


def _logs(runs: Sequence[_Run]) -> FloatArray:
    return np.log([run.cpu_percent for run in runs])


def _middle(runs: Sequence[_Run]) -> float:
    return math.exp(float(np.mean(_logs(runs))))


def _half_width(groups: Sequence[Sequence[_Run]]) -> float:
    """Return the half-width of a 90 % band of the logarithm of one run."""
    freedom = FREEDOM + sum(len(group) - 1 for group in groups)
    squares = FREEDOM * SCATTER**2 + sum(len(group) * float(np.var(_logs(group))) for group in groups)
    return math.sqrt(squares / freedom) * float(special.stdtrit(freedom, 0.95))


def _summary(data: Data, runs: Sequence[_Run]) -> CpuOfRequest:
    rate, busy = (float(np.mean([getattr(run, name) for run in runs])) for name in ("rate_tps", "busy_percent"))
    return CpuOfRequest(data, rate, busy, _middle(runs), len(runs))
