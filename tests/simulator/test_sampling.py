"""The scalar quantile functions are those of the laws; mixtures have the right law."""

import numpy as np
import pytest

from capplan.models.distribution import (
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
from capplan.models.errors import InputError
from capplan.simulator.clock import LONGEST_TICKS, to_seconds, to_ticks
from capplan.simulator.sampling import picker, scalar_quantile, tick_sampler

SIMPLE: list[Distribution] = [
    Deterministic(0.003),
    Exponential(0.002),
    Erlang(0.002, 4),
    Lognormal(0.002, 3.0),
    Weibull(0.002, 0.7),
    Pareto(0.001, 2.5),
    Empirical((0.0, 0.001, 0.004)),
]
EDGES = [2.0**-53, 1e-9, 0.1, 0.25, 0.5, 0.75, 0.999, 1 - 2.0**-53]


@pytest.mark.parametrize("law", SIMPLE, ids=lambda law: law.kind)
def test_same_as_the_law(law: Distribution) -> None:
    quantile, ticks = scalar_quantile(law), tick_sampler(law)
    for uniform in EDGES:
        expected = float(law.quantile(uniform))
        assert quantile(uniform) == pytest.approx(expected, rel=1e-12)
        assert abs(ticks(uniform) - to_ticks(expected)) <= 1


@pytest.mark.parametrize(
    "law",
    [
        Hyperexponential((0.3, 0.7), (0.1, 2.0)),
        Mixture((0.25, 0.75), (Erlang(1.0, 2), Mixture((0.5, 0.5), (Exponential(3.0), Lognormal(1.0, 1.0))))),
    ],
    ids=lambda law: law.kind,
)
def test_mixtures_have_their_law(law: Distribution) -> None:
    """On 10,000 equally spaced uniform numbers the empirical cdf may be off by one per component and end."""
    quantile = scalar_quantile(law)
    uniforms = (np.arange(10_000) + 0.5) / 10_000
    values = np.sort([quantile(uniform) for uniform in uniforms])
    assert np.abs(law.cdf(values) - uniforms).max() < 4 / 10_000


@pytest.mark.parametrize("law", [Pareto(0.0, 1.01), Lognormal(0.0, 3.0), Weibull(0.0, 0.02), Exponential(0.0)])
def test_all_mass_at_zero(law: Distribution) -> None:
    assert [tick_sampler(law)(uniform) for uniform in EDGES] == [0] * len(EDGES)


def test_heavy_tails_are_cut_within_int64() -> None:
    assert tick_sampler(Pareto(1e6, 1.01))(1 - 2.0**-53) == LONGEST_TICKS


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
