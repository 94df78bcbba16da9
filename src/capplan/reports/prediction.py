"""A prediction for people: one screen with what the decision needs, and more on request."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from capplan.answers.condition import Condition, capacities
from capplan.answers.number_words import as_given, rate, share, significant
from capplan.answers.objective import Comparison, chance_of_less, parse
from capplan.answers.results import (
    LEAST_PROBABILITY,
    STATISTIC_NAMES,
    STATISTICS,
    Band,
    Capacity,
    Latency,
    ObjectiveVerdict,
    Outage,
    SessionNotFound,
)
from capplan.answers.verdict import CONFIDENCE
from capplan.answers.verdict import Answer as VerdictWord
from capplan.answers.verdict import answer as answer_at
from capplan.evidence.table import Evidence
from capplan.grouped import grouped
from capplan.layout.case import Case
from capplan.models.language.per_dc import pairs_text, per_dc_text
from capplan.models.language.scenario import Scenario, options_of
from capplan.models.solver.known_errors import MEAN, P50, P99
from capplan.planner.predict.prediction import Offered, Prediction, statistics
from capplan.planner.predict.promises import Promise
from capplan.planner.sweep import AnalyticPoints, layout_fields
from capplan.reports import figure as look
from capplan.reports.document import Block, Break, Bullets, Cell, Column, Fact, Heading, Paragraph, more, table, told
from capplan.reports.figure import go
from capplan.reports.node_needs import assumed_of_data
from capplan.reports.numbers import (
    NOT_MODELLED,
    Format,
    banded,
    ends,
    figure_cell,
    given,
    plural,
    share_band,
    two_digits,
)
from capplan.reports.outages import left_by
from capplan.reports.population import LABEL
from capplan.systems.registry import names, system

LOADS = 25
DRAWS = 64  # of 512: medians within 1 %, see `sweep`
_USUAL = ("mean", "p99")  # statistics that are drawn, beside those of objectives
BEYOND = 1.12  # times the largest rate, where the x axis ends
_PANEL, _GAP, _ROW, _BOTTOM, _ENTRY = 300, 70, 48, 62, 20
STEEP, HEADROOM = 0.97, 3.0  # the y axis ends at this many times what is at this share of the capacity
ROW_LABEL = "row"
_HOVER = "%{y:.3~g} ms (%{customdata[0]:.3~g} to %{customdata[1]:.3~g}) at %{x:,.0f} per second"
NARROW_ROW = 42  # characters of a row's label that fit beside the axis on a telephone
_RATIO_ROW = 56  # pixels
_BESIDE = 1.05  # times the farthest end of a band, where the x axis ends

FEW_STATISTICS = ("mean", "p50", "p99", "p999")  # what a screen of 80 columns holds
_UNITS = {"1": "", "1/s": " TPS", "ms": " ms"}
_SPOKEN_GAP_MS = 5.0  # the document says "a few milliseconds"
_LESS = f"{LEAST_PROBABILITY * 100:g}"  # per cent, the lowest reported
_NOTICED = 1.005  # times the capacity
_BASES = ("Measured", "Interpolated", "Extrapolated", "Model only")
_TOLD = (LABEL, "Answer", "Not asked", "Capacity", "Limited by", "Objectives", *_BASES, "Caution")
MORE = ("explain", "sources", "staleness")
"""What else there is to show, by option."""


def describe(prediction: Prediction, wanted: Sequence[str] = (), data: str = "", node: str = "") -> Iterator[Block]:
    """Yield the description of a prediction.

    Parameters
    ----------
    prediction : Prediction
        The prediction.
    wanted : sequence of str
        What else to show; of `MORE`.
    data : str
        What a demand says of the data of the layout, in words.
    node : str
        What a node needs besides CPU, in words.
    """
    yield Heading(f"{prediction.system}: {prediction.layout}", 1)
    yield from _facts(prediction, data, node)
    if prediction.throughput_ratios:
        yield Break()
        ratios = prediction.throughput_ratios.items()
        rows = [(Cell(name, level=1), figure_cell(each, significant, "1"), each.basis or "") for name, each in ratios]
        yield table(("Throughput relative to", "ratio", "basis"), rows)
    if prediction.outages and prediction.latency_ms:
        asked = "" if prediction.offered is None else _offered_rate(prediction.offered)
        yield Break()
        shown = [each if _is_better(each, prediction) else replace(each, eased=()) for each in prediction.outages]
        yield from left_by(shown, list(prediction.latency_ms), _slowest(prediction), asked)
    yield from _latency(prediction)
    yield _rests_on(prediction)
    parts: Mapping[str, Callable[[], Iterable[Block]]] = {
        "explain": lambda: _explanation(prediction),
        "sources": lambda: _list("Sources", prediction.evidence.sources, marked=True),
        "staleness": lambda: sessions(prediction.session_not_found),
    }
    for name in wanted:
        yield from parts[name]()
    there = {"explain": True, "staleness": prediction.session_not_found}
    figures = prediction.latency_ms or prediction.throughput_ratios
    drawn = prediction.throughput_ratios or (figures and prediction.offered is not None)
    files = ["--plot FILE"] if drawn and prediction.evidence.basis != "model only" else []
    hidden = [f"--{name}" for name, has in there.items() if name not in wanted and has]
    objective = [] if prediction.objectives or prediction.capacity is None else _example(prediction)
    yield more([*objective, *hidden, *files, "--json", "--csv"])


def _facts(prediction: Prediction, data: str, node: str) -> Iterator[Block]:
    capacity, offered = prediction.capacity, prediction.offered
    cautions = prediction.evidence.cautions
    if capacity is not None and capacity.overload_tps.basis == "population":
        yield Fact(LABEL, cautions[0])
        cautions = cautions[1:]
    if (verdict := prediction.verdict) is not None:
        yield Fact("Answer", verdict.in_words())
    if verdict is not None and verdict.not_asked:
        yield Fact("Not asked", f"loss of {', '.join(verdict.not_asked)} (--lose)")
    if capacity is not None:
        label = "Throughput" if offered is None else "Capacity"  # that of closed clients
        words = f"{_capacity(capacity)}{capacities(prediction.conditions)}"
        yield Fact(label, words, capacity.peak_tps.basis or "")
    for caution in cautions:
        yield Fact("Caution", caution)
    if capacity is not None and prediction.limits:
        yield Fact("Limited by", _limits(prediction, capacity))
    if offered is not None:
        conditions = prediction.conditions if verdict is None else ()  # a verdict says up to where it holds
        yield Fact("Offered", _offered(offered, capacity, conditions), f"overload risk {share(offered.overload_risk)}")
        yield from _lasts(prediction.lasts_months, verdict is not None and len(verdict.situations) > 1)
    facts = {"Data": data, "Node": node, "Assumed": assumed_of_data(prediction.scenario)}
    yield from (Fact(key, words) for key, words in facts.items() if words)
    risk = 0.0 if offered is None else offered.overload_risk
    for number, each in enumerate(() if capacity is None else prediction.objectives):
        yield Fact("" if number else "Objectives", _verdict(each, risk))


def _rests_on(prediction: Prediction) -> Fact:
    """Return how the layout relates to those of the load tests."""
    evidence = prediction.evidence
    times = {band.basis for latency in prediction.latency_ms.values() for _, band in statistics(latency)}
    elsewhere = evidence.basis != "extrapolated" and "extrapolated" in times
    return Fact(evidence.basis.capitalize(), evidence.why + " Times: at other loads." * elsewhere)


def _capacity(capacity: Capacity) -> str:
    peak, mean = capacity.peak_tps, capacity.mean_tps
    bursty = capacity.burst_ratio.value > 1
    words = f"{significant(peak.value)} TPS{' peak' if bursty else ''} {ends(peak)}".rstrip()
    if bursty:
        words += f", {significant(mean.value)} mean"
    if peak.value < capacity.overload_tps.value:
        words += f" with the objectives met; overload from {significant(capacity.overload_tps.value)}"
    return words


def _limits(prediction: Prediction, capacity: Capacity) -> str:
    """Return what limits the capacity, and the one machine more that lifts it most; else what limits it next."""
    first, *others = prediction.limits
    words = f"{first.name}{' (assumed)' if first.assumed else ''}"
    most = max(prediction.one_more, key=lambda each: each.capacity_tps, default=None)
    if most is not None and most.capacity_tps > _NOTICED * capacity.peak_tps.value:
        return f"{words}; --{most.field.replace('_', '-')} {most.value} carries {significant(most.capacity_tps)} TPS"
    if others:
        busy = others[0].utilisation_at_capacity
        at = f" ({share(busy.value)} at capacity)" if busy is not None else ""
        words += f", then {others[0].name}{at}"
    return words


def _offered(offered: Offered, capacity: Capacity | None, conditions: Sequence[Condition]) -> str:
    bursty = capacity is not None and capacity.burst_ratio.value > 1
    if offered.source == "default" and conditions:
        return f"{_offered_rate(offered)} TPS (80 %), {conditions[0].up_to}"
    words = f"{_offered_rate(offered)} TPS{' peak' if bursty else ''}"
    if bursty and offered.source == "given":
        words += f", {significant(offered.mean_tps)} mean"
    if offered.source == "default":
        words += " (default: 80 %)"
    return words


def _lasts(months: Band | None, lost: bool) -> Iterator[Fact]:
    if months is not None:
        unit, scale, form = ("year", 1 / 12, ".1f") if months.value >= 24 else ("month", 1, ".0f")
        value, low, high = (format(each * scale, form) for each in (months.value, months.low, months.high))
        middle = f"{value} {plural(unit, round(months.value * scale))}"
        which = "the capacity after the worst loss" if lost else "the capacity"
        yield Fact("Lasts", f"{middle} ({low} to {high}) until the rate is {which}")


def _offered_rate(offered: Offered) -> str:
    peak = float(f"{offered.peak_tps:.6g}")
    computed = offered.source == "default" or (peak > 1000 and not peak.is_integer())  # from a mean rate
    return rate(peak) if computed else given(peak)


def _example(prediction: Prediction) -> list[str]:
    """Return a suggested objective, if there is any: a round limit above the highest 99th percentile."""
    name = _slowest(prediction) if prediction.latency_ms else ""
    band = prediction.latency_ms[name].p99 if name else None
    if band is None or not 0 < band.value < math.inf:
        return []
    least = 1.5 * band.value
    power = 10.0 ** math.floor(math.log10(least))
    limit = next(step * power for step in (1, 2, 5, 10) if step * power >= least)
    return [f"--slo '{name}.p99<{limit:g}ms'"]


def _verdict(verdict: ObjectiveVerdict, overload_risk: float) -> str:
    figures = {}
    for each in verdict.comparisons:
        if each.value is None:
            figures[each.metric] = NOT_MODELLED
        elif each.metric.endswith((".utilisation", "drop_rate")):
            figures[each.metric] = share_band(each.value)
        else:
            figures[each.metric] = f"{banded(each.value, significant)}{_UNITS[each.unit]}"
    compared = ", ".join(f"{metric} {figure}" for metric, figure in figures.items())
    if verdict.risk is None:
        return f"{verdict.text}: {NOT_MODELLED} ({compared})"
    why = f"; {share(overload_risk)} risk of overload" if overload_risk > verdict.risk / 2 > 0 else ""
    return f"{verdict.text}: {verdict.answer} ({compared}, {share(1 - verdict.risk)} sure{why})"


def _slowest(prediction: Prediction) -> str:
    """Return the request class with the highest 99th percentile."""
    p99 = {name: -1.0 if each.p99 is None else each.p99.value for name, each in prediction.latency_ms.items()}
    return max(p99, key=lambda name: p99[name])


def _latency(prediction: Prediction) -> Iterator[Block]:
    latencies = {name: each for name, each in prediction.latency_ms.items() if vars(each) != vars(Latency())}
    if not latencies:
        return
    yield Break()
    columns = [Column(f"{_statistic(each)}, ms", optional=each not in FEW_STATISTICS) for each in STATISTICS]
    rows: list[list[str | Cell]] = [
        [Cell(name, level=1), *(figure_cell(getattr(its, each)) for each in STATISTICS)]
        for name, its in latencies.items()
    ]
    bases = {name: tuple(_basis(its, each) for each in STATISTICS) for name, its in latencies.items()}
    for basis in dict.fromkeys(each for each in bases.values() if any(each)):
        whose = [name for name, own in bases.items() if own == basis]
        name = "basis" if len(whose) == len(bases) else f"basis {', '.join(whose)}"
        rows.append([Cell(name, level=1), *_once(basis)])
    yield table(("Latency", *columns), rows)
    yield from _promises(prediction)
    guessed, missing = (", ".join(each) for each in (prediction.tails_guessed, prediction.tails_not_modelled))
    if guessed and missing:
        yield Fact("tails", f"{guessed} guessed; without {missing}", level=1)
    elif guessed or missing:
        yield Fact("tails", f"{guessed} guessed" if guessed else f"not modelled: {missing}", level=1)
    if errors := prediction.solver_errors:  # larger than usual
        known = {name: [getattr(each, name) for each in errors] for name in ("mean", "p50", "p99")}
        worst = {name: [each for each in its if each is not None] for name, its in known.items()}
        within = ", ".join(f"{name} within {max(its) * 100:.0f} %" for name, its in worst.items() if its)
        where = ", ".join(each.where for each in errors)
        yield Fact("solver", f"nine of ten layouts with one of these alone: {within} ({where})", level=1)


def _promises(prediction: Prediction) -> Iterator[Block]:
    """Yield a line for p99, and for each percentile of an objective: what can be promised, with pauses and without."""
    by_statistic: dict[str, dict[str, Promise]] = {}
    for each in prediction.promises:
        name, statistic = each.metric.split(".", 1)
        by_statistic.setdefault(statistic, {})[name] = each
    asked = {metric.statistic for each in prediction.objectives for metric in parse(each.text).metrics()}
    for statistic, its in by_statistic.items():
        if statistic != "p99" and statistic not in asked:
            continue
        confidence = next(iter(its.values())).confidence
        promised = ", ".join(f"{name} {two_digits(each.promise_ms)}" for name, each in its.items())
        calm = ", ".join(two_digits(each.promise_without_pauses_ms) for each in its.values())
        measure = " (--gc)" if prediction.tails_guessed else ""
        never = all(each.promise_without_pauses_ms == each.promise_ms for each in its.values())
        words = f"promise {promised}" if never else f"promise {promised}; {calm} if nodes never pause{measure}"
        yield Fact(f"{statistic}, {confidence * 100:g} %", words, level=1)


def _statistic(name: str) -> str:
    return STATISTIC_NAMES.get(name, name)


def _basis(latency: Latency, statistic: str) -> str:
    band: Band | None = getattr(latency, statistic)
    return "" if band is None else band.basis or ""


def _once(words: Sequence[str]) -> list[str]:
    """Return the bases of `STATISTICS` without repetitions, also where only `FEW_STATISTICS` are shown.

    `model only` is explained if it comes last and nowhere else.
    """
    found: list[str] = []
    for place, word in enumerate(words):
        few = [each for each, name in zip(words[:place], STATISTICS, strict=False) if name in FEW_STATISTICS]
        found.append("" if {word} == {*words[place - 1 : place], *few[-1:]} else word)
    while found and not found[-1]:
        found.pop()
    if found[-1:] == ["model only"] and found.count("model only") == 1 < len(found) < len(words):
        found[-1] = "model only: no such figure was measured"
    return found


def _is_better(outage: Outage, prediction: Prediction) -> bool:
    """Whether a figure in an outage's row is better than the whole layout's."""
    pairs = [(prediction.latency_ms[name].p99, each.p99) for name, each in outage.latency_ms.items()]
    if prediction.capacity is not None:
        pairs.append((outage.capacity_tps, prediction.capacity.peak_tps))
    return any(a is not None and b is not None and a.value > b.value for a, b in pairs)


def _list(name: str, texts: Sequence[str], marked: bool = False) -> Iterator[Block]:
    """Yield a section with a list; nothing if it is empty."""
    if texts:
        yield from (Heading(name), Bullets(tuple(texts), marked, level=1))


def _explanation(prediction: Prediction) -> Iterator[Block]:
    yield Heading("Question")
    asked = {name: value for name, value in prediction.scenario.items() if value is not None and value is not False}
    kind: type[Scenario] | None = system(prediction.system).scenario if prediction.system in names() else None
    shown = {} if kind is None else {name: each.shown for name, each in options_of(kind).items()}
    texts = {name: (shown.get(name) or _plainly)(value) for name, value in asked.items()}
    words = ", ".join(f"{name.replace('_', ' ')} {text}" for name, text in texts.items())
    yield Paragraph(words, level=1)
    if prediction.capacity is not None:
        yield Paragraph(f"Capacity: {prediction.capacity.criterion}.", level=1)
    yield Heading("Figures, and half-widths of their 90 % bands by parameters, model error, simulation")
    yield table(
        ("figure", "90 % band", "param", "model", "sim", "basis"),
        ([name, figure_cell(band, form), *_widths(band), band.basis or ""] for name, band, form in _every(prediction)),
        level=1,
    )
    yield from _resources(prediction)
    texts = {outage.name: outage.assumed for outage in prediction.outages if not outage.lowered and outage.available}
    yield from _list("Outages assume", [f"{name}: {text}" for name, text in texts.items()])
    yield from _errors_by_condition(prediction)
    notes = [*(f"Claimed: {text}" for text in prediction.evidence.claims), *prediction.evidence.notes]
    yield from _list("Notes", notes, marked=True)
    made = f"capplan {prediction.version}, {prediction.engine} engine, seed {prediction.seed}"
    yield Paragraph(f"{made}; --sources lists the documents", "remark", level=1)


def _errors_by_condition(prediction: Prediction) -> Iterator[Block]:
    """Yield the solver's errors under each condition that holds here."""
    texts = [
        f"{each.where}: mean within {(each.mean or MEAN) * 100:.0f} %, p50 within {(each.p50 or P50) * 100:.0f} %, "
        f"p99 within {(each.p99 or P99) * 100:.0f} %"
        for each in prediction.solver_errors
    ]
    usual = f"mean, p50 and p99 are within {MEAN * 100:.0f}, {P50 * 100:.0f} and {P99 * 100:.0f} % in 19 of 20 each"
    texts += [f"Elsewhere, {usual}."] if texts else []
    yield from _list("Errors of the analytic solver in nine of ten random layouts with this condition alone", texts)


def _every(prediction: Prediction) -> Iterator[tuple[str, Band, Format]]:
    """Yield the figures with parts, with their names and formats."""
    capacity = prediction.capacity
    if capacity is not None:
        yield "peak, TPS", capacity.peak_tps, rate
        yield "mean, TPS", capacity.mean_tps, rate
        yield "overload from, TPS", capacity.overload_tps, rate
        yield "peak over mean", capacity.burst_ratio, significant
    for reference, ratio in prediction.throughput_ratios.items():
        yield reference, ratio, significant
    for name, latency in prediction.latency_ms.items():
        for statistic, band in statistics(latency):
            yield f"{name} {_statistic(statistic)}, ms", band, significant


def _widths(band: Band) -> list[str]:
    return ["-" if part is None else two_digits(part) for part in vars(band.parts).values()]


def _resources(prediction: Prediction) -> Iterator[Block]:
    if not prediction.utilisation and not prediction.busy_workers:
        return
    yield Heading("Resources at the offered rate")
    busy = ((share_band(band), "utilisation", name, band) for name, band in prediction.utilisation.items())
    workers = ((banded(band), "busy workers per node", name, band) for name, band in prediction.busy_workers.items())
    rows = [[name, said, band.basis or "", what] for said, what, name, band in (*busy, *workers)]
    yield table(("", "", "basis", ""), rows, level=1)


def _plainly(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,g}"
    if isinstance(value, (list, tuple)) and all(isinstance(each, (int, float)) for each in value):
        return per_dc_text(value)
    if isinstance(value, (list, tuple)) and all(isinstance(each, (list, tuple)) for each in value):
        return pairs_text(value).replace(",", ", ")
    if isinstance(value, (list, tuple)):
        return "; ".join(map(_plainly, value))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def sessions(rows: Sequence[SessionNotFound]) -> Iterator[Block]:
    """Yield the probabilities that a session is not found, levels by gap; nothing if there are none."""
    if not rows:
        return
    yield Heading("Sessions not found in another DC just after the start")
    yield Paragraph(_sessions_sentence(rows), level=1)
    gaps = dict.fromkeys(row.gap_ms for row in rows)
    heads = [f"{'' if number else 'gap '}{gap:.3g} ms" for number, gap in enumerate(gaps)]
    lines: list[list[str | Cell]] = []
    for name, its in grouped(rows, _levels).items():
        lines.append([name, *(_percent_cell(row.probability, f"session.{name}.{row.gap_ms:g}") for row in its)])
        if name == _levels(rows[0]) and any(row.probability.high > LEAST_PROBABILITY for row in its):
            lines.append([Cell("90 % band", level=1), *(_percent_range(row.probability) for row in its)])
    yield table((Column("% not found, reads/writes", 6), *heads), lines, "sessions", level=1)


def _percent_cell(band: Band, key: str) -> Cell:
    return Cell(_percent_of(band), float(f"{band.value:.2g}"), "1", key=key)


def percent(probability: float) -> str:
    """Return a probability in percent without the sign: `3.1`, `0.14`, `100`, `0`."""
    if probability >= 0.995:
        return "100"
    return f"{100 * probability:.2g}" if probability >= 1e-3 or not probability else f"{probability:.2%}".rstrip("%")


def _sessions_sentence(rows: Sequence[SessionNotFound]) -> str:
    own = [row for row in rows if _levels(row) == _levels(rows[0])]
    at_once, spoken = own[0], min(own, key=lambda row: abs(row.gap_ms - _SPOKEN_GAP_MS))
    later = f"; {spoken.gap_ms:g} ms after it, {_percent_band(spoken.probability)}" if spoken is not at_once else ""
    return (
        f"{_percent_band(at_once.probability)} of the messages that arrive {at_once.gap_ms:g} ms after the answer to "
        f"the start find no session{later}. The RTT is {as_given(spoken.rtt_ms)} ms."
    )


def _percent_of(band: Band) -> str:
    """Return a band's value in percent; `<0.01` below the lowest reported one, `0` for never."""
    return f"<{_LESS}" if band.high and not band.value else percent(band.value)


def _percent_band(band: Band) -> str:
    if band.high <= LEAST_PROBABILITY:
        return f"less than {_LESS} %" if band.high else "0 %"
    return f"{_percent_of(band)} % ({percent(band.low)} to {percent(band.high)})"


def _percent_range(band: Band) -> str:
    return f"{percent(band.low)} to {percent(band.high)}" if band.high > LEAST_PROBABILITY else ""


def _levels(row: SessionNotFound) -> str:
    return f"{row.consistency_read}/{row.consistency_write}"


def answered(prediction: Prediction) -> tuple[str, ...]:
    """Return verdict, capacity, basis and cautions in paragraphs, as the screen has them."""
    return tuple(told((*_facts(prediction, "", ""), _rests_on(prediction)), *_TOLD))


@dataclass(frozen=True)
class Answer:
    """The parts of a prediction that its plot shows.

    Attributes
    ----------
    case : Case
        The layout.
    offered_tps : float
        The asked peak rate, requests per second.
    capacity : Band
        The highest peak rate, with its band.
    latency_ms : mapping of Latency
        Latencies at the asked rate, by request class.
    outages : sequence of Outage
        What failures leave.
    text : sequence of str
        The answer in paragraphs: verdict, basis and cautions.
    """

    case: Case[Any]
    offered_tps: float
    capacity: Band
    latency_ms: Mapping[str, Latency]
    outages: Sequence[Outage] = ()
    text: Sequence[str] = ()


def plot(answer: Answer, page: bool = True) -> go.Figure:
    """Return the figure: one panel per request class, and one of the failures."""
    return _Drawn(answer, page).figure


def loads(answer: Answer) -> list[float]:
    """Return the rates at which to solve curves, closer together where latency rises."""
    end = max(answer.capacity.value, answer.offered_tps, float(np.median(answer.case.solution.capacity)))
    if answer.case.solution.bounded:
        end *= BEYOND
    share = 1 - (1 - np.linspace(0.04, 1.0, LOADS)) ** 1.5
    return [float(rate) for rate in end * share]


class _Drawn:
    """A figure under construction."""

    def __init__(self, answer: Answer, page: bool) -> None:
        self.answer, self.page = answer, page
        self.names = [name for name in answer.case.system.reported if name in answer.latency_ms]
        self.points = list(AnalyticPoints(replace(answer.case, draws=DRAWS)).at(loads(answer)))
        self.rows = list(_rows(answer))
        heights = [_PANEL] * len(self.names) + [_ROW * len(self.rows)] * bool(self.rows)
        self.inner = sum(heights) + _GAP * (len(heights) - 1)
        titles = [*self.names, *["what failures leave of the capacity"] * bool(self.rows)]
        sizes = {"row_heights": heights, "vertical_spacing": _GAP / self.inner if len(heights) > 1 else 0}
        self.figure = look.make_subplots(rows=len(heights), cols=1, subplot_titles=titles, **sizes)
        self.named: set[str] = set()
        for place, name in enumerate(self.names, start=1):
            self._curves(place, name)
        if self.rows:
            self._failures(len(heights))
        self._look(len(heights))

    def _add(self, trace: go.Scatter, row: int) -> None:
        if trace.showlegend is not False and trace.name:
            trace.update(showlegend=trace.name not in self.named, legendgroup=trace.name)
            self.named.add(trace.name)
        self.figure.add_trace(trace, row=row, col=1)

    def _curves(self, row: int, name: str) -> None:
        rates = [point["offered_tps"] for point in self.points]
        limits = [each for each in _comparisons(self.answer.case) if each.metric.subject == name]
        wanted = dict.fromkeys((*_USUAL, *(each.metric.statistic for each in limits)))
        for place, statistic in enumerate(each for each in STATISTICS if each in wanted):
            style, column = look.Line.number(place), f"{name}_{statistic}_ms"
            ends = [[point[f"{column}_{end}"] for point in self.points] for end in ("low", "high")]
            named = dict.fromkeys(("name", "legendgroup"), _statistic(statistic))
            shown = {"customdata": list(map(list, zip(*ends, strict=True))), "hovertemplate": _HOVER}
            values = [point[column] for point in self.points]
            for trace in look.curve(rates, values, ends, look.pen(style), **named, **shown):
                self._add(trace, row)
            answered = getattr(self.answer.latency_ms[name], statistic)
            if answered is not None and np.isfinite([answered.low, answered.high]).all():
                self._add(_answered(self.answer.offered_tps, answered, style), row)
            for trace in _measured(self.answer.case, name, statistic, style.colour):
                self._add(trace, row)
        for limit in limits:
            for bound in limit.bounds:
                self.figure.add_shape(look.objective_line(bound * 1e3), row=row, col=1)
        if limits:
            line = {"color": look.LIMIT, "width": 2, "dash": "dash"}
            self._add(look.legend_entry("objective", mode="lines", line=line), row)
        self.figure.update_yaxes(look.latency_axis("ms"), range=self._range(name, limits), row=row, col=1)
        self._guides(row)

    def _range(self, name: str, limits: Sequence[Comparison]) -> list[float] | None:
        """Return the axis range as powers of ten; it includes curves, objectives and measured figures."""
        traces = [each for each in self.figure.data if each.yaxis == look.numbered("y", self.names.index(name) + 1)]
        steep = STEEP * self.answer.capacity.value
        near = [(x, value) for each in traces for x, value in zip(each.x, each.y, strict=True) if value is not None]
        found = [value for _, value in near if 0 < value < np.inf]
        shown = [value for x, value in near if 0 < value < np.inf and (x <= max(steep, self.answer.offered_tps))]
        shown += [bound * 1e3 for limit in limits for bound in limit.bounds if 0 < bound < np.inf]
        if not shown:
            return None
        top = min(HEADROOM * max(shown), max(*found, *shown))
        return [float(np.log10(min(*found, *shown))) - 0.05, float(np.log10(top)) + 0.05]

    def _guides(self, row: int) -> None:
        """Draw the capacity and the requested rate across a panel."""
        for shape in (*look.capacity_lines(self.answer.capacity), look.asked_line(self.answer.offered_tps)):
            self.figure.add_shape(shape, row=row, col=1)
        dotted, solid = {"color": look.NEUTRAL, "width": 1.5, "dash": "dot"}, {"color": look.ASKED, "width": 2}
        self._add(look.legend_entry("capacity, with its band", mode="lines", line=dotted), row)
        self._add(look.legend_entry("asked rate", mode="lines", line=solid), row)

    def _failures(self, row: int) -> None:
        for verdict, symbol in _VERDICTS.items():
            those = [each for each in self.rows if each.verdict == verdict]
            if those:
                self._add(_capacities(verdict, symbol, those), row)
        for trace in _measured_rates(self.answer.case):
            self._add(trace, row)
        for each in self.rows:
            at = {"x": 0, "y": each.place, "xanchor": "left", "yanchor": "bottom", "yshift": 4, "align": "left"}
            shown = {"text": each.label, "showarrow": False, "xref": "x domain", "name": ROW_LABEL}
            self.figure.add_annotation(**at, **shown, row=row, col=1)
        ticks = {"tickvals": [each.place for each in self.rows], "showticklabels": False}
        self.figure.update_yaxes(**ticks, range=[0.6 - len(self.rows), 0.75], row=row, col=1)
        self._guides(row)

    def _look(self, panels: int) -> None:
        answer = self.answer
        bottom = _BOTTOM + _ENTRY * len(self.named)
        end = BEYOND * max(answer.capacity.high, answer.offered_tps, *(each.high for each in self.rows))
        self.figure.update_xaxes(**{**look.RATE_AXIS, "rangemode": "normal"}, range=[0, end])
        for row in range(2, panels + 1):
            self.figure.update_xaxes(matches="x", row=row, col=1)
        self.figure.update_xaxes(title_text="peak rate [requests per second]", row=panels, col=1)
        self.figure.update_annotations(font={"size": look.HEADING_SIZE}, x=0, xanchor="left", selector={"name": None})
        self.figure.update_annotations(font={"size": look.SMALL_SIZE}, selector={"name": ROW_LABEL})
        lines = (
            "Lines: medians by the analytic solver; shades and bars: 90 % bands; dots: the answer at the asked rate."
        )
        its, scenario = answer.case.system, answer.case.scenario
        layout = its.layout(scenario, its.values(answer.case.fitted, scenario))
        legend = look.above(orientation="v", yanchor="top", y=-(_BOTTOM - 8) / self.inner, tracegroupgap=0)
        name = f"{its.name}, {layout}: how fast at which load?"
        text, room = [*answer.text, lines], {"above": 22, "below": bottom, "margin_l": 58}
        look.frame(self.figure, name, text, self.inner, self.page, **room, legend=legend)


def _comparisons(case: Case[Any]) -> Iterator[Comparison]:
    for objective in case.objectives:
        yield from (each for each in objective.comparisons() if each.metric.kind == "duration")


def _answered(offered: float, latency: Band, style: look.Line) -> go.Scatter:
    """Return the predicted latency at the requested rate."""
    return go.Scatter(
        x=[offered],
        y=[latency.value],
        error_y=look.whiskers([latency], style.colour),
        **{"mode": "markers", "marker": {"color": style.colour, "size": 8}, "showlegend": False},
        hovertemplate=f"answer: {latency.value:.3g} ms ({latency.low:.3g} to {latency.high:.3g})<extra></extra>",
    )


def _measured(case: Case[Any], name: str, statistic: str, colour: str) -> Iterator[go.Scatter]:
    """Yield the times that load tests of this layout measured, at each test's rate."""
    words = (statistic, "unspecified") if statistic == "mean" else (statistic,)
    found = [
        (offered, row)
        for test in _load_tests(case)
        for offered in [_rate_of(test)]
        for row in test.rows
        if offered is not None and row.unit == "s" and row.request_class in (name, "") and row.statistic in words
    ]
    if found:
        rates, rows = [offered for offered, _ in found], [row for _, row in found]
        yield from _diamonds(rates, [row.value * 1e3 for row in rows], rows, colour)


def _measured_rates(case: Case[Any]) -> Iterator[go.Scatter]:
    """Yield the highest rates that load tests of this layout measured, in the intact layout's row."""
    rows = [row for test in _load_tests(case) for row in test.rows if row.unit == "1/s"]
    if rows:
        yield from _diamonds([row.value for row in rows], [0] * len(rows), rows, look.COLOURS[0])


def _diamond(colour: str) -> dict[str, Any]:
    return {"color": colour, "size": 12, "symbol": "diamond-open", "line": {"width": 2}}


def _diamonds(x: Sequence[float], y: Sequence[Any], rows: Sequence[Evidence], colour: str) -> Iterator[go.Scatter]:
    """Yield marks of measured figures, and their entry in the legend."""
    yield go.Scatter(
        x=x,
        y=y,
        **{"mode": "markers", "showlegend": False, "marker": _diamond(colour)},
        customdata=[[f"{row.id}: {row.statistic}, {row.written}"] for row in rows],
        hovertemplate="%{customdata[0]}<extra></extra>",
    )
    yield look.legend_entry("measured", mode="markers", marker=_diamond(look.NEUTRAL))


def _load_tests(case: Case[Any]) -> Iterator[Any]:
    """Yield the load tests of exactly this layout."""
    asked = layout_fields(case.scenario)
    for test in case.system.observations.load_tests():
        if layout_fields(test.scenario) == asked:
            yield test


def _rate_of(test: Any) -> float | None:
    """Return the rate at which a load test measured its times: the offered rate, or else the highest reported one."""
    offered = test.scenario.offered_per_s()
    rates = [row.value for row in test.rows if row.unit == "1/s"] if offered is None else [float(np.max(offered))]
    return max(rates, default=None)


_VERDICTS = {"carries the asked rate": "circle", "uncertain": "circle-open", "does not carry it": "x"}


@dataclass(frozen=True)
class _Row(Band):
    """A row of the failures panel: a capacity with its label and verdict."""

    label: str = ""
    verdict: str = ""
    place: int = 0


def _rows(answer: Answer) -> Iterator[_Row]:
    """Yield a row for the intact layout, then a row for each failure."""
    if not answer.outages:
        return
    yield _row(answer.capacity, "nothing lost", _judged(answer.capacity, answer.offered_tps), 0)
    modelled = [(each, each.capacity_tps) for each in answer.outages if each.capacity_tps is not None]
    for place, (each, capacity) in enumerate(modelled, start=1):
        label = f"{each.name} lost{'' if each.available and not each.lowered else f', {each.assumed}'}"
        found = each.answer or _judged(capacity, answer.offered_tps)
        yield _row(capacity, "<br>".join(textwrap.wrap(label, NARROW_ROW)), found, -place)


def _judged(capacity: Band, offered: float) -> VerdictWord:
    return answer_at(chance_of_less(capacity, offered), CONFIDENCE)


def _row(capacity: Band, label: str, answer: VerdictWord, place: int) -> _Row:
    verdict = {"yes": "carries the asked rate", "uncertain": "uncertain", "no": "does not carry it"}[answer]
    return _Row(capacity.value, capacity.low, capacity.high, label=label, verdict=verdict, place=place)


def _capacities(verdict: str, symbol: str, rows: Sequence[_Row]) -> go.Scatter:
    marker = {"color": look.NEUTRAL, "symbol": symbol, "size": 10}
    return go.Scatter(
        x=[each.value for each in rows],
        y=[each.place for each in rows],
        error_x=look.whiskers(rows, look.NEUTRAL),
        **{"name": verdict, "mode": "markers", "marker": marker, "cliponaxis": False},
        customdata=[[each.low, each.high] for each in rows],
        hovertemplate="%{x:,.0f} (%{customdata[0]:,.0f} to %{customdata[1]:,.0f}) per second",
    )


def ratio_plot(prediction: Prediction, page: bool = True) -> go.Figure:
    """Return the figure: one row per reference, the requested one first."""
    ratios = prediction.throughput_ratios
    rows = [-place for place in range(len(ratios))]
    bands = list(ratios.values())
    figure = go.Figure(
        go.Scatter(
            x=[each.value for each in bands],
            y=rows,
            error_x=look.whiskers(bands, look.COLOURS[0]),
            **{"mode": "markers", "marker": {"color": look.COLOURS[0], "size": 9}, "showlegend": False},
            customdata=[[each.low, each.high, each.basis or ""] for each in bands],
            hovertemplate="%{x:.3~g} (%{customdata[0]:.3~g} to %{customdata[1]:.3~g}), %{customdata[2]}<extra></extra>",
        )
    )
    for place, (name, band) in zip(rows, ratios.items(), strict=True):
        at = {"x": 0, "xref": "x domain", "y": place, "xanchor": "left", "yanchor": "bottom", "yshift": 6}
        figure.add_annotation(text=f"{name} ({band.basis})", showarrow=False, font={"size": look.SMALL_SIZE}, **at)
    line = {"color": look.NEUTRAL, "width": 1.5, "dash": "dot"}
    figure.add_shape({"type": "line", "x0": 1, "x1": 1, "yref": "y domain", "y0": 0, "y1": 1, "line": line})
    text = [*answered(prediction), "Dots: medians; bars: 90 % bands; dotted: as fast as the reference."]
    end = _BESIDE * max((each.high for each in bands), default=1.0)
    figure.update_xaxes(title_text="throughput relative to the reference", range=[0, max(end, _BESIDE)])
    figure.update_yaxes(tickvals=rows, showticklabels=False, range=[0.4 - len(rows), 0.8])
    inner, name = _RATIO_ROW * len(rows), f"{prediction.system}, {prediction.layout}: how fast beside the references?"
    look.frame(figure, name, text, inner, page, below=_BOTTOM, margin_l=16)
    return figure
