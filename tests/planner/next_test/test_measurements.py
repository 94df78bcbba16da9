"""What a measurement on a running node tells, beside load tests."""

from __future__ import annotations

import math

import numpy as np
import pytest

from capplan.errors import InputError
from capplan.layout.case import Case
from capplan.planner.assumed_pauses import pauses_if_assumed
from capplan.planner.next_test import Hours, NextTest, next_test
from capplan.systems.openprovider.scenario import OpenproviderScenario
from capplan.systems.registry import resolve

RATE = 17_000.0
OBJECTIVE = ("acct.p99<20ms",)


def case(**fields: object) -> Case[OpenproviderScenario]:
    found: Case[OpenproviderScenario] = resolve(
        OpenproviderScenario(**{"dcs": 3, "cass_nodes": 6, "tps": RATE, **fields})  # type: ignore[arg-type]  # by name
    )
    return found


def ranked(hours: float = 0.5, **fields: object) -> NextTest:
    return next_test(case(**fields), [{"dcs": 3}], figure="acct.p99", hours=Hours(run=hours))


def measurements(found: NextTest) -> dict[str, float]:
    """Return how much of the width of the band each measurement removes, by the option that states it."""
    return {each.states: each.narrowing for each in found.tests if each.states is not None}


def test_what_is_stated_need_not_be_measured() -> None:
    assert set(measurements(ranked())) == {"--gc"}
    assert measurements(ranked(gc="0.5%@50ms")) == {}


def test_measurements_are_ranked_where_no_candidate_can_be_tested() -> None:
    found = next_test(case(), [{"rf": 9}], figure="acct.p99")
    assert set(measurements(found)) == {"--gc"}
    assert len(found.tests) == len(found.refused) == 1
    with pytest.raises(InputError, match="no candidate can be tested; the first: rf 9"):
        next_test(case(gc="0.5%@50ms"), [{"rf": 9}], figure="acct.p99")


def test_data_count_for_a_decision_only_where_they_may_change_it() -> None:
    sure = ranked(slo=("acct.p99<80ms",), tps=8_000.0)
    unsure = ranked(slo=OBJECTIVE)
    chances = [
        {each.states: each.chance_of_change for each in found.tests}["--data-factor"] for found in (sure, unsure)
    ]
    assert sure.figure.chance_met is not None
    assert sure.figure.chance_met > 0.9
    assert chances == pytest.approx([1 / 6, 0.0])  # only work of 3 times is too much; what is no yes stays none


def test_a_longer_log_tells_no_less() -> None:
    short, long = (measurements(ranked(hours))["--gc"] for hours in (0.1, 10.0))
    assert 0 < short < long < 1


def test_a_log_that_is_too_short_for_a_pause_tells_nothing() -> None:
    assert measurements(ranked(hours=1e-9))["--gc"] == pytest.approx(0.0, abs=1e-4)


def test_a_layout_stays_tested_where_its_pauses_and_data_are_stated() -> None:
    tested = {"dcs": 1, "cass_nodes": 3, "front_nodes": 2}
    for stated in ({}, {"gc": "0.5%@50ms"}, {"data_factor": "1.2..1.6"}):
        (test,) = (each for each in next_test(case(**tested, tps=None, **stated), [{}]).tests if each.states is None)
        assert (test.new_layout, test.hours) == (False, Hours().run)


def test_measured_pauses_narrow_the_band_about_as_stating_them_does() -> None:
    """The linear-Gaussian update leaves out what a long pause adds more than in proportion, so it forecasts less."""
    asked = case()
    pauses = pauses_if_assumed(asked, RATE)
    assert pauses is not None
    share, mean_s = (float(np.median(each)) for each in (pauses.share, pauses.mean_s))
    forecast = ranked(hours=100.0)
    measured = next(each for each in forecast.tests if each.states == "--gc")
    stated = case(gc=f"{100 * share:.3g}%@{1e3 * mean_s:.3g}ms")
    then = next_test(stated, [{"dcs": 3}], figure="acct.p99").figure
    now, after, exact = (
        math.log(high / low)
        for low, high in (
            (forecast.figure.low, forecast.figure.high),
            (measured.low_after, measured.high_after),
            (then.low, then.high),
        )
    )
    assert 0.7 < (now - after) / (now - exact) < 1.1
