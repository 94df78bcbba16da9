"""The screen shows every block of a document, and loses nothing where it is narrow."""

from collections.abc import Iterable

import pytest
from tests.reports.screens import on_screen

from capplan.reports.document import Code, Column, Fact, Paragraph, ruled, stacked, table, texts

HEADS, ROWS = ("situation", "risk", "held"), [("normal", "0.1 %", "17,400 TPS"), ("lost DC", "9.8 %", "12,000 TPS")]


def cells(rows: Iterable[Iterable[str]]) -> set[str]:
    return {cell for row in rows for cell in row}


@pytest.mark.parametrize("width", [20, 30, 80])
def test_a_table_or_what_stands_in_its_place_has_every_cell_and_fits(width: int) -> None:
    lines = on_screen(table(HEADS, ROWS, stacked(HEADS, ROWS)), width=width).splitlines()
    text = " ".join(" ".join(lines).split())
    assert all(cell in text for cell in cells(ROWS))
    assert max(map(len, lines)) <= width


def test_a_table_that_is_shown_whole_is_neither_wrapped_nor_cut() -> None:
    lines = on_screen(ruled(map(Column, HEADS), texts(ROWS), whole=True), width=10).splitlines()
    assert all(cell in "\n".join(lines) for cell in cells(ROWS))
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize("width", [30, 40, 80])
def test_a_fact_keeps_its_remark_and_a_figure_its_unit(width: int) -> None:
    fact = Fact("Capacity", "about 17,400 TPS at peak", "interpolated")
    lines = on_screen(fact, Paragraph("p99 of 20 ms " * 9), width=width).splitlines()
    assert "interpolated" in " ".join(lines)
    assert not any(line.startswith(("ms", "TPS")) for line in lines)
    assert max(map(len, lines)) <= width


def test_what_no_answer_puts_on_a_screen_is_refused() -> None:
    with pytest.raises(TypeError, match="Code"):
        on_screen(Code("capplan"))
