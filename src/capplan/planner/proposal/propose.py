"""`proposal`: turns a sizing question into all contents of its document.

Who a proposal is for and who makes it: the details of a TOML file, with a logo that is checked.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from capplan.answers.results import STATISTICS, Band, plain, rounded
from capplan.answers.verdict import DATA
from capplan.calibration.tables.scores import BacktestRow
from capplan.errors import InputError
from capplan.layout.case import Case
from capplan.layout.components import Machines
from capplan.layout.fitted_file import Fitted
from capplan.layout.system import System
from capplan.layout.table_rows import rows_of
from capplan.models.language.scenario import Scenario
from capplan.planner.demand.demand import Demand
from capplan.planner.demand.forecast import layout_of, with_demand
from capplan.planner.predict.predict import predict
from capplan.planner.proposal.acceptance import acceptance_test
from capplan.planner.proposal.alternatives import survival
from capplan.planner.proposal.details import Details
from capplan.planner.proposal.evidence import (
    Fold,
    assumptions,
    evidence_used,
    fold_of,
    limits,
    measured_inputs,
    predicted_unseen,
    unseen_rows,
)
from capplan.planner.proposal.failures import first_minute, losses_to_simulate, mass_return
from capplan.planner.proposal.proposal import (
    DISKS,
    RATE,
    Asked,
    FitsUntil,
    LatencyCurve,
    MachineCount,
    MassReturn,
    Place,
    Proposal,
    Provenance,
    YearOfGrowth,
)
from capplan.planner.size.search import Disks, disks_of
from capplan.planner.size.size import SizingQuestion, months_of_rate, size_families
from capplan.planner.size.sizing import SizedLayout, Sizing, chosen_scenario, nothing_found
from capplan.planner.sweep import AnalyticPoints
from capplan.simulator.workers import Workers, run_all
from capplan.systems.registry import resolve, system, table_system

LOADS = 25
DRAWS = 64  # of 512: medians within 1 %, see `sweep`
BEYOND = 1.08  # times the larger of the capacity and the planned rate, where curves end
MOST_YEARS = 10
_MONTHS = 12
Stage = Callable[[str], None]
"""Told the name of each stage of the work as it starts."""
TASKS = 4
"""How many tasks run at once after the search."""
STAGES = ("searching families of layouts", "predicting the layout and its options")


class NoLayoutError(InputError):
    """No layout is safe enough, so there is no proposal; the message names the nearest layout."""


@dataclass(frozen=True)
class ProposalQuestion:
    """The question of a proposal.

    Attributes
    ----------
    details : Details
        Who the proposal is for and who makes it.
    base : Scenario
        The fields that are not sized, with the offered rate and the objectives.
    sizing : SizingQuestion
        What to choose from, and what the layout must survive.
    fitted : Fitted or None
        The calibration to use; the system's own by default.
    command : str
        The command line that asked; empty where there is none.
    """

    details: Details
    base: Scenario
    sizing: SizingQuestion
    fitted: Fitted | None = None
    command: str = ""


def propose(question: ProposalQuestion, workers: Workers | None = None, stage: Stage = lambda _: None) -> Proposal:
    """Size a layout and collect the answers to a customer's questions about it.

    Parameters
    ----------
    question : ProposalQuestion
        What is asked.
    workers : Workers, optional
        Where layouts are searched; this process by default. The answer does not depend on it.
    stage : function
        Told the name of each stage as it starts.

    Returns
    -------
    Proposal
        The layout with its figures, its evidence and its limits.

    Raises
    ------
    InputError
        If something in the question cannot be read.
    NoLayoutError
        If no layout is safe enough.
    """
    stage(STAGES[0])
    question = replace(question, base=with_demand(question.base, question.sizing.demand))
    its: System[Any] = system(question.base.system)
    sizing, results = size_families(question.base, question.sizing, workers, question.fitted)
    if sizing.chosen is None:
        why = nothing_found(sizing).rstrip(".")
        raise NoLayoutError(f"there is nothing to propose: {why[:1].lower()}{why[1:]}")
    stage(STAGES[1])
    scenario = chosen_scenario(question.base, sizing, sizing.chosen)
    fitted = question.fitted or its.fitted()
    result = next(each for each in results if each.best is sizing.chosen)
    fitted_rows = () if fitted.clusters else rows_of(fitted)
    fold = None if not fitted_rows else fold_of(table_system(fitted.system), fitted_rows)
    tasks: list[Callable[[], Any]] = [
        partial(survival, question.base, question.sizing, fitted, sizing, result),
        partial(predict, scenario, engine=question.sizing.engine, fitted=fitted, seed=question.sizing.seed),
        partial(_supported, scenario, fitted, question.sizing.seed, sizing),
        partial(_predicted_unseen, fitted, fold),
    ]
    if question.sizing.engine != "analytic":
        lost = losses_to_simulate(its, scenario, sizing.situations)
        tasks += [partial(first_minute, scenario, fitted, question.sizing.seed, word) for word in lost]
    (options, failures), prediction, support, unseen, *minutes = run_all(workers, tasks)
    if fitted_rows:
        support["evidence"] = replace(support["evidence"], unseen=unseen_rows(fold, unseen))
    return Proposal(
        details=question.details,
        asked=asked(question),
        sizing=sizing,
        prediction=prediction,
        places=_places(its, scenario),
        bill=_bill(its, sizing.chosen, question.sizing),
        growth=growth(sizing),
        fits_until=fits_until(
            sizing, sizing.chosen, disks_of(question.sizing.demand, question.sizing.seed, question.base)
        ),
        failures=failures,
        first_minutes=tuple(minutes),
        mass_return=_mass_return(question.sizing.demand, scenario, fitted, sizing.chosen.cells),
        survival_options=options,
        inputs=measured_inputs(its, scenario),
        limits=limits(its, sizing, prediction),
        provenance=provenance(fitted, question.sizing.seed),
        **support,
    )


def _mass_return(demand: Demand | None, scenario: Scenario, fitted: Fitted, cells: int) -> MassReturn | None:
    if demand is None or demand.stated:
        return None
    return mass_return(demand, cells * layout_of(demand, scenario, fitted).reattach_capacity.value)


def _supported(scenario: Scenario, fitted: Fitted, seed: int, sizing: Sizing) -> dict[str, Any]:
    """Return the parts of a proposal that support its figures, by name."""
    case = resolve(scenario, fitted, seed)
    planned = case.given_per_s
    if planned is None or sizing.chosen is None:
        raise ValueError("a proposal has a planned rate and a layout")
    case = case.at(planned)
    return {
        "latency_curves": tuple(_curves(case, planned)),
        "assumptions": assumptions(case, planned),
        "evidence": evidence_used(case),
        "round_trips_ms": tuple(
            tuple(rounded(1e3 * each) for each in row)
            for row in case.system.component(Machines).round_trips_s(case.scenario, case.values)
        ),
        "acceptance": acceptance_test(case, sizing.planned_tps, sizing.chosen),
    }


def _predicted_unseen(fitted: Fitted, fold: Fold | None) -> tuple[BacktestRow, ...]:
    return () if fold is None else predicted_unseen(table_system(fitted.system), rows_of(fitted), fold, fitted.seed)


def asked(question: ProposalQuestion) -> Asked:
    """Return the question in the form that the proposal stores."""
    its = question.sizing
    given = {name: value for name, value in vars(question.base).items() if value is not None and value != ()}
    same = ("survive", "confidence", "growth_per_year", "years", "cells", "engine", "seed")
    return Asked(
        **{name: getattr(its, name) for name in same},
        scenario=given,
        sized=dict(its.sized),
        families={name: tuple(values) for name, values in its.families.items()},
        currency=its.unit[0],
        period=its.unit[1],
        prices=its.prices.each,
        shapes=None if its.shapes is None else plain(its.shapes),
        demand=None if its.demand is None else plain(its.demand),
        command=question.command,
    )


def provenance(fitted: Fitted, seed: int) -> Provenance:
    """Return the program and data behind the figures."""
    drawn = json.dumps([fitted.names, fitted.draws], separators=(",", ":"))
    return Provenance(version("capplan"), seed, fitted.data_hash, hashlib.sha256(drawn.encode()).hexdigest())


def growth(sizing: Sizing) -> tuple[YearOfGrowth, ...]:
    """Return the offered rate by year, up to two years beyond the plan; only today's rate without growth."""
    last = min(math.ceil(sizing.years) + 2, MOST_YEARS) if sizing.growth_per_year else 0
    rate = 1 + sizing.growth_per_year
    return tuple(YearOfGrowth(float(year), sizing.offered_tps * rate**year) for year in range(last + 1))


def fits_until(sizing: Sizing, layout: SizedLayout, disks: Disks | None) -> tuple[FitsUntil, ...]:
    """Return when growth reaches each situation's held rate, earliest first, and when it fills the disks."""

    def months(held_tps: float) -> Band | None:
        if disks is not None or not sizing.growth_per_year or held_tps <= 0:
            return months_of_rate(disks, sizing.planned_tps, held_tps)
        return Band.exactly(_MONTHS * math.log(held_tps / sizing.offered_tps) / math.log1p(sizing.growth_per_year))

    by_volume = layout.months_of_data is not None
    growing = [
        each for each in layout.safety if math.isfinite(each.held_tps) and not (by_volume and each.conditions == DATA)
    ]
    rates = sorted(growing, key=lambda each: each.held_tps)
    found = [FitsUntil(RATE, each.conditions, each.held_tps, months(each.held_tps)) for each in rates]
    disk = next((each for each in layout.safety if each.conditions == DATA), None)
    if layout.months_of_data is not None and disk is not None:
        found.append(FitsUntil(DISKS, DATA, disk.held_tps, layout.months_of_data))
    return tuple(found)


def _places(its: System[Any], scenario: Scenario) -> tuple[Place, ...]:
    machines = its.component(Machines).by_dc(scenario)
    names = [f"DC {number}" for number, _ in enumerate(machines, 1)] if len(machines) > 1 else ["one data centre"]
    return tuple(Place(name, dict(each)) for name, each in zip(names, machines, strict=True))


def _bill(its: System[Any], layout: SizedLayout, question: SizingQuestion) -> tuple[MachineCount, ...]:
    given = question.prices if question.shapes is None else question.shapes.prices(layout.shapes)
    prices: Mapping[str, float] = given.each or dict.fromkeys(layout.machines, 1.0)
    return tuple(
        MachineCount(
            kind, its.component(Machines).kinds[kind].name, count, prices.get(kind, 0.0), layout.shapes.get(kind, "")
        )
        for kind, count in layout.machines.items()
    )


def _curves(case: Case[Any], planned: float) -> Iterator[LatencyCurve]:
    """Yield the latency curves of the classes with objectives; of all classes if no objective is about a time."""
    limits: dict[tuple[str, str], list[float]] = {}
    for objective in case.objectives:
        for each in objective.comparisons():
            if each.metric.kind == "duration":
                limits.setdefault((each.metric.subject, each.metric.statistic), []).extend(
                    1e3 * bound for bound in each.bounds if 0 < bound < math.inf
                )
    end = BEYOND * max(float(np.median(case.solution.capacity)), planned)
    offered = [float(each) for each in end * (1 - (1 - np.linspace(0.05, 1.0, LOADS)) ** 1.5)]
    points = list(AnalyticPoints(replace(case, draws=DRAWS)).at(offered))
    classes = dict.fromkeys(name for name, _ in limits) or case.system.classes(case.scenario)
    for name in classes:
        wanted = {"mean", *(statistic for its, statistic in limits if its == name)} | ({"p99"} if not limits else set())
        for statistic in (each for each in STATISTICS if each in wanted):
            column = f"{name}_{statistic}_ms"
            yield LatencyCurve(
                request_class=name,
                statistic=statistic,
                offered_tps=tuple(rounded(each) for each in offered),
                value_ms=_cells(points, column),
                low_ms=_cells(points, f"{column}_low"),
                high_ms=_cells(points, f"{column}_high"),
                limits_ms=tuple(limits.get((name, statistic), ())),
            )


def _cells(points: Sequence[Mapping[str, Any]], column: str) -> tuple[float | None, ...]:
    values = [point[column] for point in points]
    return tuple(None if value is None or not math.isfinite(value) else rounded(float(value)) for value in values)
