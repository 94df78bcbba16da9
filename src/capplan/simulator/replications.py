"""Independent replications of one network, and its runs at several draws of the parameters."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

from capplan.errors import InputError
from capplan.models.language.construct import at_draw
from capplan.models.language.network import Network
from capplan.simulator import workers as pools
from capplan.simulator.engine import Engine, Progress, check_engine, simulate
from capplan.simulator.results.histogram import IntArray
from capplan.simulator.results.run import Run
from capplan.simulator.results.tally import Requests
from capplan.simulator.specification.clock import to_ticks
from capplan.simulator.specification.network_facts import check_draws, check_run

if TYPE_CHECKING:
    from capplan.simulator.compiled.lowering import Lowered


T = TypeVar("T")
WriteRequests = Callable[[Requests, int, IntArray], None]


@dataclass(frozen=True)
class ReplicationPlan:
    """What to run.

    Attributes
    ----------
    network : Network
        The network.
    duration_s, warmup_s : float
        How long traffic arrives, and how much of the beginning the statistics leave out, in seconds.
    seed : int
        The seed of all replications.
    replications : int
        Number of replications; they are numbered from 0.
    engine
        `compiled` or `simpy`.
    """

    network: Network
    duration_s: float
    warmup_s: float
    seed: int
    replications: int = 1
    engine: Engine = "compiled"


@overload
def replicate(
    plan: ReplicationPlan,
    keep: None = None,
    *,
    numbers: range | None = None,
    processes: int = 1,
    progress: Progress | None = None,
    write: WriteRequests | None = None,
) -> list[Run]: ...


@overload
def replicate(
    plan: ReplicationPlan,
    keep: Callable[[Run], T],
    *,
    numbers: range | None = None,
    processes: int = 1,
    progress: Progress | None = None,
    write: WriteRequests | None = None,
) -> list[T]: ...


def replicate(
    plan: ReplicationPlan,
    keep: Callable[[Run], Any] | None = None,
    *,
    numbers: range | None = None,
    processes: int = 1,
    progress: Progress | None = None,
    write: WriteRequests | None = None,
) -> list[Any]:
    """Run replications.

    Parameters
    ----------
    plan : ReplicationPlan
        What to run.
    keep : callable, optional
        What to keep of a run, which may be large; picklable for the SimPy engine. Left out, all of it.
    numbers : range, optional
        The numbers of the replications to run; left out, all of the plan.
    processes : int
        How many replications run at a time; the compiled engine runs them in threads. Results do not depend on it.
    progress : callable, optional
        Called with the simulated seconds and the started requests of these replications together. Several threads call
        it, one at a time.
    write : callable, optional
        Called with requests, the number of their replication, and their own numbers in it. Replications then run one
        after another, so that requests need not wait in memory and always come in the same order.

    Returns
    -------
    list
        What was kept of each run, in the order of the numbers.

    Raises
    ------
    InputError
        When the plan or `processes` make no sense.
    """
    check_engine(plan.engine)
    if plan.replications < 1 or processes < 1:
        raise InputError(f"{plan.replications} replications by {processes} processes: there must be at least one each")
    wanted = range(plan.replications) if numbers is None else numbers
    count = 1 if write is not None else min(processes, len(wanted))
    total = _Total(progress)
    if plan.engine == "simpy" and count > 1:
        with pools.processes(count) as workers:
            calls = (partial(_run, plan, keep, number) for number in wanted)
            return [kept for kept, _, _ in pools.run_all(workers, calls, lambda run: total.update(*run[1:]))]
    with pools.threads(count) if count > 1 else pools.in_process() as workers:

        def run(number: int) -> Any:
            def listen(simulated_s: float, requests: int) -> None:
                workers.check()
                total.update(number, (simulated_s, requests))

            return _run(plan, keep, number, listen, write)[0]

        return pools.run_all(workers, (partial(run, number) for number in wanted))


@dataclass
class _Total:
    """The progress of all replications together."""

    tell: Progress | None
    lock: threading.Lock = field(default_factory=threading.Lock)
    each: dict[int, tuple[float, int]] = field(default_factory=dict)

    def update(self, number: int, state: tuple[float, int]) -> None:
        """Record a replication's simulated seconds and started requests, and report the sums."""
        with self.lock:
            self.each[number] = state
            if self.tell is not None:
                seconds, requests = zip(*self.each.values(), strict=True)
                self.tell(sum(seconds), sum(requests))


def _run(
    plan: ReplicationPlan,
    keep: Callable[[Run], Any] | None,
    number: int,
    progress: Progress | None = None,
    write: WriteRequests | None = None,
) -> tuple[Any, int, tuple[float, int]]:
    """Run a replication; return the kept data, its number, and its simulated seconds and started requests."""
    run = simulate(
        plan.network,
        plan.duration_s,
        seed=plan.seed,
        replication=number,
        warmup_s=plan.warmup_s,
        engine=plan.engine,
        progress=progress,
        sink=None if write is None else lambda requests, own: write(requests, number, own),
    )
    return run if keep is None else keep(run), number, (plan.duration_s, run.report().started)


Read = TypeVar("Read")
RunsDone = Callable[[int, int], None]  # the number of completed runs, and of all


class DrawRun(NamedTuple):
    """A run of one draw: its number, the replication that provides its random streams, duration and warm-up."""

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
    """Run draws of a network and extract a result from each run.

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
    """Lower the network; return a function that runs one draw of it."""
    from capplan.simulator.compiled import engine as compiled  # the kernel is needed for this engine only

    lowered = _lowered(network)

    def progress(_simulated_s: float, _requests: int) -> None:
        workers.check()

    def run(each: DrawRun) -> Run:
        window = to_ticks(each.warmup_s), to_ticks(each.duration_s)
        begun = compiled.begin(lowered.with_draw(each.draw), window, (seed, each.replication))
        return compiled.run(begun, trace=False, progress=progress, sink=None)

    return run


def _lowered(network: Network) -> Lowered:
    """Lower a network, or reuse the last one, for more draws of it or the same draws at other rates."""
    from capplan.simulator.compiled import lowering

    with _lowering:
        known = (each.with_traffic_of(network) for each in _last)
        _last[:] = [next((each for each in known if each is not None), None) or lowering.lower(network)]
        return _last[0]


_last: list[Lowered] = []
_lowering = threading.Lock()
