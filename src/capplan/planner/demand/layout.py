"""The layout that a demand meets: its Cassandra nodes, and the rate that it sustains."""

from __future__ import annotations

from collections.abc import Mapping

from capplan.calibration.fit.fitted_file import Fitted
from capplan.models.errors import InputError
from capplan.models.language.request_mix import mix_text
from capplan.models.language.scenario import Scenario, changed
from capplan.models.results import Band
from capplan.planner.demand.demand import Demand, authentication_requests
from capplan.planner.demand.forecast import Layout
from capplan.planner.demand.offered import offered
from capplan.planner.predict.capacity import peak_and_mean
from capplan.systems.registry import resolve, system


def layout_of(demand: Demand, scenario: Scenario, fitted: Fitted | None = None) -> Layout:
    """Return the layout that a demand meets.

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
    if system(scenario.system).ratios_only:
        raise InputError(f"{scenario.system} has no capacity: its documents have ratios of throughput only")
    nodes = scenario.cassandra_nodes()
    if nodes is None:
        raise InputError(f"{scenario.system} has no Cassandra nodes of its own, so data cannot be laid out over them")
    usual = offered(demand, type(scenario), client_tls=False)
    storm = {"mix": mix_text({"auth": authentication_requests(demand.busy_hour), "acct": 1.0})}
    words, capacity = _carried(scenario, usual, fitted)
    return Layout(
        words=words,
        cass_nodes=nodes[0],
        rf=nodes[1],
        capacity=capacity,
        reattach_capacity=_carried(scenario, storm, fitted)[1] if "mix" in usual else capacity,
    )


def _carried(scenario: Scenario, options: Mapping[str, str], fitted: Fitted | None) -> tuple[str, Band]:
    """Return a layout in words, and the mean rate that it sustains with a mix."""
    mix = {name: text for name, text in options.items() if name == "mix"}
    case = resolve(changed(scenario, **mix), fitted)
    return case.system.layout(case.scenario, case.values), peak_and_mean(case).mean_tps
