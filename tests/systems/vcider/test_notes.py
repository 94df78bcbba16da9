"""Predictions for `vcider`: documented gains, and the notes."""

from dataclasses import replace

import numpy as np
import pytest

from capplan.models.errors import InputError
from capplan.planner.predict.predict import predict
from capplan.planner.simulate.simulate import of_scenario
from capplan.systems.registry import resolve, scenario, system
from capplan.systems.vcider.network import ratio
from capplan.systems.vcider.scenario import NODES, VciderScenario

VCIDER = system("vcider")
FITTED = VCIDER.fitted()


@pytest.mark.parametrize(
    ("encryption", "low", "high"),
    [("client+internode", -1.0, -0.1), ("internode", 0.01, 0.1), ("none", -0.001, 0.001)],
)
def test_what_replicas_do_to_the_ratio(encryption: str, low: float, high: float) -> None:
    """Less over a reference that encrypts clients too, a little more over internode encryption, nothing without."""
    values = FITTED.values(VCIDER.parameters)
    by_replicas = [float(np.median(ratio(VciderScenario(rf=rf), values, encryption))) for rf in range(1, NODES + 1)]

    assert low < by_replicas[-1] / by_replicas[0] - 1 < high
    assert by_replicas in (sorted(by_replicas), sorted(by_replicas, reverse=True)) or encryption == "none"


def test_the_documented_gains_are_inside_their_bands_and_bands_widen_outside() -> None:
    """Averages of the document: +59, +30 and -4.2 % (replication factors 1, 3 and 3)."""
    one, three = (predict(scenario("vcider", rf=rf)) for rf in (1, 3))
    for made, name, published in (
        (one, "native, client+internode encryption", 1.59),
        (three, "native, client+internode encryption", 1.30),
        (three, "native, no encryption", 0.958),
    ):
        band = made.throughput_ratios[name]
        assert band.low < published < band.high
        assert band.value == pytest.approx(published, abs=0.02)
    wide = predict(scenario("vcider", rf=3, column_bytes=512)).throughput_ratios
    first, other = next(iter(wide.values())), next(iter(three.throughput_ratios.values()))
    assert first.high - first.low > other.high - other.low


def test_how_well_readings_of_the_document_fit_stands_beside_encrypted_references_only() -> None:
    best, *others = FITTED.hypotheses
    worse = replace(FITTED, hypotheses=(best, replace(others[0], deviance=best.deviance + 9.0), others[1]))
    for encryption, differ in (("internode", True), ("none", False)):
        now, then = (
            VCIDER.notes.notes_on_ratios(resolve(scenario("vcider", encryption=encryption), fitted))
            for fitted in (FITTED, worse)
        )
        assert (now != then) is differ


def test_there_is_no_rate_to_simulate_it_at() -> None:
    with pytest.raises(InputError):
        of_scenario(scenario("vcider"))
