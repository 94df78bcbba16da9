"""Percentiles of nodes whose speed varies in a run, slowly beside a request."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from capplan.models.language.units import FloatArray
from capplan.models.solver.operating_point import OperatingPoint, SteadyState

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def varied(point: OperatingPoint, log_sd: FloatArray | None) -> OperatingPoint:
    """Spread the responses of a steady state over the speeds of a run.

    The factor on a response is lognormal with the mean 1, by Gauss-Hermite quadrature; means stay.

    Parameters
    ----------
    point : OperatingPoint
        The steady state.
    log_sd : array (..., draws) or None
        Standard deviation of the logarithm of the speed; None: it does not vary.
    """
    if log_sd is None:
        return point
    factor = np.exp(log_sd[..., None] * (_NODES - _NODES.max()))  # at most 1, however much the speed varies
    factor = factor / np.sum(factor * _WEIGHTS, axis=-1, keepdims=True)

    def spread(state: SteadyState) -> SteadyState:
        def outer(part: FloatArray, scale: FloatArray) -> FloatArray:
            joined = part[..., :, None] * scale[..., None, :]
            return joined.reshape(*joined.shape[:-2], -1)

        return replace(
            state,
            weight={name: outer(each, np.broadcast_to(_WEIGHTS, factor.shape)) for name, each in state.weight.items()},
            mean_s={name: outer(each, factor) for name, each in state.mean_s.items()},
            variance_s2={name: outer(each, factor**2) for name, each in state.variance_s2.items()},
        )

    return replace(point, states=tuple(map(spread, point.states)))
