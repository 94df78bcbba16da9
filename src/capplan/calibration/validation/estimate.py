"""A figure that a model or a rule says, with its band, and how the band is scored."""

from __future__ import annotations

import math
from dataclasses import dataclass

_MISSED = 0.1  # the probability that a 90 % band misses


@dataclass(frozen=True)
class IntervalEstimate:
    """A figure with its 90 % band, SI; the band is not a number where nothing tells how wide it is.

    A rule may say something that is not positive: its band is then that figure alone.
    """

    value: float
    low: float
    high: float

    def half_width(self) -> float:
        """Half the band's width, as a share of the figure; not a number where the figure is not positive."""
        return math.nan if self.value <= 0 else (self.high - self.low) / (2 * self.value)

    def holds(self, documented: float) -> bool:
        """Whether the band holds a documented figure."""
        return self.low <= documented <= self.high

    def interval_score(self, documented: float) -> float:
        """Return the interval score of the band in the logarithm (Gneiting and Raftery 2007, equation 43).

        Its width, and twenty times as much again as it misses the figure by: narrow and right is small.
        """
        if not self.low > 0:
            return math.nan if math.isnan(self.low) else math.inf
        low, high, at = math.log(self.low), math.log(self.high), math.log(documented)
        return high - low + 2 / _MISSED * (max(low - at, 0.0) + max(at - high, 0.0))
