"""Service demands and durations of flows, against sums worked out by hand."""

import numpy as np
import pytest

from capplan.errors import RefusedError
from capplan.models.language.distribution import Deterministic, Distribution, Erlang, Exponential
from capplan.models.language.step import (
    Acquire,
    Batch,
    Choice,
    CountdownLatch,
    Delay,
    ForkJoin,
    Group,
    Hedge,
    Route,
    Sequence,
    Signal,
    Step,
    Visit,
)
from capplan.models.solver.flow_analysis import (
    Congestion,
    DemandReader,
    ResponseReader,
    Shapes,
    WaitedDemandReader,
    random_time,
)
from capplan.models.solver.random_times import RandomTime


def sure(seconds: float) -> Deterministic:
    return Deterministic(seconds)


def delay(seconds: float) -> Delay:
    return Delay(sure(seconds))


def visit(station: str, seconds: float) -> Visit:
    return Visit(station, sure(seconds))


def seq(*steps: Step) -> Sequence:
    return Sequence(steps)


def fork(needed: int, *branches: Step) -> ForkJoin:
    return ForkJoin(branches, needed)


def latch(needed: int, step: Step) -> CountdownLatch:
    return CountdownLatch((Group("all", needed),), step)


def response(flow: Step, **congestion: Congestion) -> RandomTime:
    return ResponseReader(congestion, Shapes({})).of(flow)


def seconds(flow: Step, **congestion: Congestion) -> float:
    return float(response(flow, **congestion).total)


def test_work_counts_every_branch_whoever_waits_for_it() -> None:
    flow = seq(
        visit("a", 1.0),
        fork(1, visit("a", 2.0), visit("b", 3.0)),  # the late branch still does its work
        fork(0, visit("b", 5.0)),  # detached
        latch(1, fork(0, seq(visit("c", 1.0), Signal("all")))),
    )
    work = DemandReader().of(flow)
    assert {name: (each.visits, each.mean_s, each.second_moment_s2) for name, each in work.items()} == {
        "a": (2.0, 3.0, 1.0 + 4.0),
        "b": (2.0, 8.0, 9.0 + 25.0),
        "c": (1.0, 1.0, 1.0),
    }


def test_alternatives_share_the_work() -> None:
    choice = Choice((0.25, 0.75), (visit("a", 4.0), seq()))
    route = Route("round_robin", (visit("a", 1.0), visit("b", 2.0), seq()))
    work = DemandReader().of(seq(choice, Acquire("pool", route)))
    assert (work["a"].visits, work["a"].mean_s) == pytest.approx((0.25 + 1 / 3, 1 + 1 / 3))
    assert (work["b"].visits, work["b"].mean_s, work["b"].second_moment_s2) == pytest.approx((1 / 3, 2 / 3, 4 / 3))


def test_targets_share_the_work_by_their_weights() -> None:
    targets = (Visit("a", Exponential(2.0)), Visit("b", Exponential(1.0)), Visit("c", Exponential(1.0)))
    found = DemandReader().of(Route("random", targets, weights=(3, 1, 0)))
    assert {name: each.mean_s for name, each in found.items()} == {"a": 1.5, "b": 0.25, "c": 0.0}


def test_second_moments_follow_the_law() -> None:
    assert DemandReader().of(Visit("a", Exponential(3.0)))["a"].second_moment_s2 == pytest.approx(2 * 9.0)
    assert DemandReader().of(Visit("a", Erlang(2.0, 2)))["a"].second_moment_s2 == pytest.approx(1.5 * 4.0)


def waited_s(flow: Step) -> dict[str, float]:
    return {name: float(work.mean_s) for name, work in WaitedDemandReader().of(flow).items()}


def test_a_branch_that_nothing_waits_for_is_no_waited_work() -> None:
    flow = seq(visit("a", 1.0), fork(0, seq(visit("a", 2.0), visit("b", 3.0))), fork(1, visit("c", 4.0)))
    assert waited_s(flow) == {"a": 1.0, "c": 4.0}


@pytest.mark.parametrize("needed", [1, 2, 3])
def test_requests_wait_for_as_much_of_the_work_of_replicas_as_for_their_signals(needed: int) -> None:
    """What a replica does before its signal counts, with its share; what it does afterwards does not."""
    own = [
        seq(visit("net", 1.0), visit(each, 2.0), Signal("all"), visit("late", 5.0), fork(0, visit("late", 1.0)))
        for each in "abc"
    ]
    found = waited_s(latch(needed, seq(visit("first", 1.0), fork(0, *own))))
    share = needed / 3
    assert found == pytest.approx({"first": 1.0, "net": 3 * share, **dict.fromkeys("abc", 2 * share)})


def test_each_group_of_signals_has_its_own_share_of_waited_work() -> None:
    """The near ones are all awaited, of the far ones one of two; a latch inside a late branch is nobody's."""
    near = seq(visit("near", 1.0), Signal("near"))
    far = seq(Choice((0.25, 0.75), (visit("far", 4.0), visit("farther", 4.0))), Signal("far"))
    late = latch(1, fork(0, seq(visit("late", 1.0), Signal("all"))))
    flow = CountdownLatch((Group("near", 2), Group("far", 1)), fork(0, near, near, far, far, late))
    assert waited_s(flow) == pytest.approx({"near": 2.0, "far": 1.0, "farther": 3.0})


@pytest.mark.parametrize(
    ("flow", "expected_s"),
    [
        (seq(delay(1.0), visit("a", 2.0)), 3.0),
        (fork(1, delay(3.0), delay(1.0)), 1.0),
        (fork(2, delay(3.0), delay(1.0), delay(2.0)), 2.0),
        (fork(3, delay(3.0), delay(1.0), delay(2.0)), 3.0),
        (seq(delay(1.0), fork(0, delay(9.0))), 1.0),
        (fork(2, fork(1, delay(4.0), delay(2.0)), seq(delay(1.0), fork(2, delay(0.5), delay(2.0)))), 3.0),
        (Acquire("pool", seq(delay(1.0), delay(1.0))), 2.0),
        (Choice((0.25, 0.75), (delay(4.0), seq())), 1.0),
        (Route("random", (delay(1.0), delay(2.0))), 1.5),
    ],
)
def test_certain_flows_take_what_is_added_up_by_hand(flow: Step, expected_s: float) -> None:
    assert seconds(flow) == pytest.approx(expected_s, rel=1e-8)


def test_a_latch_waits_for_acknowledgements_through_a_forwarder() -> None:
    """Near: 1 and 2 s. Far: 5 s there; the forwarder works 1 s, its peer 1 s after a hop of 0.5; 5 s back each."""
    near = [seq(delay(work_s), Signal("all")) for work_s in (1.0, 2.0)]
    far = seq(delay(5.0), fork(0, *(seq(delay(hop_s + 1.0), delay(5.0), Signal("all")) for hop_s in (0.0, 0.5))))
    for needed, expected_s in [(1, 1.0), (2, 2.0), (3, 11.0), (4, 11.5)]:
        assert seconds(latch(needed, fork(0, *near, far))) == pytest.approx(expected_s, rel=1e-7)


def test_a_latch_needs_its_groups_and_the_end_of_its_step() -> None:
    ends = {"near": 1.0, "middle": 2.0, "far": 6.0}
    branches = fork(0, *(seq(delay(after_s), Signal(name)) for name, after_s in ends.items()))
    groups = tuple(Group(name, 1) for name in ends)
    assert seconds(CountdownLatch(groups, branches)) == pytest.approx(6.0, rel=1e-7)
    assert seconds(CountdownLatch(groups, branches, needed=2)) == pytest.approx(2.0, rel=1e-7)
    assert seconds(latch(1, seq(fork(0, seq(delay(1.0), Signal("all"))), delay(7.0)))) == pytest.approx(7.0, rel=1e-7)


def test_the_inner_latch_hides_the_outer_group_of_the_same_name() -> None:
    """The inner signal at 1 s fills the inner latch alone; the outer waits for its own, at 1 s + 4 s."""
    inner = latch(1, fork(0, seq(delay(1.0), Signal("all"))))
    assert seconds(latch(1, seq(inner, fork(0, seq(delay(4.0), Signal("all")))))) == pytest.approx(5.0, rel=1e-7)


def test_alternatives_mix_the_signals_in_their_order() -> None:
    either = Choice((0.5, 0.5), tuple(seq(delay(s), Signal("all")) for s in (2.0, 4.0)))
    assert seconds(latch(1, fork(0, either))) == pytest.approx(3.0, rel=1e-7)


def test_a_signal_may_come_with_a_probability() -> None:
    """The first of one signal and, every second time, another: (1/2 + 1) / 2 for exponential times of mean 1."""
    signal = seq(Delay(Exponential(1.0)), Signal("all"))
    sometimes = Choice((0.5, 0.5), (signal, seq()))
    assert seconds(latch(1, fork(0, signal, sometimes))) == pytest.approx(0.75, rel=1e-5)


def test_a_latch_that_some_requests_cannot_open_counts_the_others() -> None:
    """Every second request has two signals, and the last of two exponential times of mean 1 comes after 1.5."""
    signal = seq(Delay(Exponential(1.0)), Signal("all"))
    either = Choice((0.5, 0.5), (fork(0, signal, signal), fork(0, signal)))
    assert seconds(latch(2, either)) == pytest.approx(1.5, rel=1e-5)


def test_groups_complete_with_the_probability_of_their_signals() -> None:
    """One of two groups is needed; the second completes for a quarter of the requests."""
    sure_one, rare = (seq(Delay(Exponential(1.0)), Signal(group)) for group in ("sure", "rare"))
    inside = fork(0, sure_one, Choice((0.25, 0.75), (rare, seq())))
    step = CountdownLatch((Group("sure", 1), Group("rare", 1)), inside, needed=1)
    assert seconds(step) == pytest.approx(0.25 * 0.5 + 0.75 * 1.0, rel=1e-5)


def test_congestion_stretches_services_and_adds_waits_at_its_station_alone() -> None:
    flow = seq(visit("a", 2.0), visit("b", 3.0), delay(1.0))
    busy = Congestion(stretch=1.5, wait=RandomTime(0.0, 0.25, 0.5))
    assert seconds(flow, a=busy) == pytest.approx(2 * 1.5 + 0.25 + 3 + 1)
    assert response(flow, a=busy).variance == 0.5


def test_a_law_without_spread_is_all_floor() -> None:
    assert random_time(sure(2.0)) == RandomTime(2.0, 0.0, 0.0)
    assert random_time(Erlang(2.0, 4)) == RandomTime(0.0, 2.0, 1.0)


@pytest.mark.parametrize(
    "step", [Hedge(delay(1.0), 0.5, delay(1.0)), Batch(2, 1.0, delay(1.0))], ids=["hedge", "batch"]
)
def test_steps_that_the_solver_does_not_know_are_refused_by_name(step: Hedge | Batch) -> None:
    with pytest.raises(RefusedError, match=step.kind):
        seconds(step)
    with pytest.raises(RefusedError, match=step.kind):
        DemandReader().of(step)


def test_shapes_tell_apart_all_that_takes_another_time() -> None:
    shapes = Shapes({"a": 0, "b": 0, "c": 1})
    law: Distribution = Exponential(1.0)
    one = shapes.of(seq(Visit("a", law), Signal("x")))
    assert shapes.of(seq(Visit("b", Exponential(1.0)), Signal("x"))) == one
    others: list[Step] = [
        seq(Visit("c", law), Signal("x")),
        seq(Visit("a", Exponential(2.0)), Signal("x")),
        seq(Visit("a", Erlang(1.0, 1)), Signal("x")),
        seq(Visit("a", law), Signal("y")),
        seq(Signal("x"), Visit("a", law)),
        seq(Delay(law), Signal("x")),
        seq(Visit("a", Exponential(np.array([1.0, 2.0]))), Signal("x")),
    ]
    assert len({shapes.of(step) for step in others} | {one}) == len(others) + 1
    forks = [fork(1, Visit("a", law), delay(1.0)), fork(2, Visit("a", law), delay(1.0))]
    assert shapes.of(forks[0]) != shapes.of(forks[1])
    assert shapes.of(forks[0]) == shapes.of(fork(1, delay(1.0), Visit("b", law)))
