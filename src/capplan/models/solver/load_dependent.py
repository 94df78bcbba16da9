"""One station whose speed depends on the requests inside: how it answers open traffic, and few or many clients.

With n requests inside, a station of c servers works at speed ``min(n, c) r(n)``, r being its `RateTable`. Poisson
arrivals and n make a birth-death chain; so do clients that each wait for their answer. Means are exact under processor
sharing for any law of service, and in order of arrival for an exponential one (Lazowska et al. 1984, chapter 8).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from capplan.models.language.station import Station
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.single_station import in_proportion


def endless_speed(station: Station) -> Number:
    """Speed of all servers together with an endless queue, in servers at speed 1: what is carried whatever waits."""
    return station.servers * (1.0 if station.rate is None else station.rate.speeds[-1])


def speeds(station: Station) -> FloatArray:
    """Speed of all servers together with 1, 2, ... requests inside, up to where it is constant; (draws or 1, n)."""
    table: tuple[Number, ...] = (1.0,) if station.rate is None else station.rate.speeds
    places = max(len(table), station.servers)
    each = np.array(np.broadcast_arrays(*table), dtype=float).reshape(len(table), -1)
    each = np.concatenate([each, np.repeat(each[-1:], places - len(table), axis=0)])
    return np.asarray(each.T * np.minimum(np.arange(1.0, places + 1), station.servers))


def mean_number(work: FloatArray, speed: FloatArray) -> FloatArray:
    """Mean number of requests inside for Poisson arrivals.

    Parameters
    ----------
    work : array (..., draws)
        Arrivals per second times mean demand: the servers at speed 1 that are asked for; above 0.
    speed : array (draws or 1, n)
        Speed of all servers with 1 .. n requests inside; the last holds beyond.

    Returns
    -------
    array (..., draws)
        Infinite where the last speed does not exceed the work.
    """
    chance, beyond, ratio = _chances(work, speed)
    places = speed.shape[-1]
    number = chance @ np.arange(places + 1.0) + beyond * (places + 1 / (1 - ratio))
    return np.where(work < speed[..., -1], number, np.inf)


def busy_share(work: FloatArray, station: Station) -> FloatArray:
    """Mean share of the servers of a station that are busy with Poisson arrivals; 1 beyond what is carried.

    `work` is as for `mean_number`. Where requests that wait slow the servers down it is more than the share of the
    highest speed that is asked for, and less than the share of what an endless queue leaves of that.
    """
    speed = speeds(station)
    chance, beyond, _ = _chances(work, speed)
    busy = np.minimum(np.arange(speed.shape[-1] + 1.0) / station.servers, 1.0)
    return np.where(work < speed[..., -1], np.minimum(chance @ busy + beyond, 1.0), 1.0)


def _chances(work: FloatArray, speed: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return how likely 0 .. n requests are inside, how likely more, and the ratio of one number to that before there.

    The ratio is 0 where the last speed does not exceed the work.
    """
    passed = np.pad(np.cumsum(np.log(speed), axis=-1), ((0, 0), (1, 0)))
    logs = np.arange(speed.shape[-1] + 1.0) * np.log(work)[..., None] - passed
    weight = np.exp(logs - logs.max(axis=-1, keepdims=True))
    ratio = np.where(work < speed[..., -1], work / speed[..., -1], 0.0)
    beyond = weight[..., -1] * ratio / (1 - ratio)
    total = weight.sum(axis=-1) + beyond
    return weight / total[..., None], beyond / total, ratio


def closed_throughputs_per_s(
    demand_s: FloatArray, speed: FloatArray, delay_s: FloatArray, clients: Sequence[int]
) -> FloatArray:
    """Throughput with so many clients that each wait for their answer, exactly.

    Parameters
    ----------
    demand_s : array (draws,)
        Mean demand on the station, seconds at speed 1.
    speed : array (draws or 1, n)
        Speed of all servers with 1 .. n requests inside; the last holds beyond.
    delay_s : array (draws,)
        Mean time of a cycle that is spent elsewhere without queueing (network, think time), seconds; above 0.
    clients : sequence of int
        Numbers of clients, each from 1.

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
