"""Deterministic systems by hand: every request ends at exactly this tick. Requests start at 1 ms."""

import numpy as np
import pytest
from tests.simulator.small_networks import (
    COMPLETED,
    DROPPED,
    MS,
    TIMED_OUT,
    ends_ms,
    hold,
    ms,
    network,
    once,
    seq,
    statuses,
    visit,
    wait,
)

from capplan.models.language.station import Pool
from capplan.models.language.step import CountdownLatch, ForkJoin, Group, Route, Sequence, Signal
from capplan.models.language.traffic import RequestClass, Session
from capplan.simulator.reference.engine import simulate
from capplan.simulator.results.tally import Status


def test_fcfs_station_with_two_servers() -> None:
    run = once(visit(10), clients=5, servers=2)
    assert ends_ms(run) == [11, 11, 21, 21, 31]
    assert list(run.requests.start_ticks) == [MS] * 5
    assert list(run.requests.session) == [0, 1, 2, 3, 4]


def test_delays_do_not_queue_and_zero_takes_no_time() -> None:
    assert ends_ms(once(seq(wait(2), wait(0), seq(), wait(3)), clients=2)) == [6, 6]


def test_pool_is_handed_over_in_order_of_asking() -> None:
    run = once(hold(wait(2)), clients=3)
    assert ends_ms(run) == [3, 5, 7]


def test_full_pool_drops_and_counts() -> None:
    run = once(hold(wait(2)), clients=4, pool=Pool("pool", 1, queue_limit=1))
    assert ends_ms(run) == [3, 5, 1, 1]
    assert statuses(run) == [COMPLETED, COMPLETED, DROPPED, DROPPED]
    assert run.pools["pool"].drops == 2
    assert run.drop_rate() == 0.5


def test_pool_report_by_hand() -> None:
    run = simulate(network(hold(wait(2)), clients=3, pool=Pool("pool", 2), think_ms=1), 0.0035, seed=1)
    pool = run.pools["pool"]
    # Both units are busy from 1 to 3 ms, one of them until 3.5 and beyond (client 2 waited from 1 to 3).
    assert list(pool.busy_share * 3.5) == pytest.approx([1, 0.5, 2])
    assert pool.mean_busy == pytest.approx(4.5 / 3.5)
    assert pool.mean_queue == pytest.approx(2 / 3.5)
    assert (pool.taken, pool.drops) == (3, 0)
    assert pool.mean_wait_s == pytest.approx(0.002 / 3)
    assert pool.mean_hold_s == pytest.approx(0.002)
    assert [pool.busy_quantile(share) for share in (0.1, 0.4, 0.5, 1.0)] == [0, 1, 2, 2]


def test_unit_is_held_across_steps_and_nested_holds() -> None:
    assert ends_ms(once(hold(seq(wait(1), visit(2), wait(1))), clients=2)) == [5, 9]


def test_fork_join_goes_on_when_enough_have_finished() -> None:
    branches = (wait(1), wait(5), wait(2))
    for needed, end in ((0, 1), (1, 2), (2, 3), (3, 6)):
        assert ends_ms(once(ForkJoin(branches, needed))) == [end]


def test_late_branches_still_do_their_work() -> None:
    flow = ForkJoin((wait(1), seq(wait(2), visit(10))), 1)
    run = once(flow, clients=2)
    assert ends_ms(run) == [2, 2]
    assert ends_ms(once(seq(flow, wait(1.5), visit(1)), clients=1)) == [14]


def test_nested_fork_joins() -> None:
    inner = ForkJoin((wait(3), wait(4), wait(9)), 2)
    assert ends_ms(once(ForkJoin((seq(inner, wait(1)), wait(7), wait(6)), 2))) == [7]
    assert ends_ms(once(ForkJoin((seq(inner, wait(1)), wait(7), wait(6)), 3))) == [8]


def test_empty_branches_finish_at_once() -> None:
    assert ends_ms(once(seq(ForkJoin((seq(), wait(3)), 1), wait(1)))) == [2]
    assert ends_ms(once(seq(ForkJoin((), 0), wait(1)))) == [2]


def ack(delay_ms: float, group: str) -> Sequence:
    return seq(wait(delay_ms), Signal(group))


def each_quorum(needed: int | None) -> CountdownLatch:
    """The coordinator's own DC acknowledges after 1, 2, 3 ms; the remote one through a forwarder (4) after 5, 6, 9."""
    forwarder = seq(wait(4), ForkJoin((ack(1, "remote"), ack(2, "remote"), ack(5, "remote")), 0))
    local = tuple(ack(delay, "local") for delay in (1, 2, 3))
    return CountdownLatch((Group("local", 2), Group("remote", 2)), ForkJoin((*local, forwarder), 0), needed=needed)


def test_latch_is_signalled_through_a_forwarder() -> None:
    assert ends_ms(once(each_quorum(None))) == [7]  # the second remote one, 1 + 6
    assert ends_ms(once(each_quorum(1))) == [3]  # the second local one; later signals are ignored


def test_latch_waits_for_its_step_too() -> None:
    flow = CountdownLatch((Group("done", 1),), seq(Signal("done"), wait(3)))
    assert ends_ms(once(flow)) == [4]


def test_signal_goes_to_the_nearest_latch_with_its_group() -> None:
    both = ForkJoin((ack(1, "inner"), ack(2, "outer"), ack(3, "outer")), 0)
    inner = CountdownLatch((Group("inner", 1),), both)
    flow = CountdownLatch((Group("outer", 2),), seq(inner, wait(0.5)))
    assert ends_ms(once(flow)) == [4]
    hidden = CountdownLatch((Group("same", 1),), ForkJoin((ack(1, "same"),), 0))
    assert ends_ms(once(CountdownLatch((Group("same", 1),), ForkJoin((hidden, ack(5, "same")), 0)))) == [6]


def test_each_request_has_a_latch_of_its_own() -> None:
    flow = CountdownLatch(
        (Group("done", 2),), ForkJoin((seq(visit(1), Signal("done")), seq(visit(1), Signal("done"))), 0)
    )
    assert ends_ms(once(flow, clients=2)) == [3, 5]


def test_dropped_branch_is_not_waited_for_when_others_suffice() -> None:
    # The third branch finds the pool full at 1 ms.
    branches = (hold(wait(2)), wait(3), hold(wait(1)))
    full = Pool("pool", 1, queue_limit=0)
    enough = once(ForkJoin(branches, 2), pool=full)
    assert ends_ms(enough) == [4]
    assert enough.pools["pool"].drops == 1
    too_few = once(ForkJoin(branches, 3), pool=full)
    assert (ends_ms(too_few), statuses(too_few)) == ([1], [DROPPED])


def test_drop_gives_back_what_is_held_around_it() -> None:
    # The outer unit (pool) is given back at 3 ms, when the branch that waited 2 ms finds the tight pool full.
    tight = Pool("pool", 1, queue_limit=0)
    flow = ForkJoin((wait(9), seq(wait(2), hold(wait(5)))), 2)
    run = once(ForkJoin((seq(hold(wait(4))), flow), 2), pool=tight)
    assert (ends_ms(run), statuses(run)) == ([3], [DROPPED])


def test_join_that_fails_later_fails_its_hold() -> None:
    # Two clients queue for the outer pool of one; each fork needs both branches, and the second visits after the drop.
    inner = ForkJoin((wait(3), seq(wait(1), hold(seq(), "pool"))), 2)
    run = once(hold(inner), clients=2, pool=Pool("pool", 1, queue_limit=1))
    # Client 0 holds the unit; its own branch asks again at 2 ms while client 1 waits: the queue is full, it is dropped.
    # The unit goes to client 1 at 2 ms, whose branch asks at 3 ms, waits (the queue is empty), and blocks for ever.
    assert ends_ms(run) == [2, -1 / MS]
    assert statuses(run) == [DROPPED, Status.UNFINISHED]


def test_latch_that_can_no_longer_open_drops_the_request() -> None:
    signals = ForkJoin((seq(hold(wait(2)), Signal("ok")), seq(hold(wait(1)), Signal("ok"))), 0)
    run = once(CountdownLatch((Group("ok", 2),), signals), pool=Pool("pool", 1, queue_limit=0))
    assert (ends_ms(run), statuses(run)) == ([3], [DROPPED])  # known when the last branch has ended
    at_once = once(CountdownLatch((Group("ok", 1),), ForkJoin((hold(hold(Signal("ok"))),), 0)), pool=Pool("pool", 1, 0))
    assert (ends_ms(at_once), statuses(at_once)) == ([1], [DROPPED])


def test_client_gives_up_and_the_work_goes_on() -> None:
    run = once(hold(visit(10)), clients=2, timeout_ms=5)
    assert (ends_ms(run), statuses(run)) == ([6, 6], [TIMED_OUT, TIMED_OUT])
    # The first client comes back at 7 ms while the server still works off what it asked for at 1 ms (until 21 ms).
    later = simulate(network(visit(10), clients=2, timeout_ms=14, think_ms=1), 0.013, seed=1)
    assert ends_ms(later) == [11, 15, 26]
    assert statuses(later) == [COMPLETED, TIMED_OUT, TIMED_OUT]


def test_unit_is_held_until_the_abandoned_work_is_done() -> None:
    run = simulate(network(hold(wait(10)), timeout_ms=5, think_ms=1), 0.008, seed=1)
    assert ends_ms(run) == [6, 12]  # the second asks at 7 ms, has the unit at 11 and gives up at 12
    assert run.pools["pool"].mean_wait_s == 0.0  # in the window only the first was handed a unit


def test_a_request_that_ends_exactly_at_its_timeout_has_completed() -> None:
    assert statuses(once(wait(5), timeout_ms=5)) == [COMPLETED]


def session(route: str = "independent") -> Session:
    return Session("talk", ("ask", "ask", "more"), (ms(10), ms(20)), route=route)  # type: ignore[arg-type]  # a text from the parameters


def test_session_waits_for_each_answer() -> None:
    more = (RequestClass("more", wait(3)),)
    run = simulate(network(wait(2), session=session(), more=more, think_ms=1), 0.040, seed=1)
    starts = [start / MS for start in run.requests.start_ticks]
    assert starts == [1, 1 + 2 + 10, 15 + 20, 38 + 1]
    assert list(run.requests.position) == [0, 1, 2, 3]
    assert list(run.requests.request_class) == [0, 0, 1, 0]


def test_drop_ends_the_session() -> None:
    more = (RequestClass("more", wait(3)),)
    full = Pool("pool", 1, queue_limit=0)
    run = simulate(network(hold(wait(2)), clients=2, session=session(), more=more, pool=full), 0.0135, seed=1)
    # Client 1 is dropped at 1 ms, thinks and starts again at 2 ms (dropped) and at 3 ms, when the unit is free.
    assert statuses(run)[:4] == [COMPLETED, DROPPED, DROPPED, COMPLETED]
    assert [start / MS for start in run.requests.start_ticks] == [1, 1, 2, 3, 13]


def test_round_robin_counts_the_requests_that_pass() -> None:
    targets = (wait(1), wait(2), wait(3))
    assert ends_ms(once(Route("round_robin", targets), clients=5)) == [2, 3, 4, 2, 3]


def test_least_loaded_takes_the_first_of_the_emptiest() -> None:
    targets = (wait(10), wait(20), wait(30))
    assert ends_ms(once(Route("least_loaded", targets), clients=4)) == [11, 21, 31, 11]


def test_latency_ranked_tries_all_then_prefers_the_fastest() -> None:
    targets = (wait(3), wait(2), wait(4))
    run = simulate(network(Route("latency_ranked", targets), think_ms=1), 0.020, seed=1)
    took = (run.requests.end_ticks - run.requests.start_ticks) / MS
    assert list(took[:5]) == [3, 2, 4, 2, 2]


def test_sticky_session_follows_the_first_route() -> None:
    flow = Route("round_robin", (wait(1), wait(2)), name="dc")
    more = (RequestClass("more", flow),)
    for route, expected in (("sticky", [1, 1, 1, 2, 2, 2]), ("independent", [1, 2, 1, 1, 2, 2])):
        run = simulate(network(flow, session=session(route), more=more, think_ms=1), 0.071, seed=1)
        took = (run.requests.end_ticks - run.requests.start_ticks) / MS
        assert list(took) == expected


def test_token_aware_depends_on_the_session_alone() -> None:
    flow = Route("token_aware", tuple(wait(delay) for delay in (1, 2, 3)))
    run = simulate(network(flow, clients=20, session=session(), more=(RequestClass("more", flow),)), 0.060, seed=1)
    took = (run.requests.end_ticks - run.requests.start_ticks) / MS
    first_round = run.requests.position < 3
    chosen = {unit: set(took[first_round & (run.requests.session == unit)]) for unit in range(20)}
    assert all(len(times) == 1 for times in chosen.values())
    assert set.union(*chosen.values()) == {1, 2, 3}


def test_ties_go_by_request_not_by_creation() -> None:
    # Both delays end at 4 ms; that of request 1 was created first. Request 0 is served first all the same.
    flow = seq(Route("round_robin", (seq(wait(1), wait(2)), wait(3))), visit(5))
    assert ends_ms(once(flow, clients=2)) == [9, 14]


def test_ties_within_a_request_go_by_step() -> None:
    flow = ForkJoin((seq(wait(1), wait(2), visit(5)), seq(wait(3), visit(7))), 1)
    assert ends_ms(once(flow)) == [9]


def test_what_ends_comes_before_what_starts() -> None:
    # The unit taken at 1 ms is given back at 2 ms, at which tick the client asks again.
    flow = ForkJoin((hold(wait(1)),), 0)
    run = simulate(network(flow, think_ms=1, pool=Pool("pool", 1, queue_limit=0)), 0.010, seed=1)
    assert run.pools["pool"].drops == 0
    assert run.pools["pool"].taken == 9


def test_a_waiting_visit_comes_before_one_that_returns() -> None:
    assert ends_ms(once(seq(visit(2), visit(3)), clients=2)) == [8, 11]


def test_warm_up_is_left_out() -> None:
    run = simulate(network(wait(2), think_ms=1), 0.010, seed=1, warmup_s=0.004)
    assert [start / MS for start in run.requests.start_ticks] == [1, 4, 7]
    assert list(run.measured()) == [False, True, True]
    assert run.latencies_s().size == 2
    assert run.throughput_per_s() == pytest.approx(2 / 0.006)  # ends at 6 and 9 ms
    little = run.little()
    assert little.number == pytest.approx(4 / 6)
    assert little.rate_per_s * little.response_s == pytest.approx(4 / 6)


def test_latency_summaries() -> None:
    run = once(visit(10), clients=4, servers=1)
    assert run.latency_mean_s() == pytest.approx(0.025)
    assert [run.latency_quantile_s(p) for p in (0.25, 0.5, 0.51, 1.0)] == pytest.approx([0.01, 0.02, 0.03, 0.04])
    assert np.isnan(once(hold(hold(seq())), pool=Pool("pool", 1, 0)).latency_mean_s())
