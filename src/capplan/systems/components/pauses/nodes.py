"""Garbage-collection pauses of the nodes of a layout: in closed form, and in a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from capplan.layout.solution import kind_of
from capplan.models.cassandra.cluster import Cluster, Costs, needed_nodes, work_at_needed_nodes_s
from capplan.models.cassandra.pauses import node_pauses, parse_pauses
from capplan.models.language.distribution import Exponential, Lognormal
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.station import Pauses
from capplan.models.language.units import Number
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.pauses import NodePauses
from capplan.systems.components.data_centres import ClusterScenario


def pauses_of(
    scenario: ClusterScenario, cluster: Cluster, shares: Mapping[int, float], values: Values, rate_per_s: Number
) -> NodePauses:
    """Return the pauses of a mean node of a layout.

    Parameters
    ----------
    scenario : ClusterScenario
        The layout.
    cluster : Cluster
        Its nodes, with those that are down.
    shares : mapping of int to float
        Share of the clients by data centre.
    values : mapping
        Parameter values; see `node_pauses`.
    rate_per_s : number or array (..., draws)
        Mean rate, requests per second over all data centres.
    """
    nodes = taking_part(scenario, cluster, shares)
    sent_per_s = rate_per_s * sum(scenario.statements().values()) / sum(cluster.alive)
    reported = None if scenario.gc is None else parse_pauses(scenario.gc)
    return node_pauses(values, sent_per_s, nodes, reported, scenario.young_bytes())


def taking_part(scenario: ClusterScenario, cluster: Cluster, shares: Mapping[int, float]) -> float:
    """Return the mean number of nodes at which a statement has work as a replica; parameters as for `pauses_of`."""
    levels, statements = scenario.levels(), scenario.statements()
    return sum(
        share * often / sum(statements.values()) * cluster.taking_part(dc, levels[operation], operation)
        for operation, often in statements.items()
        if often
        for dc, share in shares.items()
    )


def needed_by_operation(scenario: ClusterScenario, cluster: Cluster, shares: Mapping[int, float]) -> dict[str, float]:
    """Return the mean number of nodes of which each alone delays a statement, by operation; see `pauses_of`."""
    return {
        operation: sum(share * needed_nodes(cluster, dc, level, operation) for dc, share in shares.items())
        for operation, level in scenario.levels().items()
    }


def relative_needs(
    scenario: ClusterScenario,
    cluster: Cluster,
    shares: Mapping[int, float],
    asked: Mapping[str, Mapping[str, Costs]],
    analysis: Analysis,
    kind: str,
    place: NDArray[np.intp] | None,
) -> dict[str, tuple[Number, Number]]:
    """Return what requests wait for at a node divided by what a visit in its queue needs, by class.

    Parameters
    ----------
    scenario, cluster, shares
        As for `pauses_of`.
    asked : mapping of mappings of Costs
        Costs at a node by operation of a request, by class.
    analysis : Analysis
        The network.
    kind : str
        Kind of the stations of the nodes, such as `cassandra`.
    place : array of int (draws,) or None
        For each draw, the index of that which represents it in the analysis.

    Returns
    -------
    dict of pairs of numbers or arrays (draws,)
        By class; see `pause_delays`.
    """
    every = [(analysis.members[name], each) for name, each in analysis.demands.items() if kind_of(name) == kind]
    all_s = sum(members * each.mean_s for members, each in every)
    left_s = sum(members * each.second_moment_s2 for members, each in every) / (2 * all_s)
    coordinators = sum(share * (1 - cluster.own_share(dc)) for dc, share in shares.items())
    visited = sum(scenario.statements().values()) * (taking_part(scenario, cluster, shares) + coordinators)
    in_queue_s = [_represented(each, place) for each in (all_s / visited, left_s)]
    needed, levels = needed_by_operation(scenario, cluster, shares), scenario.levels()
    found: dict[str, tuple[Number, Number]] = {}
    for name, costs in asked.items():
        work_s = sum(
            share * work_at_needed_nodes_s(cluster, of, dc, levels[operation], operation)
            for operation, of in costs.items()
            for dc, share in shares.items()
        )
        own_s = work_s / sum(needed[operation] for operation in costs)
        found[name] = own_s / in_queue_s[0], own_s / in_queue_s[1]
    return found


def _represented(values: Number, place: NDArray[np.intp] | None) -> Number:
    """Give every draw the value of its representative."""
    return np.asarray(values)[place] if place is not None and np.size(values) > 1 else values


def paused(network: Network, kind: str, pauses: NodePauses) -> Network:
    """Return a network for a simulation whose nodes pause.

    Parameters
    ----------
    network : Network
        The network without pauses.
    kind : str
        Kind of the stations that pause, such as `cassandra`.
    pauses : NodePauses
        Numbers; lengths are lognormal.
    """
    share, mean_s, scatter = (float(np.asarray(each).squeeze()) for each in pauses[:3])
    if not share * mean_s:
        return network
    lengths = Lognormal(mean_s, max(scatter, 1e-3) ** 2)
    process = Pauses(Exponential(mean_s * (1 - share) / share), lengths, name="gc")
    stations = (
        replace(each, pauses=(*each.pauses, process)) if kind_of(each.name) == kind else each
        for each in network.stations
    )
    return replace(network, stations=tuple(stations))
