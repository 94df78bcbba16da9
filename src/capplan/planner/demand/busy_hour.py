"""Rates in the busy hour: sessions that start, and the requests of each.

Sessions start at a constant rate, and their lengths are exponential with mean L. A timer of the period p that starts
with the session fires floor(T / p) times in a session of length T: on average 1 / (exp(p / L) - 1) times, which is
about L / p - 1 / 2 for short periods. Accounting updates and re-authentications are such timers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from capplan.planner.demand.demand import HOUR_S, BusyHour, Connections, Demand, authentication_requests, interim_s


@dataclass(frozen=True)
class SessionRequests:
    """Mean numbers of requests in a session.

    Attributes
    ----------
    auth
        Authorizations and re-authorizations.
    start
        Accounting start.
    interim
        Accounting updates.
    stop
        Accounting stop.
    """

    auth: float
    start: float
    interim: float
    stop: float

    @property
    def acct(self) -> float:
        """Accounting requests."""
        return self.start + self.interim + self.stop

    @property
    def total(self) -> float:
        """All requests."""
        return self.auth + self.acct


@dataclass(frozen=True)
class ClassRates:
    """Rates by request class, per second.

    Attributes
    ----------
    total_per_s
        All requests.
    auth_per_s
        Authorizations.
    acct_per_s
        Accounting requests.
    handshakes_per_s
        TLS handshakes of new connections; they are no requests.
    """

    total_per_s: float
    auth_per_s: float
    acct_per_s: float
    handshakes_per_s: float = 0.0

    @property
    def handshakes_per_request(self) -> float:
        """TLS handshakes for each request."""
        return self.handshakes_per_s / self.total_per_s if self.total_per_s else 0.0


def rates(auth_per_s: float, acct_per_s: float, handshakes_per_s: float = 0.0) -> ClassRates:
    """Return rates by class with their sum."""
    return ClassRates(auth_per_s + acct_per_s, auth_per_s, acct_per_s, handshakes_per_s)


def timer_events(period_s: float, mean_length_s: float) -> float:
    """Return how often a timer fires in an exponential time, on average."""
    ratio = period_s / mean_length_s
    return 1 / math.expm1(ratio) if ratio < 700 else 0.0


def session_requests(hour: BusyHour) -> SessionRequests:
    """Return the mean numbers of requests in a session."""
    length_s = float(hour.length_s)
    again = 0.0 if hour.reauthentication_s is None else timer_events(float(hour.reauthentication_s), length_s)
    given = hour.interim_updates
    updates = timer_events(interim_s(hour), length_s) if given is None else given
    return SessionRequests(authentication_requests(hour) * (1 + again), 1.0, updates, 1.0)


def grown(demand: Demand, months: float | None = None) -> float:
    """Return the number of subscribers after so many months, at the planned time by default; of the median growth."""
    years = (demand.months if months is None else months) / 12
    return float(demand.subscribers) * float((1 + growth_per_year(demand)) ** years)


def growth_per_year(demand: Demand) -> float:
    """Return the median growth per year."""
    low, high = demand.growth
    return low if low == high else math.sqrt((1 + low) * (1 + high)) - 1


def starts_per_s(demand: Demand, subscribers: float) -> float:
    """Return how many sessions start per second."""
    return subscribers * float(demand.busy_hour.sessions) / HOUR_S


def busy_hour_rates(demand: Demand, subscribers: float) -> ClassRates:
    """Return the rates in the busy hour with so many subscribers."""
    starts, each = starts_per_s(demand, subscribers), session_requests(demand.busy_hour)
    return rates(starts * each.auth, starts * each.acct, _made_anew(demand.connections))


def _made_anew(connections: Connections | None) -> float:
    if connections is None or connections.lifetime_s is None:
        return 0.0
    return float(connections.count) / float(connections.lifetime_s)
