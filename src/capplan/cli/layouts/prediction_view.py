"""A prediction for people: one screen that decides, and more where it is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console

from capplan.cli.views.figures import Format, given, share_band
from capplan.cli.views.lines import LABEL, fact, paragraph, put, table
from capplan.models.language.per_dc import pairs_text, per_dc_text
from capplan.models.number_words import as_given, rate, share, significant, to_digits
from capplan.models.results import (
    LEAST_PROBABILITY,
    STATISTICS,
    Band,
    Capacity,
    Latency,
    ObjectiveVerdict,
    Outage,
    Relief,
    SessionNotFound,
)
from capplan.models.solver.known_errors import MEAN, P99, KnownError
from capplan.planner.predict.prediction import Limit, Offered, Prediction, statistics

STATISTIC_NAMES = {"p999": "p99.9"}
FEW_STATISTICS = ("mean", "p50", "p99", "p999")  # what a screen of 80 columns holds
UNIT_NAMES = {"1": "", "1/s": " TPS", "ms": " ms"}
NOT_MODELLED = "not modelled"
SPOKEN_GAP_MS = 5.0  # the document says "a few milliseconds"
_LESS = f"{LEAST_PROBABILITY * 100:g}"  # per cent, the lowest reported
MORE = ("explain", "sources", "staleness")
"""What else there is to show, by option."""


def render(prediction: Prediction, console: Console, more: Sequence[str] = (), data: str = "") -> None:
    """Print a prediction on `console`; use `capplan.cli.shell.terminal.Screen` for stdout.

    Parameters
    ----------
    prediction : Prediction
        The prediction.
    console : Console
        The screen.
    more : sequence of str
        What else to show; of `MORE`.
    data : str
        What a demand says of the data of the layout, in words.
    """
    paragraph(console, f"{prediction.system}: {prediction.layout}", style="bold")
    put(console)
    _facts(prediction, console, data)
    _ratios(prediction, console)
    _latency(prediction, console)
    _outages(prediction, console)
    shown: Mapping[str, Callable[[Prediction, Console], None]] = {
        "explain": _explanation,
        "sources": _sources,
        "staleness": _staleness,
    }
    for name in more:
        shown[name](prediction, console)
    hidden = [f"--{name}" for name in MORE if name not in more and _has(prediction, name)]
    paragraph(console, f"More: {', '.join([*hidden, *_files(prediction), '--json', '--csv'])}", hanging=6, style="dim")


def _files(prediction: Prediction) -> list[str]:
    figures = prediction.latency_ms or prediction.throughput_ratios
    return ["--plot FILE"] if figures and prediction.evidence.basis != "model only" else []


def _has(prediction: Prediction, name: str) -> bool:
    if name == "sources":
        return bool(prediction.evidence.sources)
    return name != "staleness" or bool(prediction.session_not_found)


def _facts(prediction: Prediction, console: Console, data: str) -> None:
    if prediction.verdict is not None:
        fact(console, "Answer", prediction.verdict.in_words())
        if prediction.verdict.not_asked:
            fact(console, "Not asked", f"loss of {', '.join(prediction.verdict.not_asked)} (--lose)")
    if prediction.capacity is not None:
        label = "Throughput" if prediction.offered is None else "Capacity"  # that of closed clients
        fact(console, label, _capacity(prediction.capacity), prediction.capacity.peak_tps.basis or "")
        if prediction.limits:
            fact(console, "Bottleneck", _limits(prediction.limits))
    if prediction.offered is not None:
        risk = f"overload risk {share(prediction.offered.overload_risk)}"
        fact(console, "Offered", _offered(prediction.offered, prediction.capacity), risk)
    if data:
        fact(console, "Data", data)
    if prediction.capacity is not None:
        _objectives(prediction, console)
    fact(console, prediction.evidence.basis.capitalize(), _why(prediction))
    for caution in prediction.evidence.cautions:
        fact(console, "Caution", caution)


def _why(prediction: Prediction) -> str:
    """Return why the layout has its basis, and that times have another one."""
    times = {band.basis for latency in prediction.latency_ms.values() for _, band in statistics(latency)}
    elsewhere = prediction.evidence.basis != "extrapolated" and "extrapolated" in times
    return prediction.evidence.why + (" Times only at other loads." if elsewhere else "")


def _capacity(capacity: Capacity) -> str:
    peak, mean = capacity.peak_tps, capacity.mean_tps
    bursty = capacity.burst_ratio.value > 1
    words = f"{_rate(peak.value)} TPS{' peak' if bursty else ''} {_range(peak, _rate)}".rstrip()
    if bursty:
        words += f", {_rate(mean.value)} mean"
    if peak.value < capacity.overload_tps.value:
        words += f" with the objectives met; overload from {_rate(capacity.overload_tps.value)}"
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
        words += f", {_rate(offered.mean_tps)} mean"
    if offered.source == "default":
        words += " (default: 80 %)"
    return words


def _offered_rate(offered: Offered) -> str:
    peak = float(f"{offered.peak_tps:.6g}")
    computed = offered.source == "default" or (peak > 1000 and not peak.is_integer())  # from a mean rate
    return rate(peak) if computed else given(peak)


def _objectives(prediction: Prediction, console: Console) -> None:
    if not prediction.objectives:
        example = _example(prediction)
        fact(console, "Objectives", f"none given{example}")
    for number, verdict in enumerate(prediction.objectives):
        overload = 0.0 if prediction.offered is None else prediction.offered.overload_risk
        fact(console, "" if number else "Objectives", _verdict(verdict, overload))


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


def _verdict(verdict: ObjectiveVerdict, overload_risk: float) -> str:
    if verdict.risk is None:
        return f"{verdict.text}: {NOT_MODELLED} ({_compared(verdict)})"
    why = f"; {share(overload_risk)} risk of overload" if overload_risk > verdict.risk / 2 > 0 else ""
    return f"{verdict.text}: {verdict.answer} ({_compared(verdict)}, {share(1 - verdict.risk)} sure{why})"


def _compared(verdict: ObjectiveVerdict) -> str:
    """Return the figures that decided an objective."""
    figures = {}
    for each in verdict.comparisons:
        if each.value is None:
            figures[each.metric] = NOT_MODELLED
        elif each.metric.endswith((".utilisation", "drop_rate")):
            figures[each.metric] = share_band(each.value)
        else:
            figures[each.metric] = f"{_figure(each.value, significant)}{UNIT_NAMES[each.unit]}"
    return ", ".join(f"{metric} {figure}" for metric, figure in figures.items())


def _ratios(prediction: Prediction, console: Console) -> None:
    if not prediction.throughput_ratios:
        return
    put(console)
    rows = [
        (f"  {reference}", _figure(ratio, significant), ratio.basis or "")
        for reference, ratio in prediction.throughput_ratios.items()
    ]
    title = ("Throughput relative to", "ratio", "basis")
    table(console, title, rows, lambda console: _stacked(console, title, rows))


def _stacked(console: Console, title: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table row by row, each with the headings of its cells."""
    put(console, title[0], "bold")
    for first, *cells in rows:
        named = [
            f"{head} {cell}".strip() if cell[0].isdigit() or head.endswith("?") else cell
            for head, cell in zip(title[1:], cells, strict=False)
            if cell
        ]
        indent = len(first) - len(first.lstrip())
        paragraph(console, f"{first.strip()}: {', '.join(named)}", indent=indent, hanging=indent + 2)


def _two_digits(number: float) -> str:
    return to_digits(number, 2)


def _rate(number: float) -> str:
    return significant(number)


def _range(figure: Band, form: Format) -> str:
    """Return a band in parentheses: `(17,500-26,500)`; empty where it has no width."""
    value, low, high = (form(number) for number in (figure.value, figure.low, figure.high))
    return "" if low == value == high else f"({low}-{high})"


def _figure(figure: Band | None, form: Format = _two_digits) -> str:
    """Return a figure with its band: `2.3 (1.5-3.7)`."""
    if figure is None:
        return NOT_MODELLED
    return f"{form(figure.value)} {_range(figure, form)}".rstrip()


def _slowest(prediction: Prediction) -> str:
    """Return the request class with the highest 99th percentile."""

    def p99(name: str) -> float:
        found = prediction.latency_ms[name].p99
        return -1.0 if found is None else found.value

    return max(prediction.latency_ms, key=p99)


def _latency(prediction: Prediction, console: Console) -> None:
    latencies = {name: each for name, each in prediction.latency_ms.items() if vars(each) != vars(Latency())}
    if not latencies:
        return
    put(console)
    if not any(_latency_table(latencies, names, console) for names in (STATISTICS, FEW_STATISTICS)):
        _latency_by_statistic(latencies, console)
    guessed, missing = (", ".join(each) for each in (prediction.tails_guessed, prediction.tails_not_modelled))
    if guessed and missing:
        fact(console, "  tails", f"{guessed} guessed; without {missing}")
    elif guessed or missing:
        fact(console, "  tails", f"{guessed} guessed" if guessed else f"not modelled: {missing}")
    _solver_errors(prediction.solver_errors, console)


def _solver_errors(errors: Sequence[KnownError], console: Console) -> None:
    """Say for which figures the solver's error is larger than usual, and why."""
    if not errors:
        return
    worst = {
        name: max((figure for each in errors if (figure := getattr(each, name)) is not None), default=None)
        for name in ("mean", "p99")
    }
    within = ", ".join(f"{name} within {figure * 100:.0f} %" for name, figure in worst.items() if figure is not None)
    fact(console, "  solver", f"nine of ten such layouts: {within} ({', '.join(each.where for each in errors)})")


def _latency_table(latencies: Mapping[str, Latency], names: Sequence[str], console: Console) -> bool:
    """Print a row for each class if they fit; return whether they do."""
    title = (f"{'Latency, ms':<{LABEL - 2}}", *(STATISTIC_NAMES.get(name, name) for name in names))
    rows = [
        [f"  {name}", *(_figure(getattr(each, statistic)) for statistic in names)] for name, each in latencies.items()
    ]
    bases = {name: tuple(_basis(each, statistic) for statistic in names) for name, each in latencies.items()}
    for basis in dict.fromkeys(each for each in bases.values() if any(each)):
        whose = [name for name, its in bases.items() if its == basis]
        label = "  basis" if len(whose) == len(bases) else f"  basis {', '.join(whose)}"
        rows.append([label, *_once(basis)])
    return table(console, title, rows)


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


def _latency_by_statistic(latencies: Mapping[str, Latency], console: Console) -> None:
    """Print a row for each statistic, or for each figure where even those are too wide."""
    bases = {s: list(dict.fromkeys(_basis(each, s) for each in latencies.values())) for s in FEW_STATISTICS}
    title = (f"{'Latency, ms':<{LABEL - 2}}", *latencies, "basis")
    rows = [
        [
            f"  {STATISTIC_NAMES.get(s, s)}",
            *(_figure(getattr(each, s)) for each in latencies.values()),
            "/".join(bases[s]),
        ]
        for s in FEW_STATISTICS
    ]

    def each_figure(console: Console) -> None:
        single = [
            [f"  {name}", STATISTIC_NAMES.get(s, s), _figure(getattr(each, s)), _basis(each, s)]
            for name, each in latencies.items()
            for s in FEW_STATISTICS
        ]
        heads = ("Latency, ms", "", "", "basis")
        table(console, heads, single, lambda console: _stacked(console, heads, single))

    table(console, title, rows, each_figure)


def _outages(prediction: Prediction, console: Console) -> None:
    if not prediction.outages or not prediction.latency_ms:
        return
    asked = "" if prediction.offered is None else _offered_rate(prediction.offered)
    put(console)
    shown = [each if _is_better(each, prediction) else replace(each, eased=()) for each in prediction.outages]
    show_outages(shown, list(prediction.latency_ms), _slowest(prediction), asked, console)


def _is_better(outage: Outage, prediction: Prediction) -> bool:
    """Whether a figure in the row of an outage is better than that of the whole layout."""
    pairs = [(prediction.latency_ms[name].p99, each.p99) for name, each in outage.latency_ms.items()]
    if prediction.capacity is not None:
        pairs.append((outage.capacity_tps, prediction.capacity.peak_tps))
    return any(a is not None and b is not None and a.value > b.value for a, b in pairs)


def show_outages(outages: Sequence[Outage], classes: Sequence[str], slowest: str, asked: str, console: Console) -> None:
    """Print a row for each outage, with the latency of the slowest class alone where the screen is narrow.

    `asked` is the offered rate in words.
    """
    if not _outage_table(outages, classes, asked, console):
        _outage_table(outages, [slowest], asked, console, stacked=True)
    for line in dict.fromkeys(filter(None, (text for each in outages for text in (_cost(each), _relief(each))))):
        paragraph(console, line, indent=2, hanging=4)


def _outage_table(
    outages: Sequence[Outage], classes: Sequence[str], asked: str, console: Console, stacked: bool = False
) -> bool:
    """Print a row for each outage with the latency of some classes; return whether the table fits the width."""
    title = ("Outage", "capacity left", f"{asked} TPS?", *(f"p99 {name}, ms" for name in classes), "busy")
    rows = [_outage_row(outage, classes) for outage in outages]

    def each_outage(console: Console) -> None:
        put(console, title[0], "bold")
        for outage, (name, *_) in zip(outages, rows, strict=True):
            indent = len(name) - len(name.lstrip())
            text = f"{name.strip()}: {_outage_in_words(outage, asked, classes)}"
            paragraph(console, text, indent=indent, hanging=indent + 2)

    return table(console, title, rows, each_outage if stacked else None)


def _outage_in_words(outage: Outage, asked: str, classes: Sequence[str]) -> str:
    if not outage.available:
        return outage.assumed
    left = NOT_MODELLED if outage.capacity_tps is None else f"{_figure(outage.capacity_tps, _rate)} TPS left"
    p99 = [
        f"p99 {name} {_figure(latency.p99)} ms"
        for name in classes
        if (latency := outage.latency_ms.get(name)) is not None
    ]
    verdict = NOT_MODELLED if outage.answer is None else f"carried: {outage.answer}"
    busiest = max((band.value for band in outage.utilisation.values()), default=None)
    return ", ".join([left, f"{asked} TPS {verdict}", *p99, *([] if busiest is None else [f"{share(busiest)} busy"])])


def _outage_row(outage: Outage, classes: Sequence[str]) -> list[str]:
    name = f"    at {'/'.join(dict.fromkeys(outage.lowered.values()))}" if outage.lowered else f"  {outage.name}"
    if not outage.available:
        return [name, outage.assumed, "no"]
    left = NOT_MODELLED if outage.capacity_tps is None else _figure(outage.capacity_tps, _rate)
    p99 = ["-" if latency is None else _figure(latency.p99) for latency in map(outage.latency_ms.get, classes)]
    busiest = max((band.value for band in outage.utilisation.values()), default=None)
    return [name, left, outage.answer or NOT_MODELLED, *p99, "" if busiest is None else share(busiest)]


_RELIEFS: Mapping[Relief, str] = {
    "fewer replicas": "lost replicas get no writes",
    "nearer replicas": "the farthest replicas are lost",
}


def _relief(outage: Outage) -> str:
    """Say why an outage at the same levels is better in a figure than none."""
    reasons = " and ".join(_RELIEFS[each] for each in outage.eased if each in _RELIEFS)
    return (
        f"{outage.name}: faster, or more, than without the loss, as {reasons}" if reasons and not outage.lowered else ""
    )


def _cost(outage: Outage) -> str:
    return f"{outage.assumed}: {outage.cost}" if outage.cost else ""


def _section(console: Console, title: str) -> None:
    put(console)
    paragraph(console, title, hanging=2, style="bold")


def _explanation(prediction: Prediction, console: Console) -> None:
    _section(console, "Question")
    asked = {name: value for name, value in prediction.scenario.items() if value is not None and value is not False}
    paragraph(console, ", ".join(f"{name.replace('_', ' ')} {_plainly(value)}" for name, value in asked.items()), 2)
    if prediction.capacity is not None:
        paragraph(console, f"Capacity: {prediction.capacity.criterion}.", 2)
    _parts(prediction, console)
    _resources(prediction, console)
    _assumptions(prediction, console)
    _errors_by_condition(prediction, console)
    texts = {"Claimed": prediction.evidence.claims, "Note": prediction.evidence.notes}
    if any(texts.values()):
        _section(console, "Notes")
    for title, found in texts.items():
        for text in found:
            paragraph(console, f"- {title}: {text}" if title == "Claimed" else f"- {text}", 2, 4)
    put(console, f"  capplan {prediction.version}, {prediction.engine} engine, seed {prediction.seed}", "dim")


def _assumptions(prediction: Prediction, console: Console) -> None:
    """Print what each outage assumes where its row does not."""
    texts = {outage.name: outage.assumed for outage in prediction.outages if not outage.lowered and outage.available}
    if texts:
        _section(console, "Outages assume")
    for name, text in texts.items():
        paragraph(console, f"{name}: {text}", 2, 4)


def _errors_by_condition(prediction: Prediction, console: Console) -> None:
    """Print the errors of the solver under each condition that holds here."""
    if not prediction.solver_errors:
        return
    _section(console, "Errors of the analytic solver in nine of ten random layouts with the same condition")
    for each in prediction.solver_errors:
        figures = (("mean", each.mean, MEAN), ("p99", each.p99, P99))
        within = ", ".join(f"{name} within {(figure or usual) * 100:.0f} %" for name, figure, usual in figures)
        paragraph(console, f"{each.where}: {within}", 2, 4)
    usual = f"the mean is within {MEAN * 100:.0f} % and p99 within {P99 * 100:.0f} %"
    paragraph(console, f"Elsewhere, {usual} in 49 of 50.", 2, 4)


def _parts(prediction: Prediction, console: Console) -> None:
    """Print every figure with the parts of its band."""
    _section(console, "Figures, and half-widths of their 90 % bands by parameters, model error, simulation")
    title = ("  figure", "90 % band", "param", "model", "sim", "basis")
    rows = [
        [f"  {name}", _figure(band, form), *_widths(band), band.basis or ""] for name, band, form in _every(prediction)
    ]
    table(console, title, rows, lambda console: _stacked(console, title, rows))


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
            yield f"{name} {STATISTIC_NAMES.get(statistic, statistic)}, ms", band, significant


def _widths(band: Band) -> list[str]:
    return ["-" if part is None else _two_digits(part) for part in vars(band.parts).values()]


def _resources(prediction: Prediction, console: Console) -> None:
    if not prediction.utilisation and not prediction.busy_workers:
        return
    _section(console, "Resources at the offered rate")
    rows = [
        [f"  {name}", _share_figure(band), band.basis or "", "utilisation"]
        for name, band in prediction.utilisation.items()
    ]
    rows += [
        [f"  {name}", _figure(band), band.basis or "", "busy workers per node"]
        for name, band in prediction.busy_workers.items()
    ]
    title = ("  ", "", "basis", "")
    table(console, title, rows, lambda console: _stacked(console, title, rows))


def _share_figure(band: Band) -> str:
    return share_band(band).replace(" to ", "-")


def _sources(prediction: Prediction, console: Console) -> None:
    if not prediction.evidence.sources:
        return
    _section(console, "Sources")
    for text in prediction.evidence.sources:
        paragraph(console, f"- {text}", 2, 4)


def _staleness(prediction: Prediction, console: Console) -> None:
    render_sessions(prediction.session_not_found, console)


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


def render_sessions(rows: Sequence[SessionNotFound], console: Console) -> None:
    """Print the probabilities, levels by gap; nothing where there are none."""
    if not rows:
        return
    _section(console, "Sessions not found in another DC just after the start")
    paragraph(console, _sessions_sentence(rows), 2)
    gaps = tuple(dict.fromkeys(row.gap_ms for row in rows))
    titles = [f"{'' if number else 'gap '}{gap:.3g} ms" for number, gap in enumerate(gaps)]
    lines: list[list[str]] = []
    for name, bands in _by_levels(rows):
        lines.append([f"  {name}", *(_percent_of(each) for each in bands)])
        if name == _levels(rows[0]) and any(each.high > LEAST_PROBABILITY for each in bands):
            lines.append(["    90 % band", *(_percent_range(each) for each in bands)])
    title = ("  % not found, reads/writes", *titles)
    table(console, title, lines, lambda console: _stacked(console, title, lines))


def percent(probability: float) -> str:
    """Return a probability in percent without the sign: `3.1`, `0.14`, `100`, `0`."""
    if probability >= 0.995:
        return "100"
    return f"{100 * probability:.2g}" if probability >= 1e-3 or not probability else f"{probability:.2%}".rstrip("%")


def _sessions_sentence(rows: Sequence[SessionNotFound]) -> str:
    own = [row for row in rows if _levels(row) == _levels(rows[0])]
    at_once, spoken = own[0], min(own, key=lambda row: abs(row.gap_ms - SPOKEN_GAP_MS))
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


def _by_levels(rows: Sequence[SessionNotFound]) -> Iterator[tuple[str, list[Band]]]:
    for name in dict.fromkeys(map(_levels, rows)):
        yield name, [row.probability for row in rows if _levels(row) == name]


def _levels(row: SessionNotFound) -> str:
    return f"{row.consistency_read}/{row.consistency_write}"
