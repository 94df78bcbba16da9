"""One representative for alike members: the same figures as with every member written out, at any number of members."""

from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from tests.oracles.unrolled import DropError, unrolled

from capplan.errors import InputError, RefusedError
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
    Route,
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
from capplan.models.solver.single_station import mmc
from capplan.simulator.engine import simulate

Placement = Literal["random", "ring"]
HOP = Delay(Deterministic(1e-4))


def visit(station: str, member: str, mean_s: float) -> Visit:
    return Visit(station, Erlang(mean_s, 2), member=member)


def cluster(
    count: int,
    *exceptions: Differs,
    placement: Placement = "random",
    policy: RoutePolicy = "random",
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
@pytest.mark.parametrize("pooled", [pytest.param(False, marks=pytest.mark.slow), True])
def test_alike_members_have_the_figures_of_the_network_written_out(
    placement: Placement, needed: int, pooled: bool
) -> None:
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
        pytest.param((Differs(2, speed=0.5),), marks=pytest.mark.slow),
        (Differs(3, down=True),),
        pytest.param((Differs(1, servers=2), Differs(4, servers=2), Differs(5, down=True)), marks=pytest.mark.slow),
        pytest.param((Differs(1, speed=0.5), Differs(2, speed=0.8), Differs(3, servers=3)), marks=pytest.mark.slow),
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


@pytest.mark.slow
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


@pytest.mark.parametrize(("count", "rate_per_s"), [(1, 2.5), (7, 20.0), (1000, 2900.0)])
def test_members_picked_at_random_are_separate_queues(count: int, rate_per_s: float) -> None:
    flow = Pick("one", "node", "random", Visit("node", Exponential(1.0), member="one"))
    stations = (Station("node", 3, count=count),)
    analysis = Analysis(Network("n", stations, (RequestClass("job", flow),), Open(1.0, {"job": 1.0})))
    expected = mmc(rate_per_s / count, 1.0, 3)
    point = solve(analysis, rate_per_s)
    assert point.response_s("job") == pytest.approx(float(expected.mean_response_s), rel=1e-9)
    assert analysis.drift_per_s == pytest.approx(3.0 * count, rel=1e-12)
    assert analysis.members == {"node": count}


@pytest.mark.parametrize("count", [1, 2, 10])
def test_members_that_take_turns_see_erlang_arrivals(count: int) -> None:
    """The wait is that of Allen and Cunneen: the mean of the squared coefficients of variation, 1 / K and 1."""
    flow = Pick("one", "node", "round_robin", Visit("node", Exponential(1.0), member="one"))
    network = Network("n", (Station("node", 3, count=count),), (RequestClass("job", flow),), Open(1.0, {"job": 1.0}))
    wait = solve(Analysis(network), 2.5 * count).response_s("job") - 1
    poisson = float(mmc(2.5, 1.0, 3).mean_response_s) - 1
    assert wait == pytest.approx(poisson * (1 / count + 1) / 2, rel=1e-9)


def test_a_slow_member_saturates_first_and_has_its_own_queue() -> None:
    flow = Pick("one", "node", "random", Visit("node", Exponential(1.0), member="one"))
    stations = (Station("node", 1, "ps", count=10, exceptions=(Differs(4, speed=0.5), Differs(7, down=True))),)
    analysis = Analysis(Network("n", stations, (RequestClass("job", flow),), Open(1.0, {"job": 1.0})))
    assert analysis.bottleneck == ("node/4",)
    assert analysis.members == {"node": 8, "node/4": 1}
    assert analysis.drift_per_s == pytest.approx(0.5 * 9, rel=1e-12)
    each = 2.7 / 9
    expected = 8 / 9 / (1 - each) + 1 / 9 / (0.5 - each)
    assert solve(analysis, 2.7).response_s("job") == pytest.approx(expected, rel=1e-9)


def test_a_pick_of_the_first_visits_the_first_that_is_up() -> None:
    flow = Pick("one", "node", "first", Visit("node", Exponential(1.0), member="one"))
    stations = (Station("node", 1, count=50, exceptions=(Differs(1, down=True),)),)
    analysis = Analysis(Network("n", stations, (RequestClass("job", flow),), Open(1.0, {"job": 1.0})))
    assert analysis.demands.keys() == {"node/2"}
    assert analysis.drift_per_s == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("needed", [1, 2, 3])
def test_idle_replicas_answer_like_order_statistics(needed: int) -> None:
    """The k-th of three exponential times of mean 1: 1/3, then 1/2 more, then 1 more."""
    read = FanOut("all", "one", Visit("node", Exponential(1.0), member="one"), needed)
    network = Network(
        "n",
        (Station("node", 1, count=40),),
        (RequestClass("job", ReplicaSet("all", "node", 3, read)),),
        Open(1.0, {"job": 1.0}),
    )
    analysis = Analysis(network)
    assert analysis.unloaded["job"].total == pytest.approx(sum(1 / each for each in (3, 2, 1)[:needed]), rel=1e-6)
    assert analysis.demands["node"].visits == pytest.approx(3 / 40, rel=1e-12)


def test_fewer_replicas_that_are_up_leave_fewer_answers_to_choose_from() -> None:
    """One of five nodes is down: three of five rows have it among their three replicas and wait for both others."""
    step = Sequence((Visit("node", Exponential(1.0), member="one"), Signal("done")))
    write = ReplicaSet("all", "node", 3, FanOut("all", "one", step, 0))
    stations = (Station("node", 1, count=5, exceptions=(Differs(2, down=True),)),)
    expected = 0.4 * (1 / 3 + 1 / 2) + 0.6 * 1.5
    for flow in (  # a latch inside the set, and around it
        ReplicaSet("all", "node", 3, CountdownLatch((Group("done", 2),), FanOut("all", "one", step, 0))),
        CountdownLatch((Group("done", 2),), write),
    ):
        network = Network("n", stations, (RequestClass("job", flow),), Open(1.0, {"job": 1.0}))
        analysis = Analysis(network)
        assert analysis.unloaded["job"].total == pytest.approx(expected, rel=1e-6)
        assert analysis.demands["node"].visits * analysis.members["node"] == pytest.approx(3 * 4 / 5, rel=1e-12)


def test_requests_that_too_few_replicas_can_answer_do_their_work_and_have_no_response_time() -> None:
    """All of two replicas must answer. With one of four nodes down, half of the rows have only one that is up."""
    read = FanOut("all", "one", Visit("node", Exponential(1.0), member="one"), 2)
    flow = Sequence((Visit("door", Exponential(0.25)), ReplicaSet("all", "node", 2, read)))
    stations = (Station("door", 1), Station("node", 1, count=4, exceptions=(Differs(4, down=True),)))
    analysis = Analysis(Network("n", stations, (RequestClass("job", flow),), Open(1.0, {"job": 1.0})))
    assert analysis.unloaded["job"].total == pytest.approx(0.25 + 1.5, rel=1e-6)
    assert analysis.demands["door"].mean_s == pytest.approx(0.25, rel=1e-12)
    assert analysis.demands["node"].mean_s == pytest.approx(0.5 * 2 / 3, rel=1e-12)


def test_a_class_of_which_every_request_is_dropped_is_an_error() -> None:
    read = FanOut("all", "one", Visit("node", Exponential(1.0), member="one"), 2)
    stations = (Station("node", 1, count=2, exceptions=(Differs(1, down=True),)),)
    network = Network(
        "n", stations, (RequestClass("job", ReplicaSet("all", "node", 2, read)),), Open(1.0, {"job": 1.0})
    )
    with pytest.raises(InputError, match="'job' is dropped"):
        Analysis(network)


def test_sets_in_too_many_ways_are_refused() -> None:
    """Inside a set of the same row, the order of 20 replicas of two classes matters."""
    again = ReplicaSet("again", "node", 5, Sequence(()))
    flow = Sequence((Visit("door", Exponential(1.0)), ReplicaSet("all", "node", 20, again)))
    halves = tuple(Differs(number, speed=0.5) for number in range(1, 21))
    stations = (Station("door", 1), Station("node", 1, count=40, exceptions=halves))
    with pytest.raises(RefusedError, match="10000 ways"):
        Analysis(Network("n", stations, (RequestClass("job", flow),), Open(1.0, {"job": 1.0})))


@pytest.mark.parametrize(
    "exceptions",
    [(), (Differs(2, speed=0.5),), (Differs(3, down=True),), (Differs(2, speed=0.5), Differs(3, down=True))],
)
@pytest.mark.parametrize(("share", "mean_error", "tail_error"), [(0.3, 0.01, 0.13), (0.6, 0.04, 0.18)])
def test_a_simulation_of_members_that_differ_has_nearly_the_same_figures(
    exceptions: tuple[Differs, ...], share: float, mean_error: float, tail_error: float
) -> None:
    """Means within 4 % and 99th percentiles within 18 % at 60 % of the capacity of the most loaded member."""
    network = cluster(6, *exceptions, pooled=False)
    analysis = Analysis(network)
    rate = float(analysis.saturation_per_s[0]) * share
    point = solve(analysis, rate)
    run = simulate(replace(network, traffic=Open(rate, network.traffic.mix)), 60_000 / rate, seed=1)
    for name, report in run.reports.items():
        latency = report.latency("actual")
        assert float(point.response_s(name)[0]) == pytest.approx(latency.mean_s, rel=mean_error)
        assert float(point.quantile_s(0.99, name)[0]) == pytest.approx(latency.quantile_s(0.99), rel=tail_error)
    for name, station in run.stations.items():
        known = name if name in analysis.demands else name.split("/")[0]
        is_down = any(name.endswith(f"/{each.member}") for each in exceptions if each.down)
        expected = 0.0 if is_down else rate * float(analysis.load(known)[0])
        assert station.utilisation == pytest.approx(expected, abs=0.02), name


@given(st.integers(6, 60), st.integers(2, 30), st.sampled_from([(), (Differs(2, speed=0.5), Differs(3, down=True))]))
@settings(max_examples=30)
def test_more_nodes_do_not_change_the_size_of_the_analysis(
    count: int, factor: int, exceptions: tuple[Differs, ...]
) -> None:
    """From six nodes on, of which four are alike: with fewer, a coordinator and three replicas are in fewer ways."""
    small, large = (Analysis(cluster(n, *exceptions)) for n in (count, count * factor))
    for name, flow in small.flows.items():
        assert sum(1 for _ in walk(flow)) == sum(1 for _ in walk(large.flows[name]))
    assert small.demands.keys() == large.demands.keys()


@given(st.integers(3, 60), st.integers(2, 30), st.floats(0.1, 0.95))
@settings(max_examples=30)
def test_more_members_at_a_higher_rate_have_the_same_response(count: int, factor: int, share: float) -> None:
    read = FanOut("all", "one", Visit("node", Erlang(1.0, 2), member="one"), 2)
    flow = Sequence((Pick("door", "door", "random", visit("door", "door", 0.5)), ReplicaSet("all", "node", 3, read)))

    def response(n: int) -> float:
        stations = (Station("node", 4, count=n), Station("door", 2, "ps", count=n))
        analysis = Analysis(Network("n", stations, (RequestClass("job", flow),), Open(1.0, {"job": 1.0})))
        return float(solve(analysis, n * 4 / 3 * share).response_s("job")[0])

    assert response(count * factor) == pytest.approx(response(count), rel=1e-9)


def test_ten_data_centres_have_few_steps() -> None:
    """Every data centre writes to its own replicas; the coordinator is in any of them."""
    centres = [f"node/dc{number}" for number in range(10)]

    def replicated(centre: str, own: bool) -> Step:
        step = Sequence((visit(centre, "replica", 1e-3), Signal("done")))
        near = Sequence((If("replica", "coordinator", Sequence(()), HOP), step)) if own else step
        first = "coordinator" if own else None
        return ReplicaSet("replicas", centre, 3, FanOut("replicas", "replica", near, 0), first=first)

    def coordinated(centre: str) -> Step:
        writes = ForkJoin(tuple(replicated(other, own=other == centre) for other in centres), 0)
        return Pick("coordinator", centre, "random", CountdownLatch((Group("done", 16),), writes))

    flow = Route("random", tuple(map(coordinated, centres)))
    stations = tuple(Station(centre, 4, count=300, exceptions=(Differs(1, speed=0.5),)) for centre in centres)
    analysis = Analysis(Network("n", stations, (RequestClass("job", flow),), Open(1.0, {"job": 1.0})))
    distinct = {id(step) for step in walk(analysis.flows["job"])}
    assert len(distinct) < 100 * len(centres)
    assert len(analysis.clusters) == 2
