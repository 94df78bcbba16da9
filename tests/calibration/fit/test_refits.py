"""Refits without scenarios: predictions for a scenario do not depend on its own measurements."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.calibration.altered_systems import observing
from tests.calibration.fit.small_calibration import few_draws

from capplan.calibration.fit.posterior import maximum, problem, resampled
from capplan.calibration.fit.refits import Refits, folds, refitted
from capplan.calibration.fit.stages import Stages
from capplan.layout.observations import LoadTest
from capplan.layout.system import System
from capplan.models.language.parameter import from_log
from capplan.systems.registry import system

VCIDER = system("vcider")
START = VCIDER.fitted().most_probable
TESTS = VCIDER.observations.load_tests()
FOLDS = folds(TESTS)
ROWS = {row.id: row for test in TESTS for row in test.rows}
CHANGED = "r3.both"


def changed_in(fold: str) -> System[Any]:
    """The system, as if every figure of one scenario had been a third higher."""

    def altered(choice: Mapping[str, str] | None = None) -> tuple[LoadTest[Any], ...]:
        return tuple(_raised(test) if test.fold == fold else test for test in VCIDER.observations.load_tests(choice))

    return observing(VCIDER, load_tests=altered)


def _raised(test: LoadTest[Any]) -> LoadTest[Any]:
    rows = tuple(replace(row, value=row.value * 4 / 3, low=row.low * 4 / 3, high=row.high * 4 / 3) for row in test.rows)
    return replace(test, rows=rows)


def refits_with(its: System[Any], seed: int = 1) -> Refits:
    with pytest.MonkeyPatch.context() as patched:
        few_draws(patched)
        return refitted(its, START, seed, Stages("a test"))


@pytest.fixture(scope="module")
def plain() -> Refits:
    return refits_with(VCIDER)


@pytest.fixture(scope="module")
def altered() -> Refits:
    return refits_with(changed_in(CHANGED))


def test_every_figure_is_left_out_once(plain: Refits) -> None:
    assert [each.id for each in plain.left_out] == [row.id for test in _by_fold() for row in test.rows]
    assert sorted(each.id for each in plain.left_out) == sorted(ROWS)
    for each in plain.left_out:
        assert (each.fold, each.documented) == (ROWS[each.id].fold, ROWS[each.id].value)
        assert 0 < each.low <= each.predicted <= each.high


def _by_fold() -> list[LoadTest[Any]]:
    return [test for fold in FOLDS for test in TESTS if test.fold == fold]


def test_every_figure_is_nested_once_with_each_other_scenario(plain: Refits) -> None:
    wanted = sorted((name, row.fold, other) for name, row in ROWS.items() for other in FOLDS if other != row.fold)

    assert sorted((each.id, each.fold, each.without) for each in plain.nested) == wanted
    assert len(wanted) == 36 * 5


def test_a_scenario_bears_on_nothing_that_is_said_of_it(plain: Refits, altered: Refits) -> None:
    for one, other in zip(plain.left_out, altered.left_out, strict=True):
        same = (one.predicted, one.low, one.high) == (other.predicted, other.low, other.high)
        assert same == (one.fold == CHANGED), one.id
        assert (one.documented == other.documented) == (one.fold != CHANGED)


def test_a_nested_fit_hangs_on_neither_scenario(plain: Refits, altered: Refits) -> None:
    unseen = 0
    for one, other in zip(plain.nested, altered.nested, strict=True):
        without = CHANGED in (one.fold, one.without)
        assert (one.predicted == other.predicted) == without, one
        unseen += without
    assert unseen == 6 * 5 + 5 * 6  # its own figures without each other scenario, and the others' without it


def test_what_is_left_out_is_said_by_the_draws_of_the_other_scenarios(
    plain: Refits, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_draws(monkeypatch)
    number, fold = 2, FOLDS[2]
    others = problem(VCIDER, [test for test in TESTS if test.fold != fold])
    drawn = resampled(others, maximum(others, np.log(START)), 12, 60, 1 + 1 + number)
    said = VCIDER.observations.predicted(
        [test for test in TESTS if test.fold == fold], from_log(VCIDER.parameters, drawn.log_points)
    )

    for each in plain.left_out:
        if each.fold == fold:
            ends = np.quantile(said[each.id], [0.05, 0.5, 0.95])
            assert (each.low, each.predicted, each.high) == pytest.approx(tuple(ends), rel=1e-6)


def test_each_scenario_and_each_pair_has_draws_of_its_own(plain: Refits) -> None:
    other = refits_with(VCIDER, seed=2)

    assert other.left_out != plain.left_out
    assert other.nested != plain.nested
    assert refits_with(VCIDER) == plain


def test_scenarios_are_listed_once_in_the_documents_order() -> None:
    assert FOLDS == ["r1.none", "r1.both", "r1.internode", "r3.none", "r3.both", "r3.internode"]
    assert folds(TESTS[::-1]) == FOLDS[::-1]
    assert folds([]) == []
