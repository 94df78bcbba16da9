"""Rates after an outage: devices boot, and each authenticates and starts a session anew.

The sessions that the outage left open go on as in the busy hour. Clients of the database connect again, each with a TLS
handshake. Requests that are sent again because an answer is late come on top.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from capplan.models.language.units import FloatArray
from capplan.planner.demand.busy_hour import ClassRates, busy_hour_rates, rates, starts_per_s
from capplan.planner.demand.demand import Demand, authentication_requests, boots, interim_s, window_s, within_s

_MOST_POINTS = 600  # of the rates over time


@dataclass(frozen=True)
class RatesAt:
    """Rates in a time after the outage.

    Attributes
    ----------
    from_s
        Begin of the time, seconds after the end of the outage.
    to_s
        Its end.
    rates
        Mean rates in that time.
    """

    from_s: float
    to_s: float
    rates: ClassRates


@dataclass(frozen=True)
class ReattachStorm:
    """What a mass re-attach asks.

    Attributes
    ----------
    sessions
        Sessions that start anew.
    peak
        The highest rate of requests over the window, and when.
    times_busy_hour
        Peak rate over that of the busy hour.
    handshakes_peak_per_s
        Highest rate of TLS handshakes over the window.
    updates_peak_per_s
        Highest rate of accounting updates of these sessions, one interim interval later, when they come together; null
        where the interval is not known.
    updates_after_s
        That interval.
    over_time
        Rates from the end of the outage until the last device is back.
    """

    sessions: float
    peak: RatesAt
    times_busy_hour: float
    handshakes_peak_per_s: float
    updates_peak_per_s: float | None
    updates_after_s: float | None
    over_time: tuple[RatesAt, ...]


@dataclass(frozen=True)
class _Storm:
    """Devices and connections that come back, and what goes on besides."""

    devices: float
    auth_requests: float
    connections: float
    besides: ClassRates
    boot_s: FloatArray
    booted: FloatArray
    connected_s: FloatArray

    def between(self, start: float, end: float) -> ClassRates:
        """Return the mean rates in a time."""
        devices = self.devices * self.share(start, end) / (end - start)
        connected = float(np.diff(np.interp([start, end], self.connected_s, [0.0, 1.0]))[0])
        handshakes = self.connections * connected / (end - start)
        return rates(
            self.besides.auth_per_s + devices * self.auth_requests,
            self.besides.acct_per_s + devices,
            self.besides.handshakes_per_s + handshakes,
        )

    def share(self, start: float, end: float) -> float:
        """Return the share of the devices that boot in a time."""
        return float(np.diff(np.interp([start, end], self.boot_s, self.booted))[0])


def reattach(demand: Demand, subscribers: float) -> ReattachStorm:
    """Return what a mass re-attach asks.

    Parameters
    ----------
    demand : Demand
        The demand.
    subscribers : float
        Number of subscribers.

    Returns
    -------
    ReattachStorm
    """
    storm, asked, hour = _storm(demand, subscribers), demand.reattach, demand.busy_hour
    window = window_s(asked)
    start = _begin_of_peak(storm, window)
    peak = RatesAt(start, start + window, storm.between(start, start + window))
    usual = busy_hour_rates(demand, subscribers)
    updates_s = None if hour.interim_updates is not None else interim_s(hour)
    later = None
    if updates_s is not None:
        still_open = math.exp(-updates_s / float(hour.length_s))
        later = storm.devices * storm.share(start, start + window) / window * still_open
    return ReattachStorm(
        sessions=storm.devices,
        peak=peak,
        times_busy_hour=peak.rates.total_per_s / usual.total_per_s,
        handshakes_peak_per_s=storm.between(0.0, window).handshakes_per_s,
        updates_peak_per_s=later,
        updates_after_s=updates_s,
        over_time=_over_time(storm, window),
    )


def served_after_s(demand: Demand, subscribers: float, capacity_per_s: float) -> float:
    """Return when all have been served at the earliest, seconds after the outage, at a rate that is served at most.

    Requests that are not yet there cannot be served: from each time on, those that come later take their time. The
    sessions that the outage left open take their part of the rate.
    """
    storm = _storm(demand, subscribers)
    left_per_s = capacity_per_s - storm.besides.total_per_s
    if left_per_s <= 0:
        return math.inf
    work = storm.devices * (storm.auth_requests + 1)
    return float(np.max(storm.boot_s + (1 - storm.booted) * work / left_per_s))


def _storm(demand: Demand, subscribers: float) -> _Storm:
    share = 1.0 if demand.reattach.share is None else demand.reattach.share
    usual, connections = busy_hour_rates(demand, subscribers), demand.connections
    times, shares = [0.0], [0.0]
    for start, end, part in boots(demand.reattach):
        times += [start, end]
        shares += [shares[-1], shares[-1] + part]
    return _Storm(
        devices=share * starts_per_s(demand, subscribers) * float(demand.busy_hour.length_s),
        auth_requests=authentication_requests(demand.busy_hour),
        connections=0.0 if connections is None else float(connections.count),
        besides=rates((1 - share) * usual.auth_per_s, (1 - share) * usual.acct_per_s, usual.handshakes_per_s),
        boot_s=np.array(times),
        booted=np.array(shares),
        connected_s=np.array([0.0, 1.0 if connections is None else within_s(connections)]),
    )


def _begin_of_peak(storm: _Storm, window: float) -> float:
    """Return when the window with the highest rate begins: at a corner of the distribution, or ends at one."""
    corners = sorted({0.0, *storm.boot_s, *(max(each - window, 0.0) for each in storm.boot_s)})
    return float(max(corners, key=lambda start: round(storm.share(start, start + window), 12)))


def _over_time(storm: _Storm, window: float) -> tuple[RatesAt, ...]:
    """Return the rates until all are back, in steps of the window, or longer ones where they would be many."""
    last = max(float(storm.boot_s[-1]), float(storm.connected_s[-1]) if storm.connections else 0.0)
    step = max(window, last / _MOST_POINTS)
    starts = [number * step for number in range(math.ceil(round(last / step, 9)))]
    return tuple(RatesAt(start, start + step, storm.between(start, start + step)) for start in starts)
