"""Nodes by the published rating of a Cassandra service: 250 per second on 2 vCPU, 2,500 on 8, 10,000 on 32."""

import runpy
from pathlib import Path

import pytest

RATED_NODES = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "generate" / "vendor_rating.py"))["rated_nodes"]


@pytest.mark.parametrize(
    ("rate_per_s", "cores", "nodes"),
    [
        (2_500, 8, 1),
        (2_501, 8, 2),
        (5_000, 12, 2),  # as 8: 312.5 for each
        (22_500, 36, 2),  # as 32: 312.5 for each
        (250, 1, 2),  # as 2: 125 for each
    ],
)
def test_nodes_follow_the_rating_of_the_largest_listed_node_that_is_not_larger(
    rate_per_s: float, cores: int, nodes: int
) -> None:
    assert RATED_NODES(rate_per_s, cores) == nodes
