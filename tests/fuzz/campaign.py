"""Try many inputs in several processes, and count: `python tests/fuzz/campaign.py 100000`."""

import faulthandler
import multiprocessing
import os
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.fuzz.inputs import Failure, prepared, tried
from tests.fuzz.rules import LONGEST_S, Watch, limit_memory

PIECE = 500


def piece(numbers: range) -> tuple[int, list[Failure]]:
    """Try the inputs of some numbers in a folder of their own; return how many, and those that break a rule."""
    faulthandler.dump_traceback_later(PIECE * LONGEST_S, exit=True)
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


def campaign(count: int, processes: int, first: int = 0) -> tuple[int, list[Failure]]:
    """Try so many inputs; return how many ended, and those that break a rule."""
    pieces = [range(start, min(start + PIECE, first + count)) for start in range(first, first + count, PIECE)]
    spawn = multiprocessing.get_context("spawn")
    ended, found = 0, list[Failure]()
    with ProcessPoolExecutor(processes, spawn, max_tasks_per_child=1) as pool:  # one piece each: limits stay apart
        for done in as_completed([pool.submit(piece, each) for each in pieces]):
            tries, failures = done.result()
            ended += tries
            found += failures
            for each in failures:
                print(each, file=sys.stderr, flush=True)
    return ended, sorted(found, key=lambda each: each.number)


def main() -> int:
    """Run a campaign, and print its counts."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    ended, found = campaign(count, os.cpu_count() or 1, first)
    rules = Counter(each.rule.split(":")[0] for each in found)
    print(f"{ended:,} inputs, {len(found):,} break a rule")
    for rule, times in rules.most_common():
        print(f"{times:6} {rule}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
