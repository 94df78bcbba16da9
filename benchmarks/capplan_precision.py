"""capplan until its p99 is known within 2 %: what `capplan simulate --precision 'p99<2%'` does, in one process."""

from __future__ import annotations

from typing import Any

import networks
import numpy as np
from settings import MM4_BUSY_RATE_PER_S

from capplan.cli.simulate import MOST_REPLICATIONS
from capplan.models.language.network import Network
from capplan.planner.simulate.simulate import Design, observed, of_network, summed_up
from capplan.planner.simulate.simulation import EVERY_CLASS, read_precision_target
from capplan.simulator.replications import ReplicationPlan

TARGET = "p99<2%"


def mm4_one(requests: int, seed: int) -> dict[str, Any]:
    """M/M/4 by one processor, replications of that many requests."""
    return _until_known(networks.mm4(), requests, seed, 1)


def mm4_two(requests: int, seed: int) -> dict[str, Any]:
    """M/M/4 by two processors."""
    return _until_known(networks.mm4(), requests, seed, 2)


def busy_one(requests: int, seed: int) -> dict[str, Any]:
    """M/M/4 at 95 % load by one processor."""
    return _until_known(networks.mm4(MM4_BUSY_RATE_PER_S), requests, seed, 1)


def busy_two(requests: int, seed: int) -> dict[str, Any]:
    """M/M/4 at 95 % load by two processors."""
    return _until_known(networks.mm4(MM4_BUSY_RATE_PER_S), requests, seed, 2)


def _until_known(network: Network, requests: int, seed: int, processes: int) -> dict[str, Any]:
    rate_per_s = float(np.max(network.traffic.rate_per_s))  # type: ignore[union-attr]  # all traffic here is open
    plan = ReplicationPlan(network, requests / rate_per_s, 0.0, seed, MOST_REPLICATIONS)
    design = Design(
        precision=read_precision_target(
            TARGET, [each.name for each in network.classes], [each.name for each in network.classes]
        )
    )
    found = summed_up(network.name, of_network(network), plan, design, observed(plan, design, processes=processes))
    p99 = found.classes[EVERY_CLASS].latency_ms.intended.p99
    return {
        "requests": found.replications * requests,  # those of warm-ups too: they cost as much
        "replications": found.replications,
        "reached": found.precision is not None and found.precision.reached,
        "p99_s": p99.value * 1e-3,
        "half_width_s": None if p99.half_width is None else p99.half_width * 1e-3,
    }
