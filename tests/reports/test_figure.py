"""Bands and lines with figures that have no bound, colours, and pages."""

from math import inf
from pathlib import Path

import plotly.graph_objects as go

from capplan.reports.figure import ASKED, COLOURS, LIMIT, NEUTRAL, SHARED, drawn, ends_drawn, frame, write


def test_a_line_has_a_gap_where_it_has_no_bound() -> None:
    assert drawn([1.0, inf, None, 2.0]) == [1.0, None, None, 2.0]


def test_a_band_without_an_upper_end_leaves_the_picture_above_all_that_is_drawn() -> None:
    low, high = ends_drawn([1.0, 2.0], [3.0, inf], [2.0, 40.0])
    assert low == [1.0, 2.0]
    assert high[0] == 3.0
    assert high[1] > 40.0


def test_there_is_no_band_where_even_its_low_end_has_no_bound() -> None:
    assert ends_drawn([1.0, inf, None], [2.0, inf, None]) == ([1.0, None, None], [2.0, None, None])


def test_no_line_of_data_has_the_colour_of_what_was_asked() -> None:
    assert not {ASKED, LIMIT, NEUTRAL} & set(COLOURS)


def framed(page: bool) -> go.Figure:
    figure = go.Figure(go.Scatter(y=[1, 2]))
    frame(figure, "3 < 4 nodes: which?", ["Answer: yes.", "word " * 100], 100, page)
    return figure


def test_a_page_has_title_and_text_in_its_own_width_and_a_picture_has_them_inside(tmp_path: Path) -> None:
    write(tmp_path / "page.html", "page", framed)
    text, picture = (tmp_path / "page.html").read_text(), framed(page=False)

    assert framed(page=True).layout.title.text == ""
    assert f"<h1>3 &lt; 4 nodes: which?</h1><p>Answer: yes.</p><p>{'word ' * 100}</p>" in text
    assert picture.layout.title.text.count("<br>") > 2
    assert picture.layout.height > framed(page=True).layout.height


def test_a_page_uses_the_script_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "whole.html", "page", framed)
    (tmp_path / SHARED).touch()
    write(tmp_path / "small.html", "page", framed)

    assert (tmp_path / "whole.html").stat().st_size > 3e6
    assert (tmp_path / "small.html").stat().st_size < 5e4
    assert f'src="{SHARED}"' in (tmp_path / "small.html").read_text()
