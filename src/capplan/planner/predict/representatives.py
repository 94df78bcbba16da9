"""A few draws of an ensemble that stand for all of them, for answers that must come fast."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capplan.models.cassandra.encryption import CLIENT_SHARE, INTERNODE_SHARE
from capplan.models.language.parameter import Values
from capplan.models.language.units import FloatArray

_COST_OF_ENCRYPTION = 3.0
"""Its weight beside a parameter: where links are encrypted, it tells capacities apart more than all else. Tried with 48
of 512 draws at half the capacity: without it figures and ends of bands are up to 7 % off, with it up to 4 %."""


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


def representatives(values: Values, count: int) -> Representatives:
    """Choose draws so that each draw of the ensemble has one of them near.

    One after the other is chosen that brings the draws nearest to what is chosen, all together (greedy k-medians;
    Cornuejols, Fisher & Nemhauser 1977), in the logarithms of the parameters, each over its standard deviation. Costs
    of encryption are taken as they are, since those near nothing are all alike, and with a weight of their own. There
    is no randomness in it, and fewer are the beginning of more.

    Parameters
    ----------
    values
        All that a layout is composed from, by name, not the parameters of its system alone: what encryption costs may
        tell draws apart more than all else. Some are arrays (draws,), above 0.
    count
        How many; all draws when there are fewer.
    """
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    points = np.stack([_along(name, value) for name, value in arrays.items()], axis=-1)
    if count >= len(points):
        everyone = np.arange(len(points))
        return Representatives(everyone, everyone)
    apart = np.sqrt(np.square(points[:, None] - points[None]).sum(axis=-1))
    nearest, chosen = np.full(len(points), np.inf), list[int]()
    for _ in range(count):
        chosen.append(int(np.argmin(np.minimum(apart, nearest).sum(axis=1))))
        nearest = np.minimum(nearest, apart[chosen[-1]])
    return Representatives(np.array(chosen), np.argmin(apart[:, chosen], axis=1))


def _along(name: str, values: FloatArray) -> FloatArray:
    """Return where draws lie along one of the values."""
    if name in (CLIENT_SHARE, INTERNODE_SHARE):
        return _COST_OF_ENCRYPTION * values / max(float(values.std()), 1e-12)
    logs = np.log(values)
    return np.asarray(logs / max(float(logs.std()), 1e-12))
