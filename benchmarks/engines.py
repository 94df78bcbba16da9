"""Speed of capplan's engines as ratios against hand-written SimPy, on one model, in one run.

The model is M/M/4 at 80 % load. Each contender is checked to give the right mean response before it is timed; the
contenders take turns, and the median of the rounds is printed. Run with `just bench`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np
import simpy

from capplan import Analysis, Network, simulate
from capplan.models.distribution import Exponential
from capplan.models.operating_point import solve
from capplan.models.single_station import mmc
from capplan.models.station import Station
from capplan.models.step import Visit
from capplan.models.traffic import Open, RequestClass

SERVERS, SERVICE_S, RATE_PER_S = 4, 1.0e-3, 3200.0
REQUESTS, ROUNDS = 200_000, 3
TOLERANCE = 0.05  # of the mean response: about four standard errors at this length

NETWORK = Network(
    name="M/M/4",
    stations=(Station("server", SERVERS),),
    classes=(RequestClass("request", Visit("server", Exponential(SERVICE_S))),),
    traffic=Open(RATE_PER_S, {"request": 1.0}),
)


def by_hand() -> float:
    """Plain SimPy with a Resource; returns the mean response in seconds."""
    random = np.random.default_rng(1)
    environment = simpy.Environment()
    server = simpy.Resource(environment, SERVERS)
    responses: list[float] = []

    def request() -> Iterator[simpy.Event]:
        start = environment.now
        with server.request() as turn:
            yield turn
            yield environment.timeout(random.exponential(SERVICE_S))
        responses.append(environment.now - start)

    def traffic() -> Iterator[simpy.Event]:
        for _ in range(REQUESTS):
            yield environment.timeout(random.exponential(1 / RATE_PER_S))
            environment.process(request())

    environment.process(traffic())
    environment.run()
    return statistics.fmean(responses)


def by_engine() -> float:
    """Run capplan's SimPy engine, interpreting the language."""
    return simulate(NETWORK, REQUESTS / RATE_PER_S, seed=1).latency_mean_s("request")


def by_formula() -> float:
    """Run capplan's analytic solver, analysis included."""
    return float(solve(Analysis(NETWORK), RATE_PER_S).response_s("request")[0])


CONTENDERS: dict[str, Callable[[], float]] = {
    "SimPy, by hand": by_hand,
    "capplan, simpy engine": by_engine,
    "capplan, analytic": by_formula,
}


def main() -> None:
    """Check, time and print."""
    truth = float(mmc(RATE_PER_S, SERVICE_S, SERVERS).mean_response_s)
    seconds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for _ in range(ROUNDS):
        for name, run in CONTENDERS.items():
            start = time.perf_counter()
            mean = run()
            seconds[name].append(time.perf_counter() - start)
            if abs(mean / truth - 1) > TOLERANCE:
                raise SystemExit(f"{name} says {mean:.4g} s where theory says {truth:.4g} s")
    slowest = statistics.median(seconds["SimPy, by hand"])
    print(f"M/M/4 at 80 % load, mean response {truth * 1e3:.3f} ms, {REQUESTS:,} requests, median of {ROUNDS}")
    for name, times in seconds.items():
        middle = statistics.median(times)
        print(f"  {name:24s}{REQUESTS / middle:14,.0f} requests/s{slowest / middle:12.2f} x SimPy by hand")


if __name__ == "__main__":
    main()
