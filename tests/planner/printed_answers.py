"""What must hold of an answer in each format: screen, CSV, Markdown, HTML, PDF, workbook, Parquet and JUnit."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import openpyxl
import pandas as pd
import pypdfium2

ROUNDED = 1e-3
"""Of figures with four digits."""
_OF_PROGRAMS = re.compile(
    r"(?<![\w./-])([Nn]a[Nn]|-?inf(inity)?|-?Infinity|NaT|None(?!:? (of|[a-z]))|Traceback)(?![\w./-])"
    r"|\b[A-Z]\w*(Scenario|Error|Question|Construct)\b|<\w+ object|\bobject at 0x|\bnp\.\w+\("
)
"""Words of Python, which are no answer; `None of the layouts` is English."""


@dataclass(frozen=True)
class Violation:
    """A broken invariant."""

    invariant: str
    detail: str


def of_text(text: str, where: str) -> Iterator[Violation]:
    """Check that a text for people has no words of Python."""
    for found in _OF_PROGRAMS.finditer(text):
        around = text[max(found.start() - 60, 0) : found.end() + 60]
        yield Violation("words of Python", f"{where}: {found[0]!r} in {around!r}")
        return


def _of_table(content: bytes, where: str) -> Iterator[Violation]:
    text = content.decode()
    pd.read_csv(io.StringIO(text))
    widths = {len(row) for row in csv.reader(io.StringIO(text))}
    if len(widths) != 1:
        yield Violation("rows of a table have one width", f"{where}: {sorted(widths)}")
    yield from of_text(text, where)


def _of_parquet(content: bytes, where: str) -> Iterator[Violation]:
    if not len(pd.read_parquet(io.BytesIO(content)).columns):
        yield Violation("a table has columns", where)


class _Visible(HTMLParser):
    """Reads the text of a page that people see."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.hidden = 0
        self.tags = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        del attrs
        self.hidden += tag in ("script", "style")
        self.tags += 1

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.texts.append(data)


def _of_page(content: bytes, where: str) -> Iterator[Violation]:
    page = _Visible()
    page.feed(content.decode())
    page.close()
    if page.hidden or not page.tags:
        yield Violation("a page is HTML", where)
    yield from of_text(" ".join(page.texts), where)


def _of_pdf(content: bytes, where: str) -> Iterator[Violation]:
    if not content.startswith(b"%PDF"):
        yield Violation("a PDF is one", f"{where}: {content[:20]!r}")
        return
    document = pypdfium2.PdfDocument(content)
    try:
        texts = [page.get_textpage().get_text_range() for page in document]
    finally:
        document.close()
    yield from of_text("\n".join(texts), where)


def _of_workbook(content: bytes, where: str) -> Iterator[Violation]:
    for sheet in openpyxl.load_workbook(io.BytesIO(content)).worksheets:
        for row in sheet.iter_rows(values_only=True):
            for cell in row:
                if isinstance(cell, float) and not math.isfinite(cell):
                    yield Violation("figures are numbers", f"{where}: {cell}")
                if isinstance(cell, str):
                    yield from of_text(cell, f"{where}, sheet {sheet.title}")


def _of_json(content: bytes, where: str) -> Iterator[Violation]:
    try:
        json.loads(content, parse_constant=_refused)
    except ValueError as error:
        yield Violation("JSON is strict", f"{where}: {error}")


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _of_junit(content: bytes, where: str) -> Iterator[Violation]:
    root = ElementTree.fromstring(content)
    if not list(root.iter("testcase")):
        yield Violation("verdicts are test cases", where)
    yield from of_text(content.decode(), where)


def _of_words(content: bytes, where: str) -> Iterator[Violation]:
    yield from of_text(content.decode(), where)


READERS: Mapping[str, Callable[[bytes, str], Iterator[Violation]]] = {
    "csv": _of_table,
    "parquet": _of_parquet,
    "html": _of_page,
    "pdf": _of_pdf,
    "xlsx": _of_workbook,
    "json": _of_json,
    "xml": _of_junit,
    "md": _of_words,
    "screen": _of_words,
}
"""Checks by format: the ending of a file, or what stdout has."""


def of_content(kind: str, content: bytes, where: str) -> list[Violation]:
    """Return what is wrong with a format; what cannot be read is."""
    try:
        return list(READERS[kind](content, where))
    except Exception as error:
        return [Violation("a format can be read", f"{where}: {type(error).__name__}: {error}"[:200])]


def of_pair(found: Any, table: str) -> Iterator[Violation]:
    """Check that the figures of a CSV are those of the JSON."""
    known = sorted(_numbers(found))
    frame = pd.read_csv(io.StringIO(table), dtype=str, keep_default_na=False)
    for name in frame.columns:
        for cell in frame[name]:
            number = _number(cell)
            if number is not None and math.isfinite(number) and not _near(number, known):
                yield Violation("CSV has the figures of the JSON", f"{name} {cell}")
                return


def _near(number: float, known: list[float]) -> bool:
    place = bisect_left(known, number)
    return any(
        math.isclose(each, number, rel_tol=ROUNDED, abs_tol=1e-12) for each in known[max(place - 1, 0) : place + 1]
    )


def _number(value: Any) -> float | None:
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def _numbers(value: Any) -> Iterator[float]:
    """Yield the numbers of a JSON value, also those that are texts."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _numbers(each)
    elif isinstance(value, list):
        for each in value:
            yield from _numbers(each)
    elif (number := _number(value)) is not None and math.isfinite(number):
        yield number
