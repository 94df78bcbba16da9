"""A budget of seconds becomes draws and requests by a rule; impossible budgets are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.errors import InputError
from capplan.models.language.distribution import Exponential
from capplan.models.language.network import Network
from capplan.models.language.parameter import defaults
from capplan.models.language.station import Station
from capplan.models.language.step import Visit, walk
from capplan.models.language.traffic import Open, RequestClass
from capplan.planner.predict.simulated_latency import Effort, check_budget, effort, steps
from capplan.systems.openprovider.network import network
from capplan.systems.openprovider.priors import PARAMETERS
from capplan.systems.openprovider.scenario import OpenproviderScenario

ONE_STEP = Network(
    "one", (Station("server", 1),), (RequestClass("ask", Visit("server", Exponential(1.0))),), Open(1.0, {"ask": 1.0})
)


def test_by_hand() -> None:
    """2 s less 20 us for one step, two threads, 10 visits of 200 ns: 1,999,980 requests, the square of 20 x 5,000."""
    assert effort(2.0, ONE_STEP, 10.0, 0.0, "compiled") == Effort(20, 99_999)
    assert effort(2.0, ONE_STEP, 10.0, 9_999.0, "compiled") == Effort(20, 90_000)


def test_simpy_simulates_as_much_as_it_can_in_the_time() -> None:
    assert effort(100.0, ONE_STEP, 10.0, 0.0, "simpy") == Effort(10, 50_000)


@pytest.mark.parametrize("budget_s", [1e-9, 0.01])
def test_there_is_a_least_effort(budget_s: float) -> None:
    assert effort(budget_s, ONE_STEP, 30.0, 5_000.0, "compiled") == Effort(6, 4_000)


@given(st.floats(1e-3, 3600), st.floats(1, 100), st.floats(0, 1e5))
def test_more_budget_measures_more(budget_s: float, visits: float, warmup: float) -> None:
    """Four times the budget are twice the draws (rounded), and no fewer requests in each."""
    less, more = (effort(factor * budget_s, ONE_STEP, visits, warmup, "compiled") for factor in (1, 4))

    assert 2 * less.draws - 1 <= more.draws <= 2 * less.draws + 1 or less.draws == 6
    assert more.draws >= less.draws
    assert more.requests >= less.requests * 0.8  # another draw may take some of them
    assert more.draws * more.requests >= less.draws * less.requests


def test_the_lowering_of_a_long_flow_is_paid_from_the_budget() -> None:
    layout = network(OpenproviderScenario(), defaults(PARAMETERS), 5000.0)

    assert steps(layout) == sum(1 for each in layout.classes for _ in walk(each.flow))
    assert effort(2.0, layout, 10.0, 0.0, "compiled").requests < effort(2.0, ONE_STEP, 10.0, 0.0, "compiled").requests


@pytest.mark.parametrize("budget_s", [1e-9, 2.0, 3600.0])
def test_possible_budgets(budget_s: float) -> None:
    check_budget(budget_s)


@pytest.mark.parametrize("budget_s", [0.0, -2.0, 1e9, float("inf"), float("nan")])
def test_impossible_budgets_are_refused(budget_s: float) -> None:
    with pytest.raises(InputError, match="1h"):
        check_budget(budget_s)
