"""The plot of a prediction: in a browser, narrow and wide, light and dark, and as pictures."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser
from tests.system import pages

from capplan.cli.main import main

pytestmark = pytest.mark.system

ASKED = ["predict", "--engine", "analytic", "--data-factor", "1", "--slo", "acct.mean<20ms", "--plot"]


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plot") / "answer.html"
    assert main([*ASKED, str(path)]) == 0
    return path


@pytest.mark.parametrize("width", [390, 480, 800, 1280])
def test_it_is_drawn_in_its_width_and_asks_nobody(browser: Browser, html: Path, width: int) -> None:
    complaints: list[str] = []
    requests: list[str] = []
    page = pages.opened(browser, html, (width, 900), complaints, requests, [".legend .traces"])
    shown = " ".join(page.locator("svg.main-svg").all_text_contents())

    assert complaints == []
    assert [url for url in requests if not url.startswith(("data:", "blob:"))] == [html.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for part in ("auth", "acct", "what failures leave", "peak rate [requests per second]", "objective", "measured"):
        assert part in shown
    for row in page.locator(".annotation").all():
        box = row.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= width
    page.close()


def test_it_is_dark_where_the_reader_prefers_that(browser: Browser, html: Path) -> None:
    found: dict[str, str] = {}
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme="dark" if scheme == "dark" else "light")
        page = context.new_page()
        page.goto(html.as_uri())
        page.wait_for_selector(".legend .traces")
        found[scheme] = page.evaluate("getComputedStyle(document.querySelector('.gtitle')).fill")
        context.close()

    assert found["light"] == "rgb(34, 34, 34)"
    assert found["dark"] == "rgb(221, 221, 221)"


def test_pictures_are_the_same_in_each_run(tmp_path: Path) -> None:
    for name in ("one", "two"):
        for ending in ("svg", "png"):
            assert main([*ASKED, str(tmp_path / f"{name}.{ending}")]) == 0
    one, two = ((tmp_path / f"{name}.svg").read_bytes() for name in ("one", "two"))

    assert one == two
    assert ElementTree.fromstring(one).tag.endswith("svg")
    assert (tmp_path / "one.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
