"""Pools inside pools: the analytic solver finds the rate at which their units are always held."""

import numpy as np
import pytest

from capplan.models.language.distribution import Deterministic, Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Pool, Station
from capplan.models.language.step import Acquire, Choice, Delay, Sequence, Step, Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import capacity_per_s


def system(inside: Step, threads: int) -> Network:
    flow = Acquire("workers", Sequence((Visit("server", Exponential(1e-4), name="work"), inside)))
    return Network(
        name="nested",
        stations=(Station("server", 4, discipline="ps"),),
        pools=(Pool("workers", 4000, 100), Pool("threads", threads)),
        classes=(RequestClass("request", flow),),
        traffic=Open(1.0, {"request": 1.0}),
    )


def test_a_pool_inside_another_bounds_the_rate_at_size_over_hold_time() -> None:
    held = Acquire("threads", Delay(Deterministic(0.5)))
    analysis = Analysis(system(held, threads=100))
    assert analysis.inner_pools_per_s == pytest.approx(np.array([200.0]))
    assert capacity_per_s(analysis, 1e-3) == pytest.approx(np.array([200.0]), rel=1e-3)


def test_a_pool_that_some_requests_hold_counts_their_share() -> None:
    some = Choice((0.25, 0.75), (Acquire("threads", Delay(Deterministic(0.5))), Delay(Deterministic(0.0))))
    assert Analysis(system(some, threads=100)).inner_pools_per_s == pytest.approx(np.array([800.0]))


def test_without_an_inner_pool_there_is_no_bound() -> None:
    assert np.isinf(Analysis(system(Delay(Deterministic(0.5)), threads=100)).inner_pools_per_s).all()
