"""Parameters of a system's model: each with its unit, its prior and where that comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from capplan.models.language.units import FloatArray, Number

Values = Mapping[str, Number]
Kind = Literal["fitted", "prior", "documented", "guess"]


@dataclass(frozen=True)
class Parameter:
    """One number of a model.

    Attributes
    ----------
    name : str
        Name with its SI unit as suffix.
    value : float
        Median of the prior.
    unit : str
        SI unit; `1` for a ratio.
    kind : str
        `fitted`: the evidence decides, the prior is wide; `prior`: what is known beforehand decides, the evidence may
        move it a little; `documented`: taken from a source; `guess`: nobody said.
    log_sd : float
        Standard deviation of the natural logarithm of the prior; 0: held fixed.
    source : str
        Where the value comes from, in a few words.
    """

    name: str
    value: float
    unit: str
    kind: Kind
    log_sd: float
    source: str

    @property
    def free(self) -> bool:
        """Whether calibration may move it."""
        return self.log_sd > 0


def defaults(parameters: tuple[Parameter, ...]) -> dict[str, Number]:
    """Return the prior medians."""
    return {parameter.name: parameter.value for parameter in parameters}


def log_values(parameters: tuple[Parameter, ...]) -> FloatArray:
    """Return the logarithms of the free parameters' prior medians, in order."""
    return np.log([parameter.value for parameter in parameters if parameter.free])


def from_log(parameters: tuple[Parameter, ...], log_points: FloatArray) -> dict[str, Number]:
    """Return all values, the free ones from `log_points` (free,) or (draws, free)."""
    values = defaults(parameters)
    for column, parameter in enumerate(p for p in parameters if p.free):
        chosen = np.exp(log_points[..., column])
        values[parameter.name] = float(chosen) if np.ndim(chosen) == 0 else chosen
    return values
