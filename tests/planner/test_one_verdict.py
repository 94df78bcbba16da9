"""One question has one verdict, whichever verb is asked: `predict`, `sweep`, `check` or `size`.

The questions are random layouts at random rates, with and without objectives and losses. All draws count everywhere, so
the risks are equal, not alike. The default is 2 questions; the tests marked `slow` ask 13 more,
those marked `trust` the other 16.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from tests.planner.random_questions import question

from capplan.answers.verdict import CONFIDENCE, Verdict
from capplan.errors import InputError
from capplan.layout.components import Machines
from capplan.layout.situations import Losses
from capplan.models.language.scenario import Scenario, changed
from capplan.planner.check import Specification, check
from capplan.planner.compare import compare
from capplan.planner.predict.predict import predict
from capplan.planner.size.size import SizingQuestion, size
from capplan.planner.sweep import DEFAULT_RATES, OfferedRates, Sweep, SweepPoint, layouts_of, points_of
from capplan.planner.what_if import what_if
from capplan.systems.registry import scenario, system

RATED = [number for number in range(34) if number not in (1, 6, 23)]  # the others are ratios
USUAL, SLOW = 2, 15
CONFIDENCES = (CONFIDENCE, CONFIDENCE, 0.8, 0.99)
SAME = 1e-3  # a table has four digits of a risk


@dataclass(frozen=True)
class Asked:
    """A layout with a rate, what it must survive, and how surely."""

    scenario: Scenario
    tps: float
    lose: tuple[str, ...]
    confidence: float


EVERY = pytest.mark.parametrize(
    "number",
    [
        *RATED[:USUAL],
        *(pytest.param(n, marks=pytest.mark.slow) for n in RATED[USUAL:SLOW]),
        *(pytest.param(n, marks=pytest.mark.trust) for n in RATED[SLOW:]),
    ],
    scope="module",  # the verbs of a question follow one another, and share its answer
)


@lru_cache
def asked(number: int) -> Asked:
    of, random = question(number), np.random.default_rng([32, number])
    given = getattr(of.scenario, "tps", None)
    tps = given or float(f"{of.capacity * random.uniform(0.1, 1.5):.3g}")
    fields: dict[str, Any] = {"tps": tps}
    if getattr(of.scenario, "data_factor", None) == 1.0 and random.random() < 0.5:
        fields["data_factor"] = None  # as tested, which is a condition
    kinds = [
        kind for kind in system(of.name).component(Losses).kinds if kind != "dc" or getattr(of.layout, "dcs", 1) > 1
    ]
    lose = tuple(kind for kind in kinds if random.random() < 0.4)
    return Asked(changed(of.scenario, **fields), tps, lose, float(random.choice(CONFIDENCES)))


@lru_cache(maxsize=2)
def predicted(number: int, *lose: str) -> Verdict:
    of = asked(number)
    found = predict(of.scenario, engine="analytic", confidence=of.confidence, lose=lose).verdict
    assert found is not None
    return found


def swept(of: Asked) -> SweepPoint:
    rates = OfferedRates("given", (of.tps,))
    ((configuration,)) = Sweep(of.scenario.system, layouts_of(of.scenario, {}), rates).configurations()
    (point,) = points_of(configuration.subject, 0)
    return point


@EVERY
def test_check_has_the_verdict_of_predict(number: int) -> None:
    of = asked(number)
    found = check(Specification(of.scenario, of.lose, of.confidence), engine="analytic").verdict

    assert found == predicted(number, *of.lose)
    assert [each.situation for each in found.situations] == ["normal", *of.lose]


@EVERY
def test_size_takes_a_layout_exactly_if_predict_says_yes(number: int) -> None:
    of, its = asked(number), system(question(number).name)
    fixed = {
        name: getattr(of.scenario, name) for name in (*its.component(Machines).sized, *its.component(Machines).families)
    }
    if not its.component(Machines).sized or not all(isinstance(value, int) for value in fixed.values()):
        return  # data centres of unequal size are not sized
    asks = SizingQuestion(
        of.lose,
        of.confidence,
        sized={name: (fixed[name], fixed[name]) for name in its.component(Machines).sized},
        families={name: (fixed[name],) for name in its.component(Machines).families},
        engine="analytic",
    )
    if any("capacity" in text for text in of.scenario.slo):
        with pytest.raises(InputError, match="is about the capacity"):
            size(of.scenario, asks)
        return
    sizing, expected = size(of.scenario, asks), predicted(number, *of.lose)
    found = sizing.chosen

    assert (found is not None) is (expected.answer == "yes"), (found, expected)
    assert sizing.answer == expected.answer
    if found is not None:
        risks = {each.situation: each.risk for each in expected.situations}
        assert {each.conditions: each.risk for each in found.safety} == pytest.approx(risks)


@EVERY
def test_a_sweep_has_the_verdict_of_predict(number: int) -> None:
    """A sweep judges with the usual confidence, and loses nothing."""
    of = asked(number)
    point, expected = swept(of), predict(of.scenario, engine="analytic").verdict

    assert expected is not None
    assert (point["answer"], point["risk"]) == (expected.answer, pytest.approx(expected.risk, rel=SAME))


def test_an_objective_about_the_capacity_alone_does_not_count_a_rate_that_nobody_gave() -> None:
    """The default rate of one client of arion is above the capacity in three of ten repeats."""
    base = scenario("arion", clients=1, slo=("capacity>=100",))
    found = predict(base, engine="analytic")
    assert found.offered is not None
    assert found.offered.overload_risk > 0.1
    assert found.verdict is not None
    assert found.verdict.answer == "yes"
    sweep = Sweep("arion", layouts_of(base, {}), DEFAULT_RATES)
    (row,) = [point for each in sweep.configurations() for point in points_of(each.subject, 0)]
    assert (row["answer"], row["risk"]) == ("yes", pytest.approx(found.verdict.risk, abs=SAME))
    given = predict(changed(base, tps=found.offered.peak_tps), engine="analytic").verdict
    assert given is not None
    assert given.risk == found.offered.overload_risk


def test_a_rate_that_was_given_counts_in_every_verb() -> None:
    """At 40,000 TPS nodes are overloaded, whatever the objective about the capacity says."""
    base = scenario("openprovider", dcs=3, cass_nodes=6, slo=("capacity>5000",))
    sweep = Sweep("openprovider", layouts_of(base, {}), OfferedRates("given", (40_000.0,)))
    (row,) = [point for each in sweep.configurations() for point in points_of(each.subject, 0)]
    compared = compare(changed(base, tps=40_000.0), changed(base, cass_nodes=7), engine="analytic").verdicts
    followed = what_if(changed(base, tps=40_000.0)).verdict

    assert followed is not None
    assert [row["answer"], *(each.answer for each in compared), followed.answer] == ["no"] * 4


def test_the_page_of_what_if_says_what_predict_says() -> None:
    asked = scenario("openprovider", dcs=3, cass_nodes=6, tps=6000.0, slo=("acct.mean<100ms",))
    found = what_if(asked)
    said = predict(asked, engine="analytic")

    assert found.verdict == said.verdict
    assert said.peak_tps is not None
    assert (found.capacity.low, found.capacity.high) == (said.peak_tps.low, said.peak_tps.high)
    assert found.whole.scenario == asked
    assert what_if(scenario("openprovider")).verdict is None


@pytest.mark.slow
def test_the_page_of_what_if_has_the_losses_of_predict() -> None:
    asked = scenario("openprovider", dcs=3, cass_nodes=6, tps=6000.0, slo=("acct.p99<100ms",))
    found, said = what_if(asked).losses, predict(asked, engine="analytic").outages

    assert found["risk"].tolist() == [each.risk for each in said]
    assert found["high_tps"].tolist() == [each.capacity_tps.high if each.capacity_tps else 0 for each in said]


def test_a_loss_that_is_named_twice_counts_once() -> None:
    asked = scenario("openprovider", dcs=3, tps=2000.0)
    once, twice = (predict(asked, engine="analytic", lose=lose) for lose in (("dc",), ("dc", "dc")))

    assert twice == once


def test_a_layout_is_not_sized_for_an_objective_about_the_capacity() -> None:
    with pytest.raises(InputError, match="capacity>50000"):
        size(scenario("openprovider", tps=5000.0, slo=("capacity>50000",)), SizingQuestion(engine="analytic"))
