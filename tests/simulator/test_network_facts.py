"""Facts about flows, by the numbers of their steps in the order of `walk`."""

from tests.simulator.small_networks import hold, seq, visit, wait

from capplan.models.language.step import (
    Batch,
    Choice,
    CountdownLatch,
    FanOut,
    ForkJoin,
    Group,
    Hedge,
    If,
    Pick,
    ReplicaSet,
    Route,
    Signal,
    Step,
)
from capplan.simulator.specification.network_facts import StepEntry, flow_facts

OUTER, INNER = (Group("both", 1), Group("outer", 1)), (Group("both", 1),)


def down(step: Step, *stations: str) -> bool | None:
    entry = flow_facts(step).entries[0]
    return None if entry is None else entry.is_down(lambda name: name in stations)


def test_the_way_into_a_sequence_is_that_of_its_first_step_that_says_anything() -> None:
    flow = seq(wait(1), Signal("x"), seq(), hold(visit(1, "a")), visit(1, "b"))
    assert flow_facts(flow).entries[0] == StepEntry("a")
    assert (down(flow, "a"), down(flow, "b"), down(seq(wait(1)), "a")) == (True, False, None)
    assert down(CountdownLatch(INNER, visit(1, "a")), "a")
    assert down(Batch(2, 1, visit(1, "a")), "a")


def test_alternatives_are_down_when_all_are() -> None:
    a, b = visit(1, "a"), visit(1, "b")
    for flow in (Route("random", (a, b)), Choice((0.5, 0.5), (a, b)), Hedge(a, 1, b)):
        assert (down(flow, "a"), down(flow, "b"), down(flow, "a", "b")) == (False, False, True)
    assert down(Route("random", (a, wait(1))), "a") is False


def test_a_fork_is_down_when_fewer_branches_than_it_needs_are_not() -> None:
    branches = tuple(visit(1, name) for name in "abc")
    assert (down(ForkJoin(branches, 2), "a"), down(ForkJoin(branches, 2), "a", "c")) == (False, True)
    assert down(ForkJoin(branches, 0), "a", "b", "c") is False
    assert down(ForkJoin((*branches, wait(1)), 2), "a", "b") is False
    assert set(next(entry for entry in flow_facts(ForkJoin(branches, 2)).entries if entry).stations()) == {
        "a",
        "b",
        "c",
    }


def replica_set(step: Step, size: int = 3, among: str = "node") -> ReplicaSet:
    return ReplicaSet("row", among, size, step)


def test_a_fan_out_takes_as_many_numbers_as_if_it_were_written_out() -> None:
    """Set 0, sequence 1: fan-out 2 of three branches of (sequence 3, wait 4, wait 5), then wait 12 behind 3 x 3."""
    facts = flow_facts(replica_set(seq(FanOut("row", "one", seq(wait(1), wait(2)), 1), wait(3))))
    assert facts.ranks == (0, 1, 2, 3, 4, 5, 12)
    assert facts.strides == (0, 0, 3, 0, 0, 0, 0)


def test_only_branches_that_can_start_take_numbers() -> None:
    facts = flow_facts(replica_set(seq(FanOut("row", "one", wait(1), 1, contacted=2), wait(3))))
    assert (facts.ranks, facts.strides) == ((0, 1, 2, 3, 5), (0, 0, 1, 0, 0))


def test_fan_outs_inside_fan_outs_multiply() -> None:
    inner = FanOut("row", "other", wait(1), 1)
    facts = flow_facts(replica_set(seq(FanOut("row", "one", inner, 1), wait(2)), size=2))
    # A branch of the outer one has the inner one and its two branches.
    assert facts.strides == (0, 0, 3, 1, 0, 0)
    assert facts.ranks == (0, 1, 2, 3, 4, 9)


def test_the_sets_around_a_step_end_where_another_binding_hides_them() -> None:
    inside = seq(wait(1), Pick("row", "node", "random", wait(2)), Batch(2, 1, wait(3)))
    outer = replica_set(inside)
    facts = flow_facts(outer)
    assert [set(sets) for sets in facts.sets] == [set(), {"row"}, {"row"}, {"row"}, set(), {"row"}, set()]
    assert facts.sets[1]["row"] is outer


def all_down(step: Step, *stations: str) -> bool | None:
    entry = flow_facts(step, {"node": 2, "row": 3}).entries[0]
    return None if entry is None else entry.is_down(lambda name: name in stations)


def test_a_step_that_starts_at_a_member_is_down_when_all_members_are() -> None:
    a = visit(1, "a")
    for flow in (Pick("one", "node", "random", a), replica_set(a, 1), seq(wait(1), Pick("one", "node", "random", a))):
        assert (all_down(flow, "a", "node/1"), all_down(flow, "node/1", "node/2")) == (False, True)


def test_a_pick_from_a_set_or_pool_is_down_when_the_step_inside_is() -> None:
    from_pool = Pick("one", "threads", "random", visit(1, "a"))
    assert (all_down(from_pool, "a"), all_down(from_pool, "b")) == (True, False)
    of_set = ReplicaSet("row", "node", 1, Pick("one", "row", "random", visit(1, "a")))
    entry = flow_facts(of_set, {"node": 2, "row": 3}).entries[1]  # the set's name is that of a station, too
    assert entry == StepEntry("a")


def test_a_comparison_is_down_when_both_steps_are() -> None:
    flow = If("one", "other", visit(1, "a"), visit(1, "b"))
    assert (all_down(flow, "a"), all_down(flow, "a", "b")) == (False, True)
    assert all_down(If("one", "other", wait(1), visit(1, "b")), "b") is False
