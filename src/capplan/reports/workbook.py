"""A proposal as a workbook: every sum of prices and the growth as live formulas, and every document table on a sheet.

Each formula has its computed value, because viewers that do not calculate would show 0. What people wrote is stored as
text, so that no cell becomes a formula or a link.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from capplan.planner.proposal.details import Logo
from capplan.planner.proposal.proposal import RATE, Proposal
from capplan.planner.size.machines import MACHINES
from capplan.reports import figure as look
from capplan.reports.document import Bullets, Cell, Document, Picture, Signatures, Table, Tiles
from capplan.reports.numbers import capital
from capplan.reports.sizing import MONTHS, held, situation
from capplan.systems.registry import system

if TYPE_CHECKING:
    from xlsxwriter import Workbook
    from xlsxwriter.worksheet import Worksheet

PRICES, GROWTH, FIRST = "Prices", "Growth", "Proposal"
_FIRST_PRICE = 6  # row of the sheet with prices
_LANDSCAPE = 110.0  # characters of a sheet that is too wide for a page in portrait
_MADE = datetime(2000, 1, 1, tzinfo=UTC).replace(tzinfo=None)  # the same bytes on any day
_SHOWN = {"1": "0.0%", "1/s": "#,##0", "ms": "#,##0.###", "months": "0.0"}
_NARROWEST, _WIDEST = 12.0, 58.0  # of a column, characters
_LETTERS, _LINE = 1.1, 13.5  # letters in the width of a digit, and points of a line
_BELOW_TITLE = 2  # row of a sheet
_BAND = 3  # columns of a figure with its band


def workbook(proposal: Proposal, made: Document, logo: Logo | None = None) -> bytes:
    """Return the workbook of a proposal and its document."""
    from xlsxwriter import Workbook

    target = io.BytesIO()
    with Workbook(target, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}) as book:
        book.set_properties({"title": made.title, "created": _MADE})
        writer = _Writer(book, proposal, made)
        writer.first(logo)
        writer.prices()
        writer.growth()
        for section in made.sections[1:]:
            if any(isinstance(each, Table) for each in section.blocks):
                writer.section(section.title, section.blocks)
    return target.getvalue()


class _Writer:
    def __init__(self, book: Workbook, proposal: Proposal, made: Document) -> None:
        self.book, self.proposal, self.made = book, proposal, made
        self.styles: dict[tuple[tuple[str, Any], ...], Any] = {}
        self.prices_at = {each.kind: f"{PRICES}!$C${row}" for row, each in enumerate(proposal.bill, _FIRST_PRICE)}

    def style(self, **look: Any) -> Any:
        """Return a format; equal formats are created once."""
        key = tuple(sorted({"valign": "top", "font_size": 10, **look}.items()))
        if key not in self.styles:
            self.styles[key] = self.book.add_format(dict(key))
        return self.styles[key]

    def sheet(self, name: str, widths: list[float], title: str) -> Worksheet:
        """Return a new sheet with its title; two rows below it are free."""
        sheet = self.book.add_worksheet(name.replace(":", "")[:31])
        for place, width in enumerate(widths):
            sheet.set_column(place, place, width)
        sheet.hide_gridlines(2)
        sheet.set_paper(9)  # A4
        if sum(widths) > _LANDSCAPE:
            sheet.set_landscape()
        sheet.fit_to_pages(1, 0)
        sheet.set_footer(f"&L{self.made.footer}&R&P / &N")
        sheet.write_string(0, 0, title, self.style(bold=True, font_size=14, font_color="#0072B2"))
        return sheet

    def inputs(self, name: str, widths: list[float], title: str) -> tuple[Worksheet, int]:
        """Return a new sheet whose inputs may be changed, and its next row."""
        sheet = self.sheet(name, widths, title)
        sheet.write_string(_BELOW_TITLE, 0, _CHANGE, self.style(font_color="#5A6270"))
        return sheet, _BELOW_TITLE + 2

    def first(self, logo: Logo | None) -> None:
        """Write the sheet with the answer."""
        widths = [44.0, 34.0, 16.0, 18.0, 18.0]
        sheet, row = self.sheet(FIRST, widths, f"{self.made.title}: {self.made.customer}"), _BELOW_TITLE
        for name, text in self.made.facts:
            sheet.write_string(row, 0, name, self.style(font_color="#5A6270"))
            sheet.write_string(row, 1, text, self.style())
            row += 1
        row += 1
        for block in self.made.sections[0].blocks:
            if isinstance(block, Tiles):
                for about, cell in block.cells:
                    sheet.write_string(row, 0, capital(about), self.style(text_wrap=True))
                    self.cell(sheet, row, 1, cell, bold=True)
                    sheet.write_string(row, 2, cell.mark, self.style(italic=True, font_color="#5A6270"))
                    row += 1
            else:
                row = self.block(sheet, row, block, widths)
        if logo is not None:
            scale = min(1.0, 64 / logo.height, 200 / logo.width)
            image = {"image_data": io.BytesIO(logo.content), "x_scale": scale, "y_scale": scale}
            sheet.insert_image(0, 5, f"logo.{logo.kind}", image)

    def prices(self) -> None:
        """Write the bill: prices are inputs, and all sums of the workbook follow them."""
        unit = self.proposal.sizing.price_unit
        sheet, row = self.inputs(PRICES, [34, 14, 18, 18], "Price of the layout")
        prices = ["Counts as", "Machines"] if unit == MACHINES else [f"Price of one, {unit}", f"Price, {unit}"]
        self.heads(sheet, row, ["Machine", "Number", *prices])
        first = row + 1
        for each in self.proposal.bill:
            row += 1
            sheet.write_string(row, 0, f"{each.name}, {each.shape}" if each.shape else each.name, self.style())
            sheet.write_number(row, 1, each.count, self.style(num_format="#,##0"))
            sheet.write_number(row, 2, each.price, self.given("#,##0.##"))
            price = each.count * each.price
            sheet.write_formula(row, 3, f"=B{row + 1}*C{row + 1}", self.style(num_format="#,##0"), price)
        number = sum(each.count for each in self.proposal.bill)
        total = sum(each.count * each.price for each in self.proposal.bill)
        row += 1
        sheet.write_string(row, 0, "Total", self.style(bold=True, top=1))
        look = self.style(bold=True, top=1, num_format="#,##0")
        sheet.write_formula(row, 1, f"=SUM(B{first + 1}:B{row})", look, number)
        sheet.write_string(row, 2, "", self.style(top=1))
        sheet.write_formula(row, 3, f"=SUM(D{first + 1}:D{row})", look, total)

    def growth(self) -> None:
        """Write growth: rate, growth and held rates are inputs; years and remaining time are formulas."""
        sizing, its = self.proposal.sizing, system(self.proposal.sizing.system)
        sheet, row = self.inputs(GROWTH, [44, 20, 20, 14, 12], "Growth of the offered rate")
        sheet.write_string(row, 0, "Offered peak rate today, requests per second", self.style())
        sheet.write_number(row, 1, sizing.offered_tps, self.given("#,##0"))
        sheet.write_string(row + 1, 0, "Growth a year", self.style())
        sheet.write_number(row + 1, 1, sizing.growth_per_year, self.given("0.0%"))
        offered, rises = f"$B${row + 1}", f"$B${row + 2}"
        row += 3
        self.heads(sheet, row, ["Situation", "Held per second", "Fits for, months"])
        rates = [each for each in self.proposal.fits_until if each.what == RATE]
        for each in rates:
            row += 1
            sheet.write_string(row, 0, situation(each.conditions, its), self.style())
            sheet.write_number(row, 1, float(f"{each.limit:.4g}"), self.given("#,##0"))
            formula = f'=IF({rises}>0,{MONTHS}*LN(B{row + 1}/{offered})/LN(1+{rises}),"no growth")'
            value: float | str = "no growth"
            if sizing.growth_per_year:
                ratio = float(f"{each.limit:.4g}") / sizing.offered_tps
                value = MONTHS * math.log(ratio) / math.log1p(sizing.growth_per_year)
            sheet.write_formula(row, 2, formula, self.style(num_format="0.0", align="right"), value)
        row += 2
        self.heads(sheet, row, ["Years from now", "Offered per second", "Held per second", "In use", "Enough"])
        first, chosen = row + 1, self.proposal.chosen
        for year in range(max(len(self.proposal.growth), 6)):
            row += 1
            rate = sizing.offered_tps * (1 + sizing.growth_per_year) ** year
            limit = float(f"{held(sizing, chosen, MONTHS * year):.4g}")
            sheet.write_number(row, 0, year, self.style(align="left"))
            sheet.write_formula(row, 1, f"={offered}*(1+{rises})^A{row + 1}", self.style(num_format="#,##0"), rate)
            sheet.write_number(row, 2, limit, self.style(num_format="#,##0"))
            share = self.style(num_format="0.0%")
            sheet.write_formula(row, 3, f"=B{row + 1}/C{row + 1}", share, rate / limit)
            enough = "yes" if rate <= limit else "no"
            test = f'=IF(B{row + 1}<=C{row + 1},"yes","no")'
            sheet.write_formula(row, 4, test, self.style(align="right"), enough)
        self.chart(sheet, first, row)

    def chart(self, sheet: Worksheet, first: int, last: int) -> None:
        """Draw the offered and the held rate over the years below the table."""
        chart = self.book.add_chart({"type": "line"})
        for column, colour in ((1, look.ASKED), (2, look.COLOURS[0])):
            at = {"categories": [GROWTH, first, 0, last, 0], "values": [GROWTH, first, column, last, column]}
            chart.add_series({"name": [GROWTH, first - 1, column], **at, "line": {"color": colour, "width": 2}})
        chart.set_x_axis({"name": "years from now"})
        chart.set_y_axis({"name": "requests per second", "num_format": "#,##0", "major_gridlines": {"visible": True}})
        chart.set_legend({"position": "bottom"})
        sheet.insert_chart(last + 2, 0, chart, {"x_scale": 1.4, "y_scale": 1.1})

    def section(self, name: str, blocks: tuple[Any, ...]) -> None:
        """Write the paragraphs and tables of a section."""
        tables = [_without_marks(each) for each in blocks if isinstance(each, Table)]
        widths = _widths(tables)
        sheet, row = self.sheet(name, widths, name), _BELOW_TITLE
        for block in blocks:
            row = self.block(sheet, row, block, widths)

    def block(self, sheet: Worksheet, row: int, block: Any, widths: Sequence[float]) -> int:
        """Write a block; return the next row. Pictures stay in the document."""
        if isinstance(block, Table):
            return self.table(sheet, row + 1, block)
        if isinstance(block, Signatures):
            texts = tuple(f"{party}: date, name, signature" for party in block.parties)
        elif isinstance(block, Bullets):
            texts = block.items
        else:
            texts = () if isinstance(block, Picture) else (block.text,)
        for text in texts:
            row = self.text(sheet, row, text, widths)
        return row

    def text(self, sheet: Worksheet, row: int, text: str, widths: Sequence[float]) -> int:
        """Write a text across all columns, wrapped; return the next row."""
        if len(widths) > 1:
            sheet.merge_range(row, 0, row, len(widths) - 1, "", self.style(text_wrap=True))
        sheet.write_string(row, 0, text, self.style(text_wrap=True))
        lines = sum(1 + int(len(line) / (sum(widths) * _LETTERS)) for line in text.split("\n"))
        sheet.set_row(row, _LINE * lines)
        return row + 1

    def table(self, sheet: Worksheet, row: int, table: Table) -> int:
        """Write a table; a column with bands takes three sheet columns, and the marks of a row follow it."""
        marks = [list(dict.fromkeys(cell.mark for cell in cells if cell.mark)) for cells in table.rows]
        table = _without_marks(table)
        spread = _spread(table)
        place = 0
        for column, parts in zip(table.columns, spread, strict=True):
            for title in (capital(column.title), "low", "high")[:parts]:
                sheet.write_string(row, place, title, self.head(column.right))
                place += 1
        if any(marks):
            sheet.write_string(row, place, "Rests on", self.head(False))
        for cells, marked in zip(table.rows, marks, strict=True):
            row += 1
            place = 0
            for cell, parts in zip(cells, spread, strict=True):
                self.cell(sheet, row, place, cell)
                if parts == _BAND and cell.low is not None and cell.high is not None:
                    for part, end in enumerate((cell.low, cell.high), 1):
                        self.cell(sheet, row, place + part, Cell("unbounded", end, cell.unit))
                place += parts
            if marked:
                sheet.write_string(row, place, ", ".join(marked), self.style(italic=True, font_color="#5A6270"))
        return row + 2

    def cell(self, sheet: Worksheet, row: int, place: int, cell: Cell, bold: bool = False) -> None:
        """Write a cell as a number or a text, never as a formula."""
        if cell.number is None or cell.number in (float("inf"), float("-inf")):
            sheet.write_string(row, place, cell.text, self.style(text_wrap=True, bold=bold))
        else:
            shown = _SHOWN.get(cell.unit, "#,##0")
            if cell.unit == "" and cell.number != int(cell.number):
                shown = "General"
            style = self.style(num_format=shown, bold=bold)
            parts = "".join(f"{count:+}*{self.prices_at[kind]}" for kind, count in cell.adds if count)
            if parts:
                sheet.write_formula(row, place, f"={parts.removeprefix('+')}", style, cell.number)
            else:
                sheet.write_number(row, place, cell.number, style)

    def heads(self, sheet: Worksheet, row: int, names: Sequence[str]) -> None:
        """Write the headings of a text and of numbers."""
        for place, name in enumerate(names):
            sheet.write_string(row, place, name, self.head(place > 0))

    def head(self, right: bool) -> Any:
        return self.style(bold=True, bottom=1, text_wrap=True, align="right" if right else "left")

    def given(self, shown: str) -> Any:
        """Return the format of an editable input."""
        return self.style(num_format=shown, font_color="#0000CC", bg_color="#F4F6F8")


_CHANGE = "Blue cells are inputs: change one, and the formulas of all sheets follow. The machines stay as proposed."


def _without_marks(table: Table) -> Table:
    """Return a table without its untitled column of marks."""
    if table.columns[-1].title:
        return table
    return Table(table.columns[:-1], tuple(row[:-1] for row in table.rows), table.name)


def _spread(table: Table) -> list[int]:
    """Return the number of sheet columns for each column: three if its cells have bands."""
    return [
        _BAND if any(row[place].low is not None for row in table.rows) else 1 for place, _ in enumerate(table.columns)
    ]


def _widths(tables: Sequence[Table]) -> list[float]:
    """Return column widths in characters, fitted to the longest cells within limits."""
    found: list[float] = []
    for table in tables:
        needed: list[float] = []
        for place, (column, parts) in enumerate(zip(table.columns, _spread(table), strict=True)):
            cells = [row[place] for row in table.rows]
            texts = [line for cell in cells if cell.number is None for line in cell.text.split("\n")]
            longest = max([len(text) for text in texts] + [len(column.title) / 2], default=0)
            needed += [min(max(longest * 1.05 + 2, _NARROWEST), _WIDEST)] + [_NARROWEST] * (parts - 1)
        needed.append(_NARROWEST + 2)  # the marks
        found = [max(pair) for pair in zip_longest(found, needed, fillvalue=0.0)]
    return found
