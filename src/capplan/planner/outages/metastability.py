"""Metastability: whether retries keep a network down after the trigger has ended.

A request that timed out still uses the servers that it queued for. So after a trigger the queue is full of work that
nobody waits for any more, new requests behind it time out as well, and each of them comes again. With a rate L, n
attempts and a capacity C, that state feeds itself if L * n > C (Bronson et al. 2021; Huang et al. 2022). A station that
gets slower with its queue can stay down without any retry.

References
----------
.. [1] N. Bronson, A. Aghayev, A. Charapko and T. Zhu, "Metastable failures in distributed systems", HotOS 2021.
.. [2] L. Huang et al., "Metastable failures in the wild", OSDI 2022.
.. [3] P. Alvaro et al., "Formal analysis of metastable failures in software systems", arXiv:2510.03551, 2025.
.. [4] C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
   binomial", Biometrika 26, 1934.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
from scipy import stats

from capplan.answers.number_words import significant
from capplan.models.language.network import ALL_TRAFFIC, Network
from capplan.models.language.traffic import Event, Timeline
from capplan.planner.outages.outages_answer import Expected, Metastability, RecoveryVerdict, Screen
from capplan.planner.outages.places import ClientOptions, Clients, Return, with_clients, with_loss
from capplan.planner.outages.transient import RUN_S, Effort, course_of, run_cost_s, usual_share
from capplan.simulator.output import CONFIDENCE
from capplan.simulator.replications import ReplicationPlan, replicate
from capplan.simulator.results.run import Run

Survival = Callable[[float, float], float]
"""Probability that a request takes longer than a time, at a rate: (seconds, requests per second)."""
REPLICATIONS = 10, 20
"""Fewest and most replications of a cell that the budget pays for in full."""
FEWEST_REPLICATIONS = 3
MOST_ATTEMPTS = 10
SURGES = tuple(1.1**number for number in range(1, 37))
"""Factors of the traffic that are tried, up to 31."""
_SEARCHED = 12  # approximate number of cells that the searches for safe limits simulate
N = TypeVar("N", int, float)
_SPANS = 10  # a horizon lasts at least this many times as long as a client tries
_LENGTHS = 3  # of the trigger
_DRAINS = 2.5  # times in which its backlog is served
_SHORTEST_S, _LONGEST_S = 60.0, 3600.0
_LEAST_S = 30.0  # of a horizon that shows anything
_WARMUP_S = 10.0
_LAST = 0.5  # share of the horizon after which requests are counted
_ROUNDS = 200
_SETTLED = 1e-4  # of the rate


AT_ONCE = Return(0.0)
"""A loss that is noticed at once, and that comes back at full speed."""


@dataclass(frozen=True)
class Trigger:
    """What pushes a network out of its steady state.

    Attributes
    ----------
    words
        In words.
    lengths_s
        How long it lasts, in seconds; one table row each.
    places
        Stations, members or hosts that are down; empty: the traffic surges.
    surge
        Factor of the traffic.
    how
        How a loss is noticed, and how it comes back.
    """

    words: str
    lengths_s: tuple[float, ...]
    places: tuple[str, ...] = ()
    surge: float = 1.0
    how: Return = AT_ONCE

    def on(self, network: Network, at_s: float, length_s: float) -> Network:
        """Return a network with this trigger, in place of its own timeline."""
        if self.places:
            return with_loss(network, self.places, (at_s, at_s + length_s), self.how)
        return _surging(network, self.surge, at_s, length_s)


def _surging(network: Network, factor: float, at_s: float, length_s: float) -> Network:
    times = ((at_s, factor), (at_s + length_s, 1.0))
    return replace(network, timeline=Timeline(tuple(Event(at, "scale_traffic", ALL_TRAFFIC, by) for at, by in times)))


@dataclass(frozen=True)
class RetryQuestion:
    """A question about retries.

    Attributes
    ----------
    trigger : Trigger
        What happens.
    attempts : tuple of int
        Numbers of attempts, the first one included; one table column each.
    clients : Clients
        The clients otherwise.
    options : ClientOptions
        What the user asked of them.
    horizon_s : float or None
        Simulated time after the end of the trigger; None: ten times as long as a client tries, three times as long as
        the trigger, and 2.5 times as long as it takes to serve its backlog, but a minute at least and an hour at most.
    required_share : float
        Share of the requests that must complete in most of the second half of the horizon.
    effort : Effort
        Budget, seed and replications.
    processes : int
        How many replications run at a time; the answer does not depend on it.
    limits : bool
        Whether to look for the largest safe number of attempts and surge.
    """

    trigger: Trigger
    attempts: tuple[int, ...]
    clients: Clients
    options: ClientOptions = field(default_factory=ClientOptions)
    horizon_s: float | None = None
    required_share: float = 0.9
    effort: Effort = field(default_factory=Effort)
    processes: int = 1
    limits: bool = True


@dataclass(frozen=True)
class Load:
    """The load of a network without retries; None where the analytic solver does not support the network.

    Attributes
    ----------
    rate_per_s
        Offered rate, requests per second; None for closed traffic.
    capacity_per_s
        Attempts per second that are served.
    survival
        Probability that an attempt takes longer than a time, at a rate of attempts.
    """

    rate_per_s: float | None
    capacity_per_s: float | None = None
    survival: Survival | None = None


def metastability(network: Network, question: RetryQuestion, load: Load) -> Metastability:
    """Return whether a network recovers from a trigger, for each length and number of attempts."""
    return _Experiment(network, question, load).answer()


@dataclass(frozen=True)
class _Plan:
    """What the budget allows: replications, the share of the horizons, and whether limits are searched."""

    replications: int
    share: float
    limits: bool


class _Experiment:
    def __init__(self, network: Network, question: RetryQuestion, load: Load) -> None:
        self.network, self.asked, self.load = network, question, load
        self.known: dict[tuple[float, int], RecoveryVerdict] = {}

    def answer(self) -> Metastability:
        asked, trigger = self.asked, self.asked.trigger
        verdicts = tuple(self.verdict(*cell) for cell in self.wanted) if self.plan.replications else ()
        most = max(*asked.attempts, MOST_ATTEMPTS)
        return Metastability(
            trigger=trigger.words,
            places=trigger.places,
            surge=trigger.surge,
            warmup_s=self.warmup_s,
            shortened=self.shortened,
            required_share=asked.required_share,
            screens=tuple(screened(self.load, replace(asked.clients, attempts=number)) for number in asked.attempts),
            verdicts=verdicts,
            safe_attempts=self.safe_attempts(most) if self.plan.limits else None,
            searched=self.plan.limits,
            most_attempts=most,
            safe_surge=self.safe_surge() if self.plan.limits else None,
            least_surge=SURGES[0],
            most_surge=SURGES[-1],
        )

    @property
    def longest_s(self) -> float:
        """Length of the longest trigger."""
        return max(self.asked.trigger.lengths_s)

    @property
    def warmup_s(self) -> float:
        """Time before the trigger, in which the network fills up: as long as a client tries, or ten seconds."""
        return min(_WARMUP_S, max(self.asked.clients.span_s, 1.0))

    def wanted_s(self, length_s: float, attempts: int) -> float:
        """Return the requested horizon of a cell."""
        if self.asked.horizon_s is not None:
            return self.asked.horizon_s
        span_s = replace(self.asked.clients, attempts=attempts).span_s
        found = max(_SPANS * span_s, _LENGTHS * length_s, _DRAINS * self.drain_s(length_s, attempts), _SHORTEST_S)
        return min(found, _LONGEST_S)

    def drain_s(self, length_s: float, attempts: int) -> float:
        """Return the time to serve the backlog of a trigger; 0 if the capacity is too low for all attempts."""
        rate, capacity = self.load.rate_per_s, self.load.capacity_per_s
        if rate is None or capacity is None or rate * attempts >= capacity:
            return 0.0
        worst = rate * attempts
        grown = worst if self.asked.trigger.places else max(worst * self.asked.trigger.surge - capacity, 0.0)
        return length_s * grown / (capacity - worst)

    @cached_property
    def wanted(self) -> dict[tuple[float, int], float]:
        """The requested horizons of the table."""
        lengths, numbers = self.asked.trigger.lengths_s, self.asked.attempts
        return {(length, number): self.wanted_s(length, number) for length in lengths for number in numbers}

    @cached_property
    def second_s(self) -> float:
        """Cost of one simulated second with one attempt per request."""
        clients = replace(self.asked.options, attempts=1)
        return run_cost_s(with_clients(self.network, clients, self.asked.clients), 1.0, self.asked.effort.seed)

    def cost_s(self, share: float) -> float:
        """Return the cost of one replication of each cell of the table, at a share of the horizons."""
        seconds = sum(
            number * (self.warmup_s + length + share * horizon) for (length, number), horizon in self.wanted.items()
        )
        return self.second_s * seconds + RUN_S * len(self.wanted)

    @property
    def searches(self) -> float:
        """Cost of the table and of the searches over that of the table."""
        return 1 + (_SEARCHED / len(self.wanted) if self.asked.limits else 0)

    @cached_property
    def plan(self) -> _Plan:
        """The plan for the budget: everything, or else fewer replications of shorter horizons without the searches."""
        effort, whole, none = self.asked.effort, self.cost_s(1.0), self.cost_s(0.0)
        searched = whole * self.searches
        if effort.replications is not None:
            paid = effort.budget_s >= effort.replications * searched
            return _Plan(effort.replications, 1.0, self.asked.limits and paid)
        if effort.budget_s >= REPLICATIONS[0] * searched:
            return _Plan(min(int(effort.budget_s / searched), REPLICATIONS[1]), 1.0, self.asked.limits)
        for count in (REPLICATIONS[0], FEWEST_REPLICATIONS):
            share = min((effort.budget_s / count - none) / (whole - none), 1.0)
            if share * min(self.wanted.values()) >= _LEAST_S:
                return _Plan(count, share, False)
        return _Plan(0, 0.0, False)

    def horizon_s(self, length_s: float, attempts: int) -> float:
        """Return the horizon of a cell within the budget."""
        wanted = self.wanted_s(length_s, attempts)
        return wanted if self.plan.share == 1 else float(math.ceil(self.plan.share * wanted))

    @property
    def shortened(self) -> str:
        """What the budget does not cover, in words."""
        plan = self.plan
        if plan.share == 1 and plan.limits == self.asked.limits:
            return ""
        words = f"--budget {math.ceil(self.cost_s(1.0) * REPLICATIONS[0] * self.searches)}s simulates all of it"
        if not plan.replications:
            return f"nothing is simulated: {words}"
        longest = significant(max(self.wanted.values()))
        parts = [f"horizons of up to {longest} s are shorter"] if plan.share < 1 else []
        parts += ["what is safe is not searched"] if self.asked.limits else []
        return f"{' and '.join(parts)}: {words}"

    def verdict(self, length_s: float, attempts: int) -> RecoveryVerdict:
        """Return whether the network recovers, with its simulations; each cell is simulated once."""
        if (length_s, attempts) not in self.known:
            network = self.asked.trigger.on(self.with_attempts(attempts), self.warmup_s, length_s)
            self.known[length_s, attempts] = self.simulated(network, length_s, attempts)
        return self.known[length_s, attempts]

    def with_attempts(self, attempts: int) -> Network:
        """Return the network with another number of attempts."""
        return with_clients(self.network, replace(self.asked.options, attempts=attempts), self.asked.clients)

    def simulated(self, network: Network, length_s: float, attempts: int) -> RecoveryVerdict:
        """Simulate a network with its trigger."""
        ended_s = self.warmup_s + length_s
        horizon_s = self.horizon_s(length_s, attempts)
        plan = ReplicationPlan(network, ended_s + horizon_s, 0.0, self.asked.effort.seed, self.plan.replications)
        keep = partial(_share_at_the_end, from_s=ended_s + _LAST * horizon_s)
        shares = replicate(plan, keep, processes=self.asked.processes)
        recovered = sum(each >= self.asked.required_share for each in shares)
        low, high = clopper_pearson(recovered, len(shares))
        return RecoveryVerdict(
            trigger_s=length_s,
            attempts=attempts,
            recovered=recovered,
            replications=len(shares),
            horizon_s=horizon_s,
            long_enough=horizon_s * _LAST >= self.drain_s(length_s, attempts),
            low=low,
            high=high,
            completed_share=float(np.median(shares)),
        )

    def safe_attempts(self, most: int) -> int | None:
        """Return the largest number of attempts that always recovers from the longest trigger."""
        return largest(range(1, most + 1), lambda number: self.verdict(self.longest_s, number).always)

    def safe_surge(self) -> float | None:
        """Return the largest surge, as long as the longest trigger, that it always recovers from."""
        network, attempts = self.with_attempts(self.asked.clients.attempts), self.asked.clients.attempts

        def recovers(factor: float) -> bool:
            surging = _surging(network, factor, self.warmup_s, self.longest_s)
            return self.simulated(surging, self.longest_s, attempts).always

        return largest(SURGES, recovers)


def largest(candidates: Sequence[N], holds: Callable[[N], bool]) -> N | None:
    """Return the largest of ascending candidates that passes a test; every candidate above it must then fail.

    The steps double until it does not hold, and are halved from there: the smallest cases are the cheapest.
    """
    low, step = -1, 1
    while low + step < len(candidates) and holds(candidates[low + step]):
        low, step = low + step, 2 * step
    high = min(low + step, len(candidates))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(candidates[middle]) else (low, middle)
    return candidates[low] if low >= 0 else None


def _share_at_the_end(run: Run, from_s: float) -> float:
    return usual_share(course_of(run), from_s)


def clopper_pearson(successes: int, trials: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the exact confidence interval of a probability from successes and trials [4]_."""
    found = stats.binomtest(successes, trials).proportion_ci(confidence, method="exact")
    return float(found.low), float(found.high)


def screened(load: Load, clients: Clients) -> Screen:
    """Return the fixed-point estimate: attempts per second = rate * (1 + p + p**2 + ...), p = P(an attempt times out).

    With p = 1 the rate is multiplied by the number of attempts: if the capacity is higher, no backlog lasts. The steady
    state is the smallest fixed point below the capacity; p is that of the latencies there, without retries.
    """
    worst = math.inf if load.rate_per_s is None else load.rate_per_s * clients.attempts
    steady = _steady(load, clients)
    return Screen(
        attempts=clients.attempts,
        worst_per_s=worst,
        capacity_per_s=load.capacity_per_s,
        steady_per_s=steady,
        expected=_expected(load, worst, steady),
    )


def _expected(load: Load, worst: float, steady: float | None) -> Expected:
    if load.rate_per_s is None or load.capacity_per_s is None:
        return "not known"
    if worst <= load.capacity_per_s:
        return "recovers"
    if steady is None and load.survival is not None:
        return "overloaded without a trigger"
    return "may stay down"


def _steady(load: Load, clients: Clients) -> float | None:
    rate, capacity = load.rate_per_s, load.capacity_per_s
    if rate is None or capacity is None or rate >= capacity:
        return None
    if clients.timeout_s is None or clients.attempts == 1:
        return rate
    if load.survival is None:
        return None
    found = rate
    for _ in range(_ROUNDS):
        late = load.survival(clients.timeout_s, found)
        following = rate * sum(late**number for number in range(clients.attempts))
        if following >= capacity:
            return None
        if abs(following - found) <= _SETTLED * rate:
            return following
        found = following
    return found


def survival_of(levels: Sequence[float], times_s: Sequence[float], time_s: float) -> float:
    """Return the probability of a longer time from percentiles; beyond the last one, the tail is exponential.

    Parameters
    ----------
    levels : sequence of float
        Levels of the percentiles, ascending.
    times_s : sequence of float
        The percentiles, seconds.
    time_s : float
        The time.
    """
    logs = np.log1p(-np.asarray([0.0, *levels]))
    known = np.asarray([0.0, *times_s])
    if not np.isfinite(known).all():
        return 1.0
    if time_s <= known[-1]:
        return float(np.exp(np.interp(time_s, known, logs)))
    step = known[-1] - known[-2]
    slope = (logs[-1] - logs[-2]) / step if step > 0 else -math.inf
    return float(np.exp(logs[-1] + slope * (time_s - known[-1])))
