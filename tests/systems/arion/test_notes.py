"""What is told beside a prediction of the masters: where clients stop helping, doubts, claims, what is left."""

from itertools import pairwise
from typing import Any

import pytest

from capplan.calibration.case.extrapolation import reach
from capplan.planner.predict.predict import predict
from capplan.planner.predict.prediction import Prediction
from capplan.systems.arion.notes import ABOUT
from capplan.systems.arion.observations import experiments
from capplan.systems.arion.scenario import ArionScenario

TESTS = experiments()


def asked(**layout: Any) -> Prediction:
    return predict(ArionScenario(**layout), engine="analytic")


def notes(**layout: Any) -> str:
    return " ".join(asked(**layout).evidence.notes)


@pytest.mark.parametrize(
    ("layout", "verdict", "words"),
    [
        ({}, "inside", "Every part of the layout lies within the measured range."),
        ({"clients": 30}, "inside", "Every part"),
        ({"clients": 25}, "near", "25 clients of each master: none measured below 30."),
        ({"clients": 1}, "far", "1 client of each master: none measured below 30."),
        ({"servers": 2, "clients": 3}, "far", "1.5 clients of each master: none measured below 30."),
        ({"servers": 10, "clients": 10_000}, "far", "10 masters: none measured above 1."),
        ({"clients": 1200}, "near", "1,200 clients of each master: none measured above 1,000."),
        ({"stream_messages": 1000}, "far", "1,000 requests share a stream: of streams no figure is documented."),
    ],
)
def test_how_far_a_layout_lies_from_the_measured_ones(layout: dict[str, Any], verdict: str, words: str) -> None:
    found = reach(ArionScenario(**layout), TESTS, ABOUT)

    assert found.verdict == verdict
    assert words in found.why


def test_the_cluster_of_ten_is_a_claim_and_its_bands_are_wide() -> None:
    """ "1000 clients with RPS": 10,000 clients at 30 per second on 10 masters, said to carry more than 300,000."""
    made = asked(servers=10, clients=10_000, rps_per_client=30.0)
    one = asked(rps_per_client=30.0)

    assert made.capacity_tps is not None
    assert one.capacity_tps is not None
    assert made.offered_tps == 300_000.0
    assert made.evidence.extrapolation == "far"
    assert made.capacity_tps.value == pytest.approx(10 * one.capacity_tps.value, rel=1e-6)
    assert made.capacity_tps.value > 300_000.0
    assert made.capacity_tps.low / made.capacity_tps.value < one.capacity_tps.low / one.capacity_tps.value
    (claim,) = made.evidence.claims
    assert "10 masters carry more than 300,000" in claim
    assert "Hazelcast would have to serve 300,000/s; 40,000 were seen." in claim
    assert not one.evidence.claims


def test_where_more_clients_stop_helping() -> None:
    """Rate times time for those that ask at once, and capacity over 30 for those that ask 30 times a second."""
    told = notes(rps_per_client=30.0)

    assert "More clients stop helping at about 26 for each master" in told
    assert "if each asks 30 times a second" in told
    assert "300 wait 7.3 ms" in told


def test_few_clients_bound_what_is_carried() -> None:
    made = asked(clients=10)

    assert made.capacity_tps is not None
    assert 15_000 < made.capacity_tps.value < 18_000
    assert made.bottleneck == "clients"
    assert "clients bound the capacity, not the masters" in " ".join(made.evidence.notes)
    assert "Whatever waits they carry" not in " ".join(made.evidence.notes)
    assert "The masters peak at 41,7" in notes()
    assert "Whatever waits they carry 39,6" in notes()
    assert "clients bound" not in notes(clients=60)


def test_a_waiting_client_has_one_request_under_way() -> None:
    told = notes(clients=1, tps=1600.0)

    assert "so 1 client asks at most" in told
    assert "about 0.94 requests of each master are under way (0.58 to 1.0)" in told
    assert "The client waits for its answer" in notes(clients=1, tps=5000.0)


@pytest.mark.parametrize(
    "layout",
    [
        {"tps": 30_000.0},
        {"tps": 38_000.0},
        {"tps": 50_000.0},
        {"clients": 1, "tps": 1000.0},
        {"clients": 1, "tps": 5000.0},
        {"servers": 10, "clients": 10_000},
        {"stream_messages": 1000},
    ],
)
def test_what_does_not_hang_on_the_layout_is_left_to_the_decision(layout: dict[str, Any]) -> None:
    told = asked(**layout).evidence.notes

    assert len(told) <= 8
    assert not [text for text in told if "watch that brings" in text or "contradict one another" in text]


def test_more_clients_never_carry_less() -> None:
    found = [asked(clients=count).capacity_tps for count in (5, 10, 20, 40, 63, 64, 1000)]
    values = [each.value for each in found if each is not None]

    assert len(values) == len(found)
    assert all(few <= many * 1.002 for few, many in pairwise(values))


@pytest.mark.parametrize("engine", ["analytic", "compiled"])
def test_beyond_the_capacity_all_clients_wait(engine: Any) -> None:
    """1,000 clients at what a long queue leaves of the peak, 39,650 per second: 25 ms, as the note on crowds says."""
    made = predict(ArionScenario(tps=41_000.0), engine=engine)
    told = " ".join(made.evidence.notes)

    assert made.latency_ms["read"].mean is not None
    assert made.latency_ms["read"].mean.value == pytest.approx(25.2, abs=0.1)
    assert "1,000 wait 25 ms" in told
    assert "beyond what is carried, 39,6" in told
    assert "Each of the 1,000 clients waits for its answer" in told
    assert "an answer takes 25.2 ms in the mean" in told
    assert "queues grow with time" not in told


def test_a_master_is_as_busy_as_in_a_simulation() -> None:
    """30,000 per second on 20 at once of 0.479 ms: 72 %, as `capplan simulate` counts it."""
    busy = asked(tps=30_000.0).utilisation["master"]

    assert busy.value == pytest.approx(0.72, abs=0.003)


def test_beyond_the_capacity_streams_pile_up() -> None:
    made = asked(tps=1e7, stream_messages=1000)

    assert made.latency_ms["read"].mean is not None
    assert made.latency_ms["read"].mean.value == float("inf")
    assert "requests pile up" in " ".join(made.evidence.notes)


def test_a_load_that_only_some_draws_carry_has_bands_without_an_upper_end() -> None:
    """Streams cost 2 to 50 % of a call: at 100,000 per second the middle draw is calm, and one in 20 is not."""
    made = predict(ArionScenario(tps=100_000.0, stream_messages=1000), budget_s=0.05)
    mean = made.latency_ms["read"].mean

    assert mean is not None
    assert 0.0 < mean.low <= mean.value < 1.0
    assert mean.high == float("inf")
    assert made.capacity_tps is not None
    assert made.capacity_tps.low < 100_000.0 < made.capacity_tps.value


@pytest.mark.parametrize(("servers", "clients"), [(2, 3), (10, 19), (10, 25), (3, 1000)])
def test_clients_that_do_not_divide_by_the_masters(servers: int, clients: int) -> None:
    made = predict(ArionScenario(servers=servers, clients=clients), budget_s=0.05)

    assert made.capacity_tps is not None
    assert made.latency_ms["read"].mean is not None
    one = asked(clients=-(-clients // servers)).capacity_tps
    assert one is not None
    assert made.capacity_tps.value == pytest.approx(one.value * clients / -(-clients // servers), rel=1e-6)
    assert 0.5 < made.latency_ms["read"].mean.value < 0.7


def test_how_many_clients_help_is_as_sure_as_the_time_of_a_request_on_one_master() -> None:
    """The band of a time, not of a rate: their number over the rate that they make is one."""
    one, ten = notes(), notes(servers=10, clients=10_000)
    (said,) = [text for text in asked().evidence.notes if text.startswith("More clients stop helping")]

    assert said in one
    assert said in ten


def test_streams_are_a_wide_guess() -> None:
    unary, streamed = asked(), asked(stream_messages=1000)

    assert unary.capacity_tps is not None
    assert streamed.capacity_tps is not None
    assert streamed.capacity_tps.value > 5 * unary.capacity_tps.value
    assert streamed.capacity_tps.high / streamed.capacity_tps.low > 20
    assert "is a guess" in " ".join(streamed.evidence.notes)
    assert "much better than these unary calls, without a figure" in " ".join(unary.evidence.notes)


def test_a_watch_takes_what_the_document_says() -> None:
    (told,) = [note for note in asked().evidence.notes if note.startswith("A watch of 100,000 records")]

    assert "1.2 s through a master" in told  # evidence watch.master
    assert "0.5 s directly from Hazelcast" in told  # evidence watch.direct


def test_without_one_master_the_others_carry_its_part() -> None:
    (alone,) = asked().outages
    (one_of_two,) = asked(servers=2, clients=2000, tps=20_000.0).outages

    assert not alone.available
    assert one_of_two.available
    assert one_of_two.capacity_tps is not None
    assert one_of_two.capacity_tps.value == pytest.approx(39_700.0, rel=0.05)
