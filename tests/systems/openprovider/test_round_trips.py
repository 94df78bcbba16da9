"""Round trips between data centres are known: no band of a latency lies below them, and none is widened by them."""

from typing import Any

import numpy as np
import pytest

from capplan.models.results import STATISTICS
from capplan.planner.predict.predict import predict
from capplan.systems.openprovider import SYSTEM as OPENPROVIDER
from capplan.systems.openprovider.scenario import OpenproviderScenario

VALUES = OPENPROVIDER.prior_values(OpenproviderScenario())


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
    offset = OPENPROVIDER.offset(OpenproviderScenario(dcs=3, rtt="40ms"), VALUES).time_s

    assert offset["auth"]["mean"] == pytest.approx(0.0, abs=1e-7)  # reads at LOCAL_QUORUM
    assert offset["acct"]["mean"] == pytest.approx(40e-3, rel=1e-4)
    assert offset["acct"]["p99"] == pytest.approx(40e-3, rel=5e-3)  # percentiles are interpolated


def test_one_data_centre_has_no_round_trip() -> None:
    assert not OPENPROVIDER.offset(OpenproviderScenario(dcs=1), VALUES).time_s


def test_the_offset_of_a_distance_varies_with_the_fibre() -> None:
    values = {**VALUES, "route_excess": np.array([0.1, 0.2, 0.5])}
    times = np.asarray(OPENPROVIDER.offset(OpenproviderScenario(dcs=3), values).time_s["acct"]["mean"])

    assert times == pytest.approx(times[1] * np.array([1.1, 1.2, 1.5]) / 1.2)


def test_a_given_round_trip_is_as_near_as_the_distance_that_it_equals() -> None:
    assert far(rtt="1.66ms") == far(distance="150km")
    assert "ound trips of up to 5 ms" in far(rtt="5ms")


def test_long_round_trips_need_longer_to_settle() -> None:
    values = VALUES
    settles = [
        float(OPENPROVIDER.settling_s(OpenproviderScenario(dcs=3, rtt=rtt), values, np.ones(1)))
        for rtt in ("1ms", "100ms")
    ]

    assert settles == [0.2, 1.0]
