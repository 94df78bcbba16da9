"""How much more regular than Poisson the arrivals at a station are because requests take turns.

A member that gets every K-th request of a Poisson stream sees Erlang arrivals: their squared coefficient of variation
is 1 / K. In heavy traffic, a wait is in proportion to the variance of the work that arrives. If a stream of visits has
the mean service time m, the part m² stems from the arrivals. Under processor sharing, the number of requests is in
proportion to that variance, too.

At a pool, more regular arrivals also reduce the variance of the number inside, though less if the times inside vary.

References
----------
A. E. Eckberg, "Generalized peakedness of teletraffic processes", *ITC* 10, 1983; H. C. Gromoll, "Diffusion
approximation for a processor sharing queue in heavy traffic", *Annals of Applied Probability* 14, 2004; W. Whitt, "The
queueing network analyzer", *Bell System Technical Journal* 62, 1983.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from scipy import special

from capplan.models.language.network import Network
from capplan.models.language.step import Batch, FanOut, ForkJoin, Hedge, If, Pick, Step, Visit, children
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.flow_analysis import weights


def missing_variance_s2(network: Network, share: Mapping[str, Number]) -> dict[str, Number]:
    """Return by how much taking turns reduces the variance of the work that a request brings, by station, in s².

    Visits in parallel branches and under conditions count as Poisson.
    """
    members = {station.name: station.count or 1 for station in network.stations}
    members |= {pool.name: pool.count or 1 for pool in network.pools}
    found: dict[str, Number] = {}
    for each in network.classes:
        for visit, weight, turns in _visits_in_turn(each.flow, share.get(each.name, 0.0), {}, members):
            less = weight * (1 - 1 / turns) * visit.demand.mean**2
            found[visit.station] = found.get(visit.station, 0.0) + less
    return found


def peakedness(arrival_scv: Number, holding_scv: Number) -> FloatArray:
    """Return the variance of the number inside an infinite server over that with Poisson arrivals.

    Parameters
    ----------
    arrival_scv : number or array (draws,)
        Squared coefficient of variation of the times between arrivals.
    holding_scv : number or array (draws,)
        That of the times inside, which are taken as gamma distributed.

    Returns
    -------
    array (draws,)
        1 + (`arrival_scv` - 1) E[min(S, S')] / E[S] for two independent times S and S' inside.
    """
    shape = 1 / np.maximum(holding_scv, 1e-6)
    smaller = 1 - np.exp(special.gammaln(shape + 0.5) - special.gammaln(shape + 1)) / np.sqrt(np.pi)
    return np.asarray(1 + (np.asarray(arrival_scv) - 1) * smaller)


def _visits_in_turn(
    step: Step, weight: Number, turns: Mapping[str, int], members: Mapping[str, int]
) -> Iterator[tuple[Visit, Number, int]]:
    """Yield the visits to members that take turns, how often each runs, and the number of members."""
    if isinstance(step, Visit) and step.member is not None and step.member in turns:
        yield step, weight, turns[step.member]
    if isinstance(step, (FanOut, ForkJoin, If, Hedge, Batch)):
        return
    if isinstance(step, Pick) and step.policy == "round_robin" and step.among in members:
        turns = {**turns, step.member: members[step.among]}
    for often, inside in zip(weights(step), children(step), strict=True):
        yield from _visits_in_turn(inside, weight * often, turns, members)
