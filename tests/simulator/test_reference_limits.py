"""Constructs beyond plain queues against theory; error rates and samples as in `agreement`. Service times of 1 s."""

import numpy as np
import pytest
from tests.oracles.single_station import birth_death
from tests.simulator.agreement import assert_agrees, each, exp, replications

from capplan.models.language.distribution import Deterministic
from capplan.models.language.network import Network
from capplan.models.language.station import Background, Host, Pauses, RateTable, Station
from capplan.models.language.step import Batch, Delay, Hedge, Step, Visit
from capplan.models.language.traffic import Closed, Event, Open, RequestClass, Retry, Throttled, Timeline, Traffic
from capplan.models.solver.single_station import mmc
from capplan.simulator.reference.engine import simulate


def model(flow: Step, traffic: float | Traffic, *stations: Station, **more: object) -> Network:
    if isinstance(traffic, float):
        traffic = Open(traffic, {"job": 1.0})
    return Network("limits", stations, (RequestClass("job", flow),), traffic, **more)  # type: ignore[arg-type]  # of many types


def serve(station: str = "server") -> Visit:
    return Visit(station, exp(1.0))


def environment_mean_number(rate_per_s: float, speeds: tuple[float, float], means_s: tuple[float, float]) -> float:
    """Return the mean number in M/M/1 with two speeds that take turns: the balance equations, up to 150 inside."""
    most = 150
    flow = np.zeros((2 * most, 2 * most))
    for number in range(most):
        for state in range(2):
            here = 2 * number + state
            flow[here, 2 * number + 1 - state] += 1 / means_s[state]
            if number + 1 < most:
                flow[here, here + 2] += rate_per_s
            if number > 0:
                flow[here, here - 2] += speeds[state]
    balance = flow.T - np.diag(flow.sum(axis=1))
    balance[-1] = 1.0
    shares = np.linalg.solve(balance, np.eye(2 * most)[-1])
    return float(shares @ (np.arange(2 * most) // 2))


@pytest.mark.parametrize("discipline", ["fcfs", "ps"])
def test_a_load_dependent_rate_is_a_birth_death_process(discipline: str) -> None:
    """Contention: two servers that are slower the more there are inside, waiting ones too."""
    speeds = (1.0, 0.9, 0.7, 0.6)
    station = Station("server", 2, discipline, rate=RateTable(speeds))  # type: ignore[arg-type]  # a text from the parameters
    deaths = [min(n, 2) * speeds[min(n, 4) - 1] for n in range(1, 200)]
    shares = np.array(birth_death([0.8] * 199, deaths))
    number = float(shares @ np.arange(200))
    runs = replications(model(serve(), 0.8, station), 3_800, 300)
    assert_agrees(each(runs, lambda run: run.stations["server"].mean_number), number, detects=0.18)
    busy = float(shares @ np.minimum(np.arange(200), 2)) / 2
    assert_agrees(each(runs, lambda run: run.stations["server"].utilisation), busy, detects=0.08)


@pytest.mark.parametrize(
    ("station", "speeds"),
    [
        (Station("server", 1, pauses=(Pauses(exp(20.0), exp(4.0)),)), (1.0, 0.0)),
        (Station("server", 1, "ps", background=(Background(exp(20.0), exp(4.0), 0.5),)), (1.0, 0.5)),
    ],
    ids=["pauses", "background"],
)
def test_a_server_that_breaks_down_or_slows(station: Station, speeds: tuple[float, float]) -> None:
    """M/M/1 in a random environment (White and Christie 1958 for breakdowns)."""
    runs = replications(model(serve(), 0.5, station), 7_000, 300)
    number = environment_mean_number(0.5, speeds, (20.0, 4.0))
    assert_agrees(each(runs, lambda run: run.stations["server"].mean_number), number, detects=0.18)
    if station.pauses:
        assert_agrees(each(runs, lambda run: run.stations["server"].paused_share), 4 / 24, detects=0.12)


def test_expiry_loses_those_who_would_wait_too_long() -> None:
    """M/M/1 whose customers wait for t at most (Barrer 1957): those who are served wait no longer."""
    rate_per_s, patience_s = 0.8, 2.0
    beyond = rate_per_s * np.exp(-(1 - rate_per_s) * patience_s)
    lost = float((1 - rate_per_s) * beyond / (1 - rate_per_s * beyond))
    runs = replications(model(serve(), rate_per_s, Station("server", 1, expiry_s=patience_s)), 4_000, 100)
    assert_agrees(each(runs, lambda run: run.drop_rate()), lost, detects=0.08)
    assert_agrees(each(runs, lambda run: run.stations["server"].utilisation), rate_per_s * (1 - lost), detects=0.03)
    for run in runs:
        assert run.stations["server"].mean_wait_s < patience_s


def test_stations_with_servers_enough_share_a_host_like_one_station() -> None:
    """Whoever is busy slows all others alike: together they are M/M/3, processor sharing."""
    stations = tuple(Station(name, 1_000, "ps", host="machine") for name in ("one", "two"))
    classes = tuple(RequestClass(name, serve(name)) for name in ("one", "two"))
    traffic = Open(2.1, {"one": 0.5, "two": 0.5})
    runs = replications(Network("host", stations, classes, traffic, hosts=(Host("machine", 3),)), 1_300, 200)
    expected = float(mmc(2.1, 1.0, 3).mean_response_s)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), expected, detects=0.15)


def test_a_hedge_of_exponential_delays() -> None:
    """Beyond a, what is left of the first races the spare: the mean is 1 - exp(-a) / 2."""
    runs = replications(model(Hedge(Delay(exp(1.0)), 0.5, Delay(exp(1.0))), 1.0), 1_500, 0)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(1 - np.exp(-0.5) / 2), detects=0.04)
    assert_agrees(each(runs, lambda run: run.latency_quantile_s(0.9)), (np.log(10) + 0.5) / 2, detects=0.05)


def test_a_batch_of_two() -> None:
    """A second arrival within w fills it: the wait of the first is exponential, cut at w."""
    rate_per_s, longest_s = 1.0, 2.0
    alone = np.exp(-rate_per_s * longest_s)
    wait_s = (1 - alone) / rate_per_s / (2 - alone)
    runs = replications(model(Batch(2, longest_s, Delay(Deterministic(0.25))), rate_per_s), 3_000, 0)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(wait_s) + 0.25, detects=0.03)


def test_a_retry_is_another_chance() -> None:
    """Every attempt fails with probability p = exp(-a), so all three do with p ** 3, and 1 + p + p ** 2 are made."""
    failed = float(np.exp(-0.7))
    request = RequestClass("job", Delay(exp(1.0)), timeout_s=0.7, retry=Retry(3, 0.1))
    runs = replications(Network("retries", (), (request,), Open(1.0, {"job": 1.0})), 2_000, 0)
    assert_agrees(each(runs, lambda run: run.drop_rate()), failed**3, detects=0.15)
    attempts = 1 + failed + failed**2
    assert_agrees(each(runs, lambda run: float(run.requests.attempts.mean())), attempts, detects=0.03)


def test_interactive_response_time_law() -> None:
    """Clients = throughput * (response + think time), whatever happens between (Denning and Buzen 1978)."""
    station = Station("server", 2, "ps", pauses=(Pauses(exp(10.0), exp(1.0)),), rate=RateTable((1.0, 0.8)))
    runs = replications(model(serve(), Closed(12, exp(6.0), {"job": 1.0}), station), 800, 100)
    clients = [run.throughput_per_s() * (run.latency_mean_s() + 6.0) for run in runs]
    assert_agrees(clients, 12.0, detects=0.04)


def test_throttled_clients_hold_their_rate_until_they_cannot() -> None:
    def run_of(rate_per_s: float) -> Network:
        return model(Visit("server", Deterministic(0.5)), Throttled(4, rate_per_s, {"job": 1.0}), Station("server", 2))

    held = simulate(run_of(3.0), 400, seed=1, warmup_s=100)
    assert held.throughput_per_s() == pytest.approx(3.0, rel=0.01)
    assert held.latency_mean_s() == pytest.approx(0.5, rel=0.05)
    behind = simulate(run_of(5.0), 400, seed=1, warmup_s=100)
    assert behind.throughput_per_s() == pytest.approx(4.0, rel=0.01)  # two servers, half a second each
    assert behind.latency_mean_s(clock="actual") == pytest.approx(1.0, rel=0.01)  # four clients: Little's law
    # A client is a fifth behind: of those that start between 100 and 400 s the mean is 250 / 5 s late.
    assert behind.latency_mean_s(clock="intended") == pytest.approx(50.0 + 1.0, rel=0.03)


def test_twice_the_traffic_from_a_time_on() -> None:
    events = (Event(500.0, "scale_traffic", "*", 2.0),)
    runs = replications(model(Delay(exp(0.1)), 2.0, timeline=Timeline(events)), 1_000, 0)
    late = [float(np.mean(run.requests.start_ticks >= 500 * 10**9)) for run in runs]
    assert_agrees(late, 2 / 3, detects=0.03)
    assert_agrees(each(runs, lambda run: run.throughput_per_s()), 3.0, detects=0.05)
