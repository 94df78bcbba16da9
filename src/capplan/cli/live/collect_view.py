"""Collections for people: what was measured, and where it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from capplan.calibration.evidence.load_tests import LoadTestRow
from capplan.calibration.evidence.microbenchmarks import MicrobenchRow
from capplan.cli.views.lines import paragraph, put
from capplan.cli.views.tables import table
from capplan.lab.collectors.collector import Collected, Collector

_FACTORS = {"s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))}
_MOST_PARTS = 24
_CLOCK = "cpu clock"
_SERVERS = ("nodes", "server")  # all of them together
_OF_RUNS = (*_SERVERS, "load generator")  # parts whose figures stand beside each run


def listed(collectors: Mapping[str, Collector], console: Console) -> None:
    """Print every collector and the model parameter that it is for."""
    for name, each in collectors.items():
        put(console, name, "bold")
        paragraph(console, each.about, indent=2, hanging=2)
        paragraph(console, each.parameter, indent=2, hanging=2)


def collected(found: Collected, written: Mapping[str, Path], console: Console) -> None:
    """Print the figures in short, the remarks, and the files."""
    if found.load_tests:
        _runs(found, console)
    hidden = {_CLOCK, *_OF_RUNS} if found.load_tests else {_CLOCK}
    parts = [each for each in found.microbenchmarks if each.component not in hidden and each.value]
    if parts:
        _parts(parts, console)
    put(console)
    for remark in found.remarks:
        paragraph(console, remark[0].upper() + remark[1:] + ".", hanging=2)
    put(console)
    names = {"load_tests": "load tests", "microbenchmarks": "figures of parts", "histograms": "all latencies"}
    for what, path in written.items():
        put(console, f"{names[what]}: {path}")
    if "load_tests" in written:
        put(console, f"Next: capplan evidence audit {written['load_tests']}", "dim")


def _runs(found: Collected, console: Console) -> None:
    kinds = list(dict.fromkeys(row.request_class for row in found.load_tests))
    for kind in kinds:
        if len(kinds) > 1:
            put(console, kind or "", "bold")
        _runs_of(kind, found, console)
    paragraph(console, "node, client: CPU of a node and of the load generator; CPU/request: of all nodes together")
    put(console)


def _runs_of(kind: str | None, found: Collected, console: Console) -> None:
    shown = table(
        ("load", "left"), ("completed", "right"), ("p50", "right"), ("p99", "right"), ("node", "right"),
        ("client", "right"), ("CPU/request", "right"),
    )  # fmt: skip
    costs = {each.run_id: each for each in found.microbenchmarks if each.component in _SERVERS}
    for row in (each for each in found.load_tests if each.request_class == kind):
        cost = costs.get(row.run_id)
        shown.add_row(
            _load(row),
            f"{row.throughput_tps or 0:,.0f}/s",
            _ms(row.latency_p50_ms),
            _ms(row.latency_p99_ms),
            f"{row.node_cpu_percent or 0:.0f} %",
            f"{row.client_cpu_percent or 0:.0f} %",
            "" if cost is None else _with_error(cost),
        )
    console.print(shown)


def _parts(rows: Sequence[MicrobenchRow], console: Console) -> None:
    shown = table(("part", "left"), ("operation", "left"), ("quantity", "left"), ("", "left"), ("figure", "right"))
    for row in rows[:_MOST_PARTS]:
        statistic = None if row.statistic == "constant" else row.statistic
        quantity = (row.quantity or "").replace("_", " ")
        shown.add_row(row.component or "", row.operation or "", quantity, statistic or "", _with_error(row))
    console.print(shown)
    if len(rows) > _MOST_PARTS:
        put(console, f"and {len(rows) - _MOST_PARTS} more figures")


def _load(row: LoadTestRow) -> str:
    if row.load_kind == "closed":
        return f"{row.clients} closed"
    return f"{row.offered_tps or 0:,.0f}/s open"


def _ms(value: float | None) -> str:
    return "" if value is None else f"{_digits(value, 3)} ms"


def _with_error(row: MicrobenchRow) -> str:
    """Return a figure with half the width of its interval, in a unit that people use."""
    value = row.value or 0.0
    factor, unit = _scale(abs(value), row.unit or "")
    shown = _digits(value / factor, 3)
    if row.error_low is not None and row.error_high is not None:
        shown += f" ± {_digits((row.error_high - row.error_low) / 2 / factor, 2)}"
    return f"{shown} {unit}".rstrip()


def _digits(value: float, count: int) -> str:
    return f"{value:,.0f}" if abs(value) >= 10**count else f"{value:.{count}g}"


def _scale(value: float, unit: str) -> tuple[float, str]:
    """Return the largest unit that a value has at least one of."""
    if unit == "1":
        return 1.0, ""
    scales = _FACTORS.get(unit, ((1.0, unit),))
    return next((each for each in scales if value >= each[0]), scales[-1])
