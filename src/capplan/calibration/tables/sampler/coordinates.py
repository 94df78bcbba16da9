"""Coordinates of the parameters in which the posterior of a table is nearly normal.

Load tests decide sums: the unloaded time of a request, and the work that sets the ceiling. Which part has how much of
them is often open. In the logarithms of the parts such a posterior is a thin, curved shell, where searches crawl and
draws collapse. In these coordinates it is flat: one is the logarithm of the unloaded time, another that of the ceiling,
and the others are ratios. The map is a shear, with a Jacobian of 1, so that densities stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.analytic import Analysis


@dataclass(frozen=True)
class Coordinates:
    """A map between logarithms of parameters (draws, free) and coordinates of the same shape.

    Attributes
    ----------
    names : sequence of str
        The free parameters.
    times : sequence of str
        Those that the unloaded time is proportional to, together.
    unseen : str
        The one that lowers the ceiling and leaves the unloaded time as it is.
    centre : array (free,)
        Logarithms of the free parameters about which the map does nothing.
    build : function
        Returns the network of the layout whose unloaded time and ceiling count, with values by name.
    fixed : mapping
        Values of the other parameters.
    """

    names: Sequence[str]
    times: Sequence[str]
    unseen: str
    centre: FloatArray
    build: Callable[[Values], Network]
    fixed: Mapping[str, Number]

    def logs(self, points: FloatArray) -> FloatArray:
        """Return the logarithms of the parameters at coordinates (draws, free)."""
        found = points.copy()
        times = self._times
        if times:
            found[:, times] -= self._unloaded(points)[:, None]
        if self.unseen in self.names:
            found[:, self.names.index(self.unseen)] -= self._work(found)
        return found

    def points(self, logs: FloatArray) -> FloatArray:
        """Return the coordinates of logarithms of the parameters (draws, free)."""
        found = logs.copy()
        if self.unseen in self.names:
            found[:, self.names.index(self.unseen)] += self._work(logs)
        times = self._times
        if times:
            found[:, times] += self._unloaded(logs)[:, None]
        return found

    @property
    def _times(self) -> list[int]:
        return [at for at, name in enumerate(self.names) if name in self.times]

    def _unloaded(self, points: FloatArray) -> FloatArray:
        """Return the logarithm of the unloaded time (draws,), with times whose geometric mean is the usual one."""
        shaped, times = points.copy(), self._times
        shaped[:, times] -= (points[:, times] - self.centre[times]).mean(axis=1)[:, None]
        if self.unseen in self.names:
            at = self.names.index(self.unseen)
            shaped[:, at] = self.centre[at]
        found = self._analysis(np.concatenate([self.centre[None], shaped]))
        unloaded = np.log(np.broadcast_to(found.averaged(found.unloaded), (len(points) + 1,)))
        return np.asarray(unloaded[1:] - unloaded[0])

    def _work(self, logs: FloatArray) -> FloatArray:
        """Return the logarithm of the work of a request (draws,), with the usual share of unseen work."""
        usual, at = logs.copy(), self.names.index(self.unseen)
        usual[:, at] = self.centre[at]
        found = self._analysis(np.concatenate([self.centre[None], usual]))
        work = -np.log(np.broadcast_to(found.drift_per_s, (len(logs) + 1,)))
        return np.asarray(work[1:] - work[0])

    def _analysis(self, logs: FloatArray) -> Analysis:
        values = {name: np.exp(logs[:, at]) for at, name in enumerate(self.names)}
        return Analysis(self.build({**self.fixed, **values}))
