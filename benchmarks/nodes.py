"""What an answer costs against the number of nodes: whole commands, from their start to their last line, and a plot."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from measure import Answer

TITLE = "Cost against nodes"
NOTE = (
    "Whole commands as a user runs them, and the largest memory of their processes. `predict` answers as it does by "
    "default, `simulate` starts about {:,} requests. openprovider has two RADIUS servers for three Cassandra "
    "nodes.\n\n![Time and memory against the number of Cassandra nodes](../figures/cost-against-nodes.svg)"
)
CAPPLAN = Path(sys.executable).with_name("capplan")
PLOT = Path(__file__).parents[1] / "docs" / "figures" / "cost-against-nodes.svg"
REQUESTS = 200_000
TPS_PER_NODE = 800.0  # a quarter of what a node carries
DRAW = """async ([figure, width]) => {
  const url = await Plotly.toImage(figure, {format: "svg", width: width, height: figure.layout.height});
  return decodeURIComponent(url.slice(url.indexOf(",") + 1));
}"""


@dataclass(frozen=True)
class Layout:
    """A layout to be timed: what names it on a command line, its data centres and its nodes in each."""

    system: str
    dcs: int
    nodes: int

    @property
    def label(self) -> str:
        """Name in the table."""
        return (
            f"{self.system}, {self.dcs} x {self.nodes}" if self.system == "openprovider" else f"fedora4, {self.nodes}"
        )

    @property
    def options(self) -> tuple[str, ...]:
        """Arguments of a command."""
        if self.system == "fedora4":
            return "fedora4", "--nodes", str(self.nodes)
        fronts = str(max(2, 2 * self.nodes // 3))
        return "openprovider", "--dcs", str(self.dcs), "--cass-nodes", str(self.nodes), "--front-nodes", fronts


LAYOUTS = (
    *(Layout("openprovider", 3, nodes) for nodes in (3, 6, 12, 25, 50, 100, 200, 300)),
    Layout("openprovider", 10, 30),
    Layout("fedora4", 1, 64),
)


def measured(mode: str, rounds: int) -> list[Answer]:
    """Time all layouts and return a row for each."""
    rows = [_row(layout, rounds) for layout in (LAYOUTS[:2] if mode == "quick" else LAYOUTS)]
    if mode != "quick" and not any("wrong" in row for row in rows):
        _plot(rows)
    return rows


def _row(layout: Layout, rounds: int) -> Answer:
    row: Answer = {"label": layout.label, "dcs": layout.dcs, "nodes": layout.dcs * layout.nodes}
    answers = {"predict": [_once("predict", layout) for _ in range(rounds)]}
    if layout.system == "openprovider":
        rate = TPS_PER_NODE * layout.dcs * layout.nodes
        options = ("--tps", f"{rate:g}", "--duration", f"{REQUESTS / rate:.4f}s", "--replications", "1")
        answers["simulate"] = [_once("simulate", layout, *options)]
    wrong = [answer["failed"] for each in answers.values() for answer in each if "failed" in answer]
    if wrong:
        return {**row, "wrong": wrong}
    for verb, found in answers.items():
        row[verb] = {key: median(answer[key] for answer in found) for key in ("seconds", "peak_mib")}
    return row


def _once(verb: str, layout: Layout, *more: str) -> Answer:
    print(f"  {verb}: {layout.label}", file=sys.stderr, flush=True)
    command = [str(CAPPLAN), verb, *layout.options, *more, "--json"]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    answer, errors = process.communicate()
    seconds = time.perf_counter() - start
    if process.returncode not in (0, 1):  # 1 answers "no"
        return {"failed": (errors.strip().splitlines() or ["it ended without a word"])[-1]}
    json.loads(answer)
    return {"seconds": seconds, "peak_mib": _peak_mib(command)}


def _peak_mib(command: list[str]) -> float:
    """Run a command once more and return the largest memory of its process."""
    silent = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    _, _, usage = os.wait4(os.posix_spawn(command[0], command, os.environ, file_actions=silent), 0)
    return float(usage.ru_maxrss) / 1024


def tables(found: list[Answer] | None) -> Iterator[tuple[str, str, list[list[str]]]]:
    """Yield title, note and cells."""
    if found:
        head = ["", "nodes", "predict, s", "peak MiB", "simulate, s", "peak MiB"]
        yield TITLE, NOTE.format(REQUESTS), [head, *(_cells(row) for row in found)]


def _cells(row: Answer) -> list[str]:
    if "wrong" in row:
        return [row["label"], f"{row['nodes']:,}", "not counted: " + row["wrong"][0], "", "", ""]
    cells = [row["label"], f"{row['nodes']:,}"]
    for verb in ("predict", "simulate"):
        cells += [f"{row[verb]['seconds']:.1f}", f"{row[verb]['peak_mib']:.0f}"] if verb in row else ["", ""]
    return cells


def _plot(rows: list[Answer]) -> None:
    """Draw time and memory of the layouts with three data centres, by plotly in Chromium."""
    from playwright.sync_api import sync_playwright
    from plotly.offline import get_plotlyjs

    chromium = shutil.which("chromium")
    if chromium is None:
        print("no plot: the Debian package chromium is missing", file=sys.stderr)
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.set_content("<!doctype html><html><body></body></html>")
        tab.add_script_tag(content=get_plotlyjs())
        svg = tab.evaluate(DRAW, [_figure([row for row in rows if row["dcs"] == 3]), 640])
        browser.close()
    PLOT.write_text(svg + "\n", encoding="utf-8", newline="\n")


def _figure(rows: list[Answer]) -> dict[str, Any]:
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=2, subplot_titles=("Time, s", "Memory, MiB"), horizontal_spacing=0.14)
    for verb, colour, symbol in (("predict", "#0072B2", "circle"), ("simulate", "#D55E00", "square")):
        for column, key in ((1, "seconds"), (2, "peak_mib")):
            figure.add_trace(
                go.Scatter(
                    x=[row["nodes"] for row in rows],
                    y=[row[verb][key] for row in rows],
                    name=verb,
                    mode="lines+markers",
                    marker={"symbol": symbol},
                    line={"color": colour},
                    showlegend=column == 1,
                ),
                row=1,
                col=column,
            )
    figure.update_xaxes(title_text="Cassandra nodes in 3 DCs", type="log", tickvals=[9, 36, 150, 900])
    figure.update_yaxes(rangemode="tozero")
    figure.update_layout(height=340, template="plotly_white", legend={"orientation": "h", "y": -0.3}, margin={"t": 40})
    plain: dict[str, Any] = json.loads(figure.to_json())
    return plain
