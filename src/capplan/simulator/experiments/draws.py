"""Runs of one network at several draws of its parameters, several at a time, with the same results however many.

The network's laws, and the numbers of its open traffic, are arrays over draws. For the compiled engine its flows are
lowered once; a draw then costs milliseconds.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from capplan.models.language.draws import at_draw
from capplan.models.language.network import Network
from capplan.simulator.engine import Engine, check_engine, simulate
from capplan.simulator.results.run import Run
from capplan.simulator.specification.clock import to_ticks
from capplan.simulator.specification.scope import check_draws, check_run

if TYPE_CHECKING:
    from capplan.simulator.compiled.lowering import Lowered

Read = TypeVar("Read")
RunsDone = Callable[[int, int], None]  # told how many of how many runs have ended


class DrawRun(NamedTuple):
    """A run of one draw: which draw, the replication whose random numbers it has, how long, and the warm-up in it."""

    draw: int
    replication: int
    duration_s: float
    warmup_s: float


def simulate_draws(
    network: Network,
    runs: Sequence[DrawRun],
    read: Callable[[Run], Read],
    *,
    seed: int,
    engine: Engine = "compiled",
    progress: RunsDone | None = None,
    threads: int | None = None,
) -> list[Read]:
    """Run draws of a network and read something off each run.

    Parameters
    ----------
    network
        What to run; its laws and the numbers of its open traffic may be arrays over draws.
    runs
        The runs. Long ones are best first.
    read
        What to keep of a run, which may be large.
    seed
        The seed of all runs.
    engine
        `compiled`, several at a time, or `simpy`, one run after another.
    progress
        Told how many of how many runs have ended; by several threads, one at a time.
    threads
        How many runs of the compiled engine go on at a time; None is as many as there are processors.

    Returns
    -------
    list
        What was read, in the order of `runs`.

    Raises
    ------
    RefusedError
        When anything else than laws and open traffic holds arrays, or something is too long or extreme for an engine.
    InputError
        When durations or numbers make no sense.
    """
    check_draws(network)
    for each in runs:
        check_run(each.duration_s, each.warmup_s, seed, each.replication, None)
    course = _Course(len(runs), progress)
    if check_engine(engine) == "compiled":
        by_compiled = _compiled(network, seed, course)
        return _side_by_side(lambda each: course.ended(read(by_compiled(each))), runs, course, threads)
    return [course.ended(read(_by_simpy(network, each, seed))) for each in runs]


@dataclass
class _Course:
    """How far the runs have come together, and whether they are still wanted."""

    runs: int
    tell: RunsDone | None
    stopped: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    done: int = 0

    def going(self, simulated_s: float, requests: int) -> None:
        """Let a run go on or not."""
        if self.stopped.is_set():
            raise InterruptedError(f"stopped after {simulated_s:g} s and {requests} requests")

    def ended(self, found: Read) -> Read:
        """Count a run that has ended, and pass on what was read off it."""
        with self.lock:
            self.done += 1
            if self.tell is not None:
                self.tell(self.done, self.runs)
        return found


def _by_simpy(network: Network, each: DrawRun, seed: int) -> Run:
    return simulate(
        at_draw(network, each.draw),
        each.duration_s,
        seed=seed,
        replication=each.replication,
        warmup_s=each.warmup_s,
        engine="simpy",
    )


def _compiled(network: Network, seed: int, course: _Course) -> Callable[[DrawRun], Run]:
    """Lower the network; return what runs a draw of it."""
    from capplan.simulator.compiled import engine as compiled  # numba takes longer to import than all the rest

    lowered = _lowered(network)

    def run(each: DrawRun) -> Run:
        window = to_ticks(each.warmup_s), to_ticks(each.duration_s)
        begun = compiled.begin(lowered.with_draw(each.draw), window, (seed, each.replication))
        return compiled.run(begun, trace=False, progress=course.going, sink=None)

    return run


def _lowered(network: Network) -> Lowered:
    """Lower a network, or recall the last one: more draws of it may be run later, or the same at other rates."""
    from capplan.simulator.compiled import lowering

    with _lowering:
        known = (each.with_traffic_of(network) for each in _last)
        _last[:] = [next((each for each in known if each is not None), None) or lowering.lower(network)]
        return _last[0]


_last: list[Lowered] = []
_lowering = threading.Lock()


def _side_by_side(
    one: Callable[[DrawRun], Read], runs: Sequence[DrawRun], course: _Course, threads: int | None
) -> list[Read]:
    most = threads or os.cpu_count() or 1
    with ThreadPoolExecutor(min(len(runs), most), thread_name_prefix="draw") as pool:
        try:
            return [future.result() for future in [pool.submit(one, each) for each in runs]]
        except BaseException:
            course.stopped.set()  # else leaving would wait until all have come to their end
            pool.shutdown(wait=False, cancel_futures=True)
            raise
