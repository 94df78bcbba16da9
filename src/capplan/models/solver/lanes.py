"""Stations whose servers have queues of their own (lanes), and arrivals that take turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from scipy import special

from capplan.models.language.network import Network
from capplan.models.language.station import Station
from capplan.models.language.step import Batch, FanOut, ForkJoin, Hedge, If, Pick, Step, Visit, children
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.flow_analysis import Congestion, ServiceDemand, Sharing, weights
from capplan.models.solver.random_times import queue_wait
from capplan.models.solver.single_station import erlang_c


def lane_congestion(
    station: Station, demand: ServiceDemand, rate_per_s: FloatArray, full: Number, variability: Number = 1.0
) -> Congestion:
    """Return the congestion of a station with lanes.

    Parameters
    ----------
    station : Station
        A station with lanes, at speed 1.
    demand : ServiceDemand
        Demand of one request.
    rate_per_s : array (..., draws)
        Requests per second.
    full : number or array (draws,)
        Load that a busier lane counts as, a little below 1.
    variability : number or array (draws,)
        Variance of the work that arrives at the station, over that of Poisson arrivals.
    """
    visits = np.maximum(demand.visits, 1e-12)
    service = demand.mean_s / visits
    scv = np.maximum(demand.second_moment_s2 * visits / np.maximum(demand.mean_s, 1e-150) ** 2 - 1, 0.0)
    load = np.clip(rate_per_s * demand.mean_s / station.servers, 1e-12, full)
    if station.discipline == "ps":
        slowdown = 1 + _mean_wait(station, load, scv, variability) * 2 / (1 + scv)
        sharing = Sharing(slowdown, slowdown * (slowdown - 1), 1 / (slowdown * np.maximum(service, 1e-300)))
        return Congestion(slowdown, sharing=sharing)
    wait = _mean_wait(station, load, scv, variability)
    those = _mean_wait_of_those(station, load, wait, scv)
    return Congestion(1.0, queue_wait(service * wait, service * those, service, scv))


def _mean_wait(station: Station, load: FloatArray, scv: Number, variability: Number) -> FloatArray:
    """Return the mean wait in multiples of the mean service time.

    What arrivals at the station lack of the variance of a Poisson stream, a random choice of the lane mostly restores.
    """
    lanes, random, missing = station.servers, load / (1 - load) * (1 + scv) / 2, 1 - variability
    match station.assignment:
        case "round_robin":
            arrivals = np.maximum(1 - missing * (1 + scv), 0.0) / lanes
            spread = np.maximum(arrivals + scv, 1e-12)
            decay = 2 * (1 - load) * (1 - arrivals) ** 2 / (3 * load * spread)
            return np.asarray(random * spread / (1 + scv) * np.exp(-decay))
        case "least_loaded":
            shared = erlang_c(lanes, lanes * load) / (lanes * (1 - load)) * (1 + scv) / 2
            return np.asarray(variability * shared * (1 + (1 - load) * (lanes - 1) / np.sqrt(4 + (lanes - 2) / 5)))
        case _:
            return np.asarray(random * (1 - missing / lanes))


def _mean_wait_of_those(station: Station, load: FloatArray, wait: FloatArray, scv: Number) -> FloatArray:
    """Return the mean wait of the requests that wait, in mean service times."""
    residual = (1 + scv) / 2
    if station.assignment == "least_loaded":
        return np.asarray(np.maximum(residual / (1 - load**station.servers), wait))
    return np.asarray(wait + residual)


def missing_variance_s2(network: Network, share: Mapping[str, Number]) -> dict[str, Number]:
    """Return how much taking turns reduces the variance of the work per request, by station, in s².

    Visits in parallel branches and under conditions count as Poisson.
    """
    members = {station.name: station.count or 1 for station in network.stations}
    members |= {pool.name: pool.count or 1 for pool in network.pools}
    found: dict[str, Number] = {}
    for each in network.classes:
        for visit, weight, turns in _visits_in_turn(each.flow, share.get(each.name, 0.0), {}, members):
            less = weight * (1 - 1 / turns) * visit.demand.mean**2
            found[visit.station] = found.get(visit.station, 0.0) + less
    return found


def peakedness(arrival_scv: Number, holding_scv: Number) -> FloatArray:
    """Return the variance of the number inside an infinite server, relative to Poisson arrivals.

    Parameters
    ----------
    arrival_scv : number or array (draws,)
        Squared coefficient of variation of the times between arrivals.
    holding_scv : number or array (draws,)
        That of the times inside, which are taken as gamma distributed.

    Returns
    -------
    array (draws,)
        1 + (`arrival_scv` - 1) E[min(S, S')] / E[S] for two independent times S and S' inside.
    """
    shape = 1 / np.maximum(holding_scv, 1e-6)
    smaller = 1 - np.exp(special.gammaln(shape + 0.5) - special.gammaln(shape + 1)) / np.sqrt(np.pi)
    return np.asarray(1 + (np.asarray(arrival_scv) - 1) * smaller)


def _visits_in_turn(
    step: Step, weight: Number, turns: Mapping[str, int], members: Mapping[str, int]
) -> Iterator[tuple[Visit, Number, int]]:
    """Yield the visits to members that take turns, how often each runs, and the number of members."""
    if isinstance(step, Visit) and step.member is not None and step.member in turns:
        yield step, weight, turns[step.member]
    if isinstance(step, (FanOut, ForkJoin, If, Hedge, Batch)):
        return
    if isinstance(step, Pick) and step.policy == "round_robin" and step.among in members:
        turns = {**turns, step.member: members[step.among]}
    for often, inside in zip(weights(step), children(step), strict=True):
        yield from _visits_in_turn(inside, weight * often, turns, members)
