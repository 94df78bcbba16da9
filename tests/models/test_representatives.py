"""One representative for alike members: the same figures as with every member written out, at any number of members."""

from __future__ import annotations

import pytest
from tests.oracles.unrolled import unrolled

from capplan.models.errors import RefusedError
from capplan.models.language.distribution import Deterministic, Erlang
from capplan.models.language.network import Network
from capplan.models.language.station import Differs, Pool, Station
from capplan.models.language.step import (
    Acquire,
    CountdownLatch,
    Delay,
    FanOut,
    ForkJoin,
    Group,
    If,
    Pick,
    ReplicaSet,
    Sequence,
    Signal,
    Step,
    Visit,
)
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import capacity_per_s, solve

HOP = Delay(Deterministic(1e-4))


def visit(station: str, member: str, mean_s: float) -> Visit:
    return Visit(station, Erlang(mean_s, 2), member=member)


def cluster(
    count: int,
    *exceptions: Differs,
    placement: str = "random",
    policy: str = "round_robin",
    needed: int = 2,
    pooled: bool = True,
) -> Network:
    """Return a cluster with replication factor 3; clients reach any node, and a node asks others over the network."""
    hop = If("replica", "coordinator", Sequence(()), HOP)
    stored = ForkJoin((visit("storage", "replica", 1e-4),), 0)
    applied = Sequence((hop, visit("node", "replica", 1e-3), stored, Signal("done")))
    write = CountdownLatch((Group("done", needed),), FanOut("replicas", "replica", applied, 0))
    read = FanOut("replicas", "replica", Sequence((hop, visit("node", "replica", 1e-3))), needed, contacted=needed)

    def asked(step: Step) -> Step:
        replicas = ReplicaSet("replicas", "node", 3, step, placement=placement, first="coordinator")  # type: ignore[arg-type]
        parsed = Sequence((visit("node", "coordinator", 2e-4), replicas))
        held = Acquire("threads", parsed, member="coordinator") if pooled else parsed
        return Pick("coordinator", "node", policy, held)  # type: ignore[arg-type]

    return Network(
        "cluster",
        (Station("node", 4, "ps", count=count, exceptions=exceptions), Station("storage", 1, count=count)),
        (RequestClass("read", asked(read)), RequestClass("write", asked(write))),
        Open(1.0, {"read": 0.6, "write": 0.4}),
        pools=(Pool("threads", 32, 16, count=count),),
    )


def assert_equal(one: Analysis, other: Analysis, share: float = 0.7) -> None:
    assert one.saturation_per_s == pytest.approx(other.saturation_per_s, rel=1e-9)
    assert one.drift_per_s == pytest.approx(other.drift_per_s, rel=1e-9)
    assert one.pool == other.pool
    assert capacity_per_s(one, 1e-3) == pytest.approx(capacity_per_s(other, 1e-3), rel=1e-9)
    rate = float(one.saturation_per_s[0]) * share
    points = solve(one, rate), solve(other, rate)
    for name in one.flows:
        first, second = (point.response_s(name) for point in points)
        assert first == pytest.approx(second, rel=1e-9)
        first, second = (point.quantile_s(0.99, name) for point in points)
        assert first == pytest.approx(second, rel=1e-6)


@pytest.mark.parametrize("placement", ["random", "ring"])
@pytest.mark.parametrize("needed", [1, 2, 3])
@pytest.mark.parametrize("pooled", [False, True])
def test_alike_members_have_the_figures_of_the_network_written_out(placement: str, needed: int, pooled: bool) -> None:
    network = cluster(5, placement=placement, needed=needed, pooled=pooled)
    assert_equal(Analysis(network), Analysis(unrolled(network)))


@pytest.mark.parametrize("needed", [1, 2, 3])
def test_one_member_that_differs_may_stand_anywhere_on_the_ring(needed: int) -> None:
    network = cluster(5, Differs(2, speed=0.5), placement="ring", needed=needed, pooled=False)
    assert_equal(Analysis(network), Analysis(unrolled(network)))


def test_where_several_that_differ_stand_on_the_ring_is_not_known_to_the_solver() -> None:
    with pytest.raises(RefusedError, match="ring"):
        Analysis(cluster(5, Differs(2, speed=0.5), Differs(3, speed=0.5), placement="ring"))


@pytest.mark.parametrize(
    "exceptions",
    [
        (Differs(2, speed=0.5),),
        (Differs(3, down=True),),
        (Differs(1, servers=2), Differs(4, servers=2), Differs(5, down=True)),
        (Differs(1, speed=0.5), Differs(2, speed=0.8), Differs(3, servers=3)),
    ],
)
@pytest.mark.parametrize("pooled", [False, True])
def test_members_that_differ_have_the_figures_of_the_network_written_out(
    exceptions: tuple[Differs, ...], pooled: bool
) -> None:
    network = cluster(5, *exceptions, pooled=pooled)
    assert_equal(Analysis(network), Analysis(unrolled(network)))
