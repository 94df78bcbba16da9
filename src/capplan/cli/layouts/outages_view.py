"""Outages for people: what is left in the long run, the minutes around a loss, and whether it recovers."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from capplan.cli.layouts.prediction_view import show_outages
from capplan.cli.views.figures import given
from capplan.cli.views.lines import fact, paragraph, put, table
from capplan.models.number_words import rate, share, significant, tenths_of_percent, to_digits
from capplan.planner.outages.answer import (
    Duration,
    LevelAvailability,
    Metastability,
    OutagesAnswer,
    Phase,
    RecoveryVerdict,
    Transient,
)

_PHASES = {"before": "before", "undetected": "unnoticed", "detected": "noticed", "after": "returned"}
_SHORT_LEVELS = {"LOCAL_ONE": "L_ONE", "LOCAL_QUORUM": "L_QUORUM", "EACH_QUORUM": "E_QUORUM"}


def render(answer: OutagesAnswer, console: Console) -> None:
    """Print the answer."""
    rated = "" if answer.offered_tps is None else f", {_offered(answer)} TPS{_peak(answer)}"
    paragraph(console, f"{answer.system}: {answer.layout}{rated}", style="bold")
    if answer.verdict is not None:
        put(console)
        fact(console, "Answer", answer.verdict.in_words())
        if answer.verdict.not_asked:
            fact(console, "Not asked", f"loss of {', '.join(answer.verdict.not_asked)} (--lose)")
    if answer.outages:
        _long_run(answer, console)
    for each in answer.transients:
        _transient(each, console)
    if answer.metastability is not None:
        _metastability(answer.metastability, answer, console)
    put(console)
    _assumed(answer, console)
    more = [*([] if answer.metastability else ["--trigger 1s..60s --attempts 1..5"]), "--plot FILE", "--json"]
    more = [*([] if len(answer.transients) != 1 or not answer.outages else ["--lose WHAT"]), *more]
    paragraph(console, f"More: {', '.join(more)}", hanging=6, style="dim")


def _offered(answer: OutagesAnswer) -> str:
    found = answer.offered_tps or 0.0
    return rate(found) if answer.offered_source == "default" else given(float(f"{found:.6g}"))


def _peak(answer: OutagesAnswer) -> str:
    if answer.offered_tps == answer.mean_tps:
        return ""
    return f" peak, {rate(answer.mean_tps or 0.0)} on average"


def _long_run(answer: OutagesAnswer, console: Console) -> None:
    figures = {name: each for outage in answer.outages for name, each in outage.latency_ms.items()}
    p99 = {name: 0.0 if each.p99 is None else each.p99.value for name, each in figures.items()}
    slowest = max(p99, key=lambda name: p99[name], default="")
    put(console)
    show_outages(answer.outages, list(figures), slowest, _offered(answer), console)
    if answer.levels:
        put(console)
        _levels(answer.levels, console)


def _levels(levels: Sequence[LevelAvailability], console: Console) -> None:
    """Print which levels a loss leaves: r for reads, w for writes."""
    names = list(dict.fromkeys(name for each in levels for name in (*each.read, *each.write)))
    title = ["Levels left", *(_SHORT_LEVELS.get(name, name) for name in names)]
    rows = [[f"  {each.name}", *(_mark(each, name) for name in names)] for each in levels]

    def stacked(console: Console) -> None:
        put(console, "Levels left (r: reads, w: writes)", "bold")
        for name, *marks in rows:
            words = ", ".join(f"{level} {mark}" for level, mark in zip(title[1:], marks, strict=True))
            paragraph(console, f"{name}: {words}", hanging=4)

    table(console, title, rows, stacked)


def _mark(each: LevelAvailability, level: str) -> str:
    """Return the operations of the traffic that a loss leaves at a level; a hyphen for each that fails."""
    asked = {letter: levels for letter, levels in (("r", each.read), ("w", each.write)) if levels}
    marks = [letter if levels.get(level, False) else "-" for letter, levels in asked.items()]
    return "-" if set(marks) == {"-"} else " ".join(marks)


def _transient(each: Transient, console: Console) -> None:
    put(console)
    title = f"{each.name} lost from {each.lost_s:g} to {each.returned_s:g} s; {each.replications} simulations"
    paragraph(console, title, style="bold")
    rows = [_phase(phase) for phase in each.phases]
    heads = ["  time, s", "", "completed/s", "unanswered/s", "retries/s", "p50, ms", "p99, ms"]
    table(console, heads, rows, lambda console: _stacked(heads, rows, console))
    fact(console, "Back", f"{_back(each)}, within {share(each.within)} of before")
    fact(console, "Unanswered", f"{tenths_of_percent(each.unanswered_share)} of the requests from the loss on")
    if each.shortened:
        fact(console, "Shortened", each.shortened)


def _stacked(heads: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> None:
    for time, name, *cells in rows:
        words = ", ".join(f"{head} {cell}" for head, cell in zip(heads[2:], cells, strict=True))
        paragraph(console, f"{time.strip()} s, {name}: {words}", 2, 4)


def _phase(phase: Phase) -> list[str]:
    return [
        f"  {round(phase.from_s, 1):g}-{round(phase.to_s, 1):g}",
        _PHASES[phase.name],
        *(_per_second(each) for each in (phase.completed_per_s, phase.unanswered_per_s, phase.retries_per_s)),
        "-" if phase.p50_ms is None else significant(phase.p50_ms),
        "-" if phase.p99_ms is None else significant(phase.p99_ms),
    ]


def _per_second(number: float) -> str:
    return rate(number) if number >= 1 or number == 0 else "< 1"


def _back(each: Transient) -> str:
    loss = _duration(each.back_after_loss_s, each.replications, each.duration_s - each.lost_s)
    back = _duration(each.back_after_return_s, each.replications, each.duration_s - each.returned_s)
    return f"{loss} after the loss, {back} after the return"


def _duration(found: Duration, replications: int, seen_s: float) -> str:
    if found.value is None:
        return f"not within {seen_s:.0f} s"
    width = "" if not found.half_width else f" ± {to_digits(found.half_width, 2)}"
    rest = "" if found.ended == replications else f" in {found.ended} of {replications} simulations"
    return f"{to_digits(found.value, 2)}{width} s{rest}"


def _metastability(found: Metastability, answer: OutagesAnswer, console: Console) -> None:
    put(console)
    paragraph(console, f"Does it recover? Trigger: {found.trigger}", style="bold")
    if found.verdicts:
        _verdicts(found, console)
    numbers = [each.attempts for each in found.screens]
    screens = {each.attempts: each.expected for each in found.screens}
    for words in dict.fromkeys(each for each in screens.values() if each != "not known"):
        which = [number for number in numbers if screens[number] == words]
        label = "Fixed point" if words == next(iter(screens.values())) else ""
        fact(console, label, f"{', '.join(map(str, which))} attempt{'s' * (which[-1] > 1)}: {words}")
    if found.searched:
        fact(console, "Safe", _safe(found, answer))
    if found.shortened:
        fact(console, "Shortened", found.shortened)


def _verdicts(found: Metastability, console: Console) -> None:
    numbers = list(dict.fromkeys(each.attempts for each in found.verdicts))
    lengths = list(dict.fromkeys(each.trigger_s for each in found.verdicts))
    cells = {(each.trigger_s, each.attempts): each for each in found.verdicts}
    title = ["  lasts", *(f"{number} attempt{'s' * (number > 1)}" for number in numbers)]
    rows = [[f"  {length:g} s", *(_verdict(cells[length, number]) for number in numbers)] for length in lengths]

    def stacked(console: Console) -> None:
        for row in rows:
            words = ", ".join(f"{head}: {cell}" for head, cell in zip(title[1:], row[1:], strict=True))
            paragraph(console, f"{row[0].strip()}: {words}", 2, 4)

    table(console, title, rows, stacked)
    fact(console, "Verdict", _how(found))


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
    attempts = (
        "not even 1 attempt" if found.safe_attempts is None else _at_most(found.safe_attempts, found.most_attempts)
    )
    surge = found.safe_surge
    number = answer.clients.attempts
    if surge is None:
        reconnect = f"no surge of {to_digits(found.least_surge, 2)} times the traffic"
    else:
        beyond = "and more" if surge >= found.most_surge else ""
        reconnect = f"a surge of {to_digits(surge, 2)} times the traffic {beyond}".rstrip()
    tries = f"{number} attempt{'s' * (number > 1)}"
    return f"{attempts} after {longest:g} s; {reconnect} for {longest:g} s with {tries}"


def _at_most(number: int, most: int) -> str:
    tries = f"{number} attempt{'s' * (number > 1)}"
    return f"{tries} and more" if number >= most > 1 else tries


def _assumed(answer: OutagesAnswer, console: Console) -> None:
    clients = answer.clients
    if clients.timeout_s is None:
        words = "wait for every answer"
    else:
        starts = ", ".join(to_digits(each, 2) if each else "0" for each in clients.starts_s())
        tries = "try once" if clients.attempts == 1 else f"try after {starts} s"
        words = f"time out after {clients.timeout_s:g} s and {tries}"
    fact(console, "Clients", f"{words}; late attempts still use the servers")
    for each in answer.transients[:1]:
        cold = "at full speed" if each.cold_s == 0 else f"at {share(each.cold_speed)} speed for {each.cold_s:g} s"
        fact(console, "Loss", f"others notice after {each.detection_s:g} s (--detection); back {cold} (--cold)")
    if answer.not_modelled:
        fact(console, "Not modelled", ", ".join(answer.not_modelled))
