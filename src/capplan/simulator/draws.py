"""Runs of one network at several draws of its parameters, several at a time, with the same results however many.

The network's laws, and the numbers of its open traffic, are arrays over draws. For the compiled engine its flows are
lowered once; a draw then costs milliseconds.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from capplan.models.draws import at_draw
from capplan.models.network import Network
from capplan.simulator.clock import to_ticks
from capplan.simulator.engine import Engine, check_engine, simulate
from capplan.simulator.run import Run
from capplan.simulator.scope import check_draws, check_run

Read = TypeVar("Read")


class DrawRun(NamedTuple):
    """A run of one draw: which draw, the replication whose random numbers it has, how long, and the warm-up in it."""

    draw: int
    replication: int
    duration_s: float
    warmup_s: float


def simulate_draws(
    network: Network, runs: Sequence[DrawRun], read: Callable[[Run], Read], *, seed: int, engine: Engine = "compiled"
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
        `compiled`, by as many threads as there are processors, or `simpy`, one run after another.

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
    if check_engine(engine) == "compiled":
        return _compiled(network, runs, read, seed)
    return [read(_by_simpy(network, each, seed)) for each in runs]


def _by_simpy(network: Network, each: DrawRun, seed: int) -> Run:
    return simulate(
        at_draw(network, each.draw),
        each.duration_s,
        seed=seed,
        replication=each.replication,
        warmup_s=each.warmup_s,
        engine="simpy",
    )


@dataclass
class _Stop:
    """Told to the runs that are still going when one of them has failed or the user has had enough."""

    wanted: threading.Event

    def __call__(self, simulated_s: float, requests: int) -> None:
        if self.wanted.is_set():
            raise InterruptedError(f"stopped after {simulated_s:g} s and {requests} requests")


def _compiled(network: Network, runs: Sequence[DrawRun], read: Callable[[Run], Read], seed: int) -> list[Read]:
    from capplan.simulator import compiled, program  # numba takes longer to import than all the rest

    lowered, stop = program.lower(network), _Stop(threading.Event())

    def one(each: DrawRun) -> Read:
        window = to_ticks(each.warmup_s), to_ticks(each.duration_s)
        course = compiled.begin(lowered.with_draw(each.draw), window, (seed, each.replication))
        return read(compiled.run(course, trace=False, progress=stop, sink=None))

    with ThreadPoolExecutor(min(len(runs), os.cpu_count() or 1), thread_name_prefix="draw") as pool:
        try:
            return [future.result() for future in [pool.submit(one, each) for each in runs]]
        except BaseException:
            stop.wanted.set()  # else leaving would wait until all have come to their end
            pool.shutdown(wait=False, cancel_futures=True)
            raise
