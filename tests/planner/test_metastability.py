"""Metastability: published cases, and laws that hold whatever the numbers are.

Each verdict is a simulation with a fixed seed. Where the load with all attempts exceeds the capacity, the queue grows
linearly, so verdicts do not hang on chance; where chance decides, the test says how often it would fail.
"""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.models.language.distribution import Exponential
from capplan.models.language.document import load, read_toml
from capplan.models.language.network import Network
from capplan.models.language.station import Pool, RateTable, Station
from capplan.models.language.step import Acquire, Visit
from capplan.models.language.traffic import Open, RequestClass, Retry
from capplan.planner.outages.metastability import (
    Load,
    RetryQuestion,
    Trigger,
    clopper_pearson,
    largest,
    metastability,
    screened,
)
from capplan.planner.outages.outages_answer import RecoveryVerdict
from capplan.planner.outages.places import PATIENT, ClientOptions, Return, clients_of
from capplan.planner.outages.transient import Effort

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "retries-that-stay.toml"


def server(rate: float, capacity: float, timeout: float | None, attempts: int, queue: int | None = None) -> Network:
    """Return an M/M/1 queue whose clients time out and try again at once; of bounded length if `queue` is given."""
    visit = Visit("server", Exponential(1 / capacity))
    flow = visit if queue is None else Acquire("place", visit)
    retry = Retry(attempts, 0.0) if attempts > 1 else None
    return Network(
        name="server",
        stations=(Station("server", 1),),
        pools=() if queue is None else (Pool("place", 1, queue),),
        classes=(RequestClass("request", flow, timeout, retry),),
        traffic=Open(rate, {"request": 1.0}),
    )


NEVER_NOTICED = Return(1e6)


def recoveries(
    network: Network, trigger: Trigger, attempts: tuple[int, ...], horizon_s: float | None = None, count: int = 8
) -> list[RecoveryVerdict]:
    """Return the verdicts of simulations."""
    clients = clients_of(network, ClientOptions(), PATIENT)
    question = RetryQuestion(
        trigger, attempts, clients, horizon_s=horizon_s, effort=Effort(20.0, 1, count), limits=False
    )
    return list(metastability(network, question, Load(None)).verdicts)


def down(*lengths_s: float) -> Trigger:
    """Return a trigger: the server stands still, and its clients keep sending."""
    return Trigger("server down", lengths_s, ("server",), how=NEVER_NOTICED)


def bronson(rate: float) -> Network:
    """Return the published example at another rate."""
    network = load(Network, read_toml(EXAMPLE), EXAMPLE.name)
    return replace(network, traffic=Open(rate, {"query": 1.0}))


def test_the_database_of_bronson_stays_down_after_ten_seconds_and_recovers_below_half_of_its_capacity() -> None:
    """HotOS 2021, section 2.1: 280 of 300 queries per second, one retry after 1 s, an outage of 10 s; 150 is safe."""
    outage = Trigger("database down", (10.0,), ("database",), how=NEVER_NOTICED)
    once, again = recoveries(bronson(280.0), outage, (1, 2), 260.0, 3)
    assert once.always
    assert again.recovered == 0
    assert again.completed_share < 0.01  # "goodput is zero"
    (safe,) = recoveries(bronson(140.0), outage, (2,), 260.0, 3)
    assert safe.always


def test_the_server_of_metafor_stays_down_with_its_retries_and_serves_without_them() -> None:
    """Its README has 9.5/s on 10/s, a queue of 100, a timeout of 3 s and 4 retries."""
    once, again = recoveries(server(9.5, 10.0, 3.0, 5, queue=100), down(0.1), (1, 5), 3000.0)
    assert again.recovered == 0
    assert again.completed_share < 0.1
    assert once.completed_share > 0.6


def test_a_bounded_queue_that_is_hardly_longer_than_the_timeout_is_left_by_chance() -> None:
    """The project's test has a timeout of 9 s and 3 retries: 100 in the queue take 10 s, so some are answered in time.

    That is metastability in its proper sense: both states last, and the longer one waits the more runs have recovered.
    """
    network = server(9.5, 10.0, 9.0, 4, queue=100)
    soon, late = (recoveries(network, down(20.0), (4,), horizon_s)[0] for horizon_s in (60.0, 2000.0))
    assert soon.recovered < 8
    assert soon.recovered < late.recovered


def test_the_screen_knows_the_waits_of_an_mm1_queue() -> None:
    """P(T > t) = exp(-(C - L) * t): with 3 s and 9.5 of 10/s, retries make more than 10/s; with 30 s they do not."""

    def survival(time_s: float, rate_per_s: float) -> float:
        return math.exp(-(10.0 - rate_per_s) * time_s)

    load = Load(9.5, 10.0, survival)
    clients = clients_of(server(9.5, 10.0, 3.0, 5), ClientOptions(), PATIENT)
    assert screened(load, clients).expected == "overloaded without a trigger"
    late = screened(load, replace(clients, timeout_s=30.0))
    assert late.expected == "may stay down"
    assert late.steady_per_s == pytest.approx(9.5, abs=1e-3)
    assert screened(load, replace(clients, attempts=1)).expected == "recovers"


def test_a_station_that_slows_down_with_its_queue_stays_down_without_any_retry() -> None:
    """The mechanism of garbage collection in Huang et al., OSDI 2022: a spike, a queue, and less speed to drain it."""
    slow = RateTable(tuple(1.0 if number <= 50 else 0.6 for number in range(1, 101)))
    network = replace(server(70.0, 100.0, None, 1), stations=(Station("server", 1, rate=slow),))
    short, long = recoveries(network, Trigger("a spike", (0.5, 10.0), surge=2.0), (1,), 200.0)
    assert short.always
    assert long.recovered == 0
    assert long.completed_share == pytest.approx(60 / 70, abs=0.03)


@pytest.mark.parametrize(("share", "attempts"), [(0.4, 2), (0.3, 3), (0.8, 1), (0.2, 4)])
def test_what_has_capacity_for_every_attempt_always_recovers(share: float, attempts: int) -> None:
    network = server(share * 50, 50.0, 1.0, attempts)
    (found,) = recoveries(network, down(10.0), (attempts,), 300.0)
    assert found.always
    assert screened(Load(share * 50, 50.0), clients_of(network, ClientOptions(), PATIENT)).expected == "recovers"


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.3, 0.45, 0.6, 0.75, 0.9])
@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_the_fixed_point_and_long_simulations_agree(share: float, attempts: int) -> None:
    """Ten seconds of standstill leave a queue of 10 s, longer than the timeout, so every attempt in it is late."""
    network = server(share * 50, 50.0, 1.0, attempts)
    (found,) = recoveries(network, down(10.0), (attempts,), 600.0, 20)
    assert found.recovered == (20 if share * attempts < 1 else 0)


def test_less_is_safe_where_requests_are_tried_more_often() -> None:
    network = server(30.0, 50.0, 1.0, 1)
    found = []
    for number in (1, 3):
        clients = clients_of(replace_attempts(network, number), ClientOptions(), PATIENT)
        question = RetryQuestion(down(5.0), (number,), clients, horizon_s=60.0, effort=Effort(20.0, 1, 2))
        found.append(metastability(network, question, Load(None)))
    assert [each.safe_attempts for each in found] == [1, 1]
    once, thrice = (each.safe_surge for each in found)
    assert once is not None
    assert thrice is not None
    assert thrice < once


@given(st.integers(0, 40), st.integers(0, 40))
def test_a_search_finds_the_largest_that_holds(count: int, limit: int) -> None:
    found = largest(range(count), lambda number: number < limit)
    assert found == (min(count, limit) - 1 if count and limit else None)


def replace_attempts(network: Network, number: int) -> Network:
    (request,) = network.classes
    retry = Retry(number, 0.0) if number > 1 else None
    return replace(network, classes=(replace(request, retry=retry),))


def test_a_request_that_timed_out_still_uses_the_server() -> None:
    """That is the mechanism: with a timeout shorter than any service, all work is for nobody, and all of it is done."""
    network = server(50.0, 100.0, 1e-6, 2)
    found = recoveries(network, down(1.0), (1, 2), horizon_s=60.0, count=2)
    assert all(each.completed_share < 0.01 for each in found)


@given(st.integers(0, 40), st.integers(1, 40))
def test_intervals_of_a_probability_contain_the_observed_share(successes: int, trials: int) -> None:
    successes = min(successes, trials)
    low, high = clopper_pearson(successes, trials)
    assert 0 <= low <= successes / trials <= high <= 1


def test_the_interval_is_that_of_clopper_and_pearson() -> None:
    """Twenty of twenty: the lower end is 0.025 ** (1 / 20)."""
    assert clopper_pearson(20, 20) == pytest.approx((0.025 ** (1 / 20), 1.0))


@pytest.mark.parametrize(
    ("budget_s", "simulated", "searched"), [(1e-3, False, False), (0.4, True, False), (1.0, True, True)]
)
def test_a_budget_that_does_not_pay_leaves_out_the_searches_first_and_then_everything(
    budget_s: float, simulated: bool, searched: bool
) -> None:
    network = server(20.0, 50.0, 1.0, 1)
    clients = clients_of(network, ClientOptions(), PATIENT)
    question = RetryQuestion(down(1.0, 2.0), (1, 2), clients, effort=Effort(budget_s))
    found = metastability(network, question, Load(20.0, 50.0))
    assert bool(found.verdicts) is simulated
    assert found.searched is searched
    assert ("--budget" in found.shortened) is not searched
    assert [each.expected for each in found.screens] == ["recovers", "recovers"]
