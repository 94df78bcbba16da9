"""What theory says of the textbook models, to check every contender by before its time counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc
from settings import (
    MM4_RATE_PER_S,
    MM4_SERVERS,
    MM4_SERVICE_S,
    QUORUM_NEEDED,
    QUORUM_RATE_PER_S,
    QUORUM_REPLICAS,
    QUORUM_SERVICE_S,
)

from capplan.models.solver.single_station import mmc

FloatArray = NDArray[np.float64]
LONGEST = 38  # visits at one replica; more have a probability of 0.7 ** 38, about 1e-6
SETTLED = 1e-7  # change of the mean, per step of the chain, at which it has settled


def mm4_mean_s(rate_per_s: float = MM4_RATE_PER_S) -> float:
    """Mean response time of M/M/4, by Erlang C."""
    return float(mmc(rate_per_s, MM4_SERVICE_S, MM4_SERVERS).mean_response_s)


def mm4_p99_s(rate_per_s: float = MM4_RATE_PER_S) -> float:
    """99th percentile of the response time of M/M/4."""
    return float(mmc(rate_per_s, MM4_SERVICE_S, MM4_SERVERS).response_quantile_s(0.99))


def quorum_response() -> tuple[float, float]:
    """Mean and 99th percentile of the 2-of-3 quorum, exact to four digits.

    The numbers of visits at the three replicas are a Markov chain, since arrivals come to all three at once. An
    arrival sees its stationary state (PASTA), and finds a replica with n visits done after n + 1 services: the second
    of three independent Erlang times.
    """
    if (QUORUM_NEEDED, QUORUM_REPLICAS) != (2, 3):
        raise NotImplementedError(f"the formula is for 2 of 3, not for {QUORUM_NEEDED} of {QUORUM_REPLICAS}")
    chances = _stationary()
    pairs = chances.sum(axis=2)
    times = np.linspace(0, 50, 1251)  # in services
    late = gammaincc(np.arange(1.0, LONGEST + 1)[:, None], times[None, :])  # (visits found, times)
    both = np.einsum("it,ij,jt->t", late, pairs, late, optimize=True)
    all_three = np.einsum("it,jt,kt,ijk->t", late, late, late, chances, optimize=True)
    beyond = 3 * both - 2 * all_three  # two of three are late, at least
    mean = float(np.trapezoid(beyond, times))
    return mean * QUORUM_SERVICE_S, float(np.interp(-0.01, -beyond, times)) * QUORUM_SERVICE_S


def _stationary() -> FloatArray:
    """Return the stationary probabilities of (visits at replica 1, 2, 3), by steps of the uniformised chain."""
    load = QUORUM_RATE_PER_S * QUORUM_SERVICE_S
    alone = load ** np.arange(LONGEST)
    chances: FloatArray = np.einsum("i,j,k->ijk", alone, alone, alone)
    chances /= chances.sum()
    count, before = np.arange(LONGEST), 0.0
    for step in range(20_000):
        chances = _step(chances, load / (load + 3), 1 / (load + 3))
        if step % 50 == 0:
            mean = float(np.einsum("ijk,i,j->", chances, count, count))
            if abs(mean - before) < 50 * SETTLED:
                break
            before = mean
    return chances / chances.sum()


def _step(old: FloatArray, arrival: float, departure: float) -> FloatArray:
    """One event: an arrival at all three, or an end at one of them (nothing, if that one is empty)."""
    new = np.zeros_like(old)
    new[1:, 1:, 1:] = arrival * old[:-1, :-1, :-1]
    new[:-1] += departure * old[1:]
    new[0] += departure * old[0]
    new[:, :-1] += departure * old[:, 1:]
    new[:, 0] += departure * old[:, 0]
    new[:, :, :-1] += departure * old[:, :, 1:]
    new[:, :, 0] += departure * old[:, :, 0]
    return new
