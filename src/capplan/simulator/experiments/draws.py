"""Runs of one network at several draws of its parameters, several at a time, with the same results however many.

The parameters of the network's distributions and of its open traffic are arrays over draws. For the compiled engine
the flows are lowered once; a draw then costs milliseconds.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from capplan.models.language.draws import at_draw
from capplan.models.language.network import Network
from capplan.simulator.engine import Engine, check_engine, simulate
from capplan.simulator.experiments import workers as pools
from capplan.simulator.results.run import Run
from capplan.simulator.specification.clock import to_ticks
from capplan.simulator.specification.scope import check_draws, check_run

if TYPE_CHECKING:
    from capplan.simulator.compiled.lowering import Lowered

Read = TypeVar("Read")
RunsDone = Callable[[int, int], None]  # the number of completed runs, and of all


class DrawRun(NamedTuple):
    """A run of one draw: its number, the replication whose random streams it uses, the duration and warm-up in it."""

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
    network : Network
        What to run. The parameters of its distributions and of its open traffic may be arrays over draws.
    runs : sequence of DrawRun
        The runs; long ones are best first.
    read : callable
        What to keep of a run, which may be large.
    seed : int
        The seed of all runs.
    engine
        `compiled`, several at a time, or `simpy`, one run after another.
    progress : callable, optional
        Called with the number of completed runs and of all, after each.
    threads : int, optional
        How many runs of the compiled engine go on at a time; left out, as many as there are processors.

    Returns
    -------
    list
        What was read, in the order of `runs`.

    Raises
    ------
    RefusedError
        When anything but distributions and open traffic holds arrays, or something is too long or extreme for an
        engine.
    InputError
        When durations or numbers make no sense.
    """
    check_draws(network)
    for each in runs:
        check_run(each.duration_s, each.warmup_s, seed, each.replication, None)
    ended = count(1)

    def tell(_: Read) -> None:
        if progress is not None:
            progress(next(ended), len(runs))

    most = min(len(runs), threads or os.cpu_count() or 1) if check_engine(engine) == "compiled" else 1
    with pools.threads(most) if most > 1 else pools.in_process() as workers:
        run = _compiled(network, seed, workers) if engine == "compiled" else partial(_by_simpy, network, seed)

        def run_and_read(each: DrawRun) -> Read:
            return read(run(each))

        return pools.run_all(workers, (partial(run_and_read, each) for each in runs), tell)


def _by_simpy(network: Network, seed: int, each: DrawRun) -> Run:
    return simulate(
        at_draw(network, each.draw),
        each.duration_s,
        seed=seed,
        replication=each.replication,
        warmup_s=each.warmup_s,
        engine="simpy",
    )


def _compiled(network: Network, seed: int, workers: pools.Workers) -> Callable[[DrawRun], Run]:
    """Lower the network; return what runs a draw of it."""
    from capplan.simulator.compiled import engine as compiled  # the kernel is needed for this engine only

    lowered = _lowered(network)

    def progress(simulated_s: float, requests: int) -> None:
        del simulated_s, requests
        workers.check()

    def run(each: DrawRun) -> Run:
        window = to_ticks(each.warmup_s), to_ticks(each.duration_s)
        begun = compiled.begin(lowered.with_draw(each.draw), window, (seed, each.replication))
        return compiled.run(begun, trace=False, progress=progress, sink=None)

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
