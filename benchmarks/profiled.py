"""One command in this process: `python profiled.py VERB ...` prints its CPU seconds by part, as a line of JSON.

A timer of CPU time looks at the main thread's stack every few milliseconds: the innermost function of capplan says what
the time of that thread went to. Other threads, which only simulate, are counted by themselves.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections import Counter
from types import FrameType

PERIOD_S = 0.004
IMPORTS, THREADS, ELSEWHERE = "imports", "other threads", "other processes"
PARTS = {  # the first prefix that fits
    "capplan.models.solver": "solve",
    "capplan.models.cassandra": "compose",
    "capplan.models.language": "compose",
    "capplan.systems": "compose",
    "capplan.simulator": "simulate",
    "capplan.evidence": "evidence",
    "capplan.calibration": "evidence",
    "capplan.layout.fitted_file": "evidence",
    "capplan.layout.observations": "evidence",
    "capplan.reports": "render",
    "capplan.cli": "render",
    "capplan": "bands",
}
OF_MAIN = (IMPORTS, *dict.fromkeys(PARTS.values()))
NAMES = (*OF_MAIN, THREADS, ELSEWHERE)


def part_of(frame: FrameType | None) -> str:
    """Return the part of a command that a stack belongs to."""
    found = ""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name == "importlib._bootstrap":
            return IMPORTS
        found = found or next((part for prefix, part in PARTS.items() if f"{name}.".startswith(f"{prefix}.")), "")
        frame = frame.f_back
    return found or IMPORTS


def main() -> None:
    """Run the command; its own output goes nowhere."""
    seen: Counter[str] = Counter()
    signal.signal(signal.SIGPROF, lambda _, frame: seen.update([part_of(frame)]))
    signal.setitimer(signal.ITIMER_PROF, PERIOD_S, PERIOD_S)
    from capplan.cli.process import run_command

    out = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    code = run_command()
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    own, others = (resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    own_s, others_s = (each.ru_utime + each.ru_stime for each in (own, others))
    main_s, whole = time.thread_time(), max(sum(seen.values()), 1)
    parts = {name: main_s * seen[name] / whole for name in OF_MAIN} | {THREADS: own_s - main_s, ELSEWHERE: others_s}
    found = {"code": code, "cpu_s": own_s + others_s, "parts_s": parts}
    os.write(out, (json.dumps(found) + "\n").encode())


if __name__ == "__main__":
    main()
