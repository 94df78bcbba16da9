"""One representative for alike members: the same figures as with every member written out, at any number of members."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from tests.oracles.unrolled import DropError, unrolled

from capplan.models.errors import RefusedError
from capplan.models.language.distribution import Deterministic, Erlang, Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Differs, Pool, Station
from capplan.models.language.step import (
    Acquire,
    Choice,
    CountdownLatch,
    Delay,
    FanOut,
    ForkJoin,
    Group,
    If,
    Pick,
    ReplicaSet,
    RoutePolicy,
    Sequence,
    Signal,
    Step,
    Visit,
    walk,
)
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import capacity_per_s, solve

Placement = Literal["random", "ring"]
HOP = Delay(Deterministic(1e-4))


def visit(station: str, member: str, mean_s: float) -> Visit:
    return Visit(station, Erlang(mean_s, 2), member=member)


def cluster(
    count: int,
    *exceptions: Differs,
    placement: Placement = "random",
    policy: RoutePolicy = "round_robin",
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
        replicas = ReplicaSet("replicas", "node", 3, step, placement=placement, first="coordinator")
        parsed = Sequence((visit("node", "coordinator", 2e-4), replicas))
        held = Acquire("threads", parsed, member="coordinator") if pooled else parsed
        return Pick("coordinator", "node", policy, held)

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
def test_alike_members_have_the_figures_of_the_network_written_out(
    placement: Placement, needed: int, pooled: bool
) -> None:
    network = cluster(5, placement=placement, needed=needed, pooled=pooled)
    assert_equal(Analysis(network), Analysis(unrolled(network)))


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


Sets = tuple[tuple[str, int], ...]
MEANS = st.sampled_from([0.01, 0.02, 0.05])


class Flows:
    """Draws flows over the stations `node` and `disk`, which have as many members, and the station `door`.

    On a ring, no member stands out.
    """

    def __init__(self, draw: st.DrawFn, count: int, *, ring: bool) -> None:
        self.draw, self.count, self.ring = draw, count, ring
        self.bound = 0

    def step(self, depth: int, members: tuple[str, ...] = (), sets: Sets = ()) -> Step:
        kinds = ["visit", "delay", *(["member"] * 3 if members else [])]
        if depth:
            kinds += ["sequence", "choice", "fork", "pick", "pick", "replicas", "replicas"]
            kinds += ["fan_out", "pick_from"] * 2 if sets else []
            kinds += ["if_"] * 2 if members else []
        made: Step = getattr(self, self.draw(st.sampled_from(kinds)))(depth - 1, members, sets)
        return made

    def visit(self, *_: object) -> Step:
        return Visit("door", Exponential(self.draw(MEANS)))

    def delay(self, *_: object) -> Step:
        return Delay(Erlang(self.draw(MEANS), 3))

    def member(self, _: int, members: tuple[str, ...], __: Sets) -> Step:
        station = self.draw(st.sampled_from(["node", "disk"]))
        return Visit(station, Exponential(self.draw(MEANS)), member=self.draw(st.sampled_from(members)))

    def sequence(self, depth: int, members: tuple[str, ...], sets: Sets) -> Step:
        return Sequence((self.step(depth, members, sets), self.step(depth, members, sets)))

    def choice(self, depth: int, members: tuple[str, ...], sets: Sets) -> Step:
        return Choice((0.25, 0.75), (self.step(depth, members, sets), self.step(depth, members, sets)))

    def fork(self, depth: int, members: tuple[str, ...], sets: Sets) -> Step:
        branches = (self.step(depth, members, sets), self.step(depth, members, sets))
        return ForkJoin(branches, self.draw(st.integers(0, 2)))

    def pick(self, depth: int, members: tuple[str, ...], sets: Sets) -> Step:
        policies: list[RoutePolicy] = ["random", "token_aware" if self.ring else "first"]
        name, among = self.name(), self.draw(st.sampled_from(["node", "disk"]))
        return Pick(name, among, self.draw(st.sampled_from(policies)), self.step(depth, (*members, name), sets))

    def pick_from(self, depth: int, members: tuple[str, ...], sets: Sets) -> Step:
        policies: list[RoutePolicy] = ["random", "first"]
        name, (among, _) = self.name(), self.draw(st.sampled_from(sets))
        return Pick(name, among, self.draw(st.sampled_from(policies)), self.step(depth, (*members, name), sets))

    def replicas(self, depth: int, members: tuple[str, ...], sets: Sets) -> Step:
        name, size = self.name(), self.draw(st.integers(1, min(3, self.count)))
        among = self.draw(st.sampled_from(["node", "disk"]))
        inside = self.step(depth, members, (*sets, (name, size)))
        first = self.draw(st.sampled_from([None, *members]))
        return ReplicaSet(name, among, size, inside, placement="ring" if self.ring else "random", first=first)

    def fan_out(self, depth: int, members: tuple[str, ...], sets: Sets) -> Step:
        name, (over, size) = self.name(), self.draw(st.sampled_from(sets))
        contacted = self.draw(st.sampled_from([None, *range(1, size + 1)]))
        needed = self.draw(st.integers(0, contacted or size))
        return FanOut(over, name, self.step(depth, (*members, name), sets), needed, contacted=contacted)

    def if_(self, depth: int, members: tuple[str, ...], sets: Sets) -> Step:
        among = self.draw(st.sampled_from([*members, *(name for name, _ in sets)]))
        steps = self.step(depth, members, sets), self.step(depth, members, sets)
        return If(self.draw(st.sampled_from(members)), among, *steps)

    def name(self) -> str:
        self.bound += 1
        return f"name{self.bound}"


DIFFERENT = st.lists(
    st.builds(Differs, st.integers(1, 3), speed=st.sampled_from([0.5, 1.0]), down=st.booleans()),
    max_size=2,
    unique_by=lambda each: each.member,
)


@st.composite
def over_members(draw: st.DrawFn) -> Network:
    """Draw a network whose flow picks members."""
    count, ring = draw(st.integers(3, 4)), draw(st.booleans())
    nodes, disks = (() if ring else tuple(draw(DIFFERENT)) for _ in range(2))
    flow = Flows(draw, count, ring=ring).step(5)
    stations = (
        Station("node", 2, "ps", count=count, exceptions=nodes),
        Station("disk", 1, count=count, exceptions=disks),
        Station("door", 1),
    )
    visits = Sequence((Visit("door", Exponential(0.01)), flow))
    return Network("any", stations, (RequestClass("job", visits),), Open(1.0, {"job": 1.0}))


@given(over_members())
@settings(max_examples=300)
def test_any_flow_over_members_has_the_figures_of_the_network_written_out(network: Network) -> None:
    try:
        whole = Analysis(unrolled(network))
    except DropError:
        reject()
    try:
        part = Analysis(network)
    except RefusedError:  # neighbours on a ring
        sets = [step for step in walk(network.classes[0].flow) if isinstance(step, ReplicaSet)]
        assert "ring" in {step.placement for step in sets}
        reject()
    assert loads(part) == pytest.approx(loads(whole), rel=1e-9)
    assert part.unloaded["job"].total == pytest.approx(whole.unloaded["job"].total, rel=1e-9)


def loads(analysis: Analysis) -> list[float]:
    """Return the load of every member in ascending order."""
    return sorted(float(analysis.load(name)[0]) for name in analysis.demands for _ in range(analysis.members[name]))
