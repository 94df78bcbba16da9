"""Run contenders in processes of their own, in turns, and check each answer before its time counts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import sqrt
from pathlib import Path
from statistics import median
from typing import Any

from contenders import QUICK, SECTIONS, YARDSTICK, Contender
from flow_statistics import differences
from truth import mm4_mean_s, quorum_response

FOLDER = Path(__file__).parent
WARM = 1000
STANDARD_ERRORS, EXACT = 4.0, 1e-4
RELATIVE_ERRORS = {"mm4": {"mean_s": 0.050}, "quorum": {"mean_s": 0.030, "p99_s": 0.066}}
"""Measured standard errors of a run of 20,000 requests that starts empty, relative to the figure."""

APPROXIMATION = 0.05
"""The analytic solver approximates the flow: its means may differ by so much from a simulation's."""

Answer = dict[str, Any]


def section(name: str, mode: str, rounds: int) -> list[Answer]:
    """Measure all contenders of a section in turns and return a row for each."""
    takes_part = [each for each in SECTIONS[name] if each.exists and (each.quick or mode != "quick")]
    answers: dict[str, list[Answer]] = {each.label: [] for each in takes_part}
    for number in range(rounds):
        for each in takes_part:
            requests = each.requests // QUICK if mode == "quick" else each.requests
            answers[each.label].append(once(each, requests, seed=number + 1))
    yardsticks = answers[YARDSTICK]
    return [_row(name, each, answers[each.label], yardsticks) for each in takes_part]


def once(contender: Contender, requests: int, seed: int, *, pinned: bool = True, **variables: str) -> Answer:
    """Run a contender once, with some environment variables; the answer is what `child.py` printed, or why not."""
    where = str(_core()) if pinned else "-1"
    warm = 1 if contender.analytic else min(WARM, requests)
    what = (contender.module, contender.function, str(requests), str(seed), str(warm), where, contender.package)
    print(f"  {contender.label}, {requests:,}", file=sys.stderr, flush=True)
    command = [*_python(contender.group), "child.py", *what]
    around = {**os.environ, **variables}
    ended = subprocess.run(command, cwd=FOLDER, env=around, capture_output=True, text=True, check=False)
    if ended.returncode:
        return {"failed": (ended.stderr.strip().splitlines() or ["it ended without a word"])[-1]}
    found: Answer = json.loads(ended.stdout.splitlines()[-1])
    return found


def _python(group: str) -> list[str]:
    """Return how to start Python: the project's own, or one with a dependency group and nothing else."""
    if not group:
        return [sys.executable]
    uv = os.environ.get("UV") or shutil.which("uv") or "uv"
    return [uv, "run", "--quiet", "--isolated", "--only-group", group, "python"]


def _core() -> int:
    return max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else -1


def _row(name: str, contender: Contender, answers: list[Answer], yardsticks: list[Answer]) -> Answer:
    """Sum up the rounds of a contender; one that failed or answered wrongly has no rate."""
    row: Answer = {"label": contender.label, "analytic": contender.analytic}
    wrong = [text for answer, rod in zip(answers, yardsticks, strict=True) for text in errors(name, answer, rod)]
    if wrong:
        return {**row, "wrong": wrong}
    rates = sorted(answer["requests"] / answer["seconds"] for answer in answers)
    row |= {"version": answers[0]["version"], "rounds": answers, "requests": answers[0]["requests"]}
    row |= {"per_s": median(rates), "per_s_low": rates[0], "per_s_high": rates[-1]}
    if "events" in answers[0]:
        row["events_per_s"] = median(answer["events"] / answer["seconds"] for answer in answers)
    row["start_up_s"] = median(answer["import_s"] + answer["warm_s"] for answer in answers)
    row["first_run_s"] = median(answer["warm_s"] for answer in answers)
    row["peak_mib"] = max(answer["peak_mib"] or 0.0 for answer in answers)
    return row


def errors(name: str, answer: Answer, yardstick: Answer) -> Iterator[str]:
    """Say what is wrong with an answer, by theory or, for the flow, by the yardstick."""
    if "failed" in answer or "failed" in yardstick:
        yield answer.get("failed") or "there is no yardstick to check it by"
    elif name in RELATIVE_ERRORS:
        yield from _against_theory(RELATIVE_ERRORS[name], answer, truths()[name])
    elif "utilisation" not in answer:
        yield from _approximately(answer["classes"], yardstick["classes"])
    else:
        yield from differences(answer, yardstick)


def _against_theory(scatter: Mapping[str, float], answer: Answer, truth: Mapping[str, float]) -> Iterator[str]:
    for figure, error in scatter.items():
        if figure in answer:
            chance = 0.0 if "exact" in answer else STANDARD_ERRORS * error * sqrt(20_000 / answer["requests"])
            allowed = EXACT + chance
            if abs(answer[figure] / truth[figure] - 1) > allowed:
                yield f"{figure} is {answer[figure]:.4g}, theory says {truth[figure]:.4g} within {allowed:.1%}"


def _approximately(classes: Mapping[str, Answer], yardstick: Mapping[str, Answer]) -> Iterator[str]:
    for name, mine in classes.items():
        theirs = yardstick[name]
        allowed = APPROXIMATION * theirs["mean_s"] + STANDARD_ERRORS * theirs["mean_error_s"]
        if abs(mine["mean_s"] - theirs["mean_s"]) > allowed:
            yield f"mean of {name} is {mine['mean_s']:.4g} s, simulated by hand {theirs['mean_s']:.4g} s"


@lru_cache
def truths() -> dict[str, dict[str, float]]:
    """Return what theory says, by section and figure."""
    mean_s, p99_s = quorum_response()
    return {"mm4": {"mean_s": mm4_mean_s()}, "quorum": {"mean_s": mean_s, "p99_s": p99_s}}
