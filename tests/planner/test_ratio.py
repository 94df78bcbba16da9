"""Predictions of systems that are documented as ratios: one ratio per reference, and no absolute figures."""

import pytest
from tests.planner.predictions import predicted

from capplan.planner.predict.prediction import Prediction
from capplan.systems.registry import system
from capplan.systems.vcider.network import ratio
from capplan.systems.vcider.scenario import VciderScenario

REFERENCES = {
    "client+internode": "native, client+internode encryption",
    "internode": "native, internode encryption",
    "none": "native, no encryption",
}


def asked(encryption: str = "client+internode", rf: int = 3) -> Prediction:
    return predicted("vcider", "compiled", rf=rf, column_bytes=512, encryption=encryption)


def test_there_are_no_absolute_figures() -> None:
    made = asked()

    assert (made.peak_tps, made.bottleneck, made.offered) == (None, None, None)
    assert (made.latency_ms, made.utilisation, made.busy_workers, made.outages) == ({}, {}, {}, ())
    assert made.engine == "analytic"
    assert {band.parts.simulation for band in made.throughput_ratios.values()} == {None}


@pytest.mark.parametrize("encryption", list(REFERENCES))
def test_the_reference_that_was_asked_for_comes_first(encryption: str) -> None:
    ratios = asked(encryption).throughput_ratios

    assert set(ratios) == set(REFERENCES.values())
    assert next(iter(ratios)) == REFERENCES[encryption]


@pytest.mark.parametrize("encryption", list(REFERENCES))
def test_a_band_is_that_of_a_rate_around_the_median_of_the_draws(encryption: str) -> None:
    layout, fitted = VciderScenario(rf=3, column_bytes=512), system("vcider").fitted()
    draws = ratio(layout, system("vcider").values(fitted, layout), encryption)
    band = asked().throughput_ratios[REFERENCES[encryption]]

    ordered = sorted(draws)
    assert len(draws) == len(fitted.draws)
    assert ordered[len(draws) // 2 - 1] <= band.value <= ordered[len(draws) // 2]
    assert band.low < ordered[len(draws) // 20]
    assert band.high > ordered[-len(draws) // 20]
