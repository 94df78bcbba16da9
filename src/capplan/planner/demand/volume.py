"""The data that a demand leaves on the disks of Cassandra nodes, and how long these suffice.

A row is there from the start of its session until the retention after its end. Sessions of a time of up to an hour
count as in the busy hour, those of longer times with the mean rate of the day where this is more:

    sessions kept = max(busy rate * min(W, 1 h), daily rate * W),  W = length + retention.

Data are spread evenly over the nodes of a data centre, as with virtual nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from capplan.models.language.units import FloatArray
from capplan.models.results import Band
from capplan.planner.demand.demand import (
    DAY_S,
    HOUR_S,
    Data,
    Demand,
    compression,
    headroom,
    share_of_day,
    usable,
)
from capplan.planner.demand.uncertain import Between, band_of, growth_factors

GIB = 2.0**30
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
    hour = demand.busy_hour
    kept_s = float(hour.length_s) + float(data.retention_s)
    busy_per_s = float(demand.subscribers) * float(hour.sessions) / HOUR_S
    daily_per_s = busy_per_s * HOUR_S / (share_of_day(hour).draws(seed, _BUSY, 1.0) * DAY_S)
    sessions = np.maximum(busy_per_s * min(kept_s, HOUR_S), daily_per_s * kept_s)
    rows = (data.rows or Between(1.0, 1.0)).draws(seed, _ROWS)
    content = sessions * rows * data.row_bytes.draws(seed, _ROW_BYTES)
    if data.subscriber_bytes is not None:
        content = content + float(demand.subscribers) * data.subscriber_bytes.draws(seed, _SUBSCRIBER)
    free = headroom(data).draws(seed, _HEADROOM, 0.99)
    return Volume(
        data_gib=content * compression(data).draws(seed, _COMPRESSION, 1.0) / GIB,
        growth_factor=growth_factors(demand.growth, seed, GROWTH),
        room=usable(data).draws(seed, _USABLE, 1.0) * (1 - free),
    )


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
    """Return the disk that the fullest node needs, with the headroom of compaction; as `gib_per_node`."""
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
    """Return the months until a rate reaches a capacity; infinite if it never does.

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
    """Return the months until something has grown by a factor (draws,); infinite if it does not grow that far."""
    yearly = np.log(growth_factor)
    with np.errstate(divide="ignore", invalid="ignore"):
        months = _MONTHS * np.log(factor) / yearly
    return np.where(factor <= 1, 0.0, np.where(yearly > 0, months, np.inf))


def fullest(nodes_by_dc: Sequence[int], rf_by_dc: Sequence[int]) -> float:
    """Return the share of one copy of the data that the fullest node has."""
    return max(rf / nodes for nodes, rf in zip(nodes_by_dc, rf_by_dc, strict=True) if nodes)


def _grown(found: Volume, months: float) -> FloatArray:
    return np.asarray(found.data_gib * found.growth_factor ** (months / _MONTHS))


def _capacity_draws(capacity: Band) -> FloatArray:
    """Return draws of a capacity: below and above its median, each side as wide as its end of the band."""
    below = Between(capacity.low, capacity.value**2 / capacity.low).draws(1, _CAPACITY)
    above = Between(capacity.value**2 / capacity.high, capacity.high).draws(1, _CAPACITY)
    return np.where(below < capacity.value, below, above)
