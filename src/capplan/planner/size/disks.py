"""Disks as a resource of a sizing: whether the data of a demand fit on the nodes of a layout at the planned time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capplan.models.language.scenario import Scenario
from capplan.models.language.units import FloatArray
from capplan.models.results import Band
from capplan.planner.demand.demand import Demand
from capplan.planner.demand.uncertain import growth_factors
from capplan.planner.demand.volume import GROWTH, Volume, fullest, months_until, volume

DATA = "data"
"""The word of the situation in which data must fit on the disks."""
DISK = "disk"
"""What limits it."""


@dataclass(frozen=True, eq=False)
class Disks:
    """The data of a demand, and the disks that they may fill.

    Attributes
    ----------
    volume : Volume
        One copy of the data today, and its growth.
    growth_factor : array (draws,)
        Growth of the rate in one year.
    years : float
        Planned time.
    disk_gib : float or None
        Disk of a node, GiB; None: any amount of data fits.
    """

    volume: Volume | None
    growth_factor: FloatArray
    years: float
    disk_gib: float | None = None

    def need_gib(self, scenario: Scenario, cells: int) -> FloatArray | None:
        """Return the disk that the fullest node needs at the planned time, GiB (draws,); None without data."""
        nodes = scenario.cassandra_nodes()
        if self.volume is None or nodes is None:
            return None
        found = self.volume
        grown = found.data_gib * found.growth_factor**self.years / found.room
        return np.asarray(fullest(*nodes) * grown / cells)

    def risk(self, scenario: Scenario, cells: int) -> float:
        """Return the probability that the data do not fit."""
        need = self.need_gib(scenario, cells)
        return 0.0 if need is None or self.disk_gib is None else float(np.mean(need > self.disk_gib))

    def months(self, scenario: Scenario, cells: int) -> Band | None:
        """Return the months from today until the data fill the disks; None without data or disks."""
        nodes = scenario.cassandra_nodes()
        if self.volume is None or self.disk_gib is None or nodes is None:
            return None
        return months_until(self.volume, *nodes, self.disk_gib * cells)


def disks_of(demand: Demand | None, seed: int) -> Disks | None:
    """Return the disks of a demand; None without one."""
    if demand is None:
        return None
    data = demand.data
    return Disks(
        volume=None if data is None else volume(demand, data, seed),
        growth_factor=growth_factors(demand.growth, seed, GROWTH),
        years=demand.years,
        disk_gib=None if data is None or data.disk_gib is None else float(data.disk_gib),
    )
