"""A proposal: the sections of its document, their text, and the output files."""

from __future__ import annotations

import json
import math
import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from importlib.resources import files
from typing import Any

from capplan.answers.number_words import (
    as_given,
    listed,
    rate,
    share,
    signed,
    significant,
    tenths_of_percent,
)
from capplan.answers.results import Band, Basis, Latency, Outage
from capplan.errors import InputError, check_extra
from capplan.layout.components import Machines
from capplan.layout.system import System
from capplan.layout.table_system import table_of
from capplan.models.language.scenario import Scenario, options_of
from capplan.planner.proposal import proposal as contents
from capplan.planner.proposal.details import Logo
from capplan.planner.proposal.proposal import Proposal
from capplan.planner.rule_names import statistic
from capplan.planner.size.machines import MACHINES
from capplan.planner.size.sizing import AtConfidence, Refusal, Safety, SizedLayout, given_share
from capplan.reports import sizing as words
from capplan.reports.backtest import accuracies
from capplan.reports.document import (
    MARKS,
    Block,
    Bullets,
    Cell,
    Code,
    Column,
    Document,
    Mark,
    Paragraph,
    Picture,
    Section,
    Signatures,
    Table,
    Tiles,
    table,
)
from capplan.reports.drawings import CAPACITY, GROWTH, LATENCY, LAYOUT, NARROW, WIDE, drawings
from capplan.reports.next_test import advice, ranking
from capplan.reports.numbers import MARK_OF, NOT_BY_RATE, capital, figure_cell, plural, shown
from capplan.reports.pages import html, pdf
from capplan.reports.prediction import sessions
from capplan.reports.sizing import MONTHS, sentences
from capplan.reports.workbook import workbook
from capplan.systems.registry import system

ENDINGS = (".html", ".json", ".pdf", ".xlsx")
TITLE, NOTHING, BLANK = "Sizing proposal", "-", "________"
_DC = "data centre"
_WRITES = {None: NOTHING, True: "kept: each has another replica", False: "may be lost if not yet copied elsewhere"}


def document(proposal: Proposal) -> Document:
    """Return the document of a proposal.

    Parameters
    ----------
    proposal : Proposal
        The proposal; a layout was found.
    """
    return _Document(proposal).made().kept_together()


class _Document:
    def __init__(self, proposal: Proposal) -> None:
        self.proposal, self.sizing = proposal, proposal.sizing
        self.chosen = proposal.chosen
        self.its: System[Any] = system(proposal.sizing.system)
        capacity = proposal.prediction.capacity
        self.normal = MARK_OF[None if capacity is None else capacity.peak_tps.basis]

    def made(self) -> Document:
        details, origin = self.proposal.details, self.proposal.provenance
        named = {"Project": details.project, "Date": details.date, "Valid until": details.valid_until}
        named |= {"Prepared by": details.prepared_by, "Contact": details.contact}
        parts = {
            "Promise": self._promise(),
            "Layout and price": self._layout(),
            "Capacity and latency": (*self._capacity(), *self._latency()),
            "Failures": self._failures(),
            "Growth": self._growth(),
            "Alternatives": self._alternatives(),
            "Acceptance test": self._acceptance(),
            "Assumptions": self._assumptions(),
            "Agreement": self._agreement(),
            "Annex: evidence": self._evidence(),
            "Annex: measuring the inputs": self._inputs(),
            "Annex: computing it again": self._reproduce(),
        }
        return Document(
            title=TITLE,
            customer=details.customer,
            facts=tuple((name, text) for name, text in named.items() if text),
            sections=tuple(
                Section(f"{place}. {name}", tuple(blocks)) for place, (name, blocks) in enumerate(parts.items(), 1)
            ),
            footer=f"capplan {origin.version} · seed {origin.seed} · digest {self.proposal.digest[:16]}",
        )

    @property
    def _of_cell(self) -> str:
        """The addition ` of one cell` for figures of a layout with several cells."""
        return " of one cell" if self.chosen.cells > 1 else ""

    # The promise

    def _promise(self) -> Iterator[Block]:
        told = sentences(self.sizing, self.proposal.evidence.basis)
        bought, done, _, *cautions = told
        nine = _say("situations", confidence=given_share(self.sizing.confidence))
        yield Paragraph(f"{bought} {done} {nine} {self._conditions()}", "verdict")
        for sentence in cautions:
            yield Paragraph(sentence, "verdict")
        yield Tiles(self._tiles())
        if len(self.sizing.stages) > 1:
            yield self._plan()
        if self.sizing.growth_per_year:
            yield Picture(
                GROWTH, "Offered rate year by year, and the rate that is held by the machines bought until then"
            )
        yield Bullets(tuple(self._not_promised()))

    def _plan(self) -> Table:
        """Return what to buy when."""
        return _table(
            "plan",
            self.sizing.stages,
            _column("Buy", 2, lambda each: f"in month {each.from_month:.0f}" if each.from_month else "now"),
            _column("Machines", 5, lambda each: words.added(each, self.its)),
            _right(self._price, 2, lambda each: self._sum_cell(each.cost_added, each.added)),
            _right("Held per second", 2, lambda each: rate_cell(each.held_tps, f"stage.{each.from_month:.0f}")),
            _right("Enough until month", 2, lambda each: number_cell(f"{math.floor(each.lasts_months)}")),
        )

    def _conditions(self) -> str:
        """Return what the promise depends on, in one sentence, and what the layout lies beyond."""
        asked, trips = self.proposal.prediction.scenario, self.proposal.round_trips_ms
        data = [each.where.removeprefix("on ") for each in self.sizing.conditions if each.where]
        levels = [
            f"{name}s at {asked[f'consistency_{name}']}" for name in ("read", "write") if f"consistency_{name}" in asked
        ]
        trip = [f"round trips of at most {significant(max(map(max, trips)))} ms between data centres"] if trips else []
        rises = self.sizing.growth_per_year
        growth = [f"growth of at most {share(rises)} a year"] if rises else []
        every = [*data, *growth, *levels, *trip, "the machines of section 2"]
        basis = words.BASIS.get(self.proposal.evidence.basis, "no load test of such a layout exists")
        return _say("conditions", conditions=listed(every), basis=capital(basis))

    def _not_promised(self) -> Iterator[str]:
        minutes = {each.loss: each for each in self.proposal.first_minutes}
        for word in [each for each in self.sizing.situations if each in minutes]:
            back = minutes[word].back_after_s
            first = "the first minute" if back is None else f"the first {back:.0f} s"
            yield _say(
                "not_at_first", first=first, lost=words.thing(word, self.its), falls=self._until_noticed(minutes[word])
            )
        for word in self.sizing.not_asked:
            falls = self._until_noticed(minutes[word]) if word in minutes else ""
            yield _say("not_promised", lost=words.thing(word, self.its), falls=falls)
        found = self.proposal.mass_return
        kind: type[Scenario] = self.its.scenario
        if "mix" in options_of(kind):  # of subscribers' sessions
            yield _say("not_promised_return", asked=_say("no_demand") if found is None else _mass_return(found))

    def _until_noticed(self, first: contents.FirstMinute) -> str:
        falls = share(first.completed_until_noticed)
        return _say("until_noticed", seconds=as_given(first.noticed_after_s), share=falls)

    def _tiles(self) -> tuple[tuple[str, Cell], ...]:
        sizing, mark = self.sizing, self._mark(self.chosen.binding)
        tightest = words.clause(self.chosen.binding.conditions, self.its)
        return (
            ("requests per second planned at peak", rate_cell(sizing.planned_tps, "planned", "given")),
            (
                f"requests per second held with {given_share(sizing.confidence)} confidence",
                rate_cell(self.chosen.held_tps, "held", mark),
            ),
            (f"to spare above the planned rate {tightest}", share_cell(sizing.capacity_remaining or 0.0, "left", mark)),
            (self._price.lower(), self._sum_cell(self.chosen.cost, self.chosen.machines, "cost")),
        )

    def _mark(self, each: Safety | contents.FitsUntil) -> Mark:
        return self.normal if each.conditions == "normal" else "extrapolated"

    def _cost_cell(self, cost: float, key: str = "") -> Cell:
        return cost_cell(cost, self.sizing.price_unit, key)

    def _sum_cell(self, cost: float, machines: Mapping[str, int], key: str = "") -> Cell:
        """Return the cost of machines that have the prices of the bill, as a sum that a workbook can compute again."""
        return replace(self._cost_cell(cost, key), adds=tuple(machines.items()))

    # The layout

    def _layout(self) -> Iterator[Block]:
        cells = f"{self.chosen.cells} equal cells share the traffic, each " if self.chosen.cells > 1 else ""
        yield Paragraph(f"{cells}{self.chosen.layout}.")
        yield Picture(LAYOUT, f"The layout: {words.counted(self.chosen.machines, self.its)}")
        priced = self.sizing.currency != MACHINES
        prices = (
            _right("Price of one", 2, lambda each: self._sum_cell(each.price, {each.kind: 1}, f"price.{each.kind}")),
            _right("Price", 2, self._line_cell),
        )
        bill = _table(
            "bill",
            self.proposal.bill,
            _column("Machine", 4, lambda each: capital(f"{each.name}, {each.shape}" if each.shape else each.name)),
            _right("Number", 2, lambda each: Cell(f"{each.count:,}", each.count, key=f"count.{each.kind}")),
            *(prices if priced else ()),
        )
        total = (Cell("Total"), Cell(""), Cell(""), self._sum_cell(self.chosen.cost, self.chosen.machines, "total"))
        yield replace(bill, rows=(*bill.rows, total)) if priced else bill
        if not priced:
            yield Paragraph(_say("no_prices"))
        yield _table(
            "hardware",
            self.proposal.bill,
            _column("Each machine", 3, lambda each: capital(each.name)),
            _column("CPU", 5, self._processor),
            _column("Disk for data", 3, self._disk),
            *(_column(name, 2, lambda _: BLANK) for name in ("CPU model", "Memory", "Network")),
        )
        yield Paragraph(_say("hardware"))

    def _line_cell(self, each: contents.MachineCount) -> Cell:
        return self._sum_cell(each.price * each.count, {each.kind: each.count}, f"total.{each.kind}")

    def _shape(self, each: contents.MachineCount) -> Mapping[str, Any]:
        """Return the shape of a machine as its file has it; nothing where no shapes were chosen from."""
        shapes = self.proposal.asked.shapes
        return shapes["shapes"][each.kind][each.shape] if shapes is not None and each.shape else {}

    def _processor(self, each: contents.MachineCount) -> str:
        shape, machine, fields = (
            self._shape(each),
            self.its.component(Machines).kinds[each.kind],
            self.proposal.prediction.scenario,
        )
        clock = f" at {shape['clock_ghz']:g} GHz" if shape.get("clock_ghz") else ""
        if shape:
            return f"{shape['cores']} cores{clock}"
        cores, speed = fields.get(machine.cores or ""), fields.get(machine.speed or "", 1.0)
        same = "as fast as" if speed == 1 else f"{speed:g} times as fast as"
        return BLANK if cores is None else f"{cores} vCPU, {same} in the load tests"

    def _disk(self, each: contents.MachineCount) -> str:
        size, needed = self._shape(each).get("disk_gib"), self.chosen.disk_gib_per_node
        if size is None and self.its.component(Machines).kinds[each.kind].holds_data:
            size = needed
        return BLANK if size is None else f"{size:,.0f} GiB"

    # Assumptions and inputs

    def _assumptions(self) -> Iterator[Block]:
        yield Paragraph(_say("assumptions"))
        yield _table(
            "assumptions",
            self.proposal.assumptions,
            _column("Assumption", 4, lambda each: capital(f"{each.label}{self._of_cell * (each.field == 'rate')}")),
            _column("Value", 3, lambda each: number_cell(each.value)),
            _column("Tested", 3, lambda each: number_cell(each.tested)),
            _column("The value is", 2, lambda each: _COMPARED.get(each.basis, "")),
        )
        yield Bullets(self.proposal.limits)
        legend = "; ".join(f"{mark}: {meaning}" for mark, meaning in MARKS.items())
        yield Paragraph(_say("marks", legend=legend))

    def _inputs(self) -> Iterator[Block]:
        yield Paragraph(_say("inputs"))
        sources = list(dict.fromkeys(one.source for each in self.proposal.inputs for one in each.metrics))

        def named(each: contents.MeasuredInput) -> str:
            return "\n".join(f"{one.name} [{sources.index(one.source) + 1}]" for one in each.metrics)

        yield _table(
            "inputs",
            self.proposal.inputs,
            _column("Input", 2, lambda each: each.name),
            _column("How to measure it", 4, lambda each: each.how),
            _column("Metrics", 5, named, code=True),
        )
        yield Bullets(tuple(f"[{place}] {source}" for place, source in enumerate(sources, 1)))

    # Capacity and growth

    def _capacity(self) -> Iterator[Block]:
        yield Paragraph(_say("capacity", confidence=given_share(self.sizing.confidence)))
        yield Picture(CAPACITY, "Capacity with its 90 % band in each situation, and the planned rate")
        every = {each.conditions: each for each in (*self.chosen.safety, *self.proposal.failures)}.values()
        yield _table(
            "capacity",
            every,
            _column("Situation", 3, lambda each: words.guess(words.situation(each.conditions, self.its), each)),
            _column("Promised", 2, lambda each: "yes" if each.conditions in self.sizing.situations else "no"),
            _right("Held per second", 2, partial(self._safety, rate_cell, "held_tps")),
            _right("Capacity per second, with band", 4, partial(self._safety, _capacity_cell, "capacity_tps")),
            _right("Risk", 2, partial(self._safety, risk_cell, "risk")),
            _column("Limited by", 3, lambda each: words.limited_by(each.limit)),
        )
        if any(each.capacity_tps.high > each.capacity_tps.low == 0 for each in every):
            yield Paragraph(_say("band_from_zero"))

    # Growth

    def _growth(self) -> Iterator[Block]:
        if not self.sizing.growth_per_year:
            yield Paragraph(_say("no_growth"))
            return
        mark = self._mark(self.chosen.binding)
        yield Paragraph(_say("growth"))
        yield _table(
            "growth",
            self.proposal.growth,
            _column("Years from now", 2, lambda each: Cell(f"{each.year:.0f}", each.year)),
            _right("Offered per second", 3, lambda each: rate_cell(each.offered_tps, f"offered.{each.year:.0f}")),
            _right("Held per second", 3, lambda each: rate_cell(self._held(each), f"held.{each.year:.0f}", mark)),
            _right("In use", 2, lambda each: share_cell(each.offered_tps / self._held(each), f"share.{each.year:.0f}")),
            _column("Enough", 2, lambda each: "yes" if each.offered_tps <= self._held(each) else "no"),
        )
        yield _table(
            "fits until",
            self.proposal.fits_until,
            _column("All machines are used up by", 3, lambda each: _RUNS_OUT.get(each.what, each.what)),
            _column("Situation", 4, lambda each: words.situation(each.conditions, self.its)),
            _right("After", 4, self._months),
        )

    def _held(self, each: contents.YearOfGrowth) -> float:
        return words.held(self.sizing, self.chosen, MONTHS * each.year)

    def _months(self, each: contents.FitsUntil) -> Cell:
        number = None if each.months is None else float(f"{each.months.value:.1f}")
        mark, key = self._mark(each), f"until.{each.what}.{each.conditions}"
        return Cell(words.fits_for(each.months), number, "months", mark=mark, key=key)

    # Latency

    def _latency(self) -> Iterator[Block]:
        prediction = self.proposal.prediction
        source = "simulated" if prediction.engine != "analytic" else "solved"
        yield Paragraph(_say("latency", of_cell=self._of_cell, source=source))
        yield Picture(LATENCY, "Latency against load with its 90 % band, the objective and the planned rate")
        shown = ("mean", "p50", "p95", "p99")
        figures = (_right(f"{capital(statistic(one))}, ms", 3, partial(_latency_cell, one)) for one in shown)
        requests = _column("Requests", 2, lambda each: each[0])
        yield _table("latency", prediction.latency_ms.items(), requests, *figures)
        guessed = prediction.tails_guessed
        if guessed:
            yield Paragraph(f"{capital(listed(guessed))} are in the percentiles as a guess.")

    # Failures

    def _failures(self) -> Iterator[Block]:
        if not self.proposal.failures:
            yield Paragraph(_say("no_failures"))
            return
        yield from self._first_minutes()
        yield Paragraph(_say("later"))
        trades = [*self._trade_offs()]
        if self.proposal.mass_return is not None:
            trades.append(f"All subscribers come back after an outage: {_mass_return(self.proposal.mass_return)}")
        yield from [Bullets(tuple(trades))] if trades else []
        if found := self.proposal.prediction.session_not_found:
            _, *blocks = sessions(found)
            yield from (Paragraph(_say("sessions")), *blocks)

    def _first_minutes(self) -> Iterator[Block]:
        """Yield the simulated first minute of each loss."""
        minutes = self.proposal.first_minutes
        if not minutes:
            return
        noticed, lasts = as_given(minutes[0].noticed_after_s), as_given(minutes[0].lasts_s)
        yield Paragraph(_say("first_minute", noticed=noticed, lasts=lasts))

        def back(each: contents.FirstMinute) -> Cell:
            if each.back_after_s is None:
                return Cell("not in the simulation")
            return Cell(text := f"{each.back_after_s:.0f}", float(text), key=f"minute.back.{each.loss}")

        def share_of(name: str) -> Callable[[contents.FirstMinute], Cell]:
            return lambda each: share_cell(getattr(each, name), f"minute.{name}.{each.loss}")

        yield _table(
            "first minute",
            minutes,
            _column("Failure", 3, lambda each: words.situation(each.loss, self.its)),
            _right(f"Completed in the first {noticed} s", 2, share_of("completed_until_noticed")),
            _right("Completed later", 2, share_of("completed_afterwards")),
            _right("Never answered", 2, share_of("unanswered")),
            _right("Normal again after, s", 2, back),
            _column("Acknowledged writes", 3, lambda each: _WRITES[each.keeps_writes]),
        )

    def _safety(self, made: Callable[[Any, str, Mark], Cell], figure: str, each: Safety) -> Cell:
        """Return a figure of a situation; there is none without service."""
        if each.bottleneck is None:
            return Cell(NOTHING)
        if math.isinf(each.held_tps) and figure != "risk":
            return Cell(NOT_BY_RATE)
        return made(getattr(each, figure), f"{figure}.{each.conditions}", self._mark(each))

    def _trade_offs(self) -> Iterator[str]:
        """Yield the losses that interrupt service at the chosen levels, and the effect and cost of lower levels."""
        for each in self.proposal.prediction.outages:
            if not each.available:
                yield f"{self._lost(each)}: no service, {each.assumed}."
            elif each.lowered:
                cost = f" The price: {each.cost}." if each.cost else ""
                yield f"{self._lost(each)}, with lower levels ({each.assumed}): service continues.{cost}"

    def _lost(self, outage: Outage) -> str:
        """Return in words what an outage takes down."""
        each = [
            words.thing(kind, self.its) if count == 1 else f"{count} {'data centres' if kind == 'dc' else f'of {kind}'}"
            for kind, count in outage.lost.items()
        ]
        return f"Loss of {listed(each)}"

    # Alternatives

    def _alternatives(self) -> Iterator[Block]:
        if self.proposal.failures:
            yield Paragraph(_say("survival"))
            yield _table(
                "survival options",
                self.proposal.survival_options,
                _column("Survives", 3, lambda each: f"{self._survived(each)}{' (proposed)' * each.proposed}"),
                *self._costs("survival options", lambda each: "+".join(each.survive) or "nothing"),
            )
        yield Paragraph(_say("confidence"))
        proposed = AtConfidence(confidence=self.sizing.confidence, machines=self.chosen.machines, cost=self.chosen.cost)
        others = (each for each in self.sizing.confidences if each.confidence != proposed.confidence)
        yield _table(
            "confidence options",
            sorted([proposed, *others], key=lambda each: each.confidence),
            _column("Confidence", 3, lambda each: given_share(each.confidence) + " (proposed)" * (each is proposed)),
            *self._costs("confidence options", lambda each: f"{each.confidence:g}"),
        )
        yield Bullets(tuple(self._regrets()))
        if self.sizing.alternatives:
            yield Paragraph("Other layouts that are safe:")
            yield _table(
                "alternatives",
                self.sizing.alternatives,
                _column("Differs in", 3, lambda each: capital(self._differs(each))),
                _column("Cheapest layout", 5, lambda each: words.counted(each.machines, self.its, each.shapes)),
                _right(self._price, 2, self._alternative_cost),
            )
        if self.sizing.impossible:
            yield Bullets(tuple(map(self._ruled_out, self.sizing.impossible)))

    def _costs(self, name: str, key: Callable[[Any], str]) -> Iterator[_Column]:
        """Yield the columns of an option's cheapest layout and of what it costs."""

        def price(each: contents.Option | AtConfidence) -> Cell:
            cost, machines = each.cost, each.machines
            return Cell(NOTHING) if cost is None else self._sum_cell(cost, machines, f"option.{name}.{key(each)}")

        def compared(each: contents.Option | AtConfidence) -> Cell:
            if each.cost is None or abs(each.cost - self.chosen.cost) < 1:
                return Cell(NOTHING)
            more = {kind: count - self.chosen.machines[kind] for kind, count in each.machines.items()}
            cell = cost_cell(each.cost - self.chosen.cost, self.sizing.price_unit, signed=True)
            return replace(cell, adds=tuple(more.items()))

        def layout(each: contents.Option | AtConfidence) -> str:
            none = each.why_not if isinstance(each, contents.Option) else "none that was searched"
            return none if each.cost is None else words.counted(each.machines, self.its)

        yield _column("Cheapest layout", 5, layout)
        yield _right(self._price, 2, price)
        yield _right("Compared with the proposal", 3, compared)

    def _survived(self, option: contents.Option) -> str:
        each = [words.inside_sentence(words.situation(one, self.its)) for one in option.survive]
        return capital(", or ".join(each)) if each else "Nothing: normal operation only"

    def _alternative_cost(self, each: SizedLayout) -> Cell:
        same = each.shapes == self.chosen.shapes
        return self._sum_cell(each.cost, each.machines) if same else self._cost_cell(each.cost)

    def _regrets(self) -> Iterator[str]:
        """Yield the regret if the truth turns out to be the median, or the low end of the band."""
        costs = {each.confidence: each.cost for each in self.sizing.confidences}
        median, low = costs.get(0.5), costs.get(0.95)
        if median is not None and median < self.chosen.cost:
            saved = words.worth_of(self.chosen.cost - median, self.sizing)
            yield _say("too_much", saved=saved, part=signed(median / self.chosen.cost - 1))
        if low is not None:
            if low > self.chosen.cost:
                yield _say("too_little", more=words.worth_of(low - self.chosen.cost, self.sizing))
        elif 0.95 in costs:
            yield _say("never_enough")

    def _differs(self, layout: SizedLayout) -> str:
        """Return the differences of a layout other than numbers of machines."""
        cells = [f"{layout.cells} cells"] if layout.cells > 1 else []
        return listed([*cells, *words.each_field(words.own_fields(layout, self.its), _DC)] or ["numbers of machines"])

    def _ruled_out(self, refusal: Refusal) -> str:
        named = {
            name: value for name, value in refusal.fields.items() if name not in self.its.component(Machines).sized
        }
        where = f"{words.situation(refusal.conditions, self.its)}: " if refusal.conditions else ""
        why = words.inside_sentence(f"{where}{refusal.reason}")
        return f"Ruled out: {listed(words.each_field(named, _DC) or ['every layout'])}; {why}."

    @property
    def _price(self) -> str:
        return "Machines" if self.sizing.currency == MACHINES else "Price"

    # Acceptance and agreement

    def _acceptance(self) -> Iterator[Block]:
        test, objectives = self.proposal.acceptance, [words.objective(each) for each in self.sizing.objectives]
        drops = f"at most {tenths_of_percent(test.most_dropped)} of the requests are dropped"
        yield Paragraph(_say("acceptance", passes=listed([drops, "no backlog grows", *objectives])))
        yield _table(
            "acceptance",
            test.runs,
            _column("Run", 4, lambda each: words.situation(each.conditions, self.its)),
            _right("Peak rate per second", 3, lambda each: rate_cell(each.offered_tps, f"run.{each.conditions}")),
            _right("Minutes", 2, lambda _: Cell(f"{test.minutes:.0f}", test.minutes)),
            _right("Risk of failing", 3, lambda each: risk_cell(1 - each.chance, f"fail.{each.conditions}")),
        )
        repeats = [f"{share(each)} in {name}" for name, each in test.repeats_within.items()]
        yield Bullets((_say("warm"), *(_say("repeats", differ=each) for each in repeats)))

    def _agreement(self) -> Iterator[Block]:
        details = self.proposal.details
        parties = ((details.prepared_by or "Vendor", "vendor"), (details.customer, "customer"))
        yield _table(
            "responsibilities",
            [(party, each) for party, name in parties for each in _sentences()["responsible"][name]],
            _column("Party", 3, lambda each: each[0]),
            _column("Is responsible for", 7, lambda each: each[1]),
        )
        yield Paragraph(_say("valid", date=details.valid_until or BLANK))
        yield Signatures(tuple(party for party, _ in parties))

    # Evidence

    def _evidence(self) -> Iterator[Block]:
        its = self.proposal.evidence
        yield Paragraph(self._rests_on(its))
        yield Bullets(its.sources)
        yield Paragraph(_say("known", why=its.why, half_width=share(its.half_width)))
        if its.left_out_error is not None:
            yield Paragraph(_say("left_out", error=share(its.left_out_error), **vars(its)))
        if its.unseen is not None:
            answer, left_out = its.unseen.answer, its.unseen.left_out
            yield Paragraph(_say("backtest", left_out=left_out) if left_out else _say("few_loads"))
            yield from [accuracies(answer, "backtest")] if answer else []
            yield from map(Paragraph, its.unseen.remarks)
        if its.next_test is not None:
            yield Paragraph(f"Measure next {advice(its.next_test)}.")
            yield ranking(its.next_test, "next test")
        if its.unmeasured:
            yield Paragraph(f"No load test reports {listed(its.unmeasured)}; one that does would narrow the band.")
        if its.defects:
            yield Paragraph("Known defects of the sources:")
            yield Bullets(its.defects)

    def _rests_on(self, its: contents.EvidenceUsed) -> str:
        if its.scenarios:
            return _say("of_documents", system=self.sizing.system, **vars(its))
        layouts = f"{its.load_tests} {plural('layout', its.load_tests)}"
        return _say("of_a_table", system=self.sizing.system, rows=its.rows, layouts=layouts)

    # Reproduction

    def _reproduce(self) -> Iterator[Block]:
        origin = self.proposal.provenance
        yield Paragraph(_say("again"))
        asked = self.proposal.asked.command
        file = shlex.split(asked)[2] if asked else "mine.json"
        ends = (
            f" --fitted {shlex.quote(file)}"
            if file.endswith(".json") and (asked or table_of(self.its) is not None)
            else ""
        )
        yield Code("\n".join([*([asked] if asked else []), f"capplan verify proposal.json{ends}"]))
        rows = (
            ("Version", f"capplan {origin.version}"),
            ("Seed", str(origin.seed)),
            ("Checksum of the evidence", origin.evidence),
            ("Checksum of the fitted parameters", origin.calibration),
            ("Checksum of this proposal", self.proposal.digest),
        )
        yield table((Column("What", 2), Column("Value", 6, code=True)), rows, "origin")


@cache
def _sentences() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("templates", "proposal.toml").read_text(encoding="utf-8"))


def _say(name: str, **filled: Any) -> str:
    """Return a sentence of the template with its names filled in."""
    return str(_sentences()[name]).format(**filled).rstrip()


def _mass_return(found: contents.MassReturn) -> str:
    """Return in words what subscribers ask who come back at once."""
    served_s, times = found.served_after_s, significant(found.times_busy_hour)
    served = _say("never_served") if served_s is None else _say("last_served", seconds=f"{served_s:,.0f}")
    return _say("mass_return", peak=rate(found.peak_tps), times=times, served=served)


_Column = tuple[Column, Callable[[Any], Cell | str]]
"""A column, and its cell in the row of an item."""


def _column(title: str, width: int, cell: Callable[[Any], Cell | str], code: bool = False) -> _Column:
    return Column(title, width, code=code), cell


def _right(title: str, width: int, cell: Callable[[Any], Cell | str]) -> _Column:
    return Column(title, width, right=True), cell


def _table(name: str, items: Iterable[Any], *made: _Column) -> Table:
    """Return a table with one row per item; marks that agree within a row appear once, in the last column."""
    columns = tuple(column for column, _ in made)
    rows = [[cell if isinstance(cell := make(each), Cell) else Cell(cell) for _, make in made] for each in items]
    marks = [{cell.mark for cell in row if cell.mark} for row in rows]
    if not any(marks) or max(map(len, marks)) > 1:
        return Table(columns, tuple(map(tuple, rows)), name)
    marked = tuple(
        (*(replace(cell, mark="") for cell in row), Cell("", mark=next(iter(found), "")))
        for row, found in zip(rows, marks, strict=True)
    )
    return Table((*columns, Column("", 2, right=True)), marked, name)


def _latency_cell(statistic: str, named: tuple[str, Latency]) -> Cell:
    name, latency = named
    return figure_cell(getattr(latency, statistic), significant, "ms", f"latency.{name}.{statistic}")


def _capacity_cell(capacity: Band, key: str, mark: Mark) -> Cell:
    return replace(figure_cell(capacity, rate, "1/s", key), mark=mark)


_RUNS_OUT = {contents.RATE: "requests per second", contents.DISKS: "space on the disks"}
_COMPARED: dict[Basis | None, str] = {
    "measured": "as tested",
    "interpolated": "between tested values",
    "population": "as in published clusters",
    "extrapolated": "beyond the tests",
    "model only": "beyond the tests",
}


# Cells


def rate_cell(number: float, key: str = "", mark: Mark = "") -> Cell:
    """Return a rate, requests per second."""
    return Cell(text := rate(number), shown(text), "1/s", mark=mark, key=key)


def number_cell(text: str) -> Cell:
    """Return a text as a number if it is one."""
    return Cell(text, shown(text)) if re.fullmatch(r"[\d,]+(\.\d+)?", text) else Cell(text)


def risk_cell(number: float, key: str = "", mark: Mark = "") -> Cell:
    """Return a probability as a cell, to a tenth of a per cent."""
    text = tenths_of_percent(number)
    return Cell(text, float(f"{number:.3f}") if not text.startswith("<") else 0.0, "1", mark=mark, key=key)


def share_cell(number: float, key: str = "", mark: Mark = "") -> Cell:
    """Return a share in per cent."""
    text = share(number)
    value = round(shown(text.removesuffix(" %")) / 100, 6) if text[:1].isdigit() else None
    return Cell(text, value, "1", mark=mark, key=key)


def cost_cell(number: float, unit: str, key: str = "", signed: bool = False) -> Cell:
    """Return a cost as a cell; a number of machines if there are no prices."""
    return Cell(words.cost_in_words(number, unit, signed), float(f"{number:.0f}"), unit, key=key)


# Files


def check_installed(ending: str) -> None:
    """Refuse a format whose libraries are missing, before any computation.

    Raises
    ------
    MissingError
        If one is missing; the message says what to install.
    """
    needs = {".html": ("matplotlib",), ".pdf": ("typst", "matplotlib"), ".xlsx": ("xlsxwriter",)}
    check_extra("proposal", *needs.get(ending, ()), instead=", or write .json")


def render_proposal(proposal: Proposal, ending: str, logo: Logo | None = None) -> bytes:
    """Return a proposal as the contents of a file.

    Parameters
    ----------
    proposal : Proposal
        The proposal.
    ending : str
        Ending of the file's name: `.html`, `.pdf`, `.xlsx` or `.json`.
    logo : Logo, optional
        The logo of who makes it; JSON has none.

    Returns
    -------
    bytes
        The same for the same proposal.

    Raises
    ------
    InputError
        If the ending is none of these.
    MissingError
        If a library of the format is not installed.
    """
    if ending == ".json":
        return (json.dumps(proposal.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    check_installed(ending)
    made = document(proposal)
    if ending == ".html":
        return html(made, drawings(proposal, WIDE), drawings(proposal, NARROW), logo).encode()
    if ending == ".pdf":
        return pdf(made, drawings(proposal, WIDE), logo)
    if ending == ".xlsx":
        return workbook(proposal, made, logo)
    raise InputError(f"a proposal is not written as {ending!r}: give one of {', '.join(ENDINGS)}")
