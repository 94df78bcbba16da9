"""The evidence behind a proposal: how much there is, how well it predicts, and what would narrow the band."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from capplan.calibration.case.extrapolation import RATE, Extrapolation
from capplan.calibration.fit.fitted_file import FittedTable
from capplan.calibration.system import Case
from capplan.calibration.validation.validate import report
from capplan.planner.proposal.proposal import EvidenceUsed, Narrower
from capplan.planner.size.in_words import statistic
from capplan.planner.size.sizing import steady

_LEAST = 0.1  # of the band: what must be gained to be worth a line


def evidence_used(case: Case[Any]) -> EvidenceUsed:
    """Return the evidence that a case rests on, by the figures and refits that its calibration holds."""
    if case.fitted.table is not None:
        return _of_table(case, case.fitted.table)
    its = case.system
    tests, rows = its.observations.load_tests(), its.evidence
    backtest = report(its, case.fitted)
    return EvidenceUsed(
        rows=len(rows),
        fitted_rows=sum(row.use == "fit" for row in rows),
        load_tests=len(tests),
        scenarios=len({test.fold for test in tests}),
        sources=its.citations(),
        defects=tuple(defect for source in its.sources for defect in source.defects),
        basis=case.extrapolation.basis,
        why=case.extrapolation.why,
        half_width=_half_width(case, case.system.extrapolation(case.scenario, _capacity(case))),
        narrower=(*_never_measured(case), *_narrower(case)),
        left_out_figures=sum(each.counts for each in backtest.left_out),
        left_out_error=None if backtest.own is None else steady(backtest.own.error),
        left_out_held=backtest.coverage.held,
        left_out_banded=backtest.coverage.figures,
        verdict=backtest.verdict,
    )


def _of_table(case: Case[Any], table: FittedTable) -> EvidenceUsed:
    """Return the evidence of a system that was fitted to a user's load tests, which has no documents."""
    return EvidenceUsed(
        rows=len(table.rows),
        fitted_rows=len(table.rows),
        load_tests=len(case.system.observations.load_tests()),
        scenarios=0,
        sources=tuple(dict.fromkeys(str(row["source"]).split(", line ")[0] for row in table.rows if row.get("source"))),
        defects=(),
        basis=case.basis.of_capacity(),
        why=case.extrapolation.why,
        half_width=_half_width(case, case.system.extrapolation(case.scenario, _capacity(case))),
        narrower=tuple(_never_measured(case)),
        left_out_figures=0,
        left_out_error=None,
        left_out_held=0,
        left_out_banded=0,
        verdict="",
    )


def _capacity(case: Case[Any]) -> float:
    return float(np.median(case.solution.capacity))


def _half_width(case: Case[Any], far: Extrapolation, certain: bool = False) -> float:
    """Return the half-width of the band of the capacity, as a share of it, at some distance from the load tests."""
    measured = case.system.uncertainty(case.fitted, case.scenario, case.seed)
    draws = case.solution.capacity
    if certain:
        draws = np.full_like(draws, np.median(draws))
    band = measured.widened(rate=far.factor(case.system.widening, RATE, case.responses)).of_rate(draws)
    return steady((band.high - band.low) / 2 / band.value)


def _never_measured(case: Case[Any]) -> Iterator[Narrower]:
    """Yield the figures of objectives that no load test reports."""
    rate = case.offered_per_s or _capacity(case)
    metrics = dict.fromkeys(
        metric for each in case.objectives for metric in each.metrics() if metric.kind == "duration"
    )
    for metric in metrics:
        if case.basis.of_latency(metric.subject, metric.statistic, rate) == "model only":
            yield Narrower(f"A load test that reports the {statistic(metric.statistic)} of {metric.subject}", None)


def _narrower(case: Case[Any]) -> Iterator[Narrower]:
    """Yield what a load test of this layout, or of one side of it, would make of the band."""
    far = case.system.extrapolation(case.scenario, _capacity(case))
    now = _half_width(case, far)
    ways = (*far.excess, *far.excess_of_rates)
    if ways:
        near = replace(far, excess=(), excess_of_rates=())
        yield Narrower("A load test of this very layout", _half_width(case, near, certain=True))
    if len(ways) > 1:
        for way in ways:
            without = replace(
                far,
                excess=tuple(each for each in far.excess if each is not way),
                excess_of_rates=tuple(each for each in far.excess_of_rates if each is not way),
            )
            if (half_width := _half_width(case, without)) < now * (1 - _LEAST):
                yield Narrower(f"A load test that covers: {way.words}", half_width)
    if (certain := _half_width(case, far, certain=True)) < now * (1 - _LEAST):
        yield Narrower("Parameters measured on the customer's own nodes", certain)
