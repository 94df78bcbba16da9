"""Write a figure to a file: a page of HTML that needs no network, SVG, or PNG, as the ending says."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from capplan.models.errors import InputError, MissingError
from capplan.models.replaced_file import replace_file
from capplan.planner.reports.visual_language import DARK, LIGHT

PICTURES = (".png", ".svg")
WIDTH = 960  # pixels of a picture
SHARP = 2  # pixels of a .png in one of those
_ID = "plot"
_DARK_SCREEN = """
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const looks = {looks};
function look() {{ Plotly.relayout("{id}", {{template: looks[dark.matches ? 1 : 0]}}); }}
dark.addEventListener("change", look);
if (dark.matches) look();
"""
_STYLE = (
    "body {{ margin: 8px; background: {light} }} "
    "@media (prefers-color-scheme: dark) {{ body {{ background: {dark} }} }}"
)


def is_page(path: Path) -> bool:
    """Whether a file is a page, on which people can hover and choose."""
    return path.suffix.lower() not in PICTURES


def check_drawing(path: Path) -> None:
    """Refuse a picture that cannot be drawn here.

    Raises
    ------
    MissingError
        When no Chrome or Chromium is installed.
    """
    from choreographer.browsers.chromium import Chromium  # slow to import

    if not Chromium.find_browser(skip_local=False):
        raise MissingError(f"{path} is drawn by Chrome or Chromium, and none is found: install one, or write .html")


def write_figure(figure: go.Figure, title: str, path: Path) -> None:
    """Write a figure to a file, which is there in full or not at all; the same figure gives the same bytes.

    Raises
    ------
    InputError
        When the file cannot be written or the picture cannot be drawn.
    """
    if is_page(path):
        replace_file(path, page(figure, title))
    else:
        drawn = _drawn(figure, path)
        replace_file(path, drawn)


def page(figure: go.Figure, title: str) -> str:
    """Return a self-contained page with a figure that fills its width, light or dark as the reader prefers."""
    looks = json.dumps([each.to_plotly_json() for each in (LIGHT, DARK)], sort_keys=True)
    text = str(
        figure.to_html(
            include_plotlyjs=True,
            full_html=True,
            config={"displaylogo": False, "responsive": True},
            div_id=_ID,
            post_script=_DARK_SCREEN.format(looks=looks, id=_ID),
        )
    )
    style = _STYLE.format(light=LIGHT.layout.paper_bgcolor, dark=DARK.layout.paper_bgcolor)
    head = f'<head><title>{escape(title)}</title><meta name="viewport" content="width=device-width">'
    return text.replace("<head>", f"{head}<style>{style}</style>", 1)


def _drawn(figure: go.Figure, path: Path) -> bytes:
    import kaleido  # slow to import
    from choreographer.errors import BrowserClosedError, BrowserFailedError, ChromeNotFoundError

    options: dict[str, Any] = {"format": path.suffix.lower()[1:], "width": WIDTH, "height": figure.layout.height}
    if options["format"] == "png":
        options["scale"] = SHARP
    named = go.Figure(figure)
    for place, trace in enumerate(named.data):
        trace.uid = str(place)  # plotly draws one by lot otherwise, and writes it into the picture
    try:
        found: bytes = kaleido.calc_fig_sync(named, opts=options, kopts={"mathjax": False})
    except (BrowserClosedError, BrowserFailedError, ChromeNotFoundError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(f"{path} cannot be drawn by Chrome or Chromium ({first}): write .html") from None
    return _with_same_names(found) if options["format"] == "svg" else found


def _with_same_names(svg: bytes) -> bytes:
    """Return an SVG with the random part of plotly's names replaced, so that the same figure has the same bytes."""
    text = svg.decode()
    names = re.search(r'<defs id="defs-([0-9a-f]{6})"', text)
    return (text if names is None else re.sub(rf"(?<=[a-z-]){names[1]}", "", text)).encode()
