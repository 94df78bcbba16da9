"""Predictions of simple rules with bands from their own errors, and the score of an interval, worked out by hand."""

import math
from collections.abc import Sequence
from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.calibration.altered_systems import observing

from capplan.calibration.validation.backtest import IntervalEstimate, rule_estimates
from capplan.evidence.table import Evidence
from capplan.layout.baselines import BASELINES, linear, persistence
from capplan.layout.observations import Observations, Scored
from capplan.systems.registry import documented_names, system
from capplan.systems.vcider.observations import is_cell

T_TWO, T_ONE = 2.919985580355516, 6.313751514675043  # 95th percentiles of Student's t, tables
VCIDER = system("vcider").observations
ROW = VCIDER.load_tests()[0].rows[0]
Figure = tuple[str, str, float, float]  # family, fold, size, value


def said(figures: Sequence[Figure], units: dict[str, str] | None = None) -> dict[str, dict[str, IntervalEstimate]]:
    """Ask the rules about figures named `family.fold`; `units` by family where they differ."""
    rows = [
        replace(ROW, id=f"{family}.{fold}", fold=fold, value=value, unit=(units or {}).get(family, "1"))
        for family, fold, _, value in figures
    ]
    families = {f"{family}.{fold}": Scored(family, size, family) for family, fold, size, _ in figures}
    its = observing(system("vcider"), scored=lambda row: families[row.id], baselines={**BASELINES, "linear": linear})
    return rule_estimates(its.observations, rows)


def around(value: float, half: float) -> object:
    """Return a figure with a band of this half-width in the logarithm, for comparison with `astuple`."""
    made: object = pytest.approx((value, value * math.exp(-half), value * math.exp(half)))
    return made


DOUBLING = [("F", "a", 1.0, 100.0), ("F", "b", 2.0, 200.0), ("F", "c", 4.0, 400.0)]


def test_a_rule_errs_as_it_did_on_the_other_scenarios() -> None:
    """Persistence says 200 of `c`; of `a` from `b` it said twice as much, of `b` from `a` half."""
    assert astuple(said(DOUBLING)["F.c"]["persistence"]) == around(200.0, T_TWO * math.log(2))


def test_a_rule_that_never_errs_has_a_band_of_no_width() -> None:
    for name, value in (("F.a", 100.0), ("F.b", 200.0), ("F.c", 400.0)):
        assert astuple(said(DOUBLING)[name]["linear"]) == pytest.approx((value, value, value))


def test_degrees_of_freedom_are_scenarios_and_errors_are_figures() -> None:
    """Two figures of `b`: three errors, log 2 twice and log 4 once, of two scenarios."""
    figures = [("F", "a", 1.0, 100.0), ("F", "b", 2.0, 200.0), ("F", "c", 4.0, 400.0)]
    rows = [*figures[:2], ("F", "b", 3.0, 400.0), figures[2]]
    ids = ["F.a", "F.b", "F.b2", "F.c"]
    made = [
        replace(ROW, id=name, fold=fold, value=value, unit="1")
        for name, (_, fold, _, value) in zip(ids, rows, strict=True)
    ]
    sizes = {name: Scored("F", size, "F") for name, (_, _, size, _) in zip(ids, rows, strict=True)}
    its = observing(system("vcider"), scored=lambda row: sizes[row.id], baselines={"persistence": persistence})
    found = rule_estimates(its.observations, made)["F.c"]["persistence"]

    root_mean_square = math.sqrt((math.log(2) ** 2 + math.log(2) ** 2 + math.log(4) ** 2) / 3)
    assert astuple(found) == around(400.0, T_TWO * root_mean_square)


OTHER_FAMILY = [("F", "a", 1.0, 1.0), ("F", "b", 3.0, 2.0), ("G", "c", 1.0, 1.0), ("G", "d", 3.0, 4.0)]


def test_with_one_other_scenario_the_errors_are_those_of_other_families() -> None:
    """Persistence errs by a factor of four in G, both ways, and by two in F."""
    found = said(OTHER_FAMILY)

    assert astuple(found["F.a"]["persistence"]) == around(2.0, T_TWO * math.log(4))
    assert astuple(found["F.b"]["persistence"]) == around(1.0, T_TWO * math.log(4))
    assert astuple(found["G.c"]["persistence"]) == around(4.0, T_TWO * math.log(2))


def test_all_other_families_count() -> None:
    found = said([*OTHER_FAMILY, ("H", "e", 1.0, 1.0), ("H", "f", 3.0, 8.0)])
    root_mean_square = math.sqrt((math.log(4) ** 2 + math.log(8) ** 2) / 2)

    t_four = 2.131846786326649
    assert astuple(found["F.a"]["persistence"]) == around(2.0, t_four * root_mean_square)


def test_own_errors_come_before_those_of_other_families() -> None:
    with_others = said([*DOUBLING, ("G", "d", 1.0, 1.0), ("G", "e", 3.0, 4.0)])

    assert with_others["F.c"] == said(DOUBLING)["F.c"]


def test_other_families_are_without_the_scenario_too() -> None:
    """G's scenarios are F's: without `a`, one is left in each, and nothing tells how wide the band is."""
    found = said([("F", "a", 1.0, 1.0), ("F", "b", 3.0, 2.0), ("G", "a", 1.0, 1.0), ("G", "b", 3.0, 4.0)])["F.a"]

    assert found["persistence"].value == 2.0
    assert math.isnan(found["persistence"].low)
    assert math.isnan(found["persistence"].high)


def test_errors_of_times_say_nothing_of_ratios() -> None:
    found = said(OTHER_FAMILY, {"G": "s"})["F.a"]["persistence"]

    assert (found.value, math.isnan(found.low)) == (2.0, True)


def test_a_family_with_one_scenario_is_said_nothing_of() -> None:
    found = said([*DOUBLING, ("G", "a", 1.0, 1.0)])

    assert found["G.a"] == {}
    assert set(found["F.a"]) == set(BASELINES)


def test_the_order_of_figures_does_not_matter() -> None:
    tied = [("F", "a", 2.0, 100.0), ("F", "b", 4.0, 300.0), ("F", "c", 3.0, 250.0), ("F", "d", 8.0, 500.0)]

    assert said(tied)["F.c"]["persistence"].value == 100.0  # as near as `b`: the first scenario's
    for name, rules in said(tied).items():
        for rule, found in said(tied[::-1])[name].items():
            assert astuple(found) == pytest.approx(astuple(rules[rule]))


def rows_of(its: Observations[Any]) -> list[Evidence]:
    return [row for test in its.load_tests() for row in test.rows]


@pytest.mark.slow
@pytest.mark.parametrize("its", [system(name).observations for name in documented_names()], ids=documented_names())
def test_a_scenario_bears_on_nothing_that_rules_say_of_it(its: Observations[Any]) -> None:
    rows = rows_of(its)
    for fold in sorted({row.fold for row in rows if its.scored(row)})[:1]:
        changed = [replace(row, value=row.value * 1.5) if row.fold == fold else row for row in rows]
        before, after = rule_estimates(its, rows), rule_estimates(its, changed)
        mine = [row.id for row in rows if row.fold == fold and row.id in before]
        assert mine
        assert repr([after[name] for name in mine]) == repr([before[name] for name in mine])
        assert repr(after) != repr(before)


def test_every_rule_has_a_band_on_every_ratio_of_vcider() -> None:
    """Two replication factors beside each reference: the bands come from the other references."""
    cells = [row for row in rows_of(VCIDER) if is_cell(row)]
    found = rule_estimates(VCIDER, rows_of(VCIDER))

    assert set(found) == {row.id for row in cells}
    for rules in found.values():
        assert set(rules) == {"persistence", "linear", "affine", "USL"}
        assert all(0 < each.low < each.value < each.high < math.inf for each in rules.values())


def test_persistence_on_a_ratio_of_vcider_by_hand() -> None:
    """With one replica and no encryption: the first width with three; errors are those beside the other references."""
    cells = {row.id: row.value for row in rows_of(VCIDER) if is_cell(row)}
    errors = []
    for reference in ("both", "internode"):
        for rf, other in ((1, 3), (3, 1)):
            first = cells[f"r{other}.{reference}.c32"]  # all widths have the same size: the first is the nearest
            errors += [math.log(first / cells[f"r{rf}.{reference}.c{width}"]) for width in (32, 64, 128, 192, 256)]
    root_mean_square = math.sqrt(sum(each**2 for each in errors) / 20)

    t_four = 2.131846786326649
    found = rule_estimates(VCIDER, rows_of(VCIDER))["r1.none.c256"]["persistence"]
    assert astuple(found) == around(cells["r3.none.c32"], t_four * root_mean_square)


BAND = IntervalEstimate(2.0, 1.0, math.e)  # one wide in the logarithm


@pytest.mark.parametrize(
    ("documented", "score"),
    [
        (math.exp(0.5), 1.0),  # inside: its width
        (1.0, 1.0),
        (math.e, 1.0),
        (math.exp(-0.1), 1.0 + 20 * 0.1),  # a tenth below
        (math.exp(1.2), 1.0 + 20 * 0.2),  # a fifth above
    ],
)
def test_the_interval_score_is_the_width_and_twenty_times_what_it_misses_by(documented: float, score: float) -> None:
    assert BAND.interval_score(documented) == pytest.approx(score)


def test_a_band_of_no_width_is_scored_by_its_error_alone() -> None:
    exact = IntervalEstimate(100.0, 100.0, 100.0)

    assert exact.interval_score(100.0) == 0
    assert exact.interval_score(110.0) == pytest.approx(20 * math.log(1.1))
    assert exact.half_width() == 0


def test_a_band_without_an_end_is_as_bad_as_can_be() -> None:
    assert IntervalEstimate(1.0, 0.5, math.inf).interval_score(1.0) == math.inf


def test_a_band_that_is_not_there_has_no_score_and_holds_nothing() -> None:
    missing = IntervalEstimate(1.0, math.nan, math.nan)

    assert math.isnan(missing.interval_score(1.0))
    assert math.isnan(missing.half_width())
    assert not missing.holds(1.0)


def test_half_the_width_is_a_share_of_the_figure() -> None:
    assert IntervalEstimate(200.0, 150.0, 300.0).half_width() == pytest.approx(0.375)


@pytest.mark.parametrize(("documented", "held"), [(0.99, False), (1.0, True), (2.0, True), (math.e, True), (3, False)])
def test_the_ends_belong_to_the_band(documented: float, held: bool) -> None:
    assert BAND.holds(documented) is held


@pytest.mark.parametrize("factor", [0.6, 0.8, 1.25, 2.0])
def test_the_true_quantiles_score_best(factor: float) -> None:
    """The score is proper: with logarithms that are standard normal, by quadrature over the middles of 4001 levels."""
    outcomes = np.exp(stats.norm.ppf((np.arange(4001) + 0.5) / 4001))
    end = stats.norm.ppf(0.95)

    def mean(width: float) -> float:
        band = IntervalEstimate(1.0, math.exp(-width), math.exp(width))
        return float(np.mean([band.interval_score(float(each)) for each in outcomes]))

    assert mean(end) < mean(factor * end)
