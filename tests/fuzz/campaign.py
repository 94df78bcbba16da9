"""Try many inputs in several processes, and count: `python tests/fuzz/campaign.py 100000 FILE`."""

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
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.fuzz.inputs import Failure, prepared, tried
from tests.fuzz.rules import LONGEST_S, LONGEST_WAIT_S, Watch, limit_memory

from capplan.models.files import replace_file

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
        prepared(folder)
        watch = Watch(folder)
        limit_memory()
        found = [failure for number in numbers if (failure := tried(number, folder, watch)) is not None]
        os.chdir("/")
    return len(numbers), found


def campaign(count: int, processes: int, first: int = 0, out: Path | None = None) -> Counter[str]:
    """Try so many inputs; return how many ended, and how many broke which rule; the file has what is known so far."""
    pieces = [range(start, min(start + PIECE, first + count)) for start in range(first, first + count, PIECE)]
    counts: Counter[str] = Counter(inputs=0)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, spawn, max_tasks_per_child=1) as pool:  # one piece each: limits stay apart
        for done in as_completed([pool.submit(piece, each) for each in pieces]):
            tries, failures = done.result()
            counts["inputs"] += tries
            for each in failures:
                counts[each.rule.partition(":")[0].partition(" /")[0]] += 1
                print(each, file=sys.stderr, flush=True)
            if out is not None:
                replace_file(out, json.dumps(counts, indent=1) + "\n")
    return counts


def main() -> int:
    """Run a campaign, and print its counts as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    counts = campaign(asked.count, asked.processes, asked.first, asked.out)
    print(json.dumps(counts, indent=1))
    return len(counts) > 1


if __name__ == "__main__":
    sys.exit(main())
