"""Put faults in the way of every verb that writes, and count: `python tests/faults/campaign.py FILE`."""

import argparse
import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.faults.harness import CACHE_FAULTS, FAULTS, Judged, Reference, closed_stdout, damaged_cache, reference
from tests.faults.services import SERVICES
from tests.faults.verbs import PRINTING, VERBS, WritingVerb

from capplan.files import replace_file

Task = tuple[str, str, Callable[[], Judged]]


def tasks(seed: int, cache: Path, only: str) -> Iterator[Task]:
    """Yield every fault: its kind, its verb, and what puts it in the way."""
    for name, verb in VERBS.items():
        if re.search(only, name):
            whole = reference(verb, cache)
            print(f"{name}: {whole.seconds:.1f} s", file=sys.stderr, flush=True)
            yield from of_verb(seed, cache, name, verb, whole)
    for command in (each for each in PRINTING if re.search(only, each)):
        for number in range(3):
            random = Random(f"{seed} {command} {number}")
            yield "stdout closed, full or gone", command, partial(closed_stdout, command, None, cache, random)
    for name in (each for each in SERVICES if re.search(only, each)):
        for kind, (fault, count) in SERVICES[name].items():
            for number in range(count):
                yield kind, name, partial(fault, Random(f"{seed} {name} {kind} {number}"))


def of_verb(seed: int, cache: Path, name: str, verb: WritingVerb, whole: Reference) -> Iterator[Task]:
    """Yield every fault of a verb that writes."""
    for kind, (fault, count) in FAULTS.items():
        for number in range(1 if verb.slow else count):
            yield kind, name, partial(fault, verb, whole, cache, Random(f"{seed} {name} {kind} {number}"))
    if verb.resumes or verb.cached:
        for number in range(1 if verb.slow else CACHE_FAULTS):
            random = Random(f"{seed} {name} damaged {number}")
            yield "kept results damaged", name, partial(damaged_cache, verb, whole, cache, random)


def campaign(seed: int, processes: int, only: str = "", out: Path | None = None) -> dict[str, Any]:
    """Put all faults in the way; return counts by kind, and the verbs; the file has what is known so far."""
    kinds: dict[str, Counter[str]] = {}
    verbs: set[str] = set()
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(processes) as pool:
        every = list(tasks(seed, Path(name), only))
        Random(seed).shuffle(every)
        running = {pool.submit(fault): (kind, verb) for kind, verb, fault in every}
        for done in as_completed(running):
            (kind, verb), found = running[done], done.result()
            kinds.setdefault(kind, Counter()).update(
                injected=1, survived=int(found.survived), lost=int(bool(found.lost)), torn=int(bool(found.torn))
            )
            verbs.add(verb.partition(" (")[0] if verb in VERBS else verb.split()[0])
            if not found.survived:
                print(f"{kind}, {verb}: {found}", file=sys.stderr, flush=True)
            if out is not None:
                replace_file(out, json.dumps({"kinds": kinds, "verbs": sorted(verbs)}, indent=1) + "\n")
    return {"kinds": kinds, "verbs": sorted(verbs)}


def main() -> int:
    """Run a campaign, and print its counts as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--only", default="", help="expression that the names of verbs meet")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    counts = campaign(1, asked.processes, asked.only, asked.out)
    print(json.dumps(counts, indent=1))
    return any(each["survived"] < each["injected"] for each in counts["kinds"].values())


if __name__ == "__main__":
    sys.exit(main())
