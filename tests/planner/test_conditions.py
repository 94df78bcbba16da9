"""No answer hangs on what nobody measured without saying so: random questions, each at two values of the data factor.

The environment variable CAPPLAN_TRUST_CONDITIONS says how many are asked.
"""

import os
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.planner.predictions import few_draws

from capplan.models.condition import Condition
from capplan.models.errors import InputError
from capplan.models.language.scenario import changed
from capplan.planner.predict.predict import predict
from capplan.planner.predict.prediction import Prediction
from capplan.planner.size.size import SizingQuestion, size
from capplan.planner.size.sizing import Sizing
from capplan.systems.registry import scenario

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


def warned(conditions: tuple[Condition, ...]) -> bool:
    """Whether a condition says that the answer changes before the work has grown as far."""
    return any(each.break_even is not None and each.break_even < AGED for each in conditions)


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
        (found,) = unstated.conditions
        assert found.at_high.capacity_tps <= aged.peak_tps.value <= found.at_low.capacity_tps


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
        assert any(each.at_high is not None and each.at_high.cost is None for each in unstated.conditions)
    elif aged.chosen.cost > QUARTER * fresh.chosen.cost:
        assert warned(unstated.conditions)
        assert any(
            each.at_high is not None and (each.at_high.cost is None or each.at_high.cost >= aged.chosen.cost)
            for each in unstated.conditions
        )
