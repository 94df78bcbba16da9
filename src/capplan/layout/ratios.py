"""Ratios of throughput: all that the documents of some systems have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from capplan.layout.component import Component
from capplan.layout.fitted_file import Fitted
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import FloatArray

S = TypeVar("S", bound=Scenario)


@dataclass(frozen=True)
class Ratios(Component, Generic[S]):
    """Ratios of throughput to reference layouts, of a system without documented rates and times.

    Attributes
    ----------
    of : function or None
        Returns the ratios (draws,) by name of the reference, from the layout and parameter values; the reference of
        the scenario comes first. None: the system has rates and times.
    cautions : sequence of str
        What may change the decision, one sentence each.
    notes : function
        Returns the assumptions behind the ratios of a layout, with a calibration.
    """

    of: Callable[[S, Values], Mapping[str, FloatArray]] | None = None
    cautions: Sequence[str] = ()
    notes: Callable[[S, Fitted], Sequence[str]] = lambda _scenario, _fitted: ()
