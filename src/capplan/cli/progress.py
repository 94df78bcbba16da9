"""How far a simulation has come: a bar on stderr with rate and time left, nothing when stderr is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from capplan.simulator.engine import Progress
from capplan.simulator.replicate import Plan

PATIENCE_S = 2.0  # what ends sooner needs no bar
COMPILING = "capplan: compiling the simulation engine, once: this takes up to half a minute"


@contextmanager
def simulating(plan: Plan) -> Iterator[Progress]:
    """Announce a compilation, then show how far the replications of a plan have come; yield what they tell it to."""
    if plan.engine == "compiled":
        announce_compilation()
    console = Console(stderr=True)
    columns = (TextColumn("simulating"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[rate]}"))
    bar = Bar(*columns, TimeRemainingColumn(), console=console, transient=True)
    task = bar.add_task("simulating", total=plan.duration_s * plan.replications, rate="")
    began = time.monotonic()

    def tell(simulated_s: float, requests: int) -> None:
        passed = time.monotonic() - began
        if console.is_terminal and passed > PATIENCE_S:
            bar.start()
            bar.update(task, completed=simulated_s, rate=f"{requests / passed:,.0f} requests/s")

    try:
        yield tell
    finally:
        bar.stop()


def announce_compilation() -> None:
    """Say that the engine is compiled when it is, because that takes long."""
    from capplan.simulator.kernel.compiling import is_compiled  # numba is needed for this engine only

    if not is_compiled():
        sys.stderr.write(f"{COMPILING}\n")
        sys.stderr.flush()
