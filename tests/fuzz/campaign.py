"""Try many inputs in several processes, and count: `python tests/fuzz/campaign.py 300000 FILE`.

FILE has a line for every 2,500 inputs that were tried; a campaign that was interrupted goes on with those that it
lacks. Remove it to begin again.
"""

import argparse
import faulthandler
import json
import multiprocessing
import os
import resource
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.fuzz.inputs import Failure, prepared, tried
from tests.fuzz.rules import LONGEST_S, LONGEST_WAIT_S, Watch, limit_memory
from tests.journal import append, entries

PIECE = 2500


def piece(numbers: range) -> tuple[int, list[Failure]]:
    """Try the inputs of some numbers in a folder of their own; return how many, and those that break a rule."""
    faulthandler.dump_traceback_later(PIECE * LONGEST_WAIT_S, exit=True)
    resource.setrlimit(resource.RLIMIT_CPU, (int(PIECE * LONGEST_S),) * 2)  # for code that no signal interrupts
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        os.environ["CAPPLAN_CACHE_DIR"] = str(folder / "cache")
        tempfile.tempdir = name  # where libraries put what they remove again
        sys.dont_write_bytecode = True  # an import is no write of the reader
        prepared(folder)
        watch = Watch(folder)
        limit_memory()
        found = [failure for number in numbers if (failure := tried(number, folder, watch)) is not None]
        os.chdir("/")
    return len(numbers), found


def campaign(count: int, processes: int, done: Path) -> None:
    """Try the pieces that the file of what is done lacks, and append a line for each."""
    known = {(each["first"], each["inputs"]) for each in entries(done)}
    every = (range(first, min(first + PIECE, count)) for first in range(0, count, PIECE))
    pieces = [each for each in every if (each.start, len(each)) not in known]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, spawn, max_tasks_per_child=1) as pool:  # one piece each: limits stay apart
        waiting = {pool.submit(piece, each): each for each in pieces}
        for ended in as_completed(waiting):
            tries, failures = ended.result()
            broken = [asdict(each) for each in failures]
            append(done, {"first": waiting[ended].start, "inputs": tries, "broken": broken})


def counts(done: Path) -> Counter[str]:
    """Return how many inputs were tried, and how many broke which rule."""
    rows = entries(done)
    found: Counter[str] = Counter(inputs=sum(each["inputs"] for each in rows))
    for each in rows:
        found.update(broken["rule"].partition(":")[0].partition(" /")[0] for broken in each["broken"])
    return found


def main() -> int:
    """Run or continue a campaign, and print its counts as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("done", metavar="FILE", type=Path)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    campaign(asked.count, asked.processes, asked.done)
    found = counts(asked.done)
    for each in entries(asked.done):
        print(*each["broken"], sep="\n", end="\n" if each["broken"] else "", file=sys.stderr)
    print(json.dumps(found, indent=1))
    return len(found) > 1


if __name__ == "__main__":
    sys.exit(main())
