"""A load that some parameter draws do not sustain: their latency is infinite."""

from typing import Any

import numpy as np
from tests.simulator.histograms import histogram_of

from capplan.answers.results import STATISTICS
from capplan.layout.uncertainty import ModelError, Uncertainty
from capplan.planner.predict.simulated_latency import extended_to_all, relations_of
from capplan.simulator.results.histogram import Histogram

UNCERTAINTY = Uncertainty(rate=ModelError(0.05), time=ModelError(0.05), seed=1)


class Analytic:
    """Analytic figures of 100 draws; the last of them cannot carry the load where `unbounded`."""

    asked = ("read",)

    @property
    def steady(self) -> "Analytic":
        return self

    def __init__(self, unbounded: int) -> None:
        self.figures = np.linspace(1e-3, 2e-3, 100)
        self.figures[100 - unbounded :] = np.inf

    def corrected_s(self, name: str, statistic: str, corrected: Any) -> Any:
        del name, statistic
        return corrected(self.figures)

    def latency_s(self, name: str, statistic: str) -> Any:
        return self.latencies_s(name)[STATISTICS.index(statistic)]

    def latencies_s(self, name: str) -> Any:
        del name
        return np.broadcast_to(self.figures, (len(STATISTICS), 100))


def seen(generator: np.random.Generator) -> Histogram:
    return histogram_of((generator.exponential(1.5e-3, 1000) * 1e9).astype(np.int64))


def mean_with(unbounded: int) -> Any:
    """Carry eight draws of 1,000 exponential latencies each over to all, the last of them among those chosen."""
    generator, chosen = np.random.default_rng(1), np.linspace(0, 99, 8).astype(np.int64)
    phases = [[(1.0, {"read": seen(generator)})] for _ in chosen]
    figures: Any = Analytic(unbounded)
    relations = relations_of(phases, chosen, figures)
    assert len(relations) == len(STATISTICS)
    found = extended_to_all(relations, figures, UNCERTAINTY)
    return found["read"].mean


def test_a_few_draws_that_cannot_carry_it_leave_the_band_without_an_upper_end() -> None:
    band = mean_with(10)

    assert 1.0 < band.low * 1.1 < band.value < 2.0
    assert band.high == np.inf
    assert band.parts.simulation is None


def test_most_draws_cannot_carry_it() -> None:
    band = mean_with(60)

    assert np.isfinite(band.low)
    assert band.value == band.high == np.inf


def test_all_carry_it_and_the_simulation_has_its_part() -> None:
    band = mean_with(0)

    assert np.isfinite(band.high)
    assert band.parts.simulation > 0
