"""Random numbers of the SimPy engine: a seed determines the run, and a change of layout changes only what it must."""

import numpy as np
import pytest
from tests.simulator.agreement import exp

from capplan.models.language.distribution import Deterministic
from capplan.models.language.network import Network
from capplan.models.language.station import Station
from capplan.models.language.step import Choice, Delay, ForkJoin, Route, Sequence, Step, Visit
from capplan.models.language.traffic import Closed, Open, RequestClass, Session
from capplan.simulator.reference.engine import simulate
from capplan.simulator.reference.events import OrderedEnvironment, OrderedEvent, OrderedProcess, ProcessGenerator
from capplan.simulator.results.run import Run

REPLICAS = 5


def quorum(replicas: int, needed: int, read: str = "read") -> ForkJoin:
    branches = [
        Sequence((Delay(exp(0.001), name="wire"), Visit(f"store-{n}", exp(0.01), name=read)), name=f"replica-{n}")
        for n in range(replicas)
    ]
    return ForkJoin(tuple(branches), needed)


def run_of(flow: Step, seed: int = 3, replication: int = 0, rate_per_s: float = 50.0, duration_s: float = 20) -> Run:
    network = Network(
        "random",
        tuple(Station(f"store-{n}", 1) for n in range(REPLICAS)),
        (RequestClass("job", flow),),
        Open(rate_per_s, {"job": 1.0}),
    )
    return simulate(network, duration_s, seed=seed, replication=replication)


def same(one: Run, other: Run) -> bool:
    return np.array_equal(one.requests.end_ticks, other.requests.end_ticks)


def test_same_seed_same_run() -> None:
    flow = Sequence(
        (Choice((0.5, 0.5), (quorum(3, 2), Delay(exp(0.1)))), Route("random", (quorum(2, 1), quorum(1, 1))))
    )
    assert same(run_of(flow), run_of(flow))
    assert not same(run_of(flow), run_of(flow, seed=4))
    assert not same(run_of(flow), run_of(flow, replication=1))


def test_common_random_numbers_survive_more_replicas() -> None:
    """Stores 0 to 2 see the same visits with the same demands whether they are three or the first of five."""
    three, five = run_of(quorum(3, 2)), run_of(quorum(5, 2))
    assert np.array_equal(three.requests.start_ticks, five.requests.start_ticks)
    for n in range(3):
        assert three.stations[f"store-{n}"] == five.stations[f"store-{n}"]
    assert five.stations["store-3"].visits == three.stations["store-0"].visits > 0 == three.stations["store-3"].visits
    # The second of five is never later than the second of the first three of them.
    assert (five.requests.end_ticks <= three.requests.end_ticks).all()


def test_renaming_a_step_changes_its_draws_only() -> None:
    before = run_of(Sequence((quorum(3, 2), Visit("store-4", exp(0.001), name="last"))))
    after = run_of(Sequence((quorum(3, 2, read="get"), Visit("store-4", exp(0.001), name="last"))))
    assert np.array_equal(before.requests.start_ticks, after.requests.start_ticks)
    assert not same(before, after)
    served = [run.stations["store-4"].mean_response_s - run.stations["store-4"].mean_wait_s for run in (before, after)]
    assert served[0] == pytest.approx(served[1], rel=1e-12)


def test_rate_scales_the_same_arrivals() -> None:
    slow, fast = run_of(Delay(exp(0.01))), run_of(Delay(exp(0.01)), rate_per_s=100.0)
    count = min(slow.requests.start_ticks.size, fast.requests.start_ticks.size)
    assert slow.requests.start_ticks[:count] == pytest.approx(2 * fast.requests.start_ticks[:count], abs=count)
    took, again = (run.requests.end_ticks[:count] - run.requests.start_ticks[:count] for run in (slow, fast))
    assert np.array_equal(took, again)


def test_a_longer_run_begins_with_the_shorter_one() -> None:
    short, long = run_of(quorum(3, 2), duration_s=10), run_of(quorum(3, 2))
    assert np.array_equal(short.requests.end_ticks, long.requests.end_ticks[: short.requests.end_ticks.size])


def test_an_error_in_a_process_is_heard() -> None:
    def fails() -> ProcessGenerator:
        yield OrderedEvent(env).at(1, 0)
        raise ZeroDivisionError

    env = OrderedEnvironment()
    OrderedProcess(env, fails())
    with pytest.raises(ZeroDivisionError):
        env.run_all()


def test_clients_have_numbers_of_their_own() -> None:
    """In a closed system a client's demands do not depend on how many others there are."""

    def think_and_demand(clients: int) -> np.ndarray:
        flow = Delay(exp(1.0))
        talk = Session("talk", ("job", "job"), (Deterministic(0.5),))
        network = Network(
            "closed", (), (RequestClass("job", flow),), Closed(clients, exp(1.0), {"talk": 1.0}), sessions=(talk,)
        )
        rows = simulate(network, 50, seed=1).requests
        return np.asarray(rows.end_ticks[rows.session == 2])

    assert np.array_equal(think_and_demand(3), think_and_demand(10))
