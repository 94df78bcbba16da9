"""Rows that the busiest node reads and moves, worked by hand for data centres that differ."""

from typing import Any

import pytest

from capplan.models.cassandra.node_traffic import NodeTraffic


def traffic(**fields: Any) -> NodeTraffic:
    usual: dict[str, Any] = {
        "reads_per_s": 1200.0,
        "writes_per_s": 0.0,
        "shares": {0: 0.5, 1: 0.5},
        "nodes": (12, 3),
        "replicas": (3, 3),
        "down": (0, 0),
        "round_trips_s": ((0.0, 0.001), (0.001, 0.0)),
        "token_aware": True,
    }
    return NodeTraffic(**{**usual, **fields})


def test_the_smaller_data_centre_reads_most() -> None:
    assert traffic().rows_read_per_s("LOCAL_QUORUM") == pytest.approx(600 * 2 / 3)


def test_a_data_centre_without_clients_reads_nothing_locally() -> None:
    assert traffic(shares={0: 1.0}).rows_read_per_s("LOCAL_ONE") == pytest.approx(1200 / 12)


def test_any_replicas_are_the_nearest_ones() -> None:
    """QUORUM of six replicas is four: three at home and one next door, on three nodes."""
    assert traffic(shares={0: 1.0}).rows_read_per_s("QUORUM") == pytest.approx(1200 * max(3 / 12, 1 / 3))


def test_nodes_that_are_left_read_what_lost_ones_did() -> None:
    one = traffic(shares={0: 1.0}, nodes=(4, 4), down=(1, 0))
    assert one.rows_read_per_s("LOCAL_ONE") == pytest.approx(1200 / 3)


def test_writes_reach_every_replica_and_leave_for_each_other_data_centre_once() -> None:
    """All clients in the first of two: its nodes send two copies at home and one over; the others get three."""
    writes = traffic(reads_per_s=0.0, writes_per_s=1200.0, shares={0: 1.0}, nodes=(12, 12))
    assert writes.rows_moved_per_s() == pytest.approx(1200 * max(2 + 1, 1 + 2, 3) / 12)


def test_equal_data_centres_share_the_work() -> None:
    equal, single = (
        traffic(nodes=(6, 6)),
        traffic(nodes=(6,), shares={0: 1.0}, replicas=(3,), down=(0,), round_trips_s=((0,),)),
    )
    assert equal.rows_read_per_s("LOCAL_QUORUM") == pytest.approx(single.rows_read_per_s("LOCAL_QUORUM") / 2)


def test_a_coordinator_without_the_row_fetches_it() -> None:
    """Of 12 nodes with three replicas, nine of twelve coordinators send a row that they received before."""
    far = traffic(shares={0: 1.0}, token_aware=False)
    assert far.rows_moved_per_s() == pytest.approx(1200 * (1 + 0.75) / 12)
