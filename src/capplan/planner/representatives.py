"""A few draws of an ensemble that stand for all of them, for answers that must come fast."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from capplan.calibration.fitted_file import Fitted
from capplan.models.parameter import Values
from capplan.models.quantity import FloatArray


@dataclass(frozen=True)
class Representatives:
    """Draws that stand for others.

    Attributes
    ----------
    chosen : array of int (representatives,)
        Which draws they are.
    place : array of int (draws,)
        Of each draw of the ensemble, the place among `chosen` of the one that stands for it.
    """

    chosen: NDArray[np.intp]
    place: NDArray[np.intp]

    def thinned(self, values: Values) -> dict[str, float | FloatArray]:
        """Return parameter values of the representatives only, from those of all draws."""
        return {name: value[self.chosen] if isinstance(value, np.ndarray) else value for name, value in values.items()}

    def stand_ins(self, fitted: Fitted) -> Fitted:
        """Return the ensemble with each draw replaced by the one that stands for it."""
        return replace(fitted, draws=tuple(fitted.draws[self.chosen[place]] for place in self.place))


def representatives(fitted: Fitted, count: int) -> Representatives:
    """Choose draws so that each draw of the ensemble has one of them near.

    One after the other is chosen that brings the draws nearest to what is chosen, all together (greedy k-medians;
    Cornuejols, Fisher & Nemhauser 1977), in the logarithms of the parameters, each over its standard deviation. There
    is no randomness in it, and fewer are the beginning of more.

    Parameters
    ----------
    fitted
        The ensemble.
    count
        How many; all draws when there are fewer.
    """
    logs = np.log(np.array(fitted.draws))
    points = logs / np.maximum(logs.std(axis=0), 1e-12)
    if count >= len(points):
        everyone = np.arange(len(points))
        return Representatives(everyone, everyone)
    apart = np.sqrt(np.square(points[:, None] - points[None]).sum(axis=-1))
    nearest, chosen = np.full(len(points), np.inf), list[int]()
    for _ in range(count):
        chosen.append(int(np.argmin(np.minimum(apart, nearest).sum(axis=1))))
        nearest = np.minimum(nearest, apart[chosen[-1]])
    return Representatives(np.array(chosen), np.argmin(apart[:, chosen], axis=1))
