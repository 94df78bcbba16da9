"""The fitting problem of a study: the fitted figures of some experiments, and where the search starts."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from capplan.calibration.fit.problem import problem, start_of
from capplan.calibration.study import Experiment
from capplan.models.language.parameter import Values
from capplan.models.language.units import FloatArray
from capplan.systems.openprovider.observations import STUDY, experiments
from capplan.systems.rhino_shcm.observations import STUDY as LOGARITHMIC
from capplan.systems.studies import STUDIES


def test_the_model_is_asked_for_the_fitted_figures_only() -> None:
    asked: set[str] = set()

    def predicted(tests: Sequence[Experiment], _: Values) -> dict[str, FloatArray]:
        asked.update(row.id for test in tests for row in test.rows)
        return {row.id: np.array([row.value]) for test in tests for row in test.rows}

    made = problem(replace(STUDY, predicted=predicted), experiments())
    made.figures(made.centre[None])

    assert asked == {row.id for row in made.rows}
    assert {row.use for row in made.rows} == {"fit"}
    assert any(row.use != "fit" for test in experiments() for row in test.rows)


def test_experiments_without_a_fitted_figure_are_not_asked_for() -> None:
    first, *others = experiments()
    unfit = replace(first, rows=tuple(replace(row, use="check") for row in first.rows))
    asked: list[str] = []

    def predicted(tests: Sequence[Experiment], _: Values) -> dict[str, FloatArray]:
        asked.extend(test.name for test in tests)
        return {row.id: np.array([row.value]) for test in tests for row in test.rows}

    made = problem(replace(STUDY, predicted=predicted), [unfit, *others])
    made.figures(made.centre[None])

    assert first.name not in asked
    assert {row.id for row in made.rows}.isdisjoint(row.id for row in first.rows)


@pytest.mark.parametrize("name", list(STUDIES))
def test_each_figure_scatters_as_its_study_says(name: str) -> None:
    its = STUDIES[name]
    made = problem(its, its.experiments())

    assert made.parameters == its.system.parameters
    assert made.rows == tuple(row for test in its.experiments() for row in test.rows if row.use == "fit")
    for row in made.rows:
        scatter = made.scatter(row)
        assert (scatter.relative_sd, scatter.logarithmic) == (its.repeatability(row), its.logarithmic)
    assert LOGARITHMIC.logarithmic
    assert not STUDY.logarithmic


def test_the_search_starts_where_the_study_says() -> None:
    free = [parameter for parameter in STUDY.system.parameters if parameter.free]
    start = {parameter.name: 2 * parameter.value for parameter in free}

    assert start_of(STUDY) is None
    assert start_of(replace(STUDY, start=start)) == pytest.approx(np.log([2 * each.value for each in free]))
