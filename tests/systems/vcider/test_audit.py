"""The scatter of `vcider`'s cells: its audit's statistics against scipy's, and planted effects."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from capplan.evidence.audit.checks import Figures
from capplan.systems import registry
from capplan.systems.vcider.audit import (
    Cells,
    cells_of,
    checks,
    column_effect,
    deviation,
    deviation_around_lines,
    mean_of,
    slope,
    slope_error,
)

WIDTHS = (32, 64, 128, 192, 256)
# The published cells, in %, over native: none, internode, both encrypted.
PUBLISHED = {
    "r1": [(-8.2, 0.8, -2.3, -2.3, -6.7), (-0.7, -5.0, 1.9, 5.4, 4.7), (63.8, 55.4, 60.0, 53.9, 61.7)],
    "r3": [(-4.5, -4.7, -5.8, -4.5, -1.5), (3.8, 3.9, 6.1, 8.3, 4.0), (31.5, 29.6, 31.4, 27.3, 29.9)],
}
CELLS = registry.system("vcider").evidence


def cells(factor: str) -> Cells:
    """Return the cells of a replication factor by comparison and column width."""
    return cells_of(Figures(CELLS), factor)


@pytest.mark.parametrize("factor", PUBLISHED)
def test_the_deviation_of_a_cell_is_pooled_over_the_comparisons(factor: str) -> None:
    found = deviation(cells(factor)).interval
    squares = np.mean([np.var(row, ddof=1) for row in PUBLISHED[factor]])
    assert found.value * 100 == pytest.approx(float(squares) ** 0.5)
    tails = stats.chi2(12).cdf([12 * (found.value / end) ** 2 for end in (found.low, found.high)])
    assert tails == pytest.approx([0.95, 0.05])


@pytest.mark.parametrize("factor", PUBLISHED)
def test_slopes_over_the_column_width_are_those_of_least_squares(factor: str) -> None:
    found = cells(factor)
    fits = [stats.linregress(WIDTHS, np.array(row) / 100) for row in PUBLISHED[factor]]
    slopes = [slope(found, found[place : place + 5]).value for place in (0, 5, 10)]
    assert slopes == pytest.approx([fit.slope * 100 for fit in fits])
    # Three lines of three degrees of freedom each, pooled.
    assert slope_error(found) ** 2 == pytest.approx(float(np.mean([fit.stderr**2 for fit in fits])) * 100**2)
    assert deviation_around_lines(found).value == pytest.approx(deviation(found).value, rel=0.02)


@pytest.mark.parametrize("factor", PUBLISHED)
def test_what_cells_of_a_column_share_is_a_two_way_analysis_of_variance(factor: str) -> None:
    table = np.array(PUBLISHED[factor]) / 100
    rows, columns = table.mean(axis=1, keepdims=True), table.mean(axis=0, keepdims=True)
    left = table - rows - columns + table.mean()
    between = 3 * float(((columns - table.mean()) ** 2).sum()) / 4
    assert column_effect(cells(factor)).value == pytest.approx(between / (float((left**2).sum()) / 8))


def test_the_interval_of_a_mean_is_students() -> None:
    found = cells("r1")
    mean = mean_of(found, found[:5]).interval
    width = stats.t(12).ppf(0.95) * deviation(found).value / 5**0.5
    assert (mean.value, mean.high - mean.value) == pytest.approx((1 - 0.187 / 5, width))


def test_r1_scatters_more_than_r3_by_more_than_chance() -> None:
    ratio = (deviation(cells("r1")).value / deviation(cells("r3")).value) ** 2
    assert stats.f(12, 12).sf(ratio) < 0.01
    verdicts = {each.rule: each.verdict for each in checks(Figures(CELLS))}
    assert verdicts["scatter.one"] == "contradicted"


def test_a_run_that_all_comparisons_share_is_told_from_runs_of_their_own() -> None:
    # A common up and down of three points over the columns, on top of the published cells.
    common = dict(zip(WIDTHS, (0.03, -0.03, 0.03, -0.03, 0.0), strict=True))
    rows = [
        replace(row, value=row.value + common[int(row.layout["column_bytes"])]) if row.use == "fit" else row
        for row in CELLS
    ]
    found = {finding.rule: finding.verdict for finding in checks(Figures(rows))}
    assert (found["runs.shared.r3"], found["runs.independent.r3"]) == ("consistent", "contradicted")


def test_a_column_width_that_matters_is_seen() -> None:
    # Ten points more for each doubling of the width, over native without encryption with R3.
    rows = [
        replace(row, value=row.value + 0.1 * np.log2(int(row.layout["column_bytes"]) / 32))
        if row.id.startswith("r3.none.c")
        else row
        for row in CELLS
    ]
    found = {finding.rule: finding.verdict for finding in checks(Figures(rows))}
    assert found["slope.r3.none"] == "contradicted"
