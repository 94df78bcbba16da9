"""No answer hangs on what nobody measured without saying so: random questions, each at several values of it.

The environment variable CAPPLAN_TRUST_CONDITIONS says how many are asked.
"""

import math
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.planner.predictions import few_draws

from capplan.answers.condition import Condition
from capplan.errors import InputError
from capplan.models.language.scenario import changed
from capplan.planner.assumed_pauses import AssumedPauses, assumed_pauses
from capplan.planner.conditions import break_even
from capplan.planner.predict.predict import predict
from capplan.planner.predict.prediction import Prediction
from capplan.planner.size.size import SizingQuestion, size
from capplan.planner.size.sizing import Sizing
from capplan.systems.registry import resolve, scenario

NUMBERS = range(int(os.environ.get("CAPPLAN_TRUST_CONDITIONS", "5")))
AGED = 2.45  # times the work of the tests: the divisor of all capacities before conditions
QUARTER = 1.25
LEVELS = ("ONE", "LOCAL_QUORUM", "QUORUM")


class Asked(NamedTuple):
    """An answer that states nothing, and those at both factors."""

    unstated: Any
    fresh: Any
    aged: Any


def each_factor(ask: Any, fields: dict[str, Any]) -> Asked:
    base = scenario("openprovider")
    return Asked(*(ask(changed(base, data_factor=factor, **fields)) for factor in (None, 1.0, AGED)))


def about(number: int) -> tuple[np.random.Generator, dict[str, Any]]:
    """Return a random layout and its traffic, the same for the same number."""
    random = np.random.default_rng([20261130, number])
    fields: dict[str, Any] = {
        "dcs": int(random.integers(1, 4)),
        "rf": int(random.choice([2, 3])),
        "consistency_write": str(random.choice(LEVELS)),
        "tps": float(np.exp(random.uniform(np.log(500), np.log(25_000)))).__round__(-1),
    }
    if random.random() < 0.4:
        fields["slo"] = (f"acct.p99<{random.choice([20, 40, 80, 200])}ms",)
    return random, fields


def of_data(conditions: tuple[Condition, ...]) -> list[Condition]:
    return [each for each in conditions if each.option == "--data-factor"]


def warned(conditions: tuple[Condition, ...]) -> bool:
    """Whether a condition says that the answer changes before the work has grown as far."""
    return any(each.break_even is not None and each.break_even < AGED for each in of_data(conditions))


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS)
def test_a_prediction_that_hangs_on_the_data_says_so(number: int) -> None:
    random, fields = about(number)
    fields["cass_nodes"] = int(random.integers(3, 13))

    def ask(layout: Any) -> Prediction:
        return predict(layout, fitted=few_draws(), engine="analytic")

    unstated, fresh, aged = each_factor(ask, fields)

    assert unstated.peak_tps == fresh.peak_tps
    assert unstated.verdict.answer == fresh.verdict.answer
    if aged.verdict.answer != fresh.verdict.answer:
        assert warned(unstated.conditions)
    if aged.peak_tps.value * QUARTER < fresh.peak_tps.value:
        (found,) = of_data(unstated.conditions)
        assert found.at_low is not None
        assert found.at_high is not None
        assert (found.at_high.capacity_tps or 0.0) <= aged.peak_tps.value <= (found.at_low.capacity_tps or 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS)
def test_a_purchase_that_hangs_on_the_data_says_so(number: int) -> None:
    random, fields = about(number)
    survive = tuple(random.choice(["node", "dc", "front"], size=random.integers(0, 2), replace=False))
    question = SizingQuestion(
        survive=tuple(str(each) for each in survive if fields["dcs"] > 1 or each != "dc"),
        families={"dcs": (fields.pop("dcs"),)},
        sized={"cass_nodes": (3, 40), "front_nodes": (1, 8)},
        engine="analytic",
    )

    def ask(layout: Any) -> Sizing | str:
        try:
            return size(layout, question, fitted=few_draws())
        except InputError as error:
            return str(error)

    unstated, fresh, aged = each_factor(ask, fields)
    if isinstance(fresh, str):
        assert (unstated, aged) == (fresh, fresh)
        return

    assert unstated.answer == fresh.answer
    if fresh.chosen is None:
        assert unstated.chosen is None
        return
    assert unstated.chosen.machines == fresh.chosen.machines
    if aged.chosen is None:
        assert warned(unstated.conditions)
        assert any(each.at_high is not None and each.at_high.cost is None for each in of_data(unstated.conditions))
    elif aged.chosen.cost > QUARTER * fresh.chosen.cost:
        assert warned(unstated.conditions)
        assert any(
            each.at_high is not None and (each.at_high.cost is None or each.at_high.cost >= aged.chosen.cost)
            for each in of_data(unstated.conditions)
        )


def timed(number: int) -> tuple[np.random.Generator, Any]:
    """Return a random layout on fresh data with an objective that pauses may decide."""
    random = np.random.default_rng([20261201, number])
    limit = random.choice([8, 15, 30, 60, 120])
    return random, changed(
        scenario("openprovider"),
        data_factor=1.0,
        dcs=int(random.integers(1, 4)),
        consistency_write=str(random.choice(LEVELS)),
        tps=float(np.exp(random.uniform(np.log(2000), np.log(15_000)))).__round__(-1),
        slo=(f"{random.choice(['auth', 'acct'])}.{random.choice(['p99', 'p999'])}<{limit}ms",),
    )


def assumed(layout: Any) -> AssumedPauses:
    found = assumed_pauses(resolve(layout, few_draws()), layout.tps)
    assert found is not None
    return found


def predicted(layout: Any, gc: str | None = None) -> Prediction:
    return predict(changed(layout, gc=gc), fitted=few_draws(), engine="analytic")


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS)
def test_an_objective_holds_below_the_break_even_of_the_pauses_and_fails_above(number: int) -> None:
    random, layout = timed(number)
    layout = changed(layout, cass_nodes=int(random.integers(3, 13)))
    about, unstated = assumed(layout), predicted(layout)
    assert unstated.verdict is not None

    def holds(share: float) -> bool:
        stated = predicted(layout, about.as_field(share))
        assert stated.verdict is not None
        assert stated.conditions == ()
        return stated.verdict.answer == "yes"

    if not unstated.conditions:
        assert holds(about.looked_at[0]) == holds(about.looked_at[1])
        return
    (condition,) = unstated.conditions
    assert condition.break_even is not None
    assert holds(0.98 * condition.break_even)
    assert not holds(1.02 * condition.break_even)
    if unstated.verdict.answer == "yes":  # most of the published nodes pause less
        assert condition.break_even > condition.value


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS)
def test_a_purchase_is_safe_below_the_break_even_of_the_pauses_and_not_above(number: int) -> None:
    _, base = timed(number)
    question = SizingQuestion(
        families={"dcs": (base.dcs,)}, sized={"cass_nodes": (3, 30), "front_nodes": (2, 2)}, engine="analytic"
    )
    found = size(base, question, fitted=few_draws())
    if not found.conditions:
        return
    (condition,) = found.conditions
    assert condition.break_even is not None
    assert condition.at_low is not None
    if found.chosen is None:
        assert condition.at_low.layout is not None
        return
    bought = found.chosen.fields["cass_nodes"]
    only = replace(question, sized={"cass_nodes": (bought, bought), "front_nodes": (2, 2)})
    about = assumed(changed(base, **found.chosen.fields))
    for share, safe in ((0.98, True), (1.02, False)):
        stated = changed(base, gc=about.as_field(share * condition.break_even))
        assert (size(stated, only, fitted=few_draws()).chosen is not None) == safe
    assert condition.at_high is not None
    for end in (condition.at_low, condition.at_high):
        stated_end = size(changed(base, gc=about.as_field(end.value)), question, fitted=few_draws()).chosen
        assert end.cost == (None if stated_end is None else stated_end.cost)


def test_without_an_objective_of_latency_pauses_are_no_condition() -> None:
    layout = changed(scenario("openprovider"), data_factor=1.0, cass_nodes=6, tps=5000.0)

    for slo in ((), ("drop_rate<1%",), ("acct.mean<20ms",)):
        assert assumed_pauses(resolve(changed(layout, slo=slo), few_draws()), 5000.0) is None
    assert assumed_pauses(resolve(changed(layout, slo=("acct.p99<20ms",), gc="none"), few_draws()), 5000.0) is None


def test_the_assumed_pauses_are_those_of_the_mean_published_node() -> None:
    """A record of them, at the share of the answer, has the same medians; half the nodes have twice the share."""
    layout = changed(scenario("openprovider"), data_factor=1.0, cass_nodes=6, tps=5000.0, slo=("acct.p99<20ms",))
    about, half = assumed(layout), assumed(changed(layout, cass_nodes=3))

    low, high = about.expected
    assert low < about.value < high
    assert half.value == pytest.approx(2 * about.value, rel=0.01)
    assert half.rate_per_s == pytest.approx(2 * about.rate_per_s)


@pytest.mark.parametrize(
    "margin",
    [
        lambda far: -far,
        lambda far: -3 * far**3,
        lambda far: math.inf if far <= 0 else -math.inf,
        lambda far: 1e-3 if far <= 0 else -7.0,
        lambda far: 7.0 if far <= 0 else -1e-3,
        lambda far: 0.0 if far <= 0 else -1e-9,
    ],
    ids=["line", "cubic", "sign", "steep beyond", "steep before", "flat"],
)
@pytest.mark.parametrize("truth", [1.05, 1.3, 2.7, 19.0])
def test_a_break_even_is_found_in_at_most_twice_the_steps_of_halving(
    margin: Callable[[float], float], truth: float
) -> None:
    asked = 0

    def counted(value: float) -> float:
        nonlocal asked
        asked += 1
        return margin(math.log(value / truth))

    assert break_even(counted, 1.0, 20.0) == pytest.approx(truth, rel=0.01)
    assert asked <= 2 * math.ceil(math.log2(math.log(20) / 0.01)) + 4


def test_an_answer_that_never_changes_has_no_break_even() -> None:
    assert break_even(lambda _: 0.5, 1.0, 20.0) is None
