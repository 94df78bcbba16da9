"""Bands and lines with figures that have no bound."""

from math import inf

from capplan.reports.figure import drawn, ends_drawn


def test_a_line_has_a_gap_where_it_has_no_bound() -> None:
    assert drawn([1.0, inf, None, 2.0]) == [1.0, None, None, 2.0]


def test_a_band_without_an_upper_end_leaves_the_picture_above_all_that_is_drawn() -> None:
    low, high = ends_drawn([1.0, 2.0], [3.0, inf], [2.0, 40.0])
    assert low == [1.0, 2.0]
    assert high[0] == 3.0
    assert high[1] > 40.0


def test_there_is_no_band_where_even_its_low_end_has_no_bound() -> None:
    assert ends_drawn([1.0, inf, None], [2.0, inf, None]) == ([1.0, None, None], [2.0, None, None])
