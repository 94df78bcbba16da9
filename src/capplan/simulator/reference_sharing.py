"""Processor sharing in the SimPy engine: n visits inside share m servers, each at the speed min(1, m / n).

It is how an operating system shares its cores between threads, with slices so short that they do not show.

The service that a visit could have attained since the beginning of the run is one number V for the whole station: it
grows by min(1, m / n) a tick. A visit with the demand d that joins at V ends at the first tick at which V has reached
F = V + d. Any engine finds the same ticks if it computes V so:

- V and F are integers that count parts; a tick has `PARTS` of them, the least common multiple of 1 to 28. So V is exact
  while at most 28 are inside, or no more than there are servers. Otherwise it may lose up to a part whenever it is
  brought up to date: after c such times it lacks less than c / `PARTS` of a tick, for which an end may be a tick late.
- V is brought up to date at the ticks at which a visit joins or ends, at the latter before anything else happens there,
  and at no others: with n inside for t ticks it grows by ``floor(min(m, n) * t * PARTS / n)`` (`attained_parts`). The
  same formula tells for any tick in between whether V has reached F; the smallest such t is
  ``ceil(n * (F - V) / (min(m, n) * PARTS))`` (`ticks_until`).
- All visits with F at most V at a tick leave the station together, and each ends as a SERVICE event of its own: ties
  go by request and step as everywhere, not by F. Who joins at that tick finds them gone.
- A visit without demand ends at the tick of its joining, as a SERVICE event, and changes nothing in the station.

Only differences of V count. In 64 bits, with V as whole ticks and parts below `PARTS` (which carry and borrow), the
same numbers are::

    q, r = divmod(t, n)                      # growth in t ticks
    whole, parts = k * q + k * r // n, k * r % n * PARTS // n

    q, r = divmod(whole, k)                  # ticks until `whole` and `parts` more are attained
    high, low = divmod(n * parts, PARTS)
    t = n * q + (n * r + high + (low > 0) + k - 1) // k

for k = min(m, n). Nothing overflows while fewer than 10**8 visits are inside and the end is a tick of 63 bits.

A station has its next end on the agenda as a *look*, an event of a negative rank: it comes before all of its tick
and puts the ends on the agenda. A look that a later visit has made too early finds nothing due. Looks are means, not
events of the total order, and are not counted.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush

import simpy

from capplan.models.station import Station
from capplan.simulator.reference_events import Clockwork, Moment
from capplan.simulator.reference_stations import Visits, Window
from capplan.simulator.run import StationReport

PARTS = math.lcm(*range(1, 29))  # 80 313 433 200, a little above 2**36


def attained_parts(ticks: int, inside: int, servers: int) -> int:
    """Return the service that each of `inside` visits attains in `ticks`, in parts, rounded down."""
    return min(servers, inside) * ticks * PARTS // inside


def ticks_until(parts: int, inside: int, servers: int) -> int:
    """Return the fewest ticks in which each of `inside` visits attains `parts`."""
    return -(-inside * parts // (min(servers, inside) * PARTS))


class SharingStation:
    """Servers shared by the visits inside, which are kept in the order of their ends."""

    def __init__(self, station: Station, number: int, clockwork: Clockwork, window: Window) -> None:
        self.station, self.clockwork, self.window = station, clockwork, window
        self.rank = -1 - number  # of its looks
        self.inside: list[tuple[int, int, int, int, Moment]] = []  # a heap: end in parts, rank, joined, demand, end
        self.looks: set[int] = set()
        self.attained = self.since = 0  # in parts, up to that tick
        self.number = self.busy = 0
        self.visits = Visits(window)

    def visit(self, demand: int, rank: int) -> Moment:
        """Join; the moment returned is the end of the service."""
        now, served = self.clockwork.tick, Moment(self.clockwork)
        if demand == 0:
            self.visits.book(now, 0, 0)
            return served.at(now, rank)
        self._bring_up_to_date()
        heappush(self.inside, (self.attained + demand * PARTS, rank, now, demand, served))
        self._look_ahead()
        return served

    def _attained_now(self) -> int:
        if not self.inside:
            return self.attained
        return self.attained + attained_parts(self.clockwork.tick - self.since, len(self.inside), self.station.servers)

    def _bring_up_to_date(self) -> None:
        self.attained = self._attained_now()
        self.number, self.busy = self._sums(self.clockwork.tick)
        self.since = self.clockwork.tick

    def _sums(self, until: int) -> tuple[int, int]:
        """Return the sums over the window so far of visits inside and of busy servers, in ticks."""
        ticks, inside = self.window.overlap(self.since, until), len(self.inside)
        return self.number + inside * ticks, self.busy + min(inside, self.station.servers) * ticks

    def _look_ahead(self) -> None:
        """Look again at the next end, as things stand now."""
        if self.inside:
            missing = self.inside[0][0] - self.attained
            tick = self.clockwork.tick + ticks_until(missing, len(self.inside), self.station.servers)
            if tick not in self.looks:
                self.looks.add(tick)
                Moment(self.clockwork, self._look).at(tick, self.rank)

    def _look(self, _: simpy.Event) -> None:
        """Let all visits end whose service is complete, if there are any."""
        now = self.clockwork.tick
        self.looks.remove(now)
        if not self.inside or self.inside[0][0] > self._attained_now():
            return
        self._bring_up_to_date()
        while self.inside and self.inside[0][0] <= self.attained:
            self._end(*heappop(self.inside)[1:])
        self._look_ahead()

    def _end(self, rank: int, joined: int, demand: int, served: Moment) -> None:
        now = self.clockwork.tick
        self.visits.book(joined, now - joined - demand, now - joined)
        served.at(now, rank)

    def report(self) -> StationReport:
        """Sum up the window; visits still inside when the run stops count for the number and busy servers only."""
        number, busy = self._sums(self.window.end)
        return self.visits.report(self.station, number - busy, busy)
