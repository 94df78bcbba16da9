"""Write docs/reference/stopped-nodes.md: whom a pause of a node holds, predicted and then measured on a lab.

Run from anywhere: `uv run python docs/generate/stopped_nodes.py`. `stopped_nodes_runs.py` measures, and asks this file
for its plan, for the stops of a run, and for the predictions, which it writes before the first run with stops.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from capplan.answers.results import Band
from capplan.calibration.tables.figures import scatter_of
from capplan.calibration.tables.fit_table import fit_table
from capplan.calibration.tables.row_predictions import band_of, predict_table
from capplan.calibration.tables.solved_rows import solved_rows
from capplan.errors import InputError
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.layout.fitted_file import Fitted
from capplan.layout.table_system import with_unknown_layouts
from capplan.models.cassandra.pauses import NO_PAUSES, ReportedPauses
from capplan.reports.numbers import many
from capplan.systems.cassandra import SYSTEM

HERE = Path(__file__).resolve().parent
FOLDER, PAGE = HERE.parent / "reference" / "stopped-nodes", HERE.parent / "reference" / "stopped-nodes.md"
CALIBRATION, PREDICTED, JOURNAL = "calibration.csv", "predicted.json", "runs.jsonl"
NODES, CLIENTS, THINK_S = 3, 24, 0.030
LEVELS, POLICIES = ("QUORUM", "ONE"), ("round-robin", "token-aware")
SHARES, LENGTHS_S = (0.015, 0.04), (0.020, 0.060, 0.200, 0.800)
REPEATS, BASELINES = 3, ("before", "between", "after")
LEAST_S, LEAST_STOPS = 60.0, 30
"""Time and stops of all nodes that a run has at least."""
FITTED_S, FITTED_REPEATS = 30.0, 3
"""Length and number of the runs of a cell that the model is fitted to."""
NEAR, NEAR_POINTS = 0.25, 0.01
"""What a prediction may be off: a share of the measured loss, or of the throughput."""
_THROUGHPUT, _P99 = "throughput_tps", "latency_p99_ms"


@dataclass(frozen=True)
class Planned:
    """A run of the plan.

    Attributes
    ----------
    level, policy : str
        Consistency level, and how the driver chooses a node.
    repeat : int
        Number of the repeat.
    share, length_s : float
        Share of the time for which each node is stopped, and length of a stop; 0 for a run without stops.
    when : str
        One of `BASELINES`, for a run without stops.
    """

    level: str
    policy: str
    repeat: int
    share: float = 0.0
    length_s: float = 0.0
    when: str = ""

    @property
    def name(self) -> str:
        """The name of the run."""
        what = self.when or f"{100 * self.share:g}%-{1e3 * self.length_s:g}ms"
        return f"{self.level.lower()}-{self.policy}-{what}-{self.repeat}"

    @property
    def stops(self) -> int:
        """Stops of each node."""
        if not self.share:
            return 0
        return max(math.ceil(round(LEAST_S * self.share / self.length_s, 6)), math.ceil(LEAST_STOPS / NODES))

    @property
    def duration_s(self) -> float:
        """The length of the run, in which its stops have their share."""
        return self.stops * self.length_s / self.share if self.share else LEAST_S

    @property
    def point(self) -> tuple[str, str, float, float]:
        """What repeats have in common."""
        return self.level, self.policy, self.share, self.length_s


def plan() -> list[Planned]:
    """Return all runs in their order: whoever interrupts it has measured the most important ones."""
    found = []
    for repeat, policy, level in product(range(1, REPEATS + 1), POLICIES, LEVELS):
        points = [Planned(level, policy, repeat, share, length) for length, share in product(LENGTHS_S, SHARES)]
        half = len(points) // 2
        for when, own in zip(BASELINES, (points[:half], points[half:], []), strict=True):
            found += [Planned(level, policy, repeat, when=when), *own]
    return found


def stops_s(run: Planned, seed: int) -> list[list[float]]:
    """Return when the stops of each node begin: gaps have no memory, and nodes know nothing of one another.

    The number of stops is that of the plan, or else chance would decide their share. Given the number, points without
    memory are equally likely everywhere.
    """
    free_s = run.duration_s - run.stops * run.length_s
    found = []
    for node in range(NODES):
        gaps_end = np.sort(np.random.default_rng([seed, node]).uniform(0, free_s, run.stops))
        found.append((gaps_end + run.length_s * np.arange(run.stops)).tolist())
    return found


# -- the predictions


def predicted(fitted_rows: Sequence[LoadTestRow]) -> dict[str, Any]:
    """Return the predictions of all points by a fit to runs without stops."""
    fitted = fit_table(SYSTEM, fitted_rows)
    thinking = [each for each in fitted_rows if each.think_time_ms]
    scatter = scatter_of(SYSTEM.read(thinking))[_THROUGHPUT]
    cells = [each for each in thinking if each.repeat == 1]
    found = [each for base in cells for each in _of_cell(fitted, base, scatter)]
    return {"written_at": datetime.now(UTC).isoformat(timespec="seconds"), "points": found}


def _of_cell(fitted: Fitted, base: LoadTestRow, scatter: float) -> Iterator[dict[str, Any]]:
    """Yield the predictions of a level and a policy.

    A loss is between two predictions with the same parameters, so what the fit misses is in both. What repeats scatter
    is not: the mean of the repeats is predicted, each beside its runs without stops.
    """
    stops = {(share, length): str(ReportedPauses(share, length, 0.0)) for share, length in product(SHARES, LENGTHS_S)}
    rows = [replace(base, gc=gc, run_id=gc) for gc in (NO_PAUSES, *stops.values())]
    read = SYSTEM.read(rows)
    values = with_unknown_layouts(SYSTEM, fitted, (each.layout for each in read))
    without, *held = (
        each.figures[_THROUGHPUT] for each in solved_rows(SYSTEM, read, values, [[_THROUGHPUT]] * len(read))
    )
    of_repeats = scatter / fitted.its_table.scatter[_THROUGHPUT] * math.sqrt((1 + 1 / len(BASELINES)) / REPEATS)
    figures = {(each.run_id, each.quantity): _ends(each.predicted) for each in predict_table(SYSTEM, fitted, rows)}
    for ((share, length), gc), rate in zip(stops.items(), held, strict=True):
        value, low, high = _ends(band_of(rate / without, fitted, _THROUGHPUT, of_repeats))
        yield {
            "level": base.consistency_read,
            "policy": POLICIES[bool(base.token_aware)],
            "share": share,
            "length_s": length,
            "lost": [1 - value, 1 - high, 1 - low],
            "p99_ms": figures[gc, _P99],
            "throughput": figures[gc, _THROUGHPUT],
        }


def _ends(band: Band) -> list[float]:
    return [band.value, band.low, band.high]


def write_predictions(folder: Path) -> str:
    """Write the predictions, unless they are there, and return their hash.

    Raises
    ------
    InputError
        If they are not those that the journal names.
    """
    file, journal = folder / PREDICTED, folder / JOURNAL
    if not file.is_file():
        rows = list(LOAD_TESTS.rows(LOAD_TESTS.read(folder / CALIBRATION)))
        file.write_text(json.dumps(predicted(rows), indent=1) + "\n", encoding="utf-8", newline="\n")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    if not journal.is_file():
        journal.write_text(json.dumps({"predicted_sha256": digest}) + "\n", encoding="utf-8", newline="\n")
    if lines(folder)[0]["predicted_sha256"] != digest:
        raise InputError(f"{file} is not what {journal} began with: remove the journal, or restore the predictions")
    return digest


# -- the runs


def lines(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of the journal: the hash of the predictions, and each run; a half line at its end is no run."""
    found = []
    for line in (folder / JOURNAL).read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found


def runs_left(folder: Path) -> list[Planned]:
    """Return the runs of the plan that the journal does not have."""
    done = {each.get("run_id") for each in lines(folder)}
    return [each for each in plan() if each.name not in done]


def add(folder: Path, run: Planned, measured: Mapping[str, Any]) -> None:
    """Add a run to the journal, in place of a half line at its end."""
    kept = [*lines(folder), {"run_id": run.name, **asdict(run), **measured}]
    text = "".join(json.dumps(each) + "\n" for each in kept)
    (folder / JOURNAL).write_text(text, encoding="utf-8", newline="\n")


@dataclass(frozen=True)
class Point:
    """A point of the plan: what was predicted, and what its repeats measured."""

    predicted: Mapping[str, Any]
    lost: tuple[float, ...]
    p99_ms: tuple[float, ...]

    @property
    def near(self) -> bool:
        """Whether the prediction is as near as it should be."""
        measured = fmean(self.lost)
        return bool(abs(self.predicted["lost"][0] - measured) <= max(NEAR * abs(measured), NEAR_POINTS))

    @property
    def held(self) -> bool:
        """Whether the band holds the measured loss."""
        _, low, high = self.predicted["lost"]
        return bool(low <= fmean(self.lost) <= high)


def points(folder: Path) -> list[Point]:
    """Return the points with a run and one without stops of the same repeat."""
    runs = lines(folder)[1:]
    known = json.loads((folder / PREDICTED).read_text(encoding="utf-8"))["points"]
    found = []
    for each in known:
        cell = [run for run in runs if (run["level"], run["policy"]) == (each["level"], each["policy"])]
        own = [run for run in cell if (run["share"], run["length_s"]) == (each["share"], each["length_s"])]
        without = {
            run["repeat"]: [base[_THROUGHPUT] for base in cell if base["when"] and base["repeat"] == run["repeat"]]
            for run in own
        }
        own = [run for run in own if without[run["repeat"]]]
        if own:
            lost = tuple(1 - run[_THROUGHPUT] / fmean(without[run["repeat"]]) for run in own)
            found.append(Point(each, lost, tuple(run[_P99] for run in own if run.get(_P99))))
    return found


# -- the page


def table(found: Sequence[Point]) -> Iterator[str]:
    """Yield a line for each point."""
    for each in found:
        its = each.predicted
        value, low, high = (f"{100 * end:.1f}" for end in its["lost"])
        p99, least, most = (f"{end:.0f}" for end in its["p99_ms"])
        measured = f"{100 * fmean(each.lost):.1f} ({100 * min(each.lost):.1f} to {100 * max(each.lost):.1f})"
        cells = (
            f"{1e3 * its['length_s']:.0f} ms",
            f"{100 * its['share']:g} %",
            f"{its['level']}, {its['policy']}",
            f"{measured}, {many(len(each.lost), 'run')}",
            f"{value} ({low} to {high})",
            "yes" if each.near else "**no**",
            "yes" if each.held else "**no**",
            f"{median(each.p99_ms):.0f}" if each.p99_ms else "-",
            f"{p99} ({least} to {most})",
        )
        yield f"| {' | '.join(cells)} |"


def page(folder: Path = FOLDER) -> str:
    """Return the page of the runs that are there."""
    loader = Environment(loader=FileSystemLoader(HERE), undefined=StrictUndefined, keep_trailing_newline=True)  # noqa: S701  # Markdown
    (start, *runs), found = lines(folder), points(folder)
    without, stopped = [each for each in runs if each["when"]], [each for each in runs if not each["when"]]
    values = {
        "digest": start["predicted_sha256"],
        "done": len(runs),
        "planned": len(plan()),
        "table": table(found),
        "points": len(found),
        "near": sum(each.near for each in found),
        "held": sum(each.held for each in found),
        "clients": CLIENTS,
        "think": f"{1e3 * THINK_S:g} ms",
        "rates": _range([each[_THROUGHPUT] for each in without], "{:,.0f}"),
        "means": _range([each["latency_mean_ms"] for each in without], "{:.1f}"),
        "busy": _range([100 * each["host_busy"] for each in runs], "{:.0f}"),
        "longest": max((abs(each["longest_error_ms"]) for each in stopped), default=0.0),
        "shares": _range([100 * (each["stopped_share"] / each["share"] - 1) for each in stopped], "{:+.2f}"),
        "errors": sum(each["errors"] for each in runs),
        "disturbed": sum(each["disturbed"] for each in runs),
    }
    return loader.get_template("stopped-nodes.md").render(values)


def _range(values: Sequence[float], form: str) -> str:
    return " to ".join(form.format(each) for each in (min(values), max(values))) if values else "-"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
