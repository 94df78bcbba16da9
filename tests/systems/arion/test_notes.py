"""Predictions for `arion`: where clients limit the capacity, what streams cost, and the notes."""

from functools import lru_cache
from itertools import pairwise
from typing import Any

import pytest

from capplan.planner.predict.predict import predict
from capplan.planner.predict.prediction import Prediction
from capplan.systems.arion.scenario import ArionScenario


@lru_cache
def asked(**layout: Any) -> Prediction:
    return predict(ArionScenario(**layout), engine="analytic")


def capacity(**layout: Any) -> float:
    found = asked(**layout).peak_tps
    assert found is not None
    return found.value


def notes(**layout: Any) -> str:
    return " ".join(asked(**layout).evidence.notes)


def test_the_cluster_of_ten_is_a_claim_and_its_bands_are_wide() -> None:
    """ "1000 clients with RPS": 10,000 clients at 30 per second on 10 masters, said to carry more than 300,000."""
    made = asked(servers=10, clients=10_000, rps_per_client=30.0)
    one = asked(rps_per_client=30.0)

    assert made.peak_tps is not None
    assert one.peak_tps is not None
    assert made.offered is not None
    assert made.offered.peak_tps == 300_000.0
    assert made.evidence.basis == "extrapolated"
    assert made.peak_tps.value == pytest.approx(10 * one.peak_tps.value, rel=1e-6)
    assert made.peak_tps.value > 300_000.0
    assert made.peak_tps.low / made.peak_tps.value < one.peak_tps.low / one.peak_tps.value
    (claim,) = made.evidence.claims
    assert "300,000" in claim
    assert not one.evidence.claims


def test_few_clients_bound_the_capacity() -> None:
    assert 15_000 < capacity(clients=10) < 18_000
    assert asked(clients=10).bottleneck == "clients"
    assert asked(clients=60).bottleneck == "master"


def test_more_clients_never_complete_less() -> None:
    found = [capacity(clients=count) for count in (5, 10, 20, 40, 63, 64, 1000)]

    assert all(few <= many * 1.002 for few, many in pairwise(found))


@pytest.mark.parametrize("engine", ["analytic", "compiled"])
def test_beyond_the_capacity_all_clients_wait(engine: Any) -> None:
    """1,000 clients at what a long queue leaves of the peak, 39,650 per second: 25 ms by Little's law."""
    made = predict(ArionScenario(tps=41_000.0), engine=engine)

    assert made.latency_ms["read"].mean is not None
    assert made.latency_ms["read"].mean.value == pytest.approx(25.2, abs=0.1)


def test_a_master_is_as_busy_as_in_a_simulation() -> None:
    """30,000 per second on 20 at once of 0.479 ms: 72 %, as `capplan simulate` counts it."""
    assert asked(tps=30_000.0).utilisation["master"].value == pytest.approx(0.72, abs=0.003)


def test_beyond_the_capacity_the_latency_of_streams_grows_without_bound() -> None:
    made = asked(tps=1e7, stream_messages=1000)

    assert made.latency_ms["read"].mean is not None
    assert made.latency_ms["read"].mean.value == float("inf")


def test_a_load_that_only_some_draws_carry_has_bands_without_an_upper_end() -> None:
    """Streams cost 2 to 50 % of a call: at 100,000 per second the middle draw is calm, and one in 20 is not."""
    made = predict(ArionScenario(tps=100_000.0, stream_messages=1000), budget_s=0.05)
    mean = made.latency_ms["read"].mean

    assert mean is not None
    assert 0.0 < mean.low <= mean.value < 1.0
    assert mean.high == float("inf")
    assert made.peak_tps is not None
    assert made.peak_tps.low < 100_000.0 < made.peak_tps.value


@pytest.mark.slow
@pytest.mark.parametrize(("servers", "clients"), [(2, 3), (10, 25), (3, 1000)])
def test_clients_that_do_not_divide_by_the_masters(servers: int, clients: int) -> None:
    made = predict(ArionScenario(servers=servers, clients=clients), budget_s=0.05)

    assert made.peak_tps is not None
    assert made.latency_ms["read"].mean is not None
    fullest = -(-clients // servers)
    assert made.peak_tps.value == pytest.approx(capacity(clients=fullest) * clients / fullest, rel=1e-6)
    assert 0.5 < made.latency_ms["read"].mean.value < 0.7


def test_streams_are_a_wide_guess() -> None:
    unary, streamed = asked(), asked(stream_messages=1000)

    assert unary.peak_tps is not None
    assert streamed.peak_tps is not None
    assert streamed.peak_tps.value > 5 * unary.peak_tps.value
    assert streamed.peak_tps.high / streamed.peak_tps.low > 20


def test_without_one_master_the_others_take_its_part() -> None:
    (alone,) = asked().outages
    (one_of_two,) = asked(servers=2, clients=2000, tps=20_000.0).outages

    assert not alone.available
    assert one_of_two.available
    assert one_of_two.capacity_tps is not None
    assert one_of_two.capacity_tps.value == pytest.approx(39_700.0, rel=0.05)
