"""Objectives: what the grammar accepts, how an objective is judged, and which input is refused."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.planner.predictions import prediction

from capplan.answers.objective import Metric, Objective, parse
from capplan.answers.results import Band
from capplan.answers.verdict import CONFIDENCE
from capplan.errors import InputError

CLASSES, RESOURCES = ("auth", "acct"), ("cassandra", "front")


def read(text: str) -> Objective:
    return parse(text, CLASSES, RESOURCES)


@pytest.mark.parametrize(
    ("text", "name", "bounds"),
    [
        ("acct.p99<20ms", "acct.p99", (0.02,)),
        ("auth.mean <= 5 ms", "auth.mean", (0.005,)),
        ("auth.p99.9<2s", "auth.p999", (2.0,)),
        ("drop_rate<0.1%", "drop_rate", (0.001,)),
        ("drop_rate < 0.1 %", "drop_rate", (0.001,)),
        ("drop_rate<0.001", "drop_rate", (0.001,)),
        ("cassandra.utilisation<80%", "cassandra.utilisation", (0.8,)),
        ("front.busy_workers<=32", "front.busy_workers", (32.0,)),
        ("capacity>=7000", "capacity", (7000.0,)),
        ("capacity>=90/min", "capacity", (1.5,)),
        ("acct.mean in 5ms..20ms", "acct.mean", (0.005, 0.02)),
        ("cassandra.utilisation in 40% .. 80%", "cassandra.utilisation", (0.4, 0.8)),
    ],
)
def test_a_comparison(text: str, name: str, bounds: tuple[float, ...]) -> None:
    (comparison,) = read(text).comparisons()

    assert comparison.metric.name == name
    assert comparison.bounds == bounds


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("acct.p99<banana", "banana"),
        ("acct.p99<20", "20ms"),
        ("acct.p99<20mz", "mz"),
        ("acct.p99<nan", "nan"),
        ("acct.p99<-5ms", "-5ms"),
        ("acct.p99<1e999ms", "1e999ms"),
        ("acct.p98<20ms", "p99"),
        ("acc.p99<20ms", "acct"),
        ("cassandra.p99<20ms", "auth"),
        ("casandra.utilisation<80%", "cassandra"),
        ("cassandra.utilization<80%", "utilisation"),
        ("cassandra.utilisation<80", "80%"),
        ("cassandra.utilisation<800", "800"),
        ("cassandra.utilisation<much", "much"),
        ("front.busy_workers<few", "few"),
        ("capacity>7,00", "7.00"),
        ("capacty>7000", "capacity"),
        ("20ms>acct.p99", "20ms"),
        ("acct.p99=20ms", "<="),
        ("acct.p99 is 20ms", "is"),
        ("acct.p99", "acct.p99"),
        ("acct.p99<", "acct.p99<"),
        ("acct.p99<20ms acct.mean<5ms", "acct.mean"),
        ("acct.p99<20ms and", "the end"),
        ("and acct.p99<20ms", "and"),
        ("(acct.p99<20ms", ")"),
        ("acct.p99<20ms)", ")"),
        ("acct.p99<20ms (", "acct.p99<"),
        ("()", ")"),
        ("", "empty"),
        ("acct.p99 in 20ms", "5ms..20ms"),
        ("acct.p99 in 20ms..5ms", "20ms..5ms"),
        ("(" * 900, "parentheses"),
        ("acct.p99<20ms or " * 100, "1000"),
        ("__import__('os').system('x')<1", "not a metric"),
    ],
)
def test_refusals_are_one_sentence_that_names_the_value_or_the_nearest_right_thing(text: str, named: str) -> None:
    with pytest.raises(InputError, match=re.escape(named)) as refused:
        read(text)
    assert "\n" not in str(refused.value)


@given(st.text(alphabet="acuthp.9<>=()% 012msinandorcapacity", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        objective = read(text)
    except InputError:
        return
    assert objective.comparisons()


def test_names_are_free_where_none_are_given() -> None:
    assert parse("anything.p50<1s").metrics() == (Metric("anything", "p50", "duration"),)


def test_metrics_come_once() -> None:
    metrics = read("acct.p99<20ms and (acct.p99>1ms or drop_rate<1%)").metrics()

    assert [metric.name for metric in metrics] == ["acct.p99", "drop_rate"]


def truth(text: str, **values: float) -> bool:
    return bool(read(text).holds(lambda metric: values[metric.name.replace(".", "_")]))


def test_and_binds_closer_than_or() -> None:
    text = "auth.mean<1s or acct.mean<1s and drop_rate<1%"

    assert truth(text, auth_mean=0.5, acct_mean=2.0, drop_rate=0.5)
    assert not truth(f"({text.replace(' and', ') and')}", auth_mean=0.5, acct_mean=2.0, drop_rate=0.5)


@pytest.mark.parametrize(("relation", "below", "at", "above"), [("<", 1, 0, 0), ("<=", 1, 1, 0), (">", 0, 0, 1)])
def test_relations_at_their_bound(relation: str, below: int, at: int, above: int) -> None:
    found = [truth(f"capacity{relation}7000", capacity=value) for value in (6999.0, 7000.0, 7001.0)]

    assert found == [below, at, above]


def test_ranges_include_their_ends() -> None:
    found = [truth("capacity in 1..2", capacity=value) for value in (0.9, 1.0, 2.0, 2.1)]

    assert found == [False, True, True, False]


def test_draws_are_judged_one_by_one() -> None:
    draws = {"acct.p99": np.array([0.01, 0.03, 0.01]), "drop_rate": np.array([0.0, 0.0, 0.5])}
    found = read("acct.p99<20ms and drop_rate<1%").holds(lambda metric: draws[metric.name])

    assert found.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("text", "met", "sure"),
    [
        ("acct.mean<20ms", True, True),
        ("acct.mean<7ms", True, False),
        ("acct.mean<6ms", False, False),
        ("acct.mean<1ms", False, True),
        ("acct.mean>1ms", True, True),
        ("acct.mean in 1ms..20ms", True, True),
        ("acct.mean in 6ms..7ms", True, False),
        ("acct.mean in 1ms..2ms", False, True),
        ("drop_rate<1%", None, False),
        ("drop_rate<1% and acct.mean<1ms", False, True),
        ("drop_rate<1% or acct.mean<20ms", True, True),
        ("drop_rate<1% and acct.mean<20ms", None, False),
        ("capacity>=7000", True, True),
        ("cassandra.utilisation<90%", True, False),
        ("front.busy_workers<64", True, True),
    ],
)
def test_judged_by_a_prediction(text: str, met: bool | None, sure: bool) -> None:
    objective, figure = read(text), prediction().figure  # acct.mean is 6.05 (4.84 to 9.68) ms

    assert (objective.met(figure), objective.sure(figure)) == (met, sure)


def test_a_verdict_shows_its_figures_in_their_units() -> None:
    objective, figure = read("acct.mean<20ms and drop_rate<1%"), prediction().figure
    latency, drop_rate = objective.judged(figure, objective.risk(figure), CONFIDENCE).comparisons

    assert latency.value is not None
    assert latency.value.value == pytest.approx(6.05, rel=1e-12)
    assert latency.value.parts.model_error is None
    assert (latency.unit, latency.text) == ("ms", "acct.mean<20ms")
    assert drop_rate.value is None


def test_an_unbounded_time_meets_no_upper_bound() -> None:
    unbounded = Band(math.inf, math.inf, math.inf)
    objective = read("acct.p99<20ms")

    assert (objective.met(lambda _: unbounded), objective.risk(lambda _: unbounded)) == (False, 1.0)


@pytest.mark.parametrize(
    ("text", "risk", "answer"),
    [
        ("acct.mean<9.68ms", 0.05, "yes"),  # the ends of a band are its 5th and 95th percentile
        ("acct.mean<6.05ms", 0.5, "uncertain"),
        ("acct.mean<4.84ms", 0.95, "no"),
        ("acct.mean>4.84ms", 0.05, "yes"),
        ("acct.mean in 4.84ms..9.68ms", 0.1, "yes"),
        ("acct.mean<9.68ms and acct.mean>6.05ms", 0.5, "uncertain"),  # figures of one run are high or low together
        ("acct.mean<9.68ms or acct.mean<4.84ms", 0.05, "yes"),
        ("drop_rate<1%", None, None),  # not modelled
        ("drop_rate<1% and acct.mean<9.68ms", None, None),
        ("drop_rate<1% and acct.mean<4.84ms", 0.95, "no"),
        ("drop_rate<1% or acct.mean<9.68ms", 0.05, "yes"),  # what is not modelled makes nothing safer
        ("acct.mean<9.68ms or drop_rate<1%", 0.05, "yes"),
    ],
)
def test_the_risk_is_read_off_the_bands(text: str, risk: float | None, answer: str | None) -> None:
    objective, figure = read(text), prediction().figure
    found = objective.risk(figure)
    judged = objective.judged(figure, found, CONFIDENCE)

    assert (None if found is None else round(found, 6), judged.risk, judged.answer) == (risk, found, answer)
