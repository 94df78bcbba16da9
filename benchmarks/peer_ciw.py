"""Ciw: a library of queueing networks in plain Python. It has no fork-join, so it runs M/M/4 only."""

from __future__ import annotations

import ciw
from settings import MM4_RATE_PER_S, MM4_SERVERS, MM4_SERVICE_S


def mm4(requests: int, seed: int) -> dict[str, float]:
    """M/M/4, until that many customers have finished."""
    ciw.seed(seed)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate=MM4_RATE_PER_S)],
        service_distributions=[ciw.dists.Exponential(rate=1 / MM4_SERVICE_S)],
        number_of_servers=[MM4_SERVERS],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(requests, method="Finish")
    records = simulation.get_all_records()
    total = sum(record.exit_date - record.arrival_date for record in records)
    return {"requests": len(records), "mean_s": total / len(records)}
