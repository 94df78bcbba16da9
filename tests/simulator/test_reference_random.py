"""Runs of the SimPy engine: what is refused, what a seed determines, and arrivals against theory."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile

import numpy as np
import pytest
from scipy import stats
from tests.simulator.agreement import assert_agrees, exp

from capplan.errors import InputError, RefusedError
from capplan.models.language.distribution import Deterministic, Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Station
from capplan.models.language.step import Choice, Delay, ForkJoin, Route, Sequence, Step, Visit
from capplan.models.language.traffic import Bursty, Closed, Open, Poisson, RequestClass, Session, Timeline
from capplan.simulator.reference.engine import simulate
from capplan.simulator.reference.events import OrderedEnvironment, OrderedEvent, OrderedProcess, ProcessGenerator
from capplan.simulator.results.run import Run
from capplan.simulator.specification import network_facts
from capplan.simulator.specification.clock import TICKS_PER_S
from capplan.simulator.specification.streams import root_key, source_key
from capplan.simulator.specification.timeline import arrival_ticks, segments

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


PLAIN = Network(
    "plain",
    (Station("server", 1),),
    (RequestClass("ask", Visit("server", Deterministic(1.0))),),
    Open(1.0, {"ask": 1.0}),
)
DRAWS = RequestClass("ask", Delay(Exponential(np.array([1.0, 2.0, 3.0]))))

REFUSED = {
    "mean_s": replace(PLAIN, classes=(DRAWS,)),
    "rate_per_s": replace(PLAIN, traffic=Open(np.array([1.0, 2.0]), {"ask": 1.0})),
}


@pytest.mark.parametrize("field", REFUSED)
def test_refused_by_name(field: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        simulate(REFUSED[field], 1.0, seed=1)
    assert field in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_flow_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_facts, "MOST_STEPS", 3)
    flow = Sequence((Delay(Deterministic(1.0)),) * 3)
    with pytest.raises(RefusedError, match="4"):
        simulate(replace(PLAIN, classes=(RequestClass("ask", flow),)), 1.0, seed=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"duration_s": 0},
        {"duration_s": 1, "warmup_s": 1},
        {"duration_s": 1e-12},
        {"duration_s": float("nan")},
        {"duration_s": 1, "warmup_s": -1},
        {"duration_s": 1, "seed": -1},
        {"duration_s": 1, "max_requests": 0},
    ],
)
def test_senseless_run(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        simulate(PLAIN, **{"seed": 1, **wrong})  # type: ignore[arg-type]  # fields of many types


ALPHA = 1e-3
STEADY = segments({"job": 1.0}, Timeline())


def times_s(ticks: Iterator[int], until_s: float) -> np.ndarray:
    return np.array(list(takewhile(lambda tick: tick < until_s * TICKS_PER_S, ticks))) / TICKS_PER_S


def key(replication: int) -> int:
    return source_key(root_key(11, replication), "traffic")


def test_poisson_gaps_are_exponential_and_independent() -> None:
    gaps = np.diff(times_s(arrival_ticks(key(0), 20.0, Poisson(), STEADY), 1_000))
    assert stats.kstest(gaps, "expon", args=(0, 0.05)).pvalue > ALPHA
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) * gaps.size**0.5 < stats.norm.ppf(1 - ALPHA / 2)


def test_no_rate_no_arrivals() -> None:
    for law in (Poisson(), Bursty(2.0, 0.1, 1.0)):
        assert list(arrival_ticks(key(0), 0.0, law, STEADY)) == []


@pytest.mark.slow
def test_bursty_counts_have_the_mean_and_variance_of_an_mmpp() -> None:
    """Fischer and Meier-Hellstern, *The MMPP cookbook* (1993): variance of the count in a given time."""
    rate, law, length_s = 20.0, Bursty(4.0, 0.2, 0.5), 5.0
    burst, quiet = 80.0, 20.0 * (1 - 0.8) / 0.8
    decay = 1 / 0.5 + 1 / 2.0  # leaving bursts of 0.5 s and quiet times of 2 s
    growth = 2 * 0.2 * 0.8 * (burst - quiet) ** 2 / decay**2
    variance = rate * length_s + growth * (decay * length_s - 1 + np.exp(-decay * length_s))
    counts = [times_s(arrival_ticks(key(n), rate, law, STEADY), length_s).size for n in range(4_000)]
    assert_agrees([float(count) for count in counts], rate * length_s, detects=0.1)
    assert_agrees([(count - rate * length_s) ** 2 for count in counts], variance, detects=0.2)


def test_bursts_alone() -> None:
    """All arrivals in bursts: the quiet rate is 0, and the number of phases without arrivals does no harm."""
    arrivals = times_s(arrival_ticks(key(0), 5.0, Bursty(10.0, 0.1, 0.01), STEADY), 2_000)
    assert abs(arrivals.size - 10_000) < 1_000  # variance per second: 5 + 2 * 0.1 * 0.9 * 50² * 0.009 = 9
    assert (np.diff(arrivals) >= 0).all()
