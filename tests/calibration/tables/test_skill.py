"""The skill on the page of backtests: known scores of known forecasts, and rules that never see their own table."""

import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from capplan.calibration.tables.scores import RULES, BacktestRow, PredictedFigure

SCRIPT: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[3] / "docs" / "generate" / "skill.py"))


def row(measured: float, value: float, sd: float = 0.1, **rules: float) -> BacktestRow:
    """Return a figure that was predicted as lognormal, with estimates of some rules."""
    band = PredictedFigure(value, value * math.exp(-1.645 * sd), value * math.exp(1.645 * sd))
    estimates = {name: rules.get(name) for name in RULES}
    return BacktestRow("run", None, "throughput_tps", measured, band, value / measured - 1, estimates, {}, True, "")


def test_the_score_of_a_lognormal_band_is_that_of_the_normal_distribution() -> None:
    """Gneiting and Raftery 2007, equation 21: at a distance of z standard deviations."""
    z, sd = 0.7, 0.1
    exact = sd * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / math.sqrt(math.pi))
    one = row(math.exp(z * sd), 1.0, sd)
    assert SCRIPT["crps"](one.measured, SCRIPT["quantiles"](one.predicted)) == pytest.approx(exact, rel=0.01)


def test_a_single_value_scores_its_error() -> None:
    assert SCRIPT["crps"](2.0, np.array([1.0])) == pytest.approx(math.log(2))


def test_a_rule_is_dressed_with_the_errors_on_other_tables_only() -> None:
    rows = {"own": [row(1.0, 1.0, linear=9.0)], "other": [row(2.0, 1.0, linear=1.0)] * 5}
    figures = SCRIPT["of_tables"](rows)
    assert SCRIPT["dressed"]("linear", figures[0], figures) == pytest.approx(np.full(99, 18.0))
    assert SCRIPT["dressed"]("linear", figures[1], figures) is None  # one error is too few


def test_skill_is_one_less_the_ratio_of_scores_over_tables_that_count_equally() -> None:
    rows = {name: [row(1.0, 1.0, 0.1, affine=value)] * count for name, value, count in (("a", 1.0, 6), ("b", 3.0, 60))}
    found = SCRIPT["skills"](SCRIPT["of_tables"](rows), "throughput_tps")["affine"]
    own = SCRIPT["crps"](1.0, SCRIPT["quantiles"](rows["a"][0].predicted))
    rule = (math.log(3) + math.log(3)) / 2  # each is dressed with the other's error
    assert (found.figures, found.tables) == (66, 2)
    assert found.skill == pytest.approx(1 - own / rule)
    assert SCRIPT["best"]({"affine": found}, 66) == "affine"
    assert SCRIPT["best"]({"affine": found}, 133) is None
