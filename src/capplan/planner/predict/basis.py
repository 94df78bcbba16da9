"""Figures with what they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from capplan.calibration.case.figure_basis import FigureBasis
from capplan.models.results import STATISTICS, Band, Basis, Latency

B = TypeVar("B", bound=Band)


def with_basis(band: B, basis: Basis) -> B:
    """Return a figure with its basis."""
    return replace(band, basis=basis)


def model_only(band: Band) -> Band:
    """Return a figure that was never measured, in any layout."""
    return with_basis(band, "model only")


def latencies_with_basis(
    latency_ms: Mapping[str, Latency], basis: FigureBasis, rate_per_s: float
) -> dict[str, Latency]:
    """Return latencies at a peak rate with the basis of each statistic."""
    return {
        name: Latency(**{each: _based(latency, name, each, basis, rate_per_s) for each in STATISTICS})
        for name, latency in latency_ms.items()
    }


def _based(latency: Latency, name: str, statistic: str, basis: FigureBasis, rate_per_s: float) -> Band | None:
    band: Band | None = getattr(latency, statistic)
    return None if band is None else with_basis(band, basis.of_latency(name, statistic, rate_per_s))
