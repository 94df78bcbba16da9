"""Notebooks as web apps in a real browser: they render, follow their controls, and load nothing from elsewhere."""

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


@pytest.fixture(params=["what_if_layout", "tail_latency"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """Serve a notebook on loopback."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    command = ["-m", "marimo", "run", "--headless", "--no-token", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        [sys.executable, *command, str(NOTEBOOKS / f"{request.param}.py")],
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
    address: str, width: int, browser: Browser
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
    line = page.locator(".js-plotly-plot .scatterlayer .js-line").first
    before = line.get_attribute("d")
    slider = page.get_by_role("slider").nth(1)
    slider.focus()
    slider.press("ArrowRight")
    expect(line).not_to_have_attribute("d", before or "", timeout=WAIT_MS)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not [url for url in asked if not re.match(r"(https?|wss?)://127\.0\.0\.1|data:|blob:", url)]
    assert errors == []
    page.close()
