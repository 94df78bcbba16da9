"""Garbage-collection pauses that nobody measured: those of published nodes at the work of a layout, as a condition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from capplan.answers.condition import Unmeasured
from capplan.answers.number_words import to_digits
from capplan.layout.case import Case
from capplan.layout.components import Pauses
from capplan.models.cassandra.pauses import ReportedPauses
from capplan.models.solver.pauses import NodePauses

_LEAST = 0.01  # of the median share: as good as no pauses
_TINY = 1e-9
_WORST = 0.95  # share of the published nodes that pause no more


@dataclass(frozen=True, kw_only=True)
class AssumedPauses(Unmeasured):
    """Pauses of a node of a layout; a value is their share of the time, in percent.

    Attributes
    ----------
    mean_s
        Mean length at the median share, seconds.
    slope
        How the length grows with the share among published nodes, as a power.
    rate_per_s
        Operations per second that clients send, over the number of nodes.
    """

    mean_s: float
    slope: float
    rate_per_s: float

    @property
    def drawn(self) -> bool:
        """Published nodes differ, and the figures have all of them."""
        return True

    @property
    def looked_at(self) -> tuple[float, float]:
        """From hardly any pauses to the worst that can be expected."""
        return _LEAST * self.value, self.expected[1]

    def as_field(self, value: float) -> str:
        """Return a record of the pauses, whose share grows with the operations of a node."""
        return str(ReportedPauses(value / 100, self._mean_s(value), rate_per_s=self.rate_per_s))

    def unit_at(self, value: float) -> str:
        """Return what a share counts, with the length of the pauses."""
        return f"{self.unit} at {_ms(self._mean_s(value))}"

    def _mean_s(self, share: float) -> float:
        """Return the mean length of the pauses of published nodes with a share, seconds."""
        return float(self.mean_s * (share / self.value) ** self.slope)


def assumed_pauses(case: Case[Any], offered_per_s: float) -> AssumedPauses | None:
    """Return the assumed pauses of a layout; None if they are stated, or no objective depends on them.

    Parameters
    ----------
    case : Case
        The layout with its objectives.
    offered_per_s : float
        Offered peak rate, requests per second.
    """
    timed = (m for each in case.objectives for m in each.metrics() if m.kind == "duration" and m.statistic != "mean")
    pauses = pauses_if_assumed(case, offered_per_s) if any(timed) else None
    if pauses is None:
        return None
    rate_per_s = _mean_per_s(case, offered_per_s)
    share, mean_s = 100 * np.asarray(pauses.share), np.asarray(pauses.mean_s)
    logs = np.log(share), np.log(mean_s + np.zeros_like(share))
    low, middle, high = (float(each) for each in np.quantile(share, (1 - _WORST, 0.5, _WORST)))
    length_s, nodes = float(np.median(mean_s)), sum(case.scenario.cassandra_nodes()[0])
    (scatter, common), _ = np.cov(*logs)
    slope = float(common / scatter) if scatter > _TINY else 0.0  # all nodes pause for as long as a collector can
    words = [
        f"{to_digits(each, 2)} % of the time at {_ms(length_s * (each / middle) ** slope)}"
        for each in (low, middle, high)
    ]
    return AssumedPauses(
        name="GC pauses of a node",
        field="gc",
        value=middle,
        expected=(low, high),
        source="published nodes",
        as_tested=f"published nodes: {words[1]}",
        where="",
        unit="% of the time",
        otherwise=f"published nodes: {words[0]} to {words[2]}",
        measurement="GC pauses of one node under this load",
        mean_s=length_s,
        slope=slope,
        rate_per_s=rate_per_s * case.scenario.statements_per_request() / nodes,
    )


def pauses_if_assumed(case: Case[Any], offered_per_s: float) -> NodePauses | None:
    """Return the pauses of a mean node at an offered peak rate; None where they are stated, or not modelled."""
    of_node = case.system.component(Pauses).of_node
    if of_node is None or getattr(case.scenario, "gc", "") is not None:
        return None
    values = case.system.values(case.fitted, case.scenario)
    return of_node(case.scenario, values, _mean_per_s(case, offered_per_s))


def _mean_per_s(case: Case[Any], offered_per_s: float) -> float:
    return offered_per_s / float(np.median(case.solution.burst_ratio))


def _ms(time_s: float) -> str:
    return f"{to_digits(1e3 * time_s, 2)} ms"
