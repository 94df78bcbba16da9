"""Pages opened in a browser, with their requests and error messages."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Page

HERE = re.compile(r"(https?|wss?)://127\.0\.0\.1|data:|blob:")


@dataclass
class Opened:
    """A page, where it went for what it needs, and what it complained about."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def outside(self) -> list[str]:
        """What it asked for beside itself."""
        return [url for url in self.requests if not url.startswith(("data:", "blob:")) and url != self.page.url]

    @property
    def elsewhere(self) -> list[str]:
        """What it asked other machines for."""
        return [url for url in self.requests if not HERE.match(url)]


def listened_to(page: Page) -> Opened:
    """Listen to a page from now on: errors are among its complaints."""
    found = Opened(page)
    page.on("request", lambda request: found.requests.append(request.url))
    page.on("console", lambda message: found.complaints.append(message.text))
    page.on("console", lambda message: found.errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.on("pageerror", lambda error: found.errors.append(str(error)))
    return found


def opened(browser: Browser, html: Path, width: int, *drawn: str) -> Opened:
    """Open a file, listen to it, and wait until what the selectors `drawn` name is there."""
    found = listened_to(browser.new_page(viewport={"width": width, "height": 900}))
    found.page.goto(html.as_uri())
    for selector in drawn:
        found.page.wait_for_selector(selector)
    return found
