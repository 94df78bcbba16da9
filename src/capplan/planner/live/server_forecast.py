"""Predicts a load on a server by simulation, from request costs measured under smaller loads.

A request takes the only thread of the generator and a core for a while, then a core for the server's work, and waits
for what needs neither. Generator and server share the cores of one machine, as they do in the measurement.
"""

from __future__ import annotations

from functools import cache

from capplan.lab.collectors.collector import Costs
from capplan.models.language.distribution import Deterministic, Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Pool, Station
from capplan.models.language.step import Acquire, Delay, Sequence, Visit
from capplan.models.language.traffic import Closed, Open, RequestClass
from capplan.simulator.engine import simulate
from capplan.simulator.results.run import ClassReport

_REQUESTS = 20_000
_LEAST_S = 1e-7
_REQUEST, _CORES, _THREAD = "request", "cores", "generator"
_WARM_UP = 0.2  # of the simulated time


def throughput_per_s(costs: Costs, cores: int, clients: int) -> float:
    """Return the throughput of closed clients without think time, requests per second."""
    slowest = min(clients / costs.total_s, 1 / costs.client_s, cores / (costs.client_s + costs.server_s))
    return _run(costs, cores, clients, None, _REQUESTS / slowest).throughput_per_s


def latency_s(costs: Costs, cores: int, rate_per_s: float) -> float:
    """Return the mean latency of open traffic with Poisson arrivals."""
    return _run(costs, cores, None, rate_per_s, _REQUESTS / rate_per_s).latency().mean_s


@cache
def _run(costs: Costs, cores: int, clients: int | None, rate_per_s: float | None, duration_s: float) -> ClassReport:
    flow = Sequence(
        (
            Acquire(_THREAD, Visit(_CORES, Exponential(max(costs.client_s, _LEAST_S)), name="client")),
            Visit(_CORES, Exponential(max(costs.server_s, _LEAST_S)), name="server"),
            Delay(Deterministic(max(costs.other_s, 0.0)), name="other"),
        )
    )
    mix = {_REQUEST: 1.0}
    network = Network(
        name="server",
        stations=(Station(_CORES, cores),),
        pools=(Pool(_THREAD, 1),),
        classes=(RequestClass(_REQUEST, flow),),
        traffic=Open(rate_per_s or 0.0, mix) if clients is None else Closed(clients, Deterministic(0.0), mix),
    )
    return simulate(network, duration_s, seed=1, warmup_s=_WARM_UP * duration_s).report()
