"""The entry point of the simulator: one run of a network by either engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from capplan.errors import one_of
from capplan.models.language.network import Network
from capplan.simulator.results.histogram import IntArray
from capplan.simulator.results.run import Run
from capplan.simulator.results.tally import Requests

Engine = Literal["compiled", "simpy"]
Progress = Callable[[float, int], None]
Sink = Callable[[Requests, IntArray], None]
ENGINES: tuple[Engine, ...] = ("compiled", "simpy")


def simulate(  # noqa: PLR0913 - the options of a run are the arguments of its function
    network: Network,
    duration_s: float,
    *,
    seed: int,
    replication: int = 0,
    warmup_s: float = 0.0,
    max_requests: int | None = None,
    trace: bool = False,
    engine: Engine = "compiled",
    progress: Progress | None = None,
    sink: Sink | None = None,
) -> Run:
    """Run a network once.

    Both engines give the same run, request by request. The compiled one is about a hundred times faster.

    Parameters
    ----------
    network : Network
        The network; it must hold no arrays of parameter draws.
    duration_s : float
        How long the traffic lasts, in seconds. Statistics cover the time from `warmup_s` to `duration_s`. Requests that
        have started run to their end.
    seed, replication : int
        Select the random numbers: equal ones give equal runs, different ones independent runs.
    warmup_s : float
        The time at the start that statistics leave out, in seconds.
    max_requests : int, optional
        The largest number of requests, retries not counted; no limit when left out.
    trace : bool
        Keep every request.
    engine : {"compiled", "simpy"}
        The engine.
    progress : callable, optional
        Called with the simulated seconds and the number of requests that have started: from time to time by the
        compiled engine, at the end by SimPy.
    sink : callable, optional
        Receives every request with its number in the order of starting, many at a time and in no particular order, so
        that they need not fit into memory; from SimPy all of them at the end.

    Returns
    -------
    Run
        The statistics of the run, and its requests with `trace`.

    Raises
    ------
    InputError
        When the durations, the seed or the engine are invalid.
    RefusedError
        When the network holds an array of parameter draws, or something too long or too extreme for an engine.
    MissingError
        When the compiled engine is not installed.
    """
    if check_engine(engine) == "compiled":
        from capplan.simulator.compiled import engine as compiled  # the kernel is needed for this engine only

        return compiled.simulate(
            network,
            duration_s,
            seed=seed,
            replication=replication,
            warmup_s=warmup_s,
            max_requests=max_requests,
            trace=trace,
            progress=progress,
            sink=sink,
        )
    from capplan.simulator.reference import engine as reference  # SimPy is needed for this engine only

    run = reference.simulate(
        network, duration_s, seed=seed, replication=replication, warmup_s=warmup_s, max_requests=max_requests
    )
    started = len(run.requests.start_ticks)
    if progress is not None:
        progress(duration_s, started)
    if sink is not None:
        sink(run.requests, np.arange(started))
    return run if trace else replace(run, trace=None)


def check_engine(name: str) -> Engine:
    """Return the engine with this name.

    Raises
    ------
    InputError
        When there is none; names the nearest one.
    """
    return one_of(ENGINES, name, f"engine {name!r} does not exist")
