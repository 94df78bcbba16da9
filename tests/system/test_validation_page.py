"""The report of a validation in a browser: drawn, without errors or network requests, narrow and wide."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from tests.calibration.documented_reports import every
from tests.system import pages
from tests.system.pages import Opened

from capplan.reports.validation import figures, write_report
from capplan.systems.registry import documented_names

pytestmark = pytest.mark.system

NAMES = documented_names()
DRAWN = sorted((Path(__file__).parents[2] / "docs" / "figures").glob("validation-*.svg"))
OVERLAPS = """root => {
  const texts = [...root.querySelectorAll("text")].map(text => [text.textContent, text.getBoundingClientRect()])
    .filter(([text, box]) => text.trim() && box.width > 0);
  const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  const found = [];
  texts.forEach(([one, a], i) => texts.slice(i + 1).forEach(([two, b]) => over(a, b) && found.push([one, two])));
  const edge = root.getBoundingClientRect();
  texts.forEach(([one, a]) => (a.left < edge.left - 1 || a.right > edge.right + 1) && found.push([one, "edge"]));
  return [texts.length, found];
}"""


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(every(), tmp_path_factory.mktemp("report"))[1]


def opened(browser: Browser, html: Path, width: int) -> Opened:
    return pages.opened(browser, html, width, *(f"[id='{name}'] .legend .traces" for name in NAMES))


def points_of(figure: Any) -> int:
    return sum(len(trace.x) for trace in figure.data)


@pytest.mark.parametrize("width", [390, 1280])
def test_it_is_drawn_in_its_width_and_asks_nobody(browser: Browser, html: Path, width: int) -> None:
    drawn = figures(every())
    its = opened(browser, html, width)
    page = its.page
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    wide = page.evaluate("document.documentElement.scrollWidth")
    tables = page.evaluate(
        "Math.max(...[...document.querySelectorAll('table')].map(t => t.getBoundingClientRect().right))"
    )

    assert its.complaints == []
    assert its.outside == []
    assert wide == width
    assert tables <= width
    assert tuple(drawn) == tuple(NAMES)
    for name, figure in drawn.items():
        assert page.locator(f"[id='{name}'] .scatterlayer .points path.point").count() == points_of(figure)
    page.close()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", NAMES)
def test_no_text_lies_on_another_or_is_cut_off(browser: Browser, html: Path, width: int, name: str) -> None:
    page = opened(browser, html, width).page
    texts, overlaps = page.locator(f"[id='{name}']").evaluate(OVERLAPS)

    assert texts > 8
    assert overlaps == []
    page.close()


@pytest.mark.parametrize("drawing", DRAWN, ids=lambda path: path.stem)
def test_no_text_of_a_drawing_lies_on_another_or_is_cut_off(browser: Browser, drawing: Path) -> None:
    page = browser.new_page(viewport={"width": 800, "height": 900})
    page.goto(drawing.as_uri())
    texts, overlaps = page.locator(":root").evaluate(OVERLAPS)

    assert texts > 8
    assert overlaps == []
    page.close()
