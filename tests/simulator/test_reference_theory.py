"""Stations, pools, members and constructs against theory; error rates as in `agreement`, services of about 1 s."""

import numpy as np
import pytest
from tests.oracles.order_statistics import kth_of_n_level, kth_of_n_mean_exponential
from tests.oracles.single_station import birth_death, machine_repair, mg1_mean_wait_s, mm1_ps_response_s, mmck
from tests.simulator.agreement import assert_agrees, each, exp, replications

from capplan.models.language.distribution import Deterministic, Distribution, Erlang, Hyperexponential, Lognormal
from capplan.models.language.network import Network
from capplan.models.language.station import Background, Differs, Host, Pauses, Pool, RateTable, Station
from capplan.models.language.step import (
    Acquire,
    Batch,
    Choice,
    Delay,
    FanOut,
    ForkJoin,
    Hedge,
    Pick,
    ReplicaSet,
    RoutePolicy,
    Sequence,
    Step,
    Visit,
)
from capplan.models.language.traffic import (
    Closed,
    Event,
    Open,
    RequestClass,
    Retry,
    Session,
    Throttled,
    Timeline,
    Traffic,
)
from capplan.models.solver.single_station import mmc
from capplan.simulator.reference.engine import simulate
from capplan.simulator.results.run import Run
from capplan.simulator.results.tally import Status
from capplan.simulator.specification.clock import to_seconds
from capplan.simulator.specification.sampling import tick_sampler
from capplan.simulator.specification.streams import name_key, request_key, root_key, source_key, uniform


def model(flow: Step, traffic: float | Traffic, *stations: Station, **more: object) -> Network:
    if isinstance(traffic, float):
        traffic = Open(traffic, {"job": 1.0})
    return Network("theory", stations, (RequestClass("job", flow),), traffic, **more)  # type: ignore[arg-type]  # of many types


def queue(demand: Distribution, rate_per_s: float, servers: int = 1) -> Network:
    return model(Visit("server", demand), rate_per_s, Station("server", servers))


def test_mm1() -> None:
    runs = replications(queue(exp(1.0), 0.6), 12_000, 1_000)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), 1 / (1 - 0.6), detects=0.07)
    assert_agrees(each(runs, lambda run: run.stations["server"].utilisation), 0.6, detects=0.03)
    assert_agrees(each(runs, lambda run: run.stations["server"].mean_queue), 0.6**2 / 0.4, detects=0.12)
    # The response time is exponential.
    assert_agrees(each(runs, lambda run: run.latency_quantile_s(0.9)), np.log(10) / 0.4, detects=0.1)


def test_mmc() -> None:
    expected = mmc(3.0, 1.0, 4)
    runs = replications(queue(exp(1.0), 3.0, servers=4), 2_600, 200)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(expected.mean_response_s), detects=0.08)
    number = float(expected.mean_number)
    assert_agrees(each(runs, lambda run: run.stations["server"].mean_number), number, detects=0.08)


@pytest.mark.parametrize("limited_by", ["pool around a station", "pool with a queue limit around a delay"])
def test_mmck(limited_by: str) -> None:
    """M/M/3/5 both ways: five may be inside, or three units and two who wait."""
    if limited_by == "pool around a station":
        pool, station = Pool("limit", 5, queue_limit=0), Station("server", 3)
        network = model(Acquire("limit", Visit("server", exp(1.0))), 3.0, station, pools=(pool,))
    else:
        network = model(Acquire("limit", Delay(exp(1.0))), 3.0, pools=(Pool("limit", 3, queue_limit=2),))
    expected = mmck(3.0, 1.0, 3, 5)
    runs = replications(network, 2_000, 100)
    assert_agrees(each(runs, lambda run: run.drop_rate()), float(expected.blocking_probability), detects=0.06)
    assert_agrees(each(runs, lambda run: run.throughput_per_s()), float(expected.throughput_per_s), detects=0.02)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(expected.mean_response_s), detects=0.03)
    busy = 4 if limited_by == "pool around a station" else 2
    share = float(birth_death([3.0] * 5, [1, 2, 3, 3, 3])[busy])
    assert_agrees(each(runs, lambda run: float(run.pools["limit"].busy_share[busy])), share, detects=0.06)


@pytest.mark.parametrize(
    ("demand", "detects"),
    [
        (Deterministic(1.0), 0.08),
        (Erlang(1.0, 3), 0.1),
        (Lognormal(1.0, 1.5), 0.2),
        (Hyperexponential((0.8, 0.2), (0.5, 3.0)), 0.2),
    ],
    ids=["M/D/1", "M/E3/1", "M/LN/1", "M/H2/1"],
)
def test_mg1(demand: Distribution, detects: float) -> None:
    """The mean wait depends on the squared coefficient of variation of demands (Pollaczek-Khinchine)."""
    runs = replications(queue(demand, 0.6), 9_000, 500)
    wait_s = float(mg1_mean_wait_s(0.6, 1.0, demand.scv))
    assert_agrees(each(runs, lambda run: run.stations["server"].mean_wait_s), wait_s, detects)


def test_machine_repair() -> None:
    """Eight machines run 10 s in the mean, two repairmen need 2 s: the finite-source queue."""
    expected = machine_repair(8, 10.0, 2.0, 2)
    traffic = Closed(8, exp(10.0), {"job": 1.0})
    runs = replications(model(Visit("repair", exp(2.0)), traffic, Station("repair", 2)), 6_000, 200)
    assert_agrees(each(runs, lambda run: run.stations["repair"].mean_number), float(expected.mean_number), detects=0.05)
    assert_agrees(each(runs, lambda run: run.throughput_per_s()), float(expected.throughput_per_s), detects=0.03)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(expected.mean_response_s), detects=0.05)


def test_open_jackson_network() -> None:
    """A front, one of two stores, the front's peer: every station is M/M/c at its own flow (Jackson 1957)."""
    stores = Choice((0.3, 0.7), (Visit("small", exp(1.0)), Visit("large", exp(1.0))))
    flow = Sequence((Visit("front", exp(0.6)), stores, Visit("back", exp(0.4))))
    stations = (Station("front", 1), Station("small", 1), Station("large", 2), Station("back", 1))
    runs = replications(model(flow, 1.0, *stations), 4_000, 500)
    rates, services_s = [1.0, 0.3, 0.7, 1.0], [0.6, 1.0, 1.0, 0.4]
    expected = mmc(rates, services_s, [station.servers for station in stations]).mean_number
    for station, number in zip(stations, expected, strict=True):
        assert_agrees([run.stations[station.name].mean_number for run in runs], float(number), detects=0.15)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(expected.sum()), detects=0.06)


def test_tandem_sojourns_are_independent() -> None:
    """Burke and Reich: the times at two single servers in a row are independent exponentials."""
    flow = Sequence((Visit("one", exp(1.0)), Visit("two", exp(1.0))))
    runs = replications(model(flow, 0.5, Station("one", 1), Station("two", 1)), 9_500, 500)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), 4.0, detects=0.06)
    assert_agrees(each(runs, lambda run: float(np.mean(run.latencies_s() ** 2))), 4.0**2 + 2 * 4.0, detects=0.15)


def test_two_of_three_without_queueing() -> None:
    """A read waits for the slower of the two replicas that it contacts, a write for the second of three."""
    for contacted in (2, 3):
        runs = replications(model(ForkJoin(tuple(Delay(exp(1.0)) for _ in range(contacted)), 2), 1.0), 1_000, 0)
        mean_s, level = kth_of_n_mean_exponential(1.0, 2, contacted), kth_of_n_level(0.5, 2, contacted)
        assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(mean_s), detects=0.04)
        median_s = float(exp(1.0).quantile(level))
        assert_agrees(each(runs, lambda run: run.latency_quantile_s(0.5)), median_s, detects=0.06)


def test_two_branch_fork_join_with_shared_arrivals() -> None:
    """Flatto and Hahn (1984): with two M/M/1 branches the mean response is (12 - rho) / 8 times that of one."""
    flow = ForkJoin((Visit("one", exp(1.0)), Visit("two", exp(1.0))), 2)
    runs = replications(model(flow, 0.6, Station("one", 1), Station("two", 1)), 8_000, 500)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), (12 - 0.6) / 8 / (1 - 0.6), 0.09)


def test_lightly_loaded_write_is_the_second_of_three() -> None:
    """At 1 % load the visits hardly wait: the response differs from that without queues by less than 1 %."""
    flow = ForkJoin(tuple(Visit(f"replica {n}", exp(1.0)) for n in range(3)), 2)
    runs = replications(model(flow, 0.01, *(Station(f"replica {n}", 1) for n in range(3))), 130_000, 0)
    # Each visit waits 0.01 services in the mean.
    mean_s = float(kth_of_n_mean_exponential(1.0, 2, 3)) + 0.005
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), mean_s, detects=0.04)


def test_rate_counts_requests_of_sessions_and_classes() -> None:
    """4 requests/s of which half the arrivals are sessions of 3: 2 arrivals/s, so 3 + 1 requests/s."""
    classes = (RequestClass("login", Delay(exp(0.1))), RequestClass("work", Delay(exp(0.1))))
    talk = Session("talk", ("login", "work", "work"), (exp(1.0), exp(1.0)))
    traffic = Open(4.0, {"talk": 0.5, "login": 0.5})
    network = Network("mix", (), classes, traffic, sessions=(talk,))
    runs = replications(network, 900, 50)
    assert_agrees(each(runs, lambda run: run.throughput_per_s()), 4.0, detects=0.05)
    assert_agrees(each(runs, lambda run: run.throughput_per_s("work")), 2.0, detects=0.06)


def test_abandonment_loses_the_tail() -> None:
    """M/M/1 whose clients wait at most t: the share exp(-(1 - rho) t) gives up, and the work is done all the same."""
    network = Network(
        "patience",
        (Station("server", 1),),
        (RequestClass("job", Visit("server", exp(1.0)), timeout_s=3.0),),
        Open(0.5, {"job": 1.0}),
    )
    runs = replications(network, 6_000, 500)
    assert_agrees(each(runs, lambda run: run.drop_rate()), float(np.exp(-0.5 * 3.0)), detects=0.13)
    assert_agrees(each(runs, lambda run: run.stations["server"].utilisation), 0.5, detects=0.04)
    assert all(run.count(Status.TIMED_OUT) for run in runs)


VARIED = Hyperexponential((0.8, 0.2), (0.5, 3.0))  # mean 1, squared coefficient of variation 3


def sharing(demand: Distribution, traffic: float | Traffic, servers: int = 1) -> Network:
    return model(Visit("server", demand, name="serve"), traffic, Station("server", servers, "ps"))


def demands_s(run: Run, demand: Distribution) -> np.ndarray:
    """Return the demand of every measured request, drawn again, since a draw is a function of its key."""
    source, draw = source_key(root_key(run.seed, run.replication), "source", "job"), name_key("step", "/serve")
    ticks = tick_sampler(demand)
    units = run.requests.session[run.measured()]
    return np.array([to_seconds(ticks(uniform(request_key(source, int(unit), 0), draw))) for unit in units])


def test_mm1_and_its_conditional_slowdown() -> None:
    """A request of d seconds takes d / (1 - rho) in the mean, however short or long it is (Kleinrock 1976, 4.4)."""
    runs = replications(sharing(exp(1.0), 0.6), 6_000, 500)
    mean_s, variance = (float(figure) for figure in mm1_ps_response_s(0.6, 1.0))
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), mean_s, detects=0.08)
    assert_agrees(each(runs, lambda run: float(np.mean(run.latencies_s() ** 2))), variance + mean_s**2, detects=0.28)
    assert_agrees(each(runs, lambda run: run.stations["server"].utilisation), 0.6, detects=0.04)
    assert_agrees(each(runs, lambda run: run.stations["server"].mean_number), 0.6 * mean_s, detects=0.09)
    drawn = [(demands_s(run, exp(1.0)), run.latencies_s()) for run in runs]
    for shortest_s, longest_s in ((0.0, 0.1), (0.1, 0.7), (0.7, 2.0), (2.0, 100.0)):
        means = [float((took / d)[(d >= shortest_s) & (d < longest_s)].mean()) for d, took in drawn]
        assert_agrees(means, mean_s, detects=0.1)


@pytest.mark.parametrize(
    ("demand", "detects"), [(Deterministic(1.0), 0.05), (VARIED, 0.12)], ids=["M/D/1-PS", "M/H2/1-PS"]
)
def test_the_mean_response_depends_on_the_mean_demand_only(demand: Distribution, detects: float) -> None:
    """First come, first served, these differ by a factor of 2."""
    runs = replications(sharing(demand, 0.5), 7_000, 500)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(mm1_ps_response_s(0.5, 1.0)[0]), detects)


@pytest.mark.parametrize(("demand", "duration_s"), [(exp(1.0), 1_600), (VARIED, 2_000)], ids=["M/M/4-PS", "M/H2/4-PS"])
def test_several_servers_answer_as_fast_as_first_come_first_served(demand: Distribution, duration_s: float) -> None:
    """In the mean, M/M/m-PS is M/M/m, whatever the distribution of demands."""
    runs = replications(sharing(demand, 3.0, servers=4), duration_s, 200)
    expected = mmc(3.0, 1.0, 4)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(expected.mean_response_s), detects=0.15)
    assert_agrees(each(runs, lambda run: run.stations["server"].utilisation), 0.75, detects=0.08)
    mean_wait_s = float(expected.mean_wait_s)
    assert_agrees(each(runs, lambda run: run.stations["server"].mean_wait_s), mean_wait_s, detects=0.4)


def test_clients_who_share_two_servers() -> None:
    """Eight clients think 10 s in the mean and need 2 s: the finite-source queue, for any demands."""
    demand = Hyperexponential((0.9, 0.1), (1.0, 11.0))
    runs = replications(sharing(demand, Closed(8, exp(10.0), {"job": 1.0}), servers=2), 5_000, 500)
    expected = machine_repair(8, 10.0, 2.0, 2)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(expected.mean_response_s), detects=0.1)
    assert_agrees(each(runs, lambda run: run.throughput_per_s()), float(expected.throughput_per_s), detects=0.05)
    number = float(expected.mean_number)
    assert_agrees(each(runs, lambda run: run.stations["server"].mean_number), number, detects=0.08)


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


def at(member: str, mean_s: float = 1.0, station: str = "node") -> Visit:
    return Visit(station, exp(mean_s), member=member)


def pick(step: Step, policy: RoutePolicy = "random") -> Pick:
    return Pick("here", "node", policy, step)


def test_members_picked_at_random_are_queues_of_their_own() -> None:
    """A Poisson stream that is split at random is Poisson in every part: M/M/2, six times."""
    expected = mmc(1.2, 1.0, 2)
    runs = replications(model(pick(at("here")), 6 * 1.2, Station("node", 2, count=6)), 1_500, 100)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(expected.mean_response_s), detects=0.05)
    for name in ("node/1", "node/6"):
        assert_agrees([run.stations[name].utilisation for run in runs], 0.6, detects=0.05)
        assert_agrees([run.stations[name].mean_number for run in runs], float(expected.mean_number), detects=0.15)


def test_members_that_differ_are_queues_of_different_capacity() -> None:
    exceptions = (Differs(2, speed=0.8), Differs(3, servers=2), Differs(4, down=True))
    network = model(pick(at("here")), 3 * 0.4, Station("node", 1, count=4, exceptions=exceptions))
    runs = replications(network, 9_000, 500)
    for name, service_s, servers in (("node/1", 1.0, 1), ("node/2", 1.25, 1), ("node/3", 1.0, 2)):
        number = float(mmc(0.4, service_s, servers).mean_number)
        assert_agrees([run.stations[name].mean_number for run in runs], number, detects=0.2)
        # Servers are busy 0.4 visits per second times the service time.
        utilisation = 0.4 * service_s / servers
        assert_agrees([run.stations[name].utilisation for run in runs], utilisation, detects=0.05)


def test_members_of_a_pool_are_loss_systems_of_their_own() -> None:
    """Erlang's loss formula holds for each of the members."""
    network = model(
        Pick("here", "threads", "random", Acquire("threads", Delay(exp(1.0)), member="here")),
        4 * 2.0,
        pools=(Pool("threads", 3, queue_limit=0, count=4),),
    )
    expected = mmck(2.0, 1.0, 3, 3)
    runs = replications(network, 1_500, 100)
    assert_agrees(each(runs, lambda run: run.drop_rate()), float(expected.blocking_probability), detects=0.06)
    carried = float(expected.throughput_per_s)
    assert_agrees([run.pools["threads/2"].mean_busy for run in runs], carried, detects=0.05)


@pytest.mark.parametrize("placement", ["ring", "random"])
def test_two_of_three_replicas_without_queueing(placement: str) -> None:
    """The second of three exponential branches, or the slower of two that are contacted (Renyi 1953)."""
    for contacted in (2, 3):
        ask = FanOut("row", "one", at("one"), 2, contacted)
        flow = ReplicaSet("row", "node", 3, ask, placement)  # type: ignore[arg-type]  # one of both
        runs = replications(model(flow, 1.0, Station("node", 1_000, count=7)), 1_000, 0)
        mean_s = float(kth_of_n_mean_exponential(1.0, 2, contacted))
        assert_agrees(each(runs, lambda run: run.latency_mean_s()), mean_s, detects=0.04)


def test_two_replicas_of_two_are_a_fork_join_with_shared_arrivals() -> None:
    """Flatto and Hahn (1984), as for two stations written out."""
    flow = ReplicaSet("row", "node", 2, FanOut("row", "one", at("one"), 2))
    runs = replications(model(flow, 0.6, Station("node", 1, count=2)), 8_000, 500)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), (12 - 0.6) / 8 / (1 - 0.6), 0.09)


@pytest.mark.parametrize("placement", ["ring", "random"])
def test_replicas_load_all_members_alike(placement: str) -> None:
    """Of eight members each has three eighths of the visits (utilisation law)."""
    ask = FanOut("row", "one", at("one"), 1)
    flow = ReplicaSet("row", "node", 3, ask, placement)  # type: ignore[arg-type]  # one of both
    runs = replications(model(flow, 1.0, Station("node", 1, count=8)), 8_000, 200)
    for number in range(1, 9):
        assert_agrees([run.stations[f"node/{number}"].utilisation for run in runs], 3 / 8, detects=0.05)
