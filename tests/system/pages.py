"""Pages opened in a browser, with their requests and error messages."""

from pathlib import Path

from playwright.sync_api import Browser, Page


def opened(
    browser: Browser, html: Path, size: tuple[int, int], complaints: list[str], requests: list[str], drawn: list[str]
) -> Page:
    """Open a file, listen to it, and wait until what the selectors `drawn` name is there."""
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(html.as_uri())
    for selector in drawn:
        page.wait_for_selector(selector)
    return page
