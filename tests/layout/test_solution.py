"""Figures of a layout at its capacity, by hand; percentiles where they are asked for."""

from dataclasses import replace

import numpy as np
import pytest

from capplan.layout.ensemble import spaced
from capplan.layout.solution import Solution, varied
from capplan.models.language.distribution import Deterministic, Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import RateTable, Station
from capplan.models.language.step import Delay, Sequence, Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.systems.registry import resolve, scenario


def test_servers_that_slow_down_are_as_busy_at_the_capacity_as_their_birth_death_process() -> None:
    """The disk limits the rate to 10/s; the front has work 0.5 then, and speeds 1, 2, 1.6, 1, 1 ..."""
    slowing = Station("front", 2, rate=RateTable((1.0, 1.0, 0.8, 0.5)))
    flow = Sequence((Visit("front", Exponential(0.05)), Visit("disk", Exponential(0.1))))
    traffic, classes = Open(1.0, {"read": 1.0}), (RequestClass("read", flow),)
    solution = Solution(Network("it", (slowing, Station("disk", 1)), classes, traffic), {"read": ("read",)})
    weights = np.array([1.0, 1 / 2, 1 / 8, 5 / 128, *(5 / 128 * 0.5**n for n in range(1, 60))])

    assert solution.capacity == pytest.approx(10.0)
    assert solution.utilisation_at_capacity("front") == pytest.approx((1 / 4 + weights[2:].sum()) / weights.sum())
    assert solution.utilisation_at_capacity("disk") == pytest.approx(1.0)


def test_a_speed_that_varies_stretches_work_and_no_distance() -> None:
    """A response is the distance, 80 ms, and an exponential time T with the mean 20 ms, over a speed.

    With the log-sd 0.5, its variance is that of T over the speed: E[T²] exp(0.5²) - E[T]².
    """
    flow = Sequence((Delay(Deterministic(0.08)), Visit("node", Exponential(0.01))))
    classes = (RequestClass("read", flow),)
    its = Solution(Network("it", (Station("node", 1),), classes, Open(1.0, {"read": 1.0})), {"read": ("read",)}).at(
        50.0
    )
    point = varied(its.point, np.array([0.5]))
    weight, mean, variance, _ = (each[0] for each in point.states[0].parts("read"))
    second = weight @ (variance + (mean - 0.1) ** 2)

    assert weight @ mean == pytest.approx(0.1)
    assert mean.min() > 0.08
    assert second == pytest.approx(2 * 0.02**2 * np.exp(0.25) - 0.02**2, rel=2e-3)
    assert point.quantile_s(0.001, "read")[0] >= 0.08


@pytest.mark.parametrize("solved", [8, 512])
@pytest.mark.parametrize("factor", [None, 1.5])
def test_a_percentile_with_pauses_is_the_same_where_it_is_asked_for(solved: int, factor: float | None) -> None:
    """At some rates of some draws, each with pauses of its own, also where others represent it."""
    case = resolve(scenario("openprovider", dcs=1, cass_nodes=3))
    figures = replace(case, draws=solved).solution.at_shares(np.array([0.3, 0.7, 0.95])[:, None])
    percentile = figures.percentile("acct", "p99", None if factor is None else lambda each: factor * each)
    everywhere, draws = percentile(), spaced(512, 20)
    assert everywhere.shape == (3, 512)
    for rate in range(3):
        at = (np.full(len(draws), rate), draws)
        assert percentile(at) == pytest.approx(everywhere[at], rel=1e-9)
