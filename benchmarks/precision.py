"""Seconds until the 99th percentile of M/M/4 is known within 2 %, with 95 % confidence.

How many requests that takes is a property of the queue, not of the program that simulates it. capplan finds out itself
when it has enough; its time is that of the whole procedure. No peer has such a procedure, so a peer's time is what as
many requests take it in one run: it is told what it could not have known.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from statistics import median
from typing import Any

from contenders import PRECISION, QUICK, Contender
from measure import STANDARD_ERRORS, Answer, once
from settings import MM4_BUSY_RATE_PER_S, MM4_RATE_PER_S
from truth import mm4_mean_s, mm4_p99_s

RELATIVE, STANDARD_ERRORS_IN_HALF_WIDTH = 0.02, 1.96
RATES_PER_S = {"mm4": MM4_RATE_PER_S, "busy": MM4_BUSY_RATE_PER_S}
TITLES = {"mm4": "Until p99 is known within 2 %: M/M/4 at 80 % load", "busy": "The same at 95 % load"}
NOTE = (
    "How long it takes until the 95 % interval of the 99th percentile reaches no further than 2 % to either side. "
    "capplan stops by itself: seconds are those of its whole procedure (`--precision 'p99<2%'`: {replications:.0f} "
    "replications of {each:,} requests, warm-up left out), "
    "each round with another seed. Peers have no such procedure and give single values without an error; their seconds "
    "are those of as many requests in one run, *estimated* from the requests run where these were fewer. Right when "
    "p99 (the mean, where a peer gives no more) is the closed form's within four standard errors."
)
NO_CAPPLAN = "capplan gave no number of requests to compare by."


def contest(name: str, mode: str, rounds: int) -> list[Answer]:
    """Measure all contenders in turns, capplan first, and return a row for each."""
    ours = [each for each in PRECISION[name] if _stops(each)]
    peers = [each for each in PRECISION[name] if not _stops(each) and (each.quick or mode != "quick")]
    answers: dict[str, list[Answer]] = {each.label: [] for each in (*ours, *peers)}
    for number in range(rounds):
        for each in ours:
            pinned = not each.function.endswith("_two")
            answers[each.label].append(once(each, each.requests, seed=number + 1, pinned=pinned))
        needed = _needed(answers[ours[0].label])
        for each in peers:
            most = each.requests // QUICK if mode == "quick" else each.requests
            answers[each.label].append(once(each, min(most, needed or most), seed=number + 1))
    needed = _needed(answers[ours[0].label])
    rows = [_own_row(name, each, answers[each.label]) for each in ours]
    return rows + [_peer_row(name, each, answers[each.label], needed) for each in peers]


def _stops(contender: Contender) -> bool:
    """Whether it finds out itself when it has enough requests."""
    return contender.package == "capplan"


def _needed(answers: list[Answer]) -> int:
    """Return how many requests are needed; 0 when nobody knows."""
    known = [answer["requests"] for answer in answers if "requests" in answer]
    return round(median(known)) if known else 0


def _own_row(name: str, contender: Contender, answers: list[Answer]) -> Answer:
    row: Answer = {"label": contender.label, "each": contender.requests}
    wrong = [text for answer in answers for text in _errors(name, answer, 1.0)]
    if wrong:
        return {**row, "wrong": wrong}
    row |= _seconds([answer["seconds"] for answer in answers])
    row |= {
        "version": answers[0]["version"],
        "rounds": answers,
        "requests": _needed(answers),
        "needed": _needed(answers),
    }
    row["replications"] = median(answer["replications"] for answer in answers)
    return row


def _peer_row(name: str, contender: Contender, answers: list[Answer], needed: int) -> Answer:
    row: Answer = {"label": contender.label}
    if not needed:
        return {**row, "wrong": [NO_CAPPLAN]}
    wrong = [t for each in answers for t in _errors(name, each, sqrt(needed / each.get("requests", needed)))]
    if wrong:
        return {**row, "wrong": wrong}
    row |= _seconds([answer["seconds"] / answer["requests"] * needed for answer in answers])
    requests = round(median(answer["requests"] for answer in answers))
    return {**row, "version": answers[0]["version"], "rounds": answers, "requests": requests, "needed": needed}


def _seconds(found: list[float]) -> dict[str, float]:
    return {"seconds": median(found), "seconds_low": min(found), "seconds_high": max(found)}


def _errors(name: str, answer: Answer, wider: float) -> Iterator[str]:
    """Say what is wrong with an answer whose interval is so many times wider than 2 %."""
    if "failed" in answer:
        yield answer["failed"]
        return
    if not answer.get("reached", True):
        yield f"{answer['requests']:,} requests were not enough"
    figure = "p99_s" if "p99_s" in answer else "mean_s"
    truth = (mm4_p99_s if figure == "p99_s" else mm4_mean_s)(RATES_PER_S[name])
    allowed = STANDARD_ERRORS * RELATIVE / STANDARD_ERRORS_IN_HALF_WIDTH * wider
    if abs(answer[figure] / truth - 1) > allowed:
        yield f"{figure} is {answer[figure]:.4g}, theory says {truth:.4g} within {allowed:.1%}"


def tables(found: dict[str, Any]) -> Iterator[tuple[str, str, list[list[str]]]]:
    """Yield title, note and cells of each table."""
    for name, rows in found.items():
        one = rows[0]
        note = NO_CAPPLAN if "wrong" in one else NOTE.format(replications=one["replications"], each=one["each"])
        head = ["", "version", "requests needed", "requests run", "seconds", "lowest to highest", f"x {one['label']}"]
        yield TITLES[name], note, [head, *(_cells(row, one.get("seconds")) for row in rows)]


def _cells(row: Answer, base: float | None) -> list[str]:
    if "wrong" in row:
        return [row["label"], "", "", "", "not counted: " + row["wrong"][0], "", ""]
    estimated = " (estimated)" if row["requests"] < row["needed"] else ""
    return [
        row["label"],
        row["version"],
        f"{row['needed']:,}",
        f"{row['requests']:,}",
        f"{row['seconds']:,.2f}{estimated}",
        f"{row['seconds_low']:,.2f} to {row['seconds_high']:,.2f}",
        "" if base is None else f"{row['seconds'] / base:,.1f}",
    ]
