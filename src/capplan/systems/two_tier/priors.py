"""Priors of a two-tier system, centred on what a load-test table shows at a glance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from capplan.calibration.tables.overhead import OVERHEAD, overhead
from capplan.calibration.tables.prior_centres import ceiling_over, median_unloaded_s
from capplan.calibration.tables.rows import TableRow, rate_per_s, response_s
from capplan.models.language.parameter import Parameter
from capplan.models.language.scenario import changed
from capplan.systems.two_tier.network import PARAMETERS, network
from capplan.systems.two_tier.scenario import TwoTierScenario

_IDLE_LOG = 4.0  # ceiling of the logs over that of the nodes, where no curve shows that batches lengthen a write
_QUEUED = 0.1  # unloaded time over the shortest response where each layout was measured at one load: a guess
ROUNDS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""How often a request may take a lane in each tier: what the fit tries."""
TIMES = {
    "read": ("delay_s", "front_read_s", "store_read_s"),
    "write": ("front_write_s", "store_write_s", "commit_s"),
}
"""The times of an unloaded request of each class, which are scaled together."""


def priors(rows: Sequence[TableRow]) -> tuple[Parameter, ...]:
    """Return the parameters with priors for a table.

    The times of a class are scaled so that an unloaded request takes as long as the shortest one measured; of a write,
    the commit alone, as a flush may take long and the work hardly does. The ceiling of the logs, by what a write adds
    to its batch, is above the highest throughput measured: the less queueing that row shows, the further. Where no
    layout was measured at two loads, the nodes rather than the logs are taken as the limit.
    """
    found = {each.name: each for each in PARAMETERS}
    alone, curved = {name: _shortest(rows, name) for name in TIMES}, not _of_one_load(rows)
    for name, names in TIMES.items():
        shortest = alone[name]
        if shortest is None:
            continue
        row, seconds = shortest
        seconds *= 1.0 if curved else _QUEUED
        usual = _unloaded_s(row, name)
        if name == "write" and curved and seconds > usual:  # a commit may take long, and work on a write hardly does
            found["commit_s"] = replace(found["commit_s"], value=PARAMETER["commit_s"] + seconds - usual)
            continue
        also = ("delay_s",) if name == "write" and alone["read"] is None else ()
        for each in (*names, *also):
            found[each] = replace(found[each], value=PARAMETER[each] * seconds / usual)
    responses = [response_s(row) for row in rows if response_s(row)]
    if responses:
        found[OVERHEAD] = overhead(rows, min(responses))
    rates = [(rate_per_s(row), row) for row in rows if rate_per_s(row)]
    if rates:
        highest, fastest = max(rates, key=lambda each: each[0])
        ceiling = ceiling_over(rows, fastest) * highest
        most = max(_per_log(row, rate) for rate, row in rates)
        if most:
            full_s = highest / ceiling / most
            appended = full_s if curved else min(full_s / _IDLE_LOG, PARAMETER["append_s"])
            found["append_s"] = replace(found["append_s"], value=appended)
    return tuple(found.values())


PARAMETER = {each.name: each.value for each in PARAMETERS}


def _shortest(rows: Sequence[TableRow], name: str) -> tuple[TableRow, float] | None:
    """Return the row with the shortest response of a class, and that response in seconds."""
    share = {"read": 1.0, "write": 0.0}[name]
    own = [row for row in rows if row.request_class == name or (row.layout.read_fraction == share)]
    mixed = own or [row for row in rows if 0 < row.layout.read_fraction < 1]
    known = [(row, response_s(row)) for row in mixed if response_s(row)]
    return min(known, key=lambda each: each[1], default=None)


def _per_log(row: TableRow, rate: float) -> float:
    """Return the writes per second that each log of a layout takes."""
    layout: TwoTierScenario = row.layout
    return rate * (1 - layout.read_fraction) * layout.rf / layout.store_nodes


def _of_one_load(rows: Sequence[TableRow]) -> bool:
    """Whether no layout was measured at two loads, so that even the shortest response may be mostly queueing."""
    loads = defaultdict(set)
    for row in rows:
        loads[row.layout].add(row.load)
    return max(map(len, loads.values())) == 1


def _unloaded_s(row: TableRow, name: str) -> float:
    """Return the time of an unloaded request of a class by the medians of the priors."""
    share = row.layout.read_fraction
    layout = row.layout if 0 < share < 1 else changed(row.layout, read_fraction={"read": 1.0, "write": 0.0}[name])
    return median_unloaded_s(PARAMETERS, sum(TIMES.values(), ()), lambda values: network(layout, values, 1.0))
