"""Predictions of the AAA policy server: the contract, laws that every layout obeys, and the documented figures.

They are about the fresh data of the load tests, except where production data are the subject.
"""

import json
import math
from functools import cache
from typing import Any

import jsonschema
import numpy as np
import pytest
from tests.planner import predictions
from tests.planner.predictions import few_draws

from capplan.answers.results import STATISTICS, Band, Latency
from capplan.evidence.table import Evidence
from capplan.layout.solution import Solution
from capplan.models.language.scenario import changed
from capplan.planner.predict.predict import predict
from capplan.planner.predict.prediction import Prediction
from capplan.systems.openprovider.scenario import OpenproviderScenario
from capplan.systems.registry import resolve, scenario, system

CLASSES = ("auth", "acct")
FRESH = OpenproviderScenario(data_factor=1.0)


@cache
def predicted(**fields: Any) -> Prediction:
    return predict(changed(FRESH, **fields), fitted=few_draws(), engine="analytic")


def capacity(**fields: Any) -> Band:
    found = predicted(**fields).peak_tps
    assert found is not None
    return found


def documented() -> Evidence:
    """Return the highest rate of the test of three data centres."""
    (row,) = [row for row in system("openprovider").evidence if row.id == "ts4.incoming"]
    return row


@cache
def default_solution() -> Solution:
    return resolve(FRESH, few_draws()).solution


def bands(latency: Latency) -> list[Band]:
    found = [getattr(latency, statistic) for statistic in STATISTICS]
    assert all(band is not None for band in found)
    return found


def relative_width(band: Band) -> float:
    return (band.high - band.low) / band.value


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tps": 20_000.0, "slo": ("drop_rate<0.1%",)},
        pytest.param({"slo": ("acct.p99<1us",)}, marks=pytest.mark.slow),
        {"consistency_write": "ALL"},
    ],
    ids=str,
)
def test_json_is_valid_by_the_published_schema(fields: dict[str, Any]) -> None:
    document = json.loads(json.dumps(predicted(**fields).to_json(), allow_nan=False))

    jsonschema.Draft202012Validator(Prediction.json_schema()).validate(document)


def test_the_same_seed_gives_the_same_prediction() -> None:
    again = predict(FRESH, fitted=few_draws(), seed=1, engine="analytic")
    other = predict(FRESH, fitted=few_draws(), seed=2, engine="analytic")

    assert again.to_json() == predicted().to_json()
    assert other.seed == 2
    assert other.peak_tps != again.peak_tps
    assert other.peak_tps is not None
    assert other.peak_tps.value == capacity().value  # the seed pairs errors with draws, it moves no median


def test_the_measured_layout_is_predicted_as_it_was_measured() -> None:
    measured, made = documented(), predictions.predicted(data_factor=1.0)

    assert made.peak_tps is not None
    assert made.peak_tps.value == pytest.approx(measured.value, rel=0.03)
    assert made.peak_tps.low <= measured.low <= measured.high <= made.peak_tps.high
    assert made.evidence.basis == "measured"
    assert made.evidence.claims == ()
    assert made.evidence.sources


def test_without_a_rate_it_is_80_percent_of_capacity() -> None:
    usual, given = predicted().offered, predicted(tps=3000.0).offered

    assert usual is not None
    assert given is not None
    assert usual.source == "default"
    assert usual.peak_tps == pytest.approx(0.8 * capacity().value, abs=5)
    assert (given.source, given.peak_tps) == ("given", 3000.0)


def test_capacity_does_not_hang_on_the_offered_rate() -> None:
    assert capacity(tps=3000.0) == capacity()


def test_slower_cassandra_carries_less() -> None:
    assert capacity(data_factor=2.0).value == pytest.approx(capacity().value / 2, rel=0.05)
    assert predicted(data_factor=2.0).evidence.basis == "extrapolated"


def test_a_stated_factor_counts_with_its_range_and_widens_by_nothing_else() -> None:
    stated, uncertain = capacity(data_factor=2.0), capacity(data_factor="1.6..2.5")

    assert relative_width(stated) == pytest.approx(relative_width(capacity()), rel=0.02)
    assert uncertain.value == pytest.approx(stated.value, rel=0.02)
    assert relative_width(uncertain) > 1.5 * relative_width(stated)
    assert predicted(data_factor="1.6..2.5").conditions == ()


def test_what_nobody_measured_is_a_condition_and_moves_no_figure() -> None:
    """The storage path sets the capacity, and all of its work grows with the data."""
    made, known = predicted(data_factor=None), predicted(data_factor=1.0)
    (found,) = made.conditions

    assert (made.capacity, made.latency_ms, known.conditions) == (known.capacity, known.latency_ms, ())
    assert (found.value, found.option, found.expected_low, found.expected_high) == (1.0, "--data-factor", 2.0, 3.0)
    assert found.break_even == pytest.approx(1.25, rel=0.003)  # the default rate is 80 % of the capacity
    assert found.at_low is not None
    assert found.at_high is not None
    assert found.at_low.capacity_tps == pytest.approx(capacity(data_factor=2.0).value, rel=1e-3)
    assert found.at_high.capacity_tps == pytest.approx(capacity(data_factor=3.0).value, rel=1e-3)


@pytest.mark.parametrize(
    "fields", [{"tps": 2000.0}, {"tps": 4000.0}, {"tps": 6000.0}, {"tps": 3000.0, "slo": ("acct.p99<60ms",)}]
)
def test_a_verdict_holds_up_to_its_break_even_and_not_beyond(fields: dict[str, Any]) -> None:
    verdict = predicted(data_factor=None, **fields).verdict
    assert verdict is not None
    ((found,), answer) = verdict.conditions, verdict.answer
    assert answer == "yes"
    assert found.break_even is not None

    for share, same in ((0.99, True), (1.01, False)):
        other = predicted(data_factor=share * found.break_even, **fields).verdict
        assert other is not None
        assert (other.answer == answer) is same


def test_no_growth_asks_nothing() -> None:
    asked = scenario("openprovider", tps=3_000.0)
    answers = [predict(asked, fitted=few_draws(), engine="analytic", growth=growth) for growth in (None, 0.0)]
    assert answers[0] == answers[1]


def test_months_of_growth_count_the_losses_that_were_asked_for() -> None:
    asked = changed(FRESH, tps=2000.0)
    whole, less, none = (
        predict(asked, fitted=few_draws(), engine="analytic", growth=0.2, lose=lose)
        for lose in ((), ("node",), ("dc,dc",))
    )
    left = less.outages[0].capacity_tps
    assert whole.lasts_months is not None
    assert less.lasts_months is not None
    assert left is not None
    assert less.lasts_months.value == pytest.approx(12 * math.log(left.value / 2000) / math.log(1.2))
    assert less.lasts_months.value < whole.lasts_months.value
    assert none.lasts_months == Band(0.0, 0.0, 0.0)


def test_a_verdict_counts_the_losses_that_were_asked_for_and_names_the_others() -> None:
    asked = changed(FRESH, tps=2000.0)
    made = predict(asked, fitted=few_draws(), engine="analytic", lose=("dc", "dc,dc"))
    free, unasked = predict(asked, fitted=few_draws(), engine="analytic"), predicted()

    assert made.verdict is not None
    assert [each.situation for each in made.verdict.situations] == ["normal", "dc", "dc,dc"]
    assert [each.available for each in made.verdict.situations] == [True, True, False]
    assert (made.verdict.answer, made.verdict.risk) == ("no", 1.0)  # QUORUM of three data centres needs two
    assert made.verdict.not_asked == ("node", "front")
    assert free.verdict is not None
    assert (free.verdict.answer, free.verdict.not_asked) == ("yes", ("node", "front", "dc"))
    assert unasked.verdict is None


def test_twice_the_nodes_lie_far_from_the_evidence() -> None:
    twice = predicted(cass_nodes=6)

    assert twice.evidence.basis == "extrapolated"
    assert relative_width(capacity(cass_nodes=6)) > 1.5 * relative_width(capacity())
    (claim,) = twice.evidence.claims
    assert f"{2 * documented().value:,.0f}" in claim


def test_the_bottleneck_is_the_busiest_resource() -> None:
    for made in (predicted(), predicted(dcs=1), predicted(cass_nodes=6)):
        busiest = max(made.utilisation, key=lambda name: made.utilisation[name].value)
        assert made.bottleneck == busiest
        assert made.bottleneck.startswith("cassandra")


@pytest.mark.parametrize("tps", [1.0, 3000.0, 20_000.0, 1e9])
def test_latencies_are_finite_and_ordered_at_any_rate(tps: float) -> None:
    made = predicted(tps=tps)
    for name in CLASSES:
        mean, *percentiles = (band.value for band in bands(made.latency_ms[name]))
        assert percentiles == sorted(percentiles)
        assert 0 < mean < percentiles[-1]
        assert all(math.isfinite(band.high) and band.low >= 0 for band in bands(made.latency_ms[name]))
    assert all(0 <= band.low <= band.value <= band.high <= 1 for band in made.utilisation.values())


def test_accounting_waits_for_other_data_centres_and_authorization_does_not() -> None:
    near, far = predicted(rtt="1.5ms", tps=2000.0), predicted(rtt="21.5ms", tps=2000.0)

    # QUORUM of three data centres is 5 of 9: every write waits for another one, one round trip more.
    rise = [bands(far.latency_ms[name])[0].value - bands(near.latency_ms[name])[0].value for name in CLASSES]
    assert rise[0] == pytest.approx(0, abs=0.5)
    assert rise[1] == pytest.approx(20, abs=1.5)


def test_beyond_capacity_requests_are_lost_and_workers_are_busy() -> None:
    over = predicted(tps=20_000.0, slo=("drop_rate<0.1%",))
    (verdict,) = over.objectives
    (comparison,) = verdict.comparisons

    assert verdict.answer == "no"
    assert comparison.value is not None
    assert 0.1 < comparison.value.value < 0.15
    assert comparison.value.parts.parameter is not None
    assert over.busy_workers["front"].value == pytest.approx(64, rel=0.02)
    assert over.busy_workers["front"].high <= 64


def test_what_is_lost_keeps_nobody_busy() -> None:
    """The RADIUS servers works on what is carried, so an absurd rate does not saturate it."""
    assert predicted(tps=1e9).utilisation["front"].value < 0.5


def test_busy_workers_are_rate_times_time() -> None:
    """Little's law at a low rate, where only the mix of one authorization to seven accounting requests counts."""
    made = predicted(tps=1000.0)
    layout = default_solution()
    mean_rate = float(np.median(layout.at(1000.0).point.rate_per_s))
    auth, acct = (bands(made.latency_ms[name])[0].value / 1e3 for name in CLASSES)

    assert made.busy_workers["front"].value == pytest.approx(mean_rate * (auth + 7 * acct) / 8 / 6, rel=0.02)


def test_an_objective_that_holds_nowhere_leaves_no_capacity() -> None:
    made = predicted(slo=("acct.p99<1us",))
    (verdict,) = made.objectives

    assert (capacity(slo=("acct.p99<1us",)).value, capacity(slo=("acct.p99<1us",)).high) == (0, 0)
    assert (verdict.answer, verdict.risk) == ("no", 1.0)
    assert verdict.comparisons[0].value is not None
    assert made.capacity is not None
    assert "acct.p99<1us" in made.capacity.criterion


def test_an_objective_on_capacity_is_judged_and_not_searched() -> None:
    made = predicted(slo=("capacity>=1e6",))

    assert (made.objectives[0].answer, made.objectives[0].risk) == ("no", 1.0)
    assert capacity(slo=("capacity>=1e6",)).value == capacity().value


def test_outages_stand_in_the_prediction() -> None:
    assert [(dict(row.lost), row.available) for row in predicted().outages] == [
        ({"node": 1}, True),
        ({"front": 1}, True),
        ({"dc": 1}, True),
        ({"dc": 2}, False),
        ({"dc": 2}, True),
    ]
    whole = capacity().value
    assert all(row.capacity_tps is not None and row.capacity_tps.value <= whole for row in predicted().outages)


def test_other_levels_than_the_calibrated_ones_are_an_extrapolation() -> None:
    made = predicted(consistency_write="ALL")

    assert made.evidence.basis == "extrapolated"
    assert "LOCAL_QUORUM" in made.evidence.why


@pytest.fixture(scope="module")
def one_dc_simulated() -> Prediction:
    return predict(changed(FRESH, dcs=1, tps=2000.0))


def test_the_simulation_agrees_with_the_analytic_means(one_dc_simulated: Prediction) -> None:
    """More than a million requests at a third of the capacity; an eighth of them are authorizations.

    A time's coefficient of variation is below 1 here, so its mean over 100,000 requests has a standard error of at most
    0.32 %; four of them, and 1 % for what the solver neglects at so low a load.
    """
    assert one_dc_simulated.engine == "compiled"
    for name in CLASSES:
        analytic = bands(predicted(dcs=1, tps=2000.0).latency_ms[name])[0].value
        assert bands(one_dc_simulated.latency_ms[name])[0].value == pytest.approx(analytic, rel=4 * 0.0032 + 0.01)


def test_the_simulation_adds_its_own_part_to_the_bands(one_dc_simulated: Prediction) -> None:
    for name in CLASSES:
        for band in bands(one_dc_simulated.latency_ms[name]):
            parts = band.parts
            assert parts.simulation is not None
            assert parts.simulation > 0
            assert parts.model_error is not None
            assert band.high - band.value >= parts.simulation
    for band in bands(predicted().latency_ms["acct"]):
        assert band.parts.simulation is None
    assert one_dc_simulated.peak_tps is not None
    assert one_dc_simulated.peak_tps.parts.simulation is None  # the capacity stays analytic


def overload_risk(**fields: Any) -> float:
    offered = predictions.predicted(cass_nodes=6, **fields).offered
    assert offered is not None
    return offered.overload_risk


@pytest.mark.slow
def test_the_overload_risk_is_read_off_the_band_of_the_capacity() -> None:
    """By the definition of a band, a repeat measures less than its low end in 5 % of cases.

    All draws are needed: of 64, four would be 6 %.
    """
    found = predictions.predicted(cass_nodes=6).peak_tps

    assert found is not None
    assert overload_risk(tps=found.low) == pytest.approx(0.05, abs=0.01)
    assert overload_risk(tps=found.value) == pytest.approx(0.5, abs=0.05)
    assert overload_risk(tps=found.high) == pytest.approx(0.95, abs=0.01)


def test_an_objective_raises_no_end_of_the_capacity() -> None:
    """Both capacities are of the same repeats, with the same model errors."""
    asked = changed(scenario("arion"), rps_per_client=58.07, stream_messages=37, slo=("read.p90<47.2ms",))
    found = predict(asked, engine="analytic").capacity

    assert found is not None
    for end in ("low", "value", "high"):
        assert getattr(found.peak_tps, end) <= getattr(found.overload_tps, end)


@pytest.mark.parametrize("ratio", [1.0, 1.5])
def test_peak_and_mean_rate_differ_by_the_burst_ratio(ratio: float) -> None:
    made = predicted(burst_ratio=ratio).capacity

    assert made is not None
    assert made.burst_ratio == Band.exactly(ratio)
    assert made.peak_tps.value / made.mean_tps.value == pytest.approx(ratio)
    assert made.overload_tps.value == made.peak_tps.value


@pytest.mark.slow
def test_the_sustained_rate_may_be_given_instead_of_the_peak() -> None:
    made, same = predicted(tps_mean=6000.0, burst_ratio=1.5), predicted(tps=9000.0, burst_ratio=1.5)

    assert made.offered == same.offered
    assert made.latency_ms == same.latency_ms
    assert made.offered is not None
    assert (made.offered.peak_tps, made.offered.mean_tps) == (9000.0, 6000.0)


def test_without_a_burst_ratio_the_sustained_rate_is_that_of_the_load_tests_bursts() -> None:
    made = predicted(tps_mean=6000.0)
    assert made.offered is not None
    assert made.capacity is not None

    assert made.offered.mean_tps == pytest.approx(6000.0)
    assert made.offered.peak_tps == pytest.approx(6000.0 * made.capacity.burst_ratio.value)


@pytest.mark.slow
def test_a_simulation_has_the_given_bursts() -> None:
    """Bursts of 2.5 times the mean drop requests and raise the mean time by half; without them there is no queue.

    A mean over 100,000 requests has a standard error below 0.4 %; 10 % is far beyond it and covers what the solver
    neglects, and less than the effect of the bursts by five times.
    """
    for ratio in (1.0, 2.5):
        fields = {"dcs": 1, "tps_mean": 3600.0, "burst_ratio": ratio}
        simulated = predict(changed(FRESH, **fields)).latency_ms["acct"].mean
        assert simulated is not None
        assert simulated.value == pytest.approx(bands(predicted(**fields).latency_ms["acct"])[0].value, rel=0.1)


def test_objectives_that_limit_leave_the_rate_of_overload_as_it_is() -> None:
    made = predicted(slo=("acct.mean<4.6ms",)).capacity

    assert made is not None
    assert made.peak_tps.value < made.overload_tps.value == capacity().value
    assert made.peak_tps.basis == "extrapolated"
    assert not predicted(slo=("acct.mean<4.6ms",)).one_more


@pytest.mark.slow
def test_one_more_machine_adds_what_the_larger_layout_carries() -> None:
    made = predict(changed(FRESH, dcs=3, cass_nodes=6), engine="analytic")
    larger = predict(changed(FRESH, dcs=3, cass_nodes=7), engine="analytic")
    assert made.capacity is not None
    assert larger.capacity is not None
    found = {each.field: each for each in made.one_more}
    assert found["cass_nodes"].value == "7"
    assert found["cass_nodes"].capacity_tps == pytest.approx(larger.capacity.peak_tps.value, rel=0.02)
    assert found["front_nodes"].capacity_tps == pytest.approx(made.capacity.peak_tps.value, rel=0.005)


def test_limits_are_in_the_order_of_saturation() -> None:
    made = predicted()
    busy = [each.utilisation_at_capacity.value for each in made.limits if each.utilisation_at_capacity is not None]

    assert made.limits[0].resource == made.bottleneck
    assert made.limits[0].assumed
    assert busy == sorted(busy, reverse=True)
    assert busy[0] == pytest.approx(1.0, abs=0.01)
