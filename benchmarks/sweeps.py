"""Sweeps as a user runs them: whole processes from the command to the table, by one worker and by two."""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from experiments import ratios_of
from measure import Answer

TITLE = "Sweeps"
NOTE = (
    "`capplan sweep` from the start of the command to the last row of the table. Times as fast is the median of the "
    "ratios of rounds, in which one worker and two took turns."
)
CAPPLAN = Path(sys.executable).with_name("capplan")
LAYOUTS = ("--dcs", "1..5", "--cass-nodes", "3..12:3")
PRECISION, WISH = 0.02, ("--precision", "p99<2%")
DASK = ("--dask", "local")
FIRST = ("--dcs", "1", "--load", "50%")  # so that everything is compiled and in the page cache


@dataclass(frozen=True)
class Sweep:
    """A sweep to be timed.

    Attributes
    ----------
    label
        Name in the table.
    engine
        What answers.
    points
        How many rows it must give.
    options
        Of the command.
    workers
        By how many workers it is run.
    rounds
        At most.
    """

    label: str
    engine: str
    points: int
    options: tuple[str, ...]
    workers: tuple[int, ...] = (1, 2)
    rounds: int = 9


RATES = (*LAYOUTS, "--tps", "10000..100000:10000")
LOADS = (*LAYOUTS, "--load", "40%..60%:5%", *WISH)
FEWER = ("--dcs", "1..3", "--cass-nodes", "3..6:3", "--load", "50%,60%", *WISH)
SWEEPS = (
    Sweep("analytic, processes", "analytic", 200, RATES),
    Sweep("analytic, Dask on this machine", "analytic", 200, (*RATES, *DASK)),
    Sweep("compiled, p99 within 2 %, processes", "compiled", 100, LOADS, workers=(2,), rounds=1),
    Sweep("fewer points", "compiled", 12, FEWER),
)


def measured(mode: str, rounds: int) -> list[Answer]:
    """Time all sweeps and return a row for each."""
    there = [each for each in SWEEPS if each.engine == "analytic" or mode != "quick"]
    for engine in sorted({each.engine for each in there}):
        _once(Sweep(f"{engine}, first", engine, 1, FIRST), 1)
    return [_row(each, min(rounds, each.rounds)) for each in there]


def _row(sweep: Sweep, rounds: int) -> Answer:
    answers = [(workers, _once(sweep, workers)) for _ in range(rounds) for workers in sweep.workers]
    row: Answer = {"label": sweep.label, "points": sweep.points}
    wrong = [answer["failed"] for _, answer in answers if "failed" in answer]
    if wrong:
        return {**row, "wrong": wrong}
    seconds = {f"{n}": [answer["seconds"] for each, answer in answers if each == n] for n in sweep.workers}
    return {**row, "seconds": seconds}


def _once(sweep: Sweep, workers: int) -> Answer:
    """Run the command; it must answer as many points as there should be, each as precisely as was asked."""
    print(f"  sweep: {sweep.label}, {sweep.points:,} points, {workers}", file=sys.stderr, flush=True)
    command = [str(CAPPLAN), "sweep", *sweep.options, "--engine", sweep.engine, "--processes", f"{workers}", "--csv"]
    start = time.perf_counter()
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if ended.returncode:
        return {"failed": (ended.stderr.strip().splitlines() or ["it ended without a word"])[-1]}
    rows = list(csv.DictReader(ended.stdout.splitlines()))
    answered = sum(not row["refused"] for row in rows)
    if answered != sweep.points:
        return {"failed": f"{answered:,} points answered of {sweep.points:,}"}
    widths = [float(row["simulation"]) for row in rows if row["simulation"]]
    if "--precision" in sweep.options and (len(widths) < sweep.points or max(widths) > PRECISION):
        return {"failed": f"{sum(each <= PRECISION for each in widths):,} points are as precise as was asked"}
    return {"seconds": seconds}


def tables(found: list[Answer] | None) -> Iterator[tuple[str, str, list[list[str]]]]:
    """Yield title, note and cells."""
    if found:
        head = [
            "",
            "points",
            "one worker, s",
            "two workers, s",
            "points/s by two",
            "times as fast",
            "lowest to highest",
        ]
        yield TITLE, NOTE, [head, *(_cells(row) for row in found)]


def _cells(row: Answer) -> list[str]:
    if "wrong" in row:
        return [row["label"], f"{row['points']:,}", "not counted: " + row["wrong"][0], "", "", "", ""]
    one, two = row["seconds"].get("1"), row["seconds"]["2"]
    ratios = ratios_of(one, two) if one else ["", ""]
    speed = row["points"] / median(two)
    alone = f"{median(one):.2f}" if one else ""
    return [row["label"], f"{row['points']:,}", alone, f"{median(two):.2f}", f"{speed:,.1f}", *ratios]
