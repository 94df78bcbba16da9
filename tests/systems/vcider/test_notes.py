"""What is told beside a ratio of the virtual network: distance, doubts, and no simulation."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from capplan.calibration.case.extrapolation import reach
from capplan.calibration.fit.fitted_file import load
from capplan.models.errors import InputError
from capplan.planner.predict.predict import predict
from capplan.planner.simulate.simulate import of_scenario
from capplan.systems.registry import scenario
from capplan.systems.vcider.network import ratio
from capplan.systems.vcider.notes import ABOUT
from capplan.systems.vcider.observations import experiments
from capplan.systems.vcider.scenario import ENCRYPTION, NODES, VciderScenario

TESTS = experiments()


def notes(**layout: Any) -> str:
    case = cast("Any", SimpleNamespace(scenario=VciderScenario(**layout), fitted=load("vcider")))
    return " ".join(ABOUT.notes(case))


@pytest.mark.parametrize(
    ("layout", "verdict", "words"),
    [
        ({"rf": 3, "column_bytes": 32}, "inside", "Every part of the layout lies within the measured range."),
        (
            {"rf": 2, "encryption": "none"},
            "inside",
            "lies between the measured ones: 2 replicas (1 and 3 were measured).",
        ),
        ({"column_bytes": 100}, "inside", "between the measured ones: 100 bytes a column (64 and 128 were measured)."),
        ({"rf": 4}, "near", "4 replicas: none measured above 3."),
        ({"column_bytes": 512}, "far", "512 bytes a column: none measured above 256."),
        ({"virtual_encrypts": "all"}, "far", "The field virtual_encrypts = 'all' is another reading of the document"),
        ({"virtual_encrypts": "none"}, "far", "the parameters were fitted under 'same'."),
        ({"column_bytes": 24}, "near", "24 bytes a column: none measured below 32."),
    ],
)
def test_how_far_a_layout_lies_from_the_measured_ones(layout: dict[str, Any], verdict: str, words: str) -> None:
    found = reach(VciderScenario(**layout), TESTS, ABOUT)

    assert found.verdict == verdict
    assert words in found.why


def test_doubts_are_told_where_they_apply() -> None:
    best = "fit best with the same links; all links and no links fit hardly worse, which is weak evidence."
    assert best in notes(encryption="internode")
    assert "fit best" not in notes(encryption="none")
    for encryption in ENCRYPTION:
        assert "Rows are taken to have 5 columns" in notes(encryption=encryption)
    assert "several regions" in ABOUT.claims(VciderScenario())[0]


@pytest.mark.parametrize(
    ("encryption", "said"),
    [("client+internode", "smaller with"), ("internode", "a little larger with"), ("none", "the same with any")],
)
def test_what_replicas_do_is_told_of_the_reference_that_was_asked_for(encryption: str, said: str) -> None:
    values = load("vcider").values()
    by_replicas = [float(np.median(ratio(VciderScenario(rf=rf), values, encryption))) for rf in range(1, NODES + 1)]
    gain = by_replicas[-1] / by_replicas[0] - 1

    assert said in notes(encryption=encryption)
    assert ("The document says the opposite" in notes(encryption=encryption)) is (encryption == "client+internode")
    assert sum(each in notes(encryption=encryption) for each in ("smaller with", "larger with", "same with")) == 1
    assert by_replicas in (sorted(by_replicas), sorted(by_replicas, reverse=True)) or encryption == "none"
    assert {"client+internode": gain < -0.1, "internode": 0.01 < gain < 0.1, "none": abs(gain) < 0.001}[encryption]


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
    wide = predict(scenario("vcider", rf=3, column_bytes=512)).throughput_ratio
    assert wide is not None
    assert three.throughput_ratio is not None
    assert wide.high - wide.low > three.throughput_ratio.high - three.throughput_ratio.low


def test_the_first_note_says_how_old_the_machines_are() -> None:
    assert predict(scenario("vcider")).evidence.notes[0].startswith("These are ratios of machines of 2011, taken as")


def test_a_reading_that_fits_worse_is_said_to() -> None:
    fitted = load("vcider")
    best, *others = fitted.hypotheses
    worse = replace(fitted, hypotheses=(best, replace(others[0], misfit=best.misfit + 9.0), others[1]))
    (note,) = [
        each
        for each in ABOUT.notes(cast("Any", SimpleNamespace(scenario=VciderScenario(), fitted=worse)))
        if "fit best" in each
    ]

    assert "no links fit hardly worse, which is weak evidence; all links fit worse." in note


def test_there_is_no_rate_to_simulate_it_at() -> None:
    with pytest.raises(InputError, match="ratios of throughput only, so there is no rate to simulate it at: ask"):
        of_scenario(scenario("vcider"))
