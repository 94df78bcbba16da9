"""Which documented figures of `openprovider` are compared, and how close the model must come."""

from dataclasses import replace

import numpy as np
import pytest

from capplan.evidence.table import by_id
from capplan.models.language.parameter import defaults
from capplan.systems.openprovider.observations import predicted
from capplan.systems.openprovider.priors import PARAMETERS
from capplan.systems.registry import system

SYSTEM = system("openprovider")
ITS, ROWS = SYSTEM.observations, SYSTEM.evidence
TESTS = ITS.load_tests()


def test_five_experiments_in_four_independent_scenarios() -> None:
    assert [test.name for test in TESTS] == ["TS1", "TS2", "TS3", "TS4", "TS4-LDAP"]
    assert [test.fold for test in TESTS] == ["TS1", "TS2", "TS3", "TS4", "TS4"]


def test_the_layouts_are_the_documented_ones() -> None:
    layouts = [(t.scenario.dcs, t.scenario.front_nodes, t.scenario.cass_nodes, t.scenario.ldap) for t in TESTS]

    assert layouts == [(1, 1, 3, False), (1, 2, 3, False), (2, 2, 3, False), (3, 2, 3, False), (3, 2, 3, True)]


def test_the_hypotheses_are_carried_into_every_experiment() -> None:
    choice = {"consistency_read": "LOCAL_ONE", "consistency_write": "EACH_QUORUM"}

    for test in ITS.load_tests(choice):
        assert (test.scenario.consistency_read, test.scenario.consistency_write) == ("LOCAL_ONE", "EACH_QUORUM")


def test_each_experiment_has_a_rate_two_times_and_the_workers() -> None:
    for test in TESTS:
        figures = [(row.quantity, row.request_class) for row in test.rows]
        assert sorted(figures) == [
            ("busy_workers", ""),
            ("incoming_rate", ""),
            ("latency", "acct"),
            ("latency", "auth"),
        ]


def test_an_experiment_that_was_reported_twice_counts_once() -> None:
    ids = [row.id for test in TESTS for row in test.rows]

    assert len(ids) == len(set(ids)) == 20
    assert not any(".proxy." in name for name in ids)


def test_predictions_are_in_si_and_one_for_each_draw() -> None:
    values = {**defaults(PARAMETERS), "mutation_s": np.array([0.8e-3, 1.0e-3, 1.2e-3])}
    said = predicted(TESTS[0], values)

    assert set(said) == {row.id for row in TESTS[0].rows}
    assert all(value.shape == (3,) and np.all(value > 0) for value in said.values())
    assert np.all(np.diff(said["ts1.incoming"]) < 0)  # more work for each request, fewer of them
    assert np.all(said["ts1.acct_mean"] < 1)


def test_draws_do_not_touch_each_other() -> None:
    """An array of draws is answered as each of them would be alone."""
    slow = np.array([0.8e-3, 1.2e-3])
    together = predicted(TESTS[1], {**defaults(PARAMETERS), "mutation_s": slow})
    for number, value in enumerate(slow):
        alone = predicted(TESTS[1], {**defaults(PARAMETERS), "mutation_s": float(value)})
        for name in together:
            assert float(together[name][number]) == pytest.approx(float(alone[name][0]), rel=1e-9)


def test_the_goals() -> None:
    rows = by_id(ROWS)

    assert ITS.bounds_of(rows["ts1.incoming"]) == pytest.approx((6790.0, 7210.0))
    assert ITS.bounds_of(rows["ts1.acct_mean"]) == pytest.approx((3.5e-3, 4.5e-3))  # 10 % of 4 ms is less
    assert ITS.bounds_of(rows["ts4-ldap.auth_mean"]) == pytest.approx((11.7e-3, 14.3e-3))
    assert ITS.bounds_of(replace(rows["ts1.acct_mean"], value=5e-3)) == pytest.approx((4.5e-3, 5.5e-3))  # the two meet
    assert ITS.bounds_of(rows["ts1.busy_workers"]) is None
