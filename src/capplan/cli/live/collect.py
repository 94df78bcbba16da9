"""`capplan collect`: small measurements of real servers, as tables that the audit and calibrations read."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from capplan.cli.shell.progress import working
from capplan.cli.shell.terminal import TABLE_ENDINGS, Json, Screen, check_output, write_json
from capplan.cli.views.lines import paragraph, put
from capplan.cli.views.tables import table
from capplan.models.errors import InputError
from capplan.models.language.units import parse_count, parse_duration_s, parse_share, parse_size_bytes

if TYPE_CHECKING:
    from capplan.calibration.evidence.load_tests import LoadTestRow
    from capplan.calibration.evidence.microbenchmarks import MicrobenchRow
    from capplan.lab.collectors.collector import Collected, Collector, Settings

_SHORTEST_S, _LONGEST_S = 0.2, 600.0
_MOST_CLIENTS = 1024
_MOST_ROW_BYTES = 1 << 20
_MOST_REPEATS = 100
_FACTORS = {"s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))}
_MOST_PARTS = 24
_CLOCK = "cpu clock"
_SERVERS = ("nodes", "server")  # all of them together
_OF_RUNS = (*_SERVERS, "load generator")  # parts whose figures stand beside each run


def collect_(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="What to measure; without it, the names are listed.")
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write the table to this .csv or .parquet file.", show_default=False),
    ] = None,
    duration: Annotated[str | None, typer.Option(metavar="TIME", help="Duration of a run.", show_default="5s")] = None,
    requests: Annotated[
        str | None, typer.Option(metavar="N", help="Most requests of a run.", show_default="200k")
    ] = None,
    warm_up: Annotated[
        str | None, typer.Option(metavar="TIME", help="Most time to wait for a steady speed.", show_default="40s")
    ] = None,
    level: Annotated[str | None, typer.Option(help="Consistency level.", show_default="LOCAL_ONE")] = None,
    row_bytes: Annotated[str | None, typer.Option(metavar="SIZE", help="Size of a row.", show_default="100B")] = None,
    clients: Annotated[
        str | None, typer.Option(metavar="N,...", help="Clients of each closed run.", show_default="1,4,16")
    ] = None,
    rates: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE,...",
            help="Rates of open runs, as shares of what the most clients complete; - for none.",
            show_default="20%,50%,80%",
        ),
    ] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="Repeats of each run.", show_default="1")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of arrivals and keys.", show_default="1")] = None,
    as_json: Json = False,
) -> None:
    """Measure one part of a real server.

    Load tests go to the table, figures of parts to a table beside it (.microbench), and all latencies to an
    HdrHistogram log (.hlog). Most collectors need a lab: 'capplan lab up'.
    """
    from capplan.lab.collectors.collector import find_collector
    from capplan.lab.packages import check_installed

    if not name:
        _list(as_json)
        return
    collector = find_collector(name)
    given: dict[str, Any] = {
        "duration": duration, "requests": requests, "warm_up": warm_up, "level": level, "row_bytes": row_bytes,
        "clients": clients, "rates": rates, "repeats": repeats, "seed": seed,
    }  # fmt: skip
    for option, value in given.items():
        if value is not None and option not in collector.uses:
            raise InputError(f"collector {name} does not use --{option.replace('_', '-')}: leave it out")
    settings = read_settings({option: value for option, value in given.items() if value is not None})
    check_installed()
    if out is None:
        raise InputError(f"say by -o where the figures go, such as -o {name}.parquet")
    check_output(out, TABLE_ENDINGS)
    from capplan.planner.live import server_forecast

    with working() as progress:
        found = collector.collect(settings, progress, server_forecast)
    _answer(name, found, _write(found, out), as_json)


def _list(as_json: bool) -> None:
    from capplan.lab.collectors.collector import COLLECTORS

    if as_json:
        write_json({name: {"about": each.about, "parameter": each.parameter} for name, each in COLLECTORS.items()})
    else:
        listed(COLLECTORS, Screen())


def read_settings(given: dict[str, Any]) -> Settings:
    """Read the options."""
    from capplan.lab.collectors.collector import Settings

    read: dict[str, tuple[str, Any]] = {
        "duration": ("duration_s", lambda text: _time_s(text, _SHORTEST_S)),
        "requests": ("requests", parse_count),
        "warm_up": ("warm_up_s", lambda text: _time_s(text, 0.0)),
        "level": ("level", str.upper),
        "row_bytes": ("row_bytes", lambda text: int(_between(_size(text), 1, _MOST_ROW_BYTES))),
        "clients": ("clients", _clients),
        "rates": ("shares", _shares),
        "repeats": ("repeats", lambda count: int(_between(count, 1, _MOST_REPEATS))),
        "seed": ("seed", int),
    }
    found: dict[str, Any] = {}
    for option, value in given.items():
        field, parse = read[option]
        try:
            found[field] = parse(value)
        except InputError as error:
            raise InputError(f"--{option.replace('_', '-')}: {error}") from None
    return Settings(**found)


def _between(value: float, least: float, most: float) -> float:
    if not least <= value <= most:
        raise InputError(f"{value:g} is out of range: give {least:g} to {most:g}")
    return value


def _time_s(text: str, least_s: float) -> float:
    found = parse_duration_s(text)
    if not least_s <= found <= _LONGEST_S:
        raise InputError(f"{text} is out of range: give {least_s:g}s to {_LONGEST_S:g}s")
    return found


def _size(text: str) -> float:
    return float(text) if re.fullmatch(r"\d+", text.strip()) else parse_size_bytes(text)


def _clients(text: str) -> tuple[int, ...]:
    found = tuple(parse_count(each) for each in text.split(","))
    return tuple(int(_between(each, 1, _MOST_CLIENTS)) for each in sorted(found))


def _shares(text: str) -> tuple[float, ...]:
    if text.strip() == "-":
        return ()
    return tuple(_between(parse_share(each), 0.01, 1.0) for each in text.split(","))


def _write(found: Collected, out: Path) -> dict[str, Path]:
    """Write what was measured, and return the paths."""
    from capplan.calibration.evidence.load_tests import LOAD_TESTS
    from capplan.calibration.evidence.microbenchmarks import MICROBENCHMARKS
    from capplan.cli.measurements.evidence_tables import write_tables
    from capplan.lab.collectors.collector import write_histograms

    tables = LOAD_TESTS.frame(found.load_tests), MICROBENCHMARKS.frame(found.microbenchmarks)
    written = dict(write_tables(*tables, out))
    if found.histograms:
        written["histograms"] = out.with_name(f"{out.stem}.hlog")
        write_histograms(found.histograms, written["histograms"])
    return written


def _answer(name: str, found: Collected, written: dict[str, Path], as_json: bool) -> None:
    if as_json:
        from capplan.lab.collectors.collector import SCHEMA, Collection, Files, find_collector

        files = Files(**{what: str(path) for what, path in written.items()})
        answer = Collection(name, find_collector(name).parameter, files, found.remarks)
        write_json({"schema": SCHEMA, **vars(answer)})
        return
    collected(found, written, Screen())
    sys.stdout.flush()


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
