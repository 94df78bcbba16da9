"""A load curve, fitted by a small network: lanes in which requests queue, and a delay that load does not stretch.

Each server of the station has its own queue; a request joins one at random. So requests wait although other servers are
idle, and latency grows well before the throughput reaches its limit, the more so the fewer lanes there are. With one
queue for many servers instead, latency is flat up to a sharp knee.

Throughput that falls with more clients needs contention: each client lengthens the time in a lane, as switching between
threads and sharing caches do. It is fitted only if the highest throughput is not that of the most clients.
"""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import dataclass, replace

import numpy as np

from capplan.errors import InputError
from capplan.models.language.distribution import Deterministic, Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Station
from capplan.models.language.step import Delay, Sequence, Visit
from capplan.models.language.traffic import Closed, RequestClass
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.closed_clients import solve_clients

LANES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Numbers of lanes that a fit tries: two neighbours hardly differ."""
_LIMITS = np.linspace(1.0, 1.9, 10)  # throughput of saturated lanes over the highest one measured
_TIMES = np.linspace(0.7, 1.1, 9)  # time of a request without queueing, over the shortest one measured
_REFINED = 3  # numbers of lanes of which the fit is refined
_SHORTEST = 1e-4  # delay over the shortest time measured, at least
_FALLEN = 0.95  # throughput with most clients over the highest one, below which there is contention


@dataclass(frozen=True)
class LoadCurve:
    """Throughput and latency against the number of clients, which ask again as soon as they have their answer.

    Attributes
    ----------
    lanes : int
        Number of lanes.
    lane_s : number or array (draws,)
        Mean time in a lane without queueing, in seconds.
    delay_s : number or array (draws,)
        Mean time that does not grow with load, in seconds.
    contention : float
        By how much each client lengthens the time in a lane, as a share of it.
    """

    lanes: int
    lane_s: Number
    delay_s: Number
    contention: float = 0.0

    def network(self, clients: int) -> Network:
        """Return the network, with closed clients."""
        lane_s = self.lane_s * (1 + self.contention * clients)
        flow = Sequence((Delay(Exponential(self.delay_s)), Visit("lanes", Exponential(lane_s))))
        return Network(
            "load curve",
            (Station("lanes", self.lanes, assignment="random" if self.lanes > 1 else "pooled"),),
            (RequestClass("request", flow),),
            Closed(clients, Deterministic(0.0), {"request": 1.0}),
        )

    def throughput_per_s(self, clients: Many[int]) -> FloatArray:
        """Return the throughput with numbers of clients, per second (numbers, draws); with contention, of one draw.

        The mean latency is the number of clients over it (Little's law).
        """
        if not self.contention:
            return solve_clients(Analysis(self.network(1)), clients).rate_per_s
        slowed = replace(self, lane_s=self.lane_s * (1 + self.contention * np.asarray(clients)), contention=0.0)
        return np.diagonal(slowed.throughput_per_s(clients))[:, None]  # one draw for each number of clients


def fit_load_curve(clients: Many[int], throughput_per_s: Many[float]) -> LoadCurve:
    """Fit a load curve by least squares of the logarithms of its throughput, and so of its mean latency.

    Parameters
    ----------
    clients : sequence of int
        Numbers of clients (or of threads, with one request each), without think time.
    throughput_per_s : sequence of float
        Measured throughput with each, per second.

    Returns
    -------
    LoadCurve

    Raises
    ------
    InputError
        If there are fewer than three rows, or a throughput is not positive.
    """
    if len(clients) < 3:
        raise InputError(f"{len(clients)} rows do not determine a load curve: give three or more numbers of clients")
    measured = np.asarray(throughput_per_s, dtype=float)
    if not np.all(measured > 0):
        raise InputError(f"throughput {measured.min():g}/s is not positive: leave rows without throughput out")
    shortest = float(np.min(np.asarray(clients) / measured))
    coarse = sorted((_coarse(lanes, clients, measured, shortest) for lanes in LANES), key=lambda each: each[0])
    found = [_refined(start, clients, measured, shortest) for _, start in coarse[:_REFINED]]
    return min(found, key=lambda each: each[0])[1]


def _coarse(lanes: int, clients: Many[int], measured: FloatArray, shortest_s: float) -> tuple[float, LoadCurve]:
    """Return the best of many curves with a number of lanes, with its sum of squares."""
    limit, time = (grid.ravel() for grid in np.meshgrid(_LIMITS * measured.max(), _TIMES * shortest_s))
    lane = lanes / limit
    possible = lane <= time * (1 - _SHORTEST)
    if not np.any(possible):
        return np.inf, LoadCurve(lanes, shortest_s, _SHORTEST * shortest_s)
    lane, delay = lane[possible], (time - lane)[possible]
    squares = np.sum(_errors(LoadCurve(lanes, lane, delay), clients, measured) ** 2, axis=0)
    best = int(np.argmin(squares))
    return float(squares[best]), LoadCurve(lanes, float(lane[best]), float(delay[best]))


def _refined(start: LoadCurve, clients: Many[int], measured: FloatArray, shortest_s: float) -> tuple[float, LoadCurve]:
    """Improve a curve by least squares: no time is negative, and the lanes complete what was measured."""
    from scipy.optimize import least_squares  # slow to import

    fallen = measured[int(np.argmax(clients))] < _FALLEN * measured.max()
    most = float(max(clients))

    def curve(logs: FloatArray) -> LoadCurve:
        lane, delay, *contention = (float(each) for each in np.exp(logs))
        return LoadCurve(start.lanes, lane, delay, *contention)

    def missed(logs: FloatArray) -> FloatArray:
        return np.asarray(_errors(curve(logs), clients, measured)[:, 0])

    low = np.log([1e-3 * shortest_s / start.lanes, _SHORTEST * shortest_s, *([1e-4 / most] if fallen else [])])
    high = np.log([1.05 * start.lanes / measured.max(), 2 * shortest_s, *([10 / most] if fallen else [])])
    begin = np.log([float(start.lane_s), float(start.delay_s), *([0.3 / most] if fallen else [])])
    found = least_squares(missed, np.clip(begin, low + 1e-6, high - 1e-6), bounds=(low, high))
    return float(found.cost), curve(found.x)


def _errors(curve: LoadCurve, clients: Many[int], measured: FloatArray) -> FloatArray:
    """Return the logarithms of throughput over the measured one (rows, draws)."""
    return np.log(curve.throughput_per_s(clients) / measured[:, None])
