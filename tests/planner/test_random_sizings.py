"""`size` agrees with an exhaustive simulation on random small problems."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest
from tests.planner.random_sizings import SYSTEM, Problem, side, simulated_failures

from capplan.layout.components import Machines
from capplan.planner.size.size import size
from capplan.planner.size.sizing import Sizing
from capplan.simulator.workers import in_process
from capplan.systems import registry

MANY = int(os.environ.get("CAPPLAN_TRUST_SIZINGS", "0"))
DRAWS, REQUESTS = (10_000, 4_000) if MANY else (1_000, 4_000)
ERROR_RATE = 1e-3  # of one comparison with a simulated risk


@pytest.fixture(autouse=True)
def farm() -> Iterator[None]:
    """Install the farm as another package would."""
    known = registry._locations()
    point = EntryPoint("farm", "tests.planner.random_sizings:SYSTEM", "capplan.systems")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(registry, "_locations", lambda: {**known, "farm": point})
        yield
    registry.system.cache_clear()


def sized(problem: Problem) -> Sizing:
    """Return the answer of `size`."""
    with in_process() as workers:
        return size(problem.base, problem.question, workers, problem.fitted)


def sides(problem: Problem, nodes: int) -> list[int]:
    """Return the side of the accepted risk on which the simulated one is, by situation; 0 where it is not certain."""
    accepted = 1 - problem.question.confidence
    return [
        side(simulated_failures(problem, nodes, word, DRAWS, REQUESTS), DRAWS, accepted, ERROR_RATE)
        for word in problem.conditions
    ]


@pytest.mark.parametrize(
    "problem",
    [pytest.param(Problem(number), marks=() if MANY else pytest.mark.slow) for number in range(MANY or 8)],
    ids=lambda each: f"farm {each.number}",
)
def test_a_sized_farm_is_safe_and_at_most_one_node_larger_than_the_best(problem: Problem) -> None:
    answer = sized(problem)
    if answer.chosen is None:  # no number of nodes makes a service time certain
        assert max(sides(problem, SYSTEM.component(Machines).sized["nodes"][1])) > -1
        return
    nodes = int(answer.chosen.fields["nodes"])
    assert max(sides(problem, nodes)) < 1
    if nodes > 2:
        assert max(sides(problem, nodes - 2)) > -1
