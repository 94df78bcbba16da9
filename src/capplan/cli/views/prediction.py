"""A prediction for people: capacity, latency, resources, outages and evidence, in 80 columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from capplan.cli.views.figures import Format, band, given, share_band, width
from capplan.cli.views.layout_in_words import layout_in_words
from capplan.cli.views.tables import Justify, bullets, facts, heading, section, table
from capplan.models.language.per_dc import pairs_text, per_dc_text
from capplan.models.language.scenario import defaults_of
from capplan.models.number_words import rate, significant
from capplan.models.results import (
    LEAST_PROBABILITY,
    STATISTICS,
    Band,
    Latency,
    ObjectiveVerdict,
    Outage,
    Parts,
    SessionNotFound,
)
from capplan.planner.predict.prediction import Prediction, lost_in_words
from capplan.systems.registry import system

STATISTIC_NAMES = {"p999": "p99.9"}
HOW_FAR = {
    "measured": "This layout was measured.",
    "interpolated": "This layout is interpolated between measured ones.",
    "extrapolated": "This layout is extrapolated beyond the measured ones.",
}
STYLES = {"measured": "green", "interpolated": "green", "extrapolated": "red"}
UNIT_NAMES = {"1": "", "1/s": " TPS", "ms": " ms"}
NOT_MODELLED = "not modelled"
SPOKEN_GAP_MS = 5.0  # the document says "a few milliseconds"
_LESS = f"{LEAST_PROBABILITY * 100:g}"  # per cent, the lowest reported


def render(prediction: Prediction, console: Console) -> None:
    """Print a prediction on `console`; use `capplan.cli.terminal.Screen` for stdout."""
    console.print(heading(headline(prediction)))
    _capacity(prediction, console)
    _ratios(prediction, console)
    _latency(prediction, console)
    _resources(prediction, console)
    _outages(prediction, console)
    render_sessions(prediction.session_not_found, console)
    _objectives(prediction.objectives, console)
    _evidence(prediction, console)


def headline(prediction: Prediction) -> str:
    """Return capacity, mean latency and basis in a few short sentences."""
    layout, verb = layout_in_words(prediction.scenario)
    parts = [f"{layout} {verb} {_sustained(prediction)}."]
    means = {name: latency.mean for name, latency in prediction.latency_ms.items() if latency.mean is not None}
    if means and prediction.offered_tps is not None:
        *most, last = [f"{name} {_in_ms(mean)}" for name, mean in means.items()]
        answers = f"{', '.join(most)} and {last}" if most else _in_ms(next(iter(means.values())))
        parts.append(f"Mean latency is {answers} at {_offered(prediction)} TPS{_beyond(prediction)}.")
    elif _beyond(prediction):
        parts.append(f"The offered rate is {_offered(prediction)} TPS{_beyond(prediction)}.")
    return " ".join([*parts, HOW_FAR[prediction.evidence.basis]])


def _beyond(prediction: Prediction) -> str:
    capacity, offered = prediction.capacity_tps, prediction.offered_tps
    if capacity is None or offered is None or offered <= capacity.value:
        return ""
    if prediction.objectives:
        return ", above the rate that meets the objectives"
    if any(latency.mean is not None and math.isinf(latency.mean.value) for latency in prediction.latency_ms.values()):
        return ", which EXCEEDS the capacity: queues grow without bound"
    return ", which EXCEEDS the capacity: latency is of the requests that complete"


def _in_ms(mean: Band) -> str:
    return f"{significant(mean.value)} ms" if math.isfinite(mean.value) else "unbounded"


def _sustained(prediction: Prediction) -> str:
    capacity, ratio = prediction.capacity_tps, prediction.throughput_ratio
    if capacity is not None:
        return f"about {significant(capacity.value)} TPS ({significant(capacity.low)} to {significant(capacity.high)})"
    if ratio is not None:
        of = next(iter(prediction.throughput_ratios), "the reference layout")
        return f"about {band(ratio)} times the throughput of {of}; no absolute figure is documented"
    return "a rate that is not modelled"


def _offered(prediction: Prediction) -> str:
    offered = prediction.offered_tps or 0.0
    return given(offered) if prediction.offered_source == "given" else rate(offered)


def _capacity(prediction: Prediction, console: Console) -> None:
    capacity = prediction.capacity_tps
    usual = defaults_of(
        system(str(prediction.scenario["system"])).scenario
    )  # show what is off only where it is on by default
    asked = {
        name: v for name, v in prediction.scenario.items() if v is not None and (v is not False or usual.get(name))
    }
    named = {"scenario": ", ".join(f"{name.replace('_', ' ')} {_plainly(value)}" for name, value in asked.items())}
    if capacity is not None:
        whole = " over all DCs" if "dcs" in prediction.scenario else ""
        named["capacity"] = f"{band(capacity, rate)} TPS{whole}"
        named["90 % band"] = _parts(capacity.parts, rate)
        named["criterion"] = capacity.criterion
    if prediction.throughput_ratio is not None:
        named["90 % band"] = _parts(prediction.throughput_ratio.parts, width)
    if prediction.bottleneck is not None:
        verb = "run out" if prediction.bottleneck in ("workers", "clients") else "saturates"
        named["bottleneck"] = f"{prediction.bottleneck} {verb} first"
    console.print(facts(named))


def _ratios(prediction: Prediction, console: Console) -> None:
    if not prediction.throughput_ratios:
        return
    console.print(section("Throughput over that of the reference"))
    listed = table(("  reference", "left"), ("ratio", "left"))
    for reference, ratio in prediction.throughput_ratios.items():
        listed.add_row(f"  {reference}", _figure(ratio))
    console.print(listed)


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


def _parts(parts: Parts, form: Format) -> str:
    """Return the half-widths of a band by cause."""
    shown = {name.replace("_", " "): None if width is None else form(width) for name, width in vars(parts).items()}
    known = ", ".join(f"{name} {width}" for name, width in shown.items() if width is not None)
    missing = " and ".join(name for name, width in shown.items() if width is None)
    return "; ".join(filter(None, (known and f"half-widths: {known}", missing and f"{missing} {NOT_MODELLED}")))


def _latency(prediction: Prediction, console: Console) -> None:
    if not any(vars(latency) != vars(Latency()) for latency in prediction.latency_ms.values()):
        return
    source = "as given" if prediction.offered_source == "given" else "80 % of capacity"
    console.print(section(f"Latency in ms at {_offered(prediction)} TPS ({source})"))
    listed = table(("  ", "left"), *((name, "left") for name in prediction.latency_ms))
    for statistic in STATISTICS:
        figures = [getattr(latency, statistic) for latency in prediction.latency_ms.values()]
        if any(figure is not None for figure in figures):
            name = STATISTIC_NAMES.get(statistic, statistic)
            listed.add_row(f"  {name}", *(_figure(figure) for figure in figures))
    console.print(listed)


def _figure(figure: Band | None, form: Format = significant) -> Text:
    """Return a figure with its band, the band fainter than the figure."""
    if figure is None:
        return Text(NOT_MODELLED, style="dim")
    value, _, rest = band(figure, form).partition(" ")
    return Text.assemble(f"{value:>5}", (f" {rest}" if rest else "", "dim"))


def _resources(prediction: Prediction, console: Console) -> None:
    names = dict.fromkeys([*prediction.utilisation, *prediction.busy_workers])
    if not names:
        return
    console.print(section("Resources at the offered rate"))
    workers: list[tuple[str, Justify]] = [("busy workers per node", "left")] if prediction.busy_workers else []
    listed = table(("  ", "left"), ("utilisation", "left"), *workers)
    for name in names:
        used, busy = prediction.utilisation.get(name), prediction.busy_workers.get(name)
        first = Text(f"  {name}", style="bold" if name == prediction.bottleneck else "")
        listed.add_row(first, share_band(used) if used else "", *([band(busy) if busy else ""] if workers else []))
    console.print(listed)


def _outages(prediction: Prediction, console: Console) -> None:
    if not prediction.outages:
        return
    console.print(section(f"Outages, with all {_offered(prediction)} TPS on the survivors"))
    listed = table(("  without", "left"), ("TPS", "left"), ("sustained?", "left"))
    listed.add_column("assuming", ratio=1)
    for outage in prediction.outages:
        listed.add_row(
            f"  {lost_in_words(outage.lost)}", _left(outage), _sustains(outage, prediction.offered_tps), outage.assumed
        )
    console.print(listed)


def _left(outage: Outage) -> Text:
    if not outage.available:
        return Text("not available", style="bold red")
    return Text(NOT_MODELLED if outage.capacity_tps is None else band(outage.capacity_tps, rate))


def _sustains(outage: Outage, offered_tps: float | None) -> Text:
    """Return whether the survivors sustain the offered rate, judged by the low end of the band."""
    words = {True: ("yes", "green"), False: ("no", "bold red"), None: (NOT_MODELLED, "dim")}
    left = outage.capacity_tps
    if outage.carries_offered is False and left is not None and offered_tps is not None and left.value >= offered_tps:
        return Text("uncertain", "yellow")
    return Text(*words[outage.carries_offered])


def _objectives(verdicts: Iterable[ObjectiveVerdict], console: Console) -> None:
    verdicts = tuple(verdicts)
    if not verdicts:
        return
    console.print(section("Objectives"))
    words = {True: ("met", "green"), False: ("not met", "bold red"), None: (NOT_MODELLED, "yellow")}
    listed = Table.grid(padding=(0, 2))
    listed.add_column(no_wrap=True)
    listed.add_column()
    for verdict in verdicts:
        word, style = words[verdict.met]
        doubt = "; uncertain within the bands" if verdict.met is not None and not verdict.sure else ""
        listed.add_row(Text(f"  {word}", style=style), Text(f"{verdict.text}: {_compared(verdict)}{doubt}"))
    console.print(listed)


def _compared(verdict: ObjectiveVerdict) -> str:
    """Return the figures that decided an objective."""
    figures = {}
    for each in verdict.comparisons:
        if each.value is None:
            figures[each.metric] = NOT_MODELLED
        elif each.metric.endswith((".utilisation", "drop_rate")):
            figures[each.metric] = share_band(each.value)
        else:
            figures[each.metric] = f"{band(each.value)}{UNIT_NAMES[each.unit]}"
    return ", ".join(f"{metric} {figure}" for metric, figure in figures.items())


def _evidence(prediction: Prediction, console: Console) -> None:
    evidence = prediction.evidence
    console.print(section("Evidence"))
    verdict = Text.assemble((evidence.basis, STYLES[evidence.basis]), f": {evidence.why}")
    console.print(Padding(verdict, (0, 0, 0, 2)))
    for title, texts in {"Claimed": evidence.claims, "Note": evidence.notes, "Source": evidence.sources}.items():
        console.print(bullets(f"{title}: {text}" for text in texts))
    made = f"  capplan {prediction.version}, {prediction.engine} engine, seed {prediction.seed}"
    console.print(Text(made, style="dim"))


def render_sessions(rows: Sequence[SessionNotFound], console: Console) -> None:
    """Print the probabilities, levels by gap; nothing where there are none."""
    if not rows:
        return
    console.print(section("Sessions not found in another DC just after the start"))
    console.print(Padding(_sessions_sentence(rows), (0, 0, 0, 2)))
    gaps = tuple(dict.fromkeys(row.gap_ms for row in rows))
    titles = [f"{'' if number else 'gap '}{gap:.3g} ms" for number, gap in enumerate(gaps)]
    listed = table(("  % not found, reads/writes", "left"), *((title, "right") for title in titles))
    listed.padding = 0  # five bands beside the longest levels just fit into 80 columns
    for name, bands in _by_levels(rows):
        listed.add_row(f"  {name}", *(_percent_of(each) for each in bands))
        if name == _levels(rows[0]) and any(each.high > LEAST_PROBABILITY for each in bands):
            listed.add_row(Text("    90 % band", style="dim"), *(Text(_range(each), style="dim") for each in bands))
    console.print(listed)


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
        f"the start find no session{later}. The RTT is {spoken.rtt_ms:.3g} ms."
    )


def _percent_of(band: Band) -> str:
    """Return the value of a band in percent; `<0.01` below the lowest reported, `0` for never."""
    return f"<{_LESS}" if band.high and not band.value else percent(band.value)


def _percent_band(band: Band) -> str:
    if band.high <= LEAST_PROBABILITY:
        return f"less than {_LESS} %" if band.high else "0 %"
    return f"{_percent_of(band)} % ({percent(band.low)} to {percent(band.high)})"


def _range(band: Band) -> str:
    return f"{percent(band.low)}-{percent(band.high)}" if band.high > LEAST_PROBABILITY else ""


def _by_levels(rows: Sequence[SessionNotFound]) -> Iterator[tuple[str, list[Band]]]:
    for name in dict.fromkeys(map(_levels, rows)):
        yield name, [row.probability for row in rows if _levels(row) == name]


def _levels(row: SessionNotFound) -> str:
    return f"{row.consistency_read}/{row.consistency_write}"
