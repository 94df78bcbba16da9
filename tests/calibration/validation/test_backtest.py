"""Predictions for scenarios that a fit has not seen, with the bands that they would have had."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from tests.calibration.documented_reports import reported
from tests.calibration.made_up_fits import left_out_at, nested_at

from capplan.calibration.validation.backtest import LeftOut
from capplan.calibration.validation.backtest import left_out as left_out_of
from capplan.layout.components import MeasuredRange
from capplan.layout.fitted_file import Fitted
from capplan.systems.registry import documented_names, system

OPENPROVIDER, VCIDER = system("openprovider").fitted(), system("vcider").fitted()
OFF = dict.fromkeys(("r1.none", "r1.both", "r1.internode", "r3.none", "r3.both", "r3.internode"), 0.05)


def left_out(fitted: Fitted) -> tuple[LeftOut, ...]:
    return left_out_of(system(fitted.system), fitted)


def packaged(name: str) -> tuple[LeftOut, ...]:
    """Return what the packaged fit of a system says of scenarios that were left out."""
    return reported(name).left_out


def by_id(fitted: Fitted) -> dict[str, LeftOut]:
    return {each.id: each for each in left_out(fitted)}


def half_of(log_sd: float, scenarios: int) -> float:
    return log_sd * float(stats.t.ppf(0.95, scenarios))


def test_independent_parts_of_a_band_add_up_by_their_squares() -> None:
    """Parameters 3 %, and errors of 5 % on five other scenarios, in the logarithm; the layout is inside the others."""
    said = by_id(nested_at(left_out_at(VCIDER, 0.02, half_width=0.03), OFF))["r3.none.c64"].estimates["capplan"]
    half = math.hypot(0.03, half_of(0.05, 5))

    assert said.value == pytest.approx(0.953 * math.exp(0.02))
    assert math.log(said.high / said.value) == pytest.approx(half)
    assert math.log(said.value / said.low) == pytest.approx(half)


def test_each_side_of_a_band_has_its_own_part_of_the_parameters() -> None:
    fitted = nested_at(left_out_at(VCIDER, 0.0), OFF)
    lopsided = tuple(
        replace(each, low=each.predicted * math.exp(-0.2), high=each.predicted * math.exp(0.1))
        for each in fitted.left_out
    )
    said = by_id(replace(fitted, left_out=lopsided))["r1.both.c32"].estimates["capplan"]

    assert math.log(said.value / said.low) == pytest.approx(math.hypot(0.2, half_of(0.05, 5)))
    assert math.log(said.high / said.value) == pytest.approx(math.hypot(0.1, half_of(0.05, 5)))


def test_the_model_error_is_that_of_refits_without_the_scored_scenario() -> None:
    """Errors of 9 % in the nested refits of a scenario itself do not widen its own band."""
    said = by_id(nested_at(left_out_at(VCIDER, 0.0), {**OFF, "r1.none": 0.9}))
    own, others = said["r1.none.c32"].estimates["capplan"], said["r3.none.c32"].estimates["capplan"]

    assert math.log(own.high / own.value) == pytest.approx(half_of(0.05, 5))
    assert math.log(others.high / others.value) == pytest.approx(half_of(math.sqrt((4 * 0.05**2 + 0.9**2) / 5), 5))


def test_a_layout_outside_the_others_has_a_wider_band() -> None:
    """Without TS4, the only one with three data centres, two are the most: log2(3/2) doublings beyond.

    TS4 widens no band, so two other scenarios bear on that of TS2, and three on its own.
    """
    off = dict.fromkeys(("TS1", "TS2", "TS3", "TS4"), 0.05)
    said = by_id(nested_at(left_out_at(OPENPROVIDER, 0.0), off))
    inside, outside = (said[name].estimates["capplan"] for name in ("ts2.incoming", "ts4.incoming"))
    widening = system("openprovider").component(MeasuredRange).widening

    assert widening > 0
    assert math.log(inside.high / inside.value) == pytest.approx(half_of(0.05, 2))
    factor = 1 + widening * math.log2(1.5)
    assert math.log(outside.high / outside.value) == pytest.approx(factor * half_of(0.05, 3))


def test_a_load_beyond_the_others_widens_bands_of_what_was_tested_at_a_load(monkeypatch: pytest.MonkeyPatch) -> None:
    before = by_id(system("rhino-shcm").fitted())
    its, half = system("rhino-shcm"), 2520.0 / 2
    below = replace(its.component(MeasuredRange), highest_rate=lambda *_: half)
    monkeypatch.setattr(type(its), "components", (below, *its.components))
    after = by_id(system("rhino-shcm").fitted())
    loads = {
        row.id: test.scenario.offered_per_s()
        for test in system("rhino-shcm").observations.load_tests()
        for row in test.rows
        if row.id in before
    }

    assert any(each is not None for each in loads.values())
    for name, offered in loads.items():
        wider = after[name].estimates["capplan"].half_width() > before[name].estimates["capplan"].half_width()
        assert wider == (offered is not None), name


@pytest.mark.parametrize("name", documented_names())
def test_what_asks_the_prior_widens_no_band(name: str) -> None:
    assert [each.id for each in packaged(name) if each.widens and not each.counts] == []


NOT_SCORED = {  # folds with figures that only they inform, one set for each reason
    "openprovider": [{"TS4"}],
    "rhino-shcm": [{"T7"}],
    "fedora4": [{"n4"}, {"us-west", "asia", "eu"}],
    "arion": [{"watch"}],
}


@pytest.mark.parametrize("name", documented_names())
def test_why_figures_are_not_scored(name: str) -> None:
    reasons: dict[str, set[str]] = {}
    for each in packaged(name):
        if not each.counts:
            reasons.setdefault(each.not_scored, set()).add(each.fold)

    assert sorted(reasons.values(), key=len) == NOT_SCORED.get(name, [])


def test_at_the_edge_of_capacity_latencies_are_scored_but_widen_nothing() -> None:
    """T3 of rhino-shcm: the fit without it has the load beyond the capacity, so its latencies have no steady state."""
    fitted = system("rhino-shcm").fitted()
    latencies = {f"t3.p{level}" for level in (50, 75, 90, 95, 99)}
    wild = tuple(
        replace(each, predicted=each.predicted * 9) if each.id in latencies else each for each in fitted.nested
    )
    before, after = by_id(fitted), by_id(replace(fitted, nested=wild))

    assert {name for name, each in before.items() if each.counts and not each.widens} == latencies
    assert repr(after) == repr(before)
    heavier = {each.id: each for each in fitted.nested if each.id == "t3.cpu"}
    assert heavier
    off = tuple(replace(each, predicted=each.predicted * 9) if each.id in heavier else each for each in fitted.nested)
    assert repr(by_id(replace(fitted, nested=off))) != repr(before)  # its cores do widen bands


@pytest.mark.parametrize("name", documented_names())
def test_the_packaged_bands_are_about_what_is_predicted(name: str) -> None:
    kept = {each.id: each for each in system(name).fitted().left_out}
    for each in packaged(name):
        said = each.estimates["capplan"]
        assert said.value == kept[each.id].predicted
        if math.isfinite(said.high):
            assert 0 < said.low <= kept[each.id].low
            assert kept[each.id].high <= said.high


def test_each_independent_scenario_of_openprovider_is_left_out_once() -> None:
    capacity = [each for each in packaged("openprovider") if each.family == "capacity"]

    assert [each.fold for each in capacity] == ["TS1", "TS2", "TS3", "TS4"]
    assert [each.documented for each in capacity] == [7000, 7200, 10_000, 10_500]
    assert [each.size for each in capacity] == [3, 3, 6, 9]


def test_the_rules_do_not_see_what_they_predict() -> None:
    errors = {each.fold: each.errors for each in packaged("openprovider") if each.family == "capacity"}

    # Worked out by hand from the three other scenarios: 3, 3, 6 and 9 Cassandra nodes.
    assert errors["TS4"]["persistence"] == pytest.approx(-0.0476, abs=1e-4)  # TS3
    assert errors["TS1"]["persistence"] == pytest.approx(200 / 7000)  # TS2
    assert errors["TS3"]["persistence"] == pytest.approx(-0.3)  # 3 nodes are as near as 9: the smaller
    assert errors["TS3"]["affine"] == pytest.approx(8800 / 10_000 - 1)  # (3, 7100) to (9, 10500)
    assert errors["TS4"]["linear"] == pytest.approx((3 * 7000 + 3 * 7200 + 6 * 10_000) / 54 * 9 / 10_500 - 1)


def test_rules_say_times_from_the_times_of_the_same_request() -> None:
    times = {each.fold: each for each in packaged("openprovider") if each.family == "auth mean time"}

    # 2.5, 3.5, 4 and 4 ms on 3, 3, 6 and 9 Cassandra nodes.
    assert [each.documented for each in times.values()] == [2.5e-3, 3.5e-3, 4e-3, 4e-3]
    assert times["TS1"].estimates["persistence"].value == pytest.approx(3.5e-3)  # TS2
    assert times["TS4"].estimates["persistence"].value == pytest.approx(4e-3)  # TS3
    assert times["TS4"].estimates["affine"].value == pytest.approx(5e-3)  # (3, 3 ms) to (6, 4 ms)
    assert {each.group for each in times.values()} == {"times"}


def test_errors_are_signed_and_relative() -> None:
    (first, *_) = left_out(left_out_at(VCIDER, math.log(1.1)))

    assert list(first.errors) == ["capplan", "persistence", "linear", "affine", "USL"]
    assert first.errors["capplan"] == pytest.approx(0.1)
    assert all(np.sign(error) == np.sign(first.estimates[name].value - 0.918) for name, error in first.errors.items())
