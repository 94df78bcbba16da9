"""Three ways to choose a few draws from an ensemble of parameters, one for each use.

- `representatives` is for figures of the solver. They are functions of the parameters, so it is enough to solve a few
  draws, one near each draw of the ensemble. Every draw then gets the figure of its representative; bands use all draws.
- `evenly_along` is for simulated figures, which are noisy and expensive. Simulate draws that are spread evenly along a
  figure known for every draw, and regress on that figure.
- `thinned` is for secondary figures, which need only a small ensemble. It takes every n-th draw; their order is random.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from capplan.models.cassandra.encryption import CLIENT_S, INTERNODE_S
from capplan.models.cassandra.pauses import OF_PAUSES
from capplan.models.language.parameter import Values
from capplan.models.language.units import FloatArray, Number

SMALL_ENSEMBLE = 32  # draws that estimate the band of a capacity well enough


Places = NDArray[np.intp]
"""Indices of draws in an ensemble."""


_COST_OF_ENCRYPTION = 3.0
"""Weight of an encryption cost relative to a parameter: where clients reconnect often, it changes the capacity most.
With 48 of 512 draws, the 5th percentile of such capacities is 27 % off if these costs count as all others, and at most
9 % with the weight and without the logarithm.
"""


@dataclass(frozen=True)
class Representatives:
    """Draws that represent an ensemble.

    Attributes
    ----------
    chosen : array of int (representatives,)
        Their indices in the ensemble.
    place : array of int (draws,)
        For each draw of the ensemble, the index of its representative in `chosen`.
    """

    chosen: Places
    place: Places


def at_draws(values: Values, places: Places) -> dict[str, Number]:
    """Return the parameter values of some draws."""
    return {name: value[places] if isinstance(value, np.ndarray) else value for name, value in values.items()}


def spaced(draws: int, count: int) -> Places:
    """Return the indices of `count` draws (all if there are fewer), evenly spaced from the first."""
    count = min(count, draws)
    return np.arange(count) * draws // count


def thinned(values: Values, count: int = SMALL_ENSEMBLE) -> dict[str, Number]:
    """Return the parameter values of a small ensemble: `count` evenly spaced draws."""
    return at_draws(values, spaced(max(np.size(value) for value in values.values()), count))


def evenly_along(figure: FloatArray, count: int, *, in_rounds: bool = False) -> Places:
    """Return the indices of `count` draws, spread evenly along the order of a figure.

    Parameters
    ----------
    figure : array (draws,)
        A figure known for every draw.
    count : int
        Number of draws; if the ensemble has fewer, some repeat.
    in_rounds : bool
        Whether any number of first draws must be spread evenly, because draws are added until they suffice. They then
        follow van der Corput's sequence 1/2, 1/4, 3/4, 1/8, ...

    Returns
    -------
    array of int (count,)
        Indices into the ensemble.
    """
    if in_rounds:
        from scipy.stats.qmc import Halton

        along = Halton(1, scramble=False).random(count + 1)[1:, 0]
    else:
        along = (np.arange(count) + 0.5) / count
    return np.argsort(figure, kind="stable")[(along * len(figure)).astype(np.intp)]


def representatives(values: Values, count: int) -> Representatives:
    """Choose draws so that every draw of the ensemble lies close to one of them.

    Each step adds the draw that reduces the total distance to the nearest chosen draw most (greedy k-medians;
    Cornuejols, Fisher & Nemhauser 1977). Distances are between logarithms of values, divided by their standard
    deviation. Costs of encryption are compared without the logarithm, because only the high ones matter. The choice is
    deterministic. Parameters of pauses are left out: each draw has its own pauses, whichever draw represents it.

    Parameters
    ----------
    values : mapping
        All parameter values by name; arrays (draws,) above 0, or numbers.
    count : int
        Number of representatives; all draws if there are fewer.

    Returns
    -------
    Representatives
        The chosen draws.
    """
    varied = {name: each for name, each in values.items() if isinstance(each, np.ndarray) and name not in OF_PAUSES}
    return _representatives(tuple((name, value.tobytes()) for name, value in varied.items()), count)


@lru_cache(maxsize=16)  # layouts of a sweep share their parameter values
def _representatives(values: tuple[tuple[str, bytes], ...], count: int) -> Representatives:
    points = np.stack([_along(name, np.frombuffer(value)) for name, value in values], axis=-1)
    if count >= len(points):
        everyone = np.arange(len(points))
        return Representatives(everyone, everyone)
    distance = np.sqrt(np.square(points[:, None] - points[None]).sum(axis=-1))
    nearest, chosen = np.full(len(points), np.inf), list[int]()
    for _ in range(count):
        chosen.append(int(np.argmin(np.minimum(distance, nearest).sum(axis=1))))
        nearest = np.minimum(nearest, distance[chosen[-1]])
    return Representatives(np.array(chosen), np.argmin(distance[:, chosen], axis=1))


def _along(name: str, values: FloatArray) -> FloatArray:
    """Return the coordinates of the draws along one parameter."""
    if name in (CLIENT_S, INTERNODE_S):
        return _COST_OF_ENCRYPTION * values / max(float(values.std()), 1e-12)
    logs = np.log(values)
    return np.asarray(logs / max(float(logs.std()), 1e-12))
