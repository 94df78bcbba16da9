"""Ciw: a library of queueing networks in plain Python. It has no fork-join, so it runs M/M/4 only."""

from __future__ import annotations

import ciw
from settings import MM4_BUSY_RATE_PER_S, MM4_RATE_PER_S, MM4_SERVERS, MM4_SERVICE_S


def mm4(requests: int, seed: int) -> dict[str, float]:
    """M/M/4, until that many customers have finished."""
    return _summed_up(_responses(requests, seed, MM4_RATE_PER_S))


def mm4_p99(requests: int, seed: int) -> dict[str, float]:
    """M/M/4 with its percentile."""
    return _with_p99(_responses(requests, seed, MM4_RATE_PER_S))


def busy_p99(requests: int, seed: int) -> dict[str, float]:
    """M/M/4 at 95 % load with its percentile."""
    return _with_p99(_responses(requests, seed, MM4_BUSY_RATE_PER_S))


def _responses(requests: int, seed: int, rate_per_s: float) -> list[float]:
    ciw.seed(seed)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate=rate_per_s)],
        service_distributions=[ciw.dists.Exponential(rate=1 / MM4_SERVICE_S)],
        number_of_servers=[MM4_SERVERS],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(requests, method="Finish")
    records = simulation.get_all_records()
    return [record.exit_date - record.arrival_date for record in records]


def _summed_up(responses: list[float]) -> dict[str, float]:
    return {"requests": len(responses), "mean_s": sum(responses) / len(responses)}


def _with_p99(responses: list[float]) -> dict[str, float]:
    return {**_summed_up(responses), "p99_s": sorted(responses)[len(responses) * 99 // 100]}
