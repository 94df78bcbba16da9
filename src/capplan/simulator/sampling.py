"""Laws as functions from one uniform number to ticks (inverse transform), fast enough for one draw at a time.

The formulas are those of the laws' `quantile`, written with scalar functions, because numpy costs several microseconds
a call. A mixture is the exception: its true quantile takes a bisection, so the leading part of the uniform number
chooses the component and the rest of it is the quantile within, which has the same law.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from scipy import special

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
from capplan.models.quantity import Number
from capplan.simulator.clock import to_ticks

Quantile = Callable[[float], float]
Sampler = Callable[[float], int]
LARGEST = 1 - 2.0**-53  # the largest double below 1, and the largest uniform number


def tick_sampler(law: Distribution) -> Sampler:
    """Return the function from a uniform number to a duration in ticks."""
    if isinstance(law, Deterministic):
        constant = to_ticks(float(law.value_s))
        return lambda _: constant
    seconds = scalar_quantile(law)
    return lambda uniform: to_ticks(seconds(uniform))


def scalar_quantile(law: Distribution) -> Quantile:
    """Return the function from a uniform number to a duration in seconds."""
    match law:
        case Deterministic():
            value_s = float(law.value_s)
            return lambda _: value_s
        case Exponential():
            return _weibull(float(law.mean_s), 1.0)
        case Weibull():
            return _weibull(float(law.scale_s), float(law.shape))
        case Erlang():
            stages, stage_s = float(law.stages), float(law.mean_s) / law.stages
            return lambda uniform: stage_s * float(special.gammaincinv(stages, uniform))
        case Lognormal():
            return _lognormal(float(law.mean_s), math.log1p(float(law.shape_scv)))
        case Pareto():
            minimum_s, shape = float(law.minimum_s), float(law.shape)
            return lambda uniform: minimum_s * math.exp(-math.log1p(-uniform) / shape)
        case Empirical():
            return _empirical([float(value) for value in law.values_s])
        case Hyperexponential():
            return _mixture(law.probabilities, [Exponential(mean_s) for mean_s in law.means_s])
        case Mixture():
            return _mixture(law.probabilities, law.laws)


def picker(probabilities: Sequence[Number]) -> Callable[[float], int]:
    """Return the function from a uniform number to the index of one of the alternatives."""
    edges = list(accumulate(float(probability) for probability in probabilities))[:-1]
    return lambda uniform: bisect_right(edges, uniform)  # what rounding leaves over belongs to the last


def _weibull(scale_s: float, shape: float) -> Quantile:
    if shape == 1:
        return lambda uniform: -scale_s * math.log1p(-uniform)
    return lambda uniform: scale_s * math.pow(-math.log1p(-uniform), 1 / shape)


def _lognormal(mean_s: float, variance: float) -> Quantile:
    deviation = math.sqrt(variance)
    return lambda uniform: mean_s * math.exp(deviation * float(special.ndtri(uniform)) - variance / 2)


def _empirical(values_s: list[float]) -> Quantile:
    intervals = len(values_s) - 1

    def quantile(uniform: float) -> float:
        place = uniform * intervals
        index = int(place)
        return values_s[index] + (place - index) * (values_s[index + 1] - values_s[index])

    return quantile


def _mixture(probabilities: Sequence[Number], laws: Sequence[Distribution]) -> Quantile:
    shares = [float(probability) for probability in probabilities]
    starts, pick = [0.0, *accumulate(shares)], picker(shares)
    quantiles = [scalar_quantile(law) for law in laws]

    def quantile(uniform: float) -> float:
        chosen = pick(uniform)
        within = (uniform - starts[chosen]) / shares[chosen]
        return quantiles[chosen](min(max(within, 1 - LARGEST), LARGEST))

    return quantile
