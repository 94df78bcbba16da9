"""The data factor: CPU that a request takes of the nodes in some runs, over that in others at the same rates.

CPU a request falls as the rate rises, as nodes also use CPU when they wait. So only runs at the same rate are compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from capplan.evidence.audit.load_tests import LAYOUT
from capplan.evidence.load_test_row import ALL, LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.row_choice import chosen_rows
from capplan.models.errors import InputError
from capplan.models.grouped import grouped
from capplan.models.language.units import FloatArray
from capplan.models.results import Band
from capplan.models.verb_answer import VerbAnswer

ALIKE = 0.03
"""Difference of two rates, as a share, up to which they are the same."""
SCATTER, ITS_REPEATS = 0.04, 4
"""Of CPU a request between repeats (logarithm), and what it counts as beside a table's own repeats.

Repeats of the lab's compaction and repair scatter by 5.1 and 1.6 %, together by 3.8 % (docs/reference/maintenance).
"""
_COMPARED = (*LAYOUT, "read_fraction")


@dataclass(frozen=True)
class FactorAtRate:
    """The factor at one rate.

    Attributes
    ----------
    rate_tps
        Requests per second.
    fresh_percent
        CPU that 1,000 requests per second take in the fresh runs, per cent of the nodes.
    aged_percent
        The same in the aged runs.
    fresh_runs
        Number of fresh runs.
    aged_runs
        Number of aged runs.
    factor
        Aged over fresh, with its 90 % band.
    """

    rate_tps: float
    fresh_percent: float
    aged_percent: float
    fresh_runs: int
    aged_runs: int
    factor: Band


@dataclass(frozen=True)
class DataFactor(VerbAnswer):
    """How much more CPU a request takes on aged data.

    Attributes
    ----------
    factor
        Aged over fresh at all rates, with its 90 % band.
    rates
        The same at each rate that both have.
    """

    SCHEMA = "capplan.data-factor/1"

    factor: Band
    rates: tuple[FactorAtRate, ...]

    @property
    def option(self) -> str:
        """The option that states the factor: `--data-factor 1.31..1.54`."""
        return f"--data-factor {self.factor.low:.3g}..{self.factor.high:.3g}"


class _Run(NamedTuple):
    rate_tps: float
    cpu_percent: float  # of all nodes, for 1,000 requests per second
    aged: bool


def data_factor(frame: pd.DataFrame, fresh: str, aged: str) -> DataFactor:
    """Return by how much more CPU a request takes in the aged runs of a table than in the fresh ones.

    Parameters
    ----------
    frame : pandas.DataFrame
        A load-test table.
    fresh, aged : str
        Expressions that choose the rows of each; see `row_choice`.

    Raises
    ------
    InputError
        If an expression keeps no row, a run lacks its CPU or throughput, layouts differ, or no rate is in both.
    """
    chosen = [list(LOAD_TESTS.rows(frame[chosen_rows(frame, expression)])) for expression in (fresh, aged)]
    for expression, rows in zip((fresh, aged), chosen, strict=True):
        if not rows:
            raise InputError(f"{expression!r} keeps none of the {len(frame)} rows: choose those of some runs")
    _check_alike([*chosen[0], *chosen[1]])
    runs = [run for rows, is_aged in zip(chosen, (False, True), strict=True) for run in _runs(rows, is_aged)]
    both = [group for group in _by_rate(runs) if len({run.aged for run in group}) > 1]
    if not both:
        lowest = [min(run.rate_tps for run in runs if run.aged is is_aged) for is_aged in (False, True)]
        raise InputError(
            f"no rate is in both, such as {lowest[0]:,.0f}/s of fresh and {lowest[1]:,.0f}/s of aged runs: run both at "
            f"the same rate, within {ALIKE:.0%}, as CPU a request falls while the rate rises"
        )
    half = _half_width(both)
    rates = tuple(_at_rate(group, half) for group in both)
    weights = [1 / (1 / each.fresh_runs + 1 / each.aged_runs) for each in rates]
    middle = float(np.average([math.log(each.factor.value) for each in rates], weights=weights))
    return DataFactor(_band(middle, half / math.sqrt(sum(weights))), rates)


def _check_alike(rows: Sequence[LoadTestRow]) -> None:
    for name in _COMPARED:
        cells = [getattr(row, name) for row in rows]
        values = list(dict.fromkeys(round(cell, 2) if isinstance(cell, float) else cell for cell in cells))
        if len(values) > 1:
            raise InputError(
                f"rows differ in {name} ({values[0]} and {values[1]}): choose runs that differ in their data only"
            )


def _runs(rows: Sequence[LoadTestRow], aged: bool) -> Iterator[_Run]:
    """Yield the runs of some rows; a row without run_id is a run."""
    for classes in grouped(enumerate(rows), lambda each: (each[1].run_id or each[0], each[1].repeat)).values():
        of_run = [row for _, row in classes]
        whole = [row for row in of_run if row.request_class in (None, ALL)] or of_run
        for name in ("throughput_tps", "node_cpu_percent"):
            if not all(getattr(row, name) for row in whole):
                raise InputError(f"run {whole[0].run_id or ''} has no {name}: fill the column, or choose other runs")
        rate = sum(row.throughput_tps or 0.0 for row in whole)
        yield _Run(rate, 1000 * (whole[0].node_cpu_percent or 0.0) / rate, aged)


def _by_rate(runs: Sequence[_Run]) -> Iterator[list[_Run]]:
    """Yield groups of runs at about one rate; none differ by more than `ALIKE`."""
    group: list[_Run] = []
    for run in sorted(runs, key=lambda each: each.rate_tps):
        if group and run.rate_tps > (1 + ALIKE) * group[0].rate_tps:
            yield group
            group = []
        group.append(run)
    yield group


def _logs(group: Sequence[_Run], aged: bool) -> FloatArray:
    return np.log([run.cpu_percent for run in group if run.aged is aged])


def _half_width(groups: Sequence[Sequence[_Run]]) -> float:
    """Return the half-width of a 90 % band of the logarithm of one run."""
    sides = [_logs(group, aged) for group in groups for aged in (False, True)]
    freedom = ITS_REPEATS + sum(len(side) - 1 for side in sides)
    squares = ITS_REPEATS * SCATTER**2 + sum(float(np.sum((side - side.mean()) ** 2)) for side in sides)
    return math.sqrt(squares / freedom) * float(stdtrit(freedom, 0.95))


def _at_rate(group: Sequence[_Run], half: float) -> FactorAtRate:
    fresh, aged = _logs(group, False), _logs(group, True)
    return FactorAtRate(
        rate_tps=fmean(run.rate_tps for run in group),
        fresh_percent=math.exp(fresh.mean()),
        aged_percent=math.exp(aged.mean()),
        fresh_runs=len(fresh),
        aged_runs=len(aged),
        factor=_band(aged.mean() - fresh.mean(), half * math.sqrt(1 / len(fresh) + 1 / len(aged))),
    )


def _band(middle: float, half: float) -> Band:
    return Band(math.exp(middle), math.exp(middle - half), math.exp(middle + half))
