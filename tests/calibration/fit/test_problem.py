"""The fitting problem of a system: the fitted figures of some load tests, and the start of the search."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.calibration.altered_systems import observing

from capplan.calibration.fit.posterior import problem, start_of
from capplan.layout.observations import LoadTest
from capplan.models.language.parameter import Values
from capplan.models.language.units import FloatArray
from capplan.systems.registry import system

OPENPROVIDER = system("openprovider")
TESTS = OPENPROVIDER.observations.load_tests()


def test_the_model_is_asked_for_the_fitted_figures_only() -> None:
    asked: set[str] = set()

    def predicted(tests: Sequence[LoadTest[Any]], _: Values) -> dict[str, FloatArray]:
        asked.update(row.id for test in tests for row in test.rows)
        return {row.id: np.array([row.value]) for test in tests for row in test.rows}

    made = problem(observing(OPENPROVIDER, predicted=predicted), TESTS)
    made.figures(made.centre[None])

    assert asked == {row.id for row in made.rows}
    assert {row.use for row in made.rows} == {"fit"}
    assert any(row.use != "fit" for test in TESTS for row in test.rows)


def test_load_tests_without_a_fitted_figure_are_not_asked_for() -> None:
    first, *others = TESTS
    unfit = replace(first, rows=tuple(replace(row, use="check") for row in first.rows))
    asked: list[str] = []

    def predicted(tests: Sequence[LoadTest[Any]], _: Values) -> dict[str, FloatArray]:
        asked.extend(test.name for test in tests)
        return {row.id: np.array([row.value]) for test in tests for row in test.rows}

    made = problem(observing(OPENPROVIDER, predicted=predicted), [unfit, *others])
    made.figures(made.centre[None])

    assert first.name not in asked
    assert {row.id for row in made.rows}.isdisjoint(row.id for row in first.rows)


def test_the_search_starts_where_the_system_says() -> None:
    free = [parameter for parameter in OPENPROVIDER.parameters if parameter.free]
    start = {parameter.name: 2 * parameter.value for parameter in free}

    assert start_of(OPENPROVIDER) is None
    assert start_of(observing(OPENPROVIDER, start=start)) == pytest.approx(np.log([2 * each.value for each in free]))
