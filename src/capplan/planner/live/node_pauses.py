"""The pauses of nodes in the fitted runs, and what they say of other layouts: pauses grow with the work of a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from capplan.evidence.load_test_row import LoadTestRow
from capplan.models.cassandra.pauses import parse_pauses, pooled
from capplan.models.language.parameter import defaults
from capplan.systems.cassandra import SYSTEM
from capplan.systems.cassandra.network import build_cluster, served
from capplan.systems.components.pauses.nodes import taking_part


def with_pauses(rows: Sequence[LoadTestRow], known: Sequence[LoadTestRow]) -> list[LoadTestRow]:
    """Return rows with the pauses that measured rows expect of them.

    A run has few pauses, so those of all runs of an operation are taken together, of the layout whose number of nodes
    is nearest. The record's rate counts what is sent per node. A node works on more of it the more replicas take part,
    so the rate is converted.

    Parameters
    ----------
    rows : sequence of LoadTestRow
        The rows; those without a measured row of their operation stay as they are.
    known : sequence of LoadTestRow
        Measured rows. Those without a record of pauses count for nothing.
    """
    return [replace(row, gc=_expected(row, [each for each in known if each.gc is not None])) for row in rows]


def _expected(row: LoadTestRow, known: Sequence[LoadTestRow]) -> str | None:
    same = [each for each in known if each.request_class == row.request_class]
    if not same:
        return row.gc
    nearest = min(abs(_nodes(each) - _nodes(row)) for each in same)
    near = [each for each in same if abs(_nodes(each) - _nodes(row)) == nearest]
    records = [parse_pauses(str(each.gc)) for each in near]
    work_per_s = [(each.throughput_tps or 0.0) / _nodes(each) * _taking_part(each) for each in near]
    found = pooled(records, [each.duration_s or 1.0 for each in near], work_per_s)
    if found.rate_per_s is None:
        return str(found)
    return str(replace(found, rate_per_s=found.rate_per_s / _taking_part(row)))


def _nodes(row: LoadTestRow) -> int:
    return sum(SYSTEM.row_scenario(row).nodes_by_dc())


def _taking_part(row: LoadTestRow) -> float:
    """Return the mean number of nodes that work on an operation as a replica."""
    scenario = SYSTEM.row_scenario(row)
    cluster = build_cluster(scenario, defaults(SYSTEM.parameters))
    return taking_part(scenario, cluster, served(scenario, cluster))
