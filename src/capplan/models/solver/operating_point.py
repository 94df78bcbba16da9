"""Rates on an analysed network: loss, response times, percentiles and the largest rate it carries; over all draws.

Bursts are quasi-static: a share of the time at the burst's rate, the rest at the low rate, each in its own steady
state. That holds when bursts last longer than the queues need to settle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from capplan.models.language.traffic import Bursty
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.gamma_mixture import GammaMixture, quantiles_of_groups_s

MAX_DROP_RATE = 1e-3
"""What still counts as carried: a guess, since the documents say only that beyond their rates requests are dropped."""
_HALVINGS = 22  # of the capacity's bracket: 1e-6 of it remains
_STATES = 9  # states of the system that a percentile is mixed from


@dataclass(frozen=True)
class SteadyState:
    """One constant rate, solved. Shapes (..., draws), and with states behind for the mixture that percentiles need.

    Attributes
    ----------
    drop_rate : array
        Share of requests turned away.
    busy_units : array
        Mean number of units held in the outermost pools.
    response_s : dict of arrays
        Mean response by class, seconds.
    weight, mean_s, variance_s2 : array, dict of arrays, dict of arrays
        A mixture of gamma laws for the response by class.
    """

    drop_rate: FloatArray
    busy_units: FloatArray
    response_s: dict[str, FloatArray]
    weight: FloatArray
    mean_s: dict[str, FloatArray]
    variance_s2: dict[str, FloatArray]


@dataclass(frozen=True)
class OperatingPoint:
    """An offered mean rate, solved: a mixture of states by share of the requests. Arrays (..., draws).

    Attributes
    ----------
    rate_per_s : array
        Mean offered rate.
    shares : tuple of arrays
        Share of the requests that each state sees.
    durations : tuple of floats
        Share of the time that each state takes.
    states : tuple of SteadyState
        The states.
    request_shares : mapping of float
        Share of each request class in the traffic.
    """

    rate_per_s: FloatArray
    shares: tuple[FloatArray, ...]
    durations: tuple[float, ...]
    states: tuple[SteadyState, ...]
    request_shares: Mapping[str, float]

    @property
    def drop_rate(self) -> FloatArray:
        """Share of all requests that are turned away."""
        return self._mixed([state.drop_rate for state in self.states])

    @property
    def busy_units(self) -> FloatArray:
        """Mean number of units of the outermost pools that are held, over time."""
        return np.asarray(sum(d * s.busy_units for d, s in zip(self.durations, self.states, strict=True)))

    def response_s(self, *requests: str) -> FloatArray:
        """Mean response over the requests of the named classes, in seconds."""
        shares = self._class_shares(requests)
        parts = [
            share * self._mixed([state.response_s[name] for state in self.states]) for name, share in shares.items()
        ]
        return np.asarray(np.sum(parts, axis=0))

    def quantile_s(self, level: float, *requests: str) -> FloatArray:
        """Response that `level` of the named classes' requests do not exceed, seconds; an approximation."""
        return np.asarray(self.quantiles_s((level,), *requests)[0])

    def quantiles_s(self, levels: Sequence[float], *requests: str) -> FloatArray:
        """Responses (levels, ..., draws) that these shares of the named classes' requests do not exceed, seconds."""
        groups = [
            GammaMixture(
                *map(_rows, (share * (part[..., None] * state.weight), state.mean_s[name], state.variance_s2[name]))
            )
            for name, share in self._class_shares(requests).items()
            for part, state in zip(self.shares, self.states, strict=True)
        ]
        return quantiles_of_groups_s(groups, levels).reshape(-1, *self.rate_per_s.shape)

    def _class_shares(self, requests: tuple[str, ...]) -> dict[str, float]:
        total = sum(self.request_shares[name] for name in requests)
        return {name: self.request_shares[name] / total for name in requests}

    def _mixed(self, by_state: list[FloatArray]) -> FloatArray:
        parts = [share * value for share, value in zip(self.shares, by_state, strict=True)]
        return np.asarray(np.sum(parts, axis=0))


def solve(analysis: Analysis, rate_per_s: FloatArray | float) -> OperatingPoint:
    """Solve a network at mean offered rates (..., draws), requests per second."""
    given = np.asarray(rate_per_s, dtype=float)
    rate = np.broadcast_to(given, np.broadcast_shapes(given.shape, (analysis.draws,)))
    parts = phases(analysis)
    states = tuple(_state(analysis, rate * ratio) for _, ratio in parts)
    seen, durations = tuple(time * ratio for time, ratio in parts), tuple(time for time, _ in parts)
    return OperatingPoint(rate, seen, durations, states, analysis.share)


def peak_ratio(analysis: Analysis) -> FloatArray:
    """Rate in a burst over the mean rate (draws,); 1 for Poisson traffic."""
    arrivals = analysis.traffic.arrivals
    ratio = arrivals.burst_ratio if isinstance(arrivals, Bursty) else 1.0
    return np.broadcast_to(np.asarray(ratio, dtype=float), (analysis.draws,))


def capacity_per_s(analysis: Analysis, max_drop_rate: float) -> FloatArray:
    """Largest mean rate with at most `max_drop_rate` and no station's backlog growing without end (draws,)."""
    high = analysis.drift_per_s
    if analysis.server is None:
        return high
    high = np.minimum(high, 1.2 * analysis.saturation_per_s)
    low = np.zeros(analysis.draws)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        carried = drop_rate(analysis, middle) <= max_drop_rate
        low, high = np.where(carried, middle, low), np.where(carried, high, middle)
    return low


def drop_rate(analysis: Analysis, rate_per_s: FloatArray) -> FloatArray:
    """Share of requests turned away at a mean offered rate (draws,)."""
    if analysis.server is None:
        return np.zeros(analysis.draws)
    lost = np.zeros(analysis.draws)
    for time, ratio in phases(analysis):
        lost = lost + time * ratio * analysis.server.chances(rate_per_s * ratio)[..., -1]
    return lost


def phases(analysis: Analysis) -> list[tuple[float, FloatArray]]:
    """Return the share of the time and the rate, relative to the mean, of each phase of the traffic."""
    arrivals, ratio = analysis.traffic.arrivals, peak_ratio(analysis)
    if not isinstance(arrivals, Bursty):
        return [(1.0, ratio)]
    burst = float(np.median(arrivals.burst_fraction))
    return [(1 - burst, np.maximum(1 - burst * ratio, 0.0) / (1 - burst)), (burst, ratio)]


def _state(analysis: Analysis, rate: FloatArray) -> SteadyState:
    if analysis.server is None:
        return _open_state(analysis, rate)
    server, inside = analysis.server, analysis.inside
    chance = server.chances(rate)
    done = chance[..., 1:] * server.throughput_per_s  # completions per second by the number inside
    total = np.maximum(done.sum(axis=-1), 1e-300)
    columns, weight = _representative(done)
    draw = np.arange(analysis.draws)[:, None]
    extra = inside.waiting_s[draw, columns]
    return SteadyState(
        chance[..., -1],
        np.vecdot(chance[..., 1:], inside.held),
        {name: np.vecdot(done, mean + inside.waiting_s) / total for name, mean in inside.mean_s.items()},
        weight,
        {name: mean[draw, columns] + extra for name, mean in inside.mean_s.items()},
        {name: value[draw, columns] for name, value in inside.variance_s2.items()},
    )


def _open_state(analysis: Analysis, rate: FloatArray) -> SteadyState:
    """No pool around it: an open network; beyond saturation nothing settles."""
    share = np.minimum(rate / analysis.saturation_per_s, 0.9999)
    stable = rate < analysis.saturation_per_s
    times = analysis.response_at(share * analysis.saturation_per_s)
    mean = {name: np.where(stable, time[0], np.inf) for name, time in times.items()}
    busy = rate * sum((analysis.share[name] * mean[name] for name in mean), np.zeros(analysis.draws))
    return SteadyState(
        np.where(stable, 0.0, 1 - 1 / np.maximum(rate / analysis.saturation_per_s, 1.0)),
        busy,
        mean,
        np.ones((*rate.shape, 1)),
        {name: value[..., None] for name, value in mean.items()},
        {name: time[1][..., None] for name, time in times.items()},
    )


def _representative(done: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """Pick the columns at which completions find the system, at Gauss-Legendre levels, and their weights."""
    nodes, weights = _gauss_legendre()
    below = np.cumsum(_rows(done), axis=-1)
    wanted = below[:, -1:] * ((nodes + 1) / 2)
    columns = np.array([row.searchsorted(levels) for row, levels in zip(below, wanted, strict=True)])
    columns = np.minimum(columns, done.shape[-1] - 1).reshape(*done.shape[:-1], -1)
    return columns, np.broadcast_to(weights / 2, columns.shape)


def _rows(values: FloatArray) -> FloatArray:
    """Return values (..., n) as a table (rows, n)."""
    return values.reshape(-1, values.shape[-1])


@lru_cache
def _gauss_legendre() -> tuple[FloatArray, FloatArray]:
    nodes, weights = np.polynomial.legendre.leggauss(_STATES)
    return np.asarray(nodes), np.asarray(weights)
