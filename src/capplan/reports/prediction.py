"""A prediction for people: one screen that decides, and more where it is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from capplan.models.language.per_dc import pairs_text, per_dc_text
from capplan.models.number_words import as_given, rate, share, significant
from capplan.models.results import (
    LEAST_PROBABILITY,
    STATISTICS,
    Band,
    Capacity,
    Latency,
    ObjectiveVerdict,
    Outage,
    SessionNotFound,
)
from capplan.models.solver.known_errors import MEAN, P99
from capplan.planner.predict.prediction import Limit, Offered, Prediction, statistics
from capplan.reports.document import Block, Fact, Line, Paragraph, Table, more, table, title
from capplan.reports.numbers import NOT_MODELLED, Format, banded, ends, given, share_band, two_digits
from capplan.reports.outages import left_by
from capplan.reports.screen import LABEL

STATISTIC_NAMES = {"p999": "p99.9"}
FEW_STATISTICS = ("mean", "p50", "p99", "p999")  # what a screen of 80 columns holds
_UNITS = {"1": "", "1/s": " TPS", "ms": " ms"}
_SPOKEN_GAP_MS = 5.0  # the document says "a few milliseconds"
_LESS = f"{LEAST_PROBABILITY * 100:g}"  # per cent, the lowest reported
MORE = ("explain", "sources", "staleness")
"""What else there is to show, by option."""


def describe(prediction: Prediction, wanted: Sequence[str] = (), data: str = "") -> Iterator[Block]:
    """Yield the description of a prediction.

    Parameters
    ----------
    prediction : Prediction
        The prediction.
    wanted : sequence of str
        What else to show; of `MORE`.
    data : str
        What a demand says of the data of the layout, in words.
    """
    yield title(f"{prediction.system}: {prediction.layout}")
    yield Line()
    yield from _facts(prediction, data)
    if prediction.throughput_ratios:
        yield Line()
        rows = [
            (f"  {reference}", banded(ratio, significant), ratio.basis or "")
            for reference, ratio in prediction.throughput_ratios.items()
        ]
        yield _table(("Throughput relative to", "ratio", "basis"), rows)
    yield from _latency(prediction)
    if prediction.outages and prediction.latency_ms:
        asked = "" if prediction.offered is None else _offered_rate(prediction.offered)
        yield Line()
        shown = [each if _is_better(each, prediction) else replace(each, eased=()) for each in prediction.outages]
        yield from left_by(shown, list(prediction.latency_ms), _slowest(prediction), asked)
    parts: Mapping[str, Callable[[], Iterable[Block]]] = {
        "explain": lambda: _explanation(prediction),
        "sources": lambda: _sources(prediction),
        "staleness": lambda: sessions(prediction.session_not_found),
    }
    for name in wanted:
        yield from parts[name]()
    there = {"explain": True, "sources": prediction.evidence.sources, "staleness": prediction.session_not_found}
    figures = prediction.latency_ms or prediction.throughput_ratios
    files = ["--plot FILE"] if figures and prediction.evidence.basis != "model only" else []
    hidden = [f"--{name}" for name in MORE if name not in wanted and there[name]]
    yield more([*hidden, *files, "--json", "--csv"])


def _facts(prediction: Prediction, data: str) -> Iterator[Block]:
    capacity, offered = prediction.capacity, prediction.offered
    if (verdict := prediction.verdict) is not None:
        yield Fact("Answer", verdict.in_words())
    if verdict is not None and verdict.not_asked:
        yield Fact("Not asked", f"loss of {', '.join(verdict.not_asked)} (--lose)")
    if capacity is not None:
        label = "Throughput" if offered is None else "Capacity"  # that of closed clients
        yield Fact(label, _capacity(capacity), capacity.peak_tps.basis or "")
        if prediction.limits:
            yield Fact("Bottleneck", _limits(prediction.limits))
    if offered is not None:
        yield Fact("Offered", _offered(offered, capacity), f"overload risk {share(offered.overload_risk)}")
    if data:
        yield Fact("Data", data)
    if capacity is not None:
        said = list(map(_verdict, prediction.objectives)) or [f"none given{_example(prediction)}"]
        for number, text in enumerate(said):
            yield Fact("" if number else "Objectives", text)
    times = {band.basis for latency in prediction.latency_ms.values() for _, band in statistics(latency)}
    elsewhere = prediction.evidence.basis != "extrapolated" and "extrapolated" in times
    why = prediction.evidence.why + (" Times only at other loads." if elsewhere else "")
    yield Fact(prediction.evidence.basis.capitalize(), why)
    for caution in prediction.evidence.cautions:
        yield Fact("Caution", caution)


def _capacity(capacity: Capacity) -> str:
    peak, mean = capacity.peak_tps, capacity.mean_tps
    bursty = capacity.burst_ratio.value > 1
    words = f"{significant(peak.value)} TPS{' peak' if bursty else ''} {ends(peak)}".rstrip()
    if bursty:
        words += f", {significant(mean.value)} mean"
    if peak.value < capacity.overload_tps.value:
        words += f" with the objectives met; overload from {significant(capacity.overload_tps.value)}"
    return words


def _limits(limits: Sequence[Limit]) -> str:
    first, *others = limits
    words = f"{first.name}{' (assumed)' if first.assumed else ''}"
    if others:
        busy = others[0].utilisation_at_capacity
        at = f" ({share(busy.value)} at capacity)" if busy is not None else ""
        words += f", then {others[0].name}{at}"
    return words


def _offered(offered: Offered, capacity: Capacity | None) -> str:
    bursty = capacity is not None and capacity.burst_ratio.value > 1
    words = f"{_offered_rate(offered)} TPS{' peak' if bursty else ''}"
    if bursty and offered.source == "given":
        words += f", {significant(offered.mean_tps)} mean"
    if offered.source == "default":
        words += " (default: 80 %)"
    return words


def _offered_rate(offered: Offered) -> str:
    peak = float(f"{offered.peak_tps:.6g}")
    computed = offered.source == "default" or (peak > 1000 and not peak.is_integer())  # from a mean rate
    return rate(peak) if computed else given(peak)


def _example(prediction: Prediction) -> str:
    """Return an objective to try: a round limit above the highest 99th percentile."""
    name = _slowest(prediction) if prediction.latency_ms else ""
    band = prediction.latency_ms[name].p99 if name else None
    if band is None or not 0 < band.value < math.inf:
        return ""
    least = 1.5 * band.value
    power = 10.0 ** math.floor(math.log10(least))
    limit = next(step * power for step in (1, 2, 5, 10) if step * power >= least)
    return f"; try --slo '{name}.p99<{limit:g}ms'"


def _verdict(verdict: ObjectiveVerdict) -> str:
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
    return f"{verdict.text}: {verdict.answer} ({compared}, {share(1 - verdict.risk)} sure)"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table that is shown row by row where it is too wide, each cell with its heading."""
    below: list[Block] = [Line(heads[0], "bold")]
    for first, *cells in rows:
        named = [
            f"{head} {cell}".strip() if cell[0].isdigit() or head.endswith("?") else cell
            for head, cell in zip(heads[1:], cells, strict=False)
            if cell
        ]
        indent = len(first) - len(first.lstrip())
        below.append(Paragraph(f"{first.strip()}: {', '.join(named)}", indent=indent, hanging=indent + 2))
    return table(heads, rows, below)


def _slowest(prediction: Prediction) -> str:
    """Return the request class with the highest 99th percentile."""

    def p99(name: str) -> float:
        found = prediction.latency_ms[name].p99
        return -1.0 if found is None else found.value

    return max(prediction.latency_ms, key=p99)


def _latency(prediction: Prediction) -> Iterator[Block]:
    latencies = {name: each for name, each in prediction.latency_ms.items() if vars(each) != vars(Latency())}
    if not latencies:
        return
    yield Line()
    few = _latency_table(latencies, FEW_STATISTICS, _latency_by_statistic(latencies))
    yield _latency_table(latencies, STATISTICS, few)
    guessed, missing = (", ".join(each) for each in (prediction.tails_guessed, prediction.tails_not_modelled))
    if guessed and missing:
        yield Fact("  tails", f"{guessed} guessed; without {missing}")
    elif guessed or missing:
        yield Fact("  tails", f"{guessed} guessed" if guessed else f"not modelled: {missing}")
    if errors := prediction.solver_errors:  # larger than usual
        worst = {
            name: max((figure for each in errors if (figure := getattr(each, name)) is not None), default=None)
            for name in ("mean", "p99")
        }
        within = ", ".join(
            f"{name} within {figure * 100:.0f} %" for name, figure in worst.items() if figure is not None
        )
        yield Fact("  solver", f"nine of ten such layouts: {within} ({', '.join(each.where for each in errors)})")


def _latency_table(latencies: Mapping[str, Latency], names: Sequence[str], narrow: Block) -> Table:
    """Return a row for each class."""
    rows = [
        [f"  {name}", *(banded(getattr(each, statistic)) for statistic in names)] for name, each in latencies.items()
    ]
    bases = {name: tuple(_basis(each, statistic) for statistic in names) for name, each in latencies.items()}
    for basis in dict.fromkeys(each for each in bases.values() if any(each)):
        whose = [name for name, its in bases.items() if its == basis]
        rows.append(["  basis" if len(whose) == len(bases) else f"  basis {', '.join(whose)}", *_once(basis)])
    return table((f"{'Latency, ms':<{LABEL - 2}}", *map(_statistic, names)), rows, [narrow])


def _statistic(name: str) -> str:
    return STATISTIC_NAMES.get(name, name)


def _basis(latency: Latency, statistic: str) -> str:
    band: Band | None = getattr(latency, statistic)
    return "" if band is None else band.basis or ""


def _once(words: Sequence[str]) -> list[str]:
    """Return words without those that repeat the one before, and say what `model only` means if it comes last."""
    found = [word if not place or words[place - 1] != word else "" for place, word in enumerate(words)]
    while found and not found[-1]:
        found.pop()
    if found[-1:] == ["model only"] and 1 < len(found) < len(words):
        found[-1] = "model only: no percentile was measured"
    return found


def _latency_by_statistic(latencies: Mapping[str, Latency]) -> Table:
    """Return a row for each statistic, or for each figure where even those are too wide."""
    bases = {s: list(dict.fromkeys(_basis(each, s) for each in latencies.values())) for s in FEW_STATISTICS}
    rows = [
        [f"  {_statistic(s)}", *(banded(getattr(each, s)) for each in latencies.values()), "/".join(bases[s])]
        for s in FEW_STATISTICS
    ]
    single = [
        [f"  {name}", _statistic(s), banded(getattr(each, s)), _basis(each, s)]
        for name, each in latencies.items()
        for s in FEW_STATISTICS
    ]
    alone = _table(("Latency, ms", "", "", "basis"), single)
    return table((f"{'Latency, ms':<{LABEL - 2}}", *latencies, "basis"), rows, [alone])


def _is_better(outage: Outage, prediction: Prediction) -> bool:
    """Whether a figure in the row of an outage is better than that of the whole layout."""
    pairs = [(prediction.latency_ms[name].p99, each.p99) for name, each in outage.latency_ms.items()]
    if prediction.capacity is not None:
        pairs.append((outage.capacity_tps, prediction.capacity.peak_tps))
    return any(a is not None and b is not None and a.value > b.value for a, b in pairs)


def _section(name: str) -> tuple[Block, Block]:
    return Line(), Paragraph(name, hanging=2, style="bold")


def _explanation(prediction: Prediction) -> Iterator[Block]:
    yield from _section("Question")
    asked = {name: value for name, value in prediction.scenario.items() if value is not None and value is not False}
    words = ", ".join(f"{name.replace('_', ' ')} {_plainly(value)}" for name, value in asked.items())
    yield Paragraph(words, indent=2)
    if prediction.capacity is not None:
        yield Paragraph(f"Capacity: {prediction.capacity.criterion}.", indent=2)
    yield from _section("Figures, and half-widths of their 90 % bands by parameters, model error, simulation")
    figures = [
        [f"  {name}", banded(band, form), *_widths(band), band.basis or ""] for name, band, form in _every(prediction)
    ]
    yield _table(("  figure", "90 % band", "param", "model", "sim", "basis"), figures)
    yield from _resources(prediction)
    texts = {outage.name: outage.assumed for outage in prediction.outages if not outage.lowered and outage.available}
    if texts:
        yield from _section("Outages assume")
    for name, text in texts.items():
        yield Paragraph(f"{name}: {text}", indent=2, hanging=4)
    yield from _errors_by_condition(prediction)
    notes = [*(f"Claimed: {text}" for text in prediction.evidence.claims), *prediction.evidence.notes]
    if notes:
        yield from _section("Notes")
    for text in notes:
        yield Paragraph(f"- {text}", indent=2, hanging=4)
    yield Line(f"  capplan {prediction.version}, {prediction.engine} engine, seed {prediction.seed}", "dim")


def _errors_by_condition(prediction: Prediction) -> Iterator[Block]:
    """Yield the errors of the solver under each condition that holds here."""
    if not prediction.solver_errors:
        return
    yield from _section("Errors of the analytic solver in nine of ten random layouts with the same condition")
    for each in prediction.solver_errors:
        figures = (("mean", each.mean, MEAN), ("p99", each.p99, P99))
        within = ", ".join(f"{name} within {(figure or usual) * 100:.0f} %" for name, figure, usual in figures)
        yield Paragraph(f"{each.where}: {within}", indent=2, hanging=4)
    usual = f"the mean is within {MEAN * 100:.0f} % and p99 within {P99 * 100:.0f} %"
    yield Paragraph(f"Elsewhere, {usual} in 49 of 50.", indent=2, hanging=4)


def _every(prediction: Prediction) -> Iterator[tuple[str, Band, Format]]:
    """Yield the figures that have parts, with their names and formats."""
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
    yield from _section("Resources at the offered rate")
    rows = [
        [f"  {name}", share_band(band, "-"), band.basis or "", "utilisation"]
        for name, band in prediction.utilisation.items()
    ]
    rows += [
        [f"  {name}", banded(band), band.basis or "", "busy workers per node"]
        for name, band in prediction.busy_workers.items()
    ]
    yield _table(("  ", "", "basis", ""), rows)


def _sources(prediction: Prediction) -> Iterator[Block]:
    if prediction.evidence.sources:
        yield from _section("Sources")
    for text in prediction.evidence.sources:
        yield Paragraph(f"- {text}", indent=2, hanging=4)


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
    """Yield the probabilities that a session is not found, levels by gap; nothing where there are none."""
    if not rows:
        return
    yield from _section("Sessions not found in another DC just after the start")
    yield Paragraph(_sessions_sentence(rows), indent=2)
    gaps = dict.fromkeys(row.gap_ms for row in rows)
    heads = [f"{'' if number else 'gap '}{gap:.3g} ms" for number, gap in enumerate(gaps)]
    lines: list[list[str]] = []
    for name in dict.fromkeys(map(_levels, rows)):
        bands = [row.probability for row in rows if _levels(row) == name]
        lines.append([f"  {name}", *map(_percent_of, bands)])
        if name == _levels(rows[0]) and any(each.high > LEAST_PROBABILITY for each in bands):
            lines.append(["    90 % band", *map(_percent_range, bands)])
    yield _table(("  % not found, reads/writes", *heads), lines)


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
    """Return the value of a band in percent; `<0.01` below the lowest reported, `0` for never."""
    return f"<{_LESS}" if band.high and not band.value else percent(band.value)


def _percent_band(band: Band) -> str:
    if band.high <= LEAST_PROBABILITY:
        return f"less than {_LESS} %" if band.high else "0 %"
    return f"{_percent_of(band)} % ({percent(band.low)} to {percent(band.high)})"


def _percent_range(band: Band) -> str:
    return f"{percent(band.low)}-{percent(band.high)}" if band.high > LEAST_PROBABILITY else ""


def _levels(row: SessionNotFound) -> str:
    return f"{row.consistency_read}/{row.consistency_write}"
