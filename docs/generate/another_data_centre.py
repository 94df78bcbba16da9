"""Write docs/reference/another-data-centre.md: how long answers take that wait for another data centre.

Run from anywhere: `uv run python docs/generate/another_data_centre.py`. `another_data_centre_runs.py` measures, and
asks this file for its plan.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from stopped_nodes import lines

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "reference" / "another-data-centre.md"
FOLDER = PAGE.with_suffix("")
REQUESTS, LEAST_S, MOST_S = 300, 10.0, 30.0
"""Requests of a run where they take no more than the longest time, and the shortest and longest time of a run."""
PARTS = 5
"""Parts of a run, between which connections are idle: while they are busy, what waits for what stays as it began."""
LONG_MS = 40.0
"""Round trip from which on what a busy host adds matters little."""
SEGMENT = 1448
"""Bytes of a full segment."""
_WAYS = ("dc1 to dc2", "dc2 to dc1")
_ACKNOWLEDGED = -1  # instead of a request
_STEPS = 1000  # of a round trip, in the distribution of waits
AGREE, NEWER_HERE, NEWER_THERE = "", "newer here", "newer there"
"""Replicas that agree, and rows of which one replica is newer: that of the coordinator, or the other."""
_ROUND_TRIPS = {AGREE: 1, NEWER_THERE: 2, NEWER_HERE: 3}
"""Digest; then the rows themselves; then the newer row to the other replica."""


@dataclass(frozen=True)
class Planned:
    """A run of the plan.

    Attributes
    ----------
    nodelay : bool
        `inter_dc_tcp_nodelay` of the nodes.
    rtt_ms : float
        Round trip between the data centres.
    operation, level : str
        `read` or `write`, and its consistency level.
    row_bytes : int
        Bytes of a row.
    x : float
        Requests sent in a round trip.
    replicas : str
        Whether the replicas agree: one of `_ROUND_TRIPS`.
    """

    nodelay: bool
    rtt_ms: float
    operation: str
    level: str
    row_bytes: int
    x: float
    replicas: str = AGREE

    @property
    def name(self) -> str:
        """The name of the run."""
        what = f"{self.operation}-{self.level.lower()}-{self.row_bytes}b"
        what += f"-{self.replicas.replace(' ', '-')}" if self.replicas else ""
        return f"{what}-{self.rtt_ms:g}ms-x{self.x:g}-nodelay-{str(self.nodelay).lower()}"

    @property
    def rate_per_s(self) -> float:
        """Requests per second."""
        return self.x / (self.rtt_ms / 1e3)

    @property
    def duration_s(self) -> float:
        """The length of the run."""
        return min(max(REQUESTS / self.rate_per_s, LEAST_S), MOST_S)

    @property
    def part_s(self) -> float:
        """The length of a part of the run."""
        return self.duration_s / PARTS

    @property
    def round_trips(self) -> int:
        """Messages to the other data centre that a request waits for, one after another."""
        return 0 if self.level.startswith("LOCAL") else _ROUND_TRIPS[self.replicas]


def plan() -> list[Planned]:
    """Return all runs, those of one setting of the nodes after another."""
    both, small, large = ("write", "read"), 100, 4096
    parts = [
        *product((40.0,), both, ("QUORUM",), (small,), (0.1, 1.0, 5.0, 20.0)),
        *product((40.0,), both, ("LOCAL_QUORUM",), (small,), (5.0,)),
        *product((40.0,), both, ("EACH_QUORUM",), (small,), (5.0,)),
        *product((100.0,), both, ("QUORUM",), (small,), (0.1, 1.0, 5.0, 20.0)),
        *product((40.0,), ("write",), ("QUORUM",), (large,), (0.1, 1.0, 5.0, 20.0)),
        *product((40.0,), ("read",), ("QUORUM",), (large,), (1.0, 5.0)),
        *product((100.0,), ("write",), ("QUORUM",), (large,), (5.0, 20.0)),
        *product((40.0, 100.0), ("read",), ("QUORUM",), (small,), (1.0,), (NEWER_THERE, NEWER_HERE)),
        *product((10.0,), both, ("QUORUM",), (small,), (0.1, 1.0, 5.0)),
        *product((1.0,), both, ("QUORUM",), (small,), (0.1,)),
    ]
    return [Planned(nodelay, *each) for nodelay in (False, True) for each in parts]


# -- the law


def busy(messages: float) -> float:
    """Return the share of messages that find an earlier one unacknowledged.

    Parameters
    ----------
    messages : float
        Messages in a round trip, at times without memory.

    Notes
    -----
    A message that finds the connection idle keeps it busy for a round trip. If others come meanwhile, they leave
    together after it, and keep it busy for another one; so a busy time has exp(messages) round trips in the mean.
    """
    round_trips = messages * math.exp(min(messages, 700.0))
    return round_trips / (1 + round_trips)


def waits(run: Planned) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the distribution of what a request waits for acknowledgements, in steps of a round trip's thousandth.

    A message that is held waits for the rest of a round trip, of which each is as likely; all messages of a request
    wait independently.
    """
    found = np.ones(1)
    if run.nodelay:
        return found
    share = busy(run.round_trips * run.x)
    one = np.full(_STEPS, share / _STEPS)
    one[0] += 1 - share
    for _ in range(2 * run.round_trips):  # there and back
        found = np.convolve(found, one)
    return found


def law(run: Planned) -> dict[str, float]:
    """Return the mean, the median and the 99th percentile of answers, in round trips."""
    chances = waits(run)
    at = run.round_trips + np.arange(len(chances)) / _STEPS
    below = np.cumsum(chances)
    ends = {name: float(at[np.searchsorted(below, share - 1e-9)]) for name, share in (("p50", 0.5), ("p99", 0.99))}
    return {"mean": float(at @ chances), **ends}


# -- the simulation


class _Sender:
    """The sending end of a TCP connection with Nagle's algorithm, as Linux has it.

    Full segments leave at once; of smaller ones, one at a time is unacknowledged.
    """

    def __init__(self) -> None:
        self._held, self._payload, self.waiting = list[tuple[int, tuple[int, int]]](), 0, False

    def add(self, message: tuple[int, int], size: int) -> None:
        """Take a message to send."""
        self._payload += size
        self._held.append((self._payload, message))

    def leaving(self) -> tuple[list[tuple[int, int]], bool]:
        """Return the messages that end in what leaves now, and whether a small segment does."""
        sent = self._payload // SEGMENT * SEGMENT if self.waiting else self._payload
        small = sent % SEGMENT > 0
        leaving = [message for end, message in self._held if end <= sent]
        self._held = [(end - sent, message) for end, message in self._held if end > sent]
        self._payload -= sent
        self.waiting |= small
        return leaving, small


def simulated(run: Planned, sizes: Sequence[int], nodes_s: float, parts: int = PARTS) -> float:
    """Return the mean of answers, in round trips, of requests on two connections, one each way.

    Parameters
    ----------
    run : Planned
        The run.
    sizes : sequence of int
        Bytes of a message there and of one back.
    nodes_s : float
        Time that a request takes without the line, spread evenly over its stops.
    parts : int
        Parts of the run.

    Notes
    -----
    All nodes take the same time and the line never varies, so all is in whole nanoseconds. Of what happens at one time,
    an acknowledgement comes first.
    """
    rtt, stop = round(run.rtt_ms * 1e6), round(nodes_s * 1e9 / (2 * run.round_trips + 1))
    random, order, latencies = np.random.default_rng(1), count(), list[int]()
    for _ in range(parts):
        arrivals = random.uniform(0, run.part_s * 1e9, random.poisson(run.rate_per_s * run.part_s))
        starts = np.sort(arrivals).astype(np.int64).tolist()
        senders = (_Sender(), _Sender())
        events = [(at + stop, next(order), (request, 0)) for request, at in enumerate(starts)]
        heapq.heapify(events)
        while events:
            now, _, (request, hop) = heapq.heappop(events)
            sender = senders[hop % 2]
            if request == _ACKNOWLEDGED:
                sender.waiting = False
            else:
                sender.add((request, hop), sizes[hop % 2])
            leaving, small = sender.leaving()
            if small:
                heapq.heappush(events, (now + rtt, next(order), (_ACKNOWLEDGED, hop)))
            for each, arrived in leaving:
                if arrived + 1 < 2 * run.round_trips:
                    heapq.heappush(events, (now + rtt // 2 + stop, next(order), (each, arrived + 1)))
                else:
                    latencies.append(now + rtt // 2 + stop - starts[each])
    return fmean(latencies) / rtt


# -- the page


@dataclass(frozen=True)
class Point:
    """A run with Nagle's algorithm, and the same one without."""

    run: Planned
    nagle: Mapping[str, Any]
    nodelay: Mapping[str, Any]
    sizes: tuple[int, ...]

    @property
    def large(self) -> bool:
        """Whether a message fills a segment."""
        return max(self.sizes) > SEGMENT

    @cached_property
    def simulated(self) -> float:
        """The simulated mean with Nagle's algorithm, given what nodes took without it (median)."""
        nodes_s = (self.nodelay["p50"] - self.run.round_trips) * self.run.rtt_ms / 1e3
        return simulated(self.run, self.sizes, max(nodes_s, 0.0))


def points(folder: Path) -> list[Point]:
    """Return the runs that are there with both settings."""
    runs = {each["run_id"]: each for each in lines(folder)}
    found = []
    for run in plan():
        other = replace(run, nodelay=True)
        if not run.nodelay and run.name in runs and other.name in runs:
            found.append(Point(run, runs[run.name], runs[other.name], _sizes(run, runs.values())))
    return found


def _sizes(run: Planned, runs: Iterable[Mapping[str, Any]]) -> tuple[int, ...]:
    """Return the bytes of a message there and back, by the largest run of such requests without Nagle's algorithm."""
    alike = [
        each
        for each in runs
        if (each["operation"], each["row_bytes"], each["replicas"]) == (run.operation, run.row_bytes, run.replicas)
        and each["nodelay"]
    ]
    largest = max(alike, key=lambda each: each["requests"])
    messages = largest["requests"] * max(run.round_trips, 1)
    return tuple(
        round(max(size for name, (_, size) in largest["carried"].items() if name.startswith(way)) / messages)
        for way in _WAYS
    )


def table(found: Sequence[Point]) -> Iterator[str]:
    """Yield a line for each point."""
    for each in found:
        run, expected = each.run, law(each.run)
        what = f"{run.operation} {run.level}{f', {run.replicas}' if run.replicas else ''}"
        figures = (each.nagle, expected, each.nodelay)
        nagle, by_law, nodelay = (" / ".join(f"{its[name]:.2f}" for name in ("p50", "mean", "p99")) for its in figures)
        simulated_mean = f"{each.simulated:.2f}" if run.round_trips else "-"
        cells = (
            f"{run.rtt_ms:g} ms",
            what,
            f"{run.row_bytes:,}",
            f"{run.x:g}",
            f"{each.nagle['requests']:,}",
            nagle,
            by_law if run.round_trips else "-",
            simulated_mean,
            nodelay,
        )
        yield f"| {' | '.join(cells)} |"


def page(folder: Path = FOLDER) -> str:
    """Return the page of the runs that are there."""
    loader = Environment(loader=FileSystemLoader(HERE), undefined=StrictUndefined, keep_trailing_newline=True)  # noqa: S701  # Markdown
    runs, found = lines(folder), points(folder)
    long = [each for each in found if each.run.rtt_ms >= LONG_MS and each.run.round_trips]
    usual = [each for each in long if each.run.replicas == AGREE]
    too_slow = [each.simulated - each.nagle["mean"] for each in usual if each.run.x == 1]
    values = {
        "done": len(runs),
        "planned": len(plan()),
        "table": table(found),
        "usual": [
            (
                f"{x:g}",
                *(
                    _means([each for each in usual if each.run.x == x and each.large is large])
                    for large in (False, True)
                ),
            )
            for x in sorted({each.run.x for each in usual})
        ],
        "differing": [
            (replicas, _means([each for each in long if each.run.replicas == replicas]))
            for replicas in (NEWER_THERE, NEWER_HERE)
        ],
        "off_law": _range([each.nagle["mean"] / law(each.run)["mean"] for each in usual]),
        "off_simulated": _range([each.nagle["mean"] / each.simulated for each in long]),
        "at_one": (min(too_slow, default=0.0), max(too_slow, default=0.0)),
        "segment": f"{SEGMENT:,}",
        "sizes": _in_words({(each.run.operation, each.run.row_bytes): each.sizes for each in usual}),
        "busy": _range([100 * each["host_busy"] for each in runs], "{:.0f}"),
        "errors": sum(each["errors"] for each in runs),
        "added": max((each["added_ms"] for each in runs), default=0.0),
    }
    return loader.get_template("another-data-centre.md").render(values)


def _range(values: Sequence[float], form: str = "{:.2f}") -> str:
    ends = [form.format(each) for each in (min(values), max(values))] if values else ["-"]
    return " to ".join(dict.fromkeys(ends))


def _means(found: Sequence[Point]) -> tuple[str, str]:
    """Return the range of means with Nagle's algorithm, and without."""
    return _range([each.nagle["mean"] for each in found]), _range([each.nodelay["mean"] for each in found])


def _in_words(sizes: Mapping[tuple[str, int], tuple[int, ...]]) -> str:
    """Return how large messages are there and back, by operation and bytes of a row."""
    each = (f"{there:,} and {back} bytes ({operation}, {row:,})" for (operation, row), (there, back) in sizes.items())
    return ", ".join(each) or "-"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
