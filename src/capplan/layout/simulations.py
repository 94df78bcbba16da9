"""How a system is simulated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from capplan.layout.component import Component
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import FloatArray

S = TypeVar("S", bound=Scenario)
DEFAULT_BUDGET_S = 0.4  # more would hardly narrow a band, whose other parts dominate
"""Default computing time of a simulation on a nominal machine, seconds."""


@dataclass(frozen=True)
class Simulations(Component, Generic[S]):
    """How a system is simulated.

    Attributes
    ----------
    budget_s : float
        Default computing time of a simulation on a nominal machine, seconds.
    settling_s : function
        Returns the settling time from an empty system, seconds, one value or one per draw, from the layout, parameter
        values and the offered rate (draws,), requests per second.
    paused_network : function or None
        Composes the network for a simulation whose nodes pause; takes the same as `System.network`. None: its nodes do
        not pause.
    """

    budget_s: float = DEFAULT_BUDGET_S
    settling_s: Callable[[S, Values, FloatArray], FloatArray] = lambda _scenario, _values, _rate_per_s: np.array(0.5)
    paused_network: Callable[[S, Values, float], Network] | None = None
