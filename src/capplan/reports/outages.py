"""Outages for people: what remains in the long run, the minutes around a loss, and whether the system recovers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from capplan.answers.number_words import rate, share, significant, tenths_of_percent
from capplan.answers.results import Outage, Relief
from capplan.planner.outages.outages_answer import (
    Duration,
    LevelAvailability,
    Metastability,
    OutagesAnswer,
    Phase,
    RecoveryVerdict,
    SeriesBand,
    Transient,
)
from capplan.reports import figure as look
from capplan.reports.document import Block, Break, Bullets, Cell, Column, Fact, Heading, more, table, told
from capplan.reports.figure import go
from capplan.reports.numbers import NOT_MODELLED, figure_cell, given, plural, two_digits

_RATES = {"completed_per_s": ("completed", 2), "retries_per_s": ("retries", 3), "unanswered_per_s": ("unanswered", 5)}
_LATENCIES = {"p99_ms": ("p99", 1), "p50_ms": ("p50", 0)}
_TOLD = ("Answer", "Not asked", "Back", "Unanswered", "Verdict", "Safe", "Shortened", "Simulation", "Not modelled")
_PANEL, _GAP, _BOTTOM = 240, 96, 60

_PHASES = {"before": "before", "undetected": "unnoticed", "detected": "noticed", "after": "returned"}
_SHORT_LEVELS = {"LOCAL_ONE": "L_ONE", "LOCAL_QUORUM": "L_QUORUM", "EACH_QUORUM": "E_QUORUM"}
_RELIEFS: Mapping[Relief, str] = {
    "fewer replicas": "lost replicas get no writes",
    "nearer replicas": "the farthest replicas are lost",
}


def describe(answer: OutagesAnswer) -> Iterator[Block]:
    """Yield the description of an answer of `outages`."""
    rated = "" if answer.offered_tps is None else f", {_offered(answer)} TPS{_peak(answer)}"
    yield Heading(f"{answer.system}: {answer.layout}{rated}", 1)
    if answer.verdict is not None:
        yield Break()
        yield Fact("Answer", answer.verdict.in_words())
        if answer.verdict.not_asked:
            yield Fact("Not asked", f"loss of {', '.join(answer.verdict.not_asked)} (--lose)")
    if answer.outages:
        yield from _long_run(answer)
    for each in answer.transients:
        yield from _transient(each)
    if answer.not_simulated:
        yield Break()
        yield Fact("Simulation", f"none: {answer.not_simulated}")
    if answer.metastability is not None:
        yield from _metastability(answer.metastability, answer)
    yield Break()
    yield from _assumed(answer)
    options = [*([] if answer.metastability else ["--trigger 1s..60s --attempts 1..5"]), "--plot FILE", "--json"]
    yield more([*([] if len(answer.transients) != 1 or not answer.outages else ["--lose WHAT"]), *options])


def _offered(answer: OutagesAnswer) -> str:
    found = answer.offered_tps or 0.0
    return rate(found) if answer.offered_source == "default" else given(float(f"{found:.6g}"))


def _peak(answer: OutagesAnswer) -> str:
    return "" if answer.offered_tps == answer.mean_tps else f" peak, {rate(answer.mean_tps or 0.0)} on average"


def _long_run(answer: OutagesAnswer) -> Iterator[Block]:
    figures = {name: each for outage in answer.outages for name, each in outage.latency_ms.items()}
    p99 = {name: 0.0 if each.p99 is None else each.p99.value for name, each in figures.items()}
    yield Break()
    yield from left_by(
        answer.outages, list(figures), max(p99, key=lambda name: p99[name], default=""), _offered(answer)
    )
    if answer.levels:
        yield Break()
        names = list(dict.fromkeys(name for each in answer.levels for name in (*each.read, *each.write)))
        yield table(
            ["Levels left", *(_SHORT_LEVELS.get(name, name) for name in names)],
            ([Cell(each.name, level=1), *(_mark(each, name) for name in names)] for each in answer.levels),
        )


def left_by(outages: Sequence[Outage], classes: Sequence[str], slowest: str, asked: str) -> Iterator[Block]:
    """Yield one row per outage; the slowest class's latency is the one that must be seen.

    Parameters
    ----------
    outages : sequence of Outage
        What is lost, and what that leaves.
    classes : sequence of str
        The request classes.
    slowest : str
        The one with the highest 99th percentile.
    asked : str
        The offered rate in words.
    """
    p99 = [Column(f"p99 {name}, ms", optional=name != slowest) for name in classes]
    rows = [_left(outage, classes) for outage in outages]
    yield table(["Outage", "capacity left", f"{asked}?", *p99, "busy"], rows)
    costs = [text for each in outages for text in (f"{each.assumed}: {each.cost}" if each.cost else "", _relief(each))]
    yield Bullets(tuple(dict.fromkeys(filter(None, costs))), marked=False, level=1)


def _left(outage: Outage, classes: Sequence[str]) -> list[str | Cell]:
    lowered = "/".join(dict.fromkeys(outage.lowered.values()))
    name = Cell(f"at {lowered}", level=2) if lowered else Cell(outage.name, level=1)
    if not outage.available:
        return [name, outage.assumed, "no"]
    p99 = ["-" if latency is None else figure_cell(latency.p99) for latency in map(outage.latency_ms.get, classes)]
    capacity = figure_cell(outage.capacity_tps, significant, "1/s")
    busiest = max((band.value for band in outage.utilisation.values()), default=None)
    return [name, capacity, outage.answer or NOT_MODELLED, *p99, "" if busiest is None else share(busiest)]


def _relief(outage: Outage) -> str:
    """Return a sentence on why an outage at the same levels improves a figure; empty if it does not."""
    reasons = " and ".join(_RELIEFS[each] for each in outage.eased if each in _RELIEFS)
    if not reasons or outage.lowered:
        return ""
    return f"{outage.name}: faster, or more, than without the loss, as {reasons}"


def _mark(each: LevelAvailability, level: str) -> str:
    """Return the operations of the traffic that succeed at a level after a loss; a hyphen for each that fails."""
    asked = {letter: levels for letter, levels in (("r", each.read), ("w", each.write)) if levels}
    marks = [letter if levels.get(level, False) else "-" for letter, levels in asked.items()]
    return "-" if set(marks) == {"-"} else " ".join(marks)


def _transient(each: Transient) -> Iterator[Block]:
    yield Heading(f"{each.name} lost from {each.lost_s:g} to {each.returned_s:g} s; {each.replications} simulations")
    heads = ["time, s", "", "completed/s", "unanswered/s", "retries/s", "p50, ms", "p99, ms"]
    yield table(heads, map(_phase, each.phases), level=1)
    yield Fact("Back", _back(each))
    yield Fact("Unanswered", f"{tenths_of_percent(each.unanswered_share)} of the requests that ended after the loss")
    if each.shortened:
        yield Fact("Shortened", each.shortened)


def _phase(phase: Phase) -> list[str]:
    rates = (phase.completed_per_s, phase.unanswered_per_s, phase.retries_per_s)
    return [
        f"{round(phase.from_s, 1):g} to {round(phase.to_s, 1):g}",
        _PHASES[phase.name],
        *(rate(each) if each >= 1 or each == 0 else "< 1" for each in rates),
        *("-" if each is None else significant(each) for each in (phase.p50_ms, phase.p99_ms)),
    ]


def _back(each: Transient) -> str:
    if each.phases[0].p99_ms is None:
        return "never: no request was answered before the loss, so there is no normal operation to come back to"
    loss = _duration(each.back_after_loss_s, each.replications, each.duration_s - each.lost_s)
    back = _duration(each.back_after_return_s, each.replications, each.duration_s - each.returned_s)
    return f"{loss} after the loss, {back} after the return, within {share(each.within)} of before"


def _duration(found: Duration, replications: int, seen_s: float) -> str:
    if found.value is None:
        return f"not within {seen_s:.0f} s"
    width = "" if not found.half_width else f" ± {two_digits(found.half_width)}"
    rest = "" if found.ended == replications else f" in {found.ended} of {replications} simulations"
    return f"{two_digits(found.value)}{width} s{rest}"


def _metastability(found: Metastability, answer: OutagesAnswer) -> Iterator[Block]:
    yield Heading(f"Does it recover? Trigger: {found.trigger}")
    if found.verdicts:
        numbers, by_length = _by_length(found)
        rows = [[length, *map(_verdict, each)] for length, each in by_length.items()]
        yield table(["lasts", *map(_attempts, numbers)], rows, level=1)
        yield Fact("Verdict", _how(found))
    screens = {each.attempts: each.expected for each in found.screens}
    for words in dict.fromkeys(each for each in screens.values() if each != "not known"):
        which = [each.attempts for each in found.screens if screens[each.attempts] == words]
        label = "Fixed point" if words == next(iter(screens.values())) else ""
        yield Fact(label, f"{', '.join(map(str, which))} {plural('attempt', which[-1])}: {words}")
    if found.searched:
        yield Fact("Safe", _safe(found, answer))
    if found.shortened:
        yield Fact("Shortened", found.shortened)


def _by_length(found: Metastability) -> tuple[list[int], dict[str, list[RecoveryVerdict]]]:
    """Return the numbers of attempts, and the verdicts on them by the length of the trigger."""
    numbers = list(dict.fromkeys(each.attempts for each in found.verdicts))
    cells = {(each.trigger_s, each.attempts): each for each in found.verdicts}
    lengths = dict.fromkeys(each.trigger_s for each in found.verdicts)
    return numbers, {f"{length:g} s": [cells[length, number] for number in numbers] for length in lengths}


def _verdict(each: RecoveryVerdict) -> str:
    counted = f"{each.recovered}/{each.replications}"
    if each.always:
        return f"yes {counted}"
    if not each.long_enough:
        return f"too short {counted}"
    return counted if each.recovered else f"no {counted}"


def _how(found: Metastability) -> str:
    first = found.verdicts[0]
    least, most = (significant(end(each.horizon_s for each in found.verdicts)) for end in (min, max))
    horizon = f"{least} s" if least == most else f"{least} to {most} s"
    words = (
        f"recoveries of {first.replications} simulations: {share(found.required_share)} of the requests complete in "
        f"most of the second half of the {horizon} after the trigger"
    )
    sure = next((each for each in found.verdicts if each.always), None)
    if sure is None:
        return words
    return f"{words}; yes means a probability of at least {share(sure.low)} (95 % confidence)"


def _safe(found: Metastability, answer: OutagesAnswer) -> str:
    longest = max(each.trigger_s for each in found.verdicts)
    if found.safe_attempts is None:
        attempts = "not even 1 attempt"
    else:
        beyond = " and more" if found.safe_attempts >= found.most_attempts > 1 else ""
        attempts = f"{_attempts(found.safe_attempts)}{beyond}"
    surge = found.safe_surge
    if surge is None:
        reconnect = f"no surge of {two_digits(found.least_surge)} times the traffic"
    else:
        beyond = " and more" if surge >= found.most_surge else ""
        reconnect = f"a surge of {two_digits(surge)} times the traffic{beyond}"
    return f"{attempts} after {longest:g} s; {reconnect} for {longest:g} s with {_attempts(answer.clients.attempts)}"


def _attempts(number: int) -> str:
    return f"{number} attempt{'s' * (number > 1)}"


def _assumed(answer: OutagesAnswer) -> Iterator[Block]:
    clients = answer.clients
    if clients.timeout_s is None:
        words = "wait for every answer"
    else:
        starts = ", ".join(two_digits(each) if each else "0" for each in clients.starts_s())
        tries = "try once" if clients.attempts == 1 else f"try after {starts} s"
        words = f"time out after {clients.timeout_s:g} s and {tries}"
    yield Fact("Clients", f"{words}; late attempts still use the servers")
    for each in answer.transients[:1]:
        cold = "at full speed" if each.cold_s == 0 else f"at {share(each.cold_speed)} speed for {each.cold_s:g} s"
        yield Fact("Loss", f"others notice after {each.detection_s:g} s (--detection); back {cold} (--cold)")
    if answer.not_modelled:
        yield Fact("Not modelled", ", ".join(answer.not_modelled))


def plot(answer: OutagesAnswer, page: bool = True) -> go.Figure:
    """Return the figure: rates and latencies over time for each simulated loss, and a table of recoveries."""
    headings = [f"{each.name} lost: {what}" for each in answer.transients for what in ("requests", "latency")]
    found = answer.metastability if answer.metastability is not None and answer.metastability.verdicts else None
    if found is not None:
        headings.append(f"Recoveries of simulations; trigger: {found.trigger}")
    rows = len(headings)
    inner = _PANEL * rows + _GAP * (rows - 1)
    figure = look.make_subplots(rows=rows, cols=1, subplot_titles=headings, vertical_spacing=_GAP / inner)
    for place, each in enumerate(answer.transients):
        _draw_transient(figure, each, 2 * place + 1, answer.mean_tps)
    if found is not None:
        _recoveries(figure, found, rows)
    figure.update_annotations(
        selector={"xref": "paper"}, font={"size": look.HEADING_SIZE}, x=0, xanchor="left", yshift=22
    )
    text = list(told(describe(answer), *_TOLD))
    text += [
        f"Median of {each.replications} simulations, and the range of nine in ten. Latencies are those of the requests "
        "that started then. Grey: nobody has noticed the loss yet."
        for each in answer.transients[:1]
    ]
    room = {"above": 40, "below": _BOTTOM, "margin_l": 70}
    rated = "" if answer.offered_tps is None else f" at {_offered(answer)} TPS{_peak(answer)}"
    name = f"{answer.system}, {answer.layout}: what does a loss do{rated}?"
    look.frame(figure, name, text, inner, page, **room, showlegend=True)
    for row in range(1, 2 * len(answer.transients) + 1):
        y = 1 - (row - 1) * (_PANEL + _GAP) / inner
        figure.update_layout({look.numbered("legend", row): look.above(x=1, xanchor="right", y=y, yanchor="bottom")})
    return figure


def _draw_transient(figure: go.Figure, each: Transient, row: int, asked: float | None) -> None:
    for panel, lines in ((row, _RATES), (row + 1, _LATENCIES)):
        for name, (words, colour) in lines.items():
            for trace in _band(each, each.series[name], words, look.COLOURS[colour]):
                figure.add_trace(trace.update(legend=look.numbered("legend", panel)), row=panel, col=1)
    if asked is not None:
        named = {"annotation_text": "asked", "annotation_font_color": look.ASKED, "layer": "below"}
        figure.add_hline(y=asked, row=row, col=1, line={"color": look.ASKED, "width": 1.5}, **named)
    figure.update_yaxes(title_text="per second", **look.RATE_AXIS, row=row, col=1)
    figure.update_yaxes(**look.latency_axis("milliseconds"), row=row + 1, col=1)
    for panel in (row, row + 1):
        figure.update_xaxes(title_text="time [s]", range=[0, each.duration_s], row=panel, col=1)
        grey = {"fillcolor": look.faint(look.NEUTRAL, 0.2)}  # until the loss is detected
        noticed = min(each.lost_s + each.detection_s, each.returned_s)
        figure.add_shape(**look.upright(each.lost_s, noticed, {"width": 0}, **grey), row=panel, col=1)
        for time, words in ((each.lost_s, "lost"), (each.returned_s, "back")):
            figure.add_vline(x=time, row=panel, col=1, line={"color": look.NEUTRAL, "width": 1.5, "dash": "dash"})
            if panel == row:
                look.word(figure, words, panel, x=time, y=1)


def _band(each: Transient, series: SeriesBand, words: str, colour: str) -> Iterator[go.Scatter]:
    middles = [(start + end) / 2 for start, end in zip(each.boundaries_s, each.boundaries_s[1:], strict=False)]
    ends = (look.drawn(series.low), look.drawn(series.high))
    hover = f"{words}: %{{y:,.3~g}}<extra></extra>"
    yield from look.curve(middles, series.median, ends, {"color": colour, "width": 2}, name=words, hovertemplate=hover)


def _recoveries(figure: go.Figure, found: Metastability, row: int) -> None:
    numbers, by_length = _by_length(found)
    rows = by_length.values()
    scale = [[0.0, look.COLOURS[1]], [0.5, "#F0E442"], [1.0, look.COLOURS[0]]]
    figure.add_trace(
        go.Heatmap(
            x=list(map(str, numbers)),
            y=list(by_length),
            z=[[each.recovered / each.replications for each in verdicts] for verdicts in rows],
            text=[[f"{each.recovered}/{each.replications}" for each in verdicts] for verdicts in rows],
            texttemplate="%{text}",
            **{"zmin": 0, "zmax": 1, "colorscale": scale, "showscale": False, "xgap": 3, "ygap": 3},
            hovertemplate="%{y}, %{x} attempts: %{text}<extra></extra>",
        ),
        row=row,
        col=1,
    )
    figure.update_xaxes(title_text="attempts of each request", type="category", row=row, col=1)
    figure.update_yaxes(title_text="trigger lasts", type="category", row=row, col=1)
