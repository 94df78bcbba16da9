"""The plots of a simulation in a browser: drawn, without errors or network requests, with a working legend."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.system import pages

from capplan.cli.main import main

pytestmark = pytest.mark.system

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "pauses-and-a-lost-node.toml"
PANELS = {"xy": 4, "x2y2": 4, "x3y4": 3, "x4y6": 3}  # subplots of plotly, and the lines in each that have a legend


@dataclass
class Opened:
    """A page, where it went for what it needs, and what it complained about."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def lines(self, panel: str) -> int:
        """Count the lines of a panel that lead from a point to another."""
        drawn = f".subplot.{panel} .scatterlayer .trace path.js-line"
        return self.page.locator(f"{drawn}[d*='L'], {drawn}[d*='H']").count()


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plot") / "plot.html"
    assert main(["simulate", str(EXAMPLE), "--engine", "simpy", "--duration", "40s", "--plot", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def opened(browser: Browser, html: Path) -> Opened:
    complaints: list[str] = []
    requests: list[str] = []
    page = pages.opened(browser, html, (1300, 1560), complaints, requests, [".legend4 .traces"])
    return Opened(page, requests, complaints)


def test_it_asks_nobody_and_complains_of_nothing(opened: Opened, html: Path) -> None:
    outside = [url for url in opened.requests if not url.startswith(("data:", "blob:"))]

    assert outside == [html.as_uri()]
    assert opened.complaints == []


@pytest.mark.parametrize("panel", PANELS)
def test_each_panel_has_data(opened: Opened, panel: str) -> None:
    assert opened.lines(panel) >= PANELS[panel]


def test_titles_and_units_are_there(opened: Opened) -> None:
    shown = " ".join(opened.page.locator("svg.main-svg").all_text_contents())

    for part in ("latency [ms]", "requests per second", "mean number waiting", "busy [%]", "time [s]"):
        assert part in shown
    for part in ("down node/2", "up node/2", "pause of a station", "background of a station", "p99.9"):
        assert part in shown


def test_a_click_in_the_legend_hides_a_line(opened: Opened) -> None:
    before = opened.lines("xy")
    opened.page.locator(".legend .legendtoggle").first.click()
    count = "document.querySelectorAll('.subplot.xy .scatterlayer .trace path.js-line').length"
    opened.page.wait_for_function(f"before => {count} < before", arg=before)

    assert opened.lines("xy") == before - 1
