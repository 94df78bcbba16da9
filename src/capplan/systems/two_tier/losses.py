"""Outages of front and store nodes: whether requests still succeed, and what remains."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from capplan.errors import InputError
from capplan.layout.case import Case
from capplan.layout.ensemble import Places
from capplan.layout.situations import Loss, Remainder
from capplan.layout.solution import Solution
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import changed
from capplan.systems.two_tier.network import REPORTED, network
from capplan.systems.two_tier.scenario import TwoTierScenario

NODE, FRONT_NODE = "node", "front"
LOSSES = {NODE: "a store node", FRONT_NODE: "a front node"}
_NAMES = {NODE: "store node", FRONT_NODE: "front node"}


def outages(case: Case[TwoTierScenario], losses: Sequence[Loss]) -> tuple[Remainder, ...]:
    """Return what each loss leaves: the survivors take over, with service demands from the load tests of the whole.

    Elections, and the copying of rows to further nodes, are not modelled.

    Parameters
    ----------
    case : Case
        The layout with its calibration.
    losses : sequence of Loss
        What is lost. If empty: one store node, and one front node where there are several.

    Returns
    -------
    tuple of Remainder

    Raises
    ------
    InputError
        If a front node is lost of a layout without any.
    """
    scenario = case.scenario
    usual = [Loss({NODE: 1})] if scenario.store_nodes > 1 else []
    usual += [Loss({FRONT_NODE: 1})] if scenario.front_nodes > 1 else []
    return tuple(_remainder(scenario, loss) for loss in losses or usual)


def _remainder(scenario: TwoTierScenario, loss: Loss) -> Remainder:
    nodes, fronts = loss.counts.get(NODE, 0), loss.counts.get(FRONT_NODE, 0)
    if fronts and not scenario.front_nodes:
        raise InputError(
            "a lost front node makes no sense without any: the front runs on the store's nodes, so lose node"
        )
    why = _why_unavailable(scenario, nodes, fronts)
    return Remainder(
        name="+".join(f"{count} {_NAMES[word]}{'s' * (count > 1)}" for word, count in loss.counts.items()),
        lost=loss.counts,
        assumed=why or _in_words(scenario, nodes),
        solved=None if why else partial(_left, scenario, nodes, fronts),
    )


def _why_unavailable(scenario: TwoTierScenario, nodes: int, fronts: int) -> str:
    """Return why requests for the row that has lost the most copies fail after a loss; empty if they succeed."""
    if fronts and fronts >= scenario.front_nodes:
        return "no front node is left"
    alive = max(scenario.rf - nodes, 0)
    if alive >= scenario.answering():
        return ""
    if not alive:
        return "a row may have no copy left" if scenario.store_nodes > nodes else "no store node is left"
    waits = {"majority": "a majority", "all": "all copies"}[scenario.write_waits]
    return f"unavailable: a request needs {waits}, {scenario.answering()} of {scenario.rf}, and a row may have {alive}"


def _in_words(scenario: TwoTierScenario, nodes: int) -> str:
    if not nodes:
        return "the others take over its clients"
    return f"a row has at least {scenario.rf - nodes} of {scenario.rf} copies left, and needs {scenario.answering()}"


def _left(scenario: TwoTierScenario, nodes: int, fronts: int, values: Values, place: Places | None) -> Solution:
    """Analyse what remains of a layout."""
    left = changed(scenario, front_nodes=scenario.front_nodes - fronts) if fronts else scenario
    return Solution(network(left, values, 1.0, nodes), REPORTED, place=place)
