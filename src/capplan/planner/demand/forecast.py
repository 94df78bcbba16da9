"""The answer of `capplan demand`: rates in the busy hour and after an outage, data on disk, and how long both fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from capplan.models.results import Band, plain
from capplan.planner.demand.busy_hour import (
    ClassRates,
    SessionRequests,
    busy_hour_rates,
    grown,
    session_requests,
    starts_per_s,
)
from capplan.planner.demand.demand import Demand, assumptions
from capplan.planner.demand.reattach import ReattachStorm, reattach, served_after_s
from capplan.planner.demand.sources import Assumption
from capplan.planner.demand.uncertain import band_of, growth_factors
from capplan.planner.demand.volume import (
    GROWTH,
    Volume,
    disk_gib_per_node,
    gib_per_node,
    months_until,
    months_until_rate,
    total_gib,
    volume,
)

SCHEMA = "capplan.demand/1"


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The layout that the demand meets.

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
    """

    words: str
    cass_nodes: tuple[int, ...]
    rf: tuple[int, ...]
    capacity: Band
    reattach_capacity: Band


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
    """How long something fits.

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
    fits
        Whether it fits at the planned time, by the medians.
    """

    what: str
    limit: Band
    needed: Band
    unit: str
    months: Band
    fits: bool


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The answer of `demand`.

    Attributes
    ----------
    subscribers_today
        Subscribers today.
    subscribers
        Subscribers at the planned time.
    years
        Planned time.
    growth_per_year
        Growth of the subscribers.
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
        Whether all of it fits at the planned time.
    assumptions
        Inputs that the file leaves out, with their sources.
    version
        The version of capplan.
    """

    subscribers_today: float
    subscribers: float
    years: float
    growth_per_year: Band
    starts_per_s: float
    open_sessions: float
    session: SessionRequests
    busy_hour: ClassRates
    reattach: ReattachStorm
    months: tuple[Month, ...]
    layout: Layout | None
    disk_needed_gib: Band | None
    reattach_served_s: float | None
    fits: tuple[Fit, ...]
    answer: bool
    assumptions: tuple[Assumption, ...]
    version: str

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON has it."""
        return {"schema": SCHEMA, **plain(self)}


def forecast(demand: Demand, layout: Layout | None = None, seed: int = 1) -> Forecast:
    """Return what a demand asks at its planned time and until then.

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
    return Forecast(
        subscribers_today=float(demand.subscribers),
        subscribers=subscribers,
        years=demand.years,
        growth_per_year=band_of(growth_factors(demand.growth, seed, GROWTH) - 1),
        starts_per_s=starts_per_s(demand, subscribers),
        open_sessions=subscribers * demand.busy_hour.open_sessions,
        session=session_requests(demand.busy_hour),
        busy_hour=usual,
        reattach=reattach(demand, subscribers),
        months=tuple(_month(demand, layout, found, seed, month) for month in _times(demand.months)),
        layout=layout,
        disk_needed_gib=None
        if layout is None or found is None
        else disk_gib_per_node(found, layout.cass_nodes, layout.rf, demand.months),
        reattach_served_s=None
        if layout is None
        else served_after_s(demand, subscribers, layout.reattach_capacity.value),
        fits=fits,
        answer=all(each.fits for each in fits),
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
    return band_of(busy_hour_rates(demand, float(demand.subscribers)).total_per_s * factors)


def _fits(demand: Demand, layout: Layout, found: Volume | None, seed: int) -> Iterator[Fit]:
    needed, today = _rate(demand, seed, demand.months), _rate(demand, seed, 0.0)
    months = months_until_rate(growth_factors(demand.growth, seed, GROWTH), today.value, layout.capacity)
    yield Fit(
        what="rate",
        limit=layout.capacity,
        needed=needed,
        unit="requests per second",
        months=months,
        fits=needed.value <= layout.capacity.value,
    )
    if found is None or demand.data is None or demand.data.disk_gib is None:
        return
    disk_gib = float(demand.data.disk_gib)
    needed = disk_gib_per_node(found, layout.cass_nodes, layout.rf, demand.months)
    yield Fit(
        what="disk",
        limit=Band.exactly(disk_gib),
        needed=needed,
        unit="GiB",
        months=months_until(found, layout.cass_nodes, layout.rf, disk_gib),
        fits=needed.value <= disk_gib,
    )
