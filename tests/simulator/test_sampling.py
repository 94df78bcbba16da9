"""Samplers have their distributions, and compiled code draws the same ticks from the flat form."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.models.errors import InputError
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
from capplan.simulator.specification.clock import LONGEST_TICKS, to_seconds, to_ticks
from capplan.simulator.specification.sampling import DistributionKind, FlatDistributions, flatten, picker, tick_sampler

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


def flat_ticks(flat: Any, law: int, uniform: float) -> int:
    """Sample row `law` of `FlatDistributions` (as a tuple of its arrays), as another engine has to."""
    _, kind, ticks, scale, first, count, first_part, numbers, parts = flat
    while kind[law] == 3:  # mixture
        starts, n = first[law], count[law]
        chosen = n - 1
        while chosen > 0 and uniform < numbers[starts + chosen]:
            chosen -= 1
        within = (uniform - numbers[starts + chosen]) / numbers[starts + n + chosen]
        uniform = min(max(within, 2.0**-53), 1 - 2.0**-53)
        law = parts[first_part[law] + chosen]
    if kind[law] == 0:  # constant
        return int(ticks[law])
    if kind[law] == 1:  # table
        side = 1 if uniform > 0.5 else 0
        distance = 1.0 - uniform if side else min(uniform, 0.5 - 2.0**-54)
        mantissa, exponent = math.frexp(distance)
        place = (2.0 * mantissa - 1.0) * count[law]
        piece = int(place)
        t = place - piece
        at = first[law] + ((side * 52 - 1 - exponent) * count[law] + piece) * 6
        c0, c1, c2 = numbers[at], numbers[at + 1], numbers[at + 2]
        c3, c4, c5 = numbers[at + 3], numbers[at + 4], numbers[at + 5]
        value = ((((c5 * t + c4) * t + c3) * t + c2) * t + c1) * t + c0
    else:  # empirical
        place = uniform * (count[law] - 1)
        at = first[law] + int(place)
        value = numbers[at] + (place - int(place)) * (numbers[at + 1] - numbers[at])
    scaled = value * scale[law]
    if scaled >= 2.0**60:
        return 2**60
    return max(int(np.rint(scaled)), 0)


def columns(flat: FlatDistributions) -> tuple[np.ndarray, ...]:
    return tuple(vars(flat).values())


ALL = [*SIMPLE, *MIXED, Exponential(0.0), Pareto(1e6, 1.01), Weibull(1e9, 0.02), Deterministic(1e300)]
FLAT = flatten(ALL)


@given(st.sampled_from(range(len(ALL))), st.lists(UNIFORM | st.sampled_from(EDGES), min_size=1, max_size=50))
def test_compiled_code_draws_the_same_ticks(number: int, uniforms: list[float]) -> None:
    ticks, arrays = tick_sampler(ALL[number]), columns(FLAT)
    for uniform in uniforms:
        assert flat_ticks(arrays, FLAT.rows[number], uniform) == ticks(uniform)


def test_compiled_code_draws_the_same_ticks_in_every_octave() -> None:
    rng, arrays = np.random.default_rng(11), columns(FLAT)
    odd = np.array([rng.integers(2**k, 2 ** (k + 1), 10) | 1 for k in range(52)]).ravel() * 2.0**-53
    for number, law in enumerate(ALL):
        ticks = tick_sampler(law)
        for uniform in (*odd.tolist(), *(1 - odd).tolist()):
            assert flat_ticks(arrays, FLAT.rows[number], uniform) == ticks(uniform)


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
    assert [column.size for column in columns(flat)] == [0] * 9
