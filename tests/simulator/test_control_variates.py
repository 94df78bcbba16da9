"""Regression on controls: exact if figures follow them, with the known variance if they correlate."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulator.random_series import chance_limits

from capplan.models.errors import InputError
from capplan.models.language.units import FloatArray
from capplan.simulator.output import ControlledEstimate, controlled, of_replications


def correlated(random: np.random.Generator, experiments: int, replications: int, share: float) -> FloatArray:
    """Figures of mean 0, and two controls that explain `share` of their variance: shape (e, r, 3)."""
    controls = random.standard_normal((experiments, replications, 2))
    own = random.standard_normal((experiments, replications))
    figures = math.sqrt(share / 2) * controls.sum(axis=2) + math.sqrt(1 - share) * own
    return np.concatenate([figures[..., None], controls], axis=2)


def test_figures_that_follow_their_control_are_known_exactly() -> None:
    """Figure 3 + 2 (control - 10), whatever the controls were."""
    control = np.array([[9.0], [10.5], [14.0], [11.0]])
    found = controlled(3 + 2 * (control[:, 0] - 10), control, [10.0])

    assert found.interval.value == pytest.approx(3.0)
    assert found.interval.half_width == pytest.approx(0.0, abs=1e-12)
    assert found.coefficients == pytest.approx([2.0])
    assert found.variance_ratio == pytest.approx(0.0, abs=1e-20)
    assert found.plain == of_replications(3 + 2 * (control[:, 0] - 10))


def test_one_control_by_hand() -> None:
    """Controls -1, -1, 1, 1 of mean 1, figures 0, 2, 4, 6: slope 2, so 3 + 2; residuals -1, 1, -1, 1 leave 4 / 2.

    The intercept at 1 has the variance 2 (1/4 + 1/4) = 1, and two degrees of freedom. Ratio: 2 over the variance of
    the figures 20/3, times (4 - 2) / (4 - 1 - 2).
    """
    found = controlled([0.0, 2.0, 4.0, 6.0], [[-1.0], [-1.0], [1.0], [1.0]], [1.0])

    assert found.interval.value == pytest.approx(5.0)
    assert found.interval.half_width == pytest.approx(0.95 * math.sqrt(2 / (4 * 0.975 * 0.025)))
    assert found.variance_ratio == pytest.approx(2 / (20 / 3) * 2)


def test_another_plain_estimate_is_corrected_alike() -> None:
    found = controlled([0.0, 2.0, 4.0, 6.0], [[-1.0], [-1.0], [1.0], [1.0]], [1.0], value=3.25)

    assert found.plain.value == 3.25
    assert found.interval.value == pytest.approx(5.25)


def same(one: ControlledEstimate, other: ControlledEstimate) -> bool:
    return (
        one.interval.value == pytest.approx(other.interval.value)
        and one.interval.half_width == pytest.approx(other.interval.half_width)
        and one.variance_ratio == pytest.approx(other.variance_ratio)
    )


def test_controls_that_tell_nothing_new_are_dropped() -> None:
    """A constant, a multiple, and a sum of two others: their coefficients are 0 and nothing else changes."""
    table = correlated(np.random.default_rng(1), 1, 20, 0.5)[0]
    figures, one, two = table.T
    alone = controlled(figures, np.column_stack([one, two]), [0.0, 0.0])
    more = controlled(figures, np.column_stack([np.full(20, 0.1), one, 3 * one + 1e-12, two, one - two]), [0.0] * 5)

    assert same(more, alone)
    assert more.coefficients == pytest.approx([0, alone.coefficients[0], 0, alone.coefficients[1], 0])


@pytest.mark.parametrize(
    ("replications", "controls"),
    [(4, 2), (3, 1), (1, 1), (0, 1), (9, 0)],
    ids=["one too few", "two and a slope", "one", "none", "no control"],
)
def test_too_few_replications_stay_plain(replications: int, controls: int) -> None:
    random = np.random.default_rng(2)
    figures = random.standard_normal(replications)
    found = controlled(figures, random.standard_normal((replications, controls)), [0.0] * controls)

    assert found.interval is found.plain
    assert found.variance_ratio == 1.0
    assert found.coefficients.tolist() == [0.0] * controls


def test_figures_that_do_not_scatter_stay_plain() -> None:
    found = controlled([2.0] * 9, np.random.default_rng(3).standard_normal((9, 1)), [0.0])

    assert (found.interval.value, found.interval.half_width, found.variance_ratio) == (2.0, 0.0, 1.0)


def test_rows_with_a_gap_are_left_out() -> None:
    figures, controls = [0.0, math.nan, 2.0, 4.0, 9.0, 6.0], [[-1.0], [5.0], [-1.0], [1.0], [math.nan], [1.0]]

    assert same(controlled(figures, controls, [1.0]), controlled([0.0, 2.0, 4.0, 6.0], [[-1], [-1], [1], [1]], [1.0]))


@pytest.mark.parametrize("shape", [(2, 1), (3, 2)])
def test_shapes_fit(shape: tuple[int, int]) -> None:
    with pytest.raises(InputError):
        controlled([1.0, 2.0, 3.0], np.zeros(shape), [0.0])


@given(st.integers(0, 10**6), st.floats(-1e3, 1e3), st.floats(0.01, 100.0), st.floats(1e-6, 1e6))
def test_units_do_not_matter(seed: int, shift: float, scale: float, unit: float) -> None:
    """Of the figures, and of the controls with their means."""
    random = np.random.default_rng(seed)
    figures, *controls = correlated(random, 1, 12, 0.5)[0].T
    plain = controlled(figures, np.column_stack(controls), [0.2, -0.1])
    other = controlled(shift + scale * figures, unit * np.column_stack(controls), [unit * 0.2, -unit * 0.1])

    assert plain.interval.half_width is not None
    assert other.interval.value == pytest.approx(shift + scale * plain.interval.value, abs=1e-8)
    assert other.interval.half_width == pytest.approx(scale * plain.interval.half_width, rel=1e-6)
    assert other.coefficients == pytest.approx(plain.coefficients * scale / unit, rel=1e-6)
    assert other.variance_ratio == pytest.approx(plain.variance_ratio, rel=1e-6)


def test_variance_is_that_of_theory() -> None:
    """(1 - 0.8) (12 - 2) / (12 - 2 - 2) = 0.25 of the plain variance, of which 0.05 are the cost of estimating.

    Over 4,000 experiments the variance of the estimates has a standard error of 2.2 %, so 10 % is 4.5 of them (error
    1e-5), and an estimate without the loss (20 % less) would be found.
    """
    tables = correlated(np.random.default_rng(4), 4000, 12, 0.8)
    found = [controlled(table[:, 0], table[:, 1:], [0.0, 0.0]).interval.value for table in tables]

    assert np.var(found) == pytest.approx(0.25 / 12, rel=0.1)


@pytest.mark.parametrize(("replications", "reported"), [(12, 0.29), (100, 0.2 * 98 / 96 * 1.02)])
def test_the_reported_ratio_is_about_that_of_theory(replications: int, reported: float) -> None:
    """0.25 and 0.204 in theory; too high by the documented 16 % and 2 %. Standard errors over 1,000 are below 1.5 %."""
    tables = correlated(np.random.default_rng(7), 1000, replications, 0.8)
    ratios = [controlled(table[:, 0], table[:, 1:], [0.0, 0.0]).variance_ratio for table in tables]

    assert np.mean(ratios) == pytest.approx(reported, rel=0.05)


def test_useless_controls_are_reported_as_a_loss() -> None:
    """Without correlation the ratio is (12 - 2) / (12 - 2 - 2) in the mean; its standard error here is below 1 %."""
    tables = correlated(np.random.default_rng(5), 1000, 12, 0.0)
    ratios = [controlled(table[:, 0], table[:, 1:], [0.0, 0.0]).variance_ratio for table in tables]

    assert np.mean(ratios) == pytest.approx(1.25, rel=0.04)


def test_coverage() -> None:
    """Exactly 95 % for normal figures, with 8 replications and 2 controls.

    Of 4,000, the limits let 95 % fail with 1e-4 on either side; leaving the spread of the controls' means out
    of the variance would make 92 %.
    """
    tables = correlated(np.random.default_rng(6), 4000, 8, 0.6)
    found = [controlled(table[:, 0], table[:, 1:], [0.0, 0.0]).interval for table in tables]
    fewest, most = chance_limits(4000, 0.95)

    assert fewest <= sum(each.low <= 0 <= each.high for each in found) <= most
