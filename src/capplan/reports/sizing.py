"""A sizing in words: what to buy, what limits it, how certain that is, and why nothing smaller is enough."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pandas as pd

from capplan.answers.condition import Condition, under
from capplan.answers.number_words import as_given, listed, rate, share, tenths_of_percent, to_digits
from capplan.answers.objective import parse
from capplan.answers.results import Band, Basis
from capplan.answers.verdict import DATA, NORMAL, OVERLOAD
from capplan.errors import InputError
from capplan.layout.components import Machines
from capplan.layout.situations import Losses
from capplan.layout.system import System
from capplan.models.language.scenario import Scenario
from capplan.planner.rule_names import statistic
from capplan.planner.size.machines import MACHINES
from capplan.planner.size.sizing import (
    Safety,
    SizedLayout,
    Sizing,
    Stage,
    chosen_scenario,
    given_share,
    nearest,
    needed,
    none_holds,
    nothing_found,
)
from capplan.reports import figure as look
from capplan.reports.demand import until
from capplan.reports.document import Block, Break, Column, Fact, Heading, Table, more, table, told
from capplan.reports.figure import go
from capplan.reports.node_needs import assumed_of_data, node_in_words
from capplan.reports.numbers import NOT_BY_RATE, plural
from capplan.reports.population import LABEL, is_of_others
from capplan.systems.registry import documented_names, resolve, scenario, system

_ROW, _BOTTOM, _ENTRY = 64, 58, 22  # pixels
_LABEL = 26  # characters of a line
_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "star")
_UNSAFE = 0.4  # opacity
_TOLD = ("Answer", "Buy", "Binding", "Headroom", "Ruled out", "Not asked", "Caution", "Guessed", "Undecided")

_MOST_STAGES = 4  # lines of the default output

_OF_NODES = {
    "data": ("Data on the disks", "with all data on its disks", "data on disk"),
    "iops": ("Reads from disk", "with all reads from its disks", "disk reads"),
    "network": ("Network of the nodes", "within its network", "network"),
    "memory": ("Memory of the nodes", "within its memory", "memory"),
}
"""A resource of nodes as a situation, as the end of a sentence, and in a table."""
MONTHS = 12
_RELATIONS = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}
BASIS = {
    "measured": "such a layout was load-tested",
    "interpolated": "the layout lies between load-tested ones",
    "population": "other clusters were load-tested, and this one was not",
    "extrapolated": "the layout lies beyond the load tests",
}


def in_words(layout: SizedLayout, its: System[Any]) -> str:
    """Return the fields that a family shares, and the machines: `3 DCs: 27 Cassandra nodes, 6 RADIUS servers`.

    Parameters
    ----------
    layout : SizedLayout
        The layout.
    its : System
        Its system.
    """
    fixed = ", ".join(each_field(own_fields(layout, its)))
    fixed = " of ".join([f"{layout.cells} cells"] * (layout.cells > 1) + [fixed] * bool(fixed))
    machines = ", ".join(
        f"{count} {layout.shapes.get(kind) or plural(its.component(Machines).kinds[kind].name, count)}"
        for kind, count in layout.machines.items()
    )
    return f"{fixed}: {machines}" if fixed else machines


def own_fields(layout: SizedLayout, its: System[Any]) -> dict[str, Any]:
    """Return the fields of a layout that neither machine counts nor shapes determine."""
    shaped = [its.component(Machines).kinds[kind] for kind in layout.shapes]
    hidden = {*its.component(Machines).sized, *(name for machine in shaped for name in machine.fields)}
    return {name: value for name, value in layout.fields.items() if name not in hidden}


def each_field(fields: Mapping[str, Any], dc: str = "DC") -> list[str]:
    """Return each field in words, such as `3 DCs` and `consistency_write LOCAL_QUORUM`."""
    return [f"{value} {plural(dc, value)}" if name == "dcs" else f"{name} {value}" for name, value in fields.items()]


def situation(word: str, its: System[Any]) -> str:
    """Return the words for a situation given to `--survive`: `Loss of a data centre, with repair or compaction`."""
    if word == NORMAL:
        return "Normal operation"
    if word in _OF_NODES:
        return _OF_NODES[word][0]
    parts = word.split("+")
    lost = [thing(part, its) for part in lost_of(word, its)]
    strained = [
        its.component(Losses).situations[part].name for part in parts if part in its.component(Losses).situations
    ]
    text = f"loss of {' and '.join(lost)}" if lost else ""
    text = ", with ".join(filter(None, [text, " and ".join(strained)]))
    return text[:1].upper() + text[1:]


def lost_of(word: str, its: System[Any]) -> list[str]:
    """Return what a situation loses, as words of `--survive`."""
    return [part for part in word.split("+") if part in its.component(Losses).kinds]


def clause(word: str, its: System[Any]) -> str:
    """Return a situation as the end of a sentence: `after the loss of a data centre`."""
    text = inside_sentence(situation(word, its))
    if word == NORMAL:
        return f"in {text}"
    if word in _OF_NODES:
        return _OF_NODES[word][1]
    return f"after the {text}" if lost_of(word, its) else f"in case of {text}"


def thing(word: str, its: System[Any]) -> str:
    """Return something that can be lost, in words: `a data centre`."""
    return "a data centre" if word == "dc" else its.component(Losses).kinds[word]


def inside_sentence(text: str) -> str:
    """Return a phrase in the form for the middle of a sentence."""
    return text[:1].lower() + text[1:]


def counted(machines: Mapping[str, int], its: System[Any], shapes: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return machine counts in words: `231 Cassandra nodes and 6 RADIUS servers`, with shapes if they were chosen."""
    return listed(
        [
            f"{count:,} {plural(its.component(Machines).kinds[kind].name, count)}"
            + (f" ({shapes[kind]})" if kind in shapes else "")
            for kind, count in machines.items()
            if count
        ]
    )


def objective(text: str) -> str:
    """Return an objective in words if it is a single bound on a time; otherwise as written."""
    try:
        found = parse(text).comparisons()
    except InputError:
        return text
    if len(found) != 1 or found[0].metric.kind != "duration" or found[0].relation == "in":
        return text
    (one,) = found
    bound = as_given(1e3 * one.bounds[0])
    return f"{statistic(one.metric.statistic)} of {one.metric.subject} {_RELATIONS[one.relation]} {bound} ms"


def limited_by(limit: str) -> str:
    """Return the limit of a rate: overload, an objective in words, or the reason for no service."""
    return limit if limit == OVERLOAD else objective(limit)


def fits_for(found: Band | None) -> str:
    """Return how long a layout is large enough, with the band if it is uncertain."""
    if found is None:
        return "no growth given"
    if found.low == found.high:
        return months(found.value)
    if found.value <= 0:
        return f"{months(found.value)}, at best {months(found.high)}"
    low = months(found.low) if found.low > 0 else "0 months"
    return f"{months(found.value)} ({low} {'or more' if math.isinf(found.high) else f'to {months(found.high)}'})"


def months(number: float) -> str:
    """Return a time in months, or in years if it is long."""
    if not math.isfinite(number):
        return "unbounded"
    if number <= 0:
        return "past already"
    return f"{number:.0f} {plural('month', round(number))}" if number < 2 * MONTHS else f"{number / MONTHS:.1f} years"


def years_in_words(years: float) -> str:
    """Return a planned time: in months below two years."""
    if years < 2 and not math.isclose(years, 1):
        return f"{years * MONTHS:.0f} {plural('month', round(years * MONTHS))}"
    return f"{years:g} year{'s' * (years != 1)}"


def cost_in_words(number: float, unit: str, signed: bool = False) -> str:
    """Return a cost with its currency and period; the number of machines if there are no prices."""
    text = f"{number:+,.0f}" if signed else f"{number:,.0f}"
    return text if unit == MACHINES else f"{text} {unit}"


def guess(text: str, safety: Safety) -> str:
    """Return a situation in words, marked if it is a guess."""
    return f"{text} (a guess)" if safety.guessed else text


def sentences(sizing: Sizing, basis: Basis | None = None) -> tuple[str, ...]:
    """Return what to buy, how it performs, and how certain that is; without a layout, one sentence with the reason.

    Parameters
    ----------
    sizing : Sizing
        The answer of `size`.
    basis : str, optional
        What the layout rests on. By default it is looked up for a system that has documents, and else left out.

    Returns
    -------
    tuple of str
        Three sentences, or one; after them one on each condition and on each machine whose loss stops the service.
    """
    chosen = sizing.chosen
    if chosen is None:
        return (nothing_found(sizing),)
    its: System[Any] = system(sizing.system)
    if basis is None and its.name in documented_names():
        basis = resolve(_scenario(sizing, chosen)).at(sizing.planned_tps / chosen.cells).extrapolation.basis
    bought, done = _what_to_buy(sizing, chosen, its), _what_it_does(sizing, its)
    assumed = [f"Condition: {each.terms}. Reserve: {reserved(each, sizing, chosen, its)}" for each in sizing.conditions]
    alone = [f"Caution: losing {its.component(Losses).kinds[word]} stops the service." for word in sizing.single_points]
    return (bought, done, _how_sure(sizing, chosen, its, basis), *assumed, *alone)


def layouts(sizing: Sizing) -> pd.DataFrame:
    """Return a row for each layout of a sizing; see `Sizing.to_frame`."""
    its: System[Any] = system(sizing.system)
    every = sorted(_every(sizing), key=lambda each: each.cost)
    return pd.DataFrame(
        {
            "layout": in_words(each, its),
            "cost": each.cost,
            "risk": each.binding.risk,
            "held_tps": each.held_tps,
            "binding": situation(each.binding.conditions, its),
            "limit": limited_by(each.binding.limit),
            "regret": _regret(each, sizing),
        }
        for each in every
    )


def _every(sizing: Sizing) -> list[SizedLayout]:
    """Return the evaluated layouts that are shown: chosen, alternatives and near misses."""
    return [*([] if sizing.chosen is None else [sizing.chosen]), *sizing.alternatives, *sizing.near_misses]


def _regret(layout: SizedLayout, sizing: Sizing) -> str:
    """Return the disadvantage of a layout against the chosen one: its extra cost, or how often it misses the plan."""
    if layout is sizing.chosen:
        return "proposed"
    more = layout.cost - (sizing.chosen or layout).cost
    worth = worth_of(abs(more), sizing)
    if layout.safe:
        return f"costs {worth} more" if more > 0 else "costs the same"
    fails = f"misses the plan in {tenths_of_percent(layout.binding.risk)} of load tests"
    return f"saves {worth}, and {fails}" if more < 0 else fails


def worth_of(cost: float, sizing: Sizing) -> str:
    """Return a difference in cost, in words."""
    if sizing.currency != MACHINES:
        return cost_in_words(cost, sizing.price_unit)
    return f"{cost_in_words(cost, sizing.price_unit)} {plural('machine', round(cost))}"


def _scenario(sizing: Sizing, layout: SizedLayout) -> Scenario:
    """Return the scenario of a layout; its fields are set at once, as some of them alone contradict the usual ones."""
    base = scenario(sizing.system)
    given = {name: value for name, value in sizing.scenario.items() if name != "system"}
    return chosen_scenario(base, sizing, layout, given)


def _what_to_buy(sizing: Sizing, chosen: SizedLayout, its: System[Any]) -> str:
    places = its.component(Machines).by_dc(_scenario(sizing, chosen))
    machines = counted(chosen.machines, its, chosen.shapes)
    cost = "" if sizing.currency == MACHINES else f", for {cost_in_words(chosen.cost, sizing.price_unit)}"
    if chosen.cells > 1:
        each_has = counted({kind: count // chosen.cells for kind, count in chosen.machines.items()}, its)
        spread = f" in {len(places)} data centres" if len(places) > 1 else ""
        return f"We propose {chosen.cells} cells with {each_has}{spread} each: {machines} in all{cost}."
    if len(places) == 1:
        return f"We propose {machines}{cost}."
    if all(each == places[0] for each in places):
        return f"We propose {len(places)} data centres with {counted(places[0], its)} each: {machines} in all{cost}."
    return f"We propose {machines} in {len(places)} data centres{cost}."


def _what_it_does(sizing: Sizing, its: System[Any]) -> str:
    held = [clause(each, its) for each in sizing.situations]
    goal = f" with the {listed([objective(each) for each in sizing.objectives])}" if sizing.objectives else ""
    when = f" in {years_in_words(sizing.years)}" if sizing.growth_per_year and sizing.years else ""
    return (
        f"With at least {given_share(sizing.confidence)} confidence this layout carries the {rate(sizing.planned_tps)} "
        f"requests per second that are planned{when}{goal}, {listed(held)}."
    )


def _how_sure(sizing: Sizing, chosen: SizedLayout, its: System[Any], basis: Basis | None) -> str:
    binding, until = chosen.binding, _until(sizing, chosen)
    lasts = ""
    if until is not None:
        lasts = f" and is full after {fits_for(until)} of growth" if until.value > 0 else " and is full already"
    evidence = "" if basis is None else f"; {BASIS.get(basis, 'no load test of such a layout exists')}"
    tightest = inside_sentence(situation(binding.conditions, its))
    tightest = guess(f"the {tightest}" if lost_of(binding.conditions, its) else tightest, binding)
    left = share(sizing.capacity_remaining or 0.0)
    return f"The tightest situation is {tightest}: it holds {left} more than the planned rate{lasts}{evidence}."


def _until(sizing: Sizing, chosen: SizedLayout) -> Band | None:
    """Return the months until growth exhausts the layout; None without growth."""
    if chosen.binding.conditions == DATA and chosen.months_of_data is not None:
        return chosen.months_of_data
    if sizing.months_of_rate is not None:
        return sizing.months_of_rate
    return None if sizing.years_remaining is None else Band.exactly(MONTHS * sizing.years_remaining)


def describe(sizing: Sizing, its: System[Any], explain: bool = False) -> Iterator[Block]:
    """Yield the description of a sizing.

    Parameters
    ----------
    sizing : Sizing
        The answer.
    its : System
        Its system, which has the words for losses and machines.
    explain : bool
        Show every situation of every layout, too.
    """
    yield Heading(f"{sizing.system}: {_question(sizing)}", 1)
    yield Break()
    of_others = is_of_others(its)
    for text in sizing.left_open if of_others else ():
        yield Fact(LABEL, text)
    yield from _nothing(sizing, its) if sizing.chosen is None else _chosen(sizing, sizing.chosen, its, explain)
    yield from _others(sizing, its)
    for each in (*sizing.alternatives, *sizing.near_misses) if explain else ():
        yield Break()
        yield _situations([in_words(each, its), "risk", "held", "limited by"], each, its)
    yield Break()
    yield from _remarks(replace(sizing, left_open=()) if of_others else sizing, its)
    yield more([*([] if explain else ["--explain"]), "--plot FILE", "--json"])


def _price(cost: float, sizing: Sizing) -> str:
    return "" if sizing.currency == MACHINES else f" for {cost_in_words(cost, sizing.price_unit)}"


def _question(sizing: Sizing) -> str:
    words = [f"{rate(sizing.planned_tps)} TPS peak"]
    if sizing.growth_per_year:
        words[0] += f" after {years_in_words(sizing.years)} at {share(sizing.growth_per_year)} a year"
    return ", ".join([*words, *sizing.objectives, f"{given_share(sizing.confidence)} confidence"])


def _chosen(sizing: Sizing, chosen: SizedLayout, its: System[Any], explain: bool) -> Iterator[Block]:
    binding = chosen.binding
    yield Fact("Answer", f"yes{under(sizing.conditions)}")
    yield Fact("Buy", f"{f'{chosen.cells} cells, each ' if chosen.cells > 1 else ''}{chosen.layout}")
    machines = ", ".join(
        f"{count} {plural(its.component(Machines).kinds[kind].name, count)}"
        + (f" ({chosen.shapes[kind]})" if kind in chosen.shapes else "")
        for kind, count in chosen.machines.items()
        if count
    )
    cost = "" if sizing.currency == MACHINES else f": {cost_in_words(chosen.cost, sizing.price_unit)}"
    yield Fact("Machines", f"{machines}{cost}", "confirmed by simulation" if chosen.confirmed else "solver only")
    for each in sizing.conditions:
        yield Fact("Reserve", reserved(each, sizing, chosen, its))
    yield Fact("Binding", f"{_short(binding.conditions, its)}: {binding.limit}")
    yield Fact("Saturates", f"{binding.bottleneck} first")
    spare = share(sizing.capacity_remaining or 0.0)
    time = "" if sizing.years_remaining is None else f", for {months(MONTHS * sizing.years_remaining)}"
    if sizing.months_of_rate is not None:
        time = f"; {until(sizing.months_of_rate)}"
    yield Fact("Headroom", f"{spare} of the rate: {rate(chosen.held_tps)} TPS are held{time}")
    need, months_of_data = chosen.disk_gib_per_node, chosen.months_of_data
    if need is not None:
        fits = "" if months_of_data is None else f"; {until(months_of_data)}"
        yield Fact("Data", f"{need:,.0f} GiB of disk per node at {given_share(sizing.confidence)}{fits}")
    if chosen.node is not None:
        yield Fact("Node", node_in_words(chosen.node))
    if assumed := assumed_of_data(sizing.scenario):
        yield Fact("Assumed", assumed)
    yield from _stages(sizing, its, explain)
    if sizing.confidences:
        costs = [(given_share(each.confidence), each.cost) for each in sizing.confidences]
        words = [f"{level} {'none' if cost is None else f'{cost:,.0f}'}" for level, cost in costs]
        yield Fact("Confidence", f"{', '.join(words)} {sizing.price_unit}")
    yield Break()
    yield _situations(["Situation", "risk", f"held at {given_share(sizing.confidence)}", "limited by"], chosen, its)


def reserved(each: Condition, sizing: Sizing, chosen: SizedLayout, its: System[Any]) -> str:
    """Return the machines that a condition would need beside those that are bought, and what decides."""
    ends = [at for at in (each.at_low, each.at_high) if at is not None]
    held = [at for at in ends if at.cost is not None]
    low, high = as_given(each.expected_low), as_given(each.expected_high)
    then = f"Measure {each.measurement} before it is bought ({each.option})."
    if each.drawn:
        return f"{_by_share(each, sizing, chosen, its)} ({each.otherwise}). {then}"
    if not held:
        return f"no layout that was searched carries {low} {each.unit} ({each.source}). {then}"
    more = [
        text
        for kind in its.component(Machines).kinds
        if (text := _more(kind, [at.machines for at in held], chosen, its))
    ]
    if not more:
        return f"none: the layout carries {high} {each.unit}, too"
    worth = dict.fromkeys(f"{at.cost - chosen.cost:,.0f}" for at in held if at.cost is not None)
    price = "" if sizing.currency == MACHINES else f" for {' to '.join(worth)} {sizing.price_unit}"
    first = "" if each.break_even is None else f", the first beyond {as_given(each.break_even)} times"
    last = "" if len(held) == len(ends) else f"; none that was searched carries {high} times"
    needed = f"needed at {low} to {high} {each.unit} ({each.source}){first}{last}"
    return f"{listed(more)} more{price}: {needed}. {then}"


def _by_share(each: Condition, sizing: Sizing, chosen: SizedLayout, its: System[Any]) -> str:
    """Return what changes at the ends of a drawn condition: `9 nodes more at 0.69 %, 8 nodes fewer at 0.03 %`."""
    parts = []
    for at, value, words in ((each.at_high, each.expected_high, "more"), (each.at_low, each.expected_low, "fewer")):
        if at is None or at.cost is None:
            parts.append(f"no layout that was searched carries {to_digits(value, 2)} %")
        elif at.cost != chosen.cost:
            pair = (at.machines, chosen.machines) if words == "more" else (chosen.machines, at.machines)
            kinds = {kind: max(count - pair[1].get(kind, 0), 0) for kind, count in pair[0].items()}
            price = _price(abs(at.cost - chosen.cost), sizing)
            parts.append(f"{counted(kinds, its)} {words}{price} at {to_digits(at.value, 2)} % of the time")
    return ", ".join(parts)


def _more(kind: str, wanted: Sequence[Mapping[str, int]], chosen: SizedLayout, its: System[Any]) -> str:
    """Return how many machines of a kind are needed beside those that are bought: `24 to 45 Cassandra nodes`."""
    counts = [max(each.get(kind, 0) - chosen.machines.get(kind, 0), 0) for each in wanted]
    if not any(counts):
        return ""
    name = plural(its.component(Machines).kinds[kind].name, counts[-1])
    return f"{' to '.join(dict.fromkeys(f'{each:,}' for each in counts))} {name}"


def _stages(sizing: Sizing, its: System[Any], explain: bool) -> Iterator[Block]:
    """Yield what to buy when; nothing where one purchase is the whole plan."""
    stages = sizing.stages if len(sizing.stages) > 1 else ()
    shown = stages if explain or len(stages) <= _MOST_STAGES else stages[: _MOST_STAGES - 1]
    for each in shown:
        when, add = (f"Month {each.from_month:.0f}", "add ") if each.from_month else ("Buy now", "")
        enough = f"{rate(each.held_tps)} TPS are held, enough until month {math.floor(each.lasts_months)}"
        yield Fact(when, f"{add}{added(each, its)}{_price(each.cost_added, sizing)}; {enough}")
    if len(shown) < len(stages):
        yield Fact("Later", f"{len(stages) - len(shown)} more purchases (--explain)")


def held(sizing: Sizing, chosen: SizedLayout, month: float) -> float:
    """Return the rate that is held in a month, by the machines bought until then."""
    bought = [stage.held_tps for stage in sizing.stages if stage.from_month <= month]
    return bought[-1] if bought else chosen.held_tps


def added(stage: Stage, its: System[Any]) -> str:
    """Return the machines that a stage adds: `9 Cassandra nodes and 2 RADIUS servers`."""
    return counted(stage.added, its, stage.layout.shapes)


def _situations(heads: Sequence[str], layout: SizedLayout, its: System[Any]) -> Table:
    """Return a row for each situation of a layout."""
    rows = [
        [_short(each.conditions, its), tenths_of_percent(each.risk), _held_in_words(each.held_tps), each.limit]
        for each in layout.safety
    ]
    return table(heads, rows)


def _held_in_words(held_tps: float) -> str:
    """Return the rate that is held in a situation; a need that the rate does not change holds any, or none."""
    if math.isinf(held_tps):
        return NOT_BY_RATE
    return f"{rate(held_tps)} TPS" if held_tps else "no rate"


def _nothing(sizing: Sizing, its: System[Any]) -> Iterator[Block]:
    yield Fact("Answer", f"{sizing.answer}. {none_holds(sizing)}.")
    missed = nearest(sizing)
    if sizing.would_help:
        options = [f"--{name.replace('_', '-')} {value}" for name, value in sizing.would_help.items()]
        yield Fact("Try", ", or ".join(options))
    if missed is None:
        return
    binding = missed.binding
    yield Fact("Binding", f"{_short(binding.conditions, its)}: {binding.limit}")
    if binding.bottleneck is not None:
        yield Fact("Limited by", binding.bottleneck)
    if missed.held_tps > 0:
        yield Fact("Nearest", f"{rate(missed.held_tps)} TPS by {missed.layout}")
    else:
        risk, accepted = (tenths_of_percent(each) for each in (binding.risk, round(1 - sizing.confidence, 9)))
        yield Fact("Nearest", f"a risk of {risk} instead of {accepted}, by {missed.layout}")
    reached = [each for each in sizing.near_misses if each.reached_ms]
    if reached:
        best = min(reached, key=lambda each: max((each.reached_ms or {}).values()))
        kept = ", ".join(f"{name}<{_rounded_up(ms):g}ms" for name, ms in (best.reached_ms or {}).items())
        yield Fact("", f"or {kept} at {rate(sizing.planned_tps)} TPS by {best.layout}")
    for each in sizing.conditions:
        yield Fact("Condition", needed(each))


def _others(sizing: Sizing, its: System[Any]) -> Iterator[Block]:
    cost = 0.0 if sizing.chosen is None else sizing.chosen.cost
    compared = []
    for each in sizing.alternatives:
        more = f"{worth_of(each.cost - cost, sizing)} more" if each.cost > cost > 0 else "costs the same"
        compared.append((each, f"also safe; {more}"))
    for each in sizing.near_misses:
        saves = f", saves {cost_in_words(cost - each.cost, sizing.price_unit)}" if cost > each.cost else ""
        compared.append((each, f"{_short(each.binding.conditions, its)}: {each.binding.limit}{saves}"))
    rows = [
        [in_words(each, its), f"{each.cost:,.0f}", tenths_of_percent(each.binding.risk), words]
        for each, words in compared
    ]
    if rows:
        yield Break()
        yield table(["Other layouts", sizing.price_unit, "risk", Column("compared", prose=True)], rows)


def _remarks(sizing: Sizing, its: System[Any]) -> Iterator[Block]:
    for number, each in enumerate(sizing.impossible):
        words = ", ".join(each_field(each.fields)) or "every layout"
        why = f"{_short(each.conditions, its)}: {each.reason}" if each.conditions else each.reason
        yield Fact("" if number else "Ruled out", f"{words}: {why}")
    if sizing.not_asked:
        losses = "; ".join(thing(word, its) for word in sizing.not_asked)
        yield Fact("Not asked", f"loss of: {losses} (--survive {','.join(sizing.not_asked)})")
    for word in sizing.single_points:
        yield Fact("Caution", f"losing {its.component(Losses).kinds[word]} stops the service (--survive {word})")
    if sizing.guesses:
        yield Fact("Guessed", ", ".join(sizing.guesses))
    for sentence in sizing.left_open:
        yield Fact("Undecided", sentence)
    yield Fact("Searched", f"{sizing.solved:,} of {sizing.layouts:,} layouts evaluated")


def _short(conditions: str, its: System[Any]) -> str:
    """Return a situation in a few words: `lost DC + repair`."""
    if conditions == NORMAL or conditions in _OF_NODES:
        return _OF_NODES[conditions][2] if conditions in _OF_NODES else "normal"
    return " + ".join(
        its.component(Losses).situations[part].name
        if part in its.component(Losses).situations
        else f"lost {'DC' if part == 'dc' else part}"
        for part in conditions.split("+")
    )


def _rounded_up(ms: float) -> float:
    """Round up to three digits, so that an objective with the result holds."""
    unit = 10.0 ** (math.floor(math.log10(ms)) - 2)
    return math.ceil(ms / unit) * unit


def plot(sizing: Sizing, its: System[Any], page: bool = True) -> go.Figure:
    """Return the figure: one row per layout, the cheapest on top, with a mark for each situation."""
    found = sorted(_every(sizing), key=lambda each: each.cost)
    labels = [_label(each, sizing, its) for each in found]
    figure = go.Figure()
    for place, word in enumerate(sizing.situations):
        pairs = [(label, each, safety) for label, each in zip(labels, found, strict=True) for safety in each.safety]
        marks = [pair for pair in pairs if pair[2].conditions == word and math.isfinite(pair[2].held_tps)]
        opacity = [1.0 if layout.safe else _UNSAFE for _, layout, _ in marks]
        colour, symbol = look.COLOURS[place % len(look.COLOURS)], _SYMBOLS[place % len(_SYMBOLS)]
        figure.add_scatter(
            x=[safety.held_tps for _, _, safety in marks],
            y=[label for label, _, _ in marks],
            **{"name": word, "mode": "markers"},
            marker={"color": colour, "symbol": symbol, "size": 11, "opacity": opacity},
            customdata=[share(safety.risk) for _, _, safety in marks],
            hovertemplate=f"{word}: %{{x:,.0f}} per second, risk %{{customdata}}<extra></extra>",
        )
    figure.add_vline(x=sizing.planned_tps, line={"color": look.ASKED, "width": 2}, layer="below")
    text = [
        *told(describe(sizing, its), *_TOLD),
        f"Marks: the peak rate held with {given_share(sizing.confidence)} confidence. Line: "
        f"{rate(sizing.planned_tps)} per second, which it must carry. Faint: not safe.",
    ]
    figure.update_xaxes(title_text="held peak rate [per second]", **look.RATE_AXIS)
    figure.update_yaxes(autorange="reversed", automargin=True, tickfont={"size": look.SMALL_SIZE})
    inner, room = _ROW * max(len(found), 2), _ENTRY * (1 + len(sizing.situations) // 3)
    legend = {"showlegend": True, "legend": look.above()}
    look.frame(
        figure, f"{sizing.system}: which layout holds {_question(sizing)}?", text, inner, page, room, _BOTTOM, **legend
    )
    return figure


def _label(layout: SizedLayout, sizing: Sizing, its: System[Any]) -> str:
    mark = "buy " if layout is sizing.chosen else ""
    words = textwrap.wrap(f"{mark}{in_words(layout, its)}", _LABEL)
    return f"{'<br>'.join(words)}<br>{look.small(f'{layout.cost:,.0f} {sizing.price_unit}')}"
