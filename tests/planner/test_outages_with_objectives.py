"""After an outage the capacity is that with the objectives met, as in the headline."""

from functools import cache

import pytest

from capplan.answers.results import Outage
from capplan.planner.predict.predict import predict
from capplan.planner.predict.prediction import Prediction
from capplan.systems.registry import scenario

LIMIT_MS = 50.0
SLO = (f"read.p99<{LIMIT_MS:g}ms",)


@cache
def fedora4(nodes: int, tps: float, *slo: str) -> Prediction:
    return predict(scenario("fedora4", nodes=nodes, tps=tps, slo=slo), engine="analytic")


def outage(of: Prediction) -> Outage:
    (row,) = of.outages
    assert row.capacity_tps is not None
    return row


def capacity(of: Prediction) -> float:
    assert of.peak_tps is not None
    return of.peak_tps.value


def test_what_is_left_is_what_as_many_nodes_carry_with_the_objectives_met() -> None:
    """A few draws stand for all in the ratio of both: 2 %."""
    left = outage(fedora4(4, 300.0, *SLO)).capacity_tps
    assert left is not None
    assert left.value == pytest.approx(capacity(fedora4(3, 300.0, *SLO)), rel=0.02)
    assert left.value < capacity(fedora4(4, 300.0, *SLO))


def test_at_that_rate_the_objective_is_at_its_limit() -> None:
    rate = outage(fedora4(4, 300.0, *SLO)).capacity_tps
    assert rate is not None
    p99 = outage(fedora4(4, rate.value, *SLO)).latency_ms["read"].p99
    assert p99 is not None
    assert p99.value == pytest.approx(LIMIT_MS, rel=0.1)


def test_a_rate_that_is_carried_but_misses_the_objective_is_not_carried_with_it() -> None:
    rate = outage(fedora4(4, 300.0)).capacity_tps
    assert rate is not None
    plain, limited = (outage(fedora4(4, 0.9 * rate.value, *slo)) for slo in ((), SLO))

    assert plain.risk is not None
    assert limited.risk is not None
    assert limited.risk > 0.5 > plain.risk
    assert (plain.answer, limited.answer) == ("yes", "uncertain")


def test_an_objective_that_always_holds_changes_nothing() -> None:
    plain, limited = (outage(fedora4(4, 300.0, *slo)) for slo in ((), ("read.p99<100s",)))
    assert plain.capacity_tps == limited.capacity_tps
