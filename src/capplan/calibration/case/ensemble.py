"""Choose a few draws from an ensemble of parameters: three ways, one for each use.

- `representatives`: a figure of the solver is a function of the draw's parameters. Solve a few draws such that every
  draw has one of them near, and give each draw the figure of its representative. Bands keep all draws.
- `evenly_along`: a simulated figure is noisy and expensive. Simulate draws that are spread evenly along a figure that
  is known for every draw, and regress on that figure.
- `thinned`: a side figure may have an ensemble of its own. Take a small one, evenly from the order of the draws, which
  is random.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from capplan.models.cassandra.encryption import CLIENT_SHARE, INTERNODE_SHARE
from capplan.models.language.parameter import Values
from capplan.models.language.units import FloatArray, Number

SMALL_ENSEMBLE = 32  # draws that decide the band of a capacity well enough
Places = NDArray[np.intp]
"""Places of draws in an ensemble."""

_COST_OF_ENCRYPTION = 3.0
"""Weight of encryption costs beside a parameter: where links are encrypted, capacities differ by them most. Tried with
48 of 512 draws at half the capacity: figures and ends of bands are up to 7 % off without it, up to 4 % with it."""


@dataclass(frozen=True)
class Representatives:
    """Draws that stand for others.

    Attributes
    ----------
    chosen : array of int (representatives,)
        Their places in the ensemble.
    place : array of int (draws,)
        For each draw of the ensemble, the place in `chosen` of the one that represents it.
    """

    chosen: Places
    place: Places


def at_draws(values: Values, places: Places) -> dict[str, Number]:
    """Return parameter values at some draws only."""
    return {name: value[places] if isinstance(value, np.ndarray) else value for name, value in values.items()}


def spaced(draws: int, count: int) -> Places:
    """Return the places of `count` draws (all if there are fewer), evenly from the first."""
    count = min(count, draws)
    return np.arange(count) * draws // count


def thinned(values: Values, count: int = SMALL_ENSEMBLE) -> dict[str, Number]:
    """Return parameter values of a small ensemble."""
    return at_draws(values, spaced(max(np.size(value) for value in values.values()), count))


def evenly_along(figure: FloatArray, count: int, *, in_rounds: bool = False) -> Places:
    """Return the places of `count` draws, spread evenly along the order of a figure.

    Parameters
    ----------
    figure : array (draws,)
        A figure that is known for every draw.
    count : int
        How many draws; if there are fewer, some come again.
    in_rounds : bool
        Whether the first few must be spread evenly too, however few, since draws are added until they suffice: they
        then follow van der Corput's sequence 1/2, 1/4, 3/4, 1/8, ...
    """
    if in_rounds:
        from scipy.stats.qmc import Halton

        along = Halton(1, scramble=False).random(count + 1)[1:, 0]
    else:
        along = (np.arange(count) + 0.5) / count
    return np.argsort(figure, kind="stable")[(along * len(figure)).astype(np.intp)]


def representatives(values: Values, count: int) -> Representatives:
    """Choose draws such that each draw of the ensemble has one of them near.

    The next one is always the draw that brings the ensemble nearest to what is chosen (greedy k-medians; Cornuejols,
    Fisher & Nemhauser 1977). Distances are between logarithms of values, each over its standard deviation, except for
    costs of encryption: many are close to zero and alike, so they count as they are. Nothing is random.

    Parameters
    ----------
    values : mapping
        Everything that a network is composed from, by name; arrays (draws,) above 0, or numbers.
    count : int
        How many draws; all if there are fewer.
    """
    varied = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
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
    """Return where draws lie along one of the values."""
    if name in (CLIENT_SHARE, INTERNODE_SHARE):
        return _COST_OF_ENCRYPTION * values / max(float(values.std()), 1e-12)
    logs = np.log(values)
    return np.asarray(logs / max(float(logs.std()), 1e-12))
