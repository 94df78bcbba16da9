"""Write docs/reference/maintenance.md from the tables that `just maintenance` measured on a lab.

Run from anywhere: `uv run python docs/generate/maintenance.py`. `maintenance_runs.py` measures.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from capplan.answers.number_words import significant
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.microbenchmarks import MICROBENCHMARKS

HERE = Path(__file__).resolve().parent
FOLDER, PAGE = HERE.parent / "reference" / "maintenance", HERE.parent / "reference" / "maintenance.md"
STATISTICS = ("latency_p50_ms", "latency_p99_ms", "latency_p999_ms")


def runs(name: str) -> pd.DataFrame:
    """Return the runs of a collector, with what went on beside each and its rate."""
    frame = LOAD_TESTS.read(FOLDER / f"{name}.csv")
    beside = frame["run_id"].str.split("-").str[1]
    return frame.assign(beside=beside, rate=frame["offered_tps"])


def latencies(name: str, beside: str = "with") -> Iterator[str]:
    """Yield one line for each rate: each statistic without and with the work, and the extreme factors between them."""
    frame = runs(name)
    for rate, own in frame.groupby("rate"):
        pairs = own.pivot(index="repeat", columns="beside", values=[*STATISTICS, "node_cpu_percent"])
        if beside not in pairs.columns.get_level_values(1):
            continue
        cells = [f"{rate:,.0f}/s"]
        for each in STATISTICS:
            without, its = pairs[each, "without"], pairs[each, beside]
            factor = its / without
            if factor.isna().any():
                cells.append("-")
                continue
            ends = dict.fromkeys((f"x{factor.min():.2g}", f"x{factor.max():.2g}"))
            cells.append(f"{significant(without.median())} to {significant(its.median())} ({' to '.join(ends)})")
        nodes = int(own["cass_nodes"].iloc[0])  # which share a core
        busy = [nodes * pairs["node_cpu_percent", each].median() for each in ("without", beside)]
        cells.append(" to ".join(f"{each:.0f} %" for each in busy))
        yield "| " + " | ".join(cells) + " |"


def cost(name: str, quantity: str) -> tuple[float, float, str]:
    """Return a figure, half the width of its 95 % interval, and its conditions."""
    frame = MICROBENCHMARKS.read(FOLDER / f"{name}.microbench.csv")
    row = frame[frame["quantity"] == quantity].iloc[0]
    return float(row["value"]), float(np.nan_to_num(row["error_high"] - row["value"])), str(row["conditions"])


def page() -> str:
    """Return the page."""
    loader = Environment(loader=FileSystemLoader(HERE), undefined=StrictUndefined, keep_trailing_newline=True)  # noqa: S701  # Markdown
    return loader.get_template("maintenance.md").render(latencies=latencies, cost=cost, significant=significant)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
