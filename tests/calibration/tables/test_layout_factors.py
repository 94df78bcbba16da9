"""Factors of layouts: what those that differ only in their number of nodes tell about each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.planner.valid_questions import write_fitted

from capplan.calibration.tables.errors import Effects
from capplan.cli.shell.target import read_target
from capplan.layout.case import Case
from capplan.layout.fitted_file import DRAWS, Fitted
from capplan.layout.layout_factors import SHARED, correlation, name_of
from capplan.layout.table_components import LayoutFactors
from capplan.layout.table_rows import row_of
from capplan.layout.table_system import unloaded, with_unknown_layouts
from capplan.models.language.scenario import changed
from capplan.models.language.units import FloatArray
from capplan.systems.cassandra import SYSTEM, of_same_nodes
from capplan.systems.cassandra.scenario import CassandraScenario
from capplan.systems.two_tier import SYSTEM as TWO_TIER
from capplan.systems.two_tier.scenario import TwoTierScenario

SURE = 4.5  # standard errors that a right program exceeds in 7 of a million
SD = 0.1  # of the logarithm of a factor


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    """Return a calibration whose rows all have six nodes."""
    folder = tmp_path_factory.mktemp("fitted")
    write_fitted(folder)
    found = read_target(str(folder / "mixed.json")).fitted
    assert found is not None
    return found


def calibration(fitted: Fitted, factors: dict[tuple[int, int], FloatArray]) -> tuple[Fitted, list[CassandraScenario]]:
    """Return a calibration whose rows have these nodes and replicas, with their factors of work, and its layouts."""
    rows = tuple({**fitted.its_table.rows[0], "cass_nodes": nodes, "rf": rf} for nodes, rf in factors)
    tested = [row.layout for row in SYSTEM.read(list(map(row_of, rows)))]
    kept = [at for at, name in enumerate(fitted.names) if "_of_layout" not in name]
    names, columns = [fitted.names[at] for at in kept], [np.array(fitted.draws)[:, kept]]
    for each, values in zip(tested, factors.values(), strict=True):
        names += [name_of(effect, of_same_nodes(each)) for effect in SYSTEM.component(LayoutFactors).log_sd]
        columns += [values[:, None], np.ones((DRAWS, 1))]
    table = replace(
        fitted.its_table,
        rows=rows,
        priors={name_of(effect): (1.0, SD) for effect in SYSTEM.component(LayoutFactors).log_sd},
    )
    draws = tuple(map(tuple, np.concatenate(columns, axis=1).tolist()))
    return replace(fitted, names=tuple(names), draws=draws, table=table), tested


def works(fitted: Fitted, *layouts: CassandraScenario, chance: Literal["common", "own"] = "common") -> list[FloatArray]:
    """Return the logarithms of the factor of work of each layout (draws,)."""
    plain = [unloaded(each) for each in layouts]
    values = with_unknown_layouts(SYSTEM, fitted, plain, chance)
    return [np.log(values[name_of("work", of_same_nodes(each))]) for each in plain]


def lognormal(seed: int) -> FloatArray:
    return np.exp(SD * np.random.default_rng(seed).standard_normal(DRAWS))


def test_layouts_are_alike_by_the_doublings_between_them() -> None:
    layouts = [
        CassandraScenario(cass_nodes=6, rf=3),
        CassandraScenario(cass_nodes=12, rf=3),
        CassandraScenario(cass_nodes=3, rf=3),
        CassandraScenario(cass_nodes=6, rf=1),
        CassandraScenario(dcs=2, cass_nodes=6, rf=3),
        CassandraScenario(dcs=2, cass_nodes=(6, 12), rf=3),
    ]
    half = SHARED**0.5  # one of two data centres has doubled
    expected = np.array(
        [
            [1, SHARED, SHARED, 0, 0, 0],
            [SHARED, 1, SHARED**2, 0, 0, 0],
            [SHARED, SHARED**2, 1, 0, 0, 0],
            [0, 0, 0, 1, 0, 0],
            [0, 0, 0, 0, 1, half],
            [0, 0, 0, 0, half, 1],
        ]
    )
    assert correlation(layouts, SYSTEM.component(LayoutFactors).scaled) == pytest.approx(expected)


def test_tiers_that_grow_in_proportion_are_one_doubling_apart() -> None:
    one = TwoTierScenario(front_nodes=2, store_nodes=3)
    others = [{"front_nodes": 4, "store_nodes": 6}, {"store_nodes": 6}, {"front_cores": 32, "node_cores": 32}]
    layouts = [one, *(changed(one, **each) for each in others), changed(one, front_nodes=0)]
    assert correlation(layouts, TWO_TIER.component(LayoutFactors).scaled)[0] == pytest.approx(
        [1, SHARED, SHARED, SHARED, 0]
    )


@given(st.lists(st.tuples(st.integers(1, 64), st.integers(1, 64)), min_size=1, max_size=12, unique=True))
def test_no_layouts_correlate_in_a_way_that_no_chance_has(nodes: list[tuple[int, int]]) -> None:
    found = correlation(
        [CassandraScenario(dcs=2, cass_nodes=each, rf=1) for each in nodes], SYSTEM.component(LayoutFactors).scaled
    )
    assert np.linalg.eigvalsh(found)[0] > 0


def test_a_layout_between_two_tested_ones_follows_both(mixed: Fitted) -> None:
    """By conditioning of a normal distribution: 6 nodes lie one doubling from 3 and one from 12."""
    fitted, (three, twelve, *_) = calibration(
        mixed, {(3, 1): lognormal(1), (12, 1): lognormal(2), (6, 5): lognormal(3)}
    )
    few, many, between = works(fitted, three, twelve, changed(three, cass_nodes=6))
    gain = SHARED / (1 + SHARED**2)
    rest = between - gain * (few + many)
    assert abs(float(np.median(rest))) < 1e-4
    assert rest.std() == pytest.approx(SD * np.sqrt(1 - 2 * gain * SHARED), rel=0.01)


def test_another_replication_factor_has_nothing_of_them(mixed: Fitted) -> None:
    fitted, (three, _) = calibration(mixed, {(3, 1): lognormal(1), (6, 3): lognormal(2)})
    own, other = works(fitted, three, changed(three, rf=2))
    assert abs(np.corrcoef(own, other)[0, 1]) < SURE / np.sqrt(DRAWS)
    assert other.std() == pytest.approx(SD, rel=0.01)


@pytest.mark.parametrize("nodes", [6, 20, 60])
@pytest.mark.parametrize("factor", [0.7, 1.3])
@pytest.mark.parametrize("field", ["cass_nodes", "node_cores"])
def test_one_more_than_tested_carries_more(mixed: Fitted, nodes: int, factor: float, field: str) -> None:
    """Even where the tested number has far less work than the model says of others, in one value and in all draws.

    On hundreds of nodes, one more adds less than the chance in the median of the draws.
    """
    factors = {(nodes, 3): np.full(DRAWS, factor), (nodes, 1): np.ones(DRAWS)}
    fitted, (tested, _) = calibration(mixed, factors)
    system = SYSTEM.of(fitted)
    more = changed(tested, **{field: getattr(tested, field) + 1})
    cases = [Case(system, each, fitted) for each in (tested, more)]
    before, after = (float(np.median(each.solution.capacity)) for each in cases)
    assert before < after
    single = [np.ravel(each.layout.middle.capacity)[0] for each in cases]
    assert single[0] < single[1]


NEAR, FAR, APART = (SHARED ** float(np.log2(ratio)) for ratio in (9 / 6, 12 / 6, 12 / 9))
"""Correlations of 6 nodes with 9, of 6 with 12, and of 9 with 12."""


@pytest.mark.parametrize(
    ("tested", "expected"),
    [
        ([(6, 3), (6, 1)], (APART - NEAR * FAR) / np.sqrt((1 - NEAR**2) * (1 - FAR**2))),
        ([(6, 3)], (1 + APART - NEAR - FAR) / 2 / np.sqrt((1 - NEAR) * (1 - FAR))),  # relative to the only one
        ([(6, 1)], (1 + APART) / 2),
    ],
)
def test_two_unknown_layouts_have_chance_in_common_as_far_as_they_are_alike(
    mixed: Fitted, tested: list[tuple[int, int]], expected: float
) -> None:
    fitted, layouts = calibration(mixed, {each: np.ones(DRAWS) for each in tested})
    asked = [changed(layouts[0], rf=3, cass_nodes=nodes) for nodes in (9, 12)]
    one, other = works(fitted, *asked, chance="own")
    found = np.corrcoef(one, other)[0, 1]
    assert abs(np.arctanh(found) - np.arctanh(expected)) < SURE / np.sqrt(DRAWS - 3)
    assert np.array_equal(one, works(fitted, asked[0], chance="own")[0])


def test_factors_follow_errors_as_jointly_normal_ones_do() -> None:
    random = np.random.default_rng(5)
    alike = np.array([[1, SHARED, 0], [SHARED, 1, 0], [0, 0, 1]])
    effects = Effects(random.standard_normal((7, 2)), np.array([0, 0, 0, 1, 1, 2, 2]), np.array([0.08, 0.1]), alike)
    noise = np.diag(random.uniform(0.01, 0.1, 7) ** 2)
    count = 200_000
    each = random.multivariate_normal(np.zeros(3), alike, (count, 2)) * np.array([[0.08], [0.1]])
    errors = np.einsum("fe,nef->nf", effects.slopes, each[:, :, effects.group])
    errors += random.multivariate_normal(np.zeros(7), noise, count)
    means, covariance = effects.expected(errors, noise)
    left = (np.swapaxes(each, 1, 2) - means).reshape(count, -1)
    error = SURE * 0.02 / np.sqrt(count)
    assert np.cov(errors.T) == pytest.approx(effects.covariance + noise, abs=error)
    assert left.T @ errors / count == pytest.approx(np.zeros((6, 7)), abs=error)
    assert np.cov(left.T) == pytest.approx(covariance, abs=error)


def test_the_scatter_is_learnt_from_numbers_of_nodes_as_from_independent_ones() -> None:
    """Of factors known exactly, the scale of their covariance is its likeliest, with the assumed one counted."""
    alike = SHARED + (1 - SHARED) * np.eye(4)
    factors = np.array([0.10, 0.05, -0.02, 0.03])
    effects = Effects(np.ones((4, 1)), np.arange(4), np.array([0.08]), alike)
    squares = float(factors @ np.linalg.solve(alike, factors))
    found = effects.learnt(factors, 1e-12 * np.eye(4))
    assert found == pytest.approx(np.sqrt((4 * 0.08**2 + squares) / 8), rel=1e-4)
