"""What a loss leaves of two tiers: exact capacities, copies that are too few, and the same from the engine."""

from dataclasses import replace

import pytest
from tests.systems.prior_draws import prior_draws
from tests.systems.two_tier.two_tier_tables import layout

from capplan.errors import InputError
from capplan.layout.situations import Loss, Losses, Remainder
from capplan.models.language.parameter import Values, defaults
from capplan.models.language.scenario import changed
from capplan.models.solver.analytic import Analysis
from capplan.systems.registry import resolve
from capplan.systems.two_tier import SYSTEM
from capplan.systems.two_tier.network import network
from capplan.systems.two_tier.scenario import TwoTierScenario

VALUES: Values = {**defaults(SYSTEM.parameters), "rounds": 2.0}
READS = TwoTierScenario(front_nodes=4, store_nodes=4, read_fraction=1.0)
WRITES = TwoTierScenario(front_nodes=40, store_nodes=4, rf=3, read_fraction=0.0)
FITTED = prior_draws(SYSTEM, [replace(layout(), clients=8, throughput_tps=1000.0)])


def capacity(found: Remainder) -> float:
    """Return the highest rate of what is left, per second."""
    assert found.solved is not None
    return float(found.solved(VALUES, None).capacity[0])


def remainders(scenario: TwoTierScenario, **counts: int) -> tuple[Remainder, ...]:
    """Return what a loss leaves."""
    return SYSTEM.component(Losses).remainders(resolve(scenario, FITTED), [Loss(counts)] if counts else [])


@pytest.mark.parametrize(("kind", "other"), [("front", "store_nodes"), ("node", "front_nodes")])
def test_a_tier_loses_the_share_of_its_lost_node(kind: str, other: str) -> None:
    """Where it is the bottleneck, and each request asks one node of it."""
    scenario = changed(READS, **{other: 40})
    whole = float(Analysis(network(scenario, VALUES, 1.0)).drift_per_s[0])
    assert capacity(remainders(scenario, **{kind: 1})[0]) == pytest.approx(3 / 4 * whole)


def test_a_write_has_fewer_copies_to_make() -> None:
    """Three of four nodes apply 9 / 4 copies of each write instead of four nodes three, so each has as many as before.

    Only the leader's work, which comes first and costs more than a copy, falls to fewer nodes.
    """
    alike = {**VALUES, "copy_share": 1.0}
    whole, left = (float(Analysis(network(WRITES, alike, 1.0, down)).drift_per_s[0]) for down in (0, 1))
    assert left == pytest.approx(whole)


@pytest.mark.parametrize(
    ("waits", "reads", "lost", "served"),
    [
        ("majority", 0.5, 1, True),
        ("majority", 1.0, 2, False),
        ("one", 0.5, 2, True),
        ("one", 0.5, 3, False),
        ("all", 0.5, 1, False),
        ("all", 1.0, 1, True),
    ],
)
def test_requests_need_the_copies_that_they_wait_for(waits: str, reads: float, lost: int, served: bool) -> None:
    """Of three. A majority leads, so reads need it, too; only writes wait for all."""
    scenario = changed(READS, rf=3, write_waits=waits, read_fraction=reads)
    (found,) = remainders(scenario, node=lost)
    assert (found.solved is not None) == served


def test_the_last_front_node_leaves_nothing_and_none_cannot_be_lost() -> None:
    (found,) = remainders(changed(READS, front_nodes=1), front=1)
    assert found.solved is None
    with pytest.raises(InputError, match="front runs on the store's nodes"):
        remainders(changed(READS, front_nodes=0), front=1)


def test_what_is_lost_by_default_depends_on_the_layout() -> None:
    """One node of each tier that has several."""
    assert [each.lost for each in remainders(READS)] == [{"node": 1}, {"front": 1}]
    assert [each.lost for each in remainders(changed(READS, front_nodes=0))] == [{"node": 1}]
