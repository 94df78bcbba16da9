"""Time in both engines: ticks of arrivals, and the effects of timeline events."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import count, groupby

from capplan.models.language.distribution import Exponential
from capplan.models.language.network import ALL_TRAFFIC, Network
from capplan.models.language.station import Host, Station
from capplan.models.language.traffic import Bursty, Event, Mix, Poisson, Timeline, Trace
from capplan.simulator.specification.clock import LONGEST_TICKS, TICKS_PER_S, to_ticks
from capplan.simulator.specification.sampling import quantile_table
from capplan.simulator.specification.streams import name_key, request_key, uniform

DOWN_AT_START = -1  # in the place of the event that took a station down


class Stage(IntEnum):
    """The stages of a timeline event, in their order within one tick."""

    EVENT = 0
    DETECTION = 1  # others learn that the target is down
    WARM = 2  # the cold start ends


@dataclass
class OperatingState:
    """Whether a station or host is up, its speed, and whether others know that it is down.

    `down_by` is the number of the timeline event that took it down, `cold_by` of the one that brought it up while the
    cold start lasts.
    """

    speed: float = 1.0
    cold_factor: float = 1.0
    down_by: int | None = None
    cold_by: int | None = None
    known_down: bool = False

    @property
    def down(self) -> bool:
        """Whether it is down."""
        return self.down_by is not None

    def apply(self, stage: Stage, event: Event, number: int, timeline: Timeline) -> tuple[int, Stage] | None:
        """Apply one stage of event `number`; return the event's next stage, if any, and the ticks until then."""
        match (stage, event.action):
            case (Stage.DETECTION, _):
                self.known_down |= self.down_by == number
            case (Stage.WARM, _):
                if self.cold_by == number:
                    self.cold_by, self.cold_factor = None, 1.0
            case (_, "speed"):
                self.speed = float(event.factor)
            case (_, "down") if not self.down:
                self.down_by, self.cold_by, self.cold_factor = number, None, 1.0
                return to_ticks(float(timeline.detection_s)), Stage.DETECTION
            case (_, "up") if self.down:
                self.down_by, self.known_down = None, False
                self.cold_by, self.cold_factor = number, float(timeline.cold_speed)
                return to_ticks(float(timeline.cold_start_s)), Stage.WARM
        return None


def initial_states(network: Network) -> dict[str, OperatingState]:
    """Return the initial states of all individual stations and hosts."""
    names = [each.name for each in network.each_station] + [each.name for each in network.each_host]
    states = {name: OperatingState() for name in names}
    for station in network.stations:
        for number in station.down:
            states[station.members[number].name] = OperatingState(down_by=DOWN_AT_START, known_down=True)
    return states


def numbered_events(timeline: Timeline) -> list[tuple[int, Event]]:
    """Return the events with their ticks in chronological order; events of one tick keep their order in the list."""
    return sorted(((to_ticks(float(event.at_s)), event) for event in timeline.events), key=lambda timed: timed[0])


def numbered_changes(network: Network) -> list[tuple[int, Event]]:
    """Return the events of a network's timeline, with one event per member for a station or host with a count."""
    places: tuple[Station | Host, ...] = (*network.stations, *network.hosts)
    members = {place.name: [each.name for each in place.members] for place in places if place.count is not None}
    found = []
    for tick, event in numbered_events(network.timeline):
        if event.action.startswith("scale"):
            found.append((tick, event))
        else:
            found += [(tick, replace(event, target=name)) for name in members.get(event.target, [event.target])]
    return found


ARRIVAL, BURST = name_key("arrival"), name_key("burst")
_EXPONENTIAL = quantile_table(Exponential(1.0)).quantile()
FOREVER = 2**62  # later than any tick of a run


@dataclass(frozen=True)
class Segment:
    """A period with a constant traffic multiplier: from tick `start` to before tick `end`.

    `operational_s` is the operational time at its start; `shares` are those of the sources (session or class) among
    what starts, in the order of the mix.
    """

    start: int
    end: int
    operational_s: float
    multiplier: float
    shares: tuple[float, ...]


def segments(mix: Mix, timeline: Timeline) -> tuple[Segment, ...]:
    """Return the segments of the traffic of `mix`, from tick 0 to `FOREVER`."""
    scaling = [timed for timed in numbered_events(timeline) if timed[1].action == "scale_traffic"]
    factors = dict.fromkeys((ALL_TRAFFIC, *mix), 1.0)
    states = {0: _weights(mix, factors)}
    for tick, events in groupby(scaling, key=lambda timed: timed[0]):
        factors.update((event.target, float(event.factor)) for _, event in events)
        states[tick] = _weights(mix, factors)
    made: list[Segment] = []
    operational_s = 0.0
    for start, end, (multiplier, shares) in zip(states, [*list(states)[1:], FOREVER], states.values(), strict=True):
        made.append(Segment(start, end, operational_s, multiplier, shares))
        operational_s += multiplier * (end - start) / TICKS_PER_S
    return tuple(made)


def _weights(mix: Mix, factors: dict[str, float]) -> tuple[float, tuple[float, ...]]:
    if all(factor == 1 for factor in factors.values()):
        return 1.0, tuple(mix.values())
    weights = [share * factors[name] * factors[ALL_TRAFFIC] for name, share in mix.items()]
    multiplier = 0.0
    for weight in weights:  # from left to right; `sum` compensates since Python 3.12
        multiplier += weight
    return multiplier, tuple(weight / multiplier for weight in weights)


def mean_length(mix: Mix, lengths: Sequence[int]) -> float:
    """Return the mean number of requests per session; `lengths` are those of the sources, in the order of `mix`."""
    return sum(share * length for share, length in zip(mix.values(), lengths, strict=True))


def segment_number(parts: Sequence[Segment], tick: int) -> int:
    """Return the index of the segment that contains `tick`."""
    return bisect_right(parts, tick, key=lambda part: part.start) - 1


def tick_of(parts: Sequence[Segment], operational_s: float) -> int:
    """Return the tick of an operational time, in the first segment that ends at that time or later."""
    number = bisect_left(parts[1:], operational_s, key=lambda part: part.operational_s)
    part = parts[number]
    return min(part.end, part.start + to_ticks((operational_s - part.operational_s) / part.multiplier))


def rounded(ticks: float) -> int:
    """Round to a whole tick, a half to the even one, at most the longest duration."""
    return LONGEST_TICKS if ticks >= LONGEST_TICKS else round(ticks)


def trace_ticks(distribution: Trace, rate_per_s: float, parts: Sequence[Segment]) -> list[int]:
    """Return the ticks of a trace's arrivals, scaled to the mean rate `rate_per_s` at multiplier 1."""
    if rate_per_s == 0:
        return []
    last_s = rate_per_s * float(distribution.times_s[-1])
    return [tick_of(parts, float(time_s) * len(distribution.times_s) / last_s) for time_s in distribution.times_s]


def pacing_tick(parts: Sequence[Segment], number: int, mean_length: float, rate_per_s: float) -> int:
    """Return a pacing tick of throttled traffic; the k-th one of client j of C has the number k * C + j."""
    return tick_of(parts, number * (mean_length / rate_per_s))


def arrival_ticks(
    key: int, rate_per_s: float, distribution: Poisson | Bursty, parts: Sequence[Segment]
) -> Iterator[int]:
    """Yield arrival times with the mean rate `rate_per_s` at multiplier 1.

    An arrival comes when the integral of the rate has grown by a standard exponential number. The number is the same
    for every arrival process and rate, so all kinds of traffic have common random numbers.
    """
    if rate_per_s == 0:
        return
    stretches = _stretches(rate_per_s, _phases(key, distribution), parts)
    tick = 0
    rate, until = next(stretches)
    for unit in count():
        missing = _standard_exponential(key, unit)
        while missing > (here := rate * (until - tick) / TICKS_PER_S):
            missing -= here
            tick = until
            if tick == FOREVER:
                return
            rate, until = next(stretches)
        tick = min(until, tick + to_ticks(missing / rate))
        yield tick


def _standard_exponential(key: int, unit: int) -> float:
    return _exponential(uniform(request_key(key, unit, 0), ARRIVAL))


def _exponential(uniform_number: float) -> float:
    """Return the standard exponential quantile from a table, because libraries round logarithms differently."""
    return max(0.0, _EXPONENTIAL(uniform_number))


def _stretches(
    rate_per_s: float, phases: Iterator[tuple[float, int]], parts: Sequence[Segment]
) -> Iterator[tuple[float, int]]:
    """Yield the rate and end of each period with constant phase and multiplier."""
    factor, phase_end = next(phases)
    for part in parts:
        until = part.start
        while until < part.end:
            while phase_end <= until:
                factor, phase_end = next(phases)
            until = min(phase_end, part.end)
            yield rate_per_s * factor * part.multiplier, until


def bursts(arrivals: Bursty) -> tuple[float, tuple[float, float], tuple[float, float]]:
    """Return the share of time in bursts, and the rate factor and mean length in seconds of bursts and of the rest."""
    fraction, ratio = float(arrivals.burst_fraction), float(arrivals.burst_ratio)
    length_s = float(arrivals.burst_length_s)
    quiet = (max(0.0, (1 - ratio * fraction) / (1 - fraction)), length_s * (1 - fraction) / fraction)
    return fraction, (ratio, length_s), quiet


def _phases(key: int, distribution: Poisson | Bursty) -> Iterator[tuple[float, int]]:
    """Yield the rate factor and end of each phase: bursts and quiet periods in turn.

    Phase number k has its own draw; the first is a burst with the probability of the stationary state.
    """
    if isinstance(distribution, Poisson):
        yield 1.0, FOREVER
        return
    fraction, burst, quiet = bursts(distribution)
    bursting = uniform(request_key(key, 0, 1), BURST) < fraction
    tick = 0
    for number in count():
        factor, mean_s = burst if bursting else quiet
        tick += to_ticks(mean_s * _exponential(uniform(request_key(key, number, 0), BURST)))
        yield factor, tick
        bursting = not bursting
