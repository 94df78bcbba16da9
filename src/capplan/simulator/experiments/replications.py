"""Independent replications of one network, several at a time, with the same results however many that is.

The compiled engine releases the interpreter, so its replications run in threads of one process; those of the SimPy
engine run in processes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, overload

from capplan.models.errors import InputError
from capplan.models.language.network import Network
from capplan.simulator.engine import Engine, Progress, check_engine, simulate
from capplan.simulator.experiments import workers as pools
from capplan.simulator.results.histogram import IntArray
from capplan.simulator.results.run import Run
from capplan.simulator.results.trace import Requests

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
        """Note the simulated seconds and the started requests of a replication, and tell the sums."""
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
    """Run a replication; return what is kept of it, its number, and its simulated seconds and started requests."""
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
