"""`size` finds what evaluating every layout of a grid finds, on random problems."""

import os

import pytest
from tests.planner.grid_problems import GridProblem

MANY = int(os.environ.get("CAPPLAN_TRUST_GRIDS", "0"))
QUICK = (6,)  # a yes at once
pytestmark = [] if MANY else [pytest.mark.slow]


@pytest.mark.parametrize("number", range(MANY) or QUICK)
def test_a_sizing_costs_what_the_cheapest_safe_layout_of_its_grid_costs(number: int) -> None:
    outcome = GridProblem(number).outcome()
    assert not outcome.false_no
    assert not outcome.false_yes
    assert outcome.machines_more <= max(1.0, 0.05 * (outcome.best or 0.0))
