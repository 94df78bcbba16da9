"""The answer of `size` for people: what to buy, what binds it, and why nothing smaller does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from capplan.calibration.system import System
from capplan.cli.shell.scenario_command import flag
from capplan.cli.sizing.demand_view import until
from capplan.cli.views.lines import fact, paragraph, put, table
from capplan.models.number_words import rate, share, tenths_of_percent
from capplan.models.verdict import NORMAL, OVERLOAD
from capplan.planner.size.disks import DATA
from capplan.planner.size.in_words import fields_in_words, in_words, plural, thing
from capplan.planner.size.prices import MACHINES
from capplan.planner.size.sentences import none_holds
from capplan.planner.size.sizing import Refusal, Safety, SizedLayout, Sizing

_MONTHS = 12


def render(sizing: Sizing, its: System[Any], console: Console, explain: bool = False) -> None:
    """Print a sizing.

    Parameters
    ----------
    sizing : Sizing
        The answer.
    its : System
        Its system, which has the words for losses and machines.
    console : Console
        The screen.
    explain : bool
        Show every situation of every layout, too.
    """
    _View(sizing, its, console).show(explain)


class _View:
    def __init__(self, sizing: Sizing, its: System[Any], console: Console) -> None:
        self.sizing, self.its, self.console = sizing, its, console

    def show(self, explain: bool) -> None:
        sizing, console = self.sizing, self.console
        paragraph(console, f"{sizing.system}: {self._question()}", style="bold")
        put(console)
        if sizing.chosen is None:
            self._nothing()
        else:
            self._chosen(sizing.chosen)
        self._others(explain)
        self._remarks()
        more = [] if explain else ["--explain"]
        paragraph(console, f"More: {', '.join([*more, '--plot FILE', '--json'])}", hanging=6, style="dim")

    def _question(self) -> str:
        sizing = self.sizing
        words = [f"{rate(sizing.planned_tps)} TPS peak"]
        if sizing.growth_per_year:
            words[0] += f" after {sizing.years:g} years at {share(sizing.growth_per_year)} a year"
        words += [*sizing.objectives, f"{share(sizing.confidence)} confidence"]
        return ", ".join(words)

    def _chosen(self, chosen: SizedLayout) -> None:
        sizing, console, binding = self.sizing, self.console, chosen.binding
        cells = f"{chosen.cells} cells, each " if chosen.cells > 1 else ""
        fact(console, "Buy", f"{cells}{chosen.layout}")
        fact(
            console,
            "Machines",
            self._machines(chosen),
            "confirmed by simulation" if chosen.confirmed else "solver only",
        )
        fact(console, "Binding", f"{self._words(binding.conditions)}: {_limit(binding)}")
        fact(console, "Saturates", f"{binding.bottleneck} first")
        spare = share(sizing.capacity_remaining or 0.0)
        fact(console, "Headroom", f"{spare} of the rate: {rate(chosen.held_tps)} TPS are held{self._time()}")
        self._disk(chosen)
        put(console)
        rows = [
            [
                self._words(each.conditions),
                tenths_of_percent(each.risk),
                f"{rate(each.held_tps)} TPS",
                _limit(each),
            ]
            for each in chosen.safety
        ]
        self._table(["Situation", "risk", f"held at {share(sizing.confidence)}", "limited by"], rows)

    def _disk(self, chosen: SizedLayout) -> None:
        need, months = chosen.disk_gib_per_node, chosen.months_of_data
        if need is not None:
            fits = "" if months is None else f"; {until(months)}"
            fact(self.console, "Data", f"{need:,.0f} GiB of disk per node at {share(self.sizing.confidence)}{fits}")

    def _time(self) -> str:
        if self.sizing.months_of_rate is not None:
            return f"; {until(self.sizing.months_of_rate)}"
        years = self.sizing.years_remaining
        if years is None:
            return ""
        return f", for {years * _MONTHS:.0f} months" if years < 2 else f", for {years:.1f} years"

    def _nothing(self) -> None:
        sizing, console = self.sizing, self.console
        fact(console, "Answer", f"{sizing.answer}. {none_holds(sizing)}.")
        nearest = max(sizing.near_misses, key=lambda each: each.held_tps, default=None)
        if sizing.would_help:
            fact(console, "Try", ", or ".join(f"{flag(name)} {value}" for name, value in sizing.would_help.items()))
        if nearest is None:
            return
        binding = nearest.binding
        fact(console, "Binding", f"{self._words(binding.conditions)}: {_limit(binding)}")
        if binding.bottleneck is not None:
            fact(console, "Limited by", binding.bottleneck)
        if nearest.held_tps > 0:
            target = f"{rate(nearest.held_tps)} TPS by {nearest.layout}"
        else:
            risks = [tenths_of_percent(each) for each in (binding.risk, 1 - sizing.confidence)]
            target = f"a risk of {risks[0]} instead of {risks[1]}, by {nearest.layout}"
        fact(console, "Nearest", target)
        reached = [each for each in sizing.near_misses if each.reached_ms]
        if reached:
            best = min(reached, key=lambda each: max((each.reached_ms or {}).values()))
            kept = ", ".join(f"{name}<{_rounded_up(ms):g}ms" for name, ms in (best.reached_ms or {}).items())
            fact(console, "", f"or {kept} at {rate(sizing.planned_tps)} TPS by {best.layout}")

    def _others(self, explain: bool) -> None:
        rows = [self._row(each, self._dearer(each)) for each in self.sizing.alternatives]
        rows += [self._row(each, self._excuse(each)) for each in self.sizing.near_misses]
        if rows:
            put(self.console)
            self._table(["Other layouts", self.sizing.currency, "risk", "compared"], rows)
        if explain:
            for each in (*self.sizing.alternatives, *self.sizing.near_misses):
                put(self.console)
                details = [
                    [
                        self._words(one.conditions),
                        tenths_of_percent(one.risk),
                        f"{rate(one.held_tps)} TPS",
                        _limit(one),
                    ]
                    for one in each.safety
                ]
                self._table([in_words(each, self.its), "risk", "held", "limited by"], details)

    def _refusal(self, each: Refusal) -> str:
        return f"{self._words(each.conditions)}: {each.reason}" if each.conditions else each.reason

    def _row(self, each: SizedLayout, excuse: str) -> list[str]:
        return [in_words(each, self.its), f"{each.cost:,.0f}", tenths_of_percent(each.binding.risk), excuse]

    def _dearer(self, each: SizedLayout) -> str:
        more = 0.0 if self.sizing.chosen is None else each.cost - self.sizing.chosen.cost
        machines = " machines" * (self.sizing.currency == MACHINES)
        return f"also safe; {self._cost(more)}{machines} more" if more > 0 else "also safe; costs the same"

    def _excuse(self, each: SizedLayout) -> str:
        binding = each.binding
        chosen = self.sizing.chosen
        saved = "" if chosen is None or each.cost >= chosen.cost else f", saves {self._cost(chosen.cost - each.cost)}"
        return f"{self._words(binding.conditions)}: {_limit(binding)}{saved}"

    def _remarks(self) -> None:
        put(self.console)
        for number, each in enumerate(self.sizing.impossible):
            words = fields_in_words(each.fields) or "every layout"
            fact(self.console, "" if number else "Ruled out", f"{words}: {self._refusal(each)}")
        if self.sizing.not_asked:
            losses = "; ".join(thing(word, self.its) for word in self.sizing.not_asked)
            fact(self.console, "Not asked", f"loss of: {losses} (--survive {','.join(self.sizing.not_asked)})")
        for word in self.sizing.single_points:
            fact(self.console, "Caution", f"losing {self.its.losses[word]} stops the service (--survive {word})")
        if self.sizing.guesses:
            fact(self.console, "Guessed", ", ".join(self.sizing.guesses))
        for sentence in self.sizing.left_open:
            fact(self.console, "Undecided", sentence)
        fact(self.console, "Searched", f"{self.sizing.solved:,} of {self.sizing.layouts:,} layouts evaluated")

    def _machines(self, each: SizedLayout) -> str:
        counted = ", ".join(
            f"{count} {plural(self.its.machines[kind].name, count)}"
            + (f" ({each.shapes[kind]})" if kind in each.shapes else "")
            for kind, count in each.machines.items()
        )
        return counted if self.sizing.currency == MACHINES else f"{counted}: {self._cost(each.cost)}"

    def _cost(self, cost: float) -> str:
        return f"{cost:,.0f}" if self.sizing.currency == MACHINES else f"{cost:,.0f} {self.sizing.currency}"

    def _words(self, conditions: str) -> str:
        if conditions == NORMAL:
            return "normal"
        if conditions == DATA:
            return "data on disk"
        parts = conditions.split("+")
        return " + ".join(_loss(part, self.its) for part in parts)

    def _table(self, title: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        table(self.console, title, rows, lambda console: self._stacked(title, rows, console))

    def _stacked(self, title: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> None:
        """Print rows one below the other, where a table is too wide."""
        put(console, title[0], "bold")
        for first, *others in rows:
            cells = [f"{name} {cell}" for name, cell in zip(title[1:], others, strict=True) if cell]
            paragraph(console, f"{first}: {'; '.join(cells)}", hanging=2)


def _rounded_up(ms: float) -> float:
    """Round to three digits so that an objective with the result holds."""
    unit = 10.0 ** (math.floor(math.log10(ms)) - 2)
    return math.ceil(ms / unit) * unit


def _loss(word: str, its: System[Any]) -> str:
    if word in its.situations:
        return its.situations[word].name
    return f"lost {word}" if word != "dc" else "lost DC"


def _limit(safety: Safety) -> str:
    return "overload" if safety.limit == OVERLOAD else safety.limit
