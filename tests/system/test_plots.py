"""Pages in a browser: drawn in their width, without errors or requests, with working menus and legends."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser
from tests.system import pages
from tests.system.pages import Opened

from capplan.cli.main import main

pytestmark = pytest.mark.system

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "pauses-and-a-lost-node.toml"
PREDICT = ["predict", "--engine", "analytic", "--data-factor", "1", "--slo", "acct.mean<20ms"]
LAYOUTS = ["--dcs", "1..3", "--cass-nodes", "3,6", "--front-workers", "32,64"]
ASKED = {
    "predict": PREDICT,
    "sweep": ["sweep", *LAYOUTS, "--load", "20%..110%:30%", "--draws", "5"],
    "simulate": ["simulate", str(EXAMPLE), "--engine", "simpy", "--duration", "40s"],
}
LINE = "path.js-line"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("plots")
    for name, asked in ASKED.items():
        assert main([*asked, "--plot", str(made / f"{name}.html")]) == 0
    return made


def opened(browser: Browser, html: Path, width: int) -> Opened:
    drawn = {"simulate": ".legend4 .traces", "sweep": ".updatemenu-header"}
    return pages.opened(browser, html, width, drawn.get(html.stem, ".legend .traces"))


@pytest.mark.parametrize(("name", "width"), [(each, width) for each in ASKED for width in (390, 800, 1280)])
def test_it_is_drawn_in_its_width_and_asks_nobody(browser: Browser, folder: Path, name: str, width: int) -> None:
    its = opened(browser, folder / f"{name}.html", width)

    assert its.complaints == []
    assert its.outside == []
    assert its.page.locator(f".scatterlayer .trace {LINE}[d*='L']").count() > 0
    assert name == "simulate" or its.page.evaluate("document.documentElement.scrollWidth") == width
    for row in its.page.locator(".annotation").all() if name == "predict" else ():
        box = row.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= width
    its.page.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_neither_text_nor_toolbar_hides_anything(browser: Browser, folder: Path, width: int) -> None:
    page = opened(browser, folder / "sweep.html", width).page
    page.mouse.move(width // 2, 500)
    page.wait_for_selector(".modebar-btn")
    parts = (".cartesianlayer", ".updatemenu-header", ".modebar", "body > p:last-of-type")
    panels, menu, toolbar, words = (page.locator(each).bounding_box() for each in parts)

    assert panels is not None
    assert menu is not None
    assert toolbar is not None
    assert words is not None
    assert menu["y"] + menu["height"] <= panels["y"] + 1
    assert toolbar["y"] + toolbar["height"] <= menu["y"] + 1
    assert words["y"] + words["height"] <= toolbar["y"] + 1
    assert words["x"] + words["width"] <= width
    page.close()


def test_the_menu_changes_what_is_drawn(browser: Browser, folder: Path) -> None:
    page = opened(browser, folder / "sweep.html", 1280).page
    line = page.locator(f".scatterlayer .trace {LINE}[d*='L']").nth(0)
    before = line.get_attribute("d")
    page.locator(".updatemenu-header").click()
    page.locator(".updatemenu-dropdown-button", has_text="auth mean").click()
    page.wait_for_function("document.querySelector('.ytitle').textContent.startsWith('auth mean')")

    assert line.get_attribute("d") != before
    page.close()


def test_a_click_in_the_legend_hides_a_line(browser: Browser, folder: Path) -> None:
    page = opened(browser, folder / "simulate.html", 1300).page
    lines = f"document.querySelectorAll('.subplot.xy .scatterlayer .trace {LINE}').length"
    before = page.evaluate(lines)
    page.locator(".legend .legendtoggle").first.click()
    page.wait_for_function(f"before => {lines} === before - 1", arg=before)
    page.close()


def test_it_is_dark_where_the_reader_prefers_that(browser: Browser, folder: Path) -> None:
    found: dict[str, str] = {}
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme="dark" if scheme == "dark" else "light")
        page = context.new_page()
        page.goto((folder / "predict.html").as_uri())
        page.wait_for_selector(".legend .traces")
        found[scheme] = page.evaluate("getComputedStyle(document.querySelector('h1')).color")
        context.close()

    assert found["light"] != found["dark"]


def test_pictures_are_the_same_in_each_run(tmp_path: Path) -> None:
    for name in ("one", "two"):
        for ending in ("svg", "png"):
            assert main([*PREDICT, "--plot", str(tmp_path / f"{name}.{ending}")]) == 0
    one, two = ((tmp_path / f"{name}.svg").read_bytes() for name in ("one", "two"))

    assert one == two
    assert ElementTree.fromstring(one).tag.endswith("svg")
    assert (tmp_path / "one.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
