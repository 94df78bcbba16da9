"""A system behind a pool, seen from outside: a flow-equivalent server (Chandy, Herzog & Woo 1975).

With n requests inside, the system answers X(n) requests a second; requests come, are turned away when the pool and its
queue are full, and otherwise leave at X(min(n, pool)). That is a birth-death chain (Lazowska et al. 1984, chapters 8
and 9). X(n) is that of a machine-repair model: the time at the bottleneck has as many servers as it keeps busy at
saturation, everything else is a delay. Sessions that come at random and answer one by one make the chain's geometric
tail right whatever the law of service is, since a session's place in the chain does not depend on what it asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from capplan.models.language.units import FloatArray
from capplan.models.solver.single_station import in_proportion

_POINTS = 48  # populations at which X(n) is computed; linear between


def closed_throughput_per_s(
    population: FloatArray, busy_s: FloatArray, idle_s: FloatArray, saturation_per_s: FloatArray
) -> FloatArray:
    """Throughput of a closed system with the given populations, per second.

    Parameters
    ----------
    population : array (points,)
        Requests inside, whole numbers, rising.
    busy_s, idle_s : array (draws,)
        Mean time of a request at the bottleneck's servers and elsewhere, without queueing; seconds.
    saturation_per_s : array (draws,)
        Throughput with the bottleneck always busy.

    Returns
    -------
    array (draws, points)
        Machine repair with real-valued servers: ``E[min(K, m)] / busy_s``, K the number at the bottleneck.
    """
    inside = np.arange(int(population[-1]) + 1.0)
    servers = (saturation_per_s * busy_s)[:, None]
    log_serving = np.cumsum(np.log(np.minimum(np.maximum(inside[1:], 1.0)[None, :], servers)), axis=-1)
    log_term = inside[None, 1:] * np.log(busy_s / np.maximum(idle_s, 1e-9))[:, None] - log_serving
    log_term = np.concatenate([np.zeros((len(busy_s), 1)), log_term], axis=-1)
    result = np.empty((len(busy_s), len(population)))
    for column, count in enumerate(population.astype(int)):
        ways = special.gammaln(count + 1) - special.gammaln(count - inside[: count + 1] + 1)
        weight = ways[None, :] + log_term[:, : count + 1]
        chance = np.exp(weight - weight.max(axis=-1, keepdims=True))
        serving = np.minimum(inside[None, : count + 1], servers)
        result[:, column] = (chance * serving).sum(axis=-1) / chance.sum(axis=-1)
    return result / busy_s[:, None]


@dataclass(frozen=True)
class FlowEquivalent:
    """A flow-equivalent server behind a pool.

    Attributes
    ----------
    throughput_per_s : array (draws, places)
        X(n) for n = 1 .. places, places being the pool's size and its queue limit.
    pool : int
        Size of the pool.
    """

    throughput_per_s: FloatArray
    pool: int

    @property
    def places(self) -> int:
        """Size of the pool and of its queue."""
        return int(self.throughput_per_s.shape[-1])

    def chances(self, rate_per_s: FloatArray) -> FloatArray:
        """Return the probability (..., draws, places + 1) of n = 0 .. places inside at the given rates (..., draws)."""
        log_rate = np.log(np.maximum(rate_per_s, 1e-9))[..., None]
        return in_proportion(np.arange(self.places + 1.0) * log_rate - self._log_throughputs)

    @cached_property
    def _log_throughputs(self) -> FloatArray:
        """Logarithm of X(1) X(2) ... X(n) for n = 0 .. places (draws, places + 1)."""
        return np.pad(np.cumsum(np.log(self.throughput_per_s), axis=-1), ((0, 0), (1, 0)))


def flow_equivalent(
    busy_s: FloatArray, idle_s: FloatArray, saturation_per_s: FloatArray, pool: int, queue_limit: int
) -> FlowEquivalent:
    """Build the flow-equivalent server of a system; times (draws,) in seconds without queueing."""
    populations = np.unique(np.round(np.geomspace(1, pool, _POINTS)))
    known = closed_throughput_per_s(populations, busy_s, idle_s, saturation_per_s)
    inside = np.minimum(np.arange(1.0, pool + queue_limit + 1), pool)
    return FlowEquivalent(rows_interpolated(inside[None, :], populations, known), pool)


def rows_interpolated(at: FloatArray, grid: FloatArray, values: FloatArray) -> FloatArray:
    """Interpolate each row of `values` (rows, points) linearly at `at` (rows or 1, ...).

    `grid` is (points,), or (rows, points) where each row has its own. Beyond the grid the last piece is continued.
    """
    rows = len(values)
    points = np.broadcast_to(grid, values.shape)
    wanted = np.broadcast_to(at, (rows, np.shape(at)[-1]))
    if np.ndim(grid) == 1:
        right = np.searchsorted(grid, wanted)
    else:
        right = np.stack([np.searchsorted(points[row], wanted[row]) for row in range(rows)])
    right = np.clip(right, 1, points.shape[-1] - 1)
    low, high = (np.take_along_axis(points, index, axis=-1) for index in (right - 1, right))
    below, above = (np.take_along_axis(values, index, axis=-1) for index in (right - 1, right))
    share = (wanted - low) / np.maximum(high - low, 1e-300)
    return np.asarray(below + share * (above - below))
