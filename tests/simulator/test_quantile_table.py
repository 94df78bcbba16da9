"""The tables agree with the distributions' quantile functions to nine digits, in both tails, for all shapes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.models.errors import RefusedError
from capplan.models.language.distribution import Erlang, Exponential, Lognormal, Pareto, Weibull
from capplan.simulator.specification.sampling import (
    BELOW_HALF,
    MOST_STAGES,
    NEGLIGIBLE,
    OCTAVES,
    ORDER,
    TOLERANCE,
    Tabulated,
    quantile_by_side,
    quantile_table,
    scale_s,
)

# In the middle and at the ends of what the language allows.
LAWS: list[Tabulated] = [
    Exponential(1.0),
    *(Erlang(1.0, stages) for stages in (1, 2, 7, 100, MOST_STAGES)),
    *(Lognormal(1.0, scv) for scv in (1e-300, 1e-4, 1.0, 30.0, 1e6, 1e300)),
    *(Weibull(1.0, shape) for shape in (0.02, 0.1, 0.5, 1.0, 3.6, 1e5)),
    *(Pareto(1.0, shape) for shape in (1.0001, 1.5, 2.5, 1e6)),
]
SHAPES = st.one_of(
    st.builds(Erlang, st.just(1.0), st.integers(1, 2000)),
    st.builds(Lognormal, st.just(1.0), st.floats(1e-6, 1e6)),
    st.builds(Weibull, st.just(1.0), st.floats(0.02, 50.0)),
    st.builds(Pareto, st.just(1.0), st.floats(1.0, 50.0, exclude_min=True)),
)
UNIFORM = st.integers(0, 2**52 - 1).map(lambda bits: (bits + 0.5) * 2.0**-52)


def values(law: Tabulated, uniforms: np.ndarray) -> np.ndarray:
    quantile = quantile_table(law).quantile()
    return np.array([quantile(float(uniform)) for uniform in uniforms])


def assert_close(law: Tabulated, upper: bool, distances: np.ndarray) -> None:
    """`distances` are from the end of the side, and so exact that 1 - distance is."""
    expected = quantile_by_side(law, upper, distances)
    found = values(law, 1 - distances if upper else distances)
    assert np.all(np.abs(found - expected) <= TOLERANCE * np.maximum(expected, NEGLIGIBLE))


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("upper", [False, True], ids=["lower", "upper"])
def test_every_octave_of_every_law(law: Tabulated, upper: bool) -> None:
    rng = np.random.default_rng(7)
    multiples = np.array([rng.integers(2**k, 2 ** (k + 1), 20) for k in range(52)]).ravel()
    assert_close(law, upper, multiples * 2.0**-53)
    assert_close(law, upper, np.array([2.0**-53, 2.0**-52, 0.25, BELOW_HALF if not upper else 0.5 - 2.0**-53]))


@given(SHAPES, st.lists(UNIFORM, min_size=1, max_size=20))
def test_every_shape(law: Tabulated, uniforms: list[float]) -> None:
    for uniform in uniforms:
        upper = uniform > 0.5
        assert_close(law, upper, np.array([1 - uniform if upper else uniform]))


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_formulas_by_side_are_those_of_the_law(law: Tabulated) -> None:
    """Where the distribution's own quantile is precise: not in the far upper tail."""
    distances = np.exp2(-np.linspace(1, 20, 200))
    assert quantile_by_side(law, False, distances) == pytest.approx(np.asarray(law.quantile(distances)), rel=1e-10)
    assert quantile_by_side(law, True, distances) == pytest.approx(np.asarray(law.quantile(1 - distances)), rel=1e-6)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_rising_across_the_edges_of_pieces(law: Tabulated) -> None:
    """Two polynomials meet at an edge: what the one ends with, the other begins with, to the tolerance."""
    pieces = quantile_table(law).pieces
    edges = (1 + np.arange(pieces) / pieces)[None, :] * np.exp2(-2.0 - np.arange(OCTAVES - 1))[:, None]
    lower = np.sort(edges.ravel())[1:]
    upper = 1 - lower[lower > 2.0**-40][::-1]  # nearer to 1, pieces are narrower than the doubles are apart
    for edge in (lower, upper):
        found = values(law, np.stack([np.nextafter(edge, 0), edge], axis=1).ravel())
        assert np.all(np.diff(found) >= -2 * TOLERANCE * np.maximum(found[1:], NEGLIGIBLE))


def test_known_values() -> None:
    quantile = quantile_table(Exponential(1.0)).quantile()
    assert quantile(0.25) == pytest.approx(math.log(4 / 3), rel=TOLERANCE)
    assert quantile(1 - 2.0**-53) == pytest.approx(53 * math.log(2), rel=TOLERANCE)
    assert quantile(2.0**-53) == pytest.approx(2.0**-53, rel=TOLERANCE)
    assert quantile(0.5) == pytest.approx(math.log(2), rel=TOLERANCE)  # no uniform number, but a mixture's rest may be


def test_laws_of_one_shape_share_a_table() -> None:
    assert quantile_table(Lognormal(0.1, 3.0)) is quantile_table(Lognormal(7.0, 3.0))
    assert quantile_table(Exponential(0.0)) is quantile_table(Exponential(1.0))
    assert quantile_table(Weibull(1.0, 0.5)) is not quantile_table(Weibull(1.0, 0.6))
    assert [scale_s(law) for law in (Exponential(2.0), Weibull(3.0, 2.0), Pareto(4.0, 2.0))] == [2.0, 3.0, 4.0]


def test_the_array_is_the_rows() -> None:
    table = quantile_table(Weibull(1.0, 0.1))
    assert table.coefficients.shape == (2, OCTAVES, table.pieces, ORDER)
    assert table.pieces > 8
    assert table.coefficients.tolist() == table.rows
    with pytest.raises(ValueError, match="read-only"):
        table.coefficients[0, 0, 0, 0] = 1.0


def test_an_erlang_law_of_a_million_stages_is_refused() -> None:
    with pytest.raises(RefusedError, match="1000000"):
        quantile_table(Erlang(1.0, 10**6))
