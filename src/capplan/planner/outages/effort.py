"""How much is simulated for a budget of seconds of a nominal machine; see `capplan.planner.predict.budget`."""

from __future__ import annotations

from dataclasses import dataclass

from capplan.models.errors import InputError
from capplan.models.language.network import Network
from capplan.planner.predict.budget import LONGEST_BUDGET_S
from capplan.simulator.engine import simulate

EVENT_S = 300e-9
"""Nominal time for which one of two threads simulates an event."""
RUN_S = 5e-3
"""Nominal time to begin and to report a run."""
THREADS = 2
_PILOT_EVENTS = 20_000
_MOST_PILOT_S = 1000.0


@dataclass(frozen=True)
class Effort:
    """How much to simulate.

    Attributes
    ----------
    budget_s
        Seconds of a nominal machine for each loss or table.
    seed
        Seed of every random number.
    replications
        Number of replications, whatever they cost; None: what the budget pays for.
    """

    budget_s: float = 10.0
    seed: int = 1
    replications: int | None = None

    def check(self) -> None:
        """Check the numbers.

        Raises
        ------
        InputError
            If the budget is not above 0 and at most an hour, or there is no replication.
        """
        if not 0 < self.budget_s <= LONGEST_BUDGET_S:
            raise InputError(
                f"a budget of {self.budget_s:g} s is out of range: give more than 0 and at most 1h, such as '10s'"
            )
        if self.replications is not None and self.replications < 1:
            raise InputError(f"{self.replications} replications show nothing: give at least 1")


def run_cost_s(network: Network, duration_s: float, seed: int) -> float:
    """Return what a run costs in seconds of the nominal machine, from the events of a short one.

    The rule has no clock, so the same budget gives the same figures on every machine.
    """
    length_s, events = 0.05, 0
    while events < _PILOT_EVENTS and length_s < _MOST_PILOT_S:
        length_s *= 4
        events = simulate(network, length_s, seed=seed).events
    return events / length_s * duration_s * EVENT_S / THREADS
