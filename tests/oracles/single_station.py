"""Exact results for one station, for comparison with solvers and engines."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from capplan.models.language.units import FloatArray
from capplan.models.solver.single_station import in_proportion


def birth_death(birth_rate_per_s: ArrayLike, death_rate_per_s: ArrayLike) -> FloatArray:
    """Return the stationary probabilities of the states 0 .. n of a birth-death chain (Kleinrock 1975, section 3.1)."""
    birth, death = np.asarray(birth_rate_per_s, dtype=float), np.asarray(death_rate_per_s, dtype=float)
    with np.errstate(divide="ignore"):  # a birth rate of 0 ends the chain
        return in_proportion(np.concatenate([[0.0], np.cumsum(np.log(birth) - np.log(death))]))


@dataclass(frozen=True)
class FiniteStation:
    """A station with finitely many states in steady state; `throughput_per_s` counts completions."""

    throughput_per_s: float
    mean_number: float
    blocking_probability: float = 0.0

    @property
    def mean_response_s(self) -> float:
        """Mean time of the accepted requests, by Little's law."""
        return self.mean_number / self.throughput_per_s


def mmck(arrival_rate_per_s: float, mean_service_s: float, servers: int, capacity: int) -> FiniteStation:
    """Solve M/M/c/K; `capacity` counts the requests in service, too (Gross & Harris, section 2.5)."""
    busy = np.minimum(np.arange(1, capacity + 1), servers)
    chance = birth_death(np.full(capacity, arrival_rate_per_s), busy / mean_service_s)
    return FiniteStation(
        float(chance[1:] @ busy / mean_service_s), float(chance @ np.arange(capacity + 1)), float(chance[-1])
    )


def machine_repair(population: int, think_time_s: float, mean_service_s: float, servers: int) -> FiniteStation:
    """Solve M/M/c//N: clients that think, then wait for one of the servers (Gross & Harris, section 2.7)."""
    number = np.arange(1, population + 1)
    busy = np.minimum(number, servers)
    chance = birth_death((population - number + 1) / think_time_s, busy / mean_service_s)
    return FiniteStation(float(chance[1:] @ busy / mean_service_s), float(chance[1:] @ number))


def mg1_mean_wait_s(arrival_rate_per_s: float, mean_service_s: ArrayLike, service_scv: ArrayLike) -> FloatArray:
    """Return the mean wait in M/G/1 by Pollaczek and Khinchine (Kleinrock 1975, section 5.6)."""
    service = np.asarray(mean_service_s, dtype=float)
    load = arrival_rate_per_s * service
    return np.asarray(load * service * (1 + np.asarray(service_scv)) / 2 / (1 - load))


def mm1_ps_response_s(arrival_rate_per_s: float, mean_service_s: float) -> tuple[float, float]:
    """Return mean and variance of the response of M/M/1 under processor sharing (Coffman, Muntz & Trotter 1970)."""
    load = arrival_rate_per_s * mean_service_s
    mean = mean_service_s / (1 - load)
    return mean, mean**2 * (2 + load) / (2 - load)
