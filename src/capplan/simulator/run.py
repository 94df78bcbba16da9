"""What one run of a simulation engine has seen: every request, and what stations and pools did in the window.

The *window* reaches from the end of the warm-up to the end of the traffic. A request is *measured* when it starts
inside. Requests that have started are run to their end even when that lies after the window, so latencies are not
censored; then no request is unfinished, unless the run was told not to drain.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from capplan.models.errors import InputError, nearest
from capplan.models.quantity import FloatArray
from capplan.simulator.clock import TICKS_PER_S, to_ticks

IntArray = NDArray[np.int64]
Clock = Literal["intended", "actual"]


class Status(IntEnum):
    """How a request ended, for its client."""

    UNFINISHED = 0
    COMPLETED = 1
    DROPPED = 2
    TIMED_OUT = 3


@dataclass(frozen=True, eq=False)
class Requests:
    """One row per request in the order of starting; times in ticks.

    `session` is the number of the arrival (open traffic) or of the client (closed), `position` counts its requests;
    `source` and `request_class` are indices into the names of the run. `end_ticks` is -1 for the unfinished.
    """

    source: IntArray
    request_class: IntArray
    session: IntArray
    position: IntArray
    intended_ticks: IntArray
    start_ticks: IntArray
    end_ticks: IntArray
    status: IntArray


@dataclass(frozen=True)
class StationReport:
    """What a station did in the window; visits, wait and response are those of visits that joined in it.

    Nothing waits under processor sharing: there the wait is the response beyond the demand, and the queue the number
    inside beyond the busy servers, so that Little's law holds for both.
    """

    name: str
    servers: int
    utilisation: float
    mean_queue: float
    mean_number: float
    visits: int
    mean_wait_s: float
    mean_response_s: float


@dataclass(frozen=True, eq=False)
class PoolReport:
    """What a pool did in the window; wait and hold are those of units taken in it.

    `busy_share[n]` is the share of the time in which n units were busy.
    """

    name: str
    size: int
    mean_busy: float
    mean_queue: float
    taken: int
    drops: int
    mean_wait_s: float
    mean_hold_s: float
    busy_share: FloatArray

    def busy_quantile(self, probability: float) -> int:
        """Return the number of units that is not exceeded for this share of the time."""
        return min(self.size, int(np.searchsorted(np.cumsum(self.busy_share), probability - 1e-12)))


@dataclass(frozen=True)
class LittleCheck:
    """Little's law over the window: `number` (time average) is about `rate_per_s` times `response_s`."""

    number: float
    rate_per_s: float
    response_s: float

    @property
    def error(self) -> float:
        """Relative error; what remains are the requests that cross an end of the window."""
        return self.rate_per_s * self.response_s / self.number - 1 if self.number else 0.0


@dataclass(frozen=True, eq=False)
class Run:
    """The result of one replication of one network."""

    network: str
    seed: int
    replication: int
    warmup_s: float
    duration_s: float
    classes: tuple[str, ...]
    sources: tuple[str, ...]
    requests: Requests
    stations: dict[str, StationReport]
    pools: dict[str, PoolReport]
    events: int

    @property
    def window_s(self) -> float:
        """Length of the window."""
        return self.duration_s - self.warmup_s

    def measured(self, request_class: str | None = None) -> NDArray[np.bool_]:
        """Tell for each request whether it starts in the window (and is of this class)."""
        inside: NDArray[np.bool_] = self.requests.start_ticks >= to_ticks(self.warmup_s)
        if request_class is None:
            return inside
        if request_class not in self.classes:
            raise InputError(f"request class {request_class!r} does not exist{nearest(request_class, self.classes)}")
        inside &= self.requests.request_class == self.classes.index(request_class)
        return inside

    def latencies_s(self, request_class: str | None = None, clock: Clock = "intended") -> FloatArray:
        """Return the latencies of the measured requests that completed, from the intended or the actual start."""
        rows = self.measured(request_class) & (self.requests.status == Status.COMPLETED)
        since = self.requests.intended_ticks if clock == "intended" else self.requests.start_ticks
        latencies: FloatArray = (self.requests.end_ticks[rows] - since[rows]) / TICKS_PER_S
        return latencies

    def latency_mean_s(self, request_class: str | None = None, clock: Clock = "intended") -> float:
        """Return the mean latency of completed requests; nan when there are none."""
        latencies = self.latencies_s(request_class, clock)
        return float(latencies.mean()) if latencies.size else float("nan")

    def latency_quantile_s(
        self, probability: float, request_class: str | None = None, clock: Clock = "intended"
    ) -> float:
        """Return the smallest observed latency that this share of the completed requests does not exceed."""
        latencies = self.latencies_s(request_class, clock)
        return float(np.quantile(latencies, probability, method="inverted_cdf")) if latencies.size else float("nan")

    def count(self, status: Status, request_class: str | None = None) -> int:
        """Return how many measured requests ended so."""
        return int(np.count_nonzero(self.measured(request_class) & (self.requests.status == status)))

    def throughput_per_s(self, request_class: str | None = None) -> float:
        """Return the rate of completions inside the window, whenever the requests had started."""
        ends, first = self.requests.end_ticks, to_ticks(self.warmup_s)
        inside = (ends >= first) & (ends < to_ticks(self.duration_s)) & (self.requests.status == Status.COMPLETED)
        if request_class is not None:
            inside &= self.requests.request_class == self.classes.index(request_class)
        return float(np.count_nonzero(inside)) / self.window_s

    def loss_fraction(self, request_class: str | None = None) -> float:
        """Return the share of measured requests that were dropped or whose client gave up."""
        lost = self.count(Status.DROPPED, request_class) + self.count(Status.TIMED_OUT, request_class)
        all_of_them = int(np.count_nonzero(self.measured(request_class)))
        return lost / all_of_them if all_of_them else 0.0

    def little(self, request_class: str | None = None) -> LittleCheck:
        """Return both sides of Little's law for the requests that clients wait for."""
        first, last = to_ticks(self.warmup_s), to_ticks(self.duration_s)
        start = self.requests.start_ticks
        end = np.where(self.requests.status == Status.UNFINISHED, last, self.requests.end_ticks)
        mine = np.ones(start.size, dtype=np.bool_)
        if request_class is not None:
            mine = self.requests.request_class == self.classes.index(request_class)
        inside = np.clip(np.minimum(end, last) - np.maximum(start, first), 0, None)[mine]
        rows = self.measured(request_class)
        response_s = float((end[rows] - start[rows]).mean()) / TICKS_PER_S if rows.any() else 0.0
        return LittleCheck(
            number=float(inside.sum()) / (last - first),
            rate_per_s=float(np.count_nonzero(rows)) / self.window_s,
            response_s=response_s,
        )
