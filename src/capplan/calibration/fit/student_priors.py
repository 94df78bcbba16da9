"""Priors with Student tails: a cluster beyond the sources of a prior is rarer than one inside, but not unheard of.

A mean of few sources predicts a further one with Student's t. A normal prior with the same band would let no
measurement lead a fit beyond four of its standard deviations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from capplan.models.language.parameter import Parameter
from capplan.models.language.units import FloatArray

_LEVEL = 0.95  # at which a prior and the normal one with its `log_sd` agree
_NORMAL = 1e3  # degrees of freedom of a prior that counts as normal
_ROOM = 4.0  # standard deviations of a normal prior that a search does not leave


def degrees(parameters: Sequence[Parameter]) -> FloatArray:
    """Return the degrees of freedom of free parameters' priors (free,); infinite where they are normal."""
    return np.array([each.degrees for each in parameters if each.free])


def residuals(standard: FloatArray, freedom: FloatArray) -> FloatArray:
    """Return signed roots of the priors' deviances (..., free), from distances in standard deviations."""
    student, found = freedom < _NORMAL, np.array(standard)
    own, its = found[..., student], freedom[student]
    found[..., student] = np.sign(own) * np.sqrt((its + 1) * np.log1p((own * _scale(its)) ** 2 / its))
    return found


def quantiles(levels: FloatArray, freedom: FloatArray) -> FloatArray:
    """Return distances from the medians, in standard deviations, at levels (..., free)."""
    student, found = freedom < _NORMAL, np.array(special.ndtri(levels))
    its = freedom[student]
    found[..., student] = special.stdtrit(its, levels[..., student]) / _scale(its)
    return found


def room(freedom: FloatArray) -> FloatArray:
    """Return how far a search may go from the medians, in standard deviations (free,): all are as improbable there."""
    student, found = freedom < _NORMAL, np.full(freedom.shape, _ROOM)
    its = freedom[student]
    found[student] = np.sqrt(its * np.expm1(_ROOM**2 / (its + 1))) / _scale(its)
    return found


def _scale(freedom: FloatArray) -> FloatArray:
    """Return distances in scales of Student's t over those in standard deviations."""
    return np.asarray(special.stdtrit(freedom, _LEVEL) / special.ndtri(_LEVEL))
