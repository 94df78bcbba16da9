"""Write docs/reference/data-volume.md from the tables that `just data-volume` measured on a lab.

Run from anywhere: `uv run python docs/generate/data_volume.py`. `data_volume_runs.py` measures.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from capplan.answers.number_words import significant
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.planner.data_factor import data_factor

HERE = Path(__file__).resolve().parent
FOLDER, PAGE = HERE.parent / "reference" / "data-volume", HERE.parent / "reference" / "data-volume.md"
FRESH = ("compacted", 0.2)
"""State and size that factors are against."""

LATENCIES = ("latency_p50_ms", "latency_p99_ms")
SHOWN = ("throughput_tps", "node_cpu_percent", "cpu_us", "user_us", "system_us", *LATENCIES, "read_kib")


@cache
def runs() -> pd.DataFrame:
    """Return all runs, with what each used for a request, and the factor of its CPU against the fresh data."""
    frame = LOAD_TESTS.read(FOLDER / "runs.csv").merge(pd.read_csv(FOLDER / "disk.csv"), on="run_id", validate="1:1")
    cores = frame["node_cpu_percent"] / 100 * frame["node_cores"]
    frame["cpu_us"] = 1e6 * cores / frame["throughput_tps"]
    frame["read_kib"] = 1024 * frame["read_mib"] / frame["completed"]
    for each in ("user", "system"):
        frame[f"{each}_us"] = 1e6 * frame[f"{each}_s"] / frame["completed"]
    alike = ["request_class", "load_kind", "repeat"]
    fresh = frame[(frame["state"] == FRESH[0]) & (frame["size"] == FRESH[1])].set_index(alike)["cpu_us"]
    frame["factor"] = frame["cpu_us"] / fresh.reindex(frame[alike].apply(tuple, axis=1)).to_numpy()
    return frame


def factors(repeats: pd.DataFrame) -> str:
    """Return the median factor of the repeats and its ends."""
    found = repeats["factor"]
    return f"**x{found.median():.3g}** ({found.min():.3g} to {found.max():.3g})"


def lines(operation: str, kind: str) -> Iterator[str]:
    """Yield a line for each size and state, with an operation under closed or open load."""
    frame = runs()
    frame = frame[(frame["request_class"] == operation) & (frame["load_kind"] == kind)]
    for state, size in product(("compacted", "aged"), sorted(frame["size"].unique())):
        repeats = frame[(frame["state"] == state) & (frame["size"] == size)]
        middle = {each: repeats[each].dropna().median() for each in SHOWN}
        parts = " + ".join(significant(middle[f"{each}_us"]) for each in ("user", "system"))
        yield " | ".join(
            [
                f"| {size:g} x, {state}",
                f"{middle['throughput_tps']:,.0f}",
                f"{middle['node_cpu_percent']:.0f} %",
                f"{significant(middle['cpu_us'])} ({parts})",
                "1" if (state, size) == FRESH else factors(repeats),
                *("-" if pd.isna(middle[each]) else significant(middle[each]) for each in LATENCIES),
                f"{middle['read_kib']:.1f} |",
            ]
        )


def sizes() -> Iterator[str]:
    """Yield a line for each size of data: rows, and MiB on disk in both states."""
    frame = runs()
    whole = frame[frame["request_class"] == "read"].groupby(["size", "state"])  # writes add SSTables
    for size, own in whole["data_gib"].first().mul(1024).unstack().iterrows():
        rows = frame.loc[frame["size"] == size, "rows"].iloc[0]
        yield f"| {size:g} x | {rows:,} | {own['compacted']:,.0f} MiB | {own['aged']:,.0f} MiB |"


def middle(operation: str, kind: str, size: float, state: str, column: str = "cpu_us") -> float:
    """Return the median of the repeats of a cell."""
    frame = runs()
    for name, value in (("request_class", operation), ("load_kind", kind), ("size", size), ("state", state)):
        frame = frame[frame[name] == value]
    return float(frame[column].median())


def mixed(size: float, state: str) -> str:
    """Return the factor of one read and one write together, at closed clients."""
    costs = [sum(middle(each, "closed", *cell) for each in ("read", "write")) for cell in ((size, state), FRESH[::-1])]
    return f"{costs[0] / costs[1]:.1f}"


def times(size: float, state: str) -> str:
    """Return the ratio of median latencies of reads at one rate."""
    both = [middle("read", "open", *cell, "latency_p50_ms") for cell in ((size, state), FRESH[::-1])]
    return f"{both[0] / both[1]:.1f}"


def stated(kind: str) -> str:
    """Return what `capplan evidence data-factor` says of reads of the largest aged data, from runs of one kind."""
    small, large = (f"data_gib {each} and request_class == 'read'" for each in ("< 0.1", "> 2.9"))
    factor = data_factor(LOAD_TESTS.read(FOLDER / "runs.csv"), small, f"{large} and load_kind == '{kind}'").factor
    return f"{significant(factor.value)} ({significant(factor.low)} to {significant(factor.high)})"


def page() -> str:
    """Return the page."""
    loader = Environment(loader=FileSystemLoader(HERE), undefined=StrictUndefined, keep_trailing_newline=True)  # noqa: S701  # Markdown
    frame = runs()
    of_writes = frame.loc[frame["request_class"] == "write", "factor"]
    values = {
        "version": frame["version"].iloc[0],
        "clients": f"{frame['clients'].max():.0f}",
        "repeats": frame["repeat"].max(),
        "sizes": sizes(),
        "lines": lines,
        "middle": middle,
        "mixed": mixed,
        "times": times,
        "stated": stated,
        "low": f"{of_writes.min():.2f}",
        "high": f"{of_writes.max():.2f}",
        "significant": significant,
        "disturbed": f"{frame['disturbed'].sum()} of {len(frame)} runs",
    }
    return loader.get_template("data-volume.md").render(values)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
