"""What an answer rests on where nobody has measured the cluster: published ones, of which it is one."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from capplan.answers.number_words import significant
from capplan.errors import InputError
from capplan.layout.case import Case
from capplan.layout.components import Machines
from capplan.layout.fitted_file import Fitted
from capplan.layout.table_system import unloaded
from capplan.models.language.scenario import Scenario, changed
from capplan.models.language.units import FloatArray
from capplan.planner.measured import CAPACITY, THROUGHPUT, measured, variance_lost

CORES = 16
"""Cores of the node whose rate is told."""
CLIENTS_OF_A_NODE = (8, 64, 512)
"""Clients for each node in the three rows that a reader is told to measure: before, about and beyond the knee."""
_FEWER = 8  # one draw in so many shows how much a row tells
_NORMAL = 1.645


def rests_on(case: Case[Any]) -> tuple[str, ...]:
    """Return how many published clusters an answer rests on, what a node carries, and what load tests would do.

    Parameters
    ----------
    case : Case
        The layout with its calibration.

    Returns
    -------
    tuple of str
        One text; none if somebody has measured the cluster.
    """
    if not case.fitted.clusters:
        return ()
    layout = unloaded(case.scenario)
    words = [f"{len(case.fitted.clusters)} published clusters on fresh data; none is yours."]
    if not getattr(layout, "one_host", False):
        words += [_of_a_node(case, layout), _narrowed(case, layout)]
    return (" ".join(words).rstrip(),)


def _of_a_node(case: Case[Any], layout: Scenario) -> str:
    """Return what one node with the usual cores carries of such requests, as a node of this layout."""
    alike = case.changed(changed(layout, node_cores=CORES))
    nodes = sum(case.system.component(Machines).counts(layout).values())
    low, middle, high = np.quantile(alike.solution.capacity / nodes, (0.05, 0.5, 0.95)).tolist()
    ends = f"{significant(low)} to {significant(high)}"
    return f"One node of {CORES} vCPU carries {significant(middle)} such requests per second ({ends})."


def _narrowed(case: Case[Any], layout: Scenario) -> str:
    try:
        before, after = _ratios(case, case.fitted, layout)
    except InputError:  # such as more clients than the solver takes
        return ""
    clients = ", ".join(f"{each:,}" for each in CLIENTS_OF_A_NODE[:-1])
    return (
        f"Three load tests of yours, with {clients} and {CLIENTS_OF_A_NODE[-1]:,} clients for each node, would leave a "
        f"factor of {after:.1f} between the ends of this band, of {before:.1f} now."
    )


@lru_cache(maxsize=64)
def _ratios(case: Case[Any], fitted: Fitted, layout: Scenario) -> tuple[float, float]:
    """Return high over low of the capacity's band, before and after three rows with closed clients."""
    few = replace(fitted, draws=fitted.draws[::_FEWER])
    own = replace(case, fitted=few, scenario=layout, offered_per_s=None, axes_of=None)
    nodes = sum(case.system.component(Machines).counts(layout).values())
    logs: list[FloatArray] = []
    for clients in CLIENTS_OF_A_NODE:
        test = measured(replace(own, scenario=changed(layout, clients=clients * nodes)), layout)
        logs.append(np.log(test.draws[THROUGHPUT]))
    now = measured(own)
    asked, scatter = np.log(now.draws[CAPACITY]), now.scatter[CAPACITY]
    lost = variance_lost(asked, np.stack(logs), np.full(len(logs), scatter))
    sds = np.sqrt([float(np.var(asked)) + scatter**2, max(float(np.var(asked)) - lost, 0.0) + scatter**2])
    before, after = np.exp(2 * _NORMAL * sds).tolist()
    return before, after
