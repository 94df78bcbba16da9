"""The analytic solver against theory where theory is exact, and against laws that every model obeys."""

from collections.abc import Callable
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest
from tests.oracles.single_station import mg1_mean_wait_s, mmck

from capplan.errors import RefusedError
from capplan.models.language.distribution import Deterministic, Distribution, Erlang, Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Host, Pauses, Pool, Station
from capplan.models.language.step import Acquire, Choice, Delay, ForkJoin, Hedge, Pick, Route, Sequence, Step, Visit
from capplan.models.language.traffic import Arrivals, Bursty, Open, Poisson, RequestClass, Session
from capplan.models.language.units import Number
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import capacity_per_s, peak_ratio, solve
from capplan.models.solver.single_station import mmc


def model(
    flow: Step,
    *stations: Station,
    pools: tuple[Pool, ...] = (),
    arrivals: Arrivals | None = None,
) -> Network:
    traffic = Open(1.0, {"job": 1.0}, arrivals or Poisson())
    return Network("small", stations, (RequestClass("job", flow),), traffic, pools)


def queue(demand: Distribution, servers: int, discipline: str = "fcfs") -> Analysis:
    return Analysis(model(Visit("server", demand), Station("server", servers, discipline)))  # type: ignore[arg-type]  # a text from the parameters


def pooled(servers: int, size: int, queue_limit: int | None, mean_s: Number = 1.0, think_s: Number = 0.0) -> Analysis:
    inside = Sequence((Delay(Deterministic(think_s)), Visit("server", Exponential(mean_s))))
    pool = Pool("workers", size, queue_limit)
    return Analysis(model(Acquire("workers", inside), Station("server", servers, "ps"), pools=(pool,)))


@pytest.mark.parametrize("discipline", ["fcfs", "ps"])
@pytest.mark.parametrize(("rate_per_s", "servers"), [(0.5, 1), (3.0, 4), (23.0, 24)])
def test_mmc_is_exact(discipline: str, rate_per_s: float, servers: int) -> None:
    """In order and shared: both have the mean of M/M/c."""
    point = solve(queue(Exponential(1.0), servers, discipline), rate_per_s)
    expected = float(mmc(rate_per_s, 1.0, servers).mean_response_s)
    assert float(point.response_s("job")[0]) == pytest.approx(expected, rel=1e-9)
    assert float(point.busy_units[0]) == pytest.approx(rate_per_s * expected, rel=1e-9)  # Little's law
    assert float(point.drop_rate[0]) == 0.0


def test_mm1_quantiles_are_exact() -> None:
    """The response of M/M/1 is exponential, which the gamma law contains."""
    point = solve(queue(Exponential(1.0), 1), 0.6)
    for level in (0.5, 0.9, 0.99):
        assert float(point.quantile_s(level, "job")[0]) == pytest.approx(-np.log(1 - level) / 0.4, rel=1e-6)


@pytest.mark.parametrize("demand", [Deterministic(1.0), Erlang(1.0, 3)])
def test_mg1_is_exact_in_the_mean(demand: Distribution) -> None:
    point = solve(queue(demand, 1), 0.7)
    assert float(point.response_s("job")[0]) == pytest.approx(
        1 + float(mg1_mean_wait_s(0.7, 1.0, demand.scv)), rel=1e-9
    )


def test_a_tandem_of_unlike_stations_is_jacksons() -> None:
    flow = Sequence((Visit("a", Exponential(0.1)), Visit("b", Exponential(0.5)), Visit("a", Exponential(0.1))))
    point = solve(Analysis(model(flow, Station("a", 1), Station("b", 2, "ps"))), 3.0)
    expected = 2 * float(mmc(6.0, 0.1, 1).mean_response_s) + float(mmc(3.0, 0.5, 2).mean_response_s)
    assert float(point.response_s("job")[0]) == pytest.approx(expected, rel=1e-9)


def test_stations_of_equal_load_keep_their_own_discipline_and_service() -> None:
    """Equal load and servers, but one serves a certain time in order, one a random time, one shares."""
    flow = Sequence(
        (Visit("sure", Deterministic(1.0)), Visit("random", Exponential(1.0)), Visit("shared", Erlang(1.0, 5)))
    )
    point = solve(Analysis(model(flow, Station("sure", 1), Station("random", 1), Station("shared", 1, "ps"))), 0.5)
    expected = (1 + float(mg1_mean_wait_s(0.5, 1.0, 0.0))) + 2.0 + 2.0
    assert float(point.response_s("job")[0]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("servers", "size", "queue_limit", "rate_per_s"), [(3, 3, 2, 3.0), (4, 8, 0, 3.5), (2, 6, 4, 2.5)]
)
def test_a_pool_around_mmc_is_mmck(servers: int, size: int, queue_limit: int, rate_per_s: float) -> None:
    point = solve(pooled(servers, size, queue_limit), rate_per_s)
    expected = mmck(rate_per_s, 1.0, servers, size + queue_limit)
    assert float(point.drop_rate[0]) == pytest.approx(float(expected.blocking_probability), rel=1e-6)
    assert float(point.response_s("job")[0]) == pytest.approx(float(expected.mean_response_s), rel=1e-6)


def test_a_pool_around_a_delay_is_erlangs_loss_system() -> None:
    """All time is spent where nothing queues: M/G/c/c with c the pool's size, and its queue beside it."""
    point = solve(pooled(1, 5, 2, 1e-6, 1.0), 4.0)
    expected = mmck(4.0, 1.0 + 1e-6, 5, 7)
    assert float(point.drop_rate[0]) == pytest.approx(float(expected.blocking_probability), rel=1e-4)


def test_a_pool_that_never_fills_has_the_response_of_the_open_network() -> None:
    station, pool = Station("node", 8, "ps", count=6), Pool("workers", 2000)
    inside = Sequence((Delay(Exponential(1.0)), Visit("node", Exponential(1.0), member="one")))
    picked = Pick("one", "node", "random", inside)
    for share in (0.5, 0.8, 0.9):
        alone = solve(Analysis(model(picked, station)), share * 48)
        behind = solve(Analysis(model(Acquire("workers", picked), station, pools=(pool,))), share * 48)
        assert float(behind.response_s("job")[0]) == pytest.approx(float(alone.response_s("job")[0]), rel=5e-3)


def test_capacity_loses_exactly_what_the_criterion_allows() -> None:
    for criterion in (1e-3, 0.02):
        analysis = pooled(4, 10, 3)
        rate = capacity_per_s(analysis, criterion)
        assert float(solve(analysis, rate).drop_rate[0]) == pytest.approx(criterion, rel=1e-3)
        assert float(solve(analysis, rate).drop_rate[0]) == pytest.approx(criterion, rel=1e-3)
        assert float(mmck(float(rate[0]), 1.0, 4, 13).blocking_probability) == pytest.approx(criterion, rel=1e-3)


def test_bursts_cost_capacity_and_are_a_mixture_of_two_rates() -> None:
    bursty = Bursty(1.5, 0.1, 100.0)
    flow, station, pool = (
        Acquire("workers", Visit("server", Exponential(1.0))),
        Station("server", 4),
        Pool("workers", 8, 2),
    )
    analysis = Analysis(model(flow, station, pools=(pool,), arrivals=bursty))
    burst, quiet = (float(mmck(3.0 * ratio, 1.0, 4, 10).blocking_probability) for ratio in (1.5, 0.85 / 0.9))
    expected = 0.1 * 1.5 * burst + 0.85 * quiet
    assert float(solve(analysis, 3.0).drop_rate[0]) == pytest.approx(expected, rel=1e-6)
    assert float(peak_ratio(analysis)[0]) == 1.5
    plain = Analysis(model(flow, station, pools=(pool,)))
    assert capacity_per_s(analysis, 1e-3) < capacity_per_s(plain, 1e-3)


def test_without_a_pool_capacity_is_saturation_and_nothing_settles_beyond() -> None:
    analysis = queue(Exponential(0.5), 3)
    assert float(capacity_per_s(analysis, 1e-3)[0]) == pytest.approx(6.0)
    point = solve(analysis, 12.0)
    assert float(point.response_s("job")[0]) == np.inf
    assert float(point.drop_rate[0]) == pytest.approx(0.5)


def test_detached_work_bounds_the_capacity_though_nobody_waits_for_it() -> None:
    detached = ForkJoin((Visit("disk", Deterministic(1.0)),), 0)
    flow = Acquire("workers", Sequence((Visit("cpu", Exponential(0.05)), detached)))
    pool = Pool("workers", 50, 10)
    analysis = Analysis(model(flow, Station("cpu", 1, "ps"), Station("disk", 1), pools=(pool,)))
    assert float(capacity_per_s(analysis, 1e-3)[0]) == pytest.approx(1.0, rel=1e-4)
    assert analysis.bottleneck == ("disk",)
    assert float(analysis.saturation_per_s[0]) == pytest.approx(20.0)


@pytest.mark.parametrize(
    "changes", [{"servers": (2, 3, 4, 8)}, {"size": (4, 6, 9, 40)}, {"queue_limit": (0, 1, 5, 20)}]
)
def test_capacity_grows_with_servers_workers_and_queue(changes: dict[str, tuple[int, ...]]) -> None:
    (name, values), defaults = next(iter(changes.items())), {"servers": 3, "size": 8, "queue_limit": 2}
    found = [float(capacity_per_s(pooled(**{**defaults, name: value}, think_s=1.0), 1e-3)[0]) for value in values]
    assert found[0] > 0
    assert all(later > earlier for earlier, later in pairwise(found))


def test_more_load_means_more_loss_and_longer_times() -> None:
    analysis = pooled(4, 10, 3, think_s=0.5)
    points = [solve(analysis, rate) for rate in (0.01, 1.0, 2.0, 3.0, 4.0, 8.0)]
    rows: list[Callable[[int], float]] = [
        lambda at: float(points[at].drop_rate[0]),
        lambda at: float(points[at].busy_units[0]),
        lambda at: float(points[at].response_s("job")[0]),
        lambda at: float(points[at].quantile_s(0.5, "job")[0]),
        lambda at: float(points[at].quantile_s(0.99, "job")[0]),
    ]
    for figure in rows:
        values = [figure(at) for at in range(len(points))]
        assert all(later > earlier > 0 for earlier, later in pairwise(values))
    assert float(points[0].response_s("job")[0]) == pytest.approx(1.5, rel=0.01)


def test_draws_give_what_each_gives_alone() -> None:
    means, thinks = np.array([0.5, 1.0, 1.5]), np.array([2.0, 0.1, 1.0])
    together = pooled(3, 12, 4, means, thinks)
    capacity = capacity_per_s(together, 1e-3)
    point = solve(together, 1.9)
    for draw in range(3):
        alone = pooled(3, 12, 4, float(means[draw]), float(thinks[draw]))
        assert capacity[draw] == pytest.approx(float(capacity_per_s(alone, 1e-3)[0]), rel=1e-5)
        one = solve(alone, 1.9)
        for found, expected in [
            (point.drop_rate, one.drop_rate),
            (point.busy_units, one.busy_units),
            (point.response_s("job"), one.response_s("job")),
            (point.quantile_s(0.99, "job"), one.quantile_s(0.99, "job")),
        ]:
            assert found[draw] == pytest.approx(float(expected[0]), rel=1e-6)


def test_draws_may_stand_in_delays_alone() -> None:
    thinks = np.array([0.0, 1.0, 2.0])
    point = solve(pooled(3, 12, 4, 1.0, thinks), 0.001)
    np.testing.assert_allclose(point.response_s("job"), 1 + thinks, rtol=1e-3)


def test_classes_of_a_session_are_weighed_by_their_number() -> None:
    network = Network(
        "session",
        (Station("server", 1),),
        (RequestClass("short", Visit("server", Exponential(0.1))), RequestClass("long", Delay(Deterministic(5.0)))),
        Open(1.0, {"visit": 1.0}),
        sessions=(Session("visit", ("short", "long", "short"), (Deterministic(1.0),) * 2),),
    )
    analysis = Analysis(network)
    assert analysis.share == pytest.approx({"short": 2 / 3, "long": 1 / 3})
    assert float(analysis.saturation_per_s[0]) == pytest.approx(15.0)
    point = solve(analysis, 6.0)  # four visits a second of 0.1 s
    assert float(point.response_s("short")[0]) == pytest.approx(0.1 / 0.6, rel=1e-9)
    assert float(point.response_s("short", "long")[0]) == pytest.approx((2 * 0.1 / 0.6 + 5) / 3, rel=1e-9)


VISIT = Visit("server", Exponential(1.0))


@pytest.mark.parametrize(
    ("flow", "station", "named"),
    [
        (Hedge(VISIT, 0.5, VISIT), Station("server", 1), "hedge"),
        (VISIT, Station("server", 1, expiry_s=1.0), "expiry_s"),
        (VISIT, Station("server", 1, expiry_s=0.0), "expiry_s"),
        (VISIT, Station("server", 1, pauses=(Pauses(Exponential(1.0), Exponential(0.1), name="gc"),)), "pauses"),
        (Delay(Exponential(1.0)), Station("server", 1), "station"),
        (ForkJoin((VISIT,), 0), Station("server", 1), "detached"),
    ],
)
def test_what_the_solver_does_not_know_is_refused_by_name(flow: Step, station: Station, named: str) -> None:
    with pytest.raises(RefusedError, match=named):
        solve(Analysis(model(flow, station)), 0.5)


def test_hosts_are_refused_by_name() -> None:
    hosted = Network(
        "hosted",
        (Station("server", 1, host="box"),),
        (RequestClass("job", VISIT),),
        Open(1.0, {"job": 1.0}),
        hosts=(Host("box", 2),),
    )
    with pytest.raises(RefusedError, match="host"):
        Analysis(hosted)


def test_a_choice_weighs_the_work() -> None:
    flow = Choice((0.25, 0.75), (VISIT, Sequence(())))
    assert float(Analysis(model(flow, Station("server", 1))).saturation_per_s[0]) == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("policy", "weights", "share"), [("random", (3.0, 1.0), 0.75), ("random", (0.0, 2.0), 0.0), ("first", (), 1.0)]
)
def test_a_route_takes_its_targets_by_their_weights(
    policy: Literal["random", "first"], weights: tuple[float, ...], share: float
) -> None:
    """Two M/M/1 queues in pools of their own; another class takes the targets in the other order, or as often."""
    targets = [
        Acquire(pool, Visit(name, Exponential(mean_s))) for pool, name, mean_s in (("p", "a", 1.0), ("q", "b", 2.0))
    ]
    flows = (Route(policy, tuple(order), weights=weights) for order in (targets, targets[::-1]))
    made = Network(
        "routes",
        (Station("a", 1), Station("b", 1)),
        tuple(RequestClass(name, flow) for name, flow in zip("xy", flows, strict=True)),
        Open(0.2, {"x": 0.5, "y": 0.5}),
        (Pool("p", 500), Pool("q", 500)),
    )
    found = solve(Analysis(made), 0.2)
    means_s = 1 / (1 - 0.1), 1 / (0.5 - 0.1)  # each station has half of the requests
    for name, part in (("x", share), ("y", 1 - share)):
        expected = part * means_s[0] + (1 - part) * means_s[1]
        assert found.response_s(name)[0] == pytest.approx(expected, rel=5e-3)
