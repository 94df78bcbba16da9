"""Losses of nodes and data centres of a fitted cluster."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from capplan.layout.case import Case
from capplan.layout.ensemble import Places
from capplan.layout.situations import DC, Loss, Remainder
from capplan.layout.solution import Solution
from capplan.models.language.parameter import Values
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.pauses import RareDelay
from capplan.systems.cassandra.network import REPORTED, network, pauses, variation, waiting
from capplan.systems.cassandra.scenario import CassandraScenario
from capplan.systems.components.losses import NODE, ClusterLosses, Lost

LOSSES = {NODE: "a Cassandra node in each DC", DC: "the worst DC to lose"}


def outages(case: Case[CassandraScenario], losses: Sequence[Loss]) -> tuple[Remainder, ...]:
    """Return what each loss leaves, as `Losses.remainders`.

    The survivors have the work and the delays that the load tests show of the whole layout. No load test shows them
    with nodes down.
    """
    return _Losses(case).remainders(losses)


class _Losses(ClusterLosses[CassandraScenario]):
    def left(
        self, survived: CassandraScenario, lost: Lost, every: Values, values: Values, place: Places | None
    ) -> Solution:
        down = self.down(lost)

        def pausing(
            analysis: Analysis, rate_per_s: FloatArray, place: Places | None
        ) -> dict[str, tuple[RareDelay, ...]]:
            return pauses(survived, values if place is None else every, analysis, rate_per_s, place, down=down)

        left = network(survived, values, 1.0, down)
        return waiting(Solution(left, REPORTED, place=place, pausing=pausing, varying=partial(variation, values)))
