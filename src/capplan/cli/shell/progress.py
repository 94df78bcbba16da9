"""Progress bars on stderr with the time left; occasional lines if stderr is not a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import Timer
from typing import TYPE_CHECKING

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
    bar = _bar(*columns)
    task = bar.add_task("simulating", total=plan.duration_s * plan.replications, rate="")
    began = time.monotonic()

    def tell(simulated_s: float, requests: int) -> None:
        passed = max(time.monotonic() - began, 1e-9)
        bar.update(task, completed=simulated_s, rate=f"{requests / passed:,.0f} requests/s")
        state[0] = f"simulating: {simulated_s / (plan.duration_s * plan.replications):.0%}"

    state = ["simulating"]
    with _shown(bar, state):
        yield tell


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show how many runs have finished; yield the function that reports it."""
    columns = (TextColumn(what), BarColumn(20), MofNCompleteColumn(), TimeRemainingColumn())
    bar = _bar(*columns)
    task = bar.add_task(what, total=None)
    state = [what]

    def tell(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total)
        state[0] = f"{what}: {done:,} of {total:,}"

    with _shown(bar, state):
        yield tell


@contextmanager
def stages(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """Show the current stage of a long calculation; yield the function that reports its name."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), TimeElapsedColumn())
    bar = _bar(*columns)
    task, names = bar.add_task(what, total=total), count()

    def tell(stage: str) -> None:
        bar.update(task, description=f"{what}: {stage}", completed=next(names))
        state[0] = f"{what}: {stage}"

    state = [what]
    with _shown(bar, state):
        yield tell


@contextmanager
def working() -> Iterator[Callable[[str, int, int], None]]:
    """Show work in parts; yield the function that reports the current part, parts done and parts in all."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    bar = _bar(*columns)
    task = bar.add_task("", total=None)
    state = ["working"]

    def tell(what: str, done: int, total: int) -> None:
        bar.update(task, description=what, completed=done, total=total)
        state[0] = f"{what}: {done:,} of {total:,}"

    with _shown(bar, state):
        yield tell


def _bar(*columns: ProgressColumn) -> Bar:
    """Return a bar on stderr, which shows nothing if that is not a terminal."""
    console = Console(stderr=True)
    return Bar(*columns, console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def _shown(bar: Bar, state: list[str]) -> Iterator[None]:
    """Start the bar after a delay, and stop it at the end if it started; print the state in words without a bar."""
    timer = Timer(PATIENCE_S, bar.start)
    timer.daemon = True
    timer.start()
    try:
        with under_way(lambda: state[0], lambda: bar.live.is_started and not bar.disable):
            yield
    finally:
        timer.cancel()
        timer.join()
        if bar.live.is_started:
            bar.stop()
