"""The search for the cheapest safe layout finds what trying every layout finds, where more machines are never worse."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from capplan.planner.size.search import Candidate, Family, Numbers, Search

MOST = 12  # machines of a kind
ACCEPTED = 0.1
MACHINES = st.integers(0, MOST + 1)


class Staircase(Search):
    """Made-up layouts of two kinds of machine: beside `a` of the first, `needed[a - 1]` of the second are safe."""

    def __init__(self, needed: list[int], prices: tuple[float, float]) -> None:
        target: Any = SimpleNamespace(disks=None, conditions=(), accepted_risk=ACCEPTED)
        super().__init__(target, Family({}, {"a": (1, MOST), "b": (1, MOST)}))
        self.needed, self.prices = needed, prices

    def risk(self, numbers: Numbers) -> float:
        """Return the risk, which grows with what is missing."""
        missing = max(0, self.needed[numbers[0] - 1] - numbers[1])
        return ACCEPTED + 0.9 * missing / (MOST + 1) if missing else 0.0

    def at(self, numbers: Numbers) -> Candidate:
        self.evaluated.add(numbers)
        scenario: Any = None
        self.seen[numbers] = found = Candidate(numbers, scenario, self._cost(numbers), self.risk(numbers))
        return found

    def _cost(self, numbers: Numbers) -> float:
        return sum(price * number for price, number in zip(self.prices, numbers, strict=True))

    def _scored(self, numbers: Numbers) -> float:
        return self.risk(numbers)

    def _serves(self, numbers: Numbers) -> bool:
        del numbers
        return True

    def _valid(self, low: Numbers, high: Numbers) -> Numbers:
        del low
        return high

    def _refuted(self, low: Numbers, high: Numbers) -> bool:
        del low
        return not self.safe(self.at(high))


@given(st.lists(MACHINES, min_size=MOST, max_size=MOST), st.tuples(st.floats(0.1, 10.0), st.floats(0.1, 10.0)))
def test_the_cheapest_layout_is_found(needed: list[int], prices: tuple[float, float]) -> None:
    search = Staircase(sorted(needed, reverse=True), prices)
    every = [(a, b) for a in range(1, MOST + 1) for b in range(1, MOST + 1)]
    costs = [search._cost(each) for each in every if search.risk(each) <= ACCEPTED]

    found = search.cheapest()

    assert (None if found is None else found.cost) == min(costs, default=None)
