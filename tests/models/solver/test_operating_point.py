"""Many rates at once give the figures of each rate alone: with a pool and without, in bursts, and beyond saturation."""

import numpy as np
import pytest
from scipy.stats import gamma

from capplan.models.language.distribution import Deterministic, Erlang, Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Pool, Station
from capplan.models.language.step import Acquire, Delay, ForkJoin, Sequence, Visit
from capplan.models.language.traffic import Bursty, Open, RequestClass
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import solve
from capplan.models.solver.pauses import RareDelay
from capplan.models.solver.single_station import erlang_c

LEVELS = (0.5, 0.99)
MEAN_S = np.array([0.8, 1.0, 1.25])
RATES_PER_S = (0.1, 2.0, 3.1, 3.9, 6.0)
WORK = Sequence(
    (
        ForkJoin((Visit("a", Exponential(MEAN_S / 2)), Visit("b", Erlang(MEAN_S, 2))), 2),
        Visit("a", Exponential(MEAN_S / 2)),
    )
)


def analysis(pooled: bool) -> Analysis:
    """Return a system of two request classes, three draws, in bursts; stations are saturated at 3.2 to 5 per second."""
    stations = (Station("a", 4, "ps"), Station("b", 4, "fcfs"))
    quick = Sequence((Delay(Deterministic(0.1)), Visit("a", Exponential(MEAN_S / 10))))
    flows = {"slow": WORK, "quick": quick}
    if pooled:
        flows = {name: Sequence((Acquire("workers", flow),)) for name, flow in flows.items()}
    classes = tuple(RequestClass(name, flow) for name, flow in flows.items())
    traffic = Open(1.0, {"slow": 0.8, "quick": 0.2}, Bursty(1.2, 0.3, 60.0))
    pools = (Pool("workers", 30, 20),) if pooled else ()
    return Analysis(Network("small", stations, classes, traffic, pools))


@pytest.mark.parametrize("pooled", [True, False])
def test_many_rates_at_a_time_are_as_each_alone(pooled: bool) -> None:
    system = analysis(pooled)
    together = solve(system, np.array(RATES_PER_S)[:, None])
    found = together.quantiles_s(LEVELS, "slow", "quick")

    assert found.shape == (len(LEVELS), len(RATES_PER_S), len(MEAN_S))
    for place, rate in enumerate(RATES_PER_S):
        alone = solve(system, rate)
        assert found[:, place] == pytest.approx(alone.quantiles_s(LEVELS, "slow", "quick"), rel=1e-12)
        assert together.response_s("slow")[place] == pytest.approx(alone.response_s("slow"), rel=1e-12)
        assert together.drop_rate[place] == pytest.approx(alone.drop_rate, rel=1e-12)
        assert together.busy_units[place] == pytest.approx(alone.busy_units, rel=1e-12)


def test_rates_differ() -> None:
    """The comparison above means something: figures rise with the rate, and draws are not alike."""
    found = solve(analysis(True), np.array(RATES_PER_S)[:, None]).quantiles_s((0.5,), "slow")[0]

    assert (np.diff(found, axis=0) > 1e-3).all()
    assert (np.diff(found, axis=1) > 1e-3).all()


@pytest.mark.parametrize("rate_per_s", [1.0, 5.0])
def test_classes_outside_a_full_pool_share_cores_with_what_it_lets_in(rate_per_s: float) -> None:
    """Four shared cores slow every job down as M/M/4 makes jobs wait; 7 % or 62 % of the others are dropped."""
    behind_disk = Acquire("workers", Sequence((Visit("a", Exponential(MEAN_S / 10)), Visit("b", Exponential(MEAN_S)))))
    classes = RequestClass("bounded", behind_disk), RequestClass("free", Visit("a", Exponential(MEAN_S)))
    stations, traffic = (Station("a", 4, "ps"), Station("b", 1, "fcfs")), Open(1.0, {"bounded": 0.5, "free": 0.5})
    found = solve(Analysis(Network("small", stations, classes, traffic, (Pool("workers", 2, 1),))), rate_per_s)

    busy = rate_per_s / 2 * MEAN_S * (1 + 0.1 * (1 - 2 * found.drop_rate))
    assert found.response_s("free") == pytest.approx(MEAN_S * (1 + erlang_c(4, busy) / (4 - busy)), rel=1e-6)


def test_units_in_use_are_those_of_littles_law_in_bursts_too() -> None:
    """Every request holds one unit from its arrival to its answer, and none is dropped at these rates.

    In a burst more units are held than on average: requests that arrive see some 2 % more than there are over time.
    """
    rates = np.array([[0.1], [1.0], [2.0]])
    found = solve(analysis(True), rates)

    assert found.drop_rate.max() < 1e-9
    assert found.busy_units == pytest.approx(rates * found.response_s("slow", "quick"), rel=3e-3)


def test_requests_that_all_wait_as_long_keep_their_law_and_have_it_later() -> None:
    """M/M/1: the time in the system is exponential, whose skewness comes from states that differ in mean and variance.

    The nine states that stand for all are some 7 % off at the far end.
    """
    levels, load = np.array([0.9, 0.99, 0.999]), 0.7
    flow = Acquire("workers", Visit("a", Exponential(1.0)))
    classes, traffic = (RequestClass("all", flow),), Open(1.0, {"all": 1.0})
    network = Network("queue", (Station("a", 1, "fcfs"),), classes, traffic, (Pool("workers", 300, 10),))
    delays = {"all": [RareDelay(np.ones(1), np.full(1, 1000.0), np.zeros(1))]}
    found = solve(Analysis(network), load).quantiles_s(tuple(levels), "all", delays=delays).ravel() - 1000.0

    assert found == pytest.approx(-np.log(1 - levels) / (1 - load), rel=0.08)


@pytest.mark.parametrize("way_s", [1e-6, 20.0])
def test_a_delay_has_the_percentiles_of_its_gamma_law(way_s: float) -> None:
    """All requests are delayed by 4 s in the mean, beside which nothing else varies."""
    quick = Sequence((Delay(Deterministic(way_s)), Visit("a", Exponential(1e-6))))
    network = Network("quick", (Station("a", 4, "ps"),), (RequestClass("all", quick),), Open(1.0, {"all": 1.0}))
    delays = {"all": [RareDelay(np.ones(1), np.full(1, 4.0), np.full(1, 4.0))]}
    found = solve(Analysis(network), 1.0).quantiles_s((0.1, 0.5, 0.9, 0.999), "all", delays=delays)
    assert found.ravel() == pytest.approx(way_s + gamma(4).ppf([0.1, 0.5, 0.9, 0.999]), rel=1e-3)
