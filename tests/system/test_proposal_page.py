"""The page of a proposal in a browser: narrow, wide and on paper, without errors or requests."""

from pathlib import Path

import pypdfium2
import pytest
from playwright.sync_api import Browser
from tests.planner.proposals import small
from tests.system import pages

from capplan.reports.proposal import render_proposal

pytestmark = pytest.mark.system
LONG = "Extraordinarilylongnamewithoutasingleblank" * 4


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("proposal") / "proposal.html"
    path.write_bytes(render_proposal(small(LONG), ".html"))
    return path


@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_its_width_and_asks_nobody(browser: Browser, page_file: Path, width: int) -> None:
    its = pages.opened(browser, page_file, width, "figure img", "footer")
    page = its.page
    assert its.complaints == []
    assert its.outside == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
    cut = "each => each.scrollWidth > each.clientWidth + 1"
    assert page.evaluate(f"[...document.querySelectorAll('.scroll, td, h1, li, pre')].filter({cut}).length") == 0
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    page.close()


def test_it_prints_on_a4(browser: Browser, page_file: Path) -> None:
    page = pages.opened(browser, page_file, 1280, "footer").page
    printed = pypdfium2.PdfDocument(page.pdf(prefer_css_page_size=True))
    page.close()
    assert 3 <= len(printed) <= 12
    for each in printed:
        assert each.get_size() == pytest.approx((595, 842), abs=2)
        assert len(each.get_textpage().get_text_bounded()) > 100
