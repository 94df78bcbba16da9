"""Histograms as an HdrHistogram log in ns, which `capplan evidence import` reads, and other tools do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from capplan.lab.collectors.collector import Timed
from capplan.models.replaced_file import replace_file

_NS_PER_MS = 1e6


def write_histograms(found: Sequence[Timed], path: Path) -> None:
    """Write a line for each histogram; its tag is the name of the run."""
    lines = ["#[Histogram log format version 1.3]", "# latencies in ns, from the intended start in open runs"]
    start = min(each.began_s for each in found)
    lines.append(f"#[StartTime: {start:.3f} (seconds since epoch)]")
    lines.append('"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"')
    for each in found:
        longest_ms = each.histogram.get_max_value() / _NS_PER_MS
        times = f"{each.began_s - start:.3f},{each.ended_s - each.began_s:.3f},{longest_ms:.3f}"
        lines.append(f"Tag={each.tag},{times},{each.histogram.encode().decode('ascii')}")
    replace_file(path, "\n".join(lines) + "\n")
