"""Failures of a proposed layout: the first minute of a loss, writes that are lost, and subscribers that return."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from capplan.answers.results import rounded
from capplan.layout.components import Ratios
from capplan.layout.fitted_file import Fitted
from capplan.layout.situations import DC, Losses, losses_of
from capplan.layout.system import System
from capplan.models.cassandra.consistency import need
from capplan.models.language.scenario import Scenario
from capplan.planner.demand.demand import Demand
from capplan.planner.demand.forecast import grown, reattach, served_after_s
from capplan.planner.outages.outages import OutagesQuestion, simulated_losses
from capplan.planner.outages.transient import Effort, Times
from capplan.planner.predict.simulated_latency import LONGEST_BUDGET_S
from capplan.planner.proposal.proposal import FirstMinute, MassReturn
from capplan.systems.components.data_centres import ClusterScenario
from capplan.systems.components.losses import NODE
from capplan.systems.registry import resolve

_LEAST_TPS = 10.0  # at fewer requests, some seconds have none
_TIMES = Times(at_s=15.0, lasts_s=45.0, after_s=10.0)


def losses_to_simulate(its: System[Any], scenario: Scenario, survive: Sequence[str]) -> tuple[str, ...]:
    """Return the losses of a layout whose first minute is simulated: those to survive first, then all others."""
    kinds = its.component(Losses).kinds
    every = dict.fromkeys((*(word for word in survive if word in kinds), *kinds))
    only_dc = getattr(scenario, "dcs", 1) == 1
    if its.component(Ratios).of is not None or float(np.max(scenario.offered_per_s() or 0.0)) < _LEAST_TPS:
        return ()
    return tuple(word for word in every if not (word == DC and only_dc))


def first_minute(scenario: Scenario, fitted: Fitted, seed: int, word: str) -> FirstMinute:
    """Simulate a loss once, with the parameters nearest to the medians.

    Parameters
    ----------
    scenario : Scenario
        The layout at its planned rate.
    fitted : Fitted
        The calibration.
    seed : int
        Seed of every random number.
    word : str
        What is lost, by a word of `--survive`.
    """
    case = resolve(scenario, fitted, seed)
    rate = float(case.given_per_s or 0.0)
    lost = case.system.component(Losses)
    remainders = lost.remainders(case.at(rate), losses_of((word,), lost.kinds, getattr(scenario, "dcs", 1)))
    question = OutagesQuestion((word,), _TIMES, effort=Effort(LONGEST_BUDGET_S, seed, 1))
    ((_, found),) = simulated_losses(case, rate, remainders, question)
    back_s = found.back_after_loss_s.value
    completed = {each.name: each.completed_per_s / found.phases[0].completed_per_s for each in found.phases}
    return FirstMinute(
        loss=word,
        noticed_after_s=found.detection_s,
        lasts_s=found.returned_s - found.lost_s,
        completed_until_noticed=rounded(completed["undetected"]),
        completed_afterwards=rounded(completed["detected"]),
        unanswered=rounded(found.unanswered_share),
        back_after_s=None if back_s is None else rounded(back_s),
        keeps_writes=keeps_writes(scenario, word),
    )


def keeps_writes(scenario: Scenario, word: str) -> bool | None:
    """Return whether every acknowledged write has a replica that a loss leaves; None for a system without levels.

    Parameters
    ----------
    scenario : Scenario
        The layout.
    word : str
        What is lost, by a word of `--survive`.
    """
    if not isinstance(scenario, ClusterScenario):
        return None
    level, replicas = scenario.consistency_write, scenario.rf_by_dc()
    dcs = range(len(replicas))
    lost = [[count * (dc == gone) for dc, count in enumerate(replicas)] for gone in dcs]
    if word != DC:
        lost = [[int(word == NODE)] * len(replicas)]
    needs = [need(level, replicas, local) for local in dcs]
    return all(
        each.total > sum(gone) or any(count > gone[dc] for dc, count in each.by_dc.items())
        for each in needs
        for gone in lost
    )


def mass_return(demand: Demand, capacity_tps: float) -> MassReturn:
    """Return what subscribers ask who come back at once after an outage.

    Parameters
    ----------
    demand : Demand
        The demand.
    capacity_tps : float
        The rate that the layout carries with the mix of a re-attach, requests per second.
    """
    subscribers = grown(demand)
    storm, served_s = reattach(demand, subscribers), served_after_s(demand, subscribers, capacity_tps)
    return MassReturn(
        peak_tps=rounded(storm.peak.rates.total_per_s),
        times_busy_hour=rounded(storm.times_busy_hour),
        served_after_s=rounded(served_s) if math.isfinite(served_s) else None,
    )
