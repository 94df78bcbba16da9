"""Ask many valid questions in several processes, and count what breaks: `python questions_campaign.py RESULTS FILE`.

The environment variable CAPPLAN_TRUST_QUESTIONS says how many, 10,000 by default. The results have a line for each
question; a campaign that was interrupted goes on with the questions that they lack. FILE gets the counts.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.journal import append, entries
from tests.planner.answered_questions import LONGEST_S, violations
from tests.planner.valid_questions import asked

from capplan.models.files import replace_file

LINES = 3  # of a question at most
AT_ONCE = 20  # questions of a process


def ask(numbers: Iterable[int], results: Path) -> None:
    """Ask some questions, and append a line for each to the results."""
    for number in numbers:
        faulthandler.dump_traceback_later(LINES * LONGEST_S * 4, exit=True)  # code that no signal interrupts
        begin, question = time.process_time(), asked(number)
        found = [[each.invariant, each.detail] for each in violations(question)]
        row = {
            "number": number,
            "kind": question.kind,
            "about": question.about,
            "cpu_s": round(time.process_time() - begin, 2),
            "broken": found,
            "asked": str(question) if found else "",
        }
        append(results, row)
    faulthandler.cancel_dump_traceback_later()


def read(results: Path) -> dict[int, dict[str, object]]:
    """Return the results so far by number."""
    return {entry["number"]: entry for entry in entries(results)}


def campaign(count: int, results: Path, processes: int) -> Counter[tuple[str, str]]:
    """Ask the questions that the results lack; return counts by invariant and kind.

    A process that ends before its questions do has met one that never ends: the next one of its questions.
    """
    waiting = sorted(set(range(count)) - set(read(results)))
    pieces = [waiting[start : start + AT_ONCE] for start in range(0, len(waiting), AT_ONCE)]
    running: list[tuple[multiprocessing.Process, list[int]]] = []
    while pieces or running:
        while pieces and len(running) < processes:
            piece = pieces.pop(0)
            process = multiprocessing.Process(target=ask, args=(piece, results))
            process.start()
            running.append((process, piece))
        running[0][0].join(0.2)
        for each in [each for each in running if not each[0].is_alive()]:
            running.remove(each)
            done = read(results)
            if left := [number for number in each[1] if number not in done]:
                row = {"number": left[0], "kind": asked(left[0]).kind, "broken": [["endless", "no signal ends it"]]}
                row |= {"asked": str(asked(left[0])), "about": asked(left[0]).about, "cpu_s": 0.0}
                append(results, row)
                pieces.insert(0, left[1:])
    return counts(read(results).values())


def counts(rows: Iterable[dict[str, object]]) -> Counter[tuple[str, str]]:
    """Count questions by invariant that they break, and kind."""
    found: Counter[tuple[str, str]] = Counter()
    for row in rows:
        for invariant in sorted({each[0] for each in row["broken"]}):  # type: ignore[attr-defined]  # read as JSON
            found[invariant, str(row["kind"])] += 1
    return found


def main() -> int:
    """Run a campaign, and print its counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("results", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--count", type=int, default=int(os.environ.get("CAPPLAN_TRUST_QUESTIONS", "10000")))
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    given.results.parent.mkdir(parents=True, exist_ok=True)
    found = campaign(given.count, given.results, given.processes)
    rows = read(given.results)
    broken = Counter[str]()
    for (invariant, _), count in found.items():
        broken[invariant] += count
    told = {"questions": len(rows), "broken": dict(sorted(broken.items()))}
    print(f"{len(rows)} questions, {broken.total()} broken invariants")
    for (invariant, kind), count in sorted(found.items()):
        print(f"{count:6}  {invariant}: {kind}")
    if given.out is not None:
        replace_file(given.out, json.dumps(told, indent=1) + "\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
