"""Sensitivity of fits to the prior medians: how close the fit is to them, and how predictions change when they move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from capplan.models.language.parameter import Parameter, log_values

PATTERNS = 2  # sign patterns; each also runs with all signs reversed


@dataclass(frozen=True)
class Nearness:
    """Distance of fitted parameters from the medians of their priors.

    Attributes
    ----------
    parameters : int
        Number of free parameters.
    squares : float
        Sum of the squared distances, in standard deviations of the priors.
    """

    parameters: int
    squares: float

    @property
    def root_mean_square(self) -> float:
        """Root mean square distance, in standard deviations; 1 is expected of medians set without knowing the fit."""
        return float(np.sqrt(self.squares / self.parameters))

    @property
    def probability(self) -> float:
        """Probability that a sum of squares this small arises by chance (chi-squared)."""
        from scipy.stats import chi2  # slow to import, and only validation needs it

        return float(chi2.cdf(self.squares, self.parameters))

    def __add__(self, other: Nearness) -> Nearness:
        return Nearness(self.parameters + other.parameters, self.squares + other.squares)


def nearness(parameters: Sequence[Parameter], most_probable: Sequence[float]) -> Nearness:
    """Return how near the most probable parameters are to the medians of their priors.

    Parameters
    ----------
    parameters : sequence of Parameter
        Parameters of a system.
    most_probable : sequence of float (free,)
        Most probable values of the free ones, SI.
    """
    free = [parameter for parameter in parameters if parameter.free]
    centre, spread = log_values(tuple(free)), np.array([parameter.log_sd for parameter in free])
    return Nearness(len(free), float((((np.log(most_probable) - centre) / spread) ** 2).sum()))


def displaced(parameters: Sequence[Parameter], signs: Sequence[int]) -> tuple[Parameter, ...]:
    """Return the parameters with each free prior median moved up or down by its standard deviation.

    Parameters
    ----------
    parameters : sequence of Parameter
        The parameters.
    signs : sequence of int (free,)
        1: up; -1: down; 0: not moved.
    """
    remaining = iter(signs)
    return tuple(
        replace(each, value=each.value * float(np.exp(next(remaining) * each.log_sd))) if each.free else each
        for each in parameters
    )


def sign_patterns(parameters: Sequence[Parameter], seed: int) -> list[list[int]]:
    """Return no move, then `PATTERNS` random patterns of signs, each followed by its reverse."""
    free = sum(parameter.free for parameter in parameters)
    drawn = np.random.default_rng(seed).choice([-1, 1], (PATTERNS, free))
    return [[0] * free, *(row.tolist() for pattern in drawn for row in (pattern, -pattern))]
