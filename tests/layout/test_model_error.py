"""The model error: root mean square of left-out errors, with Student's t for few scenarios."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from tests.calibration.altered_systems import observing
from tests.calibration.made_up_fits import left_out_at, nested_at

from capplan.layout.fitted_file import Fitted
from capplan.layout.uncertainty import CORRELATIONS, ModelError, ModelErrors, model_errors
from capplan.systems.registry import documented_names, system

OPENPROVIDER = system("openprovider")
FITTED = OPENPROVIDER.fitted()
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
