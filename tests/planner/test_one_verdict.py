"""One question has one verdict, whichever verb is asked: `predict`, `sweep`, `check` or `size`.

The questions are random layouts at random rates, with and without objectives and losses. All draws count everywhere, so
the risks are equal, not alike. The default is 6 questions; the tests marked `slow` ask 50.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from tests.planner.random_questions import question

from capplan.models.language.scenario import Scenario, changed
from capplan.models.verdict import CONFIDENCE, Verdict
from capplan.planner.explore.sweep import OfferedRates, Sweep, layouts_of, points_of
from capplan.planner.explore.sweep_table import SweepPoint
from capplan.planner.predict.predict import predict
from capplan.planner.situations.check import Specification, check
from capplan.planner.size.size import SizingQuestion, size
from capplan.systems.registry import scenario, system

RATED = [number for number in range(58) if number not in (1, 6, 23, 34, 40, 45, 53, 54)]  # the others are ratios
USUAL = 6
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
    [n if place < USUAL else pytest.param(n, marks=pytest.mark.slow) for place, n in enumerate(RATED)],
    scope="module",  # the verbs of a question follow one another, and share its answer
)


@lru_cache
def asked(number: int) -> Asked:
    of, random = question(number), np.random.default_rng([32, number])
    given = getattr(of.scenario, "tps", None)
    tps = given or float(f"{of.capacity * random.uniform(0.1, 1.5):.3g}")
    fields: dict[str, Any] = {"tps": tps}
    if getattr(of.scenario, "data_factor", None) == 1.0 and random.random() < 0.5:
        fields["data_factor"] = None  # production data
    kinds = [kind for kind in system(of.name).losses if kind != "dc" or getattr(of.layout, "dcs", 1) > 1]
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
    fixed = {name: getattr(of.scenario, name) for name in (*its.sized, *its.families)}
    if not its.sized or not all(isinstance(value, int) for value in fixed.values()):
        return  # data centres of unequal size are not sized
    asks = SizingQuestion(
        of.lose,
        of.confidence,
        sized={name: (fixed[name], fixed[name]) for name in its.sized},
        families={name: (fixed[name],) for name in its.families},
        engine="analytic",
    )
    found, expected = size(of.scenario, asks).chosen, predicted(number, *of.lose)

    assert (found is not None) is (expected.answer == "yes"), (found, expected)
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
    given = predict(changed(base, tps=found.offered.peak_tps), engine="analytic").verdict
    assert given is not None
    assert given.risk == found.offered.overload_risk
