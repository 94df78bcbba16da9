"""Notebooks as web apps in a real browser: they render, follow their controls, and load nothing from elsewhere."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

pytestmark = pytest.mark.system
NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
WAIT_MS = 120_000  # of a first answer on a busy machine


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
    process = subprocess.Popen(
        [sys.executable, *command, str(NOTEBOOKS / f"{notebook}.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "URL" in line:
            break
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.communicate(timeout=30)


@pytest.mark.parametrize("width", [390, 1280])
def test_an_app_renders_follows_its_controls_and_loads_nothing_from_elsewhere(
    notebook: str, address: str, width: int, browser: Browser
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    asked: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
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
    if os.environ.get("SHOTS"):
        page.screenshot(path=f"{os.environ['SHOTS']}/{notebook}-{width}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not [url for url in asked if not re.match(r"(https?|wss?)://127\.0\.0\.1|data:|blob:", url)]
    assert errors == []
    page.close()
