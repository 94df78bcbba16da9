"""A simulation for people: requests, latency, stations and pools, in 80 columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from capplan.cli.layouts.layout_in_words import layout_in_words
from capplan.cli.views.figures import Format, given, width
from capplan.cli.views.lines import fact, paragraph, put
from capplan.cli.views.tables import heading, section, table
from capplan.models.number_words import rate, share, significant
from capplan.planner.simulate.simulation import (
    EVERY_CLASS,
    Backlog,
    Estimate,
    LatencyFigures,
    PoolKind,
    PrecisionReached,
    Simulation,
    StationKind,
)

Cell = Estimate | str

MOST_ROWS = 15  # of stations and of pools: a screen
_RISING = 1.7  # 99th percentile over mean of a number that rises evenly from 0: nearly 2
SMALLEST_GROWTH = 1e-4  # of a backlog; less is shown as "less than"
LOW_DROP_RATE = 0.001  # share of the requests; it is what a capacity allows
NONE = "-"  # nothing observed
LATENCIES = {"mean": "mean", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "p999": "p99.9"}


def render(simulation: Simulation, console: Console) -> None:
    """Print a simulation on `console`; use `capplan.cli.shell.terminal.Screen` for stdout."""
    console.print(heading(headline(simulation)))
    for name, text in _facts(simulation).items():
        fact(console, f"  {name}", text)
    _requests(simulation, console)
    clocks = {"intended": "the intended start"}
    if _clocks_differ(simulation):
        clocks["actual"] = "the actual start"
    for clock, words in clocks.items():
        latencies = {name: getattr(figures.latency_ms, clock) for name, figures in simulation.classes.items()}
        console.print(section(f"Latency in ms from {words}"))
        _latency(latencies, console)
    _stations(simulation.station_kinds, console)
    _pools(simulation.pool_kinds, console)
    console.print()
    for note in notes(simulation):
        paragraph(console, note, indent=2)
    put(console, f"  capplan {simulation.version}, seed {simulation.seed}", "dim")


def headline(simulation: Simulation) -> str:
    """Return what was simulated, for how long and at which rate."""
    layout = simulation.scenario
    what = f"The network {simulation.network}" if layout is None else layout_in_words(layout)[0]
    return f"{what}: {_duration(simulation.duration_s)} of traffic{_at(simulation)}."


def _at(simulation: Simulation) -> str:
    offered = simulation.offered_tps
    if offered is None:
        return " from closed-loop clients"
    kind = "" if simulation.mean_tps == offered else "a peak rate of "
    source = {"given": ", as given", "default": ", 80 % of capacity", "network": ""}[simulation.offered_source]
    return f" at {kind}{given(offered)} TPS{source}"


def _duration(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 120 and seconds % 60 == 0 else f"{float(f'{seconds:.3g}'):g} s"


def _facts(simulation: Simulation) -> dict[str, str]:
    every = simulation.classes[EVERY_CLASS]
    runs = "one replication" if simulation.replications == 1 else f"{simulation.replications} replications"
    named = {}
    if simulation.mean_tps is not None and simulation.mean_tps != simulation.offered_tps:
        named["mean rate"] = f"{rate(simulation.mean_tps)} TPS: the peak rate comes in bursts"
    named["measured"] = f"{every.started:,} requests in {runs}{_left_out(simulation)}"
    number, rates, response = every.little.number, every.little.rate_per_s, every.little.response_s
    named["in flight"] = (
        f"{_both(number)} requests; rate x response is {significant(rates.value * response.value)} (Little's law)"
    )
    if simulation.backlog is not None:
        named["backlog"] = _backlog(simulation.backlog)
    return named


def _left_out(simulation: Simulation) -> str:
    found = simulation.warmup_source == "mser"
    if not simulation.warmup_s:
        return ", no warm-up detected (MSER)" if found else ""
    runs = " each" if simulation.replications > 1 else ""
    return f", the first {_duration(simulation.warmup_s)}{runs} discarded{' as warm-up (MSER)' if found else ''}"


def _backlog(backlog: Backlog) -> str:
    if math.isnan(backlog.growth.value):
        return f"{backlog.verdict}: the run is too short to tell whether it grows"
    if abs(backlog.growth.value) + (backlog.growth.half_width or 0) < SMALLEST_GROWTH:
        return f"{backlog.verdict}: grows by less than 0.01 % of the offered rate"
    growth = f"{backlog.growth.value:.2%}".replace("%", " %")
    width = "" if backlog.growth.half_width is None else f" ± {backlog.growth.half_width:.2%}".replace("%", " %")
    return f"{backlog.verdict}: grows by {growth}{width} of the offered rate"


def _clocks_differ(simulation: Simulation) -> bool:
    latencies = (figures.latency_ms for figures in simulation.classes.values() if figures.completed)
    return any(each.intended is not each.actual and each.intended != each.actual for each in latencies)


class _Table:
    """A table in which a row of figures is followed by one of their half-widths."""

    def __init__(self, columns: Iterable[str]) -> None:
        self.table = table(("  ", "left"), *((name, "right") for name in columns))

    def add(self, name: str, cells: Sequence[Cell], form: Mapping[int, Format] | None = None) -> None:
        """Add a row; `form` has the formats of columns other than three significant digits."""
        forms = [(form or {}).get(place, significant) for place in range(len(cells))]
        shown = [_cell(cell, each) for cell, each in zip(cells, forms, strict=True)]
        self.table.add_row(f"  {name}", *shown)
        widths = [_width(cell, each) for cell, each in zip(cells, forms, strict=True)]
        if any(widths):
            self.table.add_row("    ±", *widths, style="dim")


def _cell(cell: Cell, form: Format) -> str:
    if isinstance(cell, str):
        return cell
    return NONE if math.isnan(cell.value) else form(cell.value)


def _width(cell: Cell, form: Format) -> str:
    if isinstance(cell, str) or cell.half_width is None:
        return ""
    return width(100 * cell.half_width if form is _percent else cell.half_width)


def _requests(simulation: Simulation, console: Console) -> None:
    every = simulation.classes[EVERY_CLASS]
    counts = [name for name in ("dropped", "timed_out", "unfinished", "retries") if getattr(every, name)]
    console.print(section("Requests"))
    listed = _Table(("offered/s", "throughput/s", "drop rate %", *(name.replace("_", " ") for name in counts)))
    for name, figures in simulation.classes.items():
        cells = (figures.offered_per_s, figures.throughput_per_s, figures.drop_rate)
        listed.add(
            _named(name), [*cells, *(f"{getattr(figures, each):,}" for each in counts)], {0: rate, 1: rate, 2: _percent}
        )
    console.print(listed.table)


def _latency(latencies: Mapping[str, LatencyFigures], console: Console) -> None:
    listed = _Table((*LATENCIES.values(), "max"))
    for name, figures in latencies.items():
        listed.add(_named(name), [getattr(figures, each) for each in (*LATENCIES, "max")])
    console.print(listed.table)


def _stations(kinds: Mapping[str, StationKind], console: Console) -> None:
    if not kinds:
        return
    seen = {
        "paused %": any(kind.paused_share.value for kind in kinds.values()),
        "drops": any(kind.drops for kind in kinds.values()),
    }
    columns = ("count", "busy %", "least", "most", "queue", "wait ms", *(name for name, there in seen.items() if there))
    console.print(section("Stations (busy: mean, least and most loaded; queue: of each)"))
    listed = _Table(columns)
    for name, kind in list(kinds.items())[:MOST_ROWS]:
        spread: tuple[Cell, Cell] = ("", "") if kind.count == 1 else (kind.least_utilisation, kind.most_utilisation)
        cells: list[Cell] = [str(kind.count), kind.utilisation, *spread, kind.mean_queue, kind.mean_wait_ms]
        cells += [kind.paused_share] * seen["paused %"] + [f"{kind.drops:,}"] * seen["drops"]
        listed.add(name, cells, dict.fromkeys((1, 2, 3), _percent) | ({6: _percent} if seen["paused %"] else {}))
    console.print(listed.table)
    _more(len(kinds), "stations", console)


def _pools(kinds: Mapping[str, PoolKind], console: Console) -> None:
    if not kinds:
        return
    console.print(section("Pools (size, busy units and queue: of each)"))
    listed = _Table(("count", "size", "busy", "p99 busy", "queue", "wait ms", "drops"))
    for name, kind in list(kinds.items())[:MOST_ROWS]:
        cells = (kind.mean_busy, kind.most_p99_busy, kind.mean_queue, kind.mean_wait_ms)
        listed.add(name, [str(kind.count), f"{kind.size:,g}", *cells, f"{kind.drops:,}"])
    console.print(listed.table)
    _more(len(kinds), "pools", console)


def _more(count: int, what: str, console: Console) -> None:
    if count > MOST_ROWS:
        console.print(Text(f"  The {MOST_ROWS} most loaded of {count} kinds of {what}; --json has all.", style="dim"))


def _named(name: str) -> str:
    return "all" if name == EVERY_CLASS else name


def _both(estimate: Estimate) -> str:
    beside = "" if estimate.half_width is None else f" ± {width(estimate.half_width)}"
    return f"{significant(estimate.value)}{beside}"


def _percent(part: float) -> str:
    return share(part).removesuffix(" %")


def notes(simulation: Simulation) -> Iterator[str]:
    """Yield the notes below the tables."""
    if simulation.scenario is None:
        yield "One set of parameters, from the file: this result does not cover their uncertainty."
    else:
        yield "One set of parameters, the calibrated median: `capplan predict` covers their uncertainty."
    yield _intervals_note(simulation)
    overloaded = simulation.backlog is not None and simulation.backlog.verdict == "overloaded"
    if not simulation.settled and not overloaded:
        yield "MSER found no end of the warm-up, so figures may include some of it. Simulate longer (--duration)."
    if simulation.backlog is not None and simulation.backlog.verdict != "steady":
        yield _overload_note(simulation.backlog.verdict)
    if simulation.scenario is not None and _clocks_differ(simulation):
        yield (
            "The clients of this layout wait for their answers, so they fall behind the offered rate: latency from the "
            "intended start grows with the simulated time. `capplan predict` counts from the actual start."
        )
    if overloaded and (filling := _filling(simulation)):
        yield filling
    lost = simulation.classes[EVERY_CLASS].drop_rate.value
    if lost > LOW_DROP_RATE:
        yield (
            f"{lost:.1%}".replace("%", " %")
            + " of the requests were dropped or timed out; latencies are of the rest. A"
            " failed request ends its session, whose remaining requests never arrive."
        )
    if simulation.left_out:
        yield f"Without {', '.join(simulation.left_out)}: `capplan predict` adds them to percentiles."
    if simulation.controls:
        yield _controls_note(simulation)
    if simulation.precision is not None:
        yield _precision_note(simulation, simulation.precision)


def _filling(simulation: Simulation) -> str:
    """Return that the units of a pool run out later than the run lasts; empty where no pool fills up."""
    found = [
        (name, kind.size, kind.most_p99_busy.value)
        for name, kind in simulation.pool_kinds.items()
        if kind.mean_queue.value == 0 and kind.most_p99_busy.value > max(_RISING * kind.mean_busy.value, 1)
    ]
    if not found:
        return ""
    name, size, busy = max(found, key=lambda each: each[2] / each[1])
    return (
        f"Pool {name} is still filling: {significant(busy)} of {significant(size)} units. More requests fail once "
        "it is full: simulate longer (--duration), or ask `capplan predict`, which answers for that time."
    )


def _intervals_note(simulation: Simulation) -> str:
    count = simulation.replications
    if simulation.horizon == "finite":
        if count == 1:
            return "A single finite-horizon replication has no interval: use --replications 10, for example."
        return (
            f"Figures are means over {count} replications, including the longest latency; ± is the half-width of the "
            "95 % confidence interval."
        )
    if count >= 5:
        return (
            f"± is the half-width of the 95 % confidence interval between the {count} replications. The longest "
            "latency is the observed one and has no interval."
        )
    return (
        "± is the half-width of the 95 % confidence interval from batches of simulated time; it is missing where "
        "there are too few observations. The longest latency is the observed one and has no interval."
    )


def _overload_note(verdict: str) -> str:
    if verdict == "overloaded":
        return (
            "The offered rate exceeds the capacity: there is no steady state. Latencies and queues describe the "
            "simulated time and grow with it."
        )
    return "The run is too short to tell whether the backlog grows without bound: simulate longer (--duration)."


def _controls_note(simulation: Simulation) -> str:
    latency = simulation.classes[EVERY_CLASS].latency_ms.intended
    ratios = {"mean": latency.mean.variance_ratio, "p99": latency.p99.variance_ratio}
    if latency.mean.variance_ratio is None:
        return "There was no latency to correct by control variates."
    shown = ", ".join(f"{ratio:.2f} ({name})" for name, ratio in ratios.items() if ratio is not None)
    return (
        f"Control variates with exactly known means ({' and '.join(simulation.controls)}) reduce the variance of "
        f"latencies by these factors: {shown}."
    )


def _precision_note(simulation: Simulation, precision: PrecisionReached) -> str:
    name, runs = precision.asked.partition("<")[0].strip(), simulation.replications
    known = "is known to within " + f"{precision.relative:.2%}".replace("%", " %")
    if not math.isfinite(precision.relative):
        known = "has no interval"
    if precision.reached:
        return f"Asked for {precision.asked}: {name} {known} after {runs} replications."
    if simulation.backlog is not None and simulation.backlog.verdict == "overloaded":
        return f"Asked for {precision.asked}, stopped after {runs} replications: more would not help in overload."
    return (
        f"Asked for {precision.asked}, not reached: {name} {known} after {runs} replications. "
        "Allow more or longer ones."
    )
