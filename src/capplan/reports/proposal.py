"""A proposal: the sections of its document, their text, and the output files."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from capplan.layout.system import System
from capplan.models.errors import InputError, check_extra
from capplan.models.number_words import rate, share, signed, significant, tenths_of_percent
from capplan.models.results import Band, Basis, Latency, Outage
from capplan.planner.proposal.details import Logo
from capplan.planner.proposal.proposal import (
    DISKS,
    RATE,
    EvidenceUsed,
    FitsUntil,
    MeasuredInput,
    NextLoadTest,
    Option,
    Proposal,
    UnseenFigures,
    UnseenRows,
    YearOfGrowth,
)
from capplan.planner.rule_names import RULES, statistic
from capplan.planner.size.machines import MACHINES
from capplan.planner.size.sizing import Refusal, Safety, SizedLayout
from capplan.reports import sizing as words
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
    Table,
    Tiles,
    texts,
)
from capplan.reports.drawings import CAPACITY, GROWTH, LATENCY, LAYOUT, NARROW, WIDE, drawings
from capplan.reports.numbers import capital, listed, plural
from capplan.reports.pages import html, pdf
from capplan.reports.sizing import sentences
from capplan.reports.workbook import workbook
from capplan.systems.registry import system

ENDINGS = (".html", ".json", ".pdf", ".xlsx")
TITLE, NOTHING = "Sizing proposal", "-"


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
        if proposal.sizing.chosen is None:
            raise ValueError("a proposal without a layout has no document")
        self.proposal, self.sizing = proposal, proposal.sizing
        self.chosen: SizedLayout = proposal.sizing.chosen
        self.its: System[Any] = system(proposal.sizing.system)
        capacity = proposal.prediction.capacity
        self.normal = mark_of(None if capacity is None else capacity.peak_tps.basis)

    def made(self) -> Document:
        details, origin = self.proposal.details, self.proposal.provenance
        named = {"Project": details.project, "Date": details.date}
        named |= {"Prepared by": details.prepared_by, "Contact": details.contact}
        parts = {
            "Answer": self._answer(),
            "Layout": self._layout(),
            "Assumptions": self._assumptions(),
            "How to measure the inputs": self._inputs(),
            "Capacity and growth": self._capacity(),
            "Latency": self._latency(),
            "When something fails": self._failures(),
            "Cost and regret": self._cost(),
            "Evidence": self._evidence(),
            "Limits": [Bullets(self.proposal.limits)],
            "How to reproduce": self._reproduce(),
        }
        return Document(
            title=TITLE,
            customer=details.customer,
            facts=tuple((name, text) for name, text in named.items() if text),
            question=self._question(),
            sections=tuple(Section(name, tuple(blocks)) for name, blocks in parts.items()),
            footer=f"capplan {origin.version} · seed {origin.seed} · digest {self.proposal.digest[:16]}",
        )

    def _question(self) -> str:
        sizing = self.sizing
        rate = f"{rate_cell(sizing.planned_tps).text} requests per second at peak"
        if sizing.growth_per_year and sizing.years:
            after = words.years_in_words(sizing.years)
            rate += f", reached after {after} of {share(sizing.growth_per_year)} growth a year"
        held = [words.clause(each, self.its) for each in sizing.conditions[1:]]
        parts = [rate, *map(words.objective, sizing.objectives)]
        parts += [f"also {listed(held)}"] if held else []
        return f"{'; '.join(parts)}; {share(sizing.confidence)} confidence"

    @property
    def _of_cell(self) -> str:
        """The addition ` of one cell` for figures of a layout with several cells."""
        return " of one cell" if self.chosen.cells > 1 else ""

    # The answer

    def _answer(self) -> Iterator[Block]:
        for sentence in sentences(self.sizing, self.proposal.evidence.basis):
            yield Paragraph(sentence, strong=True)
        yield Tiles(self._tiles())
        legend = "; ".join(f"{mark}: {meaning}" for mark, meaning in MARKS.items())
        yield Paragraph(f"Figures are marked by what they rest on. {legend[:1].upper()}{legend[1:]}.")

    def _tiles(self) -> tuple[tuple[str, Cell], ...]:
        sizing, mark = self.sizing, self._mark(self.chosen.binding)
        held = f"held with {share(sizing.confidence)} confidence in every situation"
        left = "of the capacity left in the tightest situation"
        return (
            ("planned peak, requests per second", rate_cell(sizing.planned_tps, "planned", "given")),
            (held, rate_cell(self.chosen.held_tps, "held", mark)),
            (left, share_cell(sizing.capacity_remaining or 0.0, "left", mark)),
            ("machines" if sizing.currency == MACHINES else "price", self._cost_cell(self.chosen.cost, "cost")),
        )

    def _mark(self, each: Safety | FitsUntil) -> Mark:
        return self.normal if each.conditions == "normal" else "extrapolated"

    def _cost_cell(self, cost: float, key: str = "") -> Cell:
        return cost_cell(cost, self.sizing.currency, key)

    # The layout

    def _layout(self) -> Iterator[Block]:
        cells = f"{self.chosen.cells} equal cells share the traffic, each " if self.chosen.cells > 1 else ""
        yield Paragraph(f"{cells}{self.chosen.layout}.")
        yield Picture(LAYOUT, f"The layout: {words.counted(self.chosen.machines, self.its)}")
        priced = self.sizing.currency != MACHINES
        prices = (
            _right("Price of one", 2, lambda each: self._cost_cell(each.price, f"price.{each.kind}")),
            _right("Price", 2, lambda each: self._cost_cell(each.price * each.count, f"total.{each.kind}")),
        )
        bill = _table(
            "bill",
            self.proposal.bill,
            _column("Machine", 4, lambda each: capital(f"{each.name}, {each.shape}" if each.shape else each.name)),
            _right("Number", 2, lambda each: Cell(f"{each.count:,}", each.count, key=f"count.{each.kind}")),
            *(prices if priced else ()),
        )
        total = (Cell("Total"), Cell(""), Cell(""), self._cost_cell(self.chosen.cost, "total"))
        yield replace(bill, rows=(*bill.rows, total)) if priced else bill
        if not priced:
            yield Paragraph("No prices were given, so the layout with the fewest machines was chosen.")

    # Assumptions and inputs

    def _assumptions(self) -> Iterator[Block]:
        yield Paragraph("The answer holds for these values. The third column says what the load tests had.")
        yield _table(
            "assumptions",
            self.proposal.assumptions,
            _column("Assumption", 4, lambda each: capital(f"{each.label}{self._of_cell * (each.field == 'rate')}")),
            _column("Value", 3, lambda each: each.value),
            _column("Tested", 3, lambda each: each.tested),
            _column("The value is", 2, lambda each: _COMPARED.get(each.basis, "")),
        )

    def _inputs(self) -> Iterator[Block]:
        yield Paragraph(
            "Each input can be read from a running system. A value that differs from the assumptions changes the "
            "answer."
        )
        sources = list(dict.fromkeys(one.source for each in self.proposal.inputs for one in each.metrics))

        def named(each: MeasuredInput) -> str:
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
        sizing = self.sizing
        yield Paragraph(
            "The capacity is the highest peak rate at which no request is dropped, no backlog grows and every "
            "objective holds, with the 90 % band of what a load test would measure. The held rate is the one that "
            f"holds with {share(sizing.confidence)} confidence. The risk is the probability that the planned rate does "
            "not hold."
        )
        yield Picture(CAPACITY, "Capacity with its 90 % band in each situation, and the planned rate")
        yield _table(
            "capacity",
            self.chosen.safety,
            _column("Situation", 3, self._situation),
            *self._safety("held capacity risk", (3, 2)),
            _column("Limited by", 3, lambda each: words.limited_by(each.limit)),
        )
        if any(each.capacity_tps.low == 0 for each in self.chosen.safety):
            yield Paragraph(
                "A band that starts at 0 says that one load test in twenty would miss an objective at any rate. More "
                "machines do not help there; better evidence does."
            )
        if self.sizing.growth_per_year:
            yield from self._growth()
        if any(each.months is not None for each in self.proposal.fits_until):
            yield _table(
                "fits until",
                self.proposal.fits_until,
                _column("What runs out", 2, lambda each: capital(_RUNS_OUT.get(each.what, each.what))),
                _column("Situation", 4, lambda each: words.situation(each.conditions, self.its)),
                _right("Fits for", 4, self._months),
            )
        else:
            yield Paragraph("No growth was given, so the layout is sized for one peak, and how long it fits is open.")

    def _growth(self) -> Iterator[Block]:
        yield Picture(GROWTH, "Offered rate year by year, and the rate that is held in each situation")
        mark = self._mark(self.chosen.binding)

        def offered(each: YearOfGrowth) -> Cell:
            return rate_cell(each.offered_tps, f"offered.{each.year:.0f}", "given")

        yield _table(
            "growth",
            self.proposal.growth,
            _column("Years from now", 2, lambda each: Cell(f"{each.year:.0f}", each.year)),
            _right("Offered per second", 3, offered),
            _right("Of the held rate", 3, lambda each: share_cell(each.of_held, f"share.{each.year:.0f}", mark)),
            _column("Fits", 2, lambda each: "yes" if each.fits else "no"),
        )
        if len(self.sizing.stages) > 1:
            yield Paragraph(
                "The machines can be bought in stages. Each stage meets the same objectives until the next."
            )
            yield _table(
                "stages",
                self.sizing.stages,
                _right("From month", 2, lambda each: f"{each.from_month:.0f}"),
                _column("Add", 5, lambda each: words.added(each, self.its)),
                _right("Held per second", 3, lambda each: rate_cell(each.held_tps, f"stage.{each.from_month:.0f}")),
                _right("Enough until month", 3, lambda each: f"{math.floor(each.lasts_months)}"),
            )

    def _months(self, each: FitsUntil) -> Cell:
        number = None if each.months is None else float(f"{each.months.value:.1f}")
        mark, key = self._mark(each), f"until.{each.what}.{each.conditions}"
        return Cell(words.fits_for(each.months), number, "months", mark=mark, key=key)

    # Latency

    def _latency(self) -> Iterator[Block]:
        prediction = self.proposal.prediction
        source = "simulated" if prediction.engine != "analytic" else "solved"
        yield Paragraph(
            f"Latencies at the planned rate{self._of_cell} are {source}, with all nodes up; each has the 90 % band "
            "of what a load test would measure. The curves come from the analytic solver."
        )
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
            yield Paragraph("No failure of this system is modelled.")
            return
        yield Paragraph(
            "What the proposed layout still does after each failure, at the consistency levels of the answer and with "
            "all clients served by what is left."
        )
        accepted = 1 - self.sizing.confidence
        yield _table(
            "failures",
            self.proposal.failures,
            _column("Failure", 3, self._situation),
            _column("Carries the plan", 2, lambda each: "yes" if each.risk <= accepted else "not with this confidence"),
            *self._safety("after left failing", (2, 1), "extrapolated"),
            _column("Limited by", 3, lambda each: words.limited_by(each.limit)),
        )
        trades = tuple(self._trade_offs())
        if trades:
            yield Bullets(trades)
        yield Paragraph(
            "What it costs to survive less, or more, with the same confidence and the same data centres. Options are "
            "searched with fewer draws than the proposal, so their numbers of machines are within a few per cent."
        )
        yield self._options(self.proposal.survival_options, "survival options", by_survival=True)

    def _situation(self, each: Safety) -> str:
        return words.guess(words.situation(each.conditions, self.its), each)

    def _safety(self, keys: str, widths: tuple[int, int], lost: Mark = "") -> Iterator[_Column]:
        """Yield the columns of a layout's safety in a situation; a loss has a mark and may leave no service."""
        (held, capacity, risk), (first, last) = keys.split(), widths

        def cell(made: Callable[[Any, str, Mark], Cell], figure: str, key: str) -> Callable[[Safety], Cell]:
            def made_of(each: Safety) -> Cell:
                if lost and each.bottleneck is None:
                    return Cell("none" if key == capacity else NOTHING)
                return made(getattr(each, figure), f"{key}.{each.conditions}", lost or self._mark(each))

            return made_of

        yield _right("Held per second", first, cell(rate_cell, "held_tps", held))
        yield _right("Capacity per second, with band", 4, cell(partial(band_cell, "1/s"), "capacity_tps", capacity))
        yield _right("Risk", last, cell(risk_cell, "risk", risk))

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

    def _options(self, options: tuple[Option, ...], name: str, by_survival: bool) -> Table:
        def what(each: Option) -> str:
            said = self._survived(each) if by_survival else share(each.confidence)
            return f"{said} (proposed)" if each.proposed else said

        def price(each: Option) -> Cell:
            key = "+".join(each.survive) or "nothing" if by_survival else f"{each.confidence:g}"
            return Cell(NOTHING) if each.cost is None else self._cost_cell(each.cost, f"option.{name}.{key}")

        def compared(each: Option) -> Cell:
            more = 0.0 if each.cost is None else each.cost - self.chosen.cost
            return cost_cell(more, self.sizing.currency, signed=True) if abs(more) >= 1 else Cell(NOTHING)

        def layout(each: Option) -> str:
            return each.why_not if each.cost is None else words.counted(each.machines, self.its)

        return _table(
            name,
            options,
            _column("Survives" if by_survival else "Confidence", 3, what),
            _column("Cheapest layout", 5, layout),
            _right(self._price, 2, price),
            _right("Compared with the proposal", 3, compared),
        )

    def _survived(self, option: Option) -> str:
        each = [words.inside_sentence(words.situation(one, self.its)) for one in option.survive]
        return capital(", or ".join(each)) if each else "Nothing: normal operation only"

    # Cost

    def _cost(self) -> Iterator[Block]:
        yield Paragraph(
            "Confidence has a price. The table has the cheapest layout for each confidence, with the same failures to "
            "survive."
        )
        yield self._options(self.proposal.confidence_options, "confidence options", by_survival=False)
        yield Bullets(tuple(self._regrets()))
        if self.sizing.alternatives:
            yield Paragraph("Other layouts that are safe:")
            yield _table(
                "alternatives",
                self.sizing.alternatives,
                _column("Differs in", 3, lambda each: capital(self._differs(each))),
                _column("Cheapest layout", 5, lambda each: words.counted(each.machines, self.its, each.shapes)),
                _right(self._price, 2, lambda each: self._cost_cell(each.cost)),
            )
        if self.sizing.impossible:
            yield Bullets(tuple(map(self._ruled_out, self.sizing.impossible)))

    def _regrets(self) -> Iterator[str]:
        """Yield the regret if the truth turns out to be the median, or the low end of the band."""
        costs = {each.confidence: each.cost for each in self.proposal.confidence_options}
        median, low = costs.get(0.5), costs.get(0.95)
        if median is not None and median < self.chosen.cost:
            saved = self._worth(self.chosen.cost - median)
            yield (
                f"Too much: if a load test confirms our median estimate, this layout is {saved} too large "
                f"({signed(median / self.chosen.cost - 1)}). Testing before you buy is worth up to that."
            )
        if low is not None:
            if low <= self.chosen.cost:
                return
            yield (
                f"Too little: if it measures the low end of the band, {self._worth(low - self.chosen.cost)} must be "
                "added."
            )
        elif 0.95 in costs:
            yield (
                "Too little: if it measures the low end of the band, no layout of the search is certain to do. Buy in "
                "steps, and measure after the first."
            )

    def _differs(self, layout: SizedLayout) -> str:
        """Return the differences of a layout other than numbers of machines."""
        cells = [f"{layout.cells} cells"] if layout.cells > 1 else []
        return listed([*cells, *_fields(words.own_fields(layout, self.its))] or ["numbers of machines"])

    def _ruled_out(self, refusal: Refusal) -> str:
        named = {name: value for name, value in refusal.fields.items() if name not in self.its.sized}
        where = f"{words.situation(refusal.conditions, self.its)}: " if refusal.conditions else ""
        why = words.inside_sentence(f"{where}{refusal.reason}")
        return f"Ruled out: {listed(_fields(named) or ['every layout'])}; {why}."

    @property
    def _price(self) -> str:
        return "Machines" if self.sizing.currency == MACHINES else "Price"

    def _worth(self, cost: float) -> str:
        text = self._cost_cell(cost).text
        return f"{text} machine{'s' * (text != '1')}" if self.sizing.currency == MACHINES else text

    # Evidence

    def _evidence(self) -> Iterator[Block]:
        its = self.proposal.evidence
        yield Paragraph(self._rests_on(its))
        yield Bullets(its.sources)
        yield Paragraph(f"{its.why} The capacity without objectives is known to within ±{share(its.half_width)}.")
        if its.left_out_error is not None:
            yield Paragraph(
                f"Backtest: each scenario was predicted by a fit that had not seen it. The {its.left_out_figures} "
                f"figures came out {share(its.left_out_error)} off in the median, and {its.left_out_held} of "
                f"{its.left_out_banded} lay inside their 90 % band. {its.verdict}"
            )
        if its.unseen is not None:
            yield from _backtest(its.unseen)
        if its.next_test is not None:
            yield Paragraph(_next_test(its.next_test))
        if its.narrower:
            yield Paragraph("What would narrow the bands:")
            yield _table(
                "narrower",
                its.narrower,
                _column("Measurement", 8, lambda each: each.what),
                _right("Capacity without objectives, afterwards", 4, lambda each: _half_width_cell(each.half_width)),
            )
        if its.defects:
            yield Paragraph("Known defects of the sources:")
            yield Bullets(its.defects)

    def _rests_on(self, its: EvidenceUsed) -> str:
        if not its.scenarios:  # a table of load tests
            return (
                f"The model of {self.sizing.system} was fitted to {its.rows} rows of load tests in {its.load_tests} "
                f"{plural('layout', its.load_tests)}."
            )
        return (
            f"The model of {self.sizing.system} rests on {its.rows} documented figures, {its.fitted_rows} of them "
            f"fitted, from {its.load_tests} load tests in {its.scenarios} independent scenarios."
        )

    # Reproduction

    def _reproduce(self) -> Iterator[Block]:
        origin = self.proposal.provenance
        yield Paragraph(
            "The same version, evidence and seed give the same figures. The JSON of this proposal holds the whole "
            "question and every figure; the second command computes them again and names those that differ."
        )
        commands = [self.proposal.asked.command] if self.proposal.asked.command else []
        yield Code("\n".join([*commands, "capplan verify proposal.json"]))
        rows = (
            ("Version", f"capplan {origin.version}"),
            ("Seed", str(origin.seed)),
            ("Evidence, SHA-256", origin.evidence),
            ("Fitted parameters, SHA-256", origin.calibration),
            ("This proposal, SHA-256", self.proposal.digest),
        )
        yield Table((Column("What", 2), Column("Value", 6, code=True)), texts(rows), "origin")


_WORTH_SAYING = 0.01  # a probability


def _quantity(column: str) -> str:
    """Return a load-test quantity under its name in backtest tables."""
    return column.removeprefix("latency_").removesuffix("_tps").removesuffix("_ms")


def _backtest(its: UnseenRows) -> Iterator[Block]:
    """Yield how well a refit predicts rows that it has not seen."""
    if not its.left_out:
        yield Paragraph("Backtest: none, as the load tests have too few loads to leave one out.")
        return

    def error_cell(which: str, each: UnseenFigures) -> Cell:
        return share_cell(getattr(each, which), f"unseen.{each.quantity}.{which}")

    yield Paragraph(f"Backtest: a refit without {its.left_out} predicted what it had not seen.")
    if its.figures:
        yield _table(
            "backtest",
            its.figures,
            _column("Quantity", 4, lambda each: _quantity(each.quantity)),
            _right("Figures", 2, lambda each: Cell(f"{each.figures}", each.figures)),
            _right("Median error", 2, partial(error_cell, "median_error")),
            _right("Worst error", 2, partial(error_cell, "worst_error")),
            _right("In the 90 % band", 3, lambda each: f"{each.held} of {each.figures}"),
        )
    if its.undecided:
        count = f"{its.undecided} {plural('figure', its.undecided)}"
        yield Paragraph(f"{count} more {'is' if its.undecided == 1 else 'are'} not scored: {its.why_undecided}.")
    for each in its.better_rules:
        yield Paragraph(
            f"The rule {RULES[each.rule]} did better on {_quantity(each.quantity)}: {share(each.median_error)} against "
            f"{share(each.model_median_error)} in the median, on the figures that it estimates."
        )
    if its.figures and not its.better_rules:
        yield Paragraph("No simple rule did better.")


def _next_test(its: NextLoadTest) -> str:
    """Return a sentence on which load test to run next, and what it would show."""
    (low, high), (low_after, high_after) = (
        (rate_cell(each).text if its.unit == "1/s" else significant(each) for each in ends)
        for ends in ((its.low, its.high), (its.low_after, its.high_after))
    )
    where = ", a layout that was not tested" if its.new_layout else ""
    unit = "requests per second" if its.unit == "1/s" else "ms"
    change = ""
    if its.chance_of_change is not None and its.chance_of_change >= _WORTH_SAYING:
        change = f" With a probability of {share(its.chance_of_change)}, it changes whether the objective is met."
    return (
        f"Next load test: {its.what}{where}; about {its.hours:.3g} h. The band of {its.figure}, {low} to {high} "
        f"{unit} today, is then expected to be {low_after} to {high_after} {unit}.{change}"
    )


def _fields(fields: Mapping[str, Any]) -> list[str]:
    """Return fields in words, such as `3 data centres`."""
    return [
        plural(f"{value} data centre", value) if name == "dcs" else f"{name} {value}" for name, value in fields.items()
    ]


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
    band = getattr(latency, statistic)
    if band is None:
        return Cell(NOTHING)
    return band_cell("ms", band, f"latency.{name}.{statistic}", mark_of(band.basis))


_RUNS_OUT = {RATE: "requests per second", DISKS: "space on the disks"}
_COMPARED: dict[Basis | None, str] = {
    "measured": "as tested",
    "interpolated": "between tested values",
    "extrapolated": "beyond the tests",
    "model only": "beyond the tests",
}


def _half_width_cell(half_width: float | None) -> Cell:
    if half_width is None:
        return Cell("not known")
    return Cell(f"±{share(half_width)}", float(f"{half_width:.3f}"), "1")


# Cells


_MARK_OF: Mapping[Basis | None, Mark] = {
    "measured": "measured",
    "interpolated": "predicted",
    "extrapolated": "extrapolated",
    "model only": "extrapolated",
    None: "",
}


def mark_of(basis: Basis | None) -> Mark:
    """Return the mark of a basis."""
    return _MARK_OF[basis]


def rate_cell(number: float, key: str = "", mark: Mark = "") -> Cell:
    """Return a rate, requests per second."""
    return Cell(text := rate(number), shown(text), "1/s", mark=mark, key=key)


def band_cell(unit: str, band: Band, key: str = "", mark: Mark = "") -> Cell:
    """Return a figure with its band."""
    said = rate if unit == "1/s" else significant
    texts = [said(each) for each in (band.value, band.low, band.high)]
    whole = texts[0] if band.low == band.high else f"{texts[0]} ({texts[1]} to {texts[2]})"
    value, low, high = map(shown, texts)
    return Cell(whole, value, unit, low, high, mark, key)


def risk_cell(number: float, key: str = "", mark: Mark = "") -> Cell:
    """Return a probability as a cell, to a tenth of a per cent."""
    text = tenths_of_percent(number)
    return Cell(text, float(f"{number:.3f}") if not text.startswith("<") else 0.0, "1", mark=mark, key=key)


def share_cell(number: float, key: str = "", mark: Mark = "") -> Cell:
    """Return a share in per cent."""
    text = share(number)
    value = round(shown(text.removesuffix(" %")) / 100, 6) if text[:1].isdigit() else None
    return Cell(text, value, "1", mark=mark, key=key)


def cost_cell(number: float, currency: str, key: str = "", signed: bool = False) -> Cell:
    """Return a cost as a cell; a number of machines if there are no prices."""
    return Cell(words.cost_in_words(number, currency, signed), float(f"{number:.0f}"), currency, key=key)


def shown(text: str) -> float:
    """Return the number that a text shows."""
    return math.inf if text == "unbounded" else float(text.replace(",", ""))


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
