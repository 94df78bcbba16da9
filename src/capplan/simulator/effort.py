"""Estimates the work of a simulation before it begins: requests, memory, and time on a nominal machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capplan.errors import InputError
from capplan.models.language.network import Network
from capplan.models.language.step import Delay, ForkJoin, Sequence, Step, Visit, children, walk
from capplan.models.language.traffic import Closed
from capplan.models.language.units import Number
from capplan.simulator.engine import Engine
from capplan.simulator.replications import ReplicationPlan
from capplan.simulator.results.histogram import BINS
from capplan.simulator.results.tally import INTERVALS

LONGEST_S = 3600.0
MOST_BYTES = 4 * 2**30
CONSENT = "--no-limits"
"""The option that accepts any amount of work."""
_STEP_S: dict[Engine, float] = {"compiled": 200e-9, "simpy": 20e-6}
_KEPT_BYTES = 1_500  # of a replication, beside the first ones
_PLACE_COLUMNS, _CLIENT_BYTES = 40, 400
_FILLED = 0.1  # of the bins of a histogram
_WHOLE_RUNS = 10  # that are in memory at once
_QUICKEST_S = 1e-6  # of a cycle of a client
_YEAR_S = 365.25 * 86_400


@dataclass(frozen=True)
class Work:
    """An estimate of work, to an order of magnitude.

    Attributes
    ----------
    requests : float
        Requests of all replications.
    time_s : float
        Seconds of one processor.
    memory_bytes : float
        Memory beside that of queues, which nobody knows before.
    """

    requests: float
    time_s: float
    memory_bytes: float


def work_of(plan: ReplicationPlan) -> Work:
    """Estimate the work of a plan."""
    network, traffic = plan.network, plan.network.traffic
    if isinstance(traffic, Closed):
        flows = {each.name: each.flow for each in network.classes}
        cycle_s = traffic.think.mean + min(
            (_least_s(flows[name]) for name in traffic.mix if name in flows), default=0.0
        )
        rate = traffic.clients / max(float(np.min(cycle_s)), _QUICKEST_S)
    else:
        rate = float(np.max(traffic.rate_per_s))
    clients = getattr(traffic, "clients", 0)
    requests = rate * plan.duration_s * plan.replications
    places = sum(each.count or 1 for each in network.stations) + sum(each.count or 1 for each in network.pools)
    cells = places * _PLACE_COLUMNS + _FILLED * BINS * len(network.classes)
    run = 8 * INTERVALS * cells + _CLIENT_BYTES * clients
    return Work(
        requests,
        requests * _steps_a_request(network) * _STEP_S[plan.engine],
        min(plan.replications, _WHOLE_RUNS) * run + plan.replications * _KEPT_BYTES,
    )


def check_work(plan: ReplicationPlan) -> None:
    """Refuse a simulation that takes longer than an hour or more memory than 4 GiB.

    Raises
    ------
    InputError
        Names the estimate, the limit, and the option that accepts it.
    """
    work = work_of(plan)
    if not work.time_s <= LONGEST_S:
        raise InputError(
            f"the simulation has {_number(work.requests)} requests and takes about {_time(work.time_s)}, and the limit "
            f"is an hour: choose a shorter duration, a lower rate or fewer replications, or add {CONSENT}"
        )
    if not work.memory_bytes <= MOST_BYTES:
        raise InputError(
            f"the simulation takes about {_number(work.memory_bytes / 2**30)} GiB of memory, and the limit is "
            f"{MOST_BYTES / 2**30:.0f} GiB: choose fewer replications, clients or stations, or add {CONSENT}"
        )


def _steps_a_request(network: Network) -> float:
    """Return the largest number of steps of a request class, counting each step once."""
    return max((sum(1 for _ in walk(each.flow)) for each in network.classes), default=1)


def _least_s(step: Step) -> Number:
    """Return roughly the shortest mean time of a step in seconds: its quickest branch, without queueing."""
    if isinstance(step, Visit):
        return step.demand.mean
    if isinstance(step, Delay):
        return step.duration.mean
    inside = [_least_s(each) for each in children(step)]
    if isinstance(step, Sequence):
        return sum(inside, 0.0)
    needed = not isinstance(step, ForkJoin) or step.needed
    return min(inside, key=np.min) if inside and needed else 0.0


def _number(value: float) -> str:
    return f"{value:,.0f}" if value < 1e9 else f"{value:.0e}".replace("e+", "e")


def _time(seconds: float) -> str:
    if seconds < 2 * 86_400:
        return f"{seconds / 3600:,.0f} hours" if seconds >= 5400 else f"{seconds / 60:,.0f} minutes"
    return f"{seconds / 86_400:,.0f} days" if seconds < _YEAR_S else f"{_number(seconds / _YEAR_S)} years"
