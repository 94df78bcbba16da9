"""Samplers have their distributions, to nine digits in both tails, and the kernel draws the same ticks."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.errors import InputError, RefusedError
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
)
from capplan.models.language.network import Network
from capplan.models.language.station import Station
from capplan.models.language.step import Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.simulator.compiled.engine import begin, lowered
from capplan.simulator.compiled.kernel.library import Kernel
from capplan.simulator.compiled.lowering import Numbers, fixed_waits
from capplan.simulator.specification.clock import LONGEST_TICKS, to_seconds, to_ticks
from capplan.simulator.specification.sampling import (
    BELOW_HALF,
    MOST_STAGES,
    NEGLIGIBLE,
    OCTAVES,
    ORDER,
    TOLERANCE,
    DistributionKind,
    FlatDistributions,
    Tabulated,
    flatten,
    picker,
    quantile_by_side,
    quantile_table,
    scale_s,
    tick_sampler,
)

SIMPLE: list[Distribution] = [
    Deterministic(0.003),
    Exponential(0.002),
    Erlang(0.002, 4),
    Lognormal(0.002, 3.0),
    Weibull(0.002, 0.7),
    Pareto(0.001, 2.5),
    Empirical((0.0, 0.001, 0.004)),
]
MIXED: list[Distribution] = [
    Hyperexponential((0.3, 0.7), (0.1, 2.0)),
    Mixture((0.25, 0.75), (Erlang(1.0, 2), Mixture((0.5, 0.5), (Exponential(3.0), Lognormal(1.0, 1.0))))),
    Mixture((0.1, 0.2, 0.7), (Deterministic(0.5), Empirical((0.0, 0.1)), Pareto(1.0, 1.5))),
]
EDGES = [2.0**-53, 1e-9, 0.1, 0.25, 0.5, 0.75, 0.999, 1 - 2.0**-53]
UNIFORM = st.integers(0, 2**52 - 1).map(lambda bits: (bits + 0.5) * 2.0**-52)


@pytest.mark.parametrize("law", SIMPLE, ids=lambda law: law.kind)
def test_same_as_the_law(law: Distribution) -> None:
    ticks = tick_sampler(law)
    for uniform in EDGES[:-1]:
        expected = float(law.quantile(uniform))
        assert ticks(uniform) == pytest.approx(expected * 1e9, rel=1e-9, abs=1)


@pytest.mark.parametrize("law", MIXED[:2], ids=lambda law: law.kind)
def test_mixtures_have_their_law(law: Distribution) -> None:
    """On 10,000 equally spaced uniform numbers the empirical cdf may be off by one per component and end."""
    ticks = tick_sampler(law)
    uniforms = (np.arange(10_000) + 0.5) / 10_000
    values = np.sort([to_seconds(ticks(uniform)) for uniform in uniforms])
    assert np.abs(law.cdf(values) - uniforms).max() < 4 / 10_000


def test_the_rest_of_a_uniform_number_is_kept_inside() -> None:
    """A component's share of the uniform number, stretched, may round to 0 or 1: the ends of a table are before."""
    tiny = Mixture((1e-16, 1 - 1e-16), (Exponential(1.0), Exponential(1.0)))
    for uniform in EDGES:
        assert 0 <= tick_sampler(tiny)(uniform) <= 53e9


@pytest.mark.parametrize("law", [Pareto(0.0, 1.01), Lognormal(0.0, 3.0), Weibull(0.0, 0.02), Exponential(0.0)])
def test_all_mass_at_zero(law: Distribution) -> None:
    assert [tick_sampler(law)(uniform) for uniform in EDGES] == [0] * len(EDGES)


@pytest.mark.parametrize("law", [Pareto(1e6, 1.01), Weibull(1e6, 0.02), Weibull(1e305, 1.0)], ids=str)
def test_heavy_tails_are_cut_within_int64(law: Distribution) -> None:
    assert tick_sampler(law)(1 - 2.0**-53) == LONGEST_TICKS


@given(st.lists(UNIFORM, min_size=1, max_size=50))
def test_never_negative(uniforms: list[float]) -> None:
    ticks = tick_sampler(Weibull(1e9, 0.02))  # its lower half is negligible, so its table has few digits there
    assert all(0 <= ticks(uniform) <= LONGEST_TICKS for uniform in uniforms)


def test_picker() -> None:
    pick = picker((0.25, 0.5, 0.25))
    assert [pick(uniform) for uniform in (0.1, 0.25, 0.7, 0.75, 1 - 2.0**-53)] == [0, 1, 1, 2, 2]
    third = picker((1 / 3, 1 / 3, 1 / 3 - 1e-10))
    assert third(1 - 2.0**-53) == 2


def test_ticks_are_nanoseconds_and_round_to_even() -> None:
    assert [to_ticks(seconds) for seconds in (0.0, 1e-9, 1.5e-9, 2.5e-9, 1.0)] == [0, 1, 2, 2, 10**9]
    assert to_seconds(1_500_000) == 0.0015
    for wrong in (-1.0, float("nan")):
        with pytest.raises(InputError):
            to_ticks(wrong)


def kernel_of(flat: FlatDistributions) -> Kernel:
    """Return the kernel with these distributions."""
    request = RequestClass("request", Visit("server", Exponential(1.0)))
    network = Network("any", (Station("server", 1),), classes=(request,), traffic=Open(1.0, {"request": 1.0}))
    active = begin(lowered(network), (0, 1), (1, 0))
    records = Numbers((), fixed_waits(()), 0).distribution_records(flat)
    program = active.program._replace(distributions=records, numbers=flat.numbers, parts=flat.parts)
    return Kernel(program, active.state)


ALL = [*SIMPLE, *MIXED, Exponential(0.0), Pareto(1e6, 1.01), Weibull(1e9, 0.02), Deterministic(1e300)]
FLAT = flatten(ALL)


def test_the_kernel_draws_the_same_ticks_in_every_octave() -> None:
    kernel, rng = kernel_of(FLAT), np.random.default_rng(11)
    drawn = np.array([rng.integers(2**bit, 2 ** (bit + 1), 10) for bit in range(52)]).ravel()
    words = [0, 1, 2**51 - 1, 2**51, 2**52 - 2, 2**52 - 1, *drawn.tolist(), *(2**52 - 1 - drawn).tolist()]
    for row, distribution in zip(FLAT.rows.tolist(), ALL, strict=True):
        ticks = tick_sampler(distribution)
        for word in words:
            assert kernel.quantile(row, word) == ticks((word + 0.5) * 2.0**-52)


def test_flat_laws_share_rows_and_tables() -> None:
    flat = flatten([Exponential(1.0), Hyperexponential((0.5, 0.5), (1.0, 2.0)), Exponential(1.0), Deterministic(2.0)])
    assert flat.rows.tolist() == [0, 2, 0, 3]  # row 1 is the exponential of mean 2
    assert flat.kind.tolist() == [
        DistributionKind.TABLE,
        DistributionKind.TABLE,
        DistributionKind.MIXTURE,
        DistributionKind.CONSTANT,
    ]
    assert flat.ticks.tolist() == [0, 0, 0, 2_000_000_000]
    assert flat.scale.tolist() == [1e9, 2e9, 0.0, 0.0]
    assert flat.parts.tolist() == [0, 1]
    assert flat.first[:2].tolist() == [0, 0]
    assert flat.count.tolist() == [8, 8, 2, 0]
    assert flat.numbers[flat.first[2] :].tolist() == [0.0, 0.5, 0.5, 0.5]
    assert len(flat.numbers) == 2 * 52 * 8 * 6 + 4


def test_no_laws_are_flat_too() -> None:
    flat = flatten([])
    assert [column.size for column in vars(flat).values()] == [0] * 9


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
