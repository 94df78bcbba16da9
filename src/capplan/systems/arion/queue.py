"""A function of arion's audit: the rate at which an M/M/c station has a given response time."""

from __future__ import annotations

import numpy as np

from capplan.evidence.audit.expression import Figure
from capplan.evidence.interval import Interval
from capplan.models.solver.single_station import erlang_c


def rate_at_s(time_s: float, servers: int, service_s: float) -> float:
    """Return the arrival rate at which an M/M/c station has the mean response time `time_s`, per second (Erlang C)."""
    load = np.linspace(0.0, servers, 20_001)[1:-1]
    mean = service_s * (1 + erlang_c(servers, load) / (servers - load))
    return float(np.interp(time_s, mean, load)) / service_s


def rate_at(time: Figure, servers: Figure, service: Figure) -> Interval:
    """Return the arrival rate at which a station has the mean response time `time`, with the rounding of `time`.

    Parameters
    ----------
    time : Figure
        Mean response time, seconds.
    servers : Figure
        Number of servers, rounded to the nearest whole number.
    service : Figure
        Mean service time, seconds; its rounding is ignored.

    Returns
    -------
    Interval
        Requests per second.
    """
    bounds = time.interval.value, time.interval.low, time.interval.high
    return Interval(*(rate_at_s(each, round(servers.value), service.value) for each in bounds))
