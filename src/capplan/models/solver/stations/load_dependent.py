"""Closed forms for one station whose speed depends on the number of requests, with open traffic or closed clients.

With n requests, a station of c servers works at the speed ``min(n, c) r(n)``, where r is its `RateTable`. The number of
requests is a birth-death chain. Means are exact for processor sharing with any distribution of service times, and for
first come, first served with exponential service times.

References
----------
E. D. Lazowska et al., *Quantitative System Performance*, Prentice-Hall, 1984, chapter 8.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from capplan.models.language.station import Station
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.stations.single_station import in_proportion

_DIGITS = 12  # of the logarithm of a load


def first_speed(station: Station) -> Number:
    """Return the speed of a server with one request at the station."""
    return 1.0 if station.rate is None else station.rate.speeds[0]


def endless_speed(station: Station) -> Number:
    """Return the total speed of a station with an infinite queue, in servers at speed 1: its sustained throughput."""
    return station.servers * (1.0 if station.rate is None else station.rate.speeds[-1])


def speeds(station: Station) -> FloatArray:
    """Return the total speed of a station with 1 .. n requests, up to where it is constant; (draws or 1, n)."""
    table: tuple[Number, ...] = (1.0,) if station.rate is None else station.rate.speeds
    places = max(len(table), station.servers)
    each = np.array(np.broadcast_arrays(*table), dtype=float).reshape(len(table), -1)
    each = np.concatenate([each, np.repeat(each[-1:], places - len(table), axis=0)])
    return np.asarray(each.T * np.minimum(np.arange(1.0, places + 1), station.servers))


def mean_number(offered: FloatArray, speed: FloatArray) -> FloatArray:
    """Return the mean number of requests at a station with Poisson arrivals.

    Parameters
    ----------
    offered : array (..., draws)
        Offered load: arrivals per second times mean service demand, in erlangs; above 0.
    speed : array (draws or 1, n)
        Total speed with 1 .. n requests; the last holds for all larger numbers.

    Returns
    -------
    array (..., draws)
        Infinite where the offered load reaches the last speed.
    """
    if len(speed) == 1 and np.ndim(offered) > 1:  # loads of the bottleneck are the same in all draws, but for rounding
        alike, place = np.unique(np.round(np.log(offered), _DIGITS), return_inverse=True)
        return mean_number(np.exp(alike), speed)[place.reshape(np.shape(offered))]
    chance, beyond, ratio = _chances(offered, speed)
    places = speed.shape[-1]
    number = chance @ np.arange(places + 1.0) + beyond * (places + 1 / (1 - ratio))
    return np.where(offered < speed[..., -1], number, np.inf)


def busy_share(offered: FloatArray, station: Station) -> FloatArray:
    """Return the utilisation of a station with Poisson arrivals; 1 where the load cannot be sustained.

    If waiting requests slow the servers down, it lies between the offered load over the highest speed and the offered
    load over the speed with an infinite queue.

    Parameters
    ----------
    offered : array (..., draws)
        Offered load, in erlangs; above 0.
    station : Station
        The station.

    Returns
    -------
    array (..., draws)
        Mean share of busy servers.
    """
    speed = speeds(station)
    chance, beyond, _ = _chances(offered, speed)
    busy = np.minimum(np.arange(speed.shape[-1] + 1.0) / station.servers, 1.0)
    return np.where(offered < speed[..., -1], np.minimum(chance @ busy + beyond, 1.0), 1.0)


def _chances(offered: FloatArray, speed: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the probabilities of 0 .. n requests and of more, and the ratio of the geometric tail.

    The ratio is 0 where the offered load reaches the last speed.
    """
    passed = np.pad(np.cumsum(np.log(speed), axis=-1), ((0, 0), (1, 0)))
    logs = np.arange(speed.shape[-1] + 1.0) * np.log(offered)[..., None] - passed
    weight = np.exp(logs - logs.max(axis=-1, keepdims=True))
    ratio = np.where(offered < speed[..., -1], offered / speed[..., -1], 0.0)
    beyond = weight[..., -1] * ratio / (1 - ratio)
    total = weight.sum(axis=-1) + beyond
    return weight / total[..., None], beyond / total, ratio


def closed_throughputs_per_s(
    demand_s: FloatArray, speed: FloatArray, delay_s: FloatArray, clients: Sequence[int]
) -> FloatArray:
    """Return the exact throughput of closed clients that each wait for their answer.

    Parameters
    ----------
    demand_s : array (draws,)
        Mean service demand, in seconds at speed 1.
    speed : array (draws or 1, n)
        Total speed with 1 .. n requests; the last holds for all larger numbers.
    delay_s : array (draws,)
        Mean time per cycle spent elsewhere without queueing (network, think time), in seconds; above 0.
    clients : sequence of int
        Numbers of clients, each at least 1.

    Returns
    -------
    array (draws, numbers)
        Requests per second.
    """
    most = max(clients)
    if speed.shape[-1] < most:
        speed = np.pad(speed, ((0, 0), (0, most - speed.shape[-1])), mode="edge")
    each = speed[:, :most] / demand_s[:, None]  # completions per second with 1 .. most at the station
    passed = np.pad(np.cumsum(np.log(each * delay_s[:, None]), axis=-1), ((0, 0), (1, 0)))
    found = []
    for count in clients:
        inside = np.arange(count + 1)
        ways = special.gammaln(count + 1.0) - special.gammaln(count - inside + 1.0)
        chance = in_proportion(ways - passed[:, : count + 1])
        found.append((chance[:, 1:] * each[:, :count]).sum(axis=-1))
    return np.stack(found, axis=-1)
