"""Distributions against textbook values and numeric integration; quantile function and CDF invert each other."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import LAWS

from capplan.errors import InputError
from capplan.models.language.distribution import (
    Deterministic,
    Distribution,
    Empirical,
    Erlang,
    Exponential,
    Hyperexponential,
    Lognormal,
    Mixture,
    Pareto,
    Weibull,
    scaled,
)
from capplan.models.language.units import FloatArray

ATOMS = Mixture((0.25, 0.25, 0.5), (Deterministic(1), Deterministic(2), Deterministic(3)))
CONTINUOUS: list[Distribution] = [
    Exponential(0.0015),
    Erlang(0.0015, 4),
    Lognormal(0.0015, 2.5),
    Weibull(0.0015, 0.7),
    Weibull(0.0015, 3.0),
    Pareto(0.001, 5.0),
    Empirical((0.001, 0.002, 0.0025, 0.04)),
    Hyperexponential((0.95, 0.05), (0.001, 0.02)),
    Mixture((0.7, 0.3), (Erlang(0.001, 3), Lognormal(0.006, 1.5))),
]


def integral(law: Distribution, power: int, breaks: Sequence[float] = ()) -> float:
    """Integrate quantile(p) ** power over p by 20-point Gauss-Legendre on panels that shrink towards 0 and 1.

    The last 2**-46 is left out: doubles next to 1 are too coarse. Of the laws here that is at most 5e-9 of the second
    moment (Pareto with shape 5: 2**-46 to the power 1 - 2/5).
    """
    toward = 2.0 ** -np.arange(1, 47)
    edges = np.unique(np.concatenate([[0.0], toward, 1 - toward, np.asarray(breaks)]))
    edges = edges[edges < 1]
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half = np.diff(edges)[:, None] / 2
    values = np.asarray(law.quantile(edges[:-1, None] + half * (nodes + 1)))
    return float(np.sum(half * weights * values**power))


# Breaks: the probabilities at which a quantile function has a kink or a jump.
@pytest.mark.parametrize(
    ("law", "breaks"),
    [
        *((law, (1 / 3, 2 / 3)) for law in CONTINUOUS),
        (Deterministic(0.003), ()),
        (ATOMS, (0.25, 0.5)),
        (Mixture((0.4, 0.6), (Deterministic(1), Exponential(1))), (0.6 * -np.expm1(-1), 0.4 + 0.6 * -np.expm1(-1))),
    ],
)
def test_mean_and_scv_are_the_integrals_of_the_quantile(law: Distribution, breaks: Sequence[float]) -> None:
    mean = integral(law, 1, breaks)
    assert law.mean == pytest.approx(mean, rel=1e-6)
    assert law.scv == pytest.approx(integral(law, 2, breaks) / mean**2 - 1, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("law", CONTINUOUS)
def test_cdf_of_quantile_is_the_identity(law: Distribution) -> None:
    probability = np.concatenate([np.linspace(0.001, 0.999, 999), [1e-9, 1 - 1e-9]])
    np.testing.assert_allclose(law.cdf(law.quantile(probability)), probability, rtol=0, atol=1e-12)


@pytest.mark.parametrize("law", CONTINUOUS)
def test_quantile_of_cdf_is_the_identity(law: Distribution) -> None:
    value = np.asarray(law.quantile(0.02)) * np.linspace(1.0, 1.5, 50)
    np.testing.assert_allclose(law.quantile(law.cdf(value)), value, rtol=1e-11)


@given(LAWS, st.floats(1e-6, 1 - 1e-6))
def test_quantile_is_where_the_cdf_reaches_the_probability(law: Distribution, probability: float) -> None:
    value = np.asarray(law.quantile(probability))
    assert np.asarray(law.cdf(value * (1 + 1e-12))) >= probability - 1e-12
    assert np.asarray(law.cdf(value * (1 - 1e-12) - 1e-300)) <= probability + 1e-12


@given(LAWS, st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_quantile_rises(law: Distribution, probabilities: list[float]) -> None:
    values = np.asarray(law.quantile(np.sort(probabilities)))
    assert np.all(values[1:] >= values[:-1] * (1 - 1e-12))
    assert np.all(values >= 0)


@given(LAWS)
def test_cdf_is_zero_below_the_support_and_one_at_its_end(law: Distribution) -> None:
    assert law.cdf(-1.0) == 0.0
    assert law.cdf(np.inf) == pytest.approx(1.0, abs=1e-12)
    assert law.cdf(law.quantile(1.0)) == pytest.approx(1.0, abs=1e-12)


@given(LAWS, st.floats(0.001, 1000.0), st.floats(0.01, 0.99))
def test_scaling_scales_every_duration_and_no_shape(law: Distribution, factor: float, probability: float) -> None:
    twice: Distribution = scaled(law, factor)
    assert twice.mean == pytest.approx(np.asarray(law.mean) * factor, rel=1e-12)
    assert twice.scv == pytest.approx(law.scv, rel=1e-9, abs=1e-12)
    assert twice.quantile(probability) == pytest.approx(np.asarray(law.quantile(probability)) * factor, rel=1e-9)


TEXTBOOK = [
    (Deterministic(2), 2.0, 0.0, 2.0),
    (Exponential(2), 2.0, 1.0, 2 * np.log(2)),
    (Erlang(2, 1), 2.0, 1.0, 2 * np.log(2)),
    (Erlang(2, 2), 2.0, 0.5, 1.6783469900166608),  # (1 + x) exp(-x) = 1/2 at x = median
    (Lognormal(2, 3), 2.0, 3.0, 1.0),  # median = mean / sqrt(1 + scv)
    (Weibull(2, 2), np.sqrt(np.pi), 4 / np.pi - 1, 2 * np.sqrt(np.log(2))),  # Rayleigh
    (Pareto(2, 3), 3.0, 1 / 3, 2 ** (4 / 3)),
    (Pareto(2, 1.5), 6.0, np.inf, 2 ** (5 / 3)),
    (Empirical((0, 2)), 1.0, 1 / 3, 1.0),  # uniform
    (Empirical((1, 1, 1)), 1.0, 0.0, 1.0),
    (Hyperexponential((0.5, 0.5), (1, 3)), 2.0, 1.5, None),
    (Hyperexponential((0.25, 0.75), (2, 2)), 2.0, 1.0, 2 * np.log(2)),
    (Mixture((0.5, 0.5), (Deterministic(1), Deterministic(3))), 2.0, 0.25, 1.0),
    (Deterministic(0), 0.0, 0.0, 0.0),
    (Mixture((0.5, 0.5), (Deterministic(0), Deterministic(0))), 0.0, 0.0, 0.0),
]


@pytest.mark.parametrize(("law", "mean", "scv", "median"), TEXTBOOK)
def test_textbook_values(law: Distribution, mean: float, scv: float, median: float | None) -> None:
    assert law.mean == pytest.approx(mean, rel=1e-14)
    assert law.scv == pytest.approx(scv, rel=1e-13, abs=1e-15)
    if median is not None:
        assert law.quantile(0.5) == pytest.approx(median, rel=1e-13)


def test_a_mixture_of_atoms_has_exact_quantiles() -> None:
    probability = [0.0, 0.1, 0.25, 0.2500001, 0.5, 0.5000001, 1.0]
    assert np.asarray(ATOMS.quantile(np.array(probability))).tolist() == [1, 1, 1, 2, 2, 3, 3]
    assert np.asarray(ATOMS.cdf(np.array([0.999, 1, 2.5, 3]))).tolist() == [0, 0.25, 0.5, 1]


def test_a_mixture_ends_where_its_last_part_does() -> None:
    """Not where its CDF is 1 but for rounding."""
    assert Mixture((0.4, 0.6), (Deterministic(1), Exponential(1))).quantile(1.0) == np.inf


def test_a_mixture_quantile_is_the_smallest_double_that_reaches_it() -> None:
    law = Hyperexponential((0.95, 0.05), (0.001, 0.02))
    probability = np.linspace(0.01, 0.99, 99)
    value = np.asarray(law.quantile(probability))
    assert np.all(np.asarray(law.cdf(value)) >= probability)
    assert np.all(np.asarray(law.cdf(np.nextafter(value, 0))) < probability)


def test_an_atom_in_measured_quantiles() -> None:
    law = Empirical((1, 2, 2, 3))
    assert np.asarray(law.cdf(np.array([0.5, 1, 1.5, 2, 2.5, 3, 4]))) == pytest.approx(
        [0, 0, 1 / 6, 2 / 3, 5 / 6, 1, 1]
    )


def test_a_scale_of_zero_puts_all_mass_at_zero() -> None:
    laws: list[Distribution] = [Exponential(0), Erlang(0, 2), Lognormal(0, 1), Weibull(0, 2), Pareto(0, 3)]
    for law in [*laws, Hyperexponential((1,), (0,))]:
        assert law.mean == 0.0
        assert np.asarray(law.quantile(np.array([0.0, 0.5, 1.0]))).tolist() == [0, 0, 0]
        assert np.asarray(law.cdf(np.array([-1.0, 0.0, 1.0]))).tolist() == [0, 1, 1]


DRAWS = np.array([0.001, 0.004, 0.0])
SHAPES = np.array([1.5, 2.5, 4.0])
ONE = np.array([0.2, 0.5, 0.9])


def elementwise(index: int) -> list[Distribution]:
    """The laws of the test below for one draw."""
    scale, shape, one = float(DRAWS[index]), float(SHAPES[index]), float(ONE[index])
    return [
        Deterministic(scale),
        Exponential(scale),
        Erlang(scale, 3),
        Lognormal(scale, shape),
        Weibull(scale, shape),
        Pareto(scale, shape),
        Hyperexponential((one, 1 - one), (scale, 0.1)),
        Mixture((one, 1 - one), (Lognormal(scale, shape), Deterministic(0.05))),
    ]


def test_parameter_draws_broadcast() -> None:
    together: list[Distribution] = [
        Deterministic(DRAWS),
        Exponential(DRAWS),
        Erlang(DRAWS, 3),
        Lognormal(DRAWS, SHAPES),
        Weibull(DRAWS, SHAPES),
        Pareto(DRAWS, SHAPES),
        Hyperexponential((ONE, 1 - ONE), (DRAWS, 0.1)),
        Mixture((ONE, 1 - ONE), (Lognormal(DRAWS, SHAPES), Deterministic(0.05))),
    ]
    probability = np.array([[0.0], [0.3], [0.95]])
    value = np.array([[0.0], [0.002], [0.2]])

    def stacked(law: int, what: str, *arguments: FloatArray) -> FloatArray:
        parts = [getattr(elementwise(draw)[law], what) for draw in range(3)]
        return np.stack([np.broadcast_to(part(*arguments) if arguments else part, (3,)) for part in parts], axis=-1)

    for index, law in enumerate(together):
        np.testing.assert_allclose(law.quantile(probability), stacked(index, "quantile", probability[:, 0]), rtol=1e-12)
        np.testing.assert_allclose(law.cdf(value), stacked(index, "cdf", value[:, 0]), rtol=1e-12)
        np.testing.assert_allclose(np.broadcast_to(law.mean, 3), stacked(index, "mean")[0], rtol=1e-12)
        np.testing.assert_allclose(np.broadcast_to(law.scv, 3), stacked(index, "scv")[0], rtol=1e-9)


def test_scaling_by_draws() -> None:
    law = scaled(Hyperexponential((0.5, 0.5), (1, 3)), np.array([1.0, 2.0]))
    assert np.asarray(law.mean).tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Deterministic(-1), ("Deterministic: value_s: -1",)),
        (lambda: Exponential(float("inf")), ("Exponential: mean_s: inf", "finite")),
        (lambda: Exponential("1.5parsec"), ("mean_s", "'parsec'")),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: Exponential(mean=1), ("'mean'", "'mean_s'")),  # type: ignore[call-arg]  # wrong on purpose
        (lambda: Erlang(1, 0), ("stages: 0",)),
        (lambda: Erlang(1, 2.0), ("stages: 2.0",)),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: Lognormal(1, 0), ("shape_scv: 0",)),
        (lambda: Weibull(1, 0.01), ("0.01", "0.02")),
        (lambda: Pareto(1, 1), ("1", "above 1")),
        (lambda: Empirical((1,)), ("two",)),
        (lambda: Empirical((DRAWS, 1)), ("single number",)),
        (lambda: Empirical((2, 1)), ("sort",)),
        (lambda: Hyperexponential((1.0,), (1, 2)), ("1 probabilities", "2")),
        (lambda: Hyperexponential((0.5, 0.6), (1, 2)), ("1.1",)),
        (lambda: Mixture((), ()), ("0 probabilities",)),
        (lambda: Mixture((1.0, 0.0), (Exponential(1), Exponential(1))), ("probabilities[1]: 0",)),
        (lambda: Mixture((ONE, ONE), (Exponential(1), Exponential(1))), ("1.8",)),
    ],
)
def test_refused(make: object, words: tuple[str, ...]) -> None:
    assert callable(make)
    with pytest.raises(InputError) as caught:
        make()
    assert [word for word in words if word not in str(caught.value)] == []
    assert "\n" not in str(caught.value)
