"""Pauses and background work of a station, as the analytic solver takes them: a mean speed, and a wait.

A pause that comes at random is a customer of absolute priority: a request that finds one waits for its rest and for
what has gathered in it (White and Christie 1958; Avi-Itzhak and Naor 1963). With pauses of length L at rate v and
utilisation rho of what they leave, that is in the mean v E[L^2] / 2 / (1 - rho), exact for a single server and times
between pauses that are exponential.

Background work that takes a share of the speed is a fluid: while it runs and less is left than comes, a backlog grows,
and drains afterwards. Both waits are added to that for other requests. Approximations; docs/reference/accuracy.md has
their measured error.
"""

from __future__ import annotations

import numpy as np

from capplan.models.quantity import FloatArray, Number
from capplan.models.random_time import RandomTime
from capplan.models.station import Background, Pauses, Station

_FULL = 0.9999  # utilisation at most: beyond it nothing is steady


def mean_speed(station: Station) -> Number:
    """Return the share of a station's speed that pauses and background work leave in the long run."""
    left: Number = 1.0
    for pause in station.pauses:
        left = left * (1 - _share_of_time(pause))
    return left * np.maximum(1 - sum((each.share * _share_of_time(each) for each in station.background), 0.0), 1e-9)


def interruption_wait(station: Station, utilisation: FloatArray) -> RandomTime:
    """Return the wait that pauses and background work cause.

    Parameters
    ----------
    station
        The station.
    utilisation
        Of the speed that they leave; shape (..., draws).
    """
    rho = np.minimum(utilisation, _FULL)
    mean, found = np.zeros_like(rho), np.zeros_like(rho)  # the wait, and the probability that there is any
    for pause in station.pauses:
        mean = mean + _rate(pause) * _second_moment(pause) / 2 / (1 - rho)
        found = found + _share_of_time(pause) / (1 - rho)
    for work in station.background:
        growth = np.maximum(rho + work.share - 1, 0.0)  # of the backlog, in seconds of work a second
        drained = growth / (1 - rho)
        mean = mean + _rate(work) * _second_moment(work) / 2 * growth * (1 + drained)
        found = found + np.where(growth > 0, _share_of_time(work) * (1 + drained), 0.0)
    found = np.clip(found, 1e-12, 1.0)
    return RandomTime(0.0, mean, (2 / found - 1) * mean**2)  # an exponential wait where there is one


def signature(station: Station) -> tuple[str, ...]:
    """Return what must be equal for two stations to be interrupted alike."""
    processes: list[Pauses | Background] = [*station.pauses, *station.background]
    every = [number for each in processes for number in (_rate(each), _second_moment(each))]
    shares = [f"{each.share:g}" for each in station.background]
    return station.host or "", *shares, *(f"{float(np.median(number)):.6e}" for number in every)


def _rate(process: Pauses | Background) -> Number:
    return 1 / (process.every.mean + process.length.mean)


def _share_of_time(process: Pauses | Background) -> Number:
    return process.length.mean * _rate(process)


def _second_moment(process: Pauses | Background) -> Number:
    return (1 + process.length.scv) * process.length.mean**2
