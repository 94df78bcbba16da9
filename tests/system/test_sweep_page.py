"""The plot of a sweep in a browser: drawn, without errors or network requests, narrow and wide, with a working menu."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.system import pages

from capplan.cli.main import main

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plot") / "plot.html"
    layouts = ["--dcs", "1..3", "--cass-nodes", "3,6", "--front-workers", "32,64"]
    assert main(["sweep", *layouts, "--load", "20%..110%:30%", "--draws", "5", "--plot", str(path)]) == 0
    return path


def opened(browser: Browser, html: Path, width: int, complaints: list[str], requests: list[str]) -> Page:
    return pages.opened(browser, html, (width, 900), complaints, requests, [".legend .traces"])


@pytest.mark.parametrize("width", [390, 1280])
def test_it_is_drawn_in_its_width_and_asks_nobody(browser: Browser, html: Path, width: int) -> None:
    complaints: list[str] = []
    requests: list[str] = []
    page = opened(browser, html, width, complaints, requests)
    lines = page.locator(".scatterlayer .trace path.js-line[d*='L']").count()
    fills = page.locator(".scatterlayer .js-fill[d]").count()
    capacities = page.locator(".shapelayer path").count()
    shown = " ".join(page.locator("svg.main-svg").all_text_contents())
    panels, legend = page.locator(".cartesianlayer").bounding_box(), page.locator(".legend").bounding_box()

    assert complaints == []
    assert [url for url in requests if not url.startswith(("data:", "blob:"))] == [html.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert lines == 3 * 12 + 6  # a line and the two edges of its band; capacities
    assert fills == 12
    assert capacities == 12
    for part in ("acct p99 [ms]", "offered peak rate [per second]", "dcs 1", "front-workers 32", "openprovider"):
        assert part in shown
    assert "capacity [per second]" in shown
    assert panels is not None
    assert legend is not None
    assert legend["x"] + legend["width"] <= width
    assert legend["y"] + legend["height"] <= panels["y"] + 1
    page.close()


@pytest.mark.parametrize("width", [390, 480, 1280])
def test_the_toolbar_hides_no_title(browser: Browser, html: Path, width: int) -> None:
    page = opened(browser, html, width, [], [])
    page.mouse.move(width // 2, 500)
    page.wait_for_selector(".modebar-btn")
    toolbar, words = page.locator(".modebar").bounding_box(), page.locator(".gtitle").bounding_box()

    assert toolbar is not None
    assert words is not None
    assert toolbar["y"] + toolbar["height"] <= words["y"]
    page.close()


def test_the_menu_changes_what_is_drawn(browser: Browser, html: Path) -> None:
    page = opened(browser, html, 1280, [], [])
    line = page.locator(".scatterlayer .trace path.js-line[d*='L']").nth(0)
    before = line.get_attribute("d")
    page.locator(".updatemenu-header").click()
    page.locator(".updatemenu-dropdown-button", has_text="auth mean").click()
    page.wait_for_function("document.querySelector('.ytitle').textContent.startsWith('auth mean')")

    assert line.get_attribute("d") != before
    page.close()
