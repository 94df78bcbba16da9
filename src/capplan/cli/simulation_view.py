"""A simulation for people: what became of requests, how long they took, what stations and pools did; 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from capplan.cli.figures import given, rate, share, significant
from capplan.cli.layout import facts, heading, section, table
from capplan.planner.simulation import EVERY_CLASS, Estimate, LatencyFigures, Simulation
from capplan.planner.simulation_groups import PoolGroup, StationGroup, pool_groups, station_groups

MOST_ROWS = 15  # of stations and of pools: a screen
NONE = "-"  # where nothing was there to see
LATENCIES = {"mean": "mean", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "p999": "p99.9"}
WITH_INTERVAL = ("mean", "p99")


def render(simulation: Simulation, console: Console) -> None:
    """Print a simulation on `console`; use `capplan.cli.terminal.Screen` for stdout."""
    console.print(heading(headline(simulation)))
    console.print(facts(_facts(simulation)))
    _requests(simulation, console)
    clocks = {"intended": "the intended start"}
    if _clocks_differ(simulation):
        clocks["actual"] = "the actual start"
    for clock, words in clocks.items():
        latencies = {name: getattr(figures.latency_ms, clock) for name, figures in simulation.classes.items()}
        console.print(section(f"Latency in ms from {words}"))
        _latency(latencies, simulation.replications > 1, console)
    _stations(station_groups(simulation.stations), console)
    _pools(pool_groups(simulation.pools), console)
    console.print()
    for note in _notes(simulation):
        console.print(Padding(note, (0, 0, 0, 2)))
    made = f"  capplan {simulation.version}, seed {simulation.seed}"
    console.print(Text(made, style="dim"))


def headline(simulation: Simulation) -> str:
    """Say what was simulated, for how long, at which rate."""
    layout = simulation.scenario
    if layout is None:
        what = f"The network {simulation.network}"
    else:
        dcs, nodes = layout["dcs"], layout["cass_nodes"]
        what = f"{dcs} {'DC' if dcs == 1 else 'DCs'} x {nodes} {'node' if nodes == 1 else 'nodes'}"
    return f"{what}: {_duration(simulation.duration_s)} of traffic{_at(simulation)}."


def _at(simulation: Simulation) -> str:
    offered = simulation.offered_tps
    if offered is None:
        return " from closed clients"
    kind = "" if simulation.scenario is None else "a peak rate of "
    source = {"given": ", as asked", "default": ", 80 % of capacity", "network": ""}[simulation.offered_source]
    return f" at {kind}{given(offered)} TPS{source}"


def _duration(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 120 and seconds % 60 == 0 else f"{seconds:g} s"


def _facts(simulation: Simulation) -> dict[str, str]:
    every = simulation.classes[EVERY_CLASS]
    runs = "one replication" if simulation.replications == 1 else f"{simulation.replications} replications"
    named = {}
    if simulation.mean_tps is not None and simulation.mean_tps != simulation.offered_tps:
        named["mean rate"] = f"{rate(simulation.mean_tps)} TPS: the peak rate comes in bursts"
    return named | {
        "measured": f"{every.started:,} requests in {runs}, the first {_duration(simulation.warmup_s)} left out",
        "Little's law": f"{significant(every.little.number)} requests under way, "
        f"rate x response {significant(every.little.rate_per_s * every.little.response_s)}",
    }


def _clocks_differ(simulation: Simulation) -> bool:
    latencies = (figures.latency_ms for figures in simulation.classes.values() if figures.completed)
    return any(each.intended != each.actual for each in latencies)


def _requests(simulation: Simulation, console: Console) -> None:
    width = ["±"] if simulation.replications > 1 else []
    every = simulation.classes[EVERY_CLASS]
    counts = [name for name in ("dropped", "timed_out", "unfinished", "retries") if getattr(every, name)]
    columns = ("offered/s", *width, "throughput/s", *width, "loss %", *(name.replace("_", " ") for name in counts))
    console.print(section("Requests"))
    listed = table(("  ", "left"), *((name, "right") for name in columns))
    for name, figures in simulation.classes.items():
        cells = []
        for estimate in (figures.offered_per_s, figures.throughput_per_s):
            cells += [rate(estimate.value), *(_width(estimate) for _ in width)]
        cells += [_percent(figures.loss.value), *(f"{getattr(figures, each):,}" for each in counts)]
        listed.add_row(f"  {_named(name)}", *cells)
    console.print(listed)


def _latency(latencies: Mapping[str, LatencyFigures], several: bool, console: Console) -> None:
    names = []
    for statistic, shown in LATENCIES.items():
        names += [shown, "±"] if several and statistic in WITH_INTERVAL else [shown]
    listed = table(("  ", "left"), *((name, "right") for name in (*names, "max")))
    for name, figures in latencies.items():
        cells = []
        for statistic in LATENCIES:
            estimate: Estimate = getattr(figures, statistic)
            cells.append(_number(estimate.value))
            if several and statistic in WITH_INTERVAL:
                cells.append(_width(estimate))
        listed.add_row(f"  {_named(name)}", *cells, _number(figures.max))
    console.print(listed)


def _stations(groups: Sequence[StationGroup], console: Console) -> None:
    if not groups:
        return
    seen = {
        "paused %": any(group.paused_share for group in groups),
        "drops": any(group.drops for group in groups),
    }
    columns = ("count", "busy %", "least", "most", "queue", "wait ms", *(name for name, there in seen.items() if there))
    console.print(section("Stations (busy: mean, least and most loaded; queue: of each)"))
    listed = table(("  ", "left"), *((name, "right") for name in columns))
    for group in groups[:MOST_ROWS]:
        spread = (group.least_utilisation, group.most_utilisation) if group.count > 1 else ()
        cells = {
            "count": str(group.count),
            "busy %": _percent(group.utilisation),
            **dict(zip(("least", "most"), map(_percent, spread), strict=False)),
            "queue": _number(group.mean_queue),
            "wait ms": _number(group.mean_wait_ms),
            "paused %": _percent(group.paused_share),
            "drops": f"{group.drops:,}",
        }
        listed.add_row(f"  {group.kind}", *(cells.get(column, "") for column in columns))
    console.print(listed)
    _more(len(groups), "stations", console)


def _pools(groups: Sequence[PoolGroup], console: Console) -> None:
    if not groups:
        return
    columns = ("count", "size", "busy", "p99 busy", "queue", "wait ms", "drops")
    console.print(section("Pools (size, busy units and queue: of each)"))
    listed = table(("  ", "left"), *((name, "right") for name in columns))
    for group in groups[:MOST_ROWS]:
        listed.add_row(
            f"  {group.kind}",
            str(group.count),
            f"{group.size:,g}",
            _number(group.mean_busy),
            f"{group.most_p99_busy:,}",
            _number(group.mean_queue),
            _number(group.mean_wait_ms),
            f"{group.drops:,}",
        )
    console.print(listed)
    _more(len(groups), "pools", console)


def _more(count: int, what: str, console: Console) -> None:
    if count > MOST_ROWS:
        console.print(Text(f"  The {MOST_ROWS} most loaded of {count} kinds of {what}; --json has all.", style="dim"))


def _notes(simulation: Simulation) -> tuple[str, str]:
    if simulation.scenario is None:
        one = "One set of parameters, as the file has them: nothing here says how sure they are."
    else:
        one = "One set of parameters, the calibrated median: `capplan predict` says how sure they are."
    if simulation.replications == 1:
        return one, "One replication has no interval: --replications 5 shows how much chance there is in the figures."
    return one, f"± is the half-width of the 95 % interval between the {simulation.replications} replications."


def _named(name: str) -> str:
    return "all" if name == EVERY_CLASS else name


def _number(value: float) -> str:
    return NONE if value != value else significant(value)  # noqa: PLR0124 - nan: nothing was there to see


def _percent(part: float) -> str:
    return share(part).removesuffix(" %")


def _width(estimate: Estimate) -> str:
    return NONE if estimate.half_width is None else significant(estimate.half_width)
