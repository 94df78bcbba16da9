"""`capplan collect`: small measurements of real servers, as tables that the audit and calibrations read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from capplan.cli.shell.progress import working
from capplan.cli.shell.terminal import TABLE_ENDINGS, Json, TableFile, check_output, naming, print_answer
from capplan.errors import InputError, look_up
from capplan.models.cassandra.consistency import check_level
from capplan.models.language.units import parse_count, parse_duration_s, parse_share, parse_size_bytes

if TYPE_CHECKING:
    from capplan.lab.collectors.collector import Collected, Settings


_SHORTEST_S, _LONGEST_S = 0.2, 600.0
_MOST_CLIENTS = 1024
_MOST_ROW_BYTES = 1 << 20
_MOST_REPEATS = 100


def collect_(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="What to measure; without it, the names are listed.")
    ] = "",
    out: TableFile = None,
    duration: Annotated[str | None, typer.Option(metavar="TIME", help="Duration of a run.", show_default="15s")] = None,
    requests: Annotated[
        str | None, typer.Option(metavar="N", help="Most requests of a run.", show_default="10M")
    ] = None,
    warm_up: Annotated[
        str | None, typer.Option(metavar="TIME", help="Most time to wait for a steady speed.", show_default="2min")
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
    from capplan.lab.collectors.collector import COLLECTORS, Collection, Files
    from capplan.lab.packages import check_installed

    if not name:
        _list(as_json)
        return
    collector = look_up(COLLECTORS, name, f"{name!r} is not a collector")
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
    from capplan.reports.live import collected

    written = _write(found, out)
    files = Files(**{what: str(path) for what, path in written.items()})
    answer = Collection(name, collector.parameter, files, found.remarks)
    print_answer(answer, lambda: collected(found, written), as_json)


def _list(as_json: bool) -> None:
    from capplan.lab.collectors.collector import COLLECTORS, CollectorList, KnownCollector
    from capplan.reports.live import collectors

    known = [KnownCollector(name, each.about, each.parameter) for name, each in COLLECTORS.items()]
    print_answer(CollectorList(tuple(known)), lambda: collectors(COLLECTORS), as_json)


def read_settings(given: dict[str, Any]) -> Settings:
    """Read the options."""
    from capplan.lab.collectors.collector import Settings

    read: dict[str, tuple[str, Any]] = {
        "duration": ("duration_s", lambda text: _time_s(text, _SHORTEST_S)),
        "requests": ("requests", parse_count),
        "warm_up": ("warm_up_s", lambda text: _time_s(text, 0.0)),
        "level": ("level", check_level),
        "row_bytes": ("row_bytes", lambda text: int(_between(parse_size_bytes(text), 1, _MOST_ROW_BYTES))),
        "clients": ("clients", _clients),
        "rates": ("shares", _shares),
        "repeats": ("repeats", lambda count: int(_between(count, 1, _MOST_REPEATS))),
        "seed": ("seed", int),
    }
    found: dict[str, Any] = {}
    for option, value in given.items():
        field, parse = read[option]
        with naming(f"--{option.replace('_', '-')}"):
            found[field] = parse(value)
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


def _clients(text: str) -> tuple[int, ...]:
    found = tuple(parse_count(each) for each in text.split(","))
    return tuple(int(_between(each, 1, _MOST_CLIENTS)) for each in sorted(found))


def _shares(text: str) -> tuple[float, ...]:
    if text.strip() == "-":
        return ()
    return tuple(_between(parse_share(each), 0.01, 1.0) for each in text.split(","))


def _write(found: Collected, out: Path) -> dict[str, Path]:
    """Write what was measured, and return the paths."""
    from capplan.cli.evidence import write_tables
    from capplan.evidence.load_tests import LOAD_TESTS
    from capplan.evidence.microbenchmarks import MICROBENCHMARKS
    from capplan.lab.collectors.collector import write_histograms

    tables = LOAD_TESTS.frame(found.load_tests), MICROBENCHMARKS.frame(found.microbenchmarks)
    written = dict(write_tables(*tables, out))
    if found.histograms:
        written["histograms"] = out.with_name(f"{out.stem}.hlog")
        write_histograms(found.histograms, written["histograms"])
    return written
