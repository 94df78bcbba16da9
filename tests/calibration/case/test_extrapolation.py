"""How far a layout lies from the measured ones, in doublings, and in words."""

from dataclasses import replace
from typing import Any

import pytest

from capplan.calibration.case.extrapolation import Reach, reach
from capplan.models.language.scenario import changed
from capplan.systems.openprovider.notes import ABOUT
from capplan.systems.openprovider.observations import experiments
from capplan.systems.openprovider.scenario import OpenproviderScenario

TESTS = experiments()


def reached(**fields: Any) -> Reach:
    return reach(changed(OpenproviderScenario(), **fields), TESTS, ABOUT)


def test_every_measured_layout_is_inside() -> None:
    for test in TESTS:
        assert reach(test.scenario, TESTS, ABOUT).verdict == "inside"
        assert reach(test.scenario, TESTS, ABOUT).distance == 0


@pytest.mark.parametrize(
    ("fields", "doublings", "words"),
    [
        ({"cass_nodes": 6}, 1.0, "6 Cassandra nodes per data centre: none measured above 3"),
        ({"cass_nodes": 12}, 2.0, "12 Cassandra nodes per data centre: none measured above 3"),
        ({"dcs": 6}, 1.0, "6 data centres: none measured above 3"),
        ({"front_nodes": 4}, 1.0, "4 policing nodes per data centre: none measured above 2"),
        ({"front_workers": 32}, 1.0, "32 workers per policing node: none measured below 64"),
        ({"data_factor": 2.0}, 1.0, "2 times the test's service times: none measured above 1"),
        ({"distance": "300km"}, 1.0, "300 km apart: the test had 150 km"),
        ({"distance": "75km"}, 1.0, "75 km apart: the test had 150 km"),
        ({"distance": "0km"}, 3.0, "0 km apart"),
        ({"cass_nodes": 6, "data_factor": 4.0}, 3.0, "6 Cassandra nodes"),
    ],
)
def test_distance_is_counted_in_doublings(fields: dict[str, Any], doublings: float, words: str) -> None:
    found = reached(**fields)

    assert found.distance == pytest.approx(doublings)
    assert found.verdict == "far"
    assert words in found.why[0].lower() + found.why[1:] or words in found.why


def test_near_is_less_than_a_doubling() -> None:
    assert reached(dcs=4).verdict == "near"
    assert reached(dcs=4).distance == pytest.approx(0.415, abs=1e-3)
    assert reached(consistency_write="EACH_QUORUM").verdict == "near"


def test_axes_add_up() -> None:
    both = reached(dcs=4, consistency_read="LOCAL_ONE")

    assert both.distance == pytest.approx(reached(dcs=4).distance + reached(consistency_read="LOCAL_ONE").distance)
    assert both.verdict == "far"
    assert "; " in both.why


@pytest.mark.parametrize(
    ("rtt", "verdict"), [("1.8ms", "near"), ("2ms", "near"), ("200ms", "far"), ("10s", "far"), ("0ms", "far")]
)
def test_given_round_trips_are_held_against_those_of_the_distance(rtt: str, verdict: str) -> None:
    found = reached(rtt=rtt)

    assert found.verdict == verdict
    assert found.distance > 0
    assert "round trips" in found.why.lower()


def test_the_longest_of_a_matrix_of_round_trips_counts() -> None:
    matrix = (("0", "2ms", "2ms"), ("2ms", "0", "100ms"), ("2ms", "100ms", "0"))

    assert reached(rtt=matrix) == reached(rtt="100ms")


def test_one_data_centre_has_no_distance() -> None:
    assert reached(dcs=1, distance="5000km").verdict == "inside"


def test_the_reason_is_one_sentence_that_starts_with_a_capital() -> None:
    for found in (reached(), reached(cass_nodes=6), reached(rtt="9ms"), reached(consistency_write="ALL")):
        assert found.why.endswith(".")
        assert not found.why[0].islower()
        assert "\n" not in found.why
        assert "Cassandra" in found.why or "cassandra" not in found.why


def test_a_load_beyond_what_was_measured_counts_like_an_axis() -> None:
    layout = changed(OpenproviderScenario(), cass_nodes=6)
    plain, loaded = (reach(layout, TESTS, ABOUT, load) for load in ((), ((0.5, "14,849 requests: none above 10,500"),)))

    assert (loaded.distance, loaded.of_times) == pytest.approx((plain.distance + 0.5, plain.of_times + 0.5))
    assert loaded.why == f"{plain.why[:-1]}; 14,849 requests: none above 10,500."


def test_what_only_rates_are_outside_of_widens_no_times() -> None:
    about = replace(ABOUT, outside_of_rates=lambda *_: ((0.5, "a mixture that nobody tested"),))
    found = reach(changed(OpenproviderScenario(), cass_nodes=6), TESTS, about)

    assert (found.distance, found.of_times) == pytest.approx((1.5, 1.0))
    assert found.why.endswith("; a mixture that nobody tested.")
    assert found.factors(1.0) == pytest.approx({"rate": 2.5, "time": 2.0})
    assert found.factors(0.5) == pytest.approx({"rate": 1.75, "time": 1.5})
    assert found.factors(0.0) == {"rate": 1.0, "time": 1.0}


def test_inside_nothing_is_widened() -> None:
    assert reach(TESTS[0].scenario, TESTS, ABOUT).factors(1.0) == {"rate": 1.0, "time": 1.0}
