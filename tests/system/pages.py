"""Pages opened in a browser, with their requests and error messages."""

from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Page


@dataclass
class Opened:
    """A page, where it went for what it needs, and what it complained about."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def outside(self) -> list[str]:
        """What it asked for beside itself."""
        return [url for url in self.requests if not url.startswith(("data:", "blob:")) and url != self.page.url]


def opened(browser: Browser, html: Path, width: int, *drawn: str) -> Opened:
    """Open a file, listen to it, and wait until what the selectors `drawn` name is there."""
    found = Opened(browser.new_page(viewport={"width": width, "height": 900}))
    found.page.on("request", lambda request: found.requests.append(request.url))
    found.page.on("console", lambda message: found.complaints.append(message.text))
    found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
    found.page.goto(html.as_uri())
    for selector in drawn:
        found.page.wait_for_selector(selector)
    return found
