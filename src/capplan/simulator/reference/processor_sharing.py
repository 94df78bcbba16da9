"""Elastic stations of the SimPy engine: processor sharing, and first come, first served at a speed that changes.

Processor sharing is how an operating system shares its cores between threads, with slices so short that they do not
show: n visits inside share m servers, each at the speed min(1, m / n).

All visits in service attain service at one speed, so one number V does for the whole station: what a visit in service
would have attained since the beginning of the run. It is an integer of parts, of which a tick at speed 1 has `PARTS`,
and grows by an integer `pace` a tick. A visit with the demand d that begins at V ends at the first tick at which V has
reached F = V + d. The pace changes only when something happens at the station or its host, so V is exact whenever it
is brought up to date, and it does not matter how often that is done.

A station has its next end on the agenda as a *look*, an event of a negative rank: it comes before all of its tick and
puts the ends on the agenda. A look that later events have made too early finds nothing due. Looks are means, not
events of the total order, and are not counted.
"""

from __future__ import annotations

import math
from collections import deque
from heapq import heappop, heappush
from typing import NamedTuple

import simpy

from capplan.models.language.station import Station
from capplan.simulator.reference.events import Clockwork, Dropped, Moment, resume_rank
from capplan.simulator.reference.hosts import Machine, Standing
from capplan.simulator.reference.records import StationRecord, Window
from capplan.simulator.results.tally import Tally
from capplan.simulator.specification.clock import LONGEST_TICKS, to_ticks

PARTS = math.lcm(*range(1, 29))  # 80 313 433 200, a little above 2**36
FASTEST = 512 * PARTS


class Served(NamedTuple):
    """A visit in service, in the order of the ends: when V is `end`."""

    end: int
    rank: int
    joined: int
    begun: int
    demand: int
    moment: Moment


class Waiting(NamedTuple):
    """A visit that waits for a server."""

    joined: int
    demand: int
    rank: int
    moment: Moment


class ElasticStation:
    """Servers of one speed, the visits in service, and under `fcfs` those that wait, in order of joining."""

    def __init__(
        self, station: Station, number: int, clockwork: Clockwork, window: Window, machine: Machine | None
    ) -> None:
        self.station, self.clockwork, self.window, self.machine = station, clockwork, window, machine
        self.sharing = station.discipline == "ps"
        self.expiry = LONGEST_TICKS if station.expiry_s is None else to_ticks(float(station.expiry_s))
        self.rank = -1 - number  # of its looks
        self.standing = Standing()
        self.pauses, self.background = ([False] * len(kind) for kind in (station.pauses, station.background))
        self.inside: list[Served] = []  # a heap
        self.queue: deque[Waiting] = deque()
        self.looks: set[int] = set()
        self.attained = self.since = self.pace = 0  # V up to the tick `since`, and what it grows by a tick
        self.record = StationRecord(window)
        if machine is not None:
            machine.stations.append(self)

    @property
    def known_down(self) -> bool:
        """Whether others know that it, or its host, is down."""
        return self.standing.known_down or (self.machine is not None and self.machine.standing.known_down)

    @property
    def down(self) -> bool:
        """Whether it, or its host, is down."""
        return self.standing.down or (self.machine is not None and self.machine.standing.down)

    @property
    def busy(self) -> int:
        """How many servers have a visit in service."""
        return min(len(self.inside), self.station.servers)

    @property
    def running(self) -> int:
        """How many servers are busy as far as the host is concerned."""
        return 0 if self.down or any(self.pauses) else self.busy

    @property
    def moves(self) -> bool:
        """Whether a visit here may still end, if only its processes go on."""
        return bool(self.inside) and not self.down

    def visit(self, demand: int, rank: int) -> Moment:
        """Join; the moment returned is the end of the service.

        Raises
        ------
        Dropped
            When the station is known to be down; or by the moment, when the visit has waited for too long.
        """
        now, moment = self.clockwork.tick, Moment(self.clockwork)
        if self.known_down:
            self.record.dropped(now)
            raise Dropped
        if not self.sharing and len(self.inside) == self.station.servers:
            self.settle()
            self.queue.append(Waiting(now, demand, rank, moment))
            self.changed()
        elif demand == 0:
            self._serve_at_once(now, rank, moment)
        else:
            self.settle()
            self._begin(Waiting(now, demand, rank, moment))
            self.changed()
        return moment

    def _serve_at_once(self, joined: int, rank: int, moment: Moment) -> None:
        now = self.clockwork.tick
        self.record.served(joined, now - joined, now - joined)
        moment.at(now, rank)

    def _begin(self, visit: Waiting) -> None:
        joined, demand, rank, moment = visit
        end = self.attained + demand * PARTS
        heappush(self.inside, Served(end, rank, joined, self.clockwork.tick, demand, moment))

    def settle(self) -> None:
        """Bring V and the sums up to date: to be called before anything changes here."""
        now = self.clockwork.tick
        self._note(now)
        self.attained += self.pace * (now - self.since)
        self.since = now

    def _note(self, until: int) -> None:
        """Note how things have stood since the last change."""
        if until <= self.since:
            return
        busy = self.busy
        self.record.busy.add(self.since, until, busy)
        self.record.queued.add(self.since, until, len(self.inside) + len(self.queue) - busy)
        if any(self.pauses):
            self.record.paused(self.since, until)

    def turn(self, process: int, on: bool) -> None:
        """Turn a pause or background work on or off; they are numbered, pauses first."""
        self.settle()
        first = len(self.pauses)
        if process < first:
            self.pauses[process] = on
        else:
            self.background[process - first] = on
        self.changed()

    def changed(self) -> None:
        """Go on at the speed that is now right, here and elsewhere on the host: to be called after any change here."""
        if self.machine is None or not self.machine.recount():
            self.go_on()

    def go_on(self) -> None:
        """Set the pace anew, and look again at the next end."""
        self.pace = self._pace()
        if self.inside and self.pace > 0:
            now = self.clockwork.tick
            tick = max(now, now - (self.attained - self.inside[0].end) // self.pace)
            if tick not in self.looks:
                self.looks.add(tick)
                self.clockwork.aside += 1
                Moment(self.clockwork, self._look).at(tick, self.rank)

    def _share(self) -> int:
        """Return a visit's share of a server, in parts."""
        inside, servers = len(self.inside), self.station.servers
        return PARTS * servers // inside if inside > servers else PARTS

    def _pace(self) -> int:
        if self.down or any(self.pauses):
            return 0
        pace = self._share() if self.machine is None else self.machine.shared(self._share())
        factor = self._factor()
        if factor in (0.0, 1.0):
            return pace if factor else 0
        return int(min(max(pace * factor + 0.5, 1.0), FASTEST))

    def _factor(self) -> float:
        """Return the factor on the speed of every server; its arithmetic is that of float64, in this order."""
        factor, taken = 1.0, 0.0
        if self.station.rate is not None and (inside := len(self.inside) + len(self.queue)):
            speeds = self.station.rate.speeds
            factor *= float(speeds[min(inside, len(speeds)) - 1])
        for work, runs in zip(self.station.background, self.background, strict=True):
            taken += work.share if runs else 0.0
        factor *= max(0.0, 1.0 - taken)
        for standing in (self.standing, *((self.machine.standing,) if self.machine else ())):
            factor *= standing.speed
            factor *= standing.cold_factor
        return factor

    def _look(self, _: simpy.Event) -> None:
        """Let all visits leave whose service is complete, and those who wait take their servers."""
        now = self.clockwork.tick
        self.looks.remove(now)
        self.clockwork.aside -= 1
        self.settle()
        if not self.inside or self.inside[0].end > self.attained:
            return
        while self.inside and self.inside[0].end <= self.attained:
            self._leave(heappop(self.inside))
        while self.queue and len(self.inside) < self.station.servers:
            self._take(self.queue.popleft())
        self.changed()

    def _leave(self, visit: Served) -> None:
        now = self.clockwork.tick
        response = now - visit.joined
        wait = response - visit.demand if self.sharing else visit.begun - visit.joined
        self.record.served(visit.joined, wait, response)
        visit.moment.at(now, visit.rank)

    def _take(self, visit: Waiting) -> None:
        """Let the first of those who wait have a free server."""
        now = self.clockwork.tick
        if now - visit.joined > self.expiry:
            self.record.dropped(now)
            visit.moment.now(resume_rank(visit.rank), Dropped())
        elif visit.demand == 0:
            self._serve_at_once(visit.joined, visit.rank, visit.moment)
        else:
            self._begin(visit)

    def fill(self, tally: Tally, index: int) -> None:
        """Enter what station number `index` has done; visits still inside count for the queue and busy servers only."""
        self._note(tally.end_ticks)
        self.record.fill(tally, index)
