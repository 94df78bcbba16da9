"""A proposal says the same in every format, and can be computed again."""

import io
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import openpyxl
import pypdfium2
import pytest
from tests.planner.proposals import HOSTILE, for_subscribers, of_a_table, question, small, with_unseen_rows

from capplan.answers.results import plain
from capplan.errors import InputError
from capplan.planner.demand.demand import read_demand
from capplan.planner.demand.forecast import layout_of
from capplan.planner.proposal.details import Details, Logo, checked, read_details, read_logo
from capplan.planner.proposal.failures import mass_return
from capplan.planner.proposal.proposal import DISKS, RATE, Proposal
from capplan.planner.proposal.propose import NoLayoutError, asked, propose
from capplan.planner.proposal.verify import Verification, compared, question_of, read_proposal
from capplan.planner.size.sizing import chosen_scenario
from capplan.reports.document import Cell, Document, Table, Tiles
from capplan.reports.proposal import document, render_proposal
from capplan.simulator.workers import in_process

ROOT = Path(__file__).parents[2]
PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\nIDAT"
    b"x\x9cc\x00\x01\x00\x00\x05\x00\x01\r\n-\xb4\x00\x00\x00\x00IEND\xaeB`\x82"
)


def html(proposal: Proposal, logo: Logo | None = None) -> str:
    return render_proposal(proposal, ".html", logo).decode()


def pdf(proposal: Proposal, logo: Logo | None = None) -> bytes:
    return render_proposal(proposal, ".pdf", logo)


def workbook(proposal: Proposal, logo: Logo | None = None) -> bytes:
    return render_proposal(proposal, ".xlsx", logo)


class Page(HTMLParser):
    """The texts of a page: those of figures by their name, and everything that is read."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.figures: dict[str, str] = {}
        self.read: list[str] = []
        self.tags: list[str] = []
        self.open: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open = dict(attrs).get("data-figure")

    def handle_data(self, data: str) -> None:
        self.read.append(data)
        if self.open is not None:
            self.figures[self.open] = data
            self.open = None


def text_of(content: bytes) -> str:
    """Return the text of a PDF without blanks, which lines may add or remove."""
    pages = pypdfium2.PdfDocument(content)
    return squeezed("".join(page.get_textpage().get_text_bounded() for page in pages))


def squeezed(text: str) -> str:
    return re.sub(r"[\s\u200b\ufffe\u00ad]", "", text)


def book_of(content: bytes, values: bool = True) -> Any:
    return openpyxl.load_workbook(io.BytesIO(content), data_only=values)


def cells_of(book: Any) -> Iterator[Any]:
    for sheet in book:
        for row in sheet.iter_rows():
            yield from (cell for cell in row if cell.value is not None)


def figures_of(its: Document) -> dict[str, Cell]:
    """Return every figure of a document by its name."""
    cells: list[Cell] = []
    for block in (block for section in its.sections for block in section.blocks):
        if isinstance(block, Table):
            cells += [cell for row in block.rows for cell in row]
        elif isinstance(block, Tiles):
            cells += [cell for _, cell in block.cells]
    return {cell.key: cell for cell in cells if cell.key}


@pytest.fixture(scope="module")
def proposal() -> Proposal:
    return small()


@pytest.mark.slow
@pytest.mark.parametrize("made", [with_unseen_rows, pytest.param(of_a_table, marks=pytest.mark.trust)])
def test_page_pdf_and_workbook_have_the_same_figures(made: Callable[[], Proposal]) -> None:
    assert_same_figures(made())


def assert_same_figures(proposal: Proposal) -> None:
    figures = figures_of(document(proposal))
    page, printed = Page(html(proposal)), text_of(pdf(proposal))
    numbers = {cell.value for cell in cells_of(book_of(workbook(proposal))) if isinstance(cell.value, int | float)}
    assert len(figures) > 30
    assert page.figures == {name: cell.text for name, cell in figures.items()}
    for name, cell in figures.items():
        assert squeezed(cell.text) in printed, name
        for number in (cell.number, cell.low, cell.high):
            assert number is None or math.isinf(number) or number in numbers, name


@pytest.mark.slow
def test_cells_of_chosen_shapes_add_up_and_fit_as_long_as_the_subscribers_grow() -> None:
    """And page, PDF and workbook have the same figures of them."""
    proposal = for_subscribers()
    chosen = proposal.sizing.chosen
    assert chosen is not None
    assert {each.shape for each in proposal.bill} == {"small", "plain"}
    assert sum(each.price * each.count for each in proposal.bill) == chosen.cost
    assert {each.kind: each.count for each in proposal.bill} == {
        kind: 2 * count for kind, count in proposal.places[0].machines.items()
    }
    assert proposal.prediction.offered is not None
    assert proposal.prediction.offered.peak_tps == pytest.approx(proposal.sizing.planned_tps / 2)
    assert proposal.sizing.planned_tps == pytest.approx(
        proposal.sizing.offered_tps * (1 + proposal.sizing.growth_per_year) ** 2
    )
    rate, disk = proposal.fits_until[0], proposal.fits_until[-1]
    assert (rate.what, disk.what) == (RATE, DISKS)
    for each in (rate, disk):
        assert each.months is not None
        assert each.months.low <= each.months.value <= each.months.high
    again = question_of(json.loads(json.dumps(proposal.to_json())))
    assert again.sizing.shapes is not None
    assert again.sizing.cells == (2,)
    assert again.sizing.demand is not None
    layout = layout_of(again.sizing.demand, chosen_scenario(again.base, proposal.sizing, chosen))
    assert proposal.mass_return == mass_return(again.sizing.demand, 2 * layout.reattach_capacity.value)
    assert_same_figures(proposal)


def test_what_people_wrote_stays_text() -> None:
    hostile = replace(
        small(), details=checked(Details(HOSTILE, project=HOSTILE, prepared_by="<b>x</b>", contact="=2+2"))
    )
    page = Page(html(hostile))
    assert HOSTILE in page.read
    assert not {"script", "b>", "iframe", "link"} & {*page.tags}
    assert squeezed(HOSTILE) in text_of(pdf(hostile))
    cells = [*cells_of(book_of(workbook(hostile), values=False))]
    assert any(cell.value == HOSTILE and cell.data_type == "s" for cell in cells)
    others = [cell for cell in cells if cell.data_type == "f" and cell.parent.title not in ("Prices", "Growth")]
    assert all(re.fullmatch(r"=-?\d+\*Prices!\$C\$\d+([+-]\d+\*Prices!\$C\$\d+)*", cell.value) for cell in others)


def test_formulas_hold_what_they_compute(proposal: Proposal) -> None:
    formulas, values = (book_of(workbook(proposal), values) for values in (False, True))
    found = [cell for cell in cells_of(formulas) if cell.data_type == "f"]
    assert len(found) > 20
    for cell in found:
        sheet = values[cell.parent.title]
        computed, stored = evaluated(cell.value, sheet, values["Prices"]), sheet[cell.coordinate].value
        assert computed == stored if isinstance(stored, str) else computed == pytest.approx(stored)


def test_a_changed_price_reaches_every_cost(proposal: Proposal) -> None:
    formulas, values = (book_of(workbook(proposal), values) for values in (False, True))
    every_cost = [each.cost for each in proposal.survival_options]
    every_cost += [each.cost for each in proposal.sizing.confidences]
    costs = {cost for cost in every_cost if cost is not None}
    values["Prices"]["C6"].value *= 2  # of the only kind of machine
    every = [cell for cell in cells_of(formulas) if cell.parent.title != "Prices"]
    linked = [cell for cell in every if cell.data_type == "f" and "Prices!" in cell.value]
    found = {evaluated(cell.value, values[cell.parent.title], values["Prices"]) for cell in linked}
    assert {2 * cost for cost in costs} <= found
    assert not [cell for cell in every if cell.data_type == "n" and cell.value in costs]


def evaluated(formula: str, sheet: Any, prices: Any) -> Any:
    """Evaluate a formula of the few kinds that the workbook has."""
    text = formula.removeprefix("=").replace("$", "").replace("^", "**")
    text = re.sub(
        r"SUM\(([A-Z])(\d+):[A-Z](\d+)\)", lambda m: f"sum(at(f'{m[1]}{{n}}') for n in range({m[2]}, {m[3]} + 1))", text
    )
    text = re.sub(r"Prices!([A-Z]\d+)", r"price('\1')", text)
    text = re.sub(r"(?<![\w'{])([A-Z]\d+)", r"at('\1')", text)
    names = {
        "price": lambda name: prices[name].value,
        "at": lambda name: sheet[name].value,
        "LN": math.log,
        "IF": lambda test, yes, no: yes if test else no,
        **{"sum": sum, "range": range, "__builtins__": {}},
    }
    return eval(text, names)


@pytest.mark.slow
def test_the_same_question_gives_the_same_bytes(proposal: Proposal) -> None:
    logo = Logo("png", PNG, 1, 1)
    for write in (pdf, workbook, html):
        assert write(proposal, logo) == write(proposal, logo)


def test_the_promise_says_whose_loss_stops_the_service(proposal: Proposal) -> None:
    usual, single = (
        html(replace(proposal, sizing=replace(proposal.sizing, single_points=points))) for points in ((), ("node",))
    )
    caution, promise = (
        "Caution: losing",
        "We propose 2 repository nodes, for 1,800\N{NO-BREAK SPACE}EUR a year. With at least",
    )
    assert caution not in usual
    assert single.count(caution) == 1
    assert usual.count(promise) == single.count(promise) == 1


def test_the_page_is_small_and_asks_nobody(proposal: Proposal) -> None:
    text = html(proposal)
    assert len(text) < 6e6
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", text)
    assert "default-src 'none'" in text


def test_the_json_follows_its_schema() -> None:
    proposal = with_unseen_rows()
    jsonschema.validate(proposal.to_json(), Proposal.json_schema())
    json.dumps(proposal.to_json(), allow_nan=False)


def test_the_acceptance_test_has_a_run_for_each_situation_and_its_risk(proposal: Proposal) -> None:
    assert proposal.sizing.chosen is not None
    expected = [(each.conditions, 1 - each.risk) for each in proposal.sizing.chosen.safety]
    assert [(each.conditions, each.chance) for each in proposal.acceptance.runs] == expected
    assert {each.offered_tps for each in proposal.acceptance.runs} == {proposal.sizing.planned_tps}
    assert set(proposal.acceptance.repeats_within) == {"read.p95"}


def test_what_was_edited_is_named(proposal: Proposal) -> None:
    content = json.loads(json.dumps(proposal.to_json()))
    content["sizing"]["chosen"]["cost"] *= 0.9
    content["provenance"]["evidence"] = "another"
    found = compared(content, proposal.to_json())
    assert not found.verified
    assert not found.intact
    assert [each.figure for each in found.changes] == ["sizing.chosen.cost"]
    assert [each.figure for each in found.origins] == ["evidence"]
    jsonschema.validate(found.to_json(), Verification.json_schema())


def test_a_question_survives_the_json(proposal: Proposal) -> None:
    again = question_of(json.loads(json.dumps(proposal.to_json())))
    assert again == question()


def test_a_question_with_a_demand_survives_the_json() -> None:
    demand = read_demand(ROOT / "docs" / "examples" / "demand.toml")
    plain_question = question()
    with_demand = replace(plain_question, sizing=replace(plain_question.sizing, demand=demand))
    content = json.loads(json.dumps(plain({"asked": asked(with_demand), "details": with_demand.details})))
    assert question_of(content) == with_demand


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("", "is not JSON"),
        ("[]", "schema"),
        ('{"schema": "capplan.prediction/5"}', "capplan.prediction/5"),
    ],
)
def test_what_is_no_proposal_is_refused(content: str, found: str, tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=found):
        read_proposal(path)


def test_a_question_that_is_broken_is_refused() -> None:
    with pytest.raises(InputError, match="cannot be read"):
        question_of({"asked": {"scenario": {}}, "details": {"customer": "x"}})


def test_what_no_layout_carries_is_not_proposed() -> None:
    with in_process() as workers, pytest.raises(NoLayoutError, match="nothing to propose"):
        propose(question(tps=90_000.0), workers)


def test_growth_reaches_the_limit_when_it_is_said_to(proposal: Proposal) -> None:
    for each in proposal.fits_until:
        assert each.months is not None
        assert 300 * 1.2 ** (each.months.value / 12) == pytest.approx(each.limit)


# Details and logos


def test_details_come_from_a_file_and_the_customer_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "logo.png").write_bytes(PNG)
    path = tmp_path / "details.toml"
    path.write_text('customer = "A"\ndate = 2026-11-22\ncurrency = "EUR"\nlogo = "logo.png"\n', encoding="utf-8")
    details, currency, logo = read_details(path, "B")
    assert (details.customer, details.date, currency) == ("B", "2026-11-22", "EUR")
    assert logo == Logo("png", PNG, 1, 1)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('customr = "A"', "did you mean 'customer'"),
        ("customer = 3", "must be a text"),
        ('customer = " "', "names its customer"),
        ('customer = "a\\u0007b"', "control characters"),
        (f'customer = "{"x" * 201}"', "at most 200"),
        ('customer = "A"\nlogo = "https://logo.example/a.png"', "is not a file"),
        ('customer = "A"\nlogo = "details.toml"', "neither PNG nor JPEG"),
    ],
)
def test_bad_details_are_one_sentence(text: str, found: str, tmp_path: Path) -> None:
    path = tmp_path / "details.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=found):
        read_details(path, None)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (PNG + b"\0" * 1_000_000, "bytes: give one of at most"),
        (PNG[:16] + b"\x00\x01\x00\x00" * 2 + PNG[24:], "pixels: give at most"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "neither PNG nor JPEG"),
    ],
)
def test_a_logo_is_checked_by_what_it_is(content: bytes, found: str, tmp_path: Path) -> None:
    path = tmp_path / "logo.png"
    path.write_bytes(content)
    with pytest.raises(InputError, match=found):
        read_logo(path)


def test_the_size_of_a_jpeg_is_read() -> None:
    from capplan.planner.proposal.details import _jpeg

    header = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08\x00\x20\x00\x40\x03" + b"\0" * 20
    assert _jpeg(header) == Logo("jpeg", header, 64, 32)
