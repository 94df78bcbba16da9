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
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.journal import append, entries
from tests.planner.answered_questions import LONGEST_S, Answer, answers, broken_by
from tests.planner.valid_questions import asked

from capplan.files import replace_file

LINES = 3  # of a question at most
AT_ONCE = 20  # questions of a process
LEAST = 0.7
"""Share of the lines of a verb that have an answer: a campaign of refusals says little about answers."""
REFUSED = 2
"""Exit code of a refusal."""
OUTCOMES = ("answered", "refused", "neither")

Outcomes = Mapping[str, Counter[str]]
"""How many lines have which outcome, by verb or by format."""


def ask(numbers: Iterable[int], results: Path) -> None:
    """Ask some questions, and append a line for each to the results."""
    for number in numbers:
        faulthandler.dump_traceback_later(LINES * LONGEST_S * 4, exit=True)  # code that no signal interrupts
        begin, question = time.process_time(), asked(number)
        lines = answers(question)
        found = [[each.invariant, each.detail] for each in broken_by(question, lines)]
        row = {
            "number": number,
            "kind": question.kind,
            "about": question.about,
            "cpu_s": round(time.process_time() - begin, 2),
            "lines": [[each.verb, each.formats, outcome(each)] for each in lines],
            "refused": [" ".join(each.said) for each in lines if each.code == REFUSED],
            "broken": found,
            "asked": str(question) if found else "",
        }
        append(results, row)
    faulthandler.cancel_dump_traceback_later()


def outcome(its: Answer) -> str:
    """Return whether a line has an answer or is refused."""
    return OUTCOMES[0] if its.answered else OUTCOMES[1] if its.code == REFUSED else OUTCOMES[2]


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


def lines_by(rows: Iterable[Mapping[str, Any]]) -> tuple[Outcomes, Outcomes]:
    """Count lines by outcome for each verb, and for each format."""
    verbs, formats = defaultdict[str, Counter[str]](Counter), defaultdict[str, Counter[str]](Counter)
    for row in rows:
        for verb, its, outcome_ in row.get("lines", ()):
            verbs[verb][outcome_] += 1
            for each in set(its):
                formats[each][outcome_] += 1
    return dict(sorted(verbs.items())), dict(sorted(formats.items()))


def seldom_answered(verbs: Outcomes) -> list[str]:
    """Return the verbs that answer too few of their lines."""
    return [name for name, its in verbs.items() if its[OUTCOMES[0]] < LEAST * its.total()]


def show(title: str, counted: Outcomes) -> None:
    """Print counts of lines."""
    print(f"\n{title:24}" + "".join(f"{name:>10}" for name in OUTCOMES))
    for name, its in counted.items():
        print(f"{name:24}" + "".join(f"{its[each]:10}" for each in OUTCOMES))


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
    verbs, formats = lines_by(rows.values())
    told = {"questions": len(rows), "broken": dict(sorted(broken.items())), "verbs": verbs, "formats": formats}
    print(f"{len(rows)} questions, {broken.total()} broken invariants")
    for (invariant, kind), count in sorted(found.items()):
        print(f"{count:6}  {invariant}: {kind}")
    show("lines by verb", verbs)
    show("lines by format", formats)
    seldom = seldom_answered(verbs)
    if seldom:
        print(f"fewer than {LEAST:.0%} of the lines are answered by {', '.join(seldom)}: mend the questions")
    if given.out is not None:
        replace_file(given.out, json.dumps(told, indent=1) + "\n")
    return bool(found or seldom)


if __name__ == "__main__":
    sys.exit(main())
