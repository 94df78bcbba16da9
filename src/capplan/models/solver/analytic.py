"""The analytic solver: capacity and response times of a network, for all parameter draws at once.

Means are exact for product-form networks without pools. Other networks are solved by a combination of approximations;
docs/reference/accuracy.md gives their measured errors against simulation.

1. The service demands of each station follow from the flows (exact). One member represents each class of alike members
   of a station with a count (`representatives.py`), so the work does not grow with their number.
2. Response times follow from the tree of steps, with all stations as congested as in an open network at a *virtual
   rate*. Processor sharing stretches a service by 1 + C(m, a) / (m - a), where C is Erlang's delay formula (exact for
   Poisson arrivals). The wait at a fixed-rate station is Kimura's approximation. Lanes are in `lanes.py`.
3. Everything inside the outermost pools becomes one flow-equivalent server (`flow_equivalent.py`). Its throughput X(n)
   with n requests inside follows from the response of the open network (`closed_throughput.py`). The virtual rate is
   the rate at which the open network has the mean response n / X(n). Pools that are not alike have a server for each
   class of alike ones (`pool_groups.py`).
4. Bursts are a mixture of two constant rates. This is accurate if bursts last longer than the queues need to settle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from capplan.errors import InputError, RefusedError
from capplan.models.language.network import Network
from capplan.models.language.station import Pool, RateTable, Station
from capplan.models.language.step import Acquire, Step, children
from capplan.models.language.traffic import Arrivals, Bursty, Closed, Open, Poisson, Throttled
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.closed_throughput import machine_repair_per_s, rate_logits, throughput_per_s
from capplan.models.solver.failing_sessions import Chain, chains, least_drop_rate, pushed_back, stations_held
from capplan.models.solver.flow_analysis import (
    Congestion,
    DemandReader,
    HoldingTimeReader,
    Race,
    ResponseReader,
    ServiceDemand,
    Shapes,
    Sharing,
    WaitedDemandReader,
)
from capplan.models.solver.interpolation import monotone_cubic
from capplan.models.solver.lanes import lane_congestion, missing_variance_s2, peakedness
from capplan.models.solver.member_classes import representatives
from capplan.models.solver.pools import FlowEquivalent, PoolGroup, pool_groups, state_grid
from capplan.models.solver.random_times import RandomTime, queue_wait
from capplan.models.solver.single_station import (
    endless_speed,
    erlang_c,
    first_speed,
    mean_number,
    mgm_mean_wait_s,
    speeds,
)

# An unlimited queue of a pool is truncated at this multiple of the pool's size, and at this number of places at most.
_ENDLESS, _LONGEST = 20, 2000
# Virtual rates, relative to saturation, at which response times are computed; values between are interpolated.
_LEAST_VARIABLE = 0.01  # variance of paced work over that of Poisson arrivals, at least
_LEAST_IDLE = 1e-4  # of what the others leave of a station: what is busier counts as this busy
_NEARLY = 0.999  # most of a station that others may take from those who have the rest
_SLOW, _AVOIDED = 1000.0, 0.05  # stretch of a slow station; share of its time below which requests do without it
_SURELY = 0.5  # of the stretched time of a station in the response, from which requests wait for it
_OF_A_GROUP = ("demands", "unloaded", "_held_s", "outer_pools", "pool", "_known_times_s", "delays")
_BESIDE_DETACHED = ("clusters", "unloaded", "outside_s")
_NO_DEMAND = ServiceDemand()
_ROUNDING = 1e-9  # of a sum of demands or times
_SLIGHT = 0.2  # load over that of the busiest station, below which queueing is left out
_SHARES = np.array([0.0, 0.35, 0.6, 0.75, 0.85, 0.94, 0.98, 0.995])


def _width(begin: FloatArray, end: FloatArray) -> FloatArray:
    """Return the width of segments, at least a rounding error where times hardly grow."""
    return np.asarray(np.maximum(end - begin, 1e-12 * end + 1e-300))


@dataclass(frozen=True)
class Inside:
    """Conditions with n = 1 .. places requests inside the outermost pools; the last axis is n, on the state grid.

    Response times after the wait are interpolated linearly between those at the virtual rates, whose mean responses are
    the ends of segments; so are the roots of their variances and third cumulants, which grow with powers of the mean.

    Attributes
    ----------
    held : array (places,)
        Number of units in use.
    waiting_s : array (draws, places)
        Mean time until a unit is free, in seconds.
    response_s : array (draws, places)
        Mean response over all classes after the wait, in seconds; rises with n.
    ends_s : array (draws, segments + 1)
        Mean response at the ends of the segments, in seconds.
    mean_s, variance_s2, third_s3 : dict of arrays (draws, segments + 1)
        Mean (s), variance (s²) and third cumulant (s³) of the time after the wait at the ends of the segments, by
        request class.
    """

    held: FloatArray
    waiting_s: FloatArray
    response_s: FloatArray
    ends_s: FloatArray
    mean_s: dict[str, FloatArray]
    variance_s2: dict[str, FloatArray]
    third_s3: dict[str, FloatArray]

    @cached_property
    def begins(self) -> NDArray[np.intp]:
        """Index of the first place in each segment, and the number of places (draws, segments + 1)."""
        inner = [np.count_nonzero(self.response_s < end[:, None], axis=-1) for end in self.ends_s.T[1:-1]]
        places = self.response_s.shape[-1]
        return np.stack([np.zeros_like(inner[0]), *inner, np.full_like(inner[0], places)], axis=-1)

    def there(
        self, draw: NDArray[np.intp], place: NDArray[np.intp]
    ) -> tuple[dict[str, FloatArray], dict[str, FloatArray], dict[str, FloatArray]]:
        """Return mean (s), variance (s²) and third cumulant (s³) of the time after the wait, by request class."""
        segment = np.zeros(place.shape, dtype=np.intp)
        for first in self.begins.T[1:-1]:
            segment += place >= first[:, None]
        at = draw * self.ends_s.shape[-1] + segment
        begin, end = self.ends_s.take(at), self.ends_s.take(at + 1)
        share = (self.response_s[draw, place] - begin) / _width(begin, end)

        def interpolated(ends: FloatArray) -> FloatArray:
            low = ends.take(at)
            return np.asarray(low + (ends.take(at + 1) - low) * share)

        return (
            {name: interpolated(ends) for name, ends in self.mean_s.items()},
            {name: np.maximum(interpolated(np.sqrt(ends)), 0.0) ** 2 for name, ends in self.variance_s2.items()},
            {name: np.maximum(interpolated(np.cbrt(ends)), 0.0) ** 3 for name, ends in self.third_s3.items()},
        )

    def mean_passed(self, weight: FloatArray) -> FloatArray:
        """Return the share of each segment that the mean response exceeds; the last is endless.

        The sum over all places (..., draws, segments), with weights (..., draws, places).
        """
        sums, moments = self._by_segment(weight), self._by_segment(weight * self.response_s)
        beyond = np.cumsum(sums[..., ::-1], axis=-1)[..., ::-1] - sums
        return np.asarray((moments - self.ends_s[:, :-1] * sums) / self._width_s + beyond)

    def _by_segment(self, values: FloatArray) -> FloatArray:
        """Return the sums of values (..., draws, places) over the places of each segment."""
        places, shape = values.shape[-1], values.shape[:-1]
        padded = np.zeros((*shape, places + 1))  # so that an empty segment at the end has a place to begin
        padded[..., :-1] = values
        rows = np.arange(values.size // places).reshape(*shape, 1)
        begins = np.broadcast_to(self.begins[:, :-1], (*shape, self.begins.shape[-1] - 1))
        found = np.add.reduceat(padded.ravel(), (rows * (places + 1) + begins).ravel()).reshape(begins.shape)
        return np.where(np.diff(self.begins, axis=-1) > 0, found, 0.0)

    @property
    def _width_s(self) -> FloatArray:
        return _width(self.ends_s[..., :-1], self.ends_s[..., 1:])


class Analysis:
    """An analysed network. All results have one element per parameter draw.

    Pass it to `capplan.models.solver.operating_point` for capacities, drop rates and response times.

    Parameters
    ----------
    network : Network
        A network; numbers may be arrays (draws,). Its clients, if the traffic is not open, are solved by
        `capplan.models.solver.closed_clients`.

    Attributes
    ----------
    share : mapping of float
        Share of each request class in the traffic.
    stations : dict of Station
        Stations by name. Of a station with a count, one member represents each class of alike members: the regular
        ones under the name of the station, others under the name of the first of them.
    members : dict of int
        Number of members that each station stands for; 1 without a count.
    demands : dict of ServiceDemand
        Service demand of an average request at each station; of a class, at one member.
    class_demands : dict of dict of ServiceDemand
        Service demand of a request at all members of a station, by request class and station.
    pool_members : dict of int
        Number of members that each pool stands for.
    flows : dict of Step
        Flow of each request class in the traffic, with a representative for each class of members.
    draws : int
        Number of parameter draws.

    Raises
    ------
    RefusedError
        If the solver does not support a construct; the message names it.

    Examples
    --------
    >>> analysis = Analysis(read_network("network.toml"))
    >>> capacity_per_s(analysis, MAX_DROP_RATE)
    """

    def __init__(self, network: Network) -> None:
        for station in network.stations:
            _refuse_unknown(station)
        self.network = network
        self.traffic = network.traffic
        self._whole: Analysis | None = None
        self._arrival_scv: Number | None = None
        self._like: Analysis | None = None
        self._others: Mapping[str, ServiceDemand] = {}  # work of other parts of the traffic, per second
        self._avoided: list[tuple[str, ...]] = []  # clusters that would saturate first, and that quorums do without
        self._room_beside: FloatArray | None = None  # share of the first station to saturate that left work leaves
        self._known_times_s: dict[tuple[str, ...], FloatArray] = {}  # path times, which do not depend on the others
        self.share: Mapping[str, Number] = request_shares(network)
        plain = representatives(network, self.share)
        self.flows, self.stations, self.members = plain.flows, plain.stations, plain.station_members
        self._pools, self.pool_members = plain.pools, plain.pool_members
        self.races: dict[Race, RandomTime] = {}
        reader = DemandReader()
        self.class_demands = {name: reader.of(flow) for name, flow in self.flows.items()}
        self.demands = _per_member(_combined(self.share, self.class_demands), self.members)
        if not self.demands:
            raise RefusedError("the analytic solver needs a station that requests keep busy: simulate the network")
        speed = {name: station.rate.speeds[-1] for name, station in self.stations.items() if station.rate is not None}
        self.draws = max(np.size(each.mean_s * speed.get(name, 1.0)) for name, each in self.demands.items())
        self.draws = max([self.draws, *(int(np.size(value)) for value in self._numbers_beside_demands())])

    def _numbers_beside_demands(self) -> list[Number]:
        arrivals = self.arrivals
        ratio = arrivals.burst_ratio if isinstance(arrivals, Bursty) else 1.0
        pace = self.traffic.think.mean if isinstance(self.traffic, Closed) else self.traffic.rate_per_s
        return [ratio, pace, *(time.total for time in self.unloaded.values())]

    @property
    def arrivals(self) -> Arrivals:
        """The arrival process of open traffic; Poisson arrivals for clients."""
        return self.traffic.arrivals if isinstance(self.traffic, Open) else Poisson()

    def load(self, station: str) -> FloatArray:
        """Return the utilisation of a station per unit of request rate.

        If the speed depends on the number of requests, the speed with an infinite queue counts: the rate at which the
        station always drains.

        Parameters
        ----------
        station : str
            Name of the station.

        Returns
        -------
        array (draws,)
            Seconds.
        """
        return self._full(self.demands[station].mean_s / endless_speed(self.stations[station]))

    @cached_property
    def clusters(self) -> list[tuple[str, ...]]:
        """Groups of stations with equal discipline, size, speeds and load (`fcfs`: and visits), most loaded first.

        Beside clients, requests also wait for as much work at each of a group: `beside_detached` tells it apart.
        """
        groups: dict[tuple[int | str | bytes, ...], list[str]] = {}
        waited = {} if isinstance(self.traffic, Open) else self._waited_for
        for name, demand in self.demands.items():
            station = self.stations[name]
            order = () if station.discipline == "ps" else (demand.visits, demand.second_moment_s2)
            others = (waited.get(name, _NO_DEMAND).mean_s, self._variability[name], np.min(self._room(name)))
            alike = _words(demand.mean_s, *order, *others)
            key = (station.servers, station.discipline, station.assignment, _key(station.rate), *alike)
            groups.setdefault(key, []).append(name)
        ranked = sorted(
            groups.values(), key=lambda names: -float(np.median(self.load(names[0]) / self._room(names[0])))
        )
        return [tuple(names) for names in ranked]

    @cached_property
    def shapes(self) -> Shapes:
        """Numbers of equivalent steps; the stations of a cluster are equivalent."""
        return Shapes({name: number for number, names in enumerate(self.clusters) for name in names})

    def mean_response(self, congestion: Mapping[str, Congestion]) -> dict[str, RandomTime]:
        """Return the response time by class for the given congestion of stations."""
        reader = self.mean_response_reader(congestion)
        return {name: reader.of(flow) for name, flow in self.flows.items()}

    def mean_response_reader(self, congestion: Mapping[str, Congestion]) -> ResponseReader:
        """Return a reader of response times for the given congestion of stations."""
        return ResponseReader(congestion, self.shapes, self.races)

    def averaged(self, response: Mapping[str, RandomTime]) -> FloatArray:
        """Return the mean response over all classes in seconds (draws,)."""
        return self._full(sum((self.share[name] * time.total for name, time in response.items()), 0.0))

    @cached_property
    def unloaded(self) -> dict[str, RandomTime]:
        """Response time of a single request by class."""
        reader = self._idle_reader
        return {name: reader.of(flow) for name, flow in self.flows.items()}

    @cached_property
    def delays(self) -> dict[str, FloatArray]:
        """Mean (s), variance (s²), third cumulant (s³) of responses if stations took no time, by class (draws, 3)."""
        times = self.mean_response(dict.fromkeys(self.demands, Congestion(stretch=0.0))).items()
        return {
            name: np.stack([self._full(each) for each in (time.total, time.variance, time.third_s3)], axis=-1)
            for name, time in times
        }

    @cached_property
    def _idle_reader(self) -> ResponseReader:
        return self.mean_response_reader({})

    @cached_property
    def path_times_s(self) -> dict[tuple[str, ...], FloatArray]:
        """Mean time on the response path at each cluster without queueing, in seconds; 0 if all visits are detached."""
        unloaded = self.averaged(self.unloaded)
        found: dict[tuple[str, ...], FloatArray] = {}
        most = np.zeros(self.draws)  # load of the busiest one so far that requests wait for
        for names in self.clusters:
            load = self.load(names[0])
            slight = (load < _SLIGHT * most) & (names[0] not in self._others)
            if not np.all(slight):
                if names not in self._known_times_s:
                    time = self._path_time_s(names, unloaded, not np.any(most > 0))
                    self._known_times_s[names] = time[: (self._whole or self).draws]  # the same at all rates
                found[names] = np.where(slight, 0.0, self._known_times_s[names])
                most = np.maximum(most, np.where(found[names] > 0, load, 0.0))
        if not np.all(most > 0):
            raise RefusedError(
                "the analytic solver needs a station that requests wait for, and all visits are detached or lose "
                "races: simulate the network"
            )
        return found

    def _path_time_s(self, names: tuple[str, ...], unloaded_s: FloatArray, first: bool) -> FloatArray:
        """Return the mean time on the response path at a cluster without queueing, in seconds (draws,).

        Where requests are counted, it is 0 if quorums do without the cluster, `first` to saturate, when it is slow.
        """
        time = self._slowed(names, 2.0) - unloaded_s
        time = np.where(time > _ROUNDING * np.maximum(unloaded_s, self.demands[names[0]].mean_s), time, 0.0)
        counted = self._whole is not None or (first and not isinstance(self.traffic, Open))
        if not counted or not np.any(time) or not self._is_avoided(names, time):
            return time
        self._avoided += [names] if self._whole is None else []
        return np.zeros(self.draws)

    def _slowed(self, names: tuple[str, ...], stretch: float) -> FloatArray:
        """Return the mean response if services at a cluster are stretched, in seconds (draws,)."""
        return self.averaged(self.mean_response(dict.fromkeys(names, Congestion(stretch=stretch))))

    def _is_avoided(self, names: tuple[str, ...], time_s: FloatArray) -> bool:
        """Whether quorums avoid a cluster: requests hardly wait for it even if it is very slow."""
        slow, most = self._slowed(names, _SLOW), _AVOIDED * _SLOW * float(np.median(time_s))
        if np.median(slow) > _SURELY * _SLOW * np.median(time_s):
            return False
        return bool(np.median(self._slowed(names, 2 * _SLOW) - slow) < most)

    @cached_property
    def saturation_per_s(self) -> FloatArray:
        """Mean request rate that saturates the first station on the response path, per second (draws,)."""
        return np.asarray(1 / self._path_loads_s.max(axis=0))

    @cached_property
    def _path_loads_s(self) -> FloatArray:
        """Load of each cluster over its remaining capacity, in seconds (clusters, draws); 0 if nothing waits for it."""
        times = self.path_times_s.items()
        return np.stack([np.where(time > 0, self.load(n[0]) / self._room(n[0]), 0.0) for n, time in times])

    @cached_property
    def _first_to_saturate(self) -> list[tuple[tuple[str, ...], NDArray[np.bool_]]]:
        """The clusters that saturate first in some draws, with these draws."""
        first = self._path_loads_s.argmax(axis=0)
        found = [(names, first == at) for at, names in enumerate(self.path_times_s)]
        return [(names, here) for names, here in found if here.any()]

    @cached_property
    def drift_per_s(self) -> FloatArray:
        """Mean request rate above which a backlog grows without bound, at a station or inner pool (draws,).

        Detached work counts.
        """
        stations = 1 / np.max([self.load(name) for name in self.demands], axis=0)
        return np.asarray(np.minimum(stations, self.inner_pools_per_s))

    @cached_property
    def _held_s(self) -> dict[str, Number]:
        """Mean time for which a request holds a unit of a member of each pool, without queueing, in seconds."""
        held = HoldingTimeReader(self._idle_reader)
        total: dict[str, Number] = {}
        for name, flow in self.flows.items():
            for pool, time in held.of(flow).items():
                total[pool] = total.get(pool, 0.0) + self.share[name] * time / self.pool_members[pool]
        return total

    @cached_property
    def inner_pools_per_s(self) -> FloatArray:
        """Mean request rate that saturates the first inner pool if nothing queues, per second: an upper bound.

        The solver models no queueing for a pool inside another pool.
        """
        sizes = {pool.name: pool.size for pool in self._pools.values()}
        outer = {pool.name for pool in self.outer_pools}
        bounds = [
            self._full(sizes[name] / np.maximum(time, 1e-12))
            for name, time in self._held_s.items()
            if name not in outer
        ]
        return np.asarray(np.min(bounds, axis=0)) if bounds else np.full(self.draws, np.inf)

    @cached_property
    def chains(self) -> tuple[Chain, ...]:
        """The sessions of the traffic, which end at a failure."""
        return chains(self.network)

    def least_drop_rate(self, rate_per_s: FloatArray) -> FloatArray:
        """Return the lowest drop rate at which the stations that requests visit while holding a pool unit keep up.

        With pools that are not alike, stations on the response path do not count: they slow their own requests alone.
        `rate_per_s` is the mean rate at which requests would be sent if none were dropped, (..., draws).
        """
        return least_drop_rate(self._held_loads, rate_per_s)

    @cached_property
    def held_stations(self) -> frozenset[str]:
        """The stations that requests visit while holding a pool unit, and that push back if they cannot keep up."""
        held = set[str]().union(*map(stations_held, self.flows.values()))
        if len(self.groups) > 1:
            held -= {name for names, time in self.path_times_s.items() if np.median(time) > 0 for name in names}
        return frozenset(held & self.demands.keys())

    @cached_property
    def _held_loads(self) -> Sequence[tuple[FloatArray, ...]]:
        limits = {
            name: np.asarray(self.members[name] * endless_speed(station))
            for name, station in self.stations.items()
            if name in self.held_stations
        }
        return pushed_back(self.chains, self.class_demands, limits)

    @cached_property
    def bottleneck(self) -> tuple[str, ...]:
        """Names of the stations that saturate first, by the median draw, detached work included."""
        return self.clusters[0]

    @cached_property
    def pool(self) -> tuple[int, int] | None:
        """Total size and queue limit of the outermost pools; None without pools."""
        pools = self.outer_pools
        if not pools:
            return None
        size = sum(self.pool_size(pool.name) for pool in pools)
        if any(pool.queue_limit is None for pool in pools):
            return size, min(_ENDLESS * size, _LONGEST)
        return size, sum((pool.queue_limit or 0) * self.pool_members[pool.name] for pool in pools)

    def pool_size(self, name: str) -> int:
        """Return the number of units of all members of a pool."""
        return self._pools[name].size * self.pool_members[name]

    @cached_property
    def outer_pools(self) -> list[Pool]:
        """The outermost pools, without those whose units are held for no time: they limit nothing."""
        names = set.union(*map(_outer_pools, self.flows.values()))
        return [pool for pool in self._pools.values() if pool.name in names and np.any(self._held_s[pool.name])]

    @property
    def outer_pool_count(self) -> int:
        """Number of the outermost pools, all members counted."""
        return sum(self.pool_members[pool.name] for pool in self.outer_pools)

    @cached_property
    def groups(self) -> tuple[PoolGroup, ...]:
        """The requests grouped by their outermost pools; groups with alike pools are joined."""
        groups = pool_groups(self.flows, self.share)
        if len(groups) < 2:
            return groups
        together: dict[tuple[object, ...], frozenset[str]] = {}
        for group in groups:
            key = self._signature(group)
            together[key] = together.get(key, frozenset[str]()) | group.pools
        return pool_groups(self.flows, self.share, together.values())

    def parts(self, rates_per_s: Sequence[FloatArray], like: Sequence[Analysis] | None = None) -> tuple[Analysis, ...]:
        """Return the network as each group of requests sees it, at given rates of all groups, each (draws,).

        Rates (n,) of a network with one draw make parts of n draws. Parts at nearby rates, if given, spare the
        integrals over quorums: their effect on queueing hardly changes.
        """
        draws, parts = max(self.draws, *map(np.size, rates_per_s)), []
        for place, (group, own) in enumerate(zip(self.groups, self._of_groups, strict=True)):
            others: dict[str, ServiceDemand] = {}
            for other, (rate, its) in enumerate(zip(rates_per_s, self._of_groups, strict=True)):
                for name, demand in its["demands"].items() if other != place else ():
                    others[name] = others.get(name, ServiceDemand()).plus(rate, demand)
            left = self._left_by(group.share, own["demands"], others)
            near = None if like is None else like[place]
            parts.append(self._part(group, {**own, "draws": draws, "_others": left, "_like": near}))
        return tuple(parts)

    @cached_property
    def near_capacity(self) -> tuple[Analysis, ...]:
        """The network as each group of requests sees it, at the largest rates without a growing backlog."""
        return self.parts([self.drift_per_s * group.share for group in self.groups])

    @cached_property
    def _of_groups(self) -> list[dict[str, Any]]:
        """Attributes of the part of each group that do not depend on the rates of the others."""
        found = []
        for group in self.groups:
            alone = self._part(group, {"demands": self._demands_of(group)})
            found.append({name: getattr(alone, name) for name in _OF_A_GROUP})
        return found

    def _signature(self, group: PoolGroup) -> tuple[object, ...]:
        """Return a key that is equal for groups of requests whose pools are alike."""
        own = self._demands_of(group)
        loads = sorted(
            (
                self.stations[name].servers,
                self.stations[name].discipline,
                *_words(self.load(name), group.share * demand.mean_s),
            )
            for name, demand in own.items()
        )
        pools = [(self._pools[name], self.pool_members[name]) for name in group.pools]
        units = sum(pool.size * members for pool, members in pools)
        times = [self._idle_reader.of(flow).total for flow in group.flows.values()]
        return (
            frozenset((pool.size, pool.queue_limit) for pool, _ in pools),
            *zip(group.flows, _words(*times), strict=True),
            *_words(group.share / max(units, 1)),
            *loads,
        )

    def _part(self, group: PoolGroup, known: Mapping[str, Any]) -> Analysis:
        part = _Part(self, group.flows, _within(group), group.arrival_scv)
        vars(part).update(known)
        return part

    def _left_by(
        self, share: Number, own: Mapping[str, ServiceDemand], others: Mapping[str, ServiceDemand]
    ) -> dict[str, ServiceDemand]:
        """Return the work of others that completes beside a group: in an overload, all get their share of servers."""
        found = {}
        for name in own.keys() & others.keys():
            most = (1 - share * own[name].mean_s / self.demands[name].mean_s) * endless_speed(self.stations[name])
            completes = np.minimum(1.0, _NEARLY * most / np.maximum(others[name].mean_s, 1e-300))
            found[name] = ServiceDemand().plus(completes, others[name])
        return found

    @cached_property
    def _waited_for(self) -> dict[str, ServiceDemand]:
        """Demands of an average request that the request waits for."""
        reader = WaitedDemandReader()
        return _per_member(
            _combined(self.share, {name: reader.of(flow) for name, flow in self.flows.items()}), self.members
        )

    @cached_property
    def detached(self) -> dict[str, ServiceDemand]:
        """Detached demand of an average request, at the stations where requests also wait for other demand."""
        return {
            name: self.demands[name].plus(-1.0, waited)
            for name, waited in self._waited_for.items()
            if np.any(self.demands[name].mean_s > (1 + _ROUNDING) * np.asarray(waited.mean_s))
        }

    def beside_detached(self, rate_per_s: FloatArray) -> Analysis:
        """Return the network without its detached work, next to the detached work of requests at a rate (draws,).

        What quorums do to queueing is taken as in the whole network.
        """
        part = _Part(self, self.flows, self.share)
        vars(part).update({name: getattr(self, name) for name in _BESIDE_DETACHED})
        part.demands = self._waited_for
        part.path_times_s = {names: time for names, time in self.path_times_s.items() if names[0] in part.demands}
        part._avoided = [names for names in self._avoided if names[0] in part.demands]
        part._like = self
        part._others = {name: ServiceDemand().plus(rate_per_s, demand) for name, demand in self.detached.items()}
        rooms = np.stack([self._full(part._room(names[0])) for names in part.path_times_s])
        part._room_beside = np.take_along_axis(rooms, part._path_loads_s.argmax(axis=0)[None], axis=0)[0]
        return part

    def _demands_of(self, group: PoolGroup) -> dict[str, ServiceDemand]:
        """Return the demands of an average request of a group, at one member of each class."""
        reader = DemandReader()
        return _per_member(
            _combined(_within(group), {name: reader.of(flow) for name, flow in group.flows.items()}), self.members
        )

    def _room(self, name: str) -> FloatArray:
        """Return the share of a station that other parts of the traffic leave free."""
        if name not in self._others:
            return np.ones(1)
        return np.asarray(1 - self._others[name].mean_s / endless_speed(self.stations[name]))

    @cached_property
    def server(self) -> FlowEquivalent | None:
        """Flow-equivalent server of everything inside the outermost pools, treated as alike; None without pools."""
        if self.pool is None:
            return None
        size, queue = self.pool
        states = state_grid(size, size + queue)
        inside = np.unique(np.minimum(states[1:], size))
        found = self.throughput_per_s(inside)
        return FlowEquivalent(
            states,
            np.take(found, np.searchsorted(inside, np.minimum(states[1:], size)), axis=1),
            size,
            self._peakedness,
        )

    @cached_property
    def _peakedness(self) -> Number:
        """Variance of the number of requests inside, relative to Poisson arrivals."""
        if self._arrival_scv is None:
            return 1.0
        mean = self.averaged(self.unloaded)
        square = sum((self.share[name] * (time.variance + time.total**2) for name, time in self.unloaded.items()), 0.0)
        return peakedness(self._arrival_scv, square / mean**2 - 1)

    def throughput_per_s(self, population: FloatArray) -> FloatArray:
        """Return the throughput with a constant number of requests inside the outermost pools.

        Parameters
        ----------
        population : array (n,)
            Numbers of requests: whole numbers from 1, in ascending order.

        Returns
        -------
        array (draws, n)
            Requests per second.
        """
        alone = self._full(self._first_s() - self.outside_s)
        saturation = self.saturation_per_s
        logit = rate_logits(saturation * alone, int(population[-1]))
        response = alone + self._slowdown_s(logit)
        if not np.all(response > 0):
            raise RefusedError(
                "the analytic solver does not support stations that are this much faster with several requests, if "
                "the requests inside are counted, as with clients or pools: simulate the network"
            )
        found = throughput_per_s(population, logit, saturation, response, alone)
        for names, here in self._first_to_saturate:
            if self._is_single(names):
                found[here] *= self._correction(population, logit, names[0], here)
        if self._whole is None:
            return found
        return np.minimum(found, np.minimum(population / alone[:, None], saturation[:, None]))

    def _is_single(self, names: tuple[str, ...]) -> bool:
        """Whether a cluster is one station with a constant number of servers, which others leave alone."""
        station = self.stations[names[0]]
        differs = station.rate is not None or station.has_lanes or names[0] in self._others
        return len(names) == 1 and self.members[names[0]] == 1 and not differs

    def _correction(self, population: FloatArray, logit: FloatArray, name: str, here: NDArray[np.bool_]) -> FloatArray:
        """Return exact over approximate throughput of one saturated station and a delay (chosen draws, n)."""
        servers, saturation = self.stations[name].servers, self.saturation_per_s[here]
        busy = servers / saturation
        idle = np.maximum(self._full(self._first_s() - self.outside_s)[here] - busy, 1e-9 * busy)
        load = servers * special.expit(logit)[:, None]
        response = idle + busy * (1 + erlang_c(servers, load) / (servers - load))
        exact = machine_repair_per_s(population, busy, idle, servers)
        return exact / throughput_per_s(population, logit, saturation, response, idle + busy)

    def _slowdown_s(self, logit: FloatArray) -> FloatArray:
        """Return the mean queueing time at logits of the rate over saturation (points, draws).

        The sum over stations, each as if requests met them one after the other, has the right shape. Its factor, which
        quorums and forks make different from 1, is interpolated between the virtual rates.
        """
        share = special.expit(logit)
        return np.asarray(self._queueing_s(share) * self._factor_at(share) + self._avoiding_s(share))

    def _avoiding_s(self, share: FloatArray) -> FloatArray | float:
        """Return how much longer quorums take because they avoid slow clusters (shares, draws)."""
        if not self._avoided:
            return 0.0
        rate = self.saturation_per_s * share[:, None]
        busy = {name: self._station_congestion(name, rate) for names in self._avoided for name in names}
        slow = self._means(busy)
        slowed = sum((self.share[name] * time.total for name, time in slow.items()), np.zeros(1))
        return np.asarray(slowed - self.averaged(self.unloaded))

    def _factor_at(self, share: FloatArray) -> FloatArray:
        """Return the factor at shares of saturation (shares, draws); the virtual rates bring left work, too."""
        shares = _SHARES[1:]
        whole = share if self._room_beside is None else 1 - self._room_beside * (1 - share[:, None])
        return monotone_cubic(shares, self._factor, np.clip(whole, shares[0], shares[-1]))

    @cached_property
    def _factor(self) -> FloatArray:
        """Queueing time in the mean response, relative to the sum over stations (virtual rates except 0, draws)."""
        if self._like is not None:
            return self._like._factor
        means = self.mean_curve.T
        added = means[1:] - means[0] - self._avoiding_s(_SHARES[1:])
        factor = added / np.maximum(self._queueing_s(_SHARES[1:]), 1e-300)
        return np.where(added > 1e-9 * means[0], factor, 1.0)

    def _first_s(self) -> FloatArray:
        """Return the mean response of a request that is alone inside the pools, next to the other traffic (draws,)."""
        if self._whole is None:
            return self.averaged(self.unloaded)
        if self._like is not None:
            alone = np.zeros(1)
            return np.asarray(self.averaged(self.unloaded) + (self._factor_at(alone) * self._queueing_s(alone))[0])
        return self.mean_curve[:, 0]

    def _queueing_s(self, share: FloatArray, only: tuple[str, ...] | None = None) -> FloatArray:
        """Return the queueing time at one cluster, or the sum over all, at shares of saturation (shares, draws)."""
        rate, total = self.saturation_per_s * share[:, None], np.zeros((len(share), self.draws))
        for names, time in self.path_times_s.items():
            demand = self.demands[names[0]]
            if only not in (None, names):
                continue
            busy = self._station_congestion(names[0], rate)
            mean = demand.mean_s / np.maximum(demand.visits, 1e-12)
            total += time * (busy.stretch - 1 + busy.wait.total / np.maximum(mean, 1e-300))
        return total if self._whole is None or not share[0] else total - self._queueing_s(np.zeros(1), only)

    @cached_property
    def outside_s(self) -> FloatArray:
        """Mean time outside the outermost pools in seconds, assuming no queueing there (draws,)."""
        if self.pool is None:
            return np.zeros(self.draws)
        whole = self.averaged(self.unloaded)
        inside = sum((self._held_s[each.name] * self.pool_members[each.name] for each in self.outer_pools), 0.0)
        outside = self._full(whole - inside)
        return np.where(outside > 1e-9 * whole, outside, 0.0)  # the difference of two sums is rarely exactly 0

    @cached_property
    def inside(self) -> Inside:
        """Conditions by the number of requests inside the outermost pools; only for networks with pools."""
        server = self.server
        if server is None:
            raise ValueError("the network has no pool")
        return self.conditions(server)

    def conditions(self, server: FlowEquivalent) -> Inside:
        """Return the conditions in each state of a flow-equivalent server of this network."""
        number = server.states[1:]
        held = np.minimum(number, server.pool)
        means, classes = self.mean_curve, self._at_known_number
        wanted = np.maximum(held / server.throughput_per_s + self.outside_s[:, None], means[:, :1])
        return Inside(
            held,
            (number - held) / server.throughput_per_s,
            wanted,
            means,
            *({name: each[place] for name, each in classes.items()} for place in range(3)),
        )

    @cached_property
    def _at_known_number(self) -> dict[str, tuple[FloatArray, FloatArray, FloatArray]]:
        """The responses of `curve` by class, of requests that find the same number inside.

        They vary less by what the number explains (law of total variance). Of the wait W of one visit this is
        (W' / n')² V, where n is the mean number inside at a rate r, and V = r n' its variance in a product-form
        network. Visits are taken as independent, so the waits of several explain the sum of theirs. Shared servers
        without lanes already respond as the number inside says.
        """
        means, classes = self.mean_curve, self.curve
        queueing, own = self._slope(self._queueing_s(_SHARES).T), np.zeros_like(means)
        for names in self.path_times_s:
            station = self.stations[names[0]]
            if station.rate is None and (station.discipline == "fcfs" or station.has_lanes):
                visits = sum((self.demands[name].visits * self.members[name] for name in names), 0.0)
                wait = self._slope(self._queueing_s(_SHARES, names).T)
                own += wait**2 / np.maximum(np.asarray(visits), 1.0)[..., None]
        if not np.any(own):
            return classes
        rate = self.saturation_per_s[:, None] * _SHARES
        inside = means - self.outside_s[:, None]
        factor = own / np.maximum(queueing**2, 1e-300) * rate / (inside + rate * self._slope(means))
        found = {}
        for name, (mean, variance, third) in classes.items():
            least = np.minimum(variance[:, :1], variance)  # that of the services alone
            left = np.maximum(variance - factor * self._slope(mean) ** 2, least)
            found[name] = mean, left, third * (left / np.maximum(variance, 1e-300)) ** 2
        return found

    def _slope(self, values: FloatArray) -> FloatArray:
        """Return the slope over the rate of values (draws, shares) that are nearly linear in 1 / (1 - share)."""
        idle = 1 - _SHARES
        return np.asarray(np.gradient(values, 1 / idle, axis=-1) / idle**2 / self.saturation_per_s[:, None])

    @cached_property
    def mean_curve(self) -> FloatArray:
        """Mean response at the virtual rates (draws, shares)."""
        rates = self.saturation_per_s * _SHARES[:, None]
        means = self._means(self._congestion(rates))
        each = (self.share[name] * np.broadcast_to(time.total, rates.shape).T for name, time in means.items())
        return np.asarray(sum(each, np.zeros(1)))

    @cached_property
    def curve(self) -> dict[str, tuple[FloatArray, FloatArray, FloatArray]]:
        """Mean, variance and third cumulant of the response by class, at the virtual rates, each (draws, shares)."""
        response = self.response_at(self.saturation_per_s * _SHARES[:, None])
        return {name: (mean.T, variance.T, third.T) for name, (mean, variance, third) in response.items()}

    def response_at(self, rate_per_s: FloatArray) -> dict[str, tuple[FloatArray, FloatArray, FloatArray]]:
        """Return the response of an open network.

        Parameters
        ----------
        rate_per_s : array (..., draws)
            Mean request rate, per second.

        Returns
        -------
        dict of (array, array, array)
            Mean (s), variance (s²) and third cumulant (s³) of the response by class, each (..., draws).
        """
        congestion, shape = self._congestion(rate_per_s), rate_per_s.shape
        means = self._means(congestion)
        response = self.mean_response(congestion) if self._counts_requests else means
        return {
            name: (
                np.broadcast_to(means[name].total, shape),
                np.broadcast_to(time.variance, shape),
                np.broadcast_to(time.third_s3, shape),
            )
            for name, time in response.items()
        }

    def _means(self, congestion: Mapping[str, Congestion]) -> dict[str, RandomTime]:
        """Return response times by class whose means are right: where requests are counted, sharing is in the count.

        The count does not say how requests spread over the lanes of a station.
        """
        if self._counts_requests:
            congestion = {
                name: busy if self.stations[name].has_lanes else replace(busy, sharing=None)
                for name, busy in congestion.items()
            }
        return self.mean_response(congestion)

    def _congestion(self, rate_per_s: FloatArray) -> dict[str, Congestion]:
        known = {names: self._station_congestion(names[0], rate_per_s) for names in self.clusters}
        if self._counts_requests:
            known = self._at_one_number(known, rate_per_s)
        return {name: busy for names, busy in known.items() for name in names}

    def _at_one_number(
        self, known: Mapping[tuple[str, ...], Congestion], rate_per_s: FloatArray
    ) -> dict[tuple[str, ...], Congestion]:
        """Return the congestion of requests that find the same number inside: how many share a station varies less.

        With the variance V of the number at a station and their sum S over all, 1 - V / S of V is left on average over
        the numbers inside (law of total variance), as all of them share what the total explains in a product-form
        network. It grows with the square of the number, so at the mean number n it is 1 / (1 + (S - n) / n²) of that:
        exact for equal stations with geometric numbers.
        """
        delays_s = sum((self.share[name] * each[:, 0] for name, each in self.delays.items()), np.zeros(1))
        number = rate_per_s * np.maximum(delays_s - self.outside_s, 0.0)
        total, own = number, dict[tuple[str, ...], FloatArray]()
        for names, busy in known.items():
            demand, members = self._waited_for.get(names[0], _NO_DEMAND), sum(self.members[name] for name in names)
            here = rate_per_s * demand.mean_s * busy.stretch
            waiting = rate_per_s * demand.visits * busy.wait.total
            own[names] = here + waiting + np.square(waiting)
            if busy.sharing is not None and names[0] in self._waited_for:
                own[names] = np.maximum(here, busy.sharing.variance * self.stations[names[0]].servers ** 2)
            number, total = number + members * (here + waiting), total + members * own[names]
        spread = 1 + np.maximum(total - number, 0.0) / np.maximum(number, 1e-12) ** 2
        left = {names: np.maximum(1 - each / np.maximum(total, 1e-300), 0.0) / spread for names, each in own.items()}
        return {
            names: busy
            if busy.sharing is None or self.stations[names[0]].has_lanes
            else replace(busy, sharing=busy.sharing.left(left[names]))
            for names, busy in known.items()
        }

    def _station_congestion(self, name: str, rate_per_s: FloatArray) -> Congestion:
        """Return the congestion of a station at mean request rates (..., draws)."""
        demand = self.demands[name]
        if name in self._others:
            demand, rate_per_s = self._others[name].plus(rate_per_s, demand), np.ones(1)
        less, full = self._variability[name], 1 - _LEAST_IDLE * self._room(name)
        if self.stations[name].has_lanes:
            return lane_congestion(self.stations[name], demand, rate_per_s, full, less)
        busy = _poisson_congestion(self.stations[name], demand, rate_per_s, full)
        return busy if np.all(less == 1.0) else busy.scaled(less)

    @cached_property
    def _counts_requests(self) -> bool:
        """Whether the solution depends on the number of requests inside, and so on the number that share a station."""
        return self.pool is not None or not isinstance(self.traffic, Open)

    @cached_property
    def _variability(self) -> dict[str, FloatArray]:
        """Variance of the work that arrives at each station, relative to Poisson arrivals."""
        if self._whole is not None:
            return self._whole._variability
        missing = missing_variance_s2(self.network, self.share)
        shared = {each.name: (each.count or 1) * first_speed(each) ** 2 for each in self.network.stations}
        found = dict.fromkeys(self.demands, np.ones(1))
        for name, less in missing.items():
            if name in self.demands and self.stations[name].rate is None:
                second = self.demands[name].second_moment_s2
                found[name] = np.atleast_1d(1 - less / shared[name] / np.maximum(second, 1e-300))
        return self._paced(self.traffic, found) if isinstance(self.traffic, Throttled) else found

    def _paced(self, traffic: Throttled, found: dict[str, FloatArray]) -> dict[str, FloatArray]:
        """Remove the variance of random starts, because paced clients start their requests evenly.

        Clients that wait for their answers send less while queues are long, which counts already. Over the time in
        which a queue forgets its past, this leaves the share pause / (pause + that time) of the variance of arrivals.
        """
        alone = ResponseReader({}, Shapes({}))
        alone_s = sum((share * alone.of(self.flows[name]).total for name, share in self.share.items()), 0.0)
        pause_s = np.maximum(traffic.clients / np.asarray(traffic.rate_per_s) - alone_s, 1e-9 * alone_s)
        for name, demand in self.demands.items():
            station = self.stations[name]
            if station.rate is None:
                square = np.asarray(demand.mean_s, dtype=float) ** 2
                shared = 2 * square if station.discipline == "ps" else square
                random = square / np.maximum(np.maximum(demand.second_moment_s2, shared), 1e-300)
                load = np.minimum(demand.mean_s / endless_speed(station) * traffic.rate_per_s, _SHARES[-1])
                forgets_s = demand.second_moment_s2 / np.maximum(demand.mean_s, 1e-300) / 2 / (1 - np.sqrt(load)) ** 2
                forgets_s = forgets_s / (1 if station.has_lanes else station.servers)
                even = 1 - random * pause_s / (pause_s + forgets_s)
                found[name] = np.atleast_1d(np.minimum(found[name], np.maximum(even, _LEAST_VARIABLE)))
        return found

    def _full(self, value: Number) -> FloatArray:
        return np.broadcast_to(np.asarray(value, dtype=float), (self.draws,))


class _Part(Analysis):
    """A network as a part of its work sees it, beside the rest; what does not depend on that is the whole's."""

    def __init__(
        self, whole: Analysis, flows: dict[str, Step], share: Mapping[str, Number], arrival_scv: Number | None = None
    ) -> None:
        self.network, self.traffic, self.races, self.draws = whole.network, whole.traffic, whole.races, whole.draws
        self.stations, self.members = whole.stations, whole.members
        self._pools, self.pool_members = whole._pools, whole.pool_members
        self._whole, self.flows, self.share, self._arrival_scv = whole, flows, share, arrival_scv
        self._like, self._others, self._avoided, self._room_beside, self._known_times_s = None, {}, [], None, {}


def _within(group: PoolGroup) -> dict[str, Number]:
    """Return the shares of the request classes within a group."""
    return {name: each / group.share for name, each in group.shares.items()}


def _words(*values: Number) -> tuple[str, ...]:
    """Return medians as texts, equal for values that differ only by rounding."""
    return tuple(f"{float(np.median(value)):.6e}" for value in values)


def _key(table: RateTable | None) -> bytes:
    return b"" if table is None else np.array(np.broadcast_arrays(*table.speeds), dtype=float).tobytes()


def _refuse_unknown(station: Station) -> None:
    for name in ("expiry_s", "pauses", "background", "host"):
        if getattr(station, name) not in (None, ()):
            raise RefusedError(
                f"the analytic solver does not support {name!r} (station {station.name!r}): simulate the network"
            )


def request_shares(network: Network) -> dict[str, float]:
    """Return the share of each request class in the traffic, with sessions resolved into their requests.

    Raises
    ------
    InputError
        If the mix is empty.
    """
    sessions = {session.name: session.classes for session in network.sessions}
    counts: dict[str, float] = {}
    for name, share in network.traffic.mix.items():
        for request in sessions.get(name, (name,)):
            counts[request] = counts.get(request, 0.0) + share
    total = sum(counts.values())
    if not total:
        raise InputError("the traffic mix is empty: name at least one request class or session")
    return {name: count / total for name, count in counts.items()}


def _combined(
    share: Mapping[str, Number], class_demands: Mapping[str, dict[str, ServiceDemand]]
) -> dict[str, ServiceDemand]:
    total: dict[str, ServiceDemand] = {}
    for name, weight in share.items():
        for station, demand in class_demands[name].items():
            total[station] = total.get(station, ServiceDemand()).plus(weight, demand)
    return total


def _per_member(total: Mapping[str, ServiceDemand], members: Mapping[str, int]) -> dict[str, ServiceDemand]:
    """Divide the demands on all members of a class by their number; visits that take no time are left out."""
    return {
        name: demand if members[name] == 1 else ServiceDemand().plus(1 / members[name], demand)
        for name, demand in total.items()
        if np.any(np.asarray(demand.mean_s) > 0)
    }


def _outer_pools(flow: Step, known: dict[int, set[str]] | None = None) -> set[str]:
    """Return the names of the outermost pools of a flow."""
    seen = {} if known is None else known
    if id(flow) not in seen:
        inside = (
            [flow.pool] if isinstance(flow, Acquire) else [n for c in children(flow) for n in _outer_pools(c, seen)]
        )
        seen[id(flow)] = set(inside)
    return seen[id(flow)]


def _sharing(station: Station, demand: ServiceDemand, busy: FloatArray, delayed: FloatArray) -> Sharing:
    """Return the slowdown of M/M/m under processor sharing, as arriving requests see it.

    They find m or more requests with the probability `delayed`, then a geometric number beyond m.
    """
    left, load = station.servers - busy, busy / station.servers
    lost = delayed / left
    service = np.maximum(demand.mean_s / np.maximum(demand.visits, 1e-12), 1e-300)
    return Sharing(1 + lost, delayed * (1 + load) / left**2 - lost**2, left / service)


def _poisson_congestion(
    station: Station, demand: ServiceDemand, rate_per_s: FloatArray, full: FloatArray
) -> Congestion:
    """Return the congestion of an open M/G/m queue with this demand per request, at `rate_per_s` requests."""
    if station.rate is not None:
        asked = np.clip(rate_per_s * demand.mean_s, 1e-12, full * endless_speed(station))
        return Congestion(stretch=mean_number(asked, speeds(station)) / asked)
    busy = np.minimum(rate_per_s * demand.mean_s, station.servers * full)
    delayed = erlang_c(station.servers, busy)
    if station.discipline == "ps":
        return Congestion(1 + delayed / (station.servers - busy), sharing=_sharing(station, demand, busy, delayed))
    visits = np.maximum(rate_per_s * demand.visits, 1e-12)
    mean = demand.mean_s / np.maximum(demand.visits, 1e-12)
    scv = np.maximum(
        demand.second_moment_s2 / np.maximum(demand.visits, 1e-12) / np.maximum(mean, 1e-300) ** 2 - 1, 0.0
    )
    wait = mgm_mean_wait_s(busy / np.maximum(mean, 1e-300), mean, station.servers, scv)
    wait = np.where(visits > 1e-9, wait, 0.0)
    return Congestion(wait=queue_wait(wait, wait / np.maximum(delayed, 1e-9), mean / station.servers, scv))
