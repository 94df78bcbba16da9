"""`size` agrees with an exhaustive simulation on random small problems."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest
from tests.planner.random_sizings import SYSTEM, Problem, exceeds, simulated_failures

from capplan.planner.size.size import size
from capplan.planner.size.sizing import Sizing
from capplan.simulator.experiments.workers import in_process
from capplan.systems import registry

MANY = int(os.environ.get("CAPPLAN_TRUST_SIZINGS", "0"))
DRAWS, REQUESTS = (10_000, 20_000) if MANY else (2_000, 6_000)
ERROR_RATE = 0.01  # of one comparison with a simulated risk


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


def simulated_risk_exceeds(problem: Problem, nodes: int) -> bool:
    """Whether some situation's simulated risk certainly lies above the accepted one."""
    accepted = 1 - problem.question.confidence
    return any(
        exceeds(simulated_failures(problem, nodes, word, DRAWS, REQUESTS), DRAWS, accepted, ERROR_RATE)
        for word in problem.conditions
    )


@pytest.mark.parametrize("problem", [Problem(number) for number in range(MANY or 4)], ids=str)
def test_a_sized_farm_is_safe_and_no_farm_with_two_nodes_less_is(problem: Problem) -> None:
    answer = sized(problem)
    assert answer.chosen is not None
    nodes = int(answer.chosen.fields["nodes"])
    assert not simulated_risk_exceeds(problem, nodes)
    if nodes > 2:
        assert simulated_risk_exceeds(problem, nodes - 2)
    assert SYSTEM.name == answer.system
