"""What is told beside a prediction of the repository cluster: the document's own words, doubts, distance."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from capplan.calibration.case.extrapolation import reach
from capplan.systems.fedora4.notes import ABOUT
from capplan.systems.fedora4.observations import experiments
from capplan.systems.fedora4.scenario import Fedora4Scenario

TESTS = experiments()


def notes(**layout: Any) -> str:
    nothing = cast("Any", None)
    case = cast("Any", SimpleNamespace(scenario=Fedora4Scenario(**layout)))
    return " ".join(ABOUT.notes(case, nothing, nothing))


@pytest.mark.parametrize(
    ("layout", "verdict", "words"),
    [
        ({"nodes": 1}, "inside", "Every part of the layout lies within the measured range."),
        ({"nodes": 4, "write_share": 0.05, "region": "asia"}, "inside", "Every part"),
        ({"nodes": 6}, "near", "6 nodes: none measured above 4."),
        ({"nodes": 8}, "far", "8 nodes: none measured above 4."),
        ({"nodes": 2, "write_share": 0.07}, "near", "7 % writes: no capacity was measured above 5 %."),
        ({"nodes": 2, "write_share": 1.0}, "far", "100 % writes: no capacity was measured above 5 %."),
    ],
)
def test_how_far_a_layout_lies_from_the_measured_ones(layout: dict[str, Any], verdict: str, words: str) -> None:
    found = reach(Fedora4Scenario(**layout), TESTS, ABOUT)

    assert found.verdict == verdict
    assert words in found.why
    assert found.distance <= 3.0


def test_the_document_s_line_stands_beside_larger_clusters_of_reads() -> None:
    """525, 650, 725, 810: the least-squares line is 445 + 93 n (objective 5), so 1,003 on six nodes, or 979 mixed."""
    (claim,) = ABOUT.claims(Fedora4Scenario(nodes=6))

    assert "1,003 TPS on 6 nodes" in claim
    assert "4 nodes carry 1.54 times what one does" in claim
    (mixed,) = ABOUT.claims(Fedora4Scenario(nodes=6, write_share=0.05))
    assert "capacities with 5 % of writes would reach 979 TPS on 6 nodes" in mixed
    assert ABOUT.claims(Fedora4Scenario(nodes=4)) == ABOUT.claims(Fedora4Scenario(nodes=6, write_share=0.5)) == ()


def test_doubts_are_told_where_they_apply() -> None:
    assert "pace their requests" in notes(nodes=1)
    assert "every other node" in notes(nodes=2)
    assert "every other node" not in notes(nodes=1)
    assert "Half of the writes" in notes(write_share=0.05)
    assert "Half of the writes" not in notes()
    assert "not explained" in notes(nodes=3, write_share=0.05)
    assert "the band says so" in notes(nodes=5, write_share=0.05)
    assert "the band says so" not in notes(nodes=4, write_share=0.05)
