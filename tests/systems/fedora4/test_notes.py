"""The notes of `fedora4`."""

from typing import get_args

import pytest

from capplan.models.results import Basis
from capplan.planner.predict.predict import predict
from capplan.systems.fedora4.scenario import Fedora4Scenario
from capplan.systems.registry import system

NOTES = system("fedora4").notes


@pytest.mark.parametrize(("write_share", "expected"), [(0.0, "1,003"), (0.05, "979")])
def test_the_document_s_line_stands_beside_larger_clusters(write_share: float, expected: str) -> None:
    """525, 650, 725, 810: the least-squares line is 445 + 93 n (objective 5), so 1,003 on six nodes, or 979 mixed."""
    (claim,) = NOTES.claims(Fedora4Scenario(nodes=6, write_share=write_share))

    assert f"{expected} TPS" in claim


@pytest.mark.parametrize("layout", [Fedora4Scenario(nodes=4), Fedora4Scenario(nodes=6, write_share=0.5)])
def test_nothing_is_claimed_of_layouts_that_the_document_measured_or_left_out(layout: Fedora4Scenario) -> None:
    assert NOTES.claims(layout) == ()


def test_figures_that_no_test_of_a_capacity_measured_have_a_basis_beside_the_capacity() -> None:
    """Throughput and times were measured at loads near 1 by runs that did not search for a capacity."""
    prediction = predict(Fedora4Scenario(tps=744.0), engine="analytic")

    assert {band.basis for band in prediction.utilisation.values()} <= set(get_args(Basis))
    assert prediction.latency_ms["read"].mean is not None
