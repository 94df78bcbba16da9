"""The answer of `capplan demand`: rates in the busy hour and after an outage, data on disk, and how long both fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from capplan.answers.condition import stated
from capplan.answers.results import Band
from capplan.answers.verb_answer import UNBOUNDED_BANDS, VerbAnswer
from capplan.answers.verdict import Answer, answer
from capplan.errors import InputError
from capplan.layout.components import MeasuredRange, Ratios
from capplan.layout.fitted_file import Fitted
from capplan.models.cassandra.encryption import LINKS, in_order
from capplan.models.cassandra.storage import GIB, fullest, read_compaction
from capplan.models.language.scenario import S, Scenario, changed, options_of
from capplan.models.language.traffic import mix_text
from capplan.models.language.units import FloatArray
from capplan.planner.demand.demand import (
    BOOT_SHARES,
    BUSY_SHARE,
    COMPRESSION,
    DAY_S,
    DRAWS,
    HOUR_S,
    INTERIM_S,
    USABLE,
    Assumption,
    Between,
    BusyHour,
    Data,
    Demand,
    assumptions,
    band_of,
    growth_factors,
)
from capplan.planner.predict.capacity import peak_and_mean
from capplan.planner.sweep import rate_fields
from capplan.systems.registry import resolve, system


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
    updates = timer_events(float(hour.interim_s or INTERIM_S), length_s) if given is None else given
    return SessionRequests(float(hour.authentication_requests or 1.0) * (1 + again), 1.0, updates, 1.0)


def grown(demand: Demand, months: float | None = None) -> float:
    """Return the number of subscribers after some months of median growth; by default at the planned time."""
    years = (demand.months if months is None else months) / 12
    return demand.amount * float((1 + growth_per_year(demand)) ** years)


def growth_per_year(demand: Demand) -> float:
    """Return the median growth per year."""
    low, high = demand.growth
    return low if low == high else math.sqrt((1 + low) * (1 + high)) - 1


def starts_per_s(demand: Demand, subscribers: float) -> float:
    """Return the rate of session starts per second."""
    return subscribers * float(demand.hour.sessions) / HOUR_S


def busy_hour_rates(demand: Demand, subscribers: float) -> ClassRates:
    """Return the rates in the busy hour at a number of subscribers, or at that many times the stated rates."""
    if demand.stated:
        return ClassRates((demand.reads_per_s + demand.writes_per_s) * subscribers, 0.0, 0.0)
    starts, each = starts_per_s(demand, subscribers), session_requests(demand.hour)
    made = demand.connections
    anew = 0.0 if made is None or made.lifetime_s is None else float(made.count) / float(made.lifetime_s)
    return rates(starts * each.auth, starts * each.acct, anew)


_MOST_POINTS = 600  # of the rates over time


@dataclass(frozen=True)
class RatesAt:
    """Rates in one interval after the outage.

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
    """The load of a mass re-attach.

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
    """The returning devices and connections, and the rates of other traffic."""

    devices: float
    auth_requests: float
    connections: float
    besides: ClassRates
    boot_s: FloatArray
    booted: FloatArray
    connected_s: FloatArray

    def between(self, start: float, end: float) -> ClassRates:
        """Return the mean rates in an interval."""
        devices = self.devices * self.share(start, end) / (end - start)
        connected = float(np.diff(np.interp([start, end], self.connected_s, [0.0, 1.0]))[0])
        handshakes = self.connections * connected / (end - start)
        return rates(
            self.besides.auth_per_s + devices * self.auth_requests,
            self.besides.acct_per_s + devices,
            self.besides.handshakes_per_s + handshakes,
        )

    def share(self, start: float, end: float) -> float:
        """Return the share of devices that boot in an interval."""
        return float(np.diff(np.interp([start, end], self.boot_s, self.booted))[0])


def reattach(demand: Demand, subscribers: float) -> ReattachStorm:
    """Return the load of a mass re-attach.

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
    storm, asked, hour = _storm(demand, subscribers), demand.reattach, demand.hour
    window = float(asked.window_s or 1.0)
    start = _begin_of_peak(storm, window)
    peak = RatesAt(start, start + window, storm.between(start, start + window))
    usual = busy_hour_rates(demand, subscribers)
    updates_s = None if hour.interim_updates is not None else float(hour.interim_s or INTERIM_S)
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
    """Return the earliest time after the outage when all requests have been served, in seconds, at a limited rate.

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
    booting = tuple((float(each.from_s), float(each.to_s), each.share) for each in demand.reattach.boot)
    for start, end, part in booting or BOOT_SHARES:
        times += [start, end]
        shares += [shares[-1], shares[-1] + part]
    return _Storm(
        devices=share * starts_per_s(demand, subscribers) * float(demand.hour.length_s),
        auth_requests=float(demand.hour.authentication_requests or 1.0),
        connections=0.0 if connections is None else float(connections.count),
        besides=rates((1 - share) * usual.auth_per_s, (1 - share) * usual.acct_per_s, usual.handshakes_per_s),
        boot_s=np.array(times),
        booted=np.array(shares),
        connected_s=np.array([0.0, 1.0 if connections is None else float(connections.within_s or 10.0)]),
    )


def _begin_of_peak(storm: _Storm, window: float) -> float:
    """Return the start of the window with the highest rate; one end of it is at a corner of the distribution."""
    corners = sorted({0.0, *storm.boot_s, *(max(each - window, 0.0) for each in storm.boot_s)})
    return float(max(corners, key=lambda start: round(storm.share(start, start + window), 12)))


def _over_time(storm: _Storm, window: float) -> tuple[RatesAt, ...]:
    """Return the rates until all devices are back, per window, or per longer step if there are too many windows."""
    last = max(float(storm.boot_s[-1]), float(storm.connected_s[-1]) if storm.connections else 0.0)
    step = max(window, last / _MOST_POINTS)
    starts = [number * step for number in range(math.ceil(round(last / step, 9)))]
    return tuple(RatesAt(start, start + step, storm.between(start, start + step)) for start in starts)


_MONTHS = 12
# Numbers of the uncertain inputs, each with draws of its own.
GROWTH, _BUSY, _ROWS, _ROW_BYTES, _SUBSCRIBER, _COMPRESSION, _HEADROOM, _USABLE, _CAPACITY = range(9)


@dataclass(frozen=True, eq=False)
class Volume:
    """Data on disk, by draw of the uncertain inputs.

    Attributes
    ----------
    data_gib : array (draws,)
        One copy of all data today, compressed, GiB.
    growth_factor : array (draws,)
        Growth of one year.
    room : array (draws,)
        Share of a disk that data may fill: what formatting and compaction leave.
    """

    data_gib: FloatArray
    growth_factor: FloatArray
    room: FloatArray


def volume(demand: Demand, data: Data, seed: int = 1) -> Volume:
    """Return the volume of the data of a demand.

    Parameters
    ----------
    demand : Demand
        Subscribers, their sessions and their growth.
    data : Data
        What is stored of each.
    seed : int
        Seed of the draws.

    Returns
    -------
    Volume
    """
    strategy, keep_s = read_compaction(data.compaction or "STCS"), demand.keep_s
    content = _rows(demand, data, strategy.kept_s(keep_s), seed) * data.row_bytes.draws(seed, _ROW_BYTES)
    if data.subscriber_bytes is not None:
        content = content + demand.amount * data.subscriber_bytes.draws(seed, _SUBSCRIBER)
    usual = strategy.free(keep_s)
    free = (data.headroom or Between(usual, usual)).draws(seed, _HEADROOM, 0.99)
    return Volume(
        data_gib=content * (data.compression or COMPRESSION).draws(seed, _COMPRESSION, 1.0) / GIB,
        growth_factor=growth_factors(demand.growth, seed, GROWTH),
        room=(data.usable or USABLE).draws(seed, _USABLE, 1.0) * (1 - free),
    )


def _rows(demand: Demand, data: Data, kept_s: float, seed: int) -> FloatArray:
    """Return the rows of today's load that are kept, once (draws,); stated rates are taken for those of all day."""
    if demand.stated:
        return np.full(DRAWS, demand.writes_per_s * kept_s)
    busy_per_s = starts_per_s(demand, demand.amount)
    share_of_day = (demand.hour.share_of_day or BUSY_SHARE).draws(seed, _BUSY, 1.0)
    daily_per_s = busy_per_s * HOUR_S / (share_of_day * DAY_S)
    sessions = np.maximum(busy_per_s * min(kept_s, HOUR_S), daily_per_s * kept_s)
    return sessions * (data.rows or Between(1.0, 1.0)).draws(seed, _ROWS)


def total_gib(found: Volume, months: float = 0.0) -> Band:
    """Return one copy of all data after so many months, GiB."""
    return band_of(_grown(found, months))


def gib_per_node(found: Volume, nodes_by_dc: Sequence[int], rf_by_dc: Sequence[int], months: float = 0.0) -> Band:
    """Return the data on the fullest node.

    Parameters
    ----------
    found : Volume
        The volume.
    nodes_by_dc, rf_by_dc : sequence of int (dcs,)
        Numbers of nodes and of replicas of each row in each data centre.
    months : float
        Time from today.

    Returns
    -------
    Band
        GiB, with the 90 % band over the uncertain inputs.
    """
    return band_of(fullest(nodes_by_dc, rf_by_dc) * _grown(found, months))


def disk_gib_per_node(found: Volume, nodes_by_dc: Sequence[int], rf_by_dc: Sequence[int], months: float = 0.0) -> Band:
    """Return the disk that the fullest node needs, including compaction headroom; arguments as for `gib_per_node`."""
    return band_of(fullest(nodes_by_dc, rf_by_dc) * _grown(found, months) / found.room)


def months_until(found: Volume, nodes_by_dc: Sequence[int], rf_by_dc: Sequence[int], disk_gib: float) -> Band:
    """Return the months until data and headroom fill the disk of the fullest node; infinite if they never do.

    Parameters
    ----------
    found : Volume
        The volume.
    nodes_by_dc, rf_by_dc : sequence of int (dcs,)
        Numbers of nodes and of replicas of each row in each data centre.
    disk_gib : float
        Size of the disk, GiB.

    Returns
    -------
    Band
        Months from today, 0 where it is full already.
    """
    today = fullest(nodes_by_dc, rf_by_dc) * found.data_gib
    return band_of(months_to_grow(disk_gib * found.room / today, found.growth_factor))


def months_until_rate(found: FloatArray, rate_per_s: float, capacity: Band) -> Band:
    """Return the months until a growing rate reaches a capacity; infinite if it never does.

    Parameters
    ----------
    found : array (draws,)
        Growth of one year.
    rate_per_s : float
        The rate today, per second.
    capacity : Band
        The rate that the layout carries.

    Returns
    -------
    Band
        Months from today, 0 where it is above the capacity already.
    """
    return band_of(months_to_grow(_capacity_draws(capacity) / rate_per_s, found))


def months_to_grow(factor: FloatArray, growth_factor: FloatArray) -> FloatArray:
    """Return the months until growth reaches a factor (draws,); infinite if it never does."""
    yearly = np.log(growth_factor)
    with np.errstate(divide="ignore", invalid="ignore"):
        months = _MONTHS * np.log(factor) / yearly
    return np.where(factor <= 1, 0.0, np.where(yearly > 0, months, np.inf))


def _grown(found: Volume, months: float) -> FloatArray:
    return np.asarray(found.data_gib * found.growth_factor ** (months / _MONTHS))


def _capacity_draws(capacity: Band) -> FloatArray:
    """Return draws of a capacity; below and above the median, the spread follows that side of the band.

    The capacity is lognormal there; zero has no logarithm, so a band from 0 is linear between its percentiles.
    """
    if not capacity.low:
        levels = (np.random.default_rng([1, _CAPACITY]).permutation(DRAWS) + 0.5) / DRAWS
        return np.asarray(np.interp(levels, (0.05, 0.5, 0.95), (capacity.low, capacity.value, capacity.high)))
    below = Between(capacity.low, capacity.value**2 / capacity.low).draws(1, _CAPACITY)
    above = Between(capacity.value**2 / capacity.high, capacity.high).draws(1, _CAPACITY)
    return np.where(below < capacity.value, below, above)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The layout for the demand.

    Attributes
    ----------
    words
        The layout in words.
    cass_nodes
        Cassandra nodes in each data centre.
    rf
        Replicas of each row in each data centre.
    capacity
        The mean rate that it sustains with the mix of the busy hour, requests per second.
    reattach_capacity
        The same with the mix of a mass re-attach.
    assumed
        What nobody measured and both take for granted, in sentences.
    """

    words: str
    cass_nodes: tuple[int, ...]
    rf: tuple[int, ...]
    capacity: Band
    reattach_capacity: Band
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Month:
    """Rate and data after some months.

    Attributes
    ----------
    month
        Months from today.
    busy_hour_per_s
        Rate in the busy hour, requests per second.
    data_gib
        One copy of all data on disk, GiB; null without data.
    node_gib
        Data of the fullest node, GiB; null without data or a layout.
    """

    month: float
    busy_hour_per_s: Band
    data_gib: Band | None
    node_gib: Band | None


@dataclass(frozen=True, kw_only=True)
class Fit:
    """How long a layout is large enough in one respect.

    Attributes
    ----------
    what
        `rate` or `disk`.
    limit
        The rate or the disk, in its unit.
    needed
        What is needed at the planned time.
    unit
        `requests per second` or `GiB`.
    months
        Months until it no longer fits; null means never.
    risk
        Probability that it does not fit today or at the planned time.
    """

    what: str
    limit: Band
    needed: Band
    unit: str
    months: Band
    risk: float


@dataclass(frozen=True, kw_only=True)
class Forecast(VerbAnswer):
    """The answer of `demand`.

    Attributes
    ----------
    subscribers_today
        Subscribers today; null where the file states rates, as all that is about subscribers and their sessions.
    subscribers
        Subscribers at the planned time.
    years
        Planned time.
    growth_per_year
        Growth of the load.
    starts_per_s
        Sessions that start per second in the busy hour at the planned time.
    open_sessions
        Sessions that are open then.
    session
        Mean numbers of requests in a session.
    busy_hour
        Rates in the busy hour at the planned time.
    reattach
        What a mass re-attach asks at the planned time.
    months
        Rate and data over time.
    layout
        The layout that the demand meets; null without one.
    disk_needed_gib
        Disk that the fullest node needs at the planned time, with the headroom of compaction; null without data or a
        layout.
    reattach_served_s
        When the layout has served all requests of a mass re-attach at the earliest, seconds after the outage; null
        without a layout, or if never.
    fits
        How long rate and disk fit; empty without a layout.
    answer
        Whether rate and disk fit today and at the planned time, by the higher risk; `yes` without a layout.
    assumptions
        Inputs that the file leaves out, with their sources.
    version
        The version of capplan.
    """

    SCHEMA = "capplan.demand/1"
    UNBOUNDED = UNBOUNDED_BANDS

    subscribers_today: float | None
    subscribers: float | None
    years: float
    growth_per_year: Band
    starts_per_s: float | None
    open_sessions: float | None
    session: SessionRequests | None
    busy_hour: ClassRates
    reattach: ReattachStorm | None
    months: tuple[Month, ...]
    layout: Layout | None
    disk_needed_gib: Band | None
    reattach_served_s: float | None
    fits: tuple[Fit, ...]
    answer: Answer
    assumptions: tuple[Assumption, ...]
    version: str


def forecast(demand: Demand, layout: Layout | None = None, seed: int = 1) -> Forecast:
    """Return the load of a demand at its planned time and until then.

    Parameters
    ----------
    demand : Demand
        The demand.
    layout : Layout, optional
        The layout that it meets.
    seed : int
        Seed of the draws of uncertain inputs.

    Returns
    -------
    Forecast
    """
    subscribers = grown(demand)
    found = None if demand.data is None else volume(demand, demand.data, seed)
    usual = busy_hour_rates(demand, subscribers)
    fits = () if layout is None else tuple(_fits(demand, layout, found, seed))
    there = not demand.stated
    return Forecast(
        subscribers_today=demand.amount if there else None,
        subscribers=subscribers if there else None,
        years=demand.years,
        growth_per_year=band_of(growth_factors(demand.growth, seed, GROWTH) - 1),
        starts_per_s=starts_per_s(demand, subscribers) if there else None,
        open_sessions=subscribers * demand.hour.open_sessions if there else None,
        session=session_requests(demand.hour) if there else None,
        busy_hour=usual,
        reattach=reattach(demand, subscribers) if there else None,
        months=tuple(_month(demand, layout, found, seed, month) for month in _times(demand.months)),
        layout=layout,
        disk_needed_gib=None
        if layout is None or found is None
        else disk_gib_per_node(found, layout.cass_nodes, layout.rf, demand.months),
        reattach_served_s=None
        if layout is None or not there
        else served_after_s(demand, subscribers, layout.reattach_capacity.value),
        fits=fits,
        answer=answer(max((each.risk for each in fits), default=0.0)),
        assumptions=assumptions(demand),
        version=version("capplan"),
    )


def _times(planned_months: float) -> tuple[float, ...]:
    """Return today, each month, and the planned time."""
    return tuple(dict.fromkeys((*(float(month) for month in range(int(planned_months) + 1)), planned_months)))


def _month(demand: Demand, layout: Layout | None, found: Volume | None, seed: int, month: float) -> Month:
    return Month(
        month=month,
        busy_hour_per_s=_rate(demand, seed, month),
        data_gib=None if found is None else total_gib(found, months=month),
        node_gib=None if found is None or layout is None else gib_per_node(found, layout.cass_nodes, layout.rf, month),
    )


def _rate(demand: Demand, seed: int, month: float) -> Band:
    factors = growth_factors(demand.growth, seed, GROWTH) ** (month / 12)
    return band_of(busy_hour_rates(demand, demand.amount).total_per_s * factors)


def _fits(demand: Demand, layout: Layout, found: Volume | None, seed: int) -> Iterator[Fit]:
    growth = growth_factors(demand.growth, seed, GROWTH)
    today = busy_hour_rates(demand, demand.amount).total_per_s
    yield Fit(
        what="rate",
        limit=layout.capacity,
        needed=_rate(demand, seed, demand.months),
        unit="requests per second",
        months=months_until_rate(growth, today, layout.capacity),
        risk=float(np.mean(_capacity_draws(layout.capacity) < today * _highest(growth, demand))),
    )
    if found is None or demand.data is None or demand.data.disk_gib is None:
        return
    disk_gib = float(demand.data.disk_gib)
    disk_today = fullest(layout.cass_nodes, layout.rf) * found.data_gib / found.room
    yield Fit(
        what="disk",
        limit=Band.exactly(disk_gib),
        needed=disk_gib_per_node(found, layout.cass_nodes, layout.rf, demand.months),
        unit="GiB",
        months=months_until(found, layout.cass_nodes, layout.rf, disk_gib),
        risk=float(np.mean(disk_gib < disk_today * _highest(found.growth_factor, demand))),
    )


def _highest(growth_factor: FloatArray, demand: Demand) -> FloatArray:
    """Return the growth until the planned time (draws,); 1 where the need shrinks, since it must fit today, too."""
    return np.maximum(growth_factor ** (demand.months / _MONTHS), 1.0)


def contradicted(demand: Demand, scenario: type[Scenario]) -> tuple[str, ...]:
    """Return the options of a scenario class that conflict with a demand."""
    others: tuple[str, ...] = ("mix",) if demand.connections is None else ("mix", "reconnects")
    if demand.stated:
        others = ("compaction", *dict(_stated(demand)))
    return (*rate_fields(scenario), *(name for name in others if name in options_of(scenario)))


def offered(demand: Demand, scenario: type[Scenario], client_tls: bool) -> dict[str, str]:
    """Return the layout options that a demand sets, by field, as typed.

    The rate is that of the busy hour at the planned time. It is a mean: where a system has bursts, its peak is higher.

    Parameters
    ----------
    demand : Demand
        The demand.
    scenario : type
        The kind of scenario.
    client_tls : bool
        Whether a new connection of a client takes a TLS handshake; see `has_client_tls`.

    Returns
    -------
    dict of str
        `mix` only for systems with one, `reconnects` only with connections that take handshakes. Of stated rates, the
        share of reads, bytes of a row and how long rows are kept, for systems that know them.
    """
    known = options_of(scenario)
    rates = busy_hour_rates(demand, grown(demand))
    mean = "tps_mean" if "tps_mean" in known else "tps"
    found = {mean: _number(rates.total_per_s)}
    if demand.stated:
        return found | {name: text for name, text in _stated(demand) if name in known}
    session = session_requests(demand.hour)
    if "mix" in known:
        found["mix"] = mix_text({"auth": float(f"{session.auth:.4g}"), "acct": float(f"{session.acct:.4g}")})
    if "reconnects" in known and demand.connections is not None and client_tls:
        mixed = {name: found[name] for name in ("mix",) if name in found}
        statements = scenario(**mixed).statements_per_request()
        found["reconnects"] = _number(min(rates.handshakes_per_request / statements, 1.0))
    return found


def _stated(demand: Demand) -> Iterator[tuple[str, str]]:
    """Yield what stated rates and their data set, by option."""
    yield "read_fraction", _number(demand.reads_per_s / (demand.reads_per_s + demand.writes_per_s))
    if demand.data is not None:
        yield "row_bytes", _number(demand.data.row_bytes.low)
        if demand.keep_s:
            yield "keep", f"{_number(demand.keep_s)}s"
        if demand.data.compaction is not None:
            yield "compaction", demand.data.compaction
        for name in ("compression", "headroom", "usable"):
            share = getattr(demand.data, name)
            if share is not None:
                yield name, _number(share.low)
        if demand.data.disk_gib is not None:
            yield "disk_gib", _number(float(demand.data.disk_gib))


def with_demand(scenario: S, demand: Demand | None) -> S:
    """Return a scenario with the load of a demand; unchanged without a demand or with a rate of its own.

    Parameters
    ----------
    scenario : Scenario
        The layout. What it says of the mix and of reconnects stays.
    demand : Demand or None
        The demand.
    """
    kind = type(scenario)
    if demand is None or any(getattr(scenario, name) is not None for name in rate_fields(kind)):
        return scenario
    tls = has_client_tls(getattr(scenario, "encryption", None), getattr(scenario, "vpn", None))
    found = offered(demand, kind, tls)
    if not demand.stated:  # what a scenario says of the mix and of reconnects stays
        found = {name: text for name, text in found.items() if getattr(scenario, name) is None}
    return changed(scenario, **found)


def has_client_tls(encryption: str | None, vpn: str | None) -> bool:
    """Whether database clients themselves encrypt their links, so that each new connection takes a TLS handshake."""
    return encryption is not None and "client" in LINKS.get(in_order(encryption), ()) and vpn != "kernel"


def _number(value: float) -> str:
    """Return a number with six significant digits, without an exponent where it is readable."""
    return f"{float(f'{value:.6g}'):.15g}"


def layout_of(demand: Demand, scenario: Scenario, fitted: Fitted | None = None) -> Layout:
    """Return the layout for the demand.

    Parameters
    ----------
    demand : Demand
        The demand; its mix decides what the layout sustains.
    scenario : Scenario
        The layout.
    fitted : Fitted, optional
        The calibration; the system's own by default.

    Raises
    ------
    InputError
        If the system has no Cassandra nodes, or no rates.
    """
    system(scenario.system).component(Ratios).refuse(
        f"{scenario.system} has no capacity: its documents have ratios of throughput only"
    )
    nodes = scenario.cassandra_nodes()
    if nodes is None:
        raise InputError(f"{scenario.system} has no Cassandra nodes of its own, so data cannot be laid out over them")
    tls = has_client_tls(getattr(scenario, "encryption", None), getattr(scenario, "vpn", None))
    usual = offered(demand, type(scenario), tls)
    if demand.stated:
        scenario = with_demand(scenario, demand)  # its rate says how many rows are beyond the page cache
    words, capacity = _carried(scenario, usual, fitted)
    storm = {}
    if "mix" in usual:
        storm["mix"] = mix_text({"auth": float(demand.hour.authentication_requests or 1.0), "acct": 1.0})
    return Layout(
        words=words,
        cass_nodes=nodes[0],
        rf=nodes[1],
        capacity=capacity,
        reattach_capacity=_carried(scenario, storm, fitted)[1] if "mix" in usual else capacity,
        assumed=tuple(map(stated, system(scenario.system).component(MeasuredRange).unmeasured(scenario))),
    )


def _carried(scenario: Scenario, options: Mapping[str, str], fitted: Fitted | None) -> tuple[str, Band]:
    """Return a layout in words, and the mean rate that it sustains with the demand's mix and new connections."""
    work = {name: text for name, text in options.items() if name in ("mix", "reconnects")}
    case = resolve(changed(scenario, **work), fitted)
    return case.system.layout(case.scenario, case.values), peak_and_mean(case).mean_tps
