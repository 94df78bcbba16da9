"""How near a fit is to the medians of its priors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from capplan.models.language.parameter import Parameter, log_values


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
