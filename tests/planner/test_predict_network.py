"""Networks of one's own: capacity, throughput and latency against closed forms.

Figures of simulations may be off by four half-widths of their 90 % bands (Student, nine degrees of freedom): a right
simulation fails one such check in 20,000.
"""

import math
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from scipy import optimize

from capplan.answers.results import Band
from capplan.answers.verdict import Answer
from capplan.errors import InputError, RefusedError
from capplan.models.language.distribution import Deterministic, Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Host, Pool, Station
from capplan.models.language.step import Acquire, Delay, Route, RoutePolicy, Sequence, Visit
from capplan.models.language.traffic import (
    Bursty,
    Closed,
    Event,
    Open,
    RequestClass,
    Session,
    Throttled,
    Timeline,
    Trace,
)
from capplan.planner.network_question import NetworkQuestion
from capplan.planner.predict.prediction import Prediction
from capplan.planner.predict_network import predict_network

SERVICE_S = 0.001
QUICK_S = 0.2  # of the nominal machine


def queue(servers: int = 1, rate: float = 700.0) -> Network:
    """Return M/M/c, served in a millisecond."""
    return Network(
        name="queue",
        stations=(Station("server", servers=servers),),
        classes=(RequestClass("read", Visit("server", Exponential(SERVICE_S))),),
        traffic=Open(rate, {"read": 1.0}),
    )


def pooled(places: int, timeout_s: float | None = None) -> Network:
    """Return M/M/1 with so many places, which the pool counts."""
    flow = Acquire("workers", Visit("server", Exponential(SERVICE_S)))
    return replace(queue(), pools=(Pool("workers", places, 0),), classes=(RequestClass("read", flow, timeout_s),))


def clients(network: Network, number: int, think_s: float) -> Network:
    return replace(network, traffic=Closed(number, Exponential(think_s), {"read": 1.0}))


def hosted() -> Network:
    """Return two stations on one core: each request needs it for two milliseconds."""
    flow = Sequence((Visit("first", Exponential(SERVICE_S)), Visit("second", Exponential(SERVICE_S))))
    stations = tuple(Station(name, servers=1, discipline="ps", host="machine") for name in ("first", "second"))
    hosts = (Host("machine", 1),)
    classes = (RequestClass("read", flow),)
    return Network("hosted", stations, classes, Open(300.0, {"read": 1.0}), hosts=hosts)


def quick(network: Network, slo: tuple[str, ...] = (), tps: float | None = None) -> Prediction:
    return predict_network(network, question=NetworkQuestion(tps=tps, slo=slo), budget_s=QUICK_S)


def capacity(prediction: Prediction) -> Band:
    assert prediction.capacity is not None
    return prediction.capacity.peak_tps


def agrees(band: Band | None, exact: float) -> bool:
    assert band is not None
    half = (band.high - band.low) / 2
    return abs(band.value - exact) <= 4 * half and half < 0.2 * exact


def verdict_of(found: Prediction) -> Answer:
    assert found.verdict is not None
    return found.verdict.answer


def response_above(time_s: float, servers: int, rate: float) -> float:
    """Return the probability that a response of M/M/c is longer."""
    load, service = rate * SERVICE_S, 1 / SERVICE_S
    busy = load**servers / math.factorial(servers) / (1 - load / servers)
    waits = busy / (sum(load**k / math.factorial(k) for k in range(servers)) + busy)
    slower = servers - 1 - load
    return math.exp(-service * time_s) * (1 + waits * (1 - math.exp(-service * slower * time_s)) / slower)


@pytest.mark.parametrize(("servers", "rate"), [(1, 700.0), (4, 2800.0), (4, 3500.0)])
def test_queues_against_erlang(servers: int, rate: float) -> None:
    """Capacity is servers over service; the 99th percentile and the utilisation are those of M/M/c."""
    found = quick(queue(servers, rate))
    p99_s = optimize.brentq(lambda time_s: response_above(time_s, servers, rate) - 0.01, 1e-6, 1.0)

    assert capacity(found).value == pytest.approx(servers / SERVICE_S, rel=1e-9)
    assert agrees(found.latency_ms["read"].p99, 1e3 * p99_s)
    assert agrees(found.utilisation["server"], rate * SERVICE_S / servers)
    assert found.bottleneck == "server"
    assert found.offered is not None
    assert found.offered.overload_risk == 0
    assert verdict_of(found) == "yes"


def test_the_solver_predicts_a_queue_by_itself() -> None:
    found = predict_network(queue(), engine="analytic")

    assert found.latency_ms["read"].mean is not None
    assert found.latency_ms["read"].mean.value == pytest.approx(1e3 / 300)
    assert found.utilisation["server"].value == pytest.approx(0.7)


@pytest.mark.slow
@pytest.mark.parametrize("timeout_s", [None, 100.0])
def test_a_pool_sets_the_capacity_by_its_drop_rate(timeout_s: float | None) -> None:
    """M/M/1/K drops 0.1 % at a known rate; with timeouts, which the solver does not know, it is simulated."""
    places = 10

    def dropped(load: float) -> float:
        return (1 - load) * load**places / (1 - load ** (places + 1))

    exact = optimize.brentq(lambda load: dropped(load) - 1e-3, 0.1, 0.9) / SERVICE_S
    found = quick(pooled(places, timeout_s))

    assert capacity(found).value == pytest.approx(exact, rel=1e-6 if timeout_s is None else 0.03)
    assert capacity(found).low <= exact * 1.01
    assert capacity(found).high >= exact * 0.99
    assert found.bottleneck == "workers"


@pytest.mark.slow
def test_a_network_that_the_solver_refuses_is_simulated() -> None:
    """Two stations on one core saturate together, at half the rate of either."""
    found = quick(hosted())

    assert capacity(found).value == pytest.approx(500.0, rel=0.03)
    assert capacity(found).low < 500.0 < capacity(found).high
    with pytest.raises(RefusedError, match="host"):
        predict_network(hosted(), engine="analytic")


def routed(policy: RoutePolicy, rate: float = 1500.0) -> Network:
    """Return two stations of a thousand requests per second each, and a route to one of them."""
    visits = tuple(Visit(name, Exponential(SERVICE_S)) for name in ("first", "second"))
    stations = tuple(Station(name, servers=1) for name in ("first", "second"))
    classes = (RequestClass("read", Route(policy, visits)),)
    return Network("routed", stations, classes, Open(rate, {"read": 1.0}))


def test_a_route_to_the_first_target_has_its_capacity() -> None:
    assert capacity(quick(routed("first"))).value == pytest.approx(1000.0, rel=1e-9)
    assert capacity(quick(routed("random"))).value == pytest.approx(2000.0, rel=1e-9)


@pytest.mark.parametrize("policy", ["least_loaded", pytest.param("latency_ranked", marks=pytest.mark.slow)])
def test_a_route_by_queues_or_latencies_is_simulated(policy: RoutePolicy) -> None:
    network = routed(policy)
    with pytest.raises(RefusedError, match=policy):
        predict_network(network, engine="analytic")
    most = capacity(quick(network)).value
    assert most == pytest.approx(2000.0, rel=0.1) if policy == "least_loaded" else most < 1500


def test_waits_for_a_pool_inside_another_lower_the_capacity() -> None:
    """Three clients of a station with a think time: machine repair (B = 10 ms of work, 20 ms away)."""
    inside = Sequence((Visit("server", Exponential(0.01)), Delay(Exponential(0.02))))
    network = replace(
        queue(rate=90.0),
        pools=(Pool("outer", 200), Pool("inner", 3)),
        classes=(RequestClass("read", Acquire("outer", Acquire("inner", inside))),),
    )
    chances = [math.factorial(3) / math.factorial(3 - n) * 0.5**n for n in range(4)]  # of n requests at the station
    found = quick(network)
    assert capacity(found).value == pytest.approx(100 * (1 - chances[0] / sum(chances)), rel=0.03)
    assert found.verdict is not None
    assert found.verdict.answer == "no"
    with_solver = predict_network(network, engine="analytic")
    assert "waits for pools inside other pools" in " ".join(with_solver.evidence.cautions)


def test_a_queue_in_front_of_a_pool_counts() -> None:
    """The first of two M/M/1 queues is outside the pool, which never fills (Jackson's network)."""
    flow = Sequence((Visit("front", Exponential(0.008)), Acquire("pool", Visit("server", Exponential(0.001)))))
    network = replace(
        queue(rate=100.0),
        stations=(Station("front", 1), Station("server", 1)),
        pools=(Pool("pool", 50),),
        classes=(RequestClass("read", flow),),
    )
    exact_ms = 8 / (1 - 0.8) + 1 / (1 - 0.1)
    mean = quick(network).latency_ms["read"].mean
    assert mean is not None
    assert mean.value == pytest.approx(exact_ms, rel=0.15)
    with_solver = predict_network(network, engine="analytic")
    assert "without a unit of their pool" in " ".join(with_solver.evidence.cautions)


def test_closed_clients_have_a_throughput() -> None:
    """Machine repair: Erlang's loss formula gives the throughput of ten clients."""
    number, think_s = 10, 0.02
    load = think_s / SERVICE_S
    weights = [load**thinking / math.factorial(thinking) for thinking in range(number + 1)]
    exact = (1 - weights[number] / sum(weights)) / SERVICE_S
    network = clients(queue(), number, think_s)
    found = quick(network)

    assert agrees(capacity(found), exact)
    assert found.offered is None
    assert capacity(predict_network(network, engine="analytic")).value == pytest.approx(exact, rel=1e-6)


def test_throttled_clients_carry_what_they_do_without_pauses() -> None:
    """Two clients without pauses keep the only server busy, so its rate is theirs."""
    network = replace(queue(), traffic=Throttled(2, 600.0, {"read": 1.0}))
    found, beyond = quick(network), quick(network, tps=1100.0)

    assert agrees(capacity(found), 1 / SERVICE_S)
    assert verdict_of(found) == "yes"
    assert verdict_of(beyond) == "no"
    assert beyond.latency_ms["read"].p99 is not None
    assert beyond.latency_ms["read"].p99.value == math.inf


def test_an_objective_limits_the_capacity() -> None:
    """The 99th percentile of M/M/1 is ln 100 / (mu - lambda)."""
    exact = 1 / SERVICE_S - math.log(100) / 0.02
    found = quick(queue(), slo=("read.p99<20ms",))

    assert capacity(found).value == pytest.approx(exact, rel=0.03)
    assert capacity(found).low < exact < capacity(found).high
    assert found.capacity is not None
    assert found.capacity.overload_tps.value == pytest.approx(1 / SERVICE_S)
    assert [(each.answer, verdict_of(found)) for each in found.objectives] == [("yes", "yes")]
    assert verdict_of(quick(queue(), slo=("read.p99<10ms",))) == "no"
    assert verdict_of(quick(queue(), slo=("capacity>1100",))) == "no"


def test_overload_is_an_answer() -> None:
    found = quick(queue(), tps=1200.0)

    assert verdict_of(found) == "no"
    assert found.offered is not None
    assert found.offered.overload_risk == 1
    assert found.latency_ms["read"].mean is not None
    assert found.latency_ms["read"].mean.value == math.inf


def test_bursts_are_the_peak() -> None:
    arrivals = Bursty(burst_ratio=1.5, burst_fraction=0.2, burst_length_s=1.0)
    found = quick(replace(queue(rate=400.0), traffic=Open(400.0, {"read": 1.0}, arrivals)))

    assert found.capacity is not None
    assert found.capacity.peak_tps.value == pytest.approx(1.5 * found.capacity.mean_tps.value)
    assert found.offered is not None
    assert (found.offered.peak_tps, found.offered.mean_tps) == (600.0, 400.0)


def test_a_timeline_is_left_out_and_said_so() -> None:
    event = Event(at_s=1.0, action="down", target="server")
    found = quick(replace(queue(), timeline=Timeline(events=(event,))))

    assert found.latency_ms == quick(queue()).latency_ms
    assert any("timeline" in caution for caution in found.evidence.cautions)


def test_what_an_engine_leaves_out_is_said() -> None:
    """The solver knows no timeouts, and a simulation shorter than a session has not settled."""
    session = Session("visit", ("read", "read"), (Exponential(1000.0),))
    long = replace(queue(), sessions=(session,), traffic=Open(700.0, {"visit": 1.0}))

    assert any("timeouts" in each for each in predict_network(pooled(10, 1.0), engine="analytic").evidence.cautions)
    assert any("Sessions" in each for each in quick(long).evidence.cautions)
    assert quick(queue()).evidence.cautions == ()


def test_the_same_seed_gives_the_same_prediction() -> None:
    again = predict_network(queue(), budget_s=QUICK_S, question=NetworkQuestion())

    assert again == quick(queue())
    assert predict_network(queue(), budget_s=QUICK_S, seed=2) != again


def test_a_request_that_always_times_out_has_no_capacity() -> None:
    slow = RequestClass("read", Sequence((Delay(Deterministic(0.1)), Visit("server", Exponential(SERVICE_S)))), 0.05)
    found = quick(replace(queue(), classes=(slow,)))

    assert capacity(found).value == 0
    assert verdict_of(found) == "no"


@pytest.mark.parametrize(
    "network", [queue(), pooled(10), pytest.param(hosted(), marks=pytest.mark.slow), clients(queue(), 10, 0.02)]
)
def test_a_prediction_follows_its_schema(network: Network) -> None:
    document: dict[str, Any] = quick(network).to_json()

    jsonschema.validate(document, Prediction.json_schema())
    assert document["evidence"]["basis"] == "model only"
    assert {row["basis"] for row in document["latency_ms"]["read"].values()} == {"model only"}
    assert all(row["parts"]["model_error"] is None for row in document["latency_ms"]["read"].values())


@pytest.mark.parametrize(
    ("network", "question", "words"),
    [
        (clients(queue(), 10, 0.02), NetworkQuestion(tps=100.0), ["--tps", "closed"]),
        (queue(rate=0.0), NetworkQuestion(), ["rate_per_s = 0"]),
        (queue(), NetworkQuestion(slo=("raed.p99<1ms",)), ["'raed'", "read"]),
        (replace(queue(), traffic=Open(1.0, {"read": 1.0}, Trace((0.5, 1.0)))), NetworkQuestion(), ["trace"]),
        (
            replace(queue(), classes=(RequestClass("read", Delay(Exponential(SERVICE_S))),)),
            NetworkQuestion(),
            ["nothing limits"],
        ),
    ],
)
def test_what_has_no_answer_is_refused(network: Network, question: NetworkQuestion, words: list[str]) -> None:
    with pytest.raises(InputError) as refusal:
        predict_network(network, question=question, budget_s=QUICK_S)
    assert all(word in str(refusal.value) for word in words)


def test_a_yes_of_the_solver_that_leaves_retries_out_is_uncertain() -> None:
    asked = NetworkQuestion(tps=300.0)
    left_out = predict_network(pooled(8, timeout_s=1.0), question=asked, engine="analytic").verdict
    whole = predict_network(pooled(8), question=asked, engine="analytic").verdict
    assert left_out is not None
    assert whole is not None
    assert (whole.answer, left_out.answer) == ("yes", "uncertain")
    assert left_out.not_modelled == ("timeouts and retries",)
