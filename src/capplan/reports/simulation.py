"""A simulation for people: requests, latency, stations and pools, in 80 columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from capplan.models.language.per_dc import per_dc_text
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
from capplan.reports.document import Block, Cell, Column, Fact, Line, Paragraph, Table, heading, ruled
from capplan.reports.numbers import Format, given, percent, two_digits

MOST_ROWS = 15  # of stations and of pools: a screen
_RISING = 1.7  # 99th percentile over mean of a number that rises evenly from 0: nearly 2
SMALLEST_GROWTH = 1e-4  # of a backlog; less is shown as "less than"
LOW_DROP_RATE = 0.001  # share of the requests; it is what a capacity allows
NONE = "-"  # nothing observed
LATENCIES = {"mean": "mean", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "p999": "p99.9"}
_Figure = Estimate | str
_Row = tuple[str, Sequence[_Figure], Mapping[int, Format]]
"""A name, figures, and the formats of columns other than three significant digits."""


def describe(simulation: Simulation) -> Iterator[Block]:
    """Yield the description of a simulation."""
    yield Line(headline(simulation), "bold", fill=True)
    yield from _facts(simulation)
    yield from _requests(simulation)
    clocks = {"intended": "the intended start"}
    if _clocks_differ(simulation):
        clocks["actual"] = "the actual start"
    for clock, words in clocks.items():
        latencies = {name: getattr(figures.latency_ms, clock) for name, figures in simulation.classes.items()}
        yield heading(f"Latency in ms from {words}")
        yield _latency(latencies)
    yield from _stations(simulation.station_kinds)
    yield from _pools(simulation.pool_kinds)
    yield Line()
    for note in notes(simulation):
        yield Paragraph(note, indent=2)
    yield Line(f"  capplan {simulation.version}, seed {simulation.seed}", "dim")


def headline(simulation: Simulation) -> str:
    """Return what was simulated, for how long and at which rate."""
    layout = simulation.scenario
    what = f"The network {simulation.network}" if layout is None else _layout(layout)
    return f"{what}: {_duration(simulation.duration_s)} of traffic{_at(simulation)}."


def _layout(scenario: Mapping[str, Any]) -> str:
    """Name the layout."""
    dcs, nodes = scenario.get("dcs"), scenario.get("cass_nodes", scenario.get("nodes"))
    if nodes is None:
        servers = scenario.get("servers")
        if servers is not None:
            return "1 server" if servers == 1 else f"{servers} servers"
        if "virtual_encrypts" in scenario:
            return f"The virtual network at RF {scenario['rf']} with {scenario['column_bytes']}-byte columns"
        return "This layout"
    if isinstance(nodes, (tuple, list)):
        return f"{dcs} DCs of {per_dc_text(nodes)} nodes"
    each = "node" if nodes == 1 else "nodes"
    if dcs is None:
        return f"{nodes} {'Cassandra ' if 'cass_nodes' in scenario else ''}{each}"
    return f"1 DC of {nodes} {each}" if dcs == 1 else f"{dcs} DCs x {nodes} {each}"


def _at(simulation: Simulation) -> str:
    offered = simulation.offered_tps
    if offered is None:
        return " from closed-loop clients"
    kind = "" if simulation.mean_tps == offered else "a peak rate of "
    source = {"given": ", as given", "default": ", 80 % of capacity", "network": ""}[simulation.offered_source]
    return f" at {kind}{given(offered)} TPS{source}"


def _duration(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 120 and seconds % 60 == 0 else f"{float(f'{seconds:.3g}'):g} s"


def _facts(simulation: Simulation) -> Iterator[Fact]:
    every = simulation.classes[EVERY_CLASS]
    runs = "one replication" if simulation.replications == 1 else f"{simulation.replications} replications"
    if simulation.mean_tps is not None and simulation.mean_tps != simulation.offered_tps:
        yield Fact("  mean rate", f"{rate(simulation.mean_tps)} TPS: the peak rate comes in bursts")
    yield Fact("  measured", f"{every.started:,} requests in {runs}{_left_out(simulation)}")
    number, rates, response = every.little.number, every.little.rate_per_s, every.little.response_s
    beside = "" if number.half_width is None else f" ± {two_digits(number.half_width)}"
    law = f"rate x response is {significant(rates.value * response.value)} (Little's law)"
    yield Fact("  in flight", f"{significant(number.value)}{beside} requests; {law}")
    if simulation.backlog is not None:
        yield Fact("  backlog", _backlog(simulation.backlog))


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
    width = "" if backlog.growth.half_width is None else f" ± {percent(backlog.growth.half_width)}"
    return f"{backlog.verdict}: grows by {percent(backlog.growth.value)}{width} of the offered rate"


def _clocks_differ(simulation: Simulation) -> bool:
    latencies = (figures.latency_ms for figures in simulation.classes.values() if figures.completed)
    return any(each.intended is not each.actual and each.intended != each.actual for each in latencies)


def _table(heads: Iterable[str], rows: Iterable[_Row]) -> Table:
    """Return a table in which a row of figures is followed by one of their half-widths."""
    columns = (Column("  "), *(Column(name, right=True) for name in heads))
    return ruled(columns, (cells for row in rows for cells in _rows(*row)))


def _rows(name: str, figures: Sequence[_Figure], form: Mapping[int, Format]) -> Iterator[list[Cell]]:
    forms = [form.get(place, significant) for place in range(len(figures))]
    yield [Cell(f"  {name}"), *(Cell(_shown(each, form)) for each, form in zip(figures, forms, strict=True))]
    widths = [_width(each, form) for each, form in zip(figures, forms, strict=True)]
    if any(widths):
        yield [Cell(each, style="dim") for each in ("    ±", *widths)]


def _shown(figure: _Figure, form: Format) -> str:
    if isinstance(figure, str):
        return figure
    return NONE if math.isnan(figure.value) else form(figure.value)


def _width(figure: _Figure, form: Format) -> str:
    if isinstance(figure, str) or figure.half_width is None:
        return ""
    return two_digits(100 * figure.half_width if form is _percent else figure.half_width)


def _percent(part: float) -> str:
    return share(part).removesuffix(" %")


def _requests(simulation: Simulation) -> Iterator[Block]:
    every = simulation.classes[EVERY_CLASS]
    counts = [name for name in ("dropped", "timed_out", "unfinished", "retries") if getattr(every, name)]
    yield heading("Requests")
    heads = ("offered/s", "throughput/s", "drop rate %", *(name.replace("_", " ") for name in counts))
    forms: dict[int, Format] = {0: rate, 1: rate, 2: _percent}
    rows: list[_Row] = []
    for name, its in simulation.classes.items():
        figures = (its.offered_per_s, its.throughput_per_s, its.drop_rate)
        rows.append((_named(name), [*figures, *(f"{getattr(its, each):,}" for each in counts)], forms))
    yield _table(heads, rows)


def _latency(latencies: Mapping[str, LatencyFigures]) -> Table:
    heads = (*LATENCIES, "max")
    rows: list[_Row] = [(_named(name), [getattr(its, each) for each in heads], {}) for name, its in latencies.items()]
    return _table((*LATENCIES.values(), "max"), rows)


def _stations(kinds: Mapping[str, StationKind]) -> Iterator[Block]:
    if not kinds:
        return
    paused = any(kind.paused_share.value for kind in kinds.values())
    drops = any(kind.drops for kind in kinds.values())
    forms: dict[int, Format] = dict.fromkeys((1, 2, 3, 6) if paused else (1, 2, 3), _percent)
    heads = ["count", "busy %", "least", "most", "queue", "wait ms", *["paused %"] * paused, *["drops"] * drops]
    rows: list[_Row] = []
    for name, kind in list(kinds.items())[:MOST_ROWS]:
        spread: list[_Figure] = ["", ""] if kind.count == 1 else [kind.least_utilisation, kind.most_utilisation]
        figures: list[_Figure] = [str(kind.count), kind.utilisation, *spread, kind.mean_queue, kind.mean_wait_ms]
        rows.append((name, [*figures, *[kind.paused_share] * paused, *[f"{kind.drops:,}"] * drops], forms))
    yield heading("Stations (busy: mean, least and most loaded; queue: of each)")
    yield _table(heads, rows)
    yield from _more(len(kinds), "stations")


def _pools(kinds: Mapping[str, PoolKind]) -> Iterator[Block]:
    if not kinds:
        return
    rows: list[_Row] = []
    for name, kind in list(kinds.items())[:MOST_ROWS]:
        figures = (kind.mean_busy, kind.most_p99_busy, kind.mean_queue, kind.mean_wait_ms)
        rows.append((name, [str(kind.count), f"{kind.size:,g}", *figures, f"{kind.drops:,}"], {}))
    yield heading("Pools (size, busy units and queue: of each)")
    yield _table(("count", "size", "busy", "p99 busy", "queue", "wait ms", "drops"), rows)
    yield from _more(len(kinds), "pools")


def _more(count: int, what: str) -> Iterator[Block]:
    if count > MOST_ROWS:
        yield Line(f"  The {MOST_ROWS} most loaded of {count} kinds of {what}; --json has all.", "dim", fill=True)


def _named(name: str) -> str:
    return "all" if name == EVERY_CLASS else name


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
    known = f"is known to within {percent(precision.relative)}"
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
