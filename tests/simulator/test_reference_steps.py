"""Hedges, batches, countdown latches and retries, worked out by hand."""

import numpy as np
import pytest
from tests.simulator.agreement import exp
from tests.simulator.small_networks import (
    COMPLETED,
    DROPPED,
    TIMED_OUT,
    Timed,
    arrivals,
    arriving,
    ends_ms,
    hold,
    ms,
    once,
    seq,
    starts_ms,
    statuses,
    timeline,
    visit,
    wait,
)

from capplan.models.language.network import Network
from capplan.models.language.station import Pool, Station
from capplan.models.language.step import Batch, CountdownLatch, Delay, ForkJoin, Group, Hedge, Signal, Step
from capplan.models.language.traffic import Closed, Open, RequestClass, Retry, Session, Trace
from capplan.simulator.reference.engine import simulate
from capplan.simulator.specification.sampling import tick_sampler
from capplan.simulator.specification.streams import name_key, request_key, root_key, source_key, uniform

FULL = Pool("pool", 1, queue_limit=0)


def hedge(step: Step, after_ms: float, spare: Step) -> Hedge:
    return Hedge(step, after_ms / 1000, spare)


def test_a_spare_that_is_not_needed_does_not_start() -> None:
    run = once(hedge(wait(2), 3, visit(1)))
    assert ends_ms(run) == [3]
    assert run.stations["server"].visits == 0
    assert once(hedge(seq(), 0, visit(1))).events == 1  # the first step is done at once: the start is all that happens


def test_the_faster_of_both_counts_and_the_slower_does_its_work() -> None:
    assert ends_ms(once(hedge(wait(10), 2, wait(3)))) == [6]
    assert ends_ms(once(hedge(wait(4), 2, wait(3)))) == [5]
    assert ends_ms(once(hedge(wait(5), 0, wait(3)))) == [4]
    run = once(seq(hedge(seq(wait(4), visit(8)), 1, wait(1)), wait(5), visit(2)))
    assert ends_ms(run) == [15]  # the slower one has the server from 5 to 13 ms


def test_of_two_delays_at_one_tick_the_hedge_comes_first() -> None:
    # Its own step number is lower than that of the step inside; a service comes before any delay.
    assert once(hedge(wait(3), 3, visit(1))).stations["server"].visits == 0  # after the window
    late = arriving([(1, hedge(wait(3), 3, visit(1)))])
    assert (ends_ms(late), late.stations["server"].visits) == ([4], 1)
    served = arriving([(1, hedge(visit(3), 3, visit(1, "spare")))], Station("server", 1), Station("spare", 1))
    assert (ends_ms(served), served.stations["spare"].visits) == ([4], 0)


def test_when_the_first_is_dropped_the_spare_still_comes_at_its_time() -> None:
    full = hold(hold(wait(1)))  # finds its own unit taken
    dropped = once(hedge(full, 3, wait(2)), pool=FULL)
    assert (ends_ms(dropped), statuses(dropped)) == ([6], [COMPLETED])
    at_once = once(hedge(full, 0, wait(2)), pool=FULL)
    assert (ends_ms(at_once), statuses(at_once)) == ([3], [COMPLETED])
    both = once(hedge(full, 3, full), pool=FULL)
    assert (ends_ms(both), statuses(both)) == ([4], [DROPPED])
    both_at_once = once(hedge(full, 0, full), pool=FULL)
    assert (ends_ms(both_at_once), statuses(both_at_once)) == ([1], [DROPPED])


def test_a_latch_waits_for_a_spare_until_its_time() -> None:
    ok = Signal("ok")
    flow = CountdownLatch((Group("ok", 2),), hedge(seq(wait(2), ok), 5, seq(wait(1), ok)))
    assert (ends_ms(once(flow)), statuses(once(flow))) == ([6], [DROPPED])  # the spare is not needed at 6 ms
    slow = CountdownLatch((Group("ok", 2),), hedge(seq(wait(7), ok), 5, seq(wait(1), ok)))
    assert (ends_ms(once(slow)), statuses(once(slow))) == ([8], [COMPLETED])


def test_a_latch_does_not_wait_for_branches_without_a_signal() -> None:
    ok = Signal("ok")
    lost = seq(hold(hold(wait(1))), ok)
    flow = CountdownLatch((Group("ok", 2),), ForkJoin((seq(wait(2), ok), lost, wait(50)), 0))
    run = once(flow, pool=FULL)
    assert (ends_ms(run), statuses(run)) == ([3], [DROPPED])


def test_a_latch_waits_for_branches_inside_branches() -> None:
    ok = Signal("ok")
    inner = ForkJoin((seq(wait(5), ok),), 0)
    flow = CountdownLatch((Group("ok", 2),), ForkJoin((seq(wait(1), inner), seq(wait(2), ok)), 0))
    assert ends_ms(once(flow)) == [7]


def test_a_latch_is_dropped_with_its_own_step() -> None:
    flow = CountdownLatch((Group("ok", 1),), seq(ForkJoin((seq(wait(5), Signal("ok")),), 0), hold(hold(wait(1)))))
    run = once(flow, pool=FULL)
    assert (ends_ms(run), statuses(run)) == ([1], [DROPPED])


def batch(size: int, longest_ms: float, step: Step) -> Batch:
    return Batch(size, longest_ms / 1000, step)


def gathering(flow: Step, *times_ms: float) -> list[float]:
    """Return when requests end that arrive at these times and all do `flow`."""
    made = Network(
        "batch",
        (Station("server", 9, "ps"), Station("disk", 1)),
        (RequestClass("ask", flow),),
        arrivals(times_ms),
        pools=(FULL,),
    )
    return ends_ms(simulate(made, 1.0, seed=1))


def test_a_full_batch_starts_at_once_and_others_when_the_first_has_waited() -> None:
    # The first batch is full at 2 ms. Its longest wait, 6 ms, does not affect the next batch.
    assert gathering(batch(2, 5, wait(3)), 1, 2, 4) == [5, 5, 4 + 5 + 3]
    assert gathering(batch(3, 5, wait(3)), 1, 5, 7) == [9, 9, 7 + 5 + 3]


def test_who_comes_when_the_first_has_waited_is_too_late() -> None:
    # At 6 ms the batch starts, then the third request does.
    assert gathering(batch(3, 5, wait(3)), 1, 2, 6) == [9, 9, 14]


def test_a_batch_of_one_waits_for_nobody() -> None:
    assert gathering(batch(1, 5, wait(3)), 1, 2) == [4, 5]


def test_without_waiting_those_gather_who_are_served_together() -> None:
    flow = seq(visit(2), batch(5, 0, visit(3, "disk")))
    assert gathering(flow, 1, 1, 1) == [6, 6, 6]  # one visit to the disk for three
    assert gathering(batch(5, 0, visit(3, "disk")), 1, 1, 1) == [4, 7, 10]  # each starts before the next one comes


def test_the_step_of_a_batch_may_take_no_time() -> None:
    assert gathering(seq(batch(2, 5, seq()), wait(1)), 1, 2, 3) == [3, 3, 9]


def test_members_go_on_in_the_order_of_their_numbers() -> None:
    # The one that fills the batch is number 1; it queues for the disk after number 0.
    assert gathering(seq(batch(2, 5, wait(1)), visit(2, "disk")), 1, 2) == [5, 7]


def test_a_batch_that_is_dropped_drops_all_its_members() -> None:
    made = batch(2, 5, hold(hold(wait(1))))
    run = arriving([(1, made)])
    assert (ends_ms(run), statuses(run)) == ([6], [DROPPED])
    request = RequestClass("ask", made)
    run = simulate(Network("batch", (), (request,), arrivals([1, 2]), pools=(FULL,)), 1.0, seed=1)
    assert (ends_ms(run), statuses(run)) == ([2, 2], [DROPPED, DROPPED])


def test_a_client_that_has_given_up_stays_a_member() -> None:
    request = RequestClass("ask", batch(2, 50, wait(3)), timeout_s=0.005)
    run = simulate(Network("batch", (), (request,), arrivals([1, 10])), 1.0, seed=1)
    assert (ends_ms(run), statuses(run)) == ([6, 13], [TIMED_OUT, COMPLETED])


def test_each_class_gathers_apart() -> None:
    shared = batch(2, 5, wait(3))
    classes = (RequestClass("one", shared), RequestClass("two", shared))
    talk = Session("talk", ("one", "two"), (ms(1),))
    traffic = Open(2 * 2 / 0.002, {"talk": 1.0}, Trace((0.001, 0.002)))
    run = simulate(Network("apart", (), classes, traffic, sessions=(talk,)), 1.0, seed=1)
    assert ends_ms(run) == [5, 5, 9, 9]


def test_a_batch_is_done_with_the_draws_of_its_first_request() -> None:
    flow = batch(2, 5, Delay(exp(0.001), name="work"))
    run = simulate(Network("draws", (), (RequestClass("ask", flow),), arrivals([1, 2])), 1.0, seed=3)
    key = request_key(source_key(root_key(3, 0), "source", "ask"), 0, 0)
    took = tick_sampler(exp(0.001))(uniform(key, name_key("step", "/work")))
    assert list(run.requests.end_ticks) == [2_000_000 + took] * 2


def test_a_batch_inside_a_latch_is_outside_of_it() -> None:
    flow = CountdownLatch((Group("ok", 1),), seq(batch(2, 5, wait(3)), ForkJoin((seq(wait(1), Signal("ok")),), 0)))
    assert gathering(flow, 1, 2) == [6, 6]


TRY_AGAIN = Retry(3, 0.002, 2.0)


def test_a_dropped_request_is_tried_again() -> None:
    # Request 1 is dropped at 1 and 3 ms; its third attempt, at 3 + 4 ms, finds the unit free.
    run = arriving([(1, hold(wait(5)))] * 2, retry=TRY_AGAIN)
    assert (starts_ms(run), ends_ms(run)) == ([1, 1], [6, 12])
    assert statuses(run) == [COMPLETED, COMPLETED]
    assert list(run.requests.attempts) == [1, 3]
    assert run.latency_mean_s() == pytest.approx((5 + 11) / 2 / 1000)


def test_the_last_attempt_decides() -> None:
    run = arriving([(1, hold(wait(50)))] * 2, retry=TRY_AGAIN)
    assert (ends_ms(run), statuses(run)) == ([51, 7], [COMPLETED, DROPPED])
    assert list(run.requests.attempts) == [1, 3]


def test_each_attempt_has_a_timeout_of_its_own_and_the_abandoned_ones_go_on() -> None:
    # Tried from 1 to 5 and from 6 to 10 ms; the server works from 1 to 21 ms, and the response at 11 is late.
    run = arriving([(1, visit(10))], timeout_ms=4, retry=Retry(2, 0.001))
    assert (ends_ms(run), statuses(run)) == ([10], [TIMED_OUT])
    assert run.stations["server"].utilisation == pytest.approx(20 / 1000)
    late = arriving([(1, visit(10))], timeout_ms=14, retry=Retry(2, 0.001), until_ms=2)
    assert (ends_ms(late), statuses(late)) == ([11], [COMPLETED])


def test_an_answer_to_an_abandoned_attempt_is_not_heard() -> None:
    # Tried from 1 to 6.5, 7 to 12.5 and 13 to 18.5; served from 1 to 7, 7 to 13 and 13 to 19, each half a ms too late.
    run = arriving([(1, visit(6))], timeout_ms=5.5, retry=Retry(3, 0.0005))
    assert (ends_ms(run), statuses(run), list(run.requests.attempts)) == ([18.5], [TIMED_OUT], [3])


def test_nothing_is_tried_again_after_the_end_of_the_traffic() -> None:
    run = arriving([(1, hold(wait(5)))] * 2, retry=TRY_AGAIN, until_ms=7)
    assert (ends_ms(run), statuses(run)) == ([6, 3], [COMPLETED, DROPPED])
    assert list(run.requests.attempts) == [1, 2]


def test_a_session_goes_on_after_a_retry_with_the_gap_of_the_first_attempt() -> None:
    classes = (RequestClass("ask", visit(1), retry=Retry(2, 0.004)), RequestClass("more", wait(1)))
    talk = Session("talk", ("ask", "more"), (exp(0.001),))
    changes = timeline((0.5, "down", "server"), (3, "up", "server"), detection=0)
    traffic = Closed(1, ms(1), {"talk": 1.0})
    made = Network("talk", (Station("server", 1),), classes, traffic, sessions=(talk,), timeline=changes)
    rows = simulate(made, 0.030, seed=1, max_requests=2).requests
    assert list(rows.attempts) == [2, 1]
    key = request_key(source_key(root_key(1, 0), "source", "talk"), 0, 0)
    gap = tick_sampler(exp(0.001))(uniform(key, name_key("gap")))
    assert list(rows.start_ticks) == [1_000_000, 6_000_000 + gap]


def test_attempts_draw_anew() -> None:
    request = RequestClass("ask", Delay(exp(0.003), name="work"), timeout_s=0.001, retry=Retry(4, 0.0))
    run = simulate(Network("anew", (), (request,), arrivals([1])), 1.0, seed=5)
    source, draw = source_key(root_key(5, 0), "source", "ask"), name_key("step", "/work")
    took = [tick_sampler(exp(0.003))(uniform(request_key(source, 0, 0, attempt), draw)) for attempt in range(4)]
    first = next((number for number, ticks in enumerate(took) if ticks <= 1_000_000), None)
    assert first is not None
    assert first > 0
    assert list(run.requests.end_ticks) == [1_000_000 * (1 + first) + took[first]]
    assert list(run.requests.attempts) == [first + 1]


def test_the_number_of_requests_can_be_limited() -> None:
    flows: list[Timed] = [(1, hold(wait(5)))] * 5
    made = Network("few", (), (RequestClass("ask", flows[0][1], retry=TRY_AGAIN),), arrivals([1] * 5), pools=(FULL,))
    run = simulate(made, 1.0, seed=1, max_requests=3)
    assert list(run.requests.attempts) == [1, 3, 3]  # further attempts are no further requests
    closed = Network("few", (), (RequestClass("ask", wait(1)),), Closed(2, ms(1), {"ask": 1.0}))
    assert starts_ms(simulate(closed, 1.0, seed=1, max_requests=5)) == [1, 1, 3, 3, 5]
    assert np.array_equal(simulate(closed, 0.0055, seed=1).requests.end_ticks[:5], [2e6, 2e6, 4e6, 4e6, 6e6])
