"""Measure how often the intervals of `capplan simulate` contain the truth, and write docs/reference/coverage.json.

`uv run python docs/generate/coverage_of_intervals.py` takes an hour on one processor. It resumes if interrupted, and
repeats only trials whose settings have changed. Remove `build/coverage.runs` after a change of the code. The page
docs/reference/accuracy.md shows the result (`accuracy.py`). Settings and seeds are fixed, so results repeat.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from coverage_experiment import COLUMNS, EXPERIMENT, STATISTICS, SYSTEMS, Trial, Trials
from scipy.stats import binomtest

from capplan.simulator.experiment import ExperimentProgress, Rows, open_store, perform
from capplan.simulator.workers import processes

ROOT = Path(__file__).resolve().parents[2]
RUNS, RESULT = ROOT / "build" / "coverage.runs", ROOT / "docs" / "reference" / "coverage.json"
MANY, FEWER = 2_000, 300  # experiments: at a true share of 95 %, standard errors of 0.5 and 1.3 percentage points
LENGTHS = dict(zip(SYSTEMS, (150_000, 300_000, 25_000), strict=True))  # requests a replication
TARGETS = dict(zip(SYSTEMS, ((50_000, "p99<4%"), (100_000, "p99<5%"), (20_000, "p99<2.5%")), strict=True))
SHORT = 20  # how many times shorter the short replications are


def trials() -> Iterator[tuple[str, Trials]]:
    """Yield every trial with the name of its procedure."""
    for system, requests in LENGTHS.items():
        yield "replications", Trials(Trial(system, requests, 10), MANY)
    for system, requests in LENGTHS.items():
        yield "short replications", Trials(Trial(system, requests // SHORT, 10), FEWER)
    for system, requests in LENGTHS.items():
        yield "one run", Trials(Trial(system, 5 * requests, 1), FEWER)
    for system, (requests, precision) in TARGETS.items():
        yield "precision", Trials(Trial(system, requests, 200, precision), FEWER)


def summary(procedure: str, trials: Trials, rows: Rows) -> dict[str, Any]:
    """Summarise the experiments of a trial; the first is kept so that a test can repeat it."""
    trial, truth = trials.trial, SYSTEMS[trials.trial.system].truth
    return {
        "procedure": procedure,
        "trial": vars(trial),
        "experiments": len(rows),
        "mean_replications": round(float(np.mean([row["replications"] for row in rows])), 1),
        "first": rows[0],
        "intervals": [
            {"statistic": statistic, **_held(rows, statistic, vars(truth)[statistic])} for statistic in STATISTICS
        ],
    }


def _held(rows: Rows, statistic: str, truth: float) -> dict[str, Any]:
    """Return how many intervals contain the truth, with their mean width and bias."""
    columns = [f"{statistic} {name}" for name in COLUMNS]
    value, width = (np.array([row[column] for row in rows], dtype=np.float64) for column in columns)
    above, below = int((value - width > truth).sum()), int((value + width < truth).sum())
    held = int((np.abs(value - truth) <= width).sum())
    return {
        "held": held,
        "above": above,
        "below": below,
        "coverage": [held / len(rows), *(round(each, 5) for each in clopper_pearson(held, len(rows)))],
        "half_width": _rounded(np.nanmean(width / value)),
        "bias": _rounded(value.mean() / truth - 1),
        "scatter": _rounded(value.std(ddof=1) / truth),
    }


def clopper_pearson(held: int, experiments: int) -> tuple[float, float]:
    """Return the exact 95 % interval of a share (Clopper & Pearson 1934)."""
    low, high = binomtest(held, experiments).proportion_ci(0.95, method="exact")
    return float(low), float(high)


def _rounded(number: float) -> float:
    return float(f"{number:.4g}")


def main() -> int:
    """Run what is missing, and write each trial as soon as it is finished."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--processes", type=int, default=2, help="number of experiments that run at a time (default: 2)"
    )
    chosen, found = list(trials()), dict[Trials, dict[str, Any]]()
    names = {each: procedure for procedure, each in chosen}
    with open_store(RUNS) as store, processes(parser.parse_args().processes) as workers:
        cases = [each.case() for each in sorted(names, key=_work)]
        for case, chunks in perform(EXPERIMENT, cases, workers, store=store, progress=_tell):
            rows = [row for chunk in chunks for row in chunk]
            found[case.subject] = summary(names[case.subject], case.subject, rows)
            _write([found[each] for each in names if each in found])
    return 0


def _work(trials: Trials) -> int:
    """Estimate the number of requests, so that quick trials come first."""
    return trials.experiments * trials.trial.requests * min(trials.trial.replications, 25)


def _write(summaries: list[dict[str, Any]]) -> None:
    unfinished = RESULT.with_suffix(".unfinished")
    unfinished.write_text(json.dumps({"trials": summaries}, indent=1) + "\n", encoding="utf-8", newline="\n")
    unfinished.replace(RESULT)


def _tell(progress: ExperimentProgress) -> None:
    if sys.stderr.isatty():
        done = progress.stored + progress.run
        print(f"\r{progress.finished} of {progress.configurations} trials, {done} chunks", end="", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
