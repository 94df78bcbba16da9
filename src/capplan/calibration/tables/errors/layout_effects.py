"""What layouts differ in beyond the model: each has its own factor on work, and on times that load does not stretch.

Rows of one layout share its factors, so that a fitted layout is predicted with its own, and another one with a band
that is as wide as the factors scatter. They are integrated out of the fit as correlated errors of a layout's rows, and
drawn for each draw of the parameters afterwards (a linear mixed model in the logarithms).

References
----------
J. C. Pinheiro and D. M. Bates, *Mixed-Effects Models in S and S-PLUS*, Springer, 2000, chapter 2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capplan.models.language.units import FloatArray, Number

_COUNTED = 4.0  # layouts that the assumed scatter of the factors counts for


def name_of(effect: str, layout: Any = None) -> str:
    """Return the name of a layout's factor among the parameters; without a layout, that of an unknown one."""
    if layout is None:
        return f"{effect}_of_layout"
    key = hashlib.sha256(repr(layout).encode()).hexdigest()[:8]
    return f"{effect}_of_layout[{key}]"


def factors(effects: Sequence[str], layout: Any, values: Mapping[str, Number]) -> dict[str, Number]:
    """Return the factors of a layout that values have, by effect."""
    return {name: values[full] for name in effects if (full := name_of(name, layout)) in values}


@dataclass(frozen=True)
class Effects:
    """The factors of the fitted layouts, linearised.

    Attributes
    ----------
    slopes : array (figures, effects)
        Derivative of the logarithm of each figure with respect to that of each factor of its layout.
    group : array of int (figures,)
        Number of each figure's layout.
    log_sd : array (effects,)
        Standard deviation of the logarithm of each factor over layouts.
    """

    slopes: FloatArray
    group: NDArray[np.intp]
    log_sd: FloatArray

    @property
    def covariance(self) -> FloatArray:
        """Covariance (figures, figures) of the errors that the factors make."""
        design = self._design
        return np.asarray((design * self._variance) @ design.T)

    def expected(self, errors: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the logarithms of the factors given errors (draws, figures), and the covariance of all other ones.

        Returns
        -------
        array (draws, layouts, effects), array (layouts x effects, layouts x effects)
            Their means and their covariance.
        """
        moved = self._variance[:, None] * self._design.T
        gain = moved @ np.linalg.inv(self.covariance + other)
        means = (errors @ gain.T).reshape(len(errors), -1, len(self.log_sd))
        return means, np.diag(self._variance) - gain @ moved.T

    def learnt(self, errors: FloatArray, other: FloatArray) -> FloatArray:
        """Return the standard deviations of the factors with what errors (figures,) say of them: one step of EM."""
        means, covariance = self.expected(errors[None], other)
        second = (means[0] ** 2 + np.diag(covariance).reshape(means[0].shape)).sum(axis=0)
        return np.asarray(np.sqrt((_COUNTED * self.log_sd**2 + second) / (_COUNTED + len(means[0]))))

    def drawn(self, errors: FloatArray, other: FloatArray, random: np.random.Generator) -> FloatArray:
        """Return draws of the logarithms of the factors (draws, layouts, effects), one for each row of errors."""
        means, covariance = self.expected(errors, other)
        root = np.linalg.cholesky(covariance + 1e-12 * np.eye(len(covariance)))
        return means + (random.standard_normal((len(errors), len(root))) @ root.T).reshape(means.shape)

    @property
    def _design(self) -> FloatArray:
        """Derivatives with respect to the factors of all layouts (figures, layouts x effects)."""
        layouts = int(self.group.max()) + 1
        own = self.group[:, None] == np.arange(layouts)
        return np.asarray((own[:, :, None] * self.slopes[:, None, :]).reshape(len(self.group), -1))

    @property
    def _variance(self) -> FloatArray:
        return np.tile(self.log_sd**2, int(self.group.max()) + 1)
