"""The data factor is the ratio of CPU a request at the same rates, with a band that holds it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from capplan.evidence.data_factor import SCATTER, DataFactor, data_factor
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.models.errors import InputError

FRESH, AGED = "data_gib == 10", "data_gib == 400"


def table(*runs: tuple[float, float, float], **fields: Any) -> pd.DataFrame:
    """Return runs of (data, rate, CPU in percent)."""
    rows = [
        LoadTestRow(run_id=f"r{number}", data_gib=data, throughput_tps=tps, node_cpu_percent=cpu, cass_nodes=6, rf=3)
        for number, (data, tps, cpu) in enumerate(runs)
    ]
    return LOAD_TESTS.frame([replace(row, **fields) for row in rows])


def found(*runs: tuple[float, float, float], **fields: Any) -> DataFactor:
    return data_factor(table(*runs, **fields), FRESH, AGED)


def test_two_runs_give_the_factor_and_a_band() -> None:
    factor = found((10, 5000, 20.0), (400, 5000, 30.0)).factor
    assert factor.value == pytest.approx(1.5)
    assert 1.2 < factor.low < 1.4
    assert 1.6 < factor.high < 1.8


def test_rates_are_compared_with_their_own_and_pooled_by_their_runs() -> None:
    """At 2,000/s the same nodes use more CPU a request: a ratio across rates would be another."""
    its = found((10, 2000, 12.0), (400, 2000, 18.0), (10, 5000, 20.0), (400, 5010, 30.06), (400, 9000, 50.0))
    assert [each.factor.value for each in its.rates] == pytest.approx([1.5, 1.5])
    assert its.factor.value == pytest.approx(1.5)
    assert its.factor.high < its.rates[0].factor.high
    assert its.rates[0].fresh_percent == pytest.approx(6.0)


def test_classes_of_a_run_share_its_cpu() -> None:
    one = table((10, 5000, 20.0), (400, 5000, 30.0))
    classes = [one.assign(request_class=name, throughput_tps=2500.0) for name in ("read", "write")]
    assert data_factor(pd.concat(classes), FRESH, AGED) == data_factor(one, FRESH, AGED)


def test_the_band_holds_the_factor_in_nine_of_ten_tables() -> None:
    """1,000 tables of three and three runs; a binomial number of 90 % lies within 0.875 and 0.925 by 99 %."""
    random, held = np.random.default_rng(7), 0
    for _ in range(1000):
        errors = np.exp(SCATTER * random.standard_normal(6))
        runs = [(10, 5000, 20 * error) for error in errors[:3]] + [(400, 5000, 28 * error) for error in errors[3:]]
        factor = found(*runs).factor
        held += factor.low <= 1.4 <= factor.high
    assert 0.875 <= held / 1000 <= 0.95  # what the repeats count besides makes it a little wide


@pytest.mark.parametrize(
    ("runs", "fields", "sentence"),
    [
        ([(10, 5000, 20.0), (400, 6000, 30.0)], {}, "no rate is in both, such as 5,000/s of fresh and 6,000/s"),
        ([(10, 5000, 20.0)], {}, "'data_gib == 400' keeps none of the 1 rows"),
        ([(10, 5000, 20.0), (400, 5000, None)], {}, "run r1 has no node_cpu_percent"),
        ([(10, 5000, 20.0), (400, 5000, 30.0)], {"node_cores": [8.0, 16.0]}, "rows differ in node_cores"),
    ],
)
def test_what_is_no_comparison_is_refused(runs: Any, fields: Any, sentence: str) -> None:
    frame = table(*runs)
    for name, values in fields.items():
        frame[name] = values
    with pytest.raises(InputError, match=sentence):
        data_factor(frame, FRESH, AGED)
