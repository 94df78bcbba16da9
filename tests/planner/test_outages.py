"""`outages`: what is lost, what happens around a loss, and that the answer holds what it promises."""

import json
from dataclasses import replace
from typing import Any

import jsonschema
import numpy as np
import pytest

from capplan.errors import CrowdedError, InputError
from capplan.layout.case import Case
from capplan.layout.situations import Losses, Remainder, losses_of
from capplan.layout.system import System
from capplan.models.language.distribution import Exponential
from capplan.models.language.network import Network
from capplan.models.language.scenario import changed
from capplan.models.language.station import Station
from capplan.models.language.step import Acquire, Hedge, Pick, Visit, walk
from capplan.models.language.traffic import Open, RequestClass, Retry
from capplan.planner.outages.outages import OutagesQuestion, levels_left, outages_of_network, outages_of_scenario
from capplan.planner.outages.outages_answer import OutagesAnswer
from capplan.planner.outages.places import (
    PATIENT,
    RADIUS,
    ClientOptions,
    Clients,
    Return,
    clients_of,
    places_of_loss,
    with_clients,
    with_loss,
    with_workers_that_give_up,
)
from capplan.planner.outages.transient import Effort, SimulatedLoss, Times, transient
from capplan.simulator.compiled import engine
from capplan.simulator.engine import simulate
from capplan.systems.registry import resolve, scenario

RATE = 200.0


def pair(servers: int = 2) -> Network:
    """Return servers that take turns, with clients that wait for a second and do not try again."""
    flow = Pick("one", "server", "round_robin", Visit("server", Exponential(1e-3), member="one"))
    return Network(
        name="pair",
        stations=(Station("server", 4, count=servers),),
        classes=(RequestClass("request", flow, 1.0),),
        traffic=Open(RATE, {"request": 1.0}),
    )


def test_half_of_the_requests_are_lost_until_somebody_notices() -> None:
    """Two servers in turn, one silent for 10 of 30 s: the shares and times are exact up to the noise of arrivals.

    Over 50 s of Poisson arrivals at 100/s lost, the standard deviation is 1.4/s: four of them fail once in 16,000.
    """
    loss = SimulatedLoss("a server", ("server/2",), Return(10.0))
    found = transient(pair(), loss, Times(20.0, 30.0, 30.0), Effort(20.0, 1, 5), 0.1)
    phases = {each.name: each for each in found.phases}
    assert phases["undetected"].unanswered_per_s == pytest.approx(RATE / 2, abs=10)
    assert phases["before"].unanswered_per_s == phases["after"].unanswered_per_s == 0
    assert phases["detected"].unanswered_per_s == pytest.approx(RATE / 2 / 20, abs=2)  # those of the last second before
    assert found.back_after_loss_s.value == pytest.approx(10.0, abs=1.0)
    assert found.recovers


def test_one_server_alone_is_back_after_its_return_only_and_answers_what_waited() -> None:
    loss = SimulatedLoss("the server", ("server/1",), Return(5.0))
    found = transient(pair(1), loss, Times(20.0, 20.0, 20.0), Effort(20.0, 1, 3), 0.1)
    assert found.back_after_loss_s.value == pytest.approx(20.0, abs=2.0)
    assert found.back_after_return_s.value == pytest.approx(0.0, abs=2.0)
    assert found.unanswered_share == pytest.approx(0.5, abs=0.05)


def test_where_nothing_is_answered_before_the_loss_there_is_nothing_to_come_back_to() -> None:
    never = replace(pair(), traffic=Open(20_000.0, {"request": 1.0}))  # of 2,000: the first second fills the queue
    never = with_clients(never, ClientOptions(timeout_s=0.1, attempts=1), RADIUS)
    loss = SimulatedLoss("a server", ("server/1",), Return(5.0))
    found = transient(never, loss, Times(15.0, 10.0, 10.0), Effort(60.0, 1, 1), 0.1)
    assert found.phases[0].p99_ms is None
    assert (found.back_after_loss_s.value, found.recovers) == (None, False)
    assert found.unanswered_share == 1.0


def test_a_loss_that_is_far_too_long_to_simulate_is_refused_with_the_budget_that_it_needs() -> None:
    busy = replace(pair(), traffic=Open(5e5, {"request": 1.0}))
    loss = SimulatedLoss("a server", ("server/1",), Return(5.0))
    with pytest.raises(InputError, match="add --budget"):
        transient(busy, loss, Times(60.0, 400.0, 400.0), Effort(10.0, 1, 1), 0.1)


def test_a_load_that_fills_the_memory_is_answered_without_a_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_BYTES", 1 << 20)
    flooded = replace(pair(1), traffic=Open(20_000.0, {"request": 1.0}))
    answer = outages_of_network(flooded, OutagesQuestion(times=Times(15.0, 10.0, 10.0)), "n.toml")
    assert (answer.transients, answer.recovers) == ((), False)
    assert "lower the load" in answer.not_simulated
    with pytest.raises(CrowdedError):
        outages_of_network(flooded, OutagesQuestion(times=Times(15.0, 10.0, 10.0), triggers_s=(1.0,)), "n.toml")


def test_a_cold_start_delays_the_recovery() -> None:
    slow = replace(pair(1), stations=(Station("server", 1, count=1),), traffic=Open(500.0, {"request": 1.0}))
    slow = with_clients(slow, ClientOptions(timeout_s=10.0, attempts=1), RADIUS)
    times = Times(50.0, 1.0, 60.0)
    warm, cold = (
        transient(slow, SimulatedLoss("it", ("server/1",), Return(0.0, seconds, speed)), times, Effort(20.0, 1, 4), 0.1)
        for seconds, speed in ((0.0, 1.0), (20.0, 0.4))
    )
    assert warm.back_after_return_s.value is not None
    assert cold.back_after_return_s.value is not None
    assert cold.back_after_return_s.value > warm.back_after_return_s.value + 10


def test_results_do_not_depend_on_the_number_of_processes() -> None:
    loss = SimulatedLoss("a server", ("server/2",), Return(3.0))
    one, two = (
        transient(pair(), loss, Times(15.0, 10.0, 15.0), Effort(20.0, 1, 3), 0.1, processes) for processes in (1, 2)
    )
    assert one == two


def test_a_budget_that_does_not_pay_shortens_the_times_and_says_so() -> None:
    loss = SimulatedLoss("a server", ("server/2",), Return(3.0))
    found = transient(pair(), loss, Times(200.0, 300.0, 300.0), Effort(0.05, 1), 0.1)
    assert found.duration_s < 800
    assert found.returned_s - found.lost_s >= 13  # enough to be noticed, and to be seen
    assert "--budget" in found.shortened
    assert found.replications == 3


@pytest.mark.parametrize("times", [Times(1.0, 10.0, 20.0), Times(20.0, 0.0, 20.0), Times(20.0, 10.0, 1.0)])
def test_times_that_show_nothing_are_refused(times: Times) -> None:
    with pytest.raises(InputError):
        times.check()


def openprovider(**fields: Any) -> Any:
    return resolve(changed(scenario("openprovider"), **{"dcs": 3, "cass_nodes": 6, **fields})).at(1000.0)


def left_of(left: Remainder, its: System[Any], case: Case[Any]) -> Network:
    """Return the network after a loss."""
    assert left.solved is not None
    return left.solved(its.median_values(case.fitted, case.scenario), None).network


@pytest.mark.parametrize(
    ("lost", "expected"),
    [
        ("node", {f"{kind}/dc{dc}/1" for kind in ("cassandra", "cassandra-storage") for dc in (1, 2, 3)}),
        ("dc2", {"cassandra/dc2", "cassandra-storage/dc2", "front/dc2"}),
        ("dc", {"cassandra/dc3", "cassandra-storage/dc3", "front/dc3"}),
        ("front", {f"front/dc{dc}/2" for dc in (1, 2, 3)}),
    ],
)
def test_a_loss_takes_the_stations_of_its_machines(lost: str, expected: set[str]) -> None:
    case = openprovider(front_nodes=2)
    its, layout = case.system, case.scenario
    network = its.network(layout, its.median_values(case.fitted, layout), 1000.0)
    (left, *_) = its.component(Losses).remainders(case, losses_of((lost,), its.component(Losses).kinds, 3))
    assert {*places_of_loss(network, left_of(left, its, case))} == expected


@pytest.mark.parametrize(
    ("name", "fields", "expected"),
    [
        ("fedora4", {"nodes": 4}, ("repository/4",)),
        ("rhino-shcm", {"cass_nodes": 3}, ("cassandra/3",)),
        ("arion", {"servers": 3, "clients": 100}, ("master/of-33/2",)),
    ],
)
def test_every_system_loses_one_machine(name: str, fields: dict[str, Any], expected: tuple[str, ...]) -> None:
    case = resolve(changed(scenario(name), **fields)).at(100.0)
    its = case.system
    network = its.network(case.scenario, its.median_values(case.fitted, case.scenario), 100.0)
    (left,) = its.component(Losses).remainders(case, ())
    assert places_of_loss(network, left_of(left, its, case)) == expected


def test_all_stations_are_lost_where_nothing_can_serve() -> None:
    assert places_of_loss(pair(), None) == ("server",)


def test_workers_give_up_what_they_ask_a_lost_node_and_nothing_else() -> None:
    case = openprovider()
    its, layout = case.system, case.scenario
    network = with_clients(its.network(layout, its.median_values(case.fitted, layout), 1.0), ClientOptions(), RADIUS)
    patient = [step for each in network.classes for step in walk(each.flow) if isinstance(step, Hedge)]
    assert not patient
    changed_one = with_workers_that_give_up(network, ("cassandra/dc1/6",))
    hedges = [step for each in changed_one.classes for step in walk(each.flow) if isinstance(step, Hedge)]
    # A read, a write, and both of an update; other data centres only write there. The workers of the RADIUS server wait
    # for each, and so do those of its coordinator.
    assert len(hedges) == 2 * (4 + 2 + 2)
    assert {step.after_s for step in hedges} == {RADIUS.timeout_s}
    fronts = with_workers_that_give_up(network, ("front/dc1/1",))
    assert fronts == network  # its clients wait, but no worker does
    assert all(isinstance(step, Acquire | Pick) or not isinstance(step, Hedge) for step in walk(fronts.classes[0].flow))


def test_survivors_serve_again_as_soon_as_a_silent_node_is_noticed() -> None:
    """No worker waits for the node until it is back, though many did before it was noticed."""
    case = openprovider(cass_nodes=3, front_workers=64)
    its, layout = case.system, case.scenario
    network = with_clients(its.network(layout, its.median_values(case.fitted, layout), 600.0), ClientOptions(), RADIUS)
    (left, *_) = its.component(Losses).remainders(case, losses_of(("node",), its.component(Losses).kinds, 3))
    lost = SimulatedLoss(left.name, places_of_loss(network, left_of(left, its, case)), Return(5.0))
    times = Times(15.0, 40.0, 12.0)
    patient, giving_up = (
        transient(each, lost, times, Effort(20.0, 1, 2), 0.2)
        for each in (network, with_workers_that_give_up(network, lost.places))
    )
    assert giving_up.back_after_loss_s.ended == 2
    assert giving_up.back_after_loss_s.value is not None
    assert giving_up.back_after_loss_s.half_width is not None
    assert giving_up.back_after_loss_s.value + giving_up.back_after_loss_s.half_width >= 5.0
    assert giving_up.back_after_loss_s.value < 25.0
    assert patient.phases[2].name == giving_up.phases[2].name == "detected"
    assert patient.phases[2].completed_per_s < 0.1 * giving_up.phases[2].completed_per_s


def test_both_engines_agree_on_a_loss_with_workers_that_give_up() -> None:
    case = openprovider(cass_nodes=3, front_workers=8)
    its, layout = case.system, case.scenario
    served = with_clients(its.network(layout, its.median_values(case.fitted, layout), 30.0), ClientOptions(), RADIUS)
    places = places_of_loss(
        served,
        left_of(
            its.component(Losses).remainders(case, losses_of(("node",), its.component(Losses).kinds, 3))[0], its, case
        ),
    )
    network = with_loss(with_workers_that_give_up(served, places), places, (2.0, 8.0), Return(3.0, 2.0, 0.5))
    compiled, reference = (simulate(network, 12.0, seed=1, engine=engine) for engine in ("compiled", "simpy"))
    assert compiled.report().retries > 0
    assert np.array_equal(compiled.tally.class_series, reference.tally.class_series)
    assert np.array_equal(compiled.tally.class_totals, reference.tally.class_totals)


def test_a_lost_data_centre_leaves_quorums_and_takes_what_needs_each() -> None:
    case = openprovider()
    left = case.system.component(Losses).remainders(case, losses_of(("dc",), case.system.component(Losses).kinds, 3))
    (found,) = levels_left(case, left)
    expected = dict.fromkeys(("ONE", "LOCAL_ONE", "TWO", "THREE", "LOCAL_QUORUM", "QUORUM"), True)
    expected |= dict.fromkeys(("EACH_QUORUM", "ALL"), False)
    assert dict(found.write) == expected
    assert {level: found.read[level] for level in expected if level in found.read}.items() <= expected.items()


def test_retransmissions_are_near_those_of_rfc_5080() -> None:
    """Section 2.2.1: IRT 2 s, doubled up to MRT 16 s, MRD 30 s: transmissions after 0, 2, 6 and 14 s."""
    assert RADIUS.starts_s() == pytest.approx((0.0, 2.0, 6.0, 14.0), abs=0.7)


@pytest.mark.parametrize(
    ("clients", "span_s"),
    [
        (Clients(timeout_s=2.0, attempts=1, backoff_s=5.0), 2.0),  # there is no wait after the last attempt
        (Clients(timeout_s=2.0, attempts=3, backoff_s=1.0, backoff_factor=4.0), 3 * 2.0 + 1.0 + 4.0),
        (RADIUS, 4 * 2.0 + 0.6 * (1 + 3.1 + 3.1**2)),
        (PATIENT, 0.0),
    ],
)
def test_clients_give_up_finally_when_their_last_attempt_times_out(clients: Clients, span_s: float) -> None:
    assert clients.span_s == pytest.approx(span_s)
    assert clients.starts_s()[-1] + (clients.timeout_s or 0.0) == pytest.approx(span_s)


def test_what_a_class_says_of_its_clients_counts_and_options_count_more() -> None:
    """A class with a timeout and no retry tries once; one that says nothing has the usual clients."""
    flow, retry = pair().classes[0].flow, Retry(6, 0.5, 3.0)
    classes = (RequestClass("once", flow, 1.0), RequestClass("usual", flow), RequestClass("often", flow, 3.0, retry))
    usual = (RADIUS.timeout_s, Retry(RADIUS.attempts, RADIUS.backoff_s, RADIUS.backoff_factor))

    def network(*chosen: RequestClass) -> Network:
        return replace(pair(), classes=chosen, traffic=Open(RATE, {each.name: 1 / len(chosen) for each in chosen}))

    def clients(asked: ClientOptions) -> list[tuple[Any, Any]]:
        return [(each.timeout_s, each.retry) for each in with_clients(network(*classes), asked, RADIUS).classes]

    assert clients(ClientOptions()) == [(1.0, None), usual, (3.0, retry)]
    assert clients(ClientOptions(attempts=1)) == [(1.0, None), (2.0, None), (3.0, None)]
    assert clients(ClientOptions(attempts=2))[2] == (3.0, Retry(2, 0.5, 3.0))
    assert [timeout for timeout, _ in clients(ClientOptions(timeout_s=9.0))] == [9.0] * 3
    most = [clients_of(network(*classes[:count]), ClientOptions(), RADIUS) for count in (1, 2, 3)]
    assert most == [Clients(1.0, 1), RADIUS, Clients(3.0, 6, 0.5, 3.0)]


@pytest.fixture(scope="session")
def answer() -> OutagesAnswer:
    """Return the outages of a small cluster whose node is lost for half a minute."""
    question = OutagesQuestion(
        lose=("node",),
        times=Times(20.0, 30.0, 20.0),
        effort=Effort(20.0, 1, 3),
        engine="analytic",
        triggers_s=(5.0,),
        attempts=(1,),
        horizon_s=20.0,
    )
    return outages_of_scenario(changed(scenario("fedora4"), nodes=3, tps=100.0), question)


def test_an_answer_has_the_long_run_and_the_minutes_around_the_loss(answer: OutagesAnswer) -> None:
    assert answer.recovers
    assert answer.verdict is not None
    assert (answer.verdict.answer, [each.situation for each in answer.verdict.situations]) == (
        "yes",
        ["normal", "node"],
    )
    assert [each.name for each in answer.outages] == ["1 node"]
    (course,) = answer.transients
    assert course.places == ("repository/3",)
    assert course.back_after_loss_s.ended == 3
    assert answer.metastability is not None
    assert answer.metastability.verdicts[0].replications == 3


def test_json_follows_the_published_schema(answer: OutagesAnswer) -> None:
    document = json.loads(json.dumps(answer.to_json()))
    jsonschema.validate(document, OutagesAnswer.json_schema())


def test_a_network_that_names_no_station_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'server'"):
        outages_of_network(pair(), OutagesQuestion(lose=("serve",)), "pair.toml")


@pytest.mark.parametrize("share", ["100%/0", pytest.param("70%/30%", marks=pytest.mark.slow)])
def test_clients_of_a_lost_data_centre_go_to_the_other_whatever_their_shares(share: str) -> None:
    """A standby, or one with fewer clients, serves all of them once the loss is noticed."""
    base = scenario("openprovider", dcs=2, tps=500.0, client_share=share, consistency_write="LOCAL_QUORUM")
    asked = OutagesQuestion(("dc1",), Times(20.0, 30.0, 30.0), effort=Effort(1.0, 1, 3), engine="analytic")
    (found,) = outages_of_scenario(base, asked).transients
    phases = {each.name: each for each in found.phases}
    assert phases["undetected"].completed_per_s < 0.5 * phases["before"].completed_per_s
    assert phases["detected"].completed_per_s > 0.95 * phases["before"].completed_per_s
    assert phases["detected"].unanswered_per_s < 0.01 * phases["before"].completed_per_s


@pytest.mark.slow
def test_quorums_over_data_centres_go_on_with_other_replicas_once_a_loss_is_noticed() -> None:
    """Reads at QUORUM of two data centres: where one local replica is gone, coordinators ask one more elsewhere.

    At 15 % of the capacity, four of six replicas answer within milliseconds; what queued before is served, too.
    """
    base = scenario("openprovider", dcs=2, cass_nodes=6, tps=2000.0, consistency_read="QUORUM", data_factor=1.0)
    asked = OutagesQuestion(("node",), Times(20.0, 30.0, 30.0), effort=Effort(1.0, 1, 3), engine="analytic")
    (found,) = outages_of_scenario(base, asked).transients
    phases = {each.name: each for each in found.phases}
    assert phases["detected"].completed_per_s > 0.95 * phases["before"].completed_per_s
    assert phases["detected"].unanswered_per_s < 0.01 * phases["before"].completed_per_s
    assert phases["after"].unanswered_per_s == 0
