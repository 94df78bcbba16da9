"""The screen shows every block of a document, and loses nothing where it is narrow."""

from collections.abc import Iterable

import pytest
from tests.reports.screens import on_screen

from capplan.reports.document import Bullets, Cell, Code, Column, Fact, Paragraph, Picture, table

HEADS, ROWS = ("situation", "risk", "held"), [("normal", "0.1 %", "17,400 TPS"), ("lost DC", "9.8 %", "12,000 TPS")]


def cells(rows: Iterable[Iterable[str]]) -> set[str]:
    return {cell for row in rows for cell in row}


@pytest.mark.parametrize("width", [20, 30, 80])
@pytest.mark.parametrize("right", [False, True])
def test_a_table_or_what_stands_in_its_place_has_every_cell_and_fits(width: int, right: bool) -> None:
    lines = on_screen(table([Column(head, right=right) for head in HEADS], ROWS), width=width).splitlines()
    text = " ".join(" ".join(lines).split())
    assert all(cell in text for cell in cells(ROWS))
    assert max(map(len, lines)) <= width
    assert all(line == line.rstrip() for line in lines)


def test_a_table_that_is_too_wide_loses_optional_columns_and_then_shows_bands_below() -> None:
    columns = ("class", Column("mean", optional=True), Column("p99"), Column("done"), Column("basis", below=True))
    made = table(columns, [[Cell("read", level=1), "1.1", Cell("9.5", beside="8 to 12"), "yes", "measured"]])
    assert on_screen(made, width=50).splitlines() == [
        "class   mean  p99            done  basis",
        "  read  1.1   9.5 (8 to 12)  yes   measured",
    ]
    assert on_screen(made, width=40).splitlines() == [
        "class   p99            done  basis",
        "  read  9.5 (8 to 12)  yes   measured",
    ]
    assert on_screen(made, width=30).splitlines() == [
        "                 done,",
        "class   p99      basis",
        "  read  9.5      yes",
        "        8 to 12  measured",
    ]


def test_facts_stand_one_below_the_other_and_numbers_at_the_right() -> None:
    facts = on_screen(Fact("Capacity", "17,400"), Fact("a longer key", "9.5", level=1)).splitlines()
    assert {line.index(value) for line, value in zip(facts, ("17,400", "9.5"), strict=True)} == {15}
    numbers = on_screen(table(("", Column("p99", right=True)), [["read", "9.5"], ["write", "1,200"]])).splitlines()
    assert numbers == ["         p99", "────────────", "read     9.5", "write  1,200"]


@pytest.mark.parametrize("width", [30, 40, 80])
def test_a_fact_keeps_its_remark_and_a_figure_its_unit(width: int) -> None:
    fact = Fact("Capacity", "about 17,400 TPS at peak", "interpolated")
    lines = on_screen(fact, Paragraph("p99 of 20 ms " * 9), width=width).splitlines()
    assert "interpolated" in " ".join(lines)
    assert not any(line.startswith(("ms", "TPS")) for line in lines)
    assert max(map(len, lines)) <= width


def test_what_is_to_be_copied_is_in_one_line_and_a_list_is_set_in() -> None:
    command = f"capplan predict {'a' * 40}.json"
    assert on_screen(Code(command, "Next"), width=20) == f"Next: {command}\n"
    assert on_screen(Bullets(("one two three",), level=1), width=12).splitlines() == ["  - one two", "    three"]


def test_what_no_answer_puts_on_a_screen_is_refused() -> None:
    with pytest.raises(TypeError, match="Picture"):
        on_screen(Picture("growth", "the offered rate"))
