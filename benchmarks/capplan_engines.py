"""capplan itself: its engines on the same models. The compiled engine takes part as soon as it exists."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

import networks
import numpy as np
from flow_simpy_plain import WARM_UP

from capplan.models.language.network import Network
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import solve
from capplan.simulator.results.run import Run
from capplan.simulator.results.tally import Status

ENGINES = {"compiled": "capplan.simulator.compiled.engine", "simpy": "capplan.simulator.reference.engine"}

Engine = Callable[..., Run]


def mm4_compiled(requests: int, seed: int) -> dict[str, Any]:
    """M/M/4."""
    return _single_class("compiled", networks.mm4(), requests, seed)


def mm4_simpy(requests: int, seed: int) -> dict[str, Any]:
    """M/M/4."""
    return _single_class("simpy", networks.mm4(), requests, seed)


def quorum_compiled(requests: int, seed: int) -> dict[str, Any]:
    """2-of-3 quorum."""
    return _single_class("compiled", networks.quorum(), requests, seed)


def quorum_simpy(requests: int, seed: int) -> dict[str, Any]:
    """2-of-3 quorum."""
    return _single_class("simpy", networks.quorum(), requests, seed)


def shared_compiled(requests: int, seed: int) -> dict[str, Any]:
    """Three-data-centre flow as calibrated."""
    return _flow("compiled", "ps", requests, seed)


def shared_simpy(requests: int, seed: int) -> dict[str, Any]:
    """Three-data-centre flow as calibrated."""
    return _flow("simpy", "ps", requests, seed)


def queued_compiled(requests: int, seed: int) -> dict[str, Any]:
    """Three-data-centre flow with cores that serve first come, first served."""
    return _flow("compiled", "fcfs", requests, seed)


def queued_simpy(requests: int, seed: int) -> dict[str, Any]:
    """Three-data-centre flow with cores that serve first come, first served."""
    return _flow("simpy", "fcfs", requests, seed)


def mm4_analytic(solutions: int, _: int) -> dict[str, Any]:
    """Solve M/M/4 that many times, each from the network on."""
    for _ in range(solutions):
        mean_s = float(solve(Analysis(networks.mm4()), _rate(networks.mm4())).response_s("request")[0])
    return {"mean_s": mean_s, "exact": True}


def shared_analytic(solutions: int, _: int) -> dict[str, Any]:
    """Solve the three-data-centre flow that many times, each from the network on."""
    network = networks.flow("ps")
    for _ in range(solutions):
        point = solve(Analysis(network), _rate(network))
        classes = {name: {"mean_s": float(point.response_s(name)[0])} for name in networks.CLASSES}
    return {"classes": classes}


@lru_cache
def _engine(name: str) -> Engine:
    engine: Engine = import_module(ENGINES[name]).simulate
    return engine


def _rate(network: Network) -> float:
    return float(np.asarray(network.traffic.rate_per_s))  # type: ignore[union-attr]  # all traffic here is open


def _single_class(engine: str, network: Network, requests: int, seed: int) -> dict[str, Any]:
    run = _engine(engine)(network, requests / _rate(network), seed=seed)
    return {
        "requests": run.count(Status.COMPLETED),
        "mean_s": run.latency_mean_s("request"),
        "p99_s": run.latency_quantile_s(0.99, "request"),
        "events": run.events,
    }


def _flow(engine: str, discipline: str, requests: int, seed: int) -> dict[str, Any]:
    network = networks.flow(discipline)
    until_s = requests / _rate(network)
    run = _engine(engine)(network, until_s, seed=seed, warmup_s=WARM_UP * until_s)
    completed = {name: run.count(Status.COMPLETED, name) for name in run.classes}
    return {
        "requests": round(sum(completed.values()) / (1 - WARM_UP)),
        "events": run.events,
        "drops": run.count(Status.DROPPED),
        "classes": {
            name: {"count": count, "mean_s": run.latency_mean_s(name), "p99_s": run.latency_quantile_s(0.99, name)}
            for name, count in completed.items()
        },
        "utilisation": {
            place: float(np.mean([s.utilisation for s in run.stations.values() if s.name.startswith(f"{start}/")]))
            for place, start in (("front", "front"), ("cassandra", "cassandra"), ("storage", "cassandra-storage"))
        },
    }
