"""Progress bars on stderr with the time left; occasional lines if stderr is not a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import Timer
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.table import Column

from capplan.cli.shell.messages import under_way
from capplan.simulator.engine import Progress

if TYPE_CHECKING:
    from capplan.simulator.replications import ReplicationPlan  # a sweep needs no engine

PATIENCE_S = 2.0  # shorter work needs no bar


@contextmanager
def simulating(plan: ReplicationPlan) -> Iterator[Progress]:
    """Show the progress of replications; yield the function that reports it."""
    rate = TextColumn("{task.fields[rate]}", table_column=Column(no_wrap=True))
    columns = (TextColumn("simulating"), BarColumn(20), TaskProgressColumn(), rate, TimeRemainingColumn())
    total, began = plan.duration_s * plan.replications, time.monotonic()

    def tell(simulated_s: float, requests: int) -> None:
        speed = f"{requests / max(time.monotonic() - began, 1e-9):,.0f} requests/s"
        show(f"simulating: {simulated_s / total:.0%}", completed=simulated_s, rate=speed)

    with _shown("simulating", columns, total=total, rate="") as show:
        yield tell


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show how many runs have finished; yield the function that reports it."""
    columns = (TextColumn(what), BarColumn(20), MofNCompleteColumn(), TimeRemainingColumn())
    with _shown(what, columns) as show:
        yield lambda done, total: show(f"{what}: {done:,} of {total:,}", completed=done, total=total)


@contextmanager
def stages(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """Show the current stage of a long calculation; yield the function that reports its name."""
    columns, names = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), TimeElapsedColumn()), count()

    def tell(stage: str) -> None:
        show(f"{what}: {stage}", description=f"{what}: {stage}", completed=next(names))

    with _shown(what, columns, description=what, total=total) as show:
        yield tell


@contextmanager
def working() -> Iterator[Callable[[str, int, int], None]]:
    """Show work in parts; yield the function that reports the current part, parts done and parts in all."""
    bar = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn())

    def tell(what: str, done: int, total: int) -> None:
        show(f"{what}: {done:,} of {total:,}", description=what, completed=done, total=total)

    with _shown("working", (SpinnerColumn(), *bar, TimeElapsedColumn())) as show:
        yield tell


@contextmanager
def _shown(
    begins: str, columns: Iterable[ProgressColumn], description: str = "", **task: Any
) -> Iterator[Callable[..., None]]:
    """Show a bar on stderr after a delay; yield the function that says in words how far the work is, and updates it.

    Where stderr is not a terminal, the words are printed if the work takes long.
    """
    console = Console(stderr=True)
    bar = Bar(*columns, console=console, transient=True, disable=not console.is_terminal)
    number = bar.add_task(description, **{"total": None, **task})
    state = [begins]

    def show(words: str, **changed: Any) -> None:
        bar.update(number, **changed)
        state[0] = words

    timer = Timer(PATIENCE_S, bar.start)
    timer.daemon = True
    timer.start()
    try:
        with under_way(lambda: state[0], lambda: bar.live.is_started and not bar.disable):
            yield show
    finally:
        timer.cancel()
        timer.join()
        if bar.live.is_started:
            bar.stop()
