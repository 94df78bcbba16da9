"""Notebooks as web apps in a real browser: they render, follow their controls, and load nothing from elsewhere."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.system.pages import listened_to

pytestmark = pytest.mark.system
NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
WAIT_MS = 240_000  # of a first answer, a sizing too, where other tests take the cores


FOLLOWS = {
    "what_if_layout": (".js-line", "d"),
    "tail_latency": (".js-line", "d"),
    "sizing_proposal": (".point", "transform"),
}
"""What moves in the picture of a notebook, and the attribute that tells."""


@pytest.fixture(params=FOLLOWS)
def notebook(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def address(notebook: str) -> Iterator[str]:
    """Serve a notebook on loopback."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    command = ["-m", "marimo", "run", "--headless", "--no-token", "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(
        [sys.executable, *command, str(NOTEBOOKS / f"{notebook}.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            assert any("URL" in line for line in process.stdout)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.communicate(timeout=30)


@pytest.mark.parametrize("notebook", ["calibrate_your_own"], indirect=True)
def test_a_dropped_table_is_audited_and_fitted(address: str, browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    heard = listened_to(page)
    page.goto(address)
    plots = page.locator(".js-plotly-plot")
    expect(plots).to_have_count(2, timeout=WAIT_MS)
    line = plots.last.locator(".scatterlayer .js-line").first
    before = line.get_attribute("d")
    slider = page.get_by_role("slider").first
    slider.focus()
    slider.press("ArrowRight")
    expect(line).not_to_have_attribute("d", before or "", timeout=WAIT_MS)
    table = tmp_path / "mine.csv"
    header = "run_id,cass_nodes,rf,read_fraction,load_kind,clients,request_class,throughput_tps,latency_mean_ms"
    rows = ["a,3,3,0,closed,4,write,3941,1", "b,3,3,0,closed,16,write,12754,1.2", "c,3,3,0,closed,8,write,12754,1.2"]
    table.write_text("\n".join([header, *rows, ""]))
    page.locator("input[type=file]").set_input_files(table)
    expect(page.get_by_text("1 must not be believed")).to_be_visible(timeout=WAIT_MS)
    assert heard.elsewhere == []
    page.close()


def test_an_app_renders_follows_its_controls_and_loads_nothing_from_elsewhere(
    notebook: str, address: str, browser: Browser
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    heard = listened_to(page)
    page.goto(address)
    page.wait_for_selector(".js-plotly-plot", timeout=WAIT_MS)
    shown = page.locator("[class*=stat], .js-plotly-plot").first
    expect(shown).to_be_visible(timeout=WAIT_MS)
    moved, attribute = FOLLOWS[notebook]
    mark = page.locator(f".js-plotly-plot .scatterlayer {moved}").first
    before = mark.get_attribute(attribute)
    slider = page.get_by_role("slider").nth(1)
    slider.focus()
    slider.press("ArrowRight")
    expect(mark).not_to_have_attribute(attribute, before or "", timeout=WAIT_MS)
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        if os.environ.get("SHOTS"):
            page.screenshot(path=f"{os.environ['SHOTS']}/{notebook}-{width}.png", full_page=True)
        page.wait_for_function("document.documentElement.scrollWidth <= innerWidth", timeout=WAIT_MS)
    assert heard.elsewhere == []
    assert heard.errors == []
    page.close()
