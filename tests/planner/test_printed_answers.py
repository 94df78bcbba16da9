"""Checks of formats notice what is no answer."""

import io

import openpyxl
import pytest
from tests.planner.printed_answers import of_content, of_pair, of_text


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("The capacity is nan requests/s", True),
        ("latency,read,mean,2,1,inf,ms", True),
        ("reads: None", True),
        ("OpenproviderScenario: rf = 3 needs as many nodes", True),
        ("Traceback (most recent call last):", True),
        ("a part is missing (InputError('no layout'))", True),
        ("None of the 5 layouts evaluated is safe enough, for information: --info", False),
        ("Between Nantes and Infield, 3.5 ms; see nan.csv", False),
    ],
)
def test_words_of_python_are_no_text(text: str, broken: bool) -> None:
    assert bool(list(of_text(text, "here"))) == broken


@pytest.mark.parametrize(
    ("kind", "content", "broken"),
    [
        ("html", b"<html><script>var x = NaN;</script><p>12 ms</p></html>", False),
        ("html", b"<html><p>NaN ms</p></html>", True),
        ("html", b"12 ms", True),
        ("pdf", b"12 ms", True),
        ("xlsx", b"12 ms", True),
        ("csv", b"a,b\n1,2\n", False),
        ("csv", b"a,b\n1,2,3,4\n5\n", True),
        ("csv", b"", True),
        ("json", b'{"a": NaN}', True),
        ("json", b'{"a": null}', False),
        ("xml", b"<testsuite></testsuite>", True),
        ("xml", b'<testsuite><testcase name="a"/></testsuite>', False),
    ],
)
def test_a_format_that_cannot_be_read_is_broken(kind: str, content: bytes, broken: bool) -> None:
    assert bool(of_content(kind, content, "here")) == broken


@pytest.mark.parametrize(("cell", "broken"), [("12 ms", False), ("nan", True)])
def test_cells_of_a_workbook_are_read(cell: str, broken: bool) -> None:
    book, content = openpyxl.Workbook(), io.BytesIO()
    book.worksheets[0]["B2"] = cell
    book.save(content)
    assert bool(of_content("xlsx", content.getvalue(), "here")) == broken


@pytest.mark.parametrize(("table", "broken"), [("name,mean\nread,12.34\n", False), ("name,mean\nread,12.9\n", True)])
def test_a_csv_has_the_figures_of_the_json(table: str, broken: bool) -> None:
    assert bool(list(of_pair({"read": [{"mean": 12.341}, {"mean": "13"}]}, table))) == broken
