"""A sweep for people: one line a point, the columns that tell points apart, and how each does."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from capplan.cli.figures import Format, given
from capplan.cli.layout import table
from capplan.models.number_words import rate, significant
from capplan.planner.explore.sweep_table import Row, band_columns
from capplan.systems.openprovider.network import REPORTED

WIDEST = 500  # columns
SHOWN = {  # of a layout: the column and its heading
    "dcs": ("dcs", "DCs"),
    "cass_nodes": ("cass_nodes", "nodes"),
    "rf": ("rf", "RF"),
    "front_nodes": ("front_nodes", "fronts"),
    "front_workers": ("front_workers", "workers"),
    "consistency_read": ("consistency_read", "reads"),
    "consistency_write": ("consistency_write", "writes"),
    "rtt": ("rtt_ms", "RTT ms"),
    "distance_km": ("distance_km", "km"),
    "proxy": ("proxy", "proxy"),
    "ldap": ("ldap", "LDAP"),
    "data_factor": ("data_factor", "factor"),
    "encryption": ("encryption", "encrypted"),
    "vpn": ("vpn", "in"),
}


def render(rows: Sequence[Row], options: Sequence[str], screen: Console) -> None:
    """Print the points of a sweep; `options` are those that were given."""
    answered = [row for row in rows if row["refused"] is None]
    swept = [SHOWN[name] for name in options if name in SHOWN and len({str(row[SHOWN[name][0]]) for row in rows}) > 1]
    lines = _lines(answered, swept, banded=True)
    if _width(lines, screen) > screen.width:
        lines = _lines(answered, swept, banded=False)
    screen.width = max(screen.width, _width(lines, screen))  # a table that is wrapped or cut cannot be read
    screen.print(lines)
    for why in dict.fromkeys(row["refused"] for row in rows if row["refused"] is not None):
        screen.print(f"refused: {why}")
    screen.print("\nRates are totals over all DCs; in parentheses the 5th to the 95th percentile.")
    screen.print("Evidence: how far a layout lies from those that were measured.")
    screen.print("Carried: even the low end of the capacity is at least the rate.")
    screen.print(_engine(answered))
    if any(row["encryption"] is not None for row in answered):
        screen.print("Encrypted links are taken to cost any part of what they did in 2011: a guess, see predict.")
    if any(row[f"{name}_p99_ms"] is None for row in answered for name in REPORTED):
        screen.print("Beyond capacity no latency is given: queues grow, and requests are turned away.")


def _engine(rows: Sequence[Row]) -> str:
    parts = [row["simulation"] for row in rows if row["simulation"] is not None]
    if not parts:
        return "Latencies are those of the analytic solver."
    most = f"{max(parts):.1%}".replace("%", " %")
    return f"Latencies are simulated; at most {most} of a figure is the simulation's part of its band."


def _width(lines: Table, screen: Console) -> int:
    """Return the columns of the terminal that a table takes when it takes what it needs."""
    return screen.measure(lines, options=screen.options.update(width=WIDEST)).maximum


def _lines(rows: Sequence[Row], swept: Sequence[tuple[str, str]], banded: bool) -> Table:
    """Return a line for each point, with the bands in it or on a line of their own below."""
    lines = table(
        *((heading, "right") for _, heading in swept),
        ("TPS", "right"),
        ("evidence", "left"),
        ("carried", "left"),
        ("capacity", "right"),
        *((f"{name} p99 ms", "right") for name in REPORTED),
    )
    for row in rows:
        cells = [_band(row, "capacity_tps", rate), *(_band(row, f"{name}_p99_ms", significant) for name in REPORTED)]
        named = [*(_cell(row[column]) for column, _ in swept), given(row["offered_tps"])]
        verdicts = [row["extrapolation"], "yes" if row["carries"] else "no"]
        if banded:
            lines.add_row(*named, *verdicts, *(" ".join(cell) for cell in cells))
        else:
            lines.add_row(*named, *verdicts, *(value for value, _ in cells))
            lines.add_row(*("" for _ in (*named, *verdicts)), *(band for _, band in cells), style="dim")
    return lines


def _band(row: Row, name: str, form: Format) -> tuple[str, str]:
    """Return a figure and its band, in parentheses."""
    value, low, high = (row[column] for column in band_columns(name))
    if value is None:
        return "", ""
    return form(value), f"({form(low)}-{form(high)})"


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return significant(value) if isinstance(value, float) else str(value)
