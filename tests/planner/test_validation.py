"""Scores and coverage of bands, by hand or by scipy's tests; the table of a validation."""

import math
from dataclasses import asdict, replace

import pytest
from scipy import stats

from capplan.calibration.validation.backtest import IntervalEstimate, LeftOut
from capplan.calibration.validation.nearness import Nearness
from capplan.calibration.validation.validation import MODEL, Compared, Validation, coverage, own_score, scores
from capplan.layout.fitted_file import Posterior


def made(fold: str, value: float = 1.0, low: float = 0.9, high: float = 1.1, counts: bool = True) -> LeftOut:
    """A figure of 1.0, said by capplan and by a rule that is off by twice as much with a band twice as wide."""
    rule = IntervalEstimate(1 + 2 * (value - 1), 1 - 2 * (1 - low), 1 + 2 * (high - 1))
    said = {"capplan": IntervalEstimate(value, low, high), "rule": rule}
    return LeftOut("an id", fold, fold, "rates", "1/s", "family", 3.0, "" if counts else "a reason", True, 1.0, said)


HELD, MISSED = (0.9, 1.1), (1.05, 1.1)


def some(held: int, of: int) -> list[LeftOut]:
    return [made(f"s{number}", 1.07, *(HELD if number < held else MISSED)) for number in range(of)]


@pytest.mark.parametrize(("held", "of"), [(0, 5), (1, 5), (4, 5), (5, 5), (1, 1), (17, 20)])
def test_the_interval_of_coverage_is_that_of_clopper_and_pearson(held: int, of: int) -> None:
    found = coverage(some(held, of))
    published = stats.binomtest(held, of).proportion_ci(0.9, method="exact")

    assert (found.figures, found.held, found.scenarios) == (of, held, of)
    assert (found.low, found.high) == pytest.approx((published.low, published.high))


def test_figures_of_one_scenario_are_worth_one() -> None:
    """Eight figures of two scenarios, all held: as sure as two figures."""
    published = stats.binomtest(2, 2).proportion_ci(0.9, method="exact")
    found = coverage([made(fold, 1.0) for fold in ("a", "b") for _ in range(4)])

    assert (found.figures, found.held, found.scenarios) == (8, 8, 2)
    assert (found.low, found.high) == pytest.approx((published.low, published.high))


def test_a_share_between_whole_scenarios_has_the_interval_of_its_beta_laws() -> None:
    """Three of four figures of two scenarios: one and a half scenario of two (Korn and Graubard 1998)."""
    found = coverage([made("a"), made("a"), made("b"), made("b", 1.07, *MISSED)])

    assert (found.figures, found.held, found.scenarios) == (4, 3, 2)
    assert found.low == pytest.approx(stats.beta.ppf(0.05, 1.5, 0.5 + 1))
    assert found.high == pytest.approx(stats.beta.ppf(0.95, 1.5 + 1, 0.5))


def test_only_figures_that_count_and_have_a_band_are_counted() -> None:
    silent, bandless = made("c", counts=False), made("d", 1.0, math.nan, math.nan)

    assert coverage([*some(1, 2), silent, bandless]) == coverage(some(1, 2))
    empty = coverage([silent, bandless])
    assert (empty.figures, empty.held, empty.scenarios, empty.low, empty.high) == (0, 0, 0, 0.0, 1.0)
    assert coverage([]) == empty


def test_scores_by_hand() -> None:
    """Errors of 2, 8 and 4 %; bands of 0.2, 0.2 and 0.3; the second is missed by log 1.05 in the logarithm."""
    found = scores([made("a", 1.02), made("b", 1.08, 1.05, 1.25), made("c", 0.96, 0.8, 1.1)])
    widths = [math.log(1.1 / 0.9), math.log(1.25 / 1.05) + 20 * math.log(1.05), math.log(1.1 / 0.8)]

    assert list(found) == ["capplan", "rule"]
    assert found["capplan"].error == pytest.approx(0.04)
    assert found["capplan"].interval_score == pytest.approx(sum(widths) / 3)
    assert found["capplan"].half_width == pytest.approx(0.1 / 1.02)  # of 9.8, 9.3 and 15.6 %
    assert found["rule"].error == pytest.approx(0.08)


def test_model_and_rules_are_scored_on_the_same_figures() -> None:
    shared = [made("a", 1.02), made("b", 1.04)]
    alone = replace(made("c", 3.0), estimates={"capplan": IntervalEstimate(3.0, 2.0, 4.0)})
    silent = made("d", 9.0, counts=False)

    assert scores([*shared, alone, silent]) == scores(shared)
    assert scores([alone, silent]) == {}
    assert scores([]) == {}


def ruled(value: float, low: float, high: float, fold: str = "a") -> LeftOut:
    """A figure of 1.0 that capplan says right, between 0.9 and 1.1, and that the rule says with this band."""
    return replace(made(fold), estimates={**made(fold).estimates, "rule": IntervalEstimate(value, low, high)})


BOTH = made("b", 1.2, 0.8, 1.3)
BANDLESS = ruled(1.0, math.nan, math.nan)


def test_intervals_are_scored_where_the_model_and_every_rule_have_one() -> None:
    """A rule without a band: the figure enters the interval score of none."""
    found, without = scores([BOTH, BANDLESS]), scores([BOTH])

    for name in ("capplan", "rule"):
        assert math.isfinite(without[name].interval_score)
        assert found[name].interval_score == without[name].interval_score
    assert found["rule"].error == pytest.approx(BOTH.errors["rule"] / 2)  # errors are of all figures
    assert found["capplan"].error == pytest.approx((0.2 + 0) / 2)


def test_without_a_figure_where_all_have_a_band_nothing_scores_intervals() -> None:
    found = scores([BANDLESS])

    assert math.isnan(found["rule"].interval_score)
    assert math.isnan(found["capplan"].interval_score)
    assert found["capplan"].half_width == pytest.approx(0.1)
    assert math.isfinite(found["rule"].error)


def test_half_widths_are_of_the_figures_with_a_band() -> None:
    assert scores([BOTH, BANDLESS])["rule"].half_width == scores([BOTH])["rule"].half_width
    assert math.isnan(scores([BANDLESS])["rule"].half_width)


def test_the_model_is_scored_on_its_own_on_all_figures_that_count() -> None:
    """Errors of 2, 5 and 30 %: rules say nothing of the last, and one does not count."""
    alone = replace(made("c", 1.3, 1.2, 1.5), estimates={"capplan": IntervalEstimate(1.3, 1.2, 1.5)})
    figures = [made("a", 1.02), made("b", 1.05), alone, made("d", 9.0, counts=False)]
    widths = [math.log(1.1 / 0.9)] * 2 + [math.log(1.5 / 1.2) + 20 * math.log(1.2)]
    found = own_score(figures)

    assert found is not None
    assert found.error == pytest.approx(0.05)
    assert found.interval_score == pytest.approx(sum(widths) / 3)
    assert found.half_width == pytest.approx(0.1 / 1.02)  # of 9.5, 9.8 and 11.5 %
    assert own_score(figures[:2]) == scores(figures[:2])["capplan"]


def test_a_rule_without_a_band_takes_nothing_from_the_score_of_the_model_on_its_own() -> None:
    figures = [BOTH, BANDLESS, made("c", 1.0, math.nan, math.nan)]
    found = own_score(figures)

    assert found is not None
    assert found.interval_score == pytest.approx(
        (BOTH.estimates["capplan"].interval_score(1.0) + math.log(1.1 / 0.9)) / 2
    )


def test_where_no_figure_counts_there_is_no_score() -> None:
    assert own_score([]) is None
    assert own_score([made("a", counts=False)]) is None
    bandless = own_score([made("a", 1.1, math.nan, math.nan)])
    assert bandless is not None
    assert bandless.error == pytest.approx(0.1)
    assert math.isnan(bandless.interval_score)
    assert math.isnan(bandless.half_width)


@pytest.mark.parametrize(
    ("documented", "predicted", "close"),
    [
        (100.0, 109.9, True),
        (100.0, 110.1, False),
        (100.0, 90.1, True),
        (100.0, 89.9, False),
        (1.0, 1.45, True),  # a figure that was rounded to 1 may have been 1.45
        (1.0, 1.55, False),
    ],
)
def test_a_figure_is_close_within_a_share_or_its_rounding(documented: float, predicted: float, close: bool) -> None:
    what = ("vcider", "an id", "a scenario", "a rate", "1/s", documented, documented - 0.5, documented + 0.5)
    error = predicted / documented - 1
    figure = Compared(*what, predicted, predicted, predicted, error, True, None, None, None, None)

    assert figure.close(0.1) is close


def compared(name: str, scenario: str, quantity: str, predicted: float) -> Compared:
    """A documented 1.0, rounded to two digits, predicted as given."""
    what = ("vcider", name, scenario, quantity, "1/s", 1.0, 0.95, 1.05)
    return Compared(*what, predicted, predicted, predicted, predicted - 1, True, None, None, None, None)


def validation(figures: tuple[Compared, ...], left_out: tuple[LeftOut, ...]) -> Validation:
    scored = (own_score(left_out), scores(left_out), coverage(left_out))
    posterior = Posterior(1.0, 1, 1.0, 0.0, 0.0)
    return Validation("vcider", figures, (), "", left_out, *scored, 1, posterior, 1, 1, 1.0, Nearness(1, 1.0), "", "")


def test_the_table_has_a_row_for_each_figure_and_what_was_left_out_beside_it() -> None:
    figures = (compared("one", "a", "rate", 1.04), compared("two", "b", "rate", 1.2))
    left = replace(made("b", 1.2, 0.9, 1.3), id="two")
    rows = validation(figures, (left,)).to_frame().to_dict("records")

    for row, figure in zip(rows, figures, strict=True):
        assert {name: row[name] for name, cell in asdict(figure).items() if cell is not None} == {
            name: cell for name, cell in asdict(figure).items() if cell is not None
        }
    assert [row["close"] for row in rows] == [True, False]
    assert [row["name"] for row in rows] == ["a rate", "b rate"]
    one, two = rows
    assert all(one[name] != one[name] for name in ("fold", "left_out", "left_out_error", "held", "rule_error"))
    assert (two["fold"], two["group"], two["family"], two["not_scored"]) == ("b", "rates", "family", "")
    assert (two["left_out"], two["left_out_low"], two["left_out_high"]) == (1.2, 0.9, 1.3)
    assert two["held"] is True
    assert two["left_out_error"] == pytest.approx(left.errors[MODEL])
    assert two["rule_error"] == pytest.approx(left.errors["rule"])


def test_figures_are_called_by_their_id_where_scenario_and_quantity_are_not_enough() -> None:
    figures = tuple(compared(name, "a", "rate", 1.0) for name in ("one", "two"))

    assert list(validation(figures, ()).to_frame()["name"]) == ["one", "two"]


def test_a_table_without_left_out_figures_has_its_columns_all_the_same() -> None:
    frame = validation((compared("one", "a", "rate", 1.0),), ()).to_frame()

    assert frame[["fold", "left_out_error", "held"]].isna().all(axis=None)
