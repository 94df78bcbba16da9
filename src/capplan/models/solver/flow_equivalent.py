"""Flow-equivalent servers: a system behind a pool as a birth-death chain.

With n requests inside, the system completes X(n) requests per second. Arrivals are dropped when the pool and its queue
are full; departures have the rate X(min(n, pool)). X(n) is the throughput of a machine-repair model: the bottleneck has
as many servers as it keeps busy at saturation, and everything else is a delay. Since requests arrive at random and the
state of the chain does not depend on their demands, the geometric tail of the chain holds for any distribution of
service times.

References
----------
K. M. Chandy, U. Herzog and L. Woo, "Parametric analysis of queuing networks", *IBM Journal of Research and Development*
19, 1975; E. D. Lazowska et al., *Quantitative System Performance*, Prentice-Hall, 1984, chapters 8 and 9.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

from capplan.models.language.units import FloatArray
from capplan.models.solver.single_station import in_proportion

_NEGLIGIBLE = 1e-18  # probability of a number of requests, relative to the most probable one
_POINTS = 48  # populations at which X(n) is computed; values between are interpolated


def closed_throughput_per_s(
    population: FloatArray, busy_s: FloatArray, idle_s: FloatArray, saturation_per_s: FloatArray
) -> FloatArray:
    """Return the throughput of a closed system by machine repair with a real number of servers.

    Parameters
    ----------
    population : array (points,)
        Requests inside: whole numbers in ascending order.
    busy_s, idle_s : array (draws,)
        Mean time of a request at the bottleneck and elsewhere, without queueing, in seconds.
    saturation_per_s : array (draws,)
        Throughput of the saturated bottleneck, per second.

    Returns
    -------
    array (draws, points)
        ``E[min(K, m)] / busy_s`` per second, where K is the number at the bottleneck and m its number of servers.
    """
    inside = np.arange(int(population[-1]) + 1.0)
    servers = (saturation_per_s * busy_s)[:, None]
    log_serving = np.cumsum(np.log(np.minimum(np.maximum(inside[1:], 1.0)[None, :], servers)), axis=-1)
    log_term = inside[None, 1:] * np.log(busy_s / np.maximum(idle_s, 1e-9))[:, None] - log_serving
    log_term = np.concatenate([np.zeros((len(busy_s), 1)), log_term], axis=-1)
    serving = np.minimum(inside, servers)
    log_factorial = special.gammaln(inside + 1)
    result = np.empty((len(busy_s), len(population)))
    first, last, before = 0, 0, 0  # the numbers at the bottleneck that have a weight, at the population before
    for column, count in enumerate(population.astype(int)):
        last = min(last + count - before, count)  # each further request adds one at most
        weight = log_term[:, first : last + 1] - log_factorial[count - last : count - first + 1][::-1]
        weight -= weight.max(axis=-1, keepdims=True)
        chance = np.exp(weight, out=weight)
        result[:, column] = np.vecdot(chance, serving[:, first : last + 1]) / chance.sum(axis=-1)
        known = first + np.flatnonzero((chance > _NEGLIGIBLE).any(axis=0))
        first, last, before = int(known[0]), int(known[-1]), count
    return result / busy_s[:, None]


@dataclass(frozen=True)
class FlowEquivalent:
    """A flow-equivalent server behind a pool.

    Attributes
    ----------
    throughput_per_s : array (draws, places)
        X(n) for n = 1 .. places; the number of places is the size of the pool plus its queue limit.
    pool : int
        Size of the pool.
    """

    throughput_per_s: FloatArray
    pool: int

    @property
    def places(self) -> int:
        """Size of the pool plus its queue limit."""
        return int(self.throughput_per_s.shape[-1])

    def chances(self, rate_per_s: FloatArray) -> FloatArray:
        """Return the probabilities of n = 0 .. places requests inside.

        Parameters
        ----------
        rate_per_s : array (..., draws)
            Arrival rate, per second.

        Returns
        -------
        array (..., draws, places + 1)
        """
        log_rate = np.log(np.maximum(rate_per_s, 1e-9))[..., None]
        return in_proportion(np.arange(self.places + 1.0) * log_rate - self._log_throughputs)

    def blocking(self, rate_per_s: FloatArray, draws: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Return the probability that all places are taken, and its elasticity.

        Parameters
        ----------
        rate_per_s : array (chosen draws,)
            Arrival rate, per second.
        draws : array of int (chosen draws,)
            Which draws to solve.

        Returns
        -------
        tuple of array (chosen draws,)
            The probability, and the derivative of its logarithm with respect to that of the rate.
        """
        logs, empty = self._log_throughputs[draws], self.places - np.arange(self.places + 1.0)
        logs = logs[:, -1:] - logs - empty * np.log(np.maximum(rate_per_s, 1e-9))[:, None]
        most = logs.max(axis=-1)
        weight = np.exp(logs - most[:, None])
        total = weight.sum(axis=-1)
        # BLAS would use all processors for each of many long rows, which costs more than it saves.
        return np.exp(-most) / total, np.einsum("ij,j->i", weight, empty) / total

    @cached_property
    def _log_throughputs(self) -> FloatArray:
        """Logarithm of X(1) X(2) ... X(n) for n = 0 .. places (draws, places + 1)."""
        return np.pad(np.cumsum(np.log(self.throughput_per_s), axis=-1), ((0, 0), (1, 0)))


def flow_equivalent(
    busy_s: FloatArray, idle_s: FloatArray, saturation_per_s: FloatArray, pool: int, queue_limit: int
) -> FlowEquivalent:
    """Build the flow-equivalent server of a system.

    Parameters
    ----------
    busy_s, idle_s, saturation_per_s : array (draws,)
        As for `closed_throughput_per_s`.
    pool, queue_limit : int
        Size of the pool and of its queue.

    Returns
    -------
    FlowEquivalent
    """
    populations = np.unique(np.round(np.geomspace(1, pool, _POINTS)))
    known = closed_throughput_per_s(populations, busy_s, idle_s, saturation_per_s)
    inside = np.minimum(np.arange(1.0, pool + queue_limit + 1), pool)
    return FlowEquivalent(rows_interpolated(inside, populations, known), pool)


def rows_interpolated(at: FloatArray, grid: FloatArray, values: FloatArray) -> FloatArray:
    """Interpolate each row of a table linearly; extrapolate beyond the grid.

    Parameters
    ----------
    at : array (n,)
        Where to interpolate.
    grid : array (points,)
        Grid of all rows, in ascending order.
    values : array (rows, points)
        Values on the grid.

    Returns
    -------
    array (rows, n)
    """
    right = np.clip(np.searchsorted(grid, at), 1, len(grid) - 1)
    share = (at - grid[right - 1]) / np.maximum(grid[right] - grid[right - 1], 1e-300)
    below, above = (np.take(values, index, axis=1) for index in (right - 1, right))  # [:, index] would be slow to use
    return np.asarray(below + share * (above - below))
