"""What fits owe to the medians of their priors."""

import math
import runpy
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from capplan.calibration.validation.nearness import Nearness, nearness
from capplan.models.language.parameter import Parameter, defaults
from capplan.systems.registry import system

SCRIPT = runpy.run_path(str(Path(__file__).parents[3] / "docs" / "generate" / "priors.py"))
displaced, refitted_from, scored, sign_patterns = (
    SCRIPT[name] for name in ("displaced", "refitted_from", "scored", "sign_patterns")
)
VCIDER = system("vcider")
FITTED = VCIDER.fitted()
PARAMETERS = (
    Parameter("one_s", 2.0, "s", "fitted", 0.5, "made up"),
    Parameter("fixed", 7.0, "1", "documented", 0.0, "made up"),
    Parameter("two_s", 1.0, "s", "guess", 1.0, "made up"),
)


def test_nearness_counts_standard_deviations_of_the_priors() -> None:
    found = nearness(PARAMETERS, (2.0 * math.exp(0.25), math.exp(-2.0)))

    assert found.parameters == 2
    assert found.squares == pytest.approx(0.25 + 4.0)
    assert found.root_mean_square == pytest.approx(math.sqrt(4.25 / 2))
    assert found.probability == pytest.approx(1 - math.exp(-4.25 / 2))  # chi-squared with two degrees of freedom
    assert astuple(found + Nearness(3, 0.75)) == pytest.approx((5, 5.0))


def test_medians_that_do_not_know_the_fit_are_rarely_near() -> None:
    """Of 1,000 fits at random distances, 1 % have a probability below 1 %: at most 21 (binomial, error rate 1e-3)."""
    distances = np.random.default_rng(1).standard_normal((1000, 44))
    probabilities = [Nearness(44, float((each**2).sum())).probability for each in distances]

    assert sum(each < 0.01 for each in probabilities) <= stats.binom.ppf(0.999, 1000, 0.01)


def test_each_free_median_moves_by_its_own_standard_deviation() -> None:
    moved = displaced(PARAMETERS, (1, -1))

    assert [each.value for each in moved] == pytest.approx([2.0 * math.exp(0.5), 7.0, math.exp(-1.0)])
    assert [(each.name, each.log_sd) for each in moved] == [(each.name, each.log_sd) for each in PARAMETERS]
    assert displaced(PARAMETERS, (0, 0)) == PARAMETERS


def test_every_pattern_of_signs_has_its_reverse() -> None:
    plain, *patterns = sign_patterns(PARAMETERS, 1)

    assert plain == [0, 0]
    assert patterns[1::2] == [[-sign for sign in pattern] for pattern in patterns[::2]]
    assert {abs(sign) for pattern in patterns for sign in pattern} == {1}
    assert sign_patterns(PARAMETERS, 1) == [plain, *patterns]


def test_figures_that_decide_a_parameter_hardly_move_with_its_median() -> None:
    """Four of vcider's six parameters are determined by its figures: medians 2 to 2.7 times off move none by 5 %."""
    plain, moved = (refitted_from(VCIDER, FITTED, [sign] * 6) for sign in (0, 1))
    documented = scored(VCIDER, FITTED)

    assert set(documented) < set(plain["fitted"]) == set(plain["left_out"])
    for name in documented:
        assert moved["fitted"][name] == pytest.approx(plain["fitted"][name], rel=0.05)
    assert moved["fitted"] != plain["fitted"]


def test_without_a_move_the_fit_is_that_of_the_calibration() -> None:
    plain = refitted_from(VCIDER, FITTED, [0] * 6)
    single = {name: np.array([value]) for name, value in zip(FITTED.names, FITTED.most_probable, strict=True)}
    values = {**defaults(VCIDER.parameters), **single}
    said = VCIDER.observations.predicted(VCIDER.observations.load_tests(), values)

    assert plain["fitted"] == pytest.approx({name: float(each[0]) for name, each in said.items()}, rel=1e-3)
