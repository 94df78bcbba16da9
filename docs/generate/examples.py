"""Write the page about the example files, `docs/examples/README.md`, with the figures and verdicts of today.

Run from anywhere: `uv run python docs/generate/examples.py`. With `--check` it writes nothing, and exits with 1 if the
page is out of date. The text is in `examples.md`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from capplan.answers.number_words import rate, share
from capplan.models.language.document import read_network
from capplan.models.language.network import Network
from capplan.models.language.station import Differs
from capplan.planner.predict.predict import predict
from capplan.simulator.engine import simulate
from capplan.simulator.results.run import Run
from capplan.systems.registry import read_scenario

DOCS = Path(__file__).resolve().parents[1]
EXAMPLES, TEMPLATE = DOCS / "examples", DOCS / "generate" / "examples.md"
PAGE = EXAMPLES / "README.md"
SLOW_NODE = 4


@dataclass(frozen=True)
class Predicted:
    """What the page says of a prediction."""

    verdict: str
    capacity: str
    offered: str


@dataclass(frozen=True)
class LostNode:
    """What the page says of a run without one of three nodes: mean latencies in ms, by their start."""

    intended: str
    actual: str


@dataclass(frozen=True)
class Cluster:
    """What the page says of a run of the cluster of twelve: utilisation, and the 99th percentile in ms."""

    slow: str
    others: str
    p99_ms: str


@cache
def predicted(name: str) -> Predicted:
    """Predict an example, which has an objective, and say the answer with its exit code."""
    found = predict(read_scenario(EXAMPLES / name))
    if found.peak_tps is None or found.offered is None or found.verdict is None:
        raise ValueError(f"{name} has no capacity")
    verdict = f"{found.verdict.in_words()}, exit code {int(found.verdict.answer != 'yes')}"
    return Predicted(verdict, rate(found.peak_tps.value), rate(found.offered.peak_tps))


@cache
def lost_node() -> LostNode:
    """Simulate the three nodes of which one is down for a while."""
    run = simulate(read_network(EXAMPLES / "pauses-and-a-lost-node.toml"), 60.0, seed=1, warmup_s=6.0)
    means = (run.latency_mean_s(clock="intended"), run.latency_mean_s(clock="actual"))
    return LostNode(*(f"{mean * 1e3:.0f}" for mean in means))


@cache
def twelve() -> Cluster:
    """Simulate the cluster with a slow node."""
    return _described(_run(read_network(EXAMPLES / "cluster-of-twelve.toml")))


@cache
def eleven() -> Cluster:
    """Simulate the cluster without the slow node."""
    made = read_network(EXAMPLES / "cluster-of-twelve.toml")
    cassandra, *others = made.stations
    down = replace(cassandra, exceptions=(Differs(SLOW_NODE, down=True),))
    return _described(_run(replace(made, stations=(down, *others))))


def _run(network: Network) -> Run:
    return simulate(network, 10.0, seed=1, warmup_s=1.0)


def _described(run: Run) -> Cluster:
    busy = {number: run.stations[f"cassandra/{number}"].utilisation for number in range(1, 13)}
    slow = busy.pop(SLOW_NODE)
    p99_ms = run.latency_quantile_s(0.99, "read") * 1e3
    return Cluster(share(slow), share(sum(busy.values()) / len(busy)), f"{p99_ms:.1f}")


def units(text: str) -> list[str]:
    """Return the rows of tables and the paragraphs of a page, in order."""
    found: list[list[str]] = []
    before = ""
    for line in text.splitlines():
        alone = line.startswith("|") or before.startswith("|")
        if line and (alone or not before):
            found.append([])
        if line:
            found[-1].append(line)
        before = line
    return ["\n".join(lines) for lines in found]


def rendered(text: str) -> str:
    """Return a text of the template with its figures."""
    known = {each.__name__: each for each in (predicted, lost_node, twelve, eleven)}
    return Environment(undefined=StrictUndefined, keep_trailing_newline=True).from_string(text).render(known)  # noqa: S701  # text, not HTML


def generated() -> Iterator[tuple[str, str]]:
    """Yield each row or paragraph of the page that has figures: as the template has it, and as the page has it."""
    both = zip(units(TEMPLATE.read_text(encoding="utf-8")), units(PAGE.read_text(encoding="utf-8")), strict=True)
    yield from ((template, page) for template, page in both if "{{" in template)


def main() -> int:
    """Write the page, or check it."""
    text = rendered(TEMPLATE.read_text(encoding="utf-8"))
    stale = not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text
    if stale:
        sys.stderr.write(f"{PAGE.relative_to(DOCS.parent)} was out of date\n")
        if "--check" not in sys.argv:
            PAGE.write_text(text, encoding="utf-8")
    return int(stale and "--check" in sys.argv)


if __name__ == "__main__":
    raise SystemExit(main())
