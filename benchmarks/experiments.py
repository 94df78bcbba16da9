"""Two workers against one: how much of a second processor capplan's experiments make use of."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from contenders import EXPERIMENTS, QUICK
from measure import Answer, once

TITLE = "Two workers against one"
NOTE = (
    "M/M/4 at five loads, {replications} replications of {requests:,} requests in all, by executors whose workers had "
    "everything compiled and took turns; results were the same bit for bit. Times as fast is the median of the ratios "
    "of turns, lowest and highest beside it."
)


def measured(mode: str) -> Answer:
    """Measure in one process that has all executors open."""
    return once(EXPERIMENTS, EXPERIMENTS.requests // (QUICK if mode == "quick" else 1), seed=1, pinned=False)


def tables(found: Answer | None) -> Iterator[tuple[str, str, list[list[str]]]]:
    """Yield title, note and cells."""
    if not found:
        return
    if "failed" in found:
        yield TITLE, "", [["", ""], ["not counted", found["failed"]]]
        return
    head = ["", "one worker, s", "two workers, s", "times as fast", "lowest to highest"]
    rows = [_cells(kind, seconds["1"], seconds["2"]) for kind, seconds in found["executors"].items()]
    yield TITLE, NOTE.format(**found), [head, *rows]


def _cells(label: str, one: list[float], two: list[float]) -> list[str]:
    return [label, f"{median(one):.2f}", f"{median(two):.2f}", *ratios_of(one, two)]


def ratios_of(one: list[float], two: list[float]) -> list[str]:
    """Return how many times as fast two workers are, turn by turn: the median, and lowest to highest."""
    ratios = sorted(alone / both for alone, both in zip(one, two, strict=True))
    return [f"{median(ratios):.2f}", f"{ratios[0]:.2f} to {ratios[-1]:.2f}"]
