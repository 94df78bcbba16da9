"""Lowers a network to the flat arrays of the compiled engine.

Everything that can be decided before a run is decided here: which stations have a fixed rate, which visits need no
event, how many records one event can use. `Lowered.program` fills in what depends on the seed or the length of a run,
`Lowered.with_draw` what depends on a parameter draw: distributions, the lengths of fixed waits, and rates of open
traffic. All else is the same in every draw, so flows are lowered once, whatever the number of draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from capplan.models.language.construct import as_key, at_draw
from capplan.models.language.distribution import Deterministic, Distribution, Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Background, Pauses, Pool, Station
from capplan.models.language.step import (
    Batch,
    Choice,
    CountdownLatch,
    FanOut,
    ForkJoin,
    Hedge,
    If,
    ReplicaSet,
    Route,
    Step,
    children,
)
from capplan.models.language.traffic import (
    Bursty,
    Closed,
    Open,
    Poisson,
    Throttled,
    Timeline,
    Trace,
)
from capplan.simulator.compiled.instructions import Code, RouteInfo
from capplan.simulator.compiled.kernel import layout as at
from capplan.simulator.compiled.kernel.layout import Ints, Program, Records
from capplan.simulator.specification.clock import to_ticks
from capplan.simulator.specification.network_facts import Lane, backoff_ticks, is_fixed_rate, lanes, session_of
from capplan.simulator.specification.sampling import DistributionKind, FlatDistributions, flatten
from capplan.simulator.specification.streams import source_key
from capplan.simulator.specification.timeline import Segment, bursts, segments, trace_ticks

MOST_WAIT_LISTS = 16


@dataclass(frozen=True, eq=False)
class FixedWaits:
    """The instructions that wait for a fixed time.

    Attributes
    ----------
    rows, places
        By wait, its instruction, and the place of its ticks in the table.
    which
        By wait, the index of its length in `lengths`.
    lengths
        The different lengths, in the order of their first use.
    """

    rows: Ints
    places: Ints
    which: Ints
    lengths: tuple[Deterministic, ...]

    def in_code(self, code: Records, lists: Ints) -> Records:
        """Return the code with the list of each length; the same object when nothing changes, since it is large."""
        wanted = lists[self.which]
        if np.array_equal(code["b"][self.rows], wanted):
            return code
        changed = code.copy()
        changed["b"][self.rows] = wanted
        return changed

    def in_table(self, table: Ints, ticks: Ints) -> Ints:
        """Return the table with the ticks of each length."""
        changed = table.copy()
        changed[self.places] = ticks[self.which]
        return changed


@dataclass(frozen=True, eq=False)
class Numbers:
    """The distributions and fixed waits of a program, whose numbers may be arrays over draws.

    Attributes
    ----------
    distributions
        The different distributions, in the order of their numbers in the code.
    waits
        The fixed waits.
    before
        How many numbers of a program precede those of its distributions.
    """

    distributions: tuple[Distribution, ...]
    waits: FixedWaits
    before: int

    def flat(self, draw: int) -> FlatDistributions:
        """Return the distributions of one draw as arrays."""
        return flatten([at_draw(distribution, draw) for distribution in self.distributions])

    def distribution_records(self, flat: FlatDistributions) -> Records:
        """Return the distributions in the form that the kernel reads."""
        rows = np.zeros(len(flat.kind), dtype=at.DISTRIBUTION)
        rows["kind"], rows["count"], rows["scale"] = flat.kind, flat.count, flat.scale
        rows["ticks"] = np.where(flat.kind == DistributionKind.MIXTURE, flat.first_part, flat.ticks)
        tables = flat.kind == DistributionKind.TABLE
        rows["ticks"][tables] = np.log2(flat.count[tables])  # pieces per octave are a power of two
        rows["first"] = flat.first + self.before
        return rows

    def wait_lists(self, draw: int) -> tuple[Ints, Ints]:
        """Return, by fixed-wait length, its ticks in one draw and the number of the list for waits of that length.

        Where there are too many lengths, the rest have no list (-1).
        """
        lists: dict[int, int] = {}
        ticks = [to_ticks(float(at_draw(length, draw).value_s)) for length in self.waits.lengths]
        for length in ticks:
            if len(lists) < MOST_WAIT_LISTS:
                lists.setdefault(length, len(lists))
        mine = [lists.get(length, at.NONE) for length in ticks]
        return np.array(ticks, dtype=np.int64), np.array(mine, dtype=np.int64)


def fixed_waits(found: Sequence[tuple[int, int, Deterministic]]) -> FixedWaits:
    """Combine fixed waits, given as the instruction, the place of its ticks in the table, and the length."""
    numbers: dict[object, int] = {}
    which = [numbers.setdefault(as_key(length), len(numbers)) for _, _, length in found]
    first = {number: length for number, (_, _, length) in reversed(list(zip(which, found, strict=True)))}
    rows, places = (np.array([wait[column] for wait in found], dtype=np.int64) for column in (0, 1))
    return FixedWaits(
        rows, places, np.array(which, dtype=np.int64), tuple(first[number] for number in range(len(first)))
    )


DISTRIBUTION_IN_A = (at.WAIT, at.WAIT_LAST)
DISTRIBUTION_IN_B = (
    at.VISIT_FIXED_RATE,
    at.VISIT_PROCESSOR_SHARING,
    at.SEND_FIXED_RATE,
    at.SEND_PROCESSOR_SHARING,
    at.VISIT_LAST,
)


@dataclass(frozen=True)
class StationProcess:
    """Pauses or background work: station, process number, rows of the distributions, place of the share."""

    station: int
    number: int
    what: Pauses | Background
    every: int
    length: int
    share: int


@dataclass(frozen=True, eq=False)
class Lowered:
    """A network as arrays, with everything needed to create the state of a run."""

    network: Network
    base: Program
    lanes: tuple[Lane, ...]
    processor_sharing: tuple[bool, ...]  # by lane
    rate_tables: dict[int, int]  # place among the numbers, by lane
    processes: tuple[StationProcess, ...]
    routes: tuple[RouteInfo, ...]
    delay_scales: dict[str, int]
    wait_lists: int
    batches: int
    locals: int
    groups: int
    most_records: int
    numbers: Numbers
    distribution_rows: tuple[int, ...]  # row of each distribution in the code

    def program(self, root: int, bounds: Ints) -> Program:
        """Return the program of one replication (its root key) over these intervals."""
        sources, traffic = self.base.sources.copy(), self.base.traffic.copy()
        for row, name in enumerate(self.network.traffic.mix):
            sources[row]["key"] = signed(source_key(root, "source", name))
        traffic["key"] = signed(source_key(root, "traffic"))
        traffic["end"] = bounds[-1]
        return self.base._replace(sources=sources, traffic=traffic, bounds=bounds)

    def with_rate_of(self, network: Network) -> Lowered | None:
        """Return the program of a network that differs only in the rate of its open traffic; None for any other."""
        mine, other = self.network, network.traffic
        same = (mine.stations, mine.classes, mine.pools, mine.hosts, mine.sessions, mine.timeline)
        theirs = (network.stations, network.classes, network.pools, network.hosts, network.sessions, network.timeline)
        if not isinstance(mine.traffic, Open) or not isinstance(other, Open) or isinstance(other.arrivals, Trace):
            return None
        if [*mine.traffic.mix.items()] != [*other.mix.items()] or mine.traffic.arrivals != other.arrivals:
            return None
        if not all(map(_same_parts, same, theirs)):
            return None
        base = self.base._replace(rates=_open_rates(other, mean_length(network)))
        return replace(self, network=network, base=base)

    def with_traffic_of(self, network: Network) -> Lowered | None:
        """Return the program of a network that differs only in its traffic, for `with_draw`; None for any other.

        Sessions and classes that start must be the same; rates and arrivals are taken from the network with the draw.
        """
        mine = self.network
        parts = ("stations", "classes", "pools", "hosts", "sessions", "timeline")
        same = all(_same_parts(getattr(mine, name), getattr(network, name)) for name in parts)
        if not same or [*mine.traffic.mix.items()] != [*network.traffic.mix.items()]:
            return None
        if not isinstance(mine.traffic, Open) or not isinstance(network.traffic, Open):
            return None
        arrivals = mine.traffic.arrivals, network.traffic.arrivals
        return replace(self, network=network) if arrivals[0] is arrivals[1] else None

    def with_draw(self, draw: int) -> Lowered:
        """Return the program of a parameter draw: the same instructions with the draw's numbers.

        It gives the same runs, bit for bit, as the network of that draw, lowered afresh.
        """
        flat, traffic = self.numbers.flat(draw), at_draw(self.network.traffic, draw)
        if tuple(flat.rows.tolist()) != self.distribution_rows or not isinstance(traffic, Open):
            return lower(self.network, draw)  # some are equal in this draw and not in the other
        base, numbers = self.base, self.numbers
        ticks, lists = numbers.wait_lists(draw)
        base = base._replace(
            code=numbers.waits.in_code(base.code, lists),
            table=numbers.waits.in_table(base.table, ticks),
            distributions=numbers.distribution_records(flat),
            numbers=np.concatenate([base.numbers[: numbers.before], flat.numbers]),
            parts=flat.parts,
            rates=_open_rates(traffic, mean_length(self.network)),
        )
        return replace(self, base=base, wait_lists=int(lists.max(initial=at.NONE)) + 1)


def _same_parts(one: object, other: object) -> bool:
    """Return whether two parts of networks consist of the same objects (a copy of a network keeps them)."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same_parts, one, other))
    return one is other or (isinstance(one, Timeline) and one == other)


def mean_length(network: Network) -> float:
    """Return the mean number of requests per session."""
    return sum(share * len(session_of(network, name).classes) for name, share in network.traffic.mix.items())


def signed(word: int) -> int:
    """Return a 64-bit word as the int64 of the same bits."""
    return word - (1 << 64) if word >> 63 else word


def lower(network: Network, draw: int = 0) -> Lowered:
    """Lower a network; its distributions, and the numbers of open traffic, may be arrays over draws.

    Parameters
    ----------
    network : Network
        The network.
    draw : int
        Index of the parameter draw to take.

    Raises
    ------
    RefusedError
        When a flow is too long, or the shape of a distribution too extreme.
    """
    return _Lowering(network, draw).lowered()


def most_records(step: Step, sizes: Mapping[str, int] | None = None) -> int:
    """Return how many records of one kind a request can use within one event; `sizes` are those of bound sets."""
    around = sizes or {}
    within = {**around, step.members: step.size} if isinstance(step, ReplicaSet) else around
    inside = [most_records(child, within) for child in children(step)]
    match step:
        case Choice() | Route() | If():
            return max(inside) + 1
        case FanOut():
            return (step.contacted or around[step.over]) * (inside[0] + 1) + 2
        case ForkJoin() | Hedge() | Batch() | CountdownLatch():
            return sum(inside) + len(inside) + 2
        case _:
            return sum(inside) + 1


class _Lowering:
    """Collects code, distributions and lists, then makes arrays of them."""

    def __init__(self, network: Network, draw: int) -> None:
        self.network, self.traffic, self.draw = network, at_draw(network.traffic, draw), draw
        sharing = {group.name: not is_fixed_rate(group, network) for group in network.stations}
        of_member = [sharing[group.name] for group in network.stations for _ in group.members]
        self.lanes = lanes(network)
        self.processor_sharing = tuple(of_member[lane.of] for lane in self.lanes)
        has_lanes = {group.name: group.has_lanes for group in network.stations}
        firsts = _first_numbers(network.stations)
        scaled = dict.fromkeys(event.target for event in network.timeline.events if event.action == "scale_delay")
        self.code = Code(
            stations={name: (first, sharing[name], has_lanes[name]) for name, first in firsts.items()},
            pools=_first_numbers(network.pools),
            counts={**_counts(network.pools), **_counts(network.stations)},
            delay_scales={name: number for number, name in enumerate(scaled)},
            single=frozenset(
                group.name
                for group in network.stations
                if not sharing[group.name] and all(member.servers == 1 for member in group.members)
            ),
        )

    def lowered(self) -> Lowered:
        """Lower everything; the numbers of distributions come last, because they are known only at the end."""
        code, network = self.code, self.network
        starts = [code.lower(each.flow, each.timeout_s is None) for each in network.classes]
        gaps = [[code.distribution(gap) for gap in session_of(self.network, name).gaps] for name in self.traffic.mix]
        thinking = code.distribution(network.traffic.think) if isinstance(network.traffic, Closed) else 0
        exponential = code.distribution(Exponential(1.0))
        parts = segments(self.traffic.mix, network.timeline)
        found = [(n, k, what) for n, each in enumerate(network.each_station) for k, what in enumerate(_processes(each))]
        drawn = [
            (code.distribution(what.every), code.distribution(what.length), self._share(what)) for _, _, what in found
        ]
        rate_tables = {
            number: code.numbers_of(rate.speeds) for number, (each, _) in enumerate(self.lanes) if (rate := each.rate)
        }
        numbers = Numbers(
            tuple(distribution for _, distribution in code.distributions.values()),
            fixed_waits(code.fixed),
            len(code.numbers),
        )
        flat = numbers.flat(self.draw)
        processes = tuple(
            StationProcess(n, k, what, int(flat.rows[every]), int(flat.rows[length]), share)
            for (n, k, what), (every, length, share) in zip(found, drawn, strict=True)
        )
        sources = self._sources(
            [[int(flat.rows[distribution]) for distribution in distributions] for distributions in gaps]
        )
        classes = self._classes(starts)
        traffic, rates = self._traffic(int(flat.rows[thinking]), parts)
        traffic["exponential"] = flat.rows[exponential]
        base, (ticks, lists) = self._program(flat, numbers, parts), numbers.wait_lists(self.draw)
        return Lowered(
            network=network,
            base=base._replace(
                code=numbers.waits.in_code(base.code, lists),
                table=numbers.waits.in_table(base.table, ticks),
                sources=sources,
                classes=classes,
                traffic=traffic,
                rates=rates,
            ),
            lanes=self.lanes,
            processor_sharing=self.processor_sharing,
            rate_tables=rate_tables,
            processes=processes,
            routes=tuple(code.routes),
            delay_scales=code.delay_scales,
            wait_lists=int(lists.max(initial=at.NONE)) + 1,
            batches=code.batches,
            locals=code.locals + 1,
            groups=code.groups,
            most_records=max(most_records(each.flow) for each in network.classes) + 8,
            numbers=numbers,
            distribution_rows=tuple(flat.rows.tolist()),
        )

    def _share(self, what: Pauses | Background) -> int:
        return self.code.numbers_of((what.share,)) if isinstance(what, Background) else at.NONE

    def _sources(self, gaps: list[list[int]]) -> Records:
        numbers = {each.name: number for number, each in enumerate(self.network.classes)}
        rows = np.zeros(len(gaps), dtype=at.SOURCE)
        for row, (name, distributions) in enumerate(zip(self.traffic.mix, gaps, strict=True)):
            session = session_of(self.network, name)
            classes = self.code.list_of(numbers[each] for each in session.classes)
            sticky = 0 if session.route == "sticky" else at.NONE
            rows[row] = (0, len(session.classes), classes, self.code.list_of(distributions), sticky)
        return rows

    def _classes(self, starts: list[int]) -> Records:
        rows = np.zeros(len(starts), dtype=at.REQUEST_CLASS)
        for row, (start, each) in enumerate(zip(starts, self.network.classes, strict=True)):
            backoffs = backoff_ticks(each.retry)
            patience = at.NEVER if each.timeout_s is None else to_ticks(float(each.timeout_s))
            rows[row] = (start, patience, len(backoffs) + 1, self.code.list_of(backoffs))
        return rows

    def _traffic(self, thinking: int, parts: Sequence[Segment]) -> tuple[Records, Records]:
        traffic, rates = np.zeros((), dtype=at.TRAFFIC), np.zeros((), dtype=at.RATES)
        length = mean_length(self.network)
        match self.traffic:
            case Closed(clients=clients):
                traffic["kind"], traffic["clients"], traffic["think"] = at.CLOSED, clients, thinking
            case Throttled(clients=clients, rate_per_s=rate):
                traffic["kind"], traffic["clients"] = at.THROTTLED, clients
                rates["pacing"] = length / float(rate)
            case Open():
                rates = _open_rates(self.traffic, length)
                self._arrivals(self.traffic, rates, traffic, parts)
        return traffic, rates

    def _arrivals(self, traffic: Open, rates: Records, rows: Records, parts: Sequence[Segment]) -> None:
        kinds = {Trace: at.TRACE, Bursty: at.BURSTY, Poisson: at.POISSON}
        rows["kind"] = kinds[type(traffic.arrivals)]
        if isinstance(traffic.arrivals, Trace):
            ticks = trace_ticks(traffic.arrivals, float(rates["rate"]), parts)
            rows["trace"] = self.code.list_of(ticks)
            rows["trace_limit"] = len(ticks)

    def _program(self, flat: FlatDistributions, numbers: Numbers, parts: Sequence[Segment]) -> Program:
        code, empty = self.code, np.zeros(0, dtype=np.int64)
        return Program(
            code=_instructions(code, flat),
            table=np.array(code.table, dtype=np.int64),
            distributions=numbers.distribution_records(flat),
            numbers=np.concatenate([np.array(code.numbers, dtype=np.float64), flat.numbers]),
            parts=flat.parts,
            sources=empty,
            classes=empty,
            traffic=empty,
            rates=empty,
            segments=np.array([*(part.start for part in parts), at.NEVER], dtype=np.int64),
            multipliers=np.array([_segment(part) for part in parts]),
            host_stations=self._host_stations(),
            ps_stations=np.flatnonzero(self.processor_sharing),
            bounds=empty,
        )

    def _host_stations(self) -> Ints:
        hosts = self.network.each_host
        numbers: dict[str, list[int]] = {host.name: [] for host in hosts}
        for number, (each, _) in enumerate(self.lanes):
            if each.host is not None:
                numbers[each.host].append(number)
        on = list(numbers.values())
        rows = np.full((len(hosts), max((len(mine) for mine in on), default=0)), at.NONE, dtype=np.int64)
        for row, mine in zip(rows, on, strict=True):
            row[: len(mine)] = mine
        return rows


def _instructions(code: Code, flat: FlatDistributions) -> Records:
    rows = np.zeros(len(code.rows), dtype=at.INSTRUCTION)
    rows["key"] = code.keys
    cells = np.array(code.rows, dtype=np.int64)
    operations, steps = cells[:, 0], cells[:, 5]
    rows["op_step"] = operations << 24 | steps
    for place, column in ((1, "a"), (2, "b"), (3, "c"), (4, "d"), (6, "unwind")):
        rows[column] = cells[:, place]
    for column, holding in (("a", DISTRIBUTION_IN_A), ("b", DISTRIBUTION_IN_B)):
        mine = np.isin(operations, holding)
        rows[column][mine] = flat.rows[rows[column][mine]]
    return rows


def _open_rates(traffic: Open, length: float) -> Records:
    """Return the rates of open traffic with this mean length of a session."""
    rates, rate, distribution = np.zeros((), dtype=at.RATES), float(traffic.rate_per_s) / length, traffic.arrivals
    rates["rate"] = rate
    if isinstance(distribution, Bursty):
        rates["fraction"], (burst, burst_s), (quiet, quiet_s) = bursts(distribution)
        rates["burst"], rates["burst_length"] = rate * burst, burst_s
        rates["quiet"], rates["quiet_length"] = rate * quiet, quiet_s
    return rates


def _first_numbers(places: Sequence[Station] | Sequence[Pool]) -> dict[str, int]:
    """Return by name the number of the first member, counting all stations or pools one by one."""
    names = [place.name for place in places]
    return dict(zip(names, accumulate((len(place.members) for place in places), initial=0), strict=False))


def _counts(places: Sequence[Station] | Sequence[Pool]) -> dict[str, int]:
    return {place.name: place.count for place in places if place.count is not None}


def _processes(station: Station) -> tuple[Pauses | Background, ...]:
    return (*station.pauses, *station.background)


def _segment(part: Segment) -> list[float]:
    return [part.multiplier, part.operational_s, *accumulate(part.shares)]
