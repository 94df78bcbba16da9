"""What limits `openprovider`, its round trips, and the pauses of its nodes."""

from typing import Any

import numpy as np
import pytest

from capplan.answers.results import STATISTICS
from capplan.layout.components import MeasuredRange, Simulations
from capplan.layout.solution import Solution
from capplan.models.language.parameter import Values, defaults
from capplan.planner.predict.predict import predict
from capplan.systems.openprovider.scenario import OpenproviderScenario
from capplan.systems.registry import system

OPENPROVIDER = system("openprovider")
VALUES = OPENPROVIDER.median_values(OPENPROVIDER.fitted(), OpenproviderScenario(data_factor=1.0))


def solution(**fields: Any) -> Solution:
    return OPENPROVIDER.solution(OpenproviderScenario(**{"data_factor": 1.0, **fields}), VALUES)


def bottleneck(**fields: Any) -> str:
    return solution(**fields).bottleneck


def test_stations_bound_the_documented_layouts() -> None:
    assert bottleneck(dcs=1, front_nodes=1) == "cassandra"
    assert bottleneck(dcs=2) == "cassandra"
    assert bottleneck(dcs=3) == "cassandra-storage"


def test_few_workers_or_a_long_round_trip_make_the_workers_the_bottleneck() -> None:
    assert bottleneck(dcs=3, front_workers=1) == "workers"
    assert bottleneck(dcs=3, rtt="100ms") == "workers"


def test_many_workers_behind_a_very_long_round_trip_fill_the_native_transport_threads() -> None:
    layout = solution(dcs=3, rtt="1s", front_workers=1024)
    assert layout.bottleneck == "native-transport"
    # 9 nodes of 128 threads, held for one round trip by the 7 of 8 messages that write
    assert layout.capacity[0] < 9 * 128 / (7 / 8 * 1.0) * (1 + VALUES["burst_excess"])


USUAL = defaults(OPENPROVIDER.parameters)


def far(**fields: Any) -> str:
    return OPENPROVIDER.extrapolation(OpenproviderScenario(dcs=3, **fields)).why


def test_a_quorum_in_another_data_centre_takes_at_least_a_round_trip() -> None:
    latency = predict(OpenproviderScenario(dcs=3, rtt="100ms"), engine="analytic").latency_ms["acct"]

    for statistic in STATISTICS:
        band = getattr(latency, statistic)
        assert 100 < band.low < band.value < band.high
    assert latency.mean is not None
    assert latency.mean.high < 2 * 100  # the model error is that of the few milliseconds beside the round trip


def test_the_offset_is_the_round_trip_where_a_class_waits_for_another_data_centre() -> None:
    offset = OPENPROVIDER.component(MeasuredRange).offset(OpenproviderScenario(dcs=3, rtt="40ms"), USUAL).time_s

    assert offset["auth"]["mean"] == pytest.approx(0.0, abs=1e-7)  # reads at LOCAL_QUORUM
    assert offset["acct"]["mean"] == pytest.approx(40e-3, rel=1e-4)
    assert offset["acct"]["p99"] == pytest.approx(40e-3, rel=5e-3)  # percentiles are interpolated


def test_one_data_centre_has_no_round_trip() -> None:
    assert not OPENPROVIDER.component(MeasuredRange).offset(OpenproviderScenario(dcs=1), USUAL).time_s


def test_the_offset_of_a_distance_varies_with_the_fibre() -> None:
    values = {**USUAL, "route_excess": np.array([0.1, 0.2, 0.5])}
    times = np.asarray(
        OPENPROVIDER.component(MeasuredRange).offset(OpenproviderScenario(dcs=3), values).time_s["acct"]["mean"]
    )

    assert times == pytest.approx(times[1] * np.array([1.1, 1.2, 1.5]) / 1.2)


def test_a_given_round_trip_is_as_near_as_the_distance_that_it_equals() -> None:
    assert far(rtt="1.66ms") == far(distance="150km")
    assert "RTT of up to 5 ms" in far(rtt="5ms")


def test_long_round_trips_need_longer_to_settle() -> None:
    values = USUAL
    settles = [
        float(OPENPROVIDER.component(Simulations).settling_s(OpenproviderScenario(dcs=3, rtt=rtt), values, np.ones(1)))
        for rtt in ("1ms", "100ms")
    ]

    assert settles == [0.2, 1.0]


THREE_DCS = OpenproviderScenario(dcs=3)
OF_THREE = defaults(OPENPROVIDER.parameters)


def test_means_have_no_pauses_and_percentiles_grow_by_them() -> None:
    figures = OPENPROVIDER.solution(THREE_DCS, OF_THREE).at(5000.0)
    paused, plain = (each.latencies_s("auth") for each in (figures, figures.without_pauses))
    assert paused[0] == plain[0]
    assert np.all(paused[1:] > plain[1:])
    assert paused[-1] > 5 * plain[-1]


def test_beyond_capacity_pauses_add_no_more_than_they_last() -> None:
    """All workers are taken there, so the queue behind a paused node is no longer than without the pause."""
    solution = OPENPROVIDER.solution(THREE_DCS, OF_THREE)
    figures = solution.at(2 * float(solution.capacity[0]))
    paused, plain = (each.latency_s("auth", "p50")[0] for each in (figures, figures.without_pauses))
    assert plain < paused < plain + float(OF_THREE["pause_s"])


def test_each_draw_has_its_own_pauses_also_where_another_represents_it() -> None:
    garbage = np.array([2e3, 2e4, 2e5])
    every: Values = {**OF_THREE, "garbage_bytes": garbage, "mutation_s": np.full(3, OF_THREE["mutation_s"])}
    one: Values = {**OF_THREE, "garbage_bytes": garbage[:1]}
    few = OPENPROVIDER.solution(THREE_DCS, one, np.zeros(3, dtype=np.intp), every).at(5000.0)
    whole = OPENPROVIDER.solution(THREE_DCS, every).at(5000.0)
    assert few.latencies_s("acct") == pytest.approx(np.broadcast_to(whole.latencies_s("acct"), (6, 3)), rel=1e-5)
