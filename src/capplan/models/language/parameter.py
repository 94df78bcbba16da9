"""Model parameters: unit, prior and source of each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from capplan.models.language.units import FloatArray, Number, plain

Values = Mapping[str, Number]
ParameterKind = Literal["fitted", "prior", "documented", "guess"]


@dataclass(frozen=True)
class Parameter:
    """A model parameter with a lognormal prior.

    Attributes
    ----------
    name : str
        Name, with its SI unit as suffix.
    value : float
        Median of the prior.
    unit : str
        SI unit; `1` for a ratio.
    kind : str
        `fitted`: the prior is wide and the evidence determines the value; `prior`: the prior is narrow and the evidence
        moves the value a little; `documented`: taken from a source; `guess`: no source.
    log_sd : float
        Standard deviation of the natural logarithm under the prior; 0 fixes the value.
    source : str
        Where the value comes from, in a few words.
    degrees : float
        Degrees of freedom of a prior that few sources give: one less than sources. Its 5th and 95th percentile are
        those of a normal one with `log_sd`, its tails those of Student's t.
    """

    name: str
    value: float
    unit: str
    kind: ParameterKind
    log_sd: float
    source: str
    degrees: float = math.inf

    @property
    def free(self) -> bool:
        """Whether calibration may change the value."""
        return self.log_sd > 0


def defaults(parameters: tuple[Parameter, ...]) -> dict[str, Number]:
    """Return the prior medians by name."""
    return {parameter.name: parameter.value for parameter in parameters}


def log_values(parameters: tuple[Parameter, ...]) -> FloatArray:
    """Return the logarithms of the prior medians of the free parameters (free,)."""
    return np.log([parameter.value for parameter in parameters if parameter.free])


def from_log(parameters: tuple[Parameter, ...], log_points: FloatArray) -> dict[str, Number]:
    """Return all parameter values, with the free ones taken from a point or from draws.

    Parameters
    ----------
    parameters : tuple of Parameter
        All parameters of a model.
    log_points : array (free,) or (draws, free)
        Natural logarithms of the free parameters, in order.

    Returns
    -------
    dict of float or array (draws,)
        Values by name, in SI units; fixed parameters have their prior median.
    """
    values = defaults(parameters)
    for column, parameter in enumerate(p for p in parameters if p.free):
        values[parameter.name] = plain(np.exp(log_points[..., column]))
    return values
