"""One measurement in a process of its own: `python child.py MODULE FUNCTION REQUESTS SEED WARM CORE PACKAGE`.

Pins itself to a core (to none if that is -1), runs the contender once for a few requests, so that imports are done
and compilers and caches warm, then for all of them under the clock, and prints what it found as one line of JSON.
Needs nothing but Python, so that it runs in every contender's own environment.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from importlib.metadata import version
from pathlib import Path


def main() -> None:
    """Measure and print."""
    module, function, requests, seed, warm, core, package = sys.argv[1:]
    if int(core) >= 0:
        os.sched_setaffinity(0, {int(core)})
    start = time.perf_counter()
    run = getattr(import_module(module), function)
    imported = time.perf_counter()
    run(int(warm), int(seed) + 1000)
    warmed = time.perf_counter()
    answer = run(int(requests), int(seed))
    seconds = time.perf_counter() - warmed
    found = {"requests": int(requests), **answer, "seconds": seconds}
    start_up = {"import_s": imported - start, "warm_s": warmed - imported}
    print(json.dumps({**found, **start_up, "peak_mib": peak_mib(), "version": version(package)}))


def peak_mib() -> float | None:
    """Largest resident memory of this process or of one that it started, in MiB; None where nobody counts it."""
    if sys.platform == "win32":
        return None
    import resource

    unit = 1.0 if sys.platform == "darwin" else 1024.0  # bytes there, KiB here
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    status = Path("/proc/self/status")
    if status.is_file():  # Linux counts the parent's memory before exec in ru_maxrss, but not here
        own = next(1024.0 * int(line.split()[1]) for line in status.read_text().splitlines() if "VmHWM" in line)
    return max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit) / 2**20


if __name__ == "__main__":
    main()
