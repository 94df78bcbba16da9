"""The pages of `capplan serve` in a real browser: they render without complaints, and ask nobody else."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.system.pages import listened_to

pytestmark = pytest.mark.system
TOKEN = "a-token-of-this-test"
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
WAIT_MS = 120_000  # of a first answer on a busy machine


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serve on loopback, with a token."""
    capplan = Path(sys.executable).with_name("capplan")
    with subprocess.Popen(
        [capplan, "serve", "--port", "0", "--processes", "1"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "CAPPLAN_TOKEN": TOKEN},
    ) as process:
        assert process.stderr is not None
        try:
            # On a slow machine the first line says that it is still starting.
            yield next(found[0] for line in process.stderr if (found := ADDRESS.search(line)))
        finally:
            process.terminate()
            process.communicate(timeout=30)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    ("path", "shown"), [("/docs", "text=/predict"), ("/", ".js-plotly-plot .scatterlayer .js-line")]
)
def test_a_page_renders_and_loads_nothing_from_elsewhere(
    address: str, path: str, shown: str, width: int, browser: Browser
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(f"{address}/docs")
    page.fill("input[name=token]", TOKEN)
    page.click("button")
    heard = listened_to(page)
    page.goto(f"{address}{path}")
    expect(page.locator(shown).first).to_be_visible(timeout=WAIT_MS)
    if os.environ.get("SHOTS"):
        page.screenshot(path=f"{os.environ['SHOTS']}/serve{path.replace('/', '-')}-{width}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert heard.elsewhere == []
    assert heard.errors == []
    page.close()
