"""Bands: parameters and model error combined, and the model error itself, from left-out scenarios by Student's t."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from tests.calibration.altered_systems import observing
from tests.calibration.made_up_fits import left_out_at, nested_at

from capplan.layout.extrapolation import RATE
from capplan.layout.fitted_file import Fitted
from capplan.layout.uncertainty import CORRELATIONS, ModelError, ModelErrors, Offset, Uncertainty, model_errors
from capplan.systems.registry import documented_names, scenario, system

OPENPROVIDER = system("openprovider")
FITTED, ASKED = OPENPROVIDER.fitted(), scenario("openprovider")
NORMAL_95 = 1.6448536269514722


def lognormal_draws(log_sd: float, count: int = 4000) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return 1000.0 * np.exp(log_sd * np.random.default_rng(5).standard_normal(count))


def test_a_band_is_the_90_percent_of_parameters_and_model_error_together() -> None:
    band = Uncertainty(rate=ModelError(0.04), time=ModelError(0.1), seed=1).of_rate(lognormal_draws(0.03))

    # Independent normal errors in the logarithm: 3 % and 4 % make 5 %. The 5th percentile of 4000 draws has a standard
    # error of 0.033 of a standard deviation: four of them.
    for edge, sign in ((band.low, -1), (band.high, 1)):
        assert math.log(edge / 1000.0) == pytest.approx(sign * NORMAL_95 * 0.05, abs=4 * 0.033 * 0.05)
    assert band.value == pytest.approx(1000.0, rel=0.003)


def test_the_parts_are_what_each_would_be_alone() -> None:
    draws = lognormal_draws(0.03)
    band = Uncertainty(rate=ModelError(0.04), time=ModelError(0.1), seed=1).of_rate(draws)

    assert band.parts.parameter == pytest.approx(float(np.quantile(draws, 0.95) - np.quantile(draws, 0.05)) / 2)
    assert band.parts.model_error == pytest.approx(NORMAL_95 * 0.04 * band.value)
    assert band.parts.simulation is None


def test_draws_that_agree_leave_the_model_error() -> None:
    band = Uncertainty(rate=ModelError(0.04), time=ModelError(0.1), seed=1).of_time(np.full(2000, 5.0))

    assert band.value == 5.0
    assert band.high == pytest.approx(5.0 * math.exp(NORMAL_95 * 0.1), rel=1e-3)
    assert band.low == pytest.approx(5.0 * math.exp(-NORMAL_95 * 0.1), rel=1e-3)
    assert band.parts.parameter == 0


def test_a_utilisation_never_passes_one() -> None:
    band = Uncertainty(rate=ModelError(0.1), time=ModelError(0.1), seed=1).of_share(np.full(100, 0.97))

    assert band.low < band.value == 0.97
    assert band.high == 1.0


def test_no_more_servers_are_busy_than_there_are() -> None:
    band = Uncertainty(rate=ModelError(0.1), time=ModelError(0.1), seed=1).of_busy(np.full(100, 60.0), 64)

    assert 45 < band.low < band.value == 60.0
    assert band.high == 64


def test_a_capacity_of_zero_is_zero() -> None:
    band = Uncertainty(rate=ModelError(0.1), time=ModelError(0.1), seed=1).of_rate(np.zeros(50))

    assert (band.low, band.value, band.high) == (0, 0, 0)


def test_another_layout_has_the_same_errors_in_another_order() -> None:
    error = ModelError(0.1, correlation=0.5)
    one, other = (Uncertainty(error, error, seed=1, layout=each).repeated_rate(np.ones(50)) for each in (None, 7))

    assert sorted(one) == pytest.approx(sorted(other))
    assert 0.2 < stats.spearmanr(one, other).statistic < 0.8
    same = ModelError(0.1, correlation=1.0)
    assert list(Uncertainty(same, same, seed=1, layout=7).repeated_rate(np.ones(50))) == pytest.approx(one)


def test_the_seed_pairs_draws_with_model_errors() -> None:
    draws = lognormal_draws(0.03, 200)
    first, again, other = (Uncertainty(ModelError(0.04), ModelError(0.1), seed).of_rate(draws) for seed in (1, 1, 2))

    assert first == again
    assert first != other
    assert first.value == other.value


def test_model_errors_widen_by_their_factors_and_keep_their_scenarios() -> None:
    near = OPENPROVIDER.uncertainty(FITTED, ASKED, 1)
    far = near.widened(3.0, {"auth": 1.5, "acct": 2.0})

    assert near.rate.log_sd > 0
    assert near.time.log_sd > 0
    assert far.rate.log_sd == pytest.approx(3 * near.rate.log_sd)
    assert far.by_class["auth"].log_sd == pytest.approx(1.5 * near.time.log_sd)
    assert far.time.log_sd == pytest.approx(2 * near.time.log_sd)  # of no class: the largest factor
    assert (far.rate.scenarios, far.time.scenarios) == (near.rate.scenarios, near.time.scenarios)


def test_what_another_layout_shares_widens_the_shared_part_of_each_figure() -> None:
    error = ModelError(0.1, correlation=0.6)
    found = Uncertainty(error, error, 1).widened(2.0, {"auth": 2.0, "acct": 3.0}, {RATE: 1.5, "acct": 2.0})

    assert found.rate == error.times(2.0, 1.5)
    assert found.by_class == {"auth": error.times(2.0, 1.0), "acct": error.times(3.0, 2.0)}
    assert found.rate.correlation > error.times(2.0).correlation


def test_times_of_a_class_widen_from_their_own_model_error() -> None:
    known = Uncertainty(ModelError(0.1), ModelError(0.2, 4), 1, {"read": ModelError(0.3, 2)}).widened(
        1.0, {"read": 2.0}
    )

    assert known.rate == ModelError(0.1)
    assert known.time == ModelError(0.4, 4)
    assert known.by_class == {"read": ModelError(0.6, 2)}


def test_few_scenarios_make_a_band_of_student() -> None:
    """Draws that agree: the band is Student's t with two degrees of freedom, whose 95th percentile is 2.92."""
    band = Uncertainty(ModelError(0.04, 2), ModelError(0.1), 1).of_rate(np.full(4000, 100.0))

    assert band.high == pytest.approx(100 * math.exp(2.919986 * 0.04), rel=1e-3)
    assert band.low == pytest.approx(100 * math.exp(-2.919986 * 0.04), rel=1e-3)
    assert band.parts.model_error == pytest.approx(2.919986 * 0.04 * 100)


def test_the_packaged_model_error_covers_what_was_missed() -> None:
    """The model error comes from the left-out errors, not from the residuals of the fit, which are smaller."""
    residuals = [math.log(f.predicted / f.documented) for f in FITTED.figures if f.id.endswith(".incoming")]

    assert OPENPROVIDER.uncertainty(FITTED, ASKED, 1).rate.log_sd > float(np.sqrt(np.mean(np.square(residuals))))


def test_an_offset_bounds_a_band_from_below() -> None:
    """A round trip of 100 ms that is known to 1 % does not become 70 ms because the rest is not known at all."""
    known = Uncertainty(ModelError(0.1), ModelError(1.0), 1, offset=Offset({"far": {"p50": 0.1}}, ModelError(0.01)))
    band = known.of_time(np.full(240, 110.0), "far", "p50")

    assert band.value == 110.0
    assert 100.0 < band.low < 103.0  # the rest, 10 ms, as little as 2 ms, and the round trip 98 ms or so
    assert 130.0 < band.high < 170.0  # the rest as much as 52 ms


def test_an_offset_has_its_own_part_of_the_model_error() -> None:
    known = Uncertainty(ModelError(0.1), ModelError(0.5), 1, offset=Offset({"far": {"p50": 0.1}}, ModelError(0.01)))
    parts = known.of_time(np.full(240, 110.0), "far", "p50").parts

    assert parts.model_error == pytest.approx(NORMAL_95 * math.hypot(10 * 0.5, 100 * 0.01))
    assert known.of_time(np.full(240, 110.0), "near", "p50").parts.model_error == pytest.approx(NORMAL_95 * 110 * 0.5)


def test_an_offset_is_no_longer_than_the_latency() -> None:
    """A draw whose latency is shorter than the round trip has nothing beside it, and no negative rest."""
    known = Uncertainty(ModelError(0.1), ModelError(1.0), 1, offset=Offset({"far": {"p50": 0.1}}, ModelError(0.0)))
    draws = np.linspace(60.0, 100.0, 240)

    assert known.repeated_time(draws, "far", "p50") == pytest.approx(draws)


@pytest.mark.parametrize("level", [0.05, 0.25, 0.5, 0.95])
def test_the_chance_of_less_is_the_level_in_the_band_of_repeats(level: float) -> None:
    """Of draws that agree, the model error alone decides; 4,000 repeats are even in their levels."""
    known = Uncertainty(ModelError(0.1), ModelError(0.4), 1)
    below = 1000.0 * math.exp(0.1 * float(stats.norm.ppf(level)))
    spread, band = lognormal_draws(0.03), known.of_rate(lognormal_draws(0.03))

    assert known.chance_of_less(np.full(4000, 1000.0), below) == pytest.approx(level, abs=1e-3)
    assert known.chance_of_less(spread, band.low) == pytest.approx(0.05, abs=1e-3)
    assert known.chance_of_less(spread, band.high) == pytest.approx(0.95, abs=1e-3)


def test_shares_have_the_model_error_of_rates_and_numbers_that_of_times() -> None:
    known, draws = Uncertainty(ModelError(0.1), ModelError(0.4), 1), np.full(4000, 0.1)

    for band, log_sd in ((known.of_share(draws), 0.1), (known.of_busy(draws, 64), 0.4)):
        assert math.log(band.high / band.value) == pytest.approx(NORMAL_95 * log_sd, rel=1e-3)
        assert band.parts.model_error == pytest.approx(NORMAL_95 * log_sd * 0.1)


def test_what_nothing_bounds_has_a_band_without_an_end() -> None:
    half = np.where(np.arange(240) < 200, 50.0, np.inf)
    band = Uncertainty(ModelError(0.1), ModelError(0.2), 1).of_time(half)

    assert math.isfinite(band.value)
    assert band.high == math.inf
    assert (band.parts.parameter, band.parts.model_error) == (None, None)


LEVELS = [0.001, 0.05, 0.25, 0.5, 0.9, 0.95, 0.995]


@pytest.mark.parametrize("scenarios", [1, 2, 3, 4, 7, 30])
def test_quantiles_are_those_of_student(scenarios: int) -> None:
    known = ModelError(0.07, float(scenarios))

    np.testing.assert_allclose(known.quantile(np.array(LEVELS)), 0.07 * stats.t.ppf(LEVELS, scenarios), rtol=1e-8)
    assert known.half_width == pytest.approx(0.07 * stats.t.ppf(0.95, scenarios), rel=1e-8)


def test_without_a_number_of_scenarios_quantiles_are_normal() -> None:
    np.testing.assert_allclose(ModelError(0.07).quantile(np.array(LEVELS)), 0.07 * stats.norm.ppf(LEVELS), atol=1e-12)
    assert ModelError(0.07).half_width == pytest.approx(0.07 * 1.6448536269514722)


def test_fewer_scenarios_make_wider_bands() -> None:
    widths = [ModelError(0.1, n).half_width for n in (1.0, 2.0, 4.0, 8.0, math.inf)]

    assert widths == sorted(widths, reverse=True)
    assert widths[0] == pytest.approx(0.1 * 6.313751514675)


@pytest.mark.parametrize(("factor", "common"), [(1.0, 1.0), (2.0, 1.0), (2.0, 1.5), (2.0, 2.0)])
def test_what_only_one_layout_adds_to_its_error_is_not_shared(factor: float, common: float) -> None:
    """Errors of 10 % with a correlation of 0.6: 0.006 of the variance is shared and 0.004 is not."""
    found = ModelError(0.1, correlation=0.6).times(factor, common)
    shared = found.correlation * found.log_sd**2

    assert shared == pytest.approx(0.006 + (common**2 - 1) * 0.01)
    assert found.log_sd**2 - shared == pytest.approx(0.004 + (factor**2 - common**2) * 0.01)


def test_wider_is_as_sure_of_itself() -> None:
    assert ModelError(0.1, 4).times(2.5) == ModelError(0.25, 4)


def errors_of(fitted: Fitted, unseen: str | None = None) -> ModelErrors:
    return model_errors(system(fitted.system).observations, fitted, unseen)


def erring(**errors: float) -> Fitted:
    """The fit as if some left-out figures were off by this much in the logarithm, and there were no others."""
    wanted = {name.replace("__", "."): error for name, error in errors.items()}
    figures = (replace(each, predicted=each.documented) for each in FITTED.left_out if each.id in wanted)
    off = tuple(replace(each, predicted=each.documented * math.exp(wanted[each.id])) for each in figures)
    return replace(FITTED, left_out=off)


def test_it_is_the_root_mean_square_of_the_errors() -> None:
    found = errors_of(
        erring(ts1__incoming=0.03, ts2__incoming=-0.04, ts3__auth_mean=0.2, ts3__acct_mean=-0.1, ts1__acct_mean=0.0)
    )

    assert found.rate.log_sd == pytest.approx(math.sqrt((0.03**2 + 0.04**2) / 2))
    assert found.rate.scenarios == 2
    assert found.time.log_sd == pytest.approx(math.sqrt((0.2**2 + 0.1**2) / 3))
    assert found.time.scenarios == 2  # TS1 and TS3: two figures of one scenario are no two scenarios


def test_a_bias_counts_in_full() -> None:
    """Errors of one size and sign: nothing is subtracted before they are squared."""
    found = errors_of(left_out_at(FITTED, 0.1))

    assert (found.rate.log_sd, found.time.log_sd) == pytest.approx((0.1, 0.1))
    assert (found.rate.scenarios, found.time.scenarios) == (3, 3)  # TS1 to TS3: TS4 is not scored


def test_figures_that_tell_of_nothing_do_not_count() -> None:
    its = system("openprovider").observations
    kinds = {row.id: its.kind_of(row) for test in its.load_tests() for row in test.rows}
    silent = tuple(replace(each, predicted=9 * each.documented) for each in FITTED.left_out if kinds[each.id] is None)

    assert {"ts1.busy_workers", "ts4-ldap.incoming"} <= {each.id for each in silent}
    found = errors_of(replace(FITTED, left_out=silent))
    assert math.isnan(found.rate.log_sd)
    assert math.isnan(found.time.log_sd)


def test_times_have_one_for_each_group_and_others_that_of_all_times() -> None:
    fitted, its = system("fedora4").fitted(), system("fedora4").observations
    rows = {row.id: row for test in its.load_tests() for row in test.rows}
    timed = [each for each in fitted.left_out if its.kind_of(rows[each.id]) == "time"]
    groups = {each.id: its.group_of(rows[each.id]) for each in timed}
    sizes = {name: 0.1 * (1 + number) for number, name in enumerate(sorted(set(groups.values())))}
    off = tuple(replace(each, predicted=each.documented * math.exp(sizes[groups[each.id]])) for each in timed)
    found = errors_of(replace(fitted, left_out=off))

    assert len(sizes) > 1
    assert {name: each.log_sd for name, each in found.by_group.items()} == pytest.approx(sizes)
    for name, group in groups.items():
        folds = {rows[other].fold for other in groups if groups[other] == group}
        assert found.of(its, rows[name]) == found.by_group[group]
        assert found.by_group[group].scenarios == len(folds)
    other = observing(system("fedora4"), group_of=lambda _: "a group without errors").observations
    assert found.of(other, rows[timed[0].id]) == found.time
    assert found.of(its, next(row for row in rows.values() if row.unit == "1/s")) == found.rate


@pytest.mark.parametrize("name", documented_names())
def test_an_unseen_scenario_bears_on_nothing(name: str) -> None:
    """Neither its own error nor a fit that saw it: only nested refits without it count."""
    fitted = system(name).fitted()
    unseen = fitted.left_out[0].fold

    def spoilt(inside: bool) -> Fitted:
        nested = tuple(
            replace(each, predicted=3 * each.predicted) if (each.without == unseen) == inside else each
            for each in fitted.nested
        )
        left_out = fitted.left_out if inside else left_out_at(fitted, 2.0).left_out
        return replace(fitted, nested=nested, left_out=left_out)

    def said(of: Fitted) -> str:
        return repr(errors_of(of, unseen))  # that of rates is not a number where there are none

    assert said(spoilt(inside=False)) == said(fitted)
    assert said(spoilt(inside=True)) != said(fitted)


def test_nested_errors_by_hand() -> None:
    """Two other scenarios, whose nested refits err by 1 and 2 per cent, and TS4, which is not scored."""
    made = nested_at(FITTED, {"TS1": 5.0, "TS2": 0.01, "TS3": -0.02, "TS4": 4.0})
    found = errors_of(made, unseen="TS1")

    assert found.rate == pytest.approx(ModelError(math.sqrt((1 + 4) / 2) / 100, 2, CORRELATIONS["rate"]))
    assert found.time.scenarios == 2
