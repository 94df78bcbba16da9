"""`size`: the cheapest layout that meets its objectives with a stated confidence in every situation it must survive.

Layouts come in families, which differ in more than numbers of machines. Each is searched on its own; the cheapest of
their best layouts is the answer, and the others are its alternatives.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from itertools import count
from typing import Any

import numpy as np

from capplan.answers.results import Band
from capplan.answers.verdict import CONFIDENCE, RESOURCES, answer, check_confidence
from capplan.errors import InputError
from capplan.layout.components import Machines
from capplan.layout.fitted_file import Fitted
from capplan.layout.situations import DC, Losses
from capplan.layout.system import System
from capplan.models.language.scenario import Scenario, changed, defaults_of
from capplan.planner.demand.demand import Demand
from capplan.planner.demand.forecast import contradicted, growth_per_year, months_until_rate, with_demand
from capplan.planner.predict.capacity import objectives_at_a_rate
from capplan.planner.predict.prediction import left_open_at_a_rate
from capplan.planner.size.machines import Prices, Shapes, combinations, disk_gib, fields_of
from capplan.planner.size.reserve import of_miss, of_sizing
from capplan.planner.size.search import (
    CONFIDENCES,
    Disks,
    Family,
    FamilyResult,
    SizingTarget,
    best_of,
    disks_of,
    would_help,
)
from capplan.planner.size.sizing import AtConfidence, SizedLayout, Sizing, Stage, nearest, steady
from capplan.planner.sustained import JudgingEngine, not_asked, read_conditions
from capplan.simulator.workers import Workers, run_all
from capplan.systems.registry import resolve, system

Progress = Callable[[int, int], None]
"""Told how many of how many families have been searched."""
MOST_LAYOUTS = 1_000_000
_MONTHS = 12


@dataclass(frozen=True)
class SizingQuestion:
    """The question of a sizing.

    Attributes
    ----------
    survive : tuple of str
        What to survive, such as `dc,node,dc+compaction`.
    confidence : float
        Probability with which the objectives must hold under each of the conditions; above 0 and below 1.
    growth_per_year : float
        Growth of the offered rate, 0.3 for 30 % a year.
    years : float
        Planned time.
    sized : mapping of (int, int)
        Lowest and highest numbers of machines, by field; the system's own where a field is missing.
    families : mapping of sequences
        Values of other fields to choose from, by field.
    prices : Prices
        What machines cost, unless there are shapes.
    shapes : Shapes or None
        Shapes of machines to choose from; those of the scenario if left out.
    cells : tuple of int
        Numbers of cells to choose from: equal layouts that share the traffic, each with its own machines.
    demand : Demand or None
        The demand that the rate comes from: its data must fit on the disks, and its growth says for how long.
    engine : str
        `compiled` confirms the best layouts by simulation; `analytic` does not.
    seed : int
        Seed of every random number.
    """

    survive: tuple[str, ...] = ()
    confidence: float = CONFIDENCE
    growth_per_year: float = 0.0
    years: float = 0.0
    sized: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    families: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    prices: Prices = field(default_factory=Prices)
    shapes: Shapes | None = None
    cells: tuple[int, ...] = (1,)
    demand: Demand | None = None
    engine: JudgingEngine = "compiled"
    seed: int = 1

    @property
    def unit(self) -> tuple[str, str]:
        """The currency and the period of its prices; that of machines which count as one is empty."""
        priced: Prices | Shapes = self.prices
        if self.shapes is not None and self.shapes.priced:
            priced = self.shapes
        return priced.currency, priced.period


def size(
    base: Scenario,
    question: SizingQuestion,
    workers: Workers | None = None,
    fitted: Fitted | None = None,
    progress: Progress = lambda _done, _total: None,
) -> Sizing:
    """Find the cheapest layout.

    Parameters
    ----------
    base : Scenario
        The fields that are not sized, with the offered rate and the objectives. Without a rate, that of the demand in
        the question, and its mix.
    question : SizingQuestion
        What to choose from, and what the layout must survive.
    workers : Workers, optional
        Where families are searched; this process by default. The answer does not depend on it.
    fitted : Fitted, optional
        The calibration to use; the system's own by default.
    progress : function
        Told how many of how many families have been searched.

    Raises
    ------
    InputError
        If the system has no machines to size, no rate is given, or something in the question cannot be read.
    """
    return size_families(base, question, workers, fitted, progress)[0]


def size_families(
    base: Scenario,
    question: SizingQuestion,
    workers: Workers | None = None,
    fitted: Fitted | None = None,
    progress: Progress = lambda _done, _total: None,
) -> tuple[Sizing, list[FamilyResult]]:
    """Find the cheapest layout; return it with the search result of each family; see `size`."""
    target = sizing_target(with_demand(base, question.demand), question, fitted)
    chosen_from = [_redundant(target, question, family) for family in families(base, question)]
    if (layouts := sum(family.layouts for family in chosen_from)) > MOST_LAYOUTS:
        raise InputError(f"{layouts:,} layouts are too many to choose from: at most {MOST_LAYOUTS:,}, narrow a range")
    done, total = count(1), len(chosen_from)
    tasks = [partial(best_of, target, family, question.engine, CONFIDENCES) for family in chosen_from]
    results = run_all(workers, tasks, lambda _: progress(next(done), total))
    found = _answer(target, question, results)
    layout = found.chosen or nearest(found)
    its = next((each for each in results if layout is not None and layout in (each.best, each.miss)), None)
    if layout is None or its is None:
        return found, list(results)
    assumed = of_sizing if found.chosen is not None else of_miss
    found = replace(found, conditions=tuple(assumed(target, layout, its, question.engine)))
    if found.chosen is None:
        return found, list(results)
    found = replace(found, confidences=tuple(_confidences(target, results)))
    target_in = partial(_target_in, target, question.demand, found)
    return replace(found, stages=_stages(found, its.family, question.engine, target_in)), list(results)


def _confidences(target: SizingTarget, results: Sequence[FamilyResult]) -> Iterator[AtConfidence]:
    """Yield what each confidence costs: the cheapest layout of all families."""
    its = system(target.base.system)
    for confidence in CONFIDENCES:
        found = [(best, each.family) for each in results if (best := each.at_confidences.get(confidence)) is not None]
        best, family = min(found, key=lambda pair: pair[0].cost, default=(None, None))
        if best is None or family is None:
            yield AtConfidence(confidence=confidence, machines={}, cost=None)
            continue
        machines = {kind: family.cells * count for kind, count in its.component(Machines).counts(best.scenario).items()}
        yield AtConfidence(confidence=confidence, machines=machines, cost=best.cost)


def _target_in(target: SizingTarget, demand: Demand | None, found: Sizing, months: float) -> SizingTarget:
    """Return the requirements after a part of the planned time."""
    if demand is not None:  # its data, and its connections, which do not grow with the rate
        demand = replace(demand, years=demand.years * months / (_MONTHS * found.years))
        kind = type(target.base)
        usual = defaults_of(kind)
        base = changed(target.base, **{name: usual[name] for name in contradicted(demand, kind)})
        target = replace(target, base=with_demand(base, demand), disks=disks_of(demand, target.seed, base))
    return replace(target, offered_per_s=_rate_in(found, months))


def _rate_in(found: Sizing, months: float) -> float:
    """Return the offered rate after some months."""
    return float(found.offered_tps * (1 + found.growth_per_year) ** (months / _MONTHS))


def _stages(
    found: Sizing, family: Family, engine: JudgingEngine, target_in: Callable[[float], SizingTarget]
) -> tuple[Stage, ...]:
    """Return the purchases of a plan.

    The search for the plan is repeated for each year before the last, between what is bought by then and the chosen
    layout. A year that needs nothing more belongs to the stage before.
    """
    chosen, last = found.chosen, _MONTHS * found.years
    if chosen is None or found.growth_per_year <= 0 or last <= 0:
        return ()
    least, stages = {name: low for name, (low, _) in family.sized.items()}, list[Stage]()
    for start in range(0, math.ceil(last), _MONTHS):
        end, layout = min(float(start + _MONTHS), last), chosen
        if end < last and any(low < chosen.fields[name] for name, low in least.items()):
            between = {name: (low, chosen.fields[name]) for name, low in least.items()}
            layout = best_of(target_in(end), replace(family, sized=between), engine).best or chosen
        same = [stages.pop()] if stages and stages[-1].layout.machines == layout.machines else []
        begin = same[0].from_month if same else float(start)
        stages.append(_stage(found, layout, stages[-1].layout if stages else None, begin, end))
        least = {name: layout.fields[name] for name in least}
    return tuple(stages)


def _stage(found: Sizing, layout: SizedLayout, before: SizedLayout | None, start: float, end: float) -> Stage:
    """Return a purchase that is needed from one month to another, after what was bought before."""
    has = {} if before is None else before.machines
    return Stage(
        from_month=start,
        to_month=end,
        planned_tps=steady(_rate_in(found, end)),
        layout=layout,
        held_tps=layout.held_tps,
        lasts_months=_MONTHS * (_years(found.offered_tps, layout.held_tps, found.growth_per_year) or 0.0),
        added={kind: count - has.get(kind, 0) for kind, count in layout.machines.items()},
        cost_added=steady(layout.cost - (0.0 if before is None else before.cost)),
    )


def _ranges(base: Scenario, given: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """Return the numbers of machines to search: of a kind that the base has none of, none, unless a range is given."""
    usual = system(base.system).component(Machines).sized
    return {name: given.get(name, (0, 0) if getattr(base, name) == 0 else ends) for name, ends in usual.items()}


def most_machines(base: Scenario, given: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """Return the most machines of each kind that are searched: what a base has whose default has too few."""
    return {
        name: min(high, system(base.system).component(Machines).sized[name][1])
        for name, (_, high) in _ranges(base, given).items()
    }


def largest(base: Scenario, chosen_from: Sequence[Family]) -> list[Scenario]:
    """Return the largest layout of each family, if the system has such a layout; the base if no family does."""
    found = []
    for family in chosen_from:
        with suppress(InputError):
            found.append(changed(base, **{**family.fixed, **most_machines(base, family.sized)}))
    return found or [base]


def families(base: Scenario, question: SizingQuestion) -> list[Family]:
    """Return the families to choose from: one for each combination of values other than numbers of machines."""
    its = system(base.system)
    ranges = {name: range(low, high + 1) for name, (low, high) in its.component(Machines).families.items()}
    fixed: dict[str, Sequence[Any]] = {**ranges, **question.families}
    sized = _ranges(base, question.sized)
    return [
        Family({**dict(zip(fixed, values, strict=True)), **machine}, sized, prices, names, cells, disk_gib)
        for values in itertools.product(*fixed.values())
        for machine, prices, names, disk_gib in _machines(its, question)
        for cells in question.cells
    ]


def _redundant(target: SizingTarget, question: SizingQuestion, family: Family) -> Family:
    """Return a family with at least two machines of each kind whose loss stops everything, unless ranges are given.

    A range starts at two machines where the loss of one of each data centre then leaves service, and did not before.
    """
    its, most = system(target.base.system), {name: high for name, (_, high) in family.sized.items()}
    sized = dict(family.sized)
    for name in (each for each in family.sized.keys() - question.sized.keys() if most[each] > 1):
        alone, two = ({**family.fixed, **most, name: number} for number in (1, 2))
        kind = _kind(its, target.base, alone, two)
        if kind in its.component(Losses).kinds and _stops(target, alone, kind) and not _stops(target, two, kind):
            sized[name] = (max(2, sized[name][0]), sized[name][1])
    return replace(family, sized=sized)


def _kind(its: System[Any], base: Scenario, few: Mapping[str, Any], more: Mapping[str, Any]) -> str:
    """Return the kind of machine that one layout has more of than another; empty if either is invalid."""
    try:
        counts = [its.component(Machines).counts(changed(base, **fields)) for fields in (few, more)]
    except InputError:
        return ""
    return next((kind for kind, count in counts[1].items() if count > counts[0][kind]), "")


def _stops(target: SizingTarget, fields: Mapping[str, Any], loss: str) -> bool:
    """Whether a loss leaves a layout on which no request succeeds."""
    conditions = read_conditions([loss], system(target.base.system), target.fitted)[1:]
    (strain,) = replace(target, conditions=conditions).strains(changed(target.base, **fields)).values()
    return bool(strain.why)


_Machines = tuple[dict[str, Any], Prices, Mapping[str, str], float | None]


def _machines(its: System[Any], question: SizingQuestion) -> list[_Machines]:
    """Return for each choice of shapes its fields, prices, names and node disk."""
    shapes = question.shapes
    if shapes is None:
        return [({}, question.prices, {}, None)]
    return [
        (
            fields_of(shapes, names, its),
            shapes.prices(names),
            names,
            disk_gib(shapes, names, its),
        )
        for names in combinations(shapes)
    ]


def sizing_target(base: Scenario, question: SizingQuestion, fitted: Fitted | None) -> SizingTarget:
    """Return the requirements for a layout from scenario and question; refuse, like `size`, what cannot be sized."""
    its = system(base.system)
    if not its.component(Machines).sized:
        raise InputError(f"{its.name} cannot be sized: its documents have ratios of throughput only, and no rates")
    check_confidence(question.confidence)
    if question.demand is not None and question.growth_per_year:
        raise InputError("the demand has its own growth and years: change it there, and give no growth beside it")
    if not math.isfinite(question.growth_per_year) or question.growth_per_year < 0 or not 0 <= question.years <= 50:
        raise InputError(
            f"a growth of {question.growth_per_year:g} over {question.years:g} years cannot be planned: give at least "
            "0 % a year, and 0 to 50 years"
        )
    case = resolve(base, fitted, question.seed)
    if case.closed_clients is not None:
        raise InputError("a layout is sized for a rate, and closed clients have none: give --tps instead of --clients")
    if question.demand is not None and (growth := growth_per_year(question.demand)) < 0:
        raise InputError(
            f"growth is {growth:.0%} a year: a layout for the end would not carry today's rate. Leave growth out, to "
            "size for today"
        )
    if case.given_per_s is None:
        raise InputError("a layout is sized for a rate, and none is given: add --tps, such as --tps 20000")
    at_a_rate = objectives_at_a_rate(case)
    if of_capacity := [each.text for each in case.objectives if each not in at_a_rate]:
        raise InputError(f"{of_capacity[0]} is about the capacity, and a layout is sized for a rate: give it by --tps")
    return SizingTarget(
        base,
        case.fitted,
        read_conditions(question.survive, its, case.fitted),
        case.given_per_s * (1 + question.growth_per_year) ** question.years,
        question.confidence,
        question.seed,
        disks_of(question.demand, question.seed, base),
    )


def _answer(target: SizingTarget, question: SizingQuestion, results: Sequence[FamilyResult]) -> Sizing:
    safe = sorted((each.best for each in results if each.best is not None), key=lambda each: each.cost)
    chosen, planned = safe[0] if safe else None, target.offered_per_s
    growth, years = _growth(target, question)
    given = planned / (1 + growth) ** years
    largest_each = largest(target.base, [each.family for each in results])
    misses = [each.miss for each in results if each.miss is not None and (each.best is None or each.best is chosen)]
    least_risk = min((each.binding.risk for each in misses), default=1.0)  # where none can serve, the answer is no
    return Sizing(
        system=target.base.system,
        scenario=_kept(largest_each, results),
        answer="yes" if chosen is not None else answer(least_risk, target.confidence),
        offered_tps=given,
        planned_tps=planned,
        growth_per_year=growth,
        years=years,
        confidence=target.confidence,
        objectives=target.base.slo,
        situations=tuple(each.word for each in target.conditions)
        + tuple(
            word
            for word in RESOURCES
            if any(each.conditions == word for layout in (*safe, *misses) for each in layout.safety)
        ),
        not_asked=_not_asked(target, largest_each),
        currency=question.unit[0],
        period=question.unit[1],
        chosen=chosen,
        capacity_remaining=None if chosen is None else steady(chosen.held_tps / planned - 1),
        years_remaining=None if chosen is None else _years(given, chosen.held_tps, growth),
        months_of_rate=None if chosen is None else months_of_rate(target.disks, planned, chosen.held_tps),
        alternatives=tuple(safe[1:]),
        near_misses=tuple(misses),
        impossible=tuple(each.refused for each in results if each.refused is not None),
        nearest_tps=None if chosen is not None else max((each.held_tps for each in misses), default=None),
        single_points=() if chosen is None else _single_points(target, chosen.fields),
        would_help={} if chosen is not None else would_help(target, results),
        layouts=sum(each.family.layouts for each in results),
        solved=sum(each.solved for each in results),
        guesses=_guesses(target),
        left_open=_left_open(target, chosen),
        engine=question.engine,
        seed=target.seed,
        version=version("capplan"),
    )


def _growth(target: SizingTarget, question: SizingQuestion) -> tuple[float, float]:
    """Return the yearly growth of the rate and the planned time, from the demand if there is one."""
    if target.disks is None or question.growth_per_year:
        return question.growth_per_year, question.years
    return steady(float(np.median(target.disks.growth_factor)) - 1), target.disks.years


def _kept(layouts: Sequence[Scenario], results: Sequence[FamilyResult]) -> dict[str, Any]:
    """Return the fields that are not searched and mean something in one of the layouts, as they were given."""
    sized = {name for each in results for name in (*each.family.sized, *each.family.fixed)}
    values = ((name, vars(each)[name]) for each in layouts for name in each.given() if name not in sized)
    return {name: value for name, value in values if value is not None and value != ()}


def _not_asked(target: SizingTarget, layouts: Sequence[Scenario]) -> tuple[str, ...]:
    """Return the losses that one of the layouts could have, and none need survive."""
    its = system(target.base.system)
    several = any(getattr(each, "dcs", 1) > 1 for each in layouts)

    def there(kind: str, layout: Scenario) -> bool:
        """Whether a layout has parts of a kind; a node on another's machine counts no machine of its own."""
        return its.component(Machines).counts(layout).get(kind, 1) > 0 or all(
            getattr(layout, name) for name in its.component(Machines).sized
        )

    losses = not_asked(its, target.conditions)
    return tuple(kind for kind in losses if (several if kind == DC else any(there(kind, each) for each in layouts)))


def _single_points(target: SizingTarget, fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the kinds of machines of a layout whose loss stops the service, and was not asked about."""
    losses = _not_asked(target, [changed(target.base, **fields)])
    return tuple(each for each in losses if each != DC and _stops(target, fields, each))


def _guesses(target: SizingTarget) -> tuple[str, ...]:
    """Return the situations without a source."""
    situations = [each for conditions in target.conditions for each in conditions.situations]
    return tuple(dict.fromkeys(each.name for each in situations if each.guessed))


def _left_open(target: SizingTarget, chosen: SizedLayout | None) -> tuple[str, ...]:
    """Return what the fitted rows leave undetermined for the chosen layout at its rate."""
    if chosen is None:
        return ()
    own = target.in_cells(chosen.cells)
    case = own.case(changed(own.base, **chosen.fields))
    return left_open_at_a_rate(case, case.solution.at(own.offered_per_s))


def months_of_rate(disks: Disks | None, planned_tps: float, held_tps: float) -> Band | None:
    """Return the months until the rate of a demand, whose growth is uncertain, reaches a held rate; None without one.

    Parameters
    ----------
    disks : Disks or None
        The growth and the planned time of the demand.
    planned_tps, held_tps : float
        The rate at the planned time, and the held one, requests per second.
    """
    if disks is None:
        return None
    today = planned_tps / float(np.median(disks.growth_factor)) ** disks.years
    return months_until_rate(disks.growth_factor, today, Band.exactly(held_tps))


def _years(offered: float, sustained: float, growth: float) -> float | None:
    """Return the years until growth reaches the held rate; None without growth."""
    return steady(math.log(max(sustained, 1e-9) / offered) / math.log1p(growth)) if growth > 0 else None
