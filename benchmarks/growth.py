"""How the cost of an answer grows along each axis: CPU seconds and memory of whole processes, exponents, and a plot."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measure import Answer

TITLE = "Growth"
NOTE = (
    "CPU seconds of one process, and its largest memory, at the first and the last value of each axis. The exponent is "
    "the slope of the logarithm of the CPU seconds against that of the axis, over its upper half: 1 is in proportion. "
    "Every process is measured once, imports included. `predict` with 1,000 nodes a DC costs less than with 300, "
    "because it does not simulate: runs that last until such a layout has settled would take too long, as `--explain` "
    "says.\n\n"
    "![CPU seconds and memory along each axis](../figures/growth.svg)"
)
ROOT = Path(__file__).parents[1]
PLOT = ROOT / "docs" / "figures" / "growth.svg"
ROWS = ROOT / "docs" / "live" / "measured.csv"
CAPPLAN = str(Path(sys.executable).with_name("capplan"))
THREE_DCS = "--dcs", "3", "--cass-nodes"
REQUESTS = 200_000
TPS_PER_NODE = 800.0  # a quarter of what a node carries
OF_DRAWS = """
from dataclasses import replace
import capplan
from capplan.systems.registry import resolve
case = replace(resolve(capplan.scenario(cass_nodes=6), None, 1), draws=int({n}))
for name in ("auth", "acct"):
    case.solution.at(6000.0).latencies_s(name)
"""
OF_CLASSES = """
from capplan import read_network
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import solve
network = read_network("{file}")
solve(Analysis(network), 50.0).quantile_s(0.99, *(each.name for each in network.classes))
"""
DRAW = """async ([figure, width]) => {
  const url = await Plotly.toImage(figure, {format: "svg", width: width, height: figure.layout.height});
  return decodeURIComponent(url.slice(url.indexOf(",") + 1));
}"""


@dataclass(frozen=True)
class Axis:
    """What grows: its name, the question, its values, and the command of a value, which may write files in a folder."""

    name: str
    question: str
    values: Sequence[int]
    command: Callable[[int, Path], Sequence[str]]


def _predict(dcs: int, nodes: int) -> list[str]:
    return [CAPPLAN, "predict", "--dcs", str(dcs), "--cass-nodes", str(nodes), "--front-nodes", str(_fronts(nodes))]


def _fronts(nodes: int) -> int:
    return max(2, 2 * nodes // 3)


def _simulate(nodes: int, rate: float, duration_s: float) -> list[str]:
    layout = [*THREE_DCS, str(nodes), "--front-nodes", str(_fronts(nodes))]
    run = ["--tps", f"{rate:g}", "--duration", f"{duration_s:.4f}s", "--replications", "1"]
    return [CAPPLAN, "simulate", "openprovider", *layout, *run]


def _of_nodes(nodes: int, _: Path) -> list[str]:
    rate = TPS_PER_NODE * 3 * nodes
    return _simulate(nodes, rate, REQUESTS / rate)


def _calibrate(rows: int, folder: Path) -> list[str]:
    table = folder / "rows.csv"
    table.write_text("\n".join(ROWS.read_text("utf-8").splitlines()[: 1 + rows]) + "\n", "utf-8")
    return [CAPPLAN, "calibrate", "cassandra", "--evidence", str(table), "-o", str(folder / "fitted.json")]


def _of_draws(draws: int, _: Path) -> list[str]:
    return [sys.executable, "-c", OF_DRAWS.format(n=draws)]


def _of_classes(classes: int, folder: Path) -> list[str]:
    """Solve a station with so many request classes, each with its own work."""
    file = folder / "network.toml"
    mix = ", ".join(f"c{number} = {1 / classes!r}" for number in range(classes))
    traffic = f"[traffic]\nkind = 'open'\nrate_per_s = 100\nmix = {{ {mix} }}\n"
    each = "[[classes]]\nname = 'c{}'\n[classes.flow]\nkind = 'visit'\nstation = 'cpu'\n"
    demand = "demand = {{ kind = 'exponential', mean_s = '{}ms' }}\n"
    flows = "".join((each + demand).format(number, 1 + number % 7) for number in range(classes))
    file.write_text(f"name = 'growth'\n[[stations]]\nname = 'cpu'\nservers = 4\n{flows}{traffic}", "utf-8")
    return [sys.executable, "-c", OF_CLASSES.format(file=file)]


AXES = (
    Axis("nodes a DC", "predict, 3 DCs", (3, 6, 12, 25, 50, 100, 200, 300, 1000), lambda n, _: _predict(3, n)),
    Axis("nodes a DC", f"simulate {REQUESTS:,} requests, 3 DCs", (3, 6, 12, 25, 50, 100, 200, 300, 1000), _of_nodes),
    Axis("DCs", "predict, 3 nodes each", (1, 2, 4, 8, 16, 32), lambda n, _: _predict(n, 3)),
    Axis("TPS", "simulate 5 s, 3 x 100 nodes", (10_000, 20_000, 40_000, 80_000), lambda n, _: _simulate(100, n, 5.0)),
    Axis("request classes", "analytic figures, a station", (1, 3, 10, 30, 100, 300, 1000), _of_classes),
    Axis("draws", "analytic figures, 3 x 6 nodes", (8, 32, 128, 512), _of_draws),
    Axis("rows", "calibrate cassandra", (5, 10, 20, 40), _calibrate),
)


def measured(mode: str) -> list[Answer]:
    """Measure all axes, or the first values of one, and return a row for each."""
    axes = AXES[:1] if mode == "quick" else AXES
    rows = [_row(axis, axis.values[:2] if mode == "quick" else axis.values) for axis in axes]
    if mode != "quick" and not any("wrong" in row for row in rows):
        _plot(rows)
    return rows


def _row(axis: Axis, values: Sequence[int]) -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        found = [_once(axis.command(n, Path(folder)), f"{axis.question}: {n} {axis.name}") for n in values]
    row: Answer = {"label": axis.question, "axis": axis.name, "values": list(values)}
    wrong = [each["failed"] for each in found if "failed" in each]
    if wrong:
        return {**row, "wrong": wrong}
    seconds, memory = ([each[key] for each in found] for key in ("cpu_s", "peak_mib"))
    upper = slice(len(values) // 2, None) if len(values) > 2 else slice(None)
    exponent = float(np.polyfit(np.log(values)[upper], np.log(seconds)[upper], 1)[0])
    return {**row, "cpu_s": seconds, "peak_mib": memory, "exponent": exponent}


def _once(command: Sequence[str], label: str) -> Answer:
    """Run a command and return its CPU seconds and its largest memory."""
    print(f"  {label}", file=sys.stderr, flush=True)
    with tempfile.TemporaryFile() as errors:
        streams = [
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, errors.fileno(), 2),
        ]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        _, status, usage = os.wait4(os.posix_spawn(command[0], command, environment, file_actions=streams), 0)
        errors.seek(0)
        last = (errors.read().decode().strip().splitlines() or ["it ended without a word"])[-1]
    if os.waitstatus_to_exitcode(status) > (command[0] == CAPPLAN):  # its 1 answers "no"
        return {"failed": last}
    return {"cpu_s": usage.ru_utime + usage.ru_stime, "peak_mib": usage.ru_maxrss / 1024}


def tables(found: list[Answer] | None) -> Iterator[tuple[str, str, list[list[str]]]]:
    """Yield title, note and cells."""
    if found:
        yield TITLE, NOTE, [["", "axis", "from", "to", "CPU s", "exponent", "peak MiB"], *map(_cells, found)]


def _cells(row: Answer) -> list[str]:
    ends = [f"{row['values'][end]:,}" for end in (0, -1)]
    if "wrong" in row:
        return [row["label"], row["axis"], *ends, "not counted: " + row["wrong"][0], "", ""]
    seconds, memory = row["cpu_s"], row["peak_mib"]
    spans = [f"{seconds[0]:.1f} to {seconds[-1]:.1f}", f"{row['exponent']:.2f}", f"{memory[0]:.0f} to {memory[-1]:.0f}"]
    return [row["label"], row["axis"], *ends, *spans]


def _plot(rows: list[Answer]) -> None:
    """Draw time and memory along the axes, by plotly in Chromium."""
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
        svg = tab.evaluate(DRAW, [_figure(rows), 760])
        browser.close()
    PLOT.write_text(svg + "\n", encoding="utf-8", newline="\n")


def _figure(rows: list[Answer]) -> dict[str, Any]:
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=2, subplot_titles=("CPU seconds", "Memory, MiB"), horizontal_spacing=0.12)
    colours = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#595959"
    for row, colour in zip(rows, colours, strict=True):
        times = [value / row["values"][0] for value in row["values"]]
        for column, key in ((1, "cpu_s"), (2, "peak_mib")):
            line = go.Scatter(
                x=times,
                y=row[key],
                name=f"{row['axis']}: {row['label']}, from {row['values'][0]:,}",
                mode="lines+markers",
                line={"color": colour},
                showlegend=column == 1,
            )
            figure.add_trace(line, row=1, col=column)
    figure.update_xaxes(title_text="times the first value", type="log", tickvals=[1, 2, 5, 10, 20, 50, 100, 300])
    figure.update_yaxes(type="log", dtick="D2")
    figure.update_layout(height=520, template="plotly_white", legend={"orientation": "h", "y": -0.2}, margin={"t": 40})
    plain: dict[str, Any] = json.loads(figure.to_json())
    return plain
