"""Draw the pictures of explanations, tutorials and how-to pages: docs/figures/picture-*.svg (about two minutes).

Run from anywhere: `uv run python docs/generate/pictures.py [NAME ...]`. Every figure in a picture is computed here by
capplan; the pages add the text alternatives. The SVG is written by hand: it is small, its bytes repeat, and its colours
follow the reader's light or dark scheme. A phone shows it at three quarters of its size, where its text is readable.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import factorial, log10
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import pandas as pd

import capplan
from capplan.models.cassandra.consistency import available, need
from capplan.systems.registry import resolve, scenario

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "figures"
WIDTH = 480
STYLE = """
.paper{fill:#fff} text{font:15px sans-serif;fill:#1b1b1b} .soft{fill:#555} .grid{stroke:#ddd} .axis{stroke:#777}
.blue{stroke:#0a5ea8;fill:#0a5ea8} .red{stroke:#b3261e;fill:#b3261e} .green{stroke:#1a7f37;fill:#1a7f37}
.line{fill:none;stroke-width:2.5} .dash{stroke-dasharray:7 5} .band{stroke:none;fill-opacity:.2}
.box{fill:none;stroke:#777}
text.blue,text.red,text.green{stroke:none}
@media (prefers-color-scheme:dark){
.paper{fill:#131416} text{fill:#e6e6e6} .soft{fill:#aaa} .grid{stroke:#333} .axis{stroke:#999} .box{stroke:#999}
.blue{stroke:#6cb2ff;fill:#6cb2ff} .red{stroke:#ff8a80;fill:#ff8a80} .green{stroke:#6fdc8c;fill:#6fdc8c}
.line{fill:none} .band{stroke:none}}
"""


@dataclass
class Drawing:
    """An SVG picture in pixels, from the top left corner."""

    height: float
    parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, words: str, *, look: str = "", anchor: str = "start") -> None:
        """Write a line of text on the baseline `y`."""
        self.parts.append(f'<text x="{x:.0f}" y="{y:.0f}" class="{look}" text-anchor="{anchor}">{escape(words)}</text>')

    def line(self, points: Iterable[tuple[float, float]], look: str) -> None:
        """Draw a line through points."""
        self.parts.append(f'<polyline class="line {look}" points="{_places(points)}"/>')

    def area(self, points: Iterable[tuple[float, float]], look: str) -> None:
        """Fill the area inside points."""
        self.parts.append(f'<polygon class="band {look}" points="{_places(points)}"/>')

    def rule(self, start: tuple[float, float], end: tuple[float, float], look: str) -> None:
        """Draw a thin straight line."""
        (x1, y1), (x2, y2) = start, end
        self.parts.append(f'<line class="{look}" x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}"/>')

    def box(self, corner: tuple[float, float], width: float, height: float, look: str = "box") -> None:
        """Draw a rectangle."""
        x, y = corner
        self.parts.append(
            f'<rect class="{look}" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="4"/>'
        )

    def dot(self, x: float, y: float, look: str, radius: int = 5) -> None:
        """Draw a dot."""
        self.parts.append(f'<circle class="{look}" cx="{x:.0f}" cy="{y:.0f}" r="{radius}"/>')

    def svg(self) -> str:
        """Return the picture as text."""
        inside = "\n".join(self.parts)
        size = f'width="{WIDTH}" height="{self.height:.0f}" viewBox="0 0 {WIDTH} {self.height:.0f}"'
        paper = f'<rect class="paper" width="{WIDTH}" height="{self.height:.0f}"/>'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n<style>{STYLE}</style>\n{paper}\n{inside}\n</svg>\n'


def _places(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.0f},{y:.0f}" for x, y in points)


@dataclass
class Chart:
    """A drawing with two axes."""

    x: Sequence[float]
    y: Sequence[float]
    x_title: str
    y_title: str
    log_y: bool = False
    height: int = 320

    def __post_init__(self) -> None:
        """Draw axes, ticks and titles; the first and last ticks are the ends of the axes."""
        self.drawing = Drawing(self.height)
        self.left, self.right, self.top, self.bottom = 62.0, WIDTH - 26.0, 34.0, self.height - 50.0
        self.drawing.text(4, 18, self.y_title, look="soft")
        self.drawing.text(self.right, self.height - 8, self.x_title, look="soft", anchor="end")
        for tick in self.y:
            _, height = self.at(self.x[0], tick)
            self.drawing.rule((self.left, height), (self.right, height), "grid")
            self.drawing.text(self.left - 6, height + 5, f"{tick:,g}", anchor="end")
        for tick in self.x:
            place, _ = self.at(tick, self.y[0])
            self.drawing.text(place, self.bottom + 20, f"{tick:,g}", anchor="middle")
        self.drawing.rule((self.left, self.bottom), (self.right, self.bottom), "axis")

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the place of a point; what lies outside the axes is put on their edge."""
        low, high = self.y[0], self.y[-1]
        y = min(max(y, low), high)
        share = log10(y / low) / log10(high / low) if self.log_y else (y - low) / (high - low)
        across = (x - self.x[0]) / (self.x[-1] - self.x[0])
        return self.left + across * (self.right - self.left), self.bottom - share * (self.bottom - self.top)

    def line(self, x: Sequence[float], y: Sequence[float], look: str) -> None:
        """Draw a curve."""
        self.drawing.line([self.at(*point) for point in zip(x, y, strict=True)], look)

    def band(self, x: Sequence[float], low: Sequence[float], high: Sequence[float], look: str) -> None:
        """Fill the area between two curves."""
        there = [self.at(*point) for point in zip(x, high, strict=True)]
        back = [self.at(*point) for point in zip(x, low, strict=True)]
        self.drawing.area([*there, *reversed(back)], look)

    def label(self, x: float, y: float, words: str, look: str, *, anchor: str = "start", up: float = 0) -> None:
        """Write a text at a point, some pixels above it."""
        across, height = self.at(x, y)
        self.drawing.text(across, height - up, words, look=look, anchor=anchor)


def _answer(*words: str) -> Any:
    """Return the JSON that a command of capplan prints, whatever its verdict."""
    command = [str(Path(sys.executable).parent / "capplan"), *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603  # our own words
    return json.loads(done.stdout)


def load_and_latency() -> str:
    """Draw mean and p99 of accounting requests against load, with the band of p99 and what can be promised."""
    rates = [2500, 5000, 7500, 10_000, 12_500, 15_000, 17_500, 20_000]
    answers = [capplan.predict(capplan.scenario(dcs=3, cass_nodes=6, tps=float(rate))) for rate in rates]
    latency = [each.latency_ms["acct"] for each in answers]
    promised = [next(p.promise_ms for p in each.promises if p.metric == "acct.p99") for each in answers]
    chart = Chart(
        (0, 5000, 10_000, 15_000, 20_000), (1, 10, 100, 1000), "peak rate, TPS", "latency of acct, ms", log_y=True
    )
    chart.band(rates, [each.p99.low for each in latency], [each.p99.high for each in latency], "red")
    chart.line(rates, [each.p99.value for each in latency], "red")
    chart.line(rates, promised, "green dash")
    chart.line(rates, [each.mean.value for each in latency], "blue")
    chart.label(2700, latency[0].mean.value, "mean", "blue", up=-22)
    chart.label(10_500, 14, "p99 with its band", "red")
    chart.label(500, 250, "p99 to promise at 90 % (dashed)", "green")
    return chart.drawing.svg()


def way_of_a_request() -> str:
    """Follow a request through the machines, with the median times of the default system on fresh data."""
    times = {name: 1e3 * float(np.median(value)) for name, value in resolve(scenario()).values.items()}
    machines = (
        ("Client", "sends a message of a session"),
        ("RADIUS server", f"holds a worker; {times['front_s']:.2f} ms of CPU"),
        ("Coordinator", f"{times['coordinator_s']:.2f} ms of CPU for each statement"),
        (
            "3 replicas",
            f"{times['replica_read_s']:.2f} ms of CPU for a read, {times['mutation_s']:.2f} ms for a write",
        ),
        ("Storage path", f"{times['storage_s']:.2f} ms for a write; nobody waits for it"),
    )
    drawing = Drawing(76.0 * len(machines) + 4)
    for place, (name, does) in enumerate(machines):
        top = 76 * place + 4
        drawing.box((4, top), WIDTH - 8, 48)
        drawing.text(14, top + 20, name, look="blue")
        drawing.text(14, top + 40, does)
        if place:
            drawing.rule((40, top - 28), (40, top), "axis")
            way = f"{times['lan_s']:.1f} ms of network" if place < len(machines) - 1 else "inside each replica"
            drawing.text(52, top - 9, way, look="soft")
    return drawing.svg()


def lost_data_centre() -> str:
    """Show for each level of writes how many replicas must answer, how many are left, and whether writes go on."""
    drawing = Drawing(366)
    top = 0
    for dcs in (2, 3):
        drawing.text(4, top + 20, f"Writes with {dcs} data centres, one of them lost", look="blue")
        alive, replicas = [3] * (dcs - 1) + [0], [3] * dcs
        for row, level in enumerate(("ONE", "LOCAL_QUORUM", "QUORUM", "EACH_QUORUM", "ALL")):
            y, wanted = top + 50 + 28 * row, need(level, replicas, 0)
            goes_on = available(level, replicas, alive, 0)
            drawing.text(4, y, level)
            for dc in range(dcs):
                for copy in range(3):
                    x = 152 + 62 * dc + 17 * copy
                    drawing.dot(x, y - 5, "green" if alive[dc] else "box", 6)
                    if not alive[dc]:
                        drawing.rule((x - 4, y - 9), (x + 4, y - 1), "red")
            words = f"needs {wanted.total or sum(wanted.by_dc.values())}: {'goes on' if goes_on else 'stops'}"
            drawing.text(WIDTH - 4, y, words, look="green" if goes_on else "red", anchor="end")
        top += 186
    return drawing.svg()


def peak_mean_and_burst() -> str:
    """Count the arrivals of two simulated minutes in quarters of a second; bursts have twice the mean rate."""
    layout, traffic = ("--dcs", "3", "--cass-nodes", "6"), ("--tps", "8000", "--burst-ratio", "2", "--duration", "2m")
    with TemporaryDirectory() as folder:
        trace = Path(folder, "trace.parquet")
        _answer("simulate", *layout, *traffic, "--trace", str(trace))
        intended_s = pd.read_parquet(trace, columns=["intended_ns"])["intended_ns"].to_numpy() / 1e9
    step = 0.25
    counts, edges = np.histogram(intended_s, bins=np.arange(0, 120 + step, step))
    chart = Chart((0, 30, 60, 90, 120), (0, 2000, 4000, 6000, 8000, 10_000), "seconds", "arrivals per second")
    chart.line([float(each) for each in edges[:-1]], [count / step for count in counts], "blue")
    for rate, words, look, up in ((8000, "peak", "red", 8), (4000, "mean", "green", 26)):
        chart.line((0, 120), (rate, rate), f"{look} dash")
        chart.label(120, rate, words, look, anchor="end", up=up)
    return chart.drawing.svg()


def around_a_loss() -> str:
    """Show what completes and what is sent again around the loss of a node, as the page's command simulates it."""
    answer = _answer("outages", "openprovider", "--dcs", "3", "--cass-nodes", "6", "--tps", "3000", "--lose", "node")
    transient = answer["transients"][0]
    middles = [sum(pair) / 2 for pair in zip(transient["boundaries_s"], transient["boundaries_s"][1:], strict=False)]
    chart = Chart((0, 30, 60, 90, 120), (0, 3000, 6000, 9000, 12_000), "seconds", "requests per second")
    for name, look in (("completed_per_s", "blue"), ("retries_per_s", "red")):
        chart.line(middles, transient["series"][name]["median"], look)
    lost, back = transient["lost_s"], transient["returned_s"]
    for second, words, side in (
        (lost, "lost", "end"),
        (lost + transient["detection_s"], "noticed", "start"),
        (back, "back", "start"),
    ):
        across, _ = chart.at(second, 0)
        chart.drawing.rule((across, chart.top), (across, chart.bottom), "axis")
        chart.drawing.text(across + (4 if side == "start" else -4), chart.top + 14, words, look="soft", anchor=side)
    chart.label(118, 8000, "completed", "blue", anchor="end")
    chart.label(118, 7000, "sent again", "red", anchor="end")
    return chart.drawing.svg()


def one_queue_or_four() -> str:
    """Draw the mean time of a read against load, by formula and simulated, with one queue and with four."""
    rates = [float(rate) for rate in range(20, 380, 10)]
    chart = Chart((0, 100, 200, 300, 400), (0, 20, 40, 60, 80), "reads per second", "mean time, ms")
    for file, words, look, formula in (
        ("lanes", "a queue for each worker", "red", lambda rate: 10 / (1 - rate / 400)),
        ("lookup", "one queue", "blue", _one_queue_ms),
    ):
        shown = [rate for rate in rates if formula(rate) <= chart.y[-1]]
        chart.line(shown, [formula(rate) for rate in shown], look)
        run = _answer("simulate", f"docs/examples/own-network/{file}.toml", "--duration", "20m")
        measured = run["classes"]["read"]["latency_ms"]["intended"]["mean"]["value"]
        chart.drawing.dot(*chart.at(300, measured), look)
        chart.label(290, measured, words, look, anchor="end", up=10 if file == "lanes" else -22)
    chart.label(4, 76, "lines: formulas; dots: simulated", "soft")
    return chart.drawing.svg()


def _one_queue_ms(rate: float) -> float:
    """Return the mean time of M/M/4 with services of 10 ms, by Erlang's formula C."""
    load = rate / 100
    waiting = load**4 / factorial(4) * 4 / (4 - load)
    return 10 + waiting / (waiting + sum(load**busy / factorial(busy) for busy in range(4))) * 10 / (4 - load)


def risk_and_machines() -> str:
    """Draw the risk of 45,000 TPS against the nodes of a data centre, with all three and after the loss of one."""
    nodes = list(range(13, 20))
    layouts = [capplan.scenario(dcs=3, cass_nodes=each, tps=45_000.0) for each in nodes]
    answers = [capplan.predict(each, engine="analytic", lose=("dc",)).verdict for each in layouts]
    chart = Chart((13, 15, 17, 19), (0, 25, 50, 75, 100), "Cassandra nodes per data centre", "risk, %")
    for place, (words, look) in enumerate((("all data centres", "blue"), ("one lost", "red"))):
        risks = [100 * each.situations[place].risk for each in answers if each is not None]
        chart.line(nodes, risks, look)
        chart.label(*((13.1, 40) if place == 0 else (16, 60)), words, look)
    chart.line((13, 19), (10, 10), "green dash")
    chart.label(19, 10, "10 % accepted", "green", anchor="end", up=7)
    return chart.drawing.svg()


def data_factor() -> str:
    """Draw the capacity of the default layout of six nodes against the data factor, with its band."""
    factors = [1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0]
    layouts = [capplan.scenario(dcs=3, cass_nodes=6, data_factor=each) for each in factors]
    bands = [each.peak_tps for each in (capplan.predict(one, engine="analytic").capacity for one in layouts) if each]
    chart = Chart((1, 1.5, 2, 2.5, 3), (0, 10_000, 20_000, 30_000), "data factor", "capacity, peak TPS")
    chart.band(factors, [each.low for each in bands], [each.high for each in bands], "blue")
    chart.line(factors, [each.value for each in bands], "blue")
    chart.label(1.02, 2000, "as tested", "soft")
    chart.label(3, 2000, "expected, unmeasured: 2 to 3", "soft", anchor="end")
    return chart.drawing.svg()


def demand_and_capacity() -> str:
    """Show the rate that subscribers need, by month, and what three nodes in each data centre carry."""
    answer = _answer("demand", "docs/examples/demand.toml", "--cass-nodes", "3")
    months, carried = answer["months"], answer["layout"]["capacity"]
    rates = [each["busy_hour_per_s"] for each in months]
    at = [each["month"] for each in months]
    chart = Chart((0, 12, 24, 36), (0, 4000, 8000, 12_000), "months", "requests per second")
    chart.band((0, 36), (carried["low"],) * 2, (carried["high"],) * 2, "green")
    chart.line((0, 36), (carried["value"],) * 2, "green dash")
    chart.band(at, *([each[side] for each in rates] for side in ("low", "high")), "blue")
    chart.line(at, [each["value"] for each in rates], "blue")
    chart.label(1, carried["value"], "carried, with its band", "green", up=8)
    chart.label(1, rates[0]["value"], "needed in the busy hour", "blue", up=-20)
    return chart.drawing.svg()


PICTURES: dict[str, Callable[[], str]] = {
    "load-and-latency": load_and_latency,
    "way-of-a-request": way_of_a_request,
    "lost-data-centre": lost_data_centre,
    "peak-mean-and-burst": peak_mean_and_burst,
    "around-a-loss": around_a_loss,
    "one-queue-or-four": one_queue_or_four,
    "risk-and-machines": risk_and_machines,
    "data-factor": data_factor,
    "demand-and-capacity": demand_and_capacity,
}


def main() -> int:
    """Draw the pictures that are named, or all."""
    for name in sys.argv[1:] or PICTURES:
        (FIGURES / f"picture-{name}.svg").write_text(PICTURES[name](), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
