"""The notes of `fedora4`."""

import pytest

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
