"""The answer of `size`: the layout to buy, what limits it, its alternatives, and why nothing smaller is enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from capplan.answers.condition import Condition
from capplan.answers.number_words import listed, rate, tenths_of_percent
from capplan.answers.results import Band
from capplan.answers.verb_answer import UNBOUNDED_BANDS, VerbAnswer
from capplan.answers.verdict import Answer
from capplan.models.language.scenario import Scenario, changed
from capplan.planner.node_needs import NodeNeeds
from capplan.planner.size.machines import price_unit
from capplan.planner.sweep import rate_fields


def steady(value: float) -> float:
    """Round to nine digits, so that machine-dependent last bits change no file."""
    return float(f"{value:.9g}")


def given_share(value: float) -> str:
    """Return a share in per cent with all digits that were given: `90 %`, `99.95 %`."""
    return f"{100 * value:.10g} %"


@dataclass(frozen=True, kw_only=True)
class Safety:
    """The safety of a layout under some conditions.

    Attributes
    ----------
    conditions
        The conditions, by the words of `--survive`: `normal`, `dc`, `dc+compaction`.
    risk
        Probability that a repeat of the load test does not carry the rate with the objectives met.
    held_tps
        The normal peak rate, requests per second, at which the risk is the accepted one; 0 if there is none, null if
        the rate does not matter.
    capacity_tps
        The highest normal peak rate that meets the objectives, requests per second, with its 90 % band.
    reached_ms
        Latencies in the objectives, by name: what is not exceeded with the confidence at the planned rate, ms; null
        where it is overloaded.
    limit
        What limits that rate: `overload`, an objective, or why there is no service.
    bottleneck
        The resource that saturates first; null without service.
    guessed
        Whether the conditions rest on a guess.
    """

    conditions: str
    risk: float
    held_tps: float
    capacity_tps: Band
    reached_ms: Mapping[str, float | None]
    limit: str
    bottleneck: str | None
    guessed: bool


@dataclass(frozen=True, kw_only=True)
class SizedLayout:
    """A layout with its cost and its safety.

    Attributes
    ----------
    layout
        The layout in words; that of one cell.
    fields
        The fields of the scenario that were sized.
    machines
        Numbers of machines over all data centres and cells, by kind.
    shapes
        Names of their shapes by kind, where shapes were chosen from.
    cells
        Equal layouts that share the traffic, each with its own machines.
    cost
        What they cost, in the currency of the answer.
    safe
        Whether the risk is accepted under all conditions.
    safety
        How safe it is under each of the conditions that were looked at.
    confirmed
        Whether simulated latencies went into its risks.
    disk_gib_per_node
        Disk that the fullest node needs at the planned time, with the confidence, GiB; null where no data are known.
    months_of_data
        Months from today until data fill the disks; null where data or disks are not known.
    node
        What the busiest node needs besides CPU; null where nothing is known of it.
    """

    layout: str
    fields: Mapping[str, Any]
    machines: Mapping[str, int]
    shapes: Mapping[str, str]
    cells: int
    cost: float
    safe: bool
    safety: tuple[Safety, ...]
    confirmed: bool
    disk_gib_per_node: float | None = None
    months_of_data: Band | None = None
    node: NodeNeeds | None = None

    @property
    def binding(self) -> Safety:
        """The conditions with the highest risk; among equal ones, those with the lowest held rate."""
        return max(self.safety, key=lambda each: (each.risk, -each.held_tps))

    @property
    def reached_ms(self) -> Mapping[str, float] | None:
        """Latencies of the objectives that the layout keeps in every situation, ms; None if one overloads it."""
        every = [each.reached_ms for each in self.safety if each.reached_ms]
        found = {name: [each[name] for each in every] for name in (every[0] if every else ())}
        known = {name: [value for value in values if value is not None] for name, values in found.items()}
        if not known or any(len(values) < len(every) for values in known.values()):
            return None
        return {name: max(values) for name, values in known.items()}

    @property
    def held_tps(self) -> float:
        """The normal peak rate that the layout holds under all conditions, requests per second."""
        return min(each.held_tps for each in self.safety)


@dataclass(frozen=True)
class Refusal:
    """Why no layout of a family is acceptable, whatever its size.

    Attributes
    ----------
    fields
        The fields of the scenario that its layouts share.
    conditions
        The conditions under which no request succeeds; empty if no layout is valid.
    reason
        Why, in words.
    """

    fields: Mapping[str, Any]
    conditions: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class AtConfidence:
    """What a confidence costs.

    Attributes
    ----------
    confidence
        Probability with which the objectives must hold under each of the conditions.
    machines
        Numbers of machines of the cheapest layout, by kind; empty where there is none.
    cost
        What they cost, in the currency of the answer; null where there is none.
    """

    confidence: float
    machines: Mapping[str, int]
    cost: float | None


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A purchase of a plan in stages: machines that carry the growing rate until the next one.

    Attributes
    ----------
    from_month
        When the machines must be there, months from today.
    to_month
        The month of the next purchase; that of the last one is the end of the planned time.
    planned_tps
        Offered peak rate in that month, requests per second over all data centres.
    layout
        All machines from then on, with their safety at that rate.
    held_tps
        The normal peak rate that the layout holds under all conditions, requests per second.
    lasts_months
        Months from today until the offered rate reaches it.
    added
        Numbers of machines to buy over all data centres and cells, by kind.
    cost_added
        What they cost, in the currency of the answer.
    """

    from_month: float
    to_month: float
    planned_tps: float
    layout: SizedLayout
    held_tps: float
    lasts_months: float
    added: Mapping[str, int]
    cost_added: float


@dataclass(frozen=True, kw_only=True)
class Sizing(VerbAnswer):
    """The answer of `size`.

    Attributes
    ----------
    system
        Name of the system.
    scenario
        The fields that are not sized, as they were given.
    answer
        `yes` where a layout was found; else the verdict on the evaluated layout with the lowest risk.
    offered_tps
        Offered peak rate today, requests per second over all data centres.
    planned_tps
        The same at the end of the planned time, which is what the layout is sized for.
    growth_per_year
        Growth of the offered rate, 0.3 for 30 % a year.
    years
        Planned time.
    confidence
        Probability with which the objectives must hold under each of the conditions.
    objectives
        The objectives, as they were given.
    situations
        What to survive, by the words of `--survive`.
    conditions
        What nobody measured: its value in the answer, up to which value the layout is safe, and the cheapest layout
        that extends it to the expected values. Without a layout, what one would need to be safe.
    confidences
        What other confidences cost, with the same draws and the same search; empty without a layout.
    not_asked
        Losses of the system that nobody asked about.
    currency
        Of costs; `machines` where no price list is given.
    period
        What costs are for: `once`, `hour`, `month` or `year`; empty where no price list is given.
    chosen
        The cheapest layout that is safe under all conditions; null if there is none.
    stages
        What to buy now, and what to add at which year; the last one has the chosen layout. Empty without growth or a
        layout.
    capacity_remaining
        Held over planned rate, less one; null without a layout.
    years_remaining
        Time until the offered rate outgrows the layout; null without growth or without a layout.
    months_of_rate
        Months from today until the rate of a demand reaches the held rate, which counts the disks, too; null without a
        demand or without a layout.
    alternatives
        Other layouts that are safe: the best of each other family, and a larger one.
    near_misses
        Layouts that are not: the next smaller one, and the nearest of families without a safe one.
    impossible
        Families of which no layout serves, with the reason.
    nearest_tps
        Where no layout is safe: the highest peak rate that some layout holds, requests per second; null otherwise.
    single_points
        Losses nobody asked about after which no request succeeds on the layout, such as that of the only RADIUS server.
    would_help
        Where no layout is safe: values of fields outside what was searched with which the nearest one is, by field.
    layouts
        How many layouts there were to choose from.
    solved
        How many of them were evaluated; the others were not, and no statement is about them.
    guesses
        What the answer rests on without evidence.
    left_open
        What the rows of a fitted table do not decide of the layout, and which row would.
    engine
        What confirmed the layouts: `compiled`, or `analytic` where none was simulated.
    seed
        The seed of every random number.
    version
        The version of capplan.
    """

    SCHEMA = "capplan.sizing/2"
    UNBOUNDED = (*UNBOUNDED_BANDS, ("Safety", "held_tps"))

    system: str
    scenario: Mapping[str, Any]
    answer: Answer
    offered_tps: float
    planned_tps: float
    growth_per_year: float
    years: float
    confidence: float
    objectives: tuple[str, ...]
    situations: tuple[str, ...]
    conditions: tuple[Condition, ...] = ()
    confidences: tuple[AtConfidence, ...] = ()
    not_asked: tuple[str, ...]
    currency: str
    period: str = ""
    chosen: SizedLayout | None
    stages: tuple[Stage, ...] = ()
    capacity_remaining: float | None
    years_remaining: float | None
    months_of_rate: Band | None
    alternatives: tuple[SizedLayout, ...]
    near_misses: tuple[SizedLayout, ...]
    impossible: tuple[Refusal, ...]
    nearest_tps: float | None
    single_points: tuple[str, ...]
    would_help: Mapping[str, str]
    layouts: int
    solved: int
    guesses: tuple[str, ...]
    left_open: tuple[str, ...]
    engine: str
    seed: int
    version: str

    @property
    def price_unit(self) -> str:
        """The unit of costs, such as `EUR a month`; `machines` where each counts as one."""
        return price_unit(self.currency, self.period)


def chosen_scenario(
    base: Scenario, sizing: Sizing, layout: SizedLayout, given: Mapping[str, Any] = MappingProxyType({})
) -> Scenario:
    """Return the scenario of a sized layout, or of one of its cells, at the planned rate.

    Parameters
    ----------
    base : Scenario
        The fields that are not sized.
    sizing : Sizing
        The answer of `size`.
    layout : SizedLayout
        One of its layouts.
    given : mapping
        Fields that replace those of the base; the layout's replace these.
    """
    rates: dict[str, Any] = dict.fromkeys(rate_fields(type(base)))
    return changed(base, **{**given, **rates, **layout.fields, "tps": sizing.planned_tps / layout.cells})


def nearest(sizing: Sizing) -> SizedLayout | None:
    """Return the layout nearest to a safe one; None if none serves."""
    return max(sizing.near_misses, key=lambda each: each.held_tps, default=None)


def nothing_found(sizing: Sizing) -> str:
    """Return why there is no layout, the nearest one, and what another would need."""
    text, missed = f"{none_holds(sizing)} for {rate(sizing.planned_tps)} TPS", nearest(sizing)
    if missed is None:
        reasons = listed(list(dict.fromkeys(each.reason for each in sizing.impossible)) or [""])
        return f"{text}: {reasons}." if reasons else f"{text}."
    held = (
        f"holds {rate(missed.held_tps)}"
        if missed.held_tps > 0
        else f"has a risk of {tenths_of_percent(missed.binding.risk)}"
    )
    needs = "".join(f" {needed(each)}" for each in sizing.conditions)
    return f"{text}; the nearest, {missed.layout}, {held}.{needs}"


def needed(each: Condition) -> str:
    """Return which layout a condition would make safe where none is."""
    layout = "" if each.at_low is None else each.at_low.layout
    return f"{layout} holds if {each.terms}. Measure {each.measurement} ({each.option})."


def none_holds(sizing: Sizing) -> str:
    """Return the number of evaluated layouts, none of them safe; the sentence claims nothing about the others."""
    if not sizing.solved:
        return "No layout serves"
    evaluated = "The only layout" if sizing.solved == 1 else f"None of the {sizing.solved:,} layouts evaluated"
    holds = "does not hold" if sizing.solved == 1 else "holds"
    return f"{evaluated} {holds} at {given_share(sizing.confidence)} confidence"
