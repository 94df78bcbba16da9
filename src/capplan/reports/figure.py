"""The look of every picture, light and dark, and its output: a page without network access, SVG, or PNG."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capplan.answers.results import Band
from capplan.errors import InputError, MissingError
from capplan.files import replace_file

if TYPE_CHECKING:
    import plotly.graph_objects as go
else:

    class _Later:
        """plotly.graph_objects, imported on first use, because it is slow to import and most answers draw nothing."""

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module("plotly.graph_objects"), name)

    go = _Later()

__all__ = ["go"]

# Colours of data, distinguishable with any colour vision (Okabe and Ito 2008; the last two Tol 2021) and readable on
# light and dark, then dashes. What the question gives has colours of its own, which no data have.
COLOURS = ("#0072B2", "#D55E00", "#56B4E9", "#E69F00", "#999933", "#AA4499")
DASHES = ("solid", "dash", "dashdot", "longdash")
NEUTRAL = "#7F7F7F"  # for capacities and guides, which are not data
ASKED, LIMIT = "#009E73", "#CC79A7"  # the asked rate and objectives
INK, PAPER, GRID, BOX = "#222222", "#FFFFFF", "#E5E5E5", "#F7F8FA"  # on paper
DARK_INK, DARK_PAPER = "#DDDDDD", "#16181C"
EITHER_INK, CLEAR = "#7A7A7A", "rgba(0, 0, 0, 0)"  # on both
BAND_OPACITY, CAPACITY_OPACITY = 0.18, 0.14
TICKS_MS = [digit * 10.0**power for power in range(-3, 6) for digit in (1, 2, 5)]
RATE_AXIS = {"rangemode": "tozero", "tickformat": ","}
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE, HEADING_SIZE = 17, 13, 12, 15
LINE_PIXELS = 22  # of the small text below a title
WIDE = 140  # characters of it that fit into the width of a picture
NARROW_PIXELS = 330  # of a legend that fits into that width
_ABOVE = 10.0  # an unbounded band leaves the picture at this multiple of the highest end
TOOLBAR_PIXELS = 30  # above the title of a page's figure
PICTURES = (".png", ".svg")
WIDTH = 960  # pixels of a picture
SHARP = 2  # pixels of a .png in one of those
SHARED = "plotly.min.js"  # which pages use that lie beside it
_ID = "plot"
_DARK_SCREEN = """
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const looks = {looks};
function look() {{ Plotly.relayout("{id}", {{template: looks[dark.matches ? 1 : 0]}}); }}
dark.addEventListener("change", look);
if (dark.matches) look();
"""
_STYLE = (
    f"body {{ margin: 8px; background: {PAPER}; color: {INK}; font: {TEXT_SIZE}px/1.45 sans-serif }} "
    f"h1 {{ font-size: {TITLE_SIZE}px; margin: 8px 8px 4px }} p {{ margin: 2px 8px }} "
    f"@media (prefers-color-scheme: dark) {{ body {{ background: {DARK_PAPER}; color: {DARK_INK} }} }}"
)


@dataclass(frozen=True)
class Line:
    """The style of a line."""

    colour: str
    dash: str

    @classmethod
    def number(cls, place: int) -> Line:
        """Return the style of the line at a position in the legend."""
        return cls(COLOURS[place % len(COLOURS)], DASHES[place // len(COLOURS) % len(DASHES)])


def faint(colour: str, opacity: float = BAND_OPACITY) -> str:
    """Return a light colour for the band of a line with this colour."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity:g})"


@cache
def _template(ink: str, paper: str, grid: str, button: str) -> go.layout.Template:
    axis = {"showgrid": True, "gridcolor": grid, "zeroline": False, "linecolor": NEUTRAL, "showline": True}
    axis["title"] = {"font": {"size": TEXT_SIZE}}
    return go.layout.Template(
        layout={
            "font": {"size": TEXT_SIZE, "color": ink, "family": "sans-serif"},
            "paper_bgcolor": paper,
            "plot_bgcolor": paper,
            "xaxis": axis,
            "yaxis": axis,
            "hovermode": "closest",
            "legend": {"bgcolor": CLEAR},
            "updatemenudefaults": {"bgcolor": button, "bordercolor": NEUTRAL},
            "modebar": {"bgcolor": CLEAR, "color": NEUTRAL, "activecolor": ink},
        }
    )


light = partial(_template, INK, PAPER, GRID, PAPER)
"""The look on paper; a page changes between this and `_dark`, so no figure sets these colours itself."""
_dark = partial(_template, DARK_INK, DARK_PAPER, "#34373D", DARK_PAPER)
either = partial(_template, EITHER_INK, CLEAR, faint(NEUTRAL, 0.25), NEUTRAL)
"""The look in a notebook, which is read on light and on dark paper."""


def make_subplots(**layout: Any) -> go.Figure:
    """Return an empty figure with several panels; see `plotly.subplots.make_subplots`."""
    from plotly.subplots import make_subplots as made  # slow to import

    return made(**layout)


def small(text: str) -> str:
    """Return a text in small type, for titles and tick labels."""
    return f"<span style='font-size: {SMALL_SIZE}px'>{text}</span>"


def frame(
    figure: go.Figure,
    name: str,
    lines: Sequence[str],
    inner: int,
    page: bool,
    above: int = 0,
    below: int = 58,
    **layout: Any,
) -> None:
    """Give a figure its title and margins; a page has the title and the text above the figure, in its own width.

    Parameters
    ----------
    figure : Figure
        The figure.
    name : str
        The title.
    lines : sequence of str
        Paragraphs of small text below it.
    inner : int
        Height of the panels, pixels.
    page : bool
        Whether it is for a page, with a toolbar above the panels.
    above, below : int
        Pixels between title and panels, and below the panels.
    **layout
        More of the layout, such as its legend.
    """
    shown = [] if page else [line for each in lines for line in textwrap.wrap(each, WIDE)]
    top = (TOOLBAR_PIXELS if page else 46 + LINE_PIXELS * len(shown)) + above
    height = top + inner + below
    text = "" if page else name + "".join(f"<br>{small(line)}" for line in shown)
    look = {"x": 0.01, "xanchor": "left", "yref": "container", "yanchor": "top", "font": {"size": TITLE_SIZE}}
    figure.update_layout(
        template=light(),
        height=height,
        margin={"l": 20, "r": 16, "t": top, "b": below},
        title={"text": text, "y": 1 - 18 / height, **look},
        meta={"title": name, "text": list(lines)},
        **layout,
    )


def above(**changed: Any) -> dict[str, Any]:
    """Return a legend in rows above the panels."""
    look = {"orientation": "h", "x": 0, "xanchor": "left", "font": {"size": SMALL_SIZE}}
    return {**look, **({} if "y" in changed else {"yanchor": "bottom", "y": 1}), **changed}


def whiskers(bands: Sequence[Band], colour: str) -> dict[str, Any]:
    """Return error bars from the low to the high end of a mark's band."""
    return {
        **{"type": "data", "symmetric": False, "color": colour, "thickness": 1.5, "width": 4},
        "array": [each.high - each.value for each in bands],
        "arrayminus": [each.value - each.low for each in bands],
    }


def latency_axis(text: str) -> dict[str, Any]:
    """Return a logarithmic axis of latencies in milliseconds."""
    ticks = [f"{tick:,.10g}" for tick in TICKS_MS]
    return {"title_text": text, "type": "log", "tickvals": TICKS_MS, "ticktext": ticks}


def band(
    x: Sequence[Any], ends: Sequence[Sequence[Any]], colour: str, middle: Sequence[Any] = (), **more: Any
) -> Iterator[go.Scatter]:
    """Yield the ends of a band with the area between them shaded, up to the top if the high end is unbounded."""
    low, high = ends
    for edge, fill in zip(ends_drawn(low, high, middle), (None, "tonexty"), strict=True):
        yield go.Scatter(
            x=x,
            y=edge,
            **{"mode": "lines", "fill": fill, "fillcolor": faint(colour), "showlegend": False},
            **{"line": {"width": 0}, "hoverinfo": "skip", "connectgaps": False, **more},
        )


def pen(style: Line, width: float = 2) -> dict[str, Any]:
    """Return the line properties for plotly."""
    return {"color": style.colour, "dash": style.dash, "width": width}


def curve(
    x: Sequence[Any], values: Sequence[Any], ends: Sequence[Sequence[Any]], line: dict[str, Any], **more: Any
) -> Iterator[go.Scatter]:
    """Yield a curve with its band: the low and high end, the shaded area between them, then the line."""
    shared = {name: more[name] for name in ("legendgroup",) if name in more}
    yield from band(x, ends, line["color"], middle=more.pop("middle", ()), **shared)
    yield go.Scatter(x=x, y=drawn(values), line=line, **{"mode": "lines", **more})


def ends_drawn(low: Sequence[Any], high: Sequence[Any], middle: Sequence[Any] = ()) -> tuple[list[Any], list[Any]]:
    """Return the ends of a band as drawable numbers; None where even the low end is unbounded."""
    finite = [each for each in (*low, *high, *middle) if each is not None and math.isfinite(each)]
    top = _ABOVE * max(finite, default=1.0)
    pairs = [
        (None, None) if start is None or end is None or not math.isfinite(start) else (start, min(end, top))
        for start, end in zip(low, high, strict=True)
    ]
    return [start for start, _ in pairs], [end for _, end in pairs]


def drawn(values: Iterable[Any]) -> list[Any]:
    """Return the values of a line, with gaps at unbounded ones."""
    return [None if value is None or not math.isfinite(value) else value for value in values]


def upright(low: float, high: float, line: Mapping[str, Any], **look: Any) -> dict[str, Any]:
    """Return a shape that stands between two values of the x axis, behind the whole height of a panel."""
    kind = "line" if low == high and not look else "rect"
    across = {"yref": "y domain", "y0": 0, "y1": 1, "layer": "below"}
    return {"type": kind, "x0": low, "x1": high, **across, "line": line, **look}


def capacity_lines(capacity: Band) -> Iterator[dict[str, Any]]:
    """Yield the shapes of a capacity across a panel: dotted median, shaded band."""
    yield upright(capacity.low, capacity.high, {"width": 0}, fillcolor=faint(NEUTRAL, CAPACITY_OPACITY))
    yield upright(capacity.value, capacity.value, {"color": NEUTRAL, "width": 1.5, "dash": "dot"})


def asked_line(rate: float) -> dict[str, Any]:
    """Return the line of the requested rate across a panel."""
    return upright(rate, rate, {"color": ASKED, "width": 2})


def numbered(name: str, row: int) -> str:
    """Return the name of an axis or a legend of a panel, as plotly counts them: `y`, `y2`."""
    return name if row == 1 else f"{name}{row}"


def objective_line(limit: float) -> dict[str, Any]:
    """Return the line of an objective's limit across a panel."""
    across = {"xref": "x domain", "x0": 0, "x1": 1, "layer": "above"}
    return {"type": "line", "y0": limit, "y1": limit, **across, "line": {"color": LIMIT, "width": 2, "dash": "dash"}}


WORD = "word"  # the name of annotations that are no headings


def word(
    figure: go.Figure, text: str, row: int, x: float, y: float, colour: str | None = None, anchor: str = "left"
) -> None:
    """Write a word into a panel, beside a value of its x axis and below a height that is a share of the panel's."""
    at = {"xref": numbered("x", row), "yref": f"{numbered('y', row)} domain", "xanchor": anchor, "yanchor": "top"}
    font = {"size": SMALL_SIZE, "color": colour}
    figure.add_annotation(text=text, x=x, y=y, showarrow=False, font=font, name=WORD, **at)


def legend_rows(names: Iterable[str]) -> int:
    """Return the number of rows of a legend that fits into the width of a telephone."""
    pixels = [len(name) * 7 + 50 for name in names]
    return math.ceil(len(pixels) / max(1, NARROW_PIXELS // max(pixels, default=1)))


def legend_entry(name: str, **look: Any) -> go.Scatter:
    """Return a trace without points that gives a shape an entry in the legend."""
    return go.Scatter(x=[None], y=[None], name=name, hoverinfo="skip", **look)


def check_drawing(path: Path) -> None:
    """Refuse a picture that cannot be drawn on this machine.

    Raises
    ------
    MissingError
        When no Chrome or Chromium is installed.
    """
    from choreographer.browsers.chromium import Chromium  # slow to import

    if not Chromium.find_browser(skip_local=False):
        raise MissingError(f"{path} is drawn by Chrome or Chromium, and none is found: install one, or write .html")


def write(path: Path, name: str, draw: Callable[[bool], go.Figure]) -> None:
    """Write a picture to a page, an SVG or a PNG, atomically.

    Parameters
    ----------
    path : Path
        The file.
    name : str
        The title of a page.
    draw : function
        Returns the figure; told whether it is for a page, on which people can hover and choose.

    Raises
    ------
    InputError
        When the file cannot be written or the picture cannot be drawn.
    """
    is_page = path.suffix.lower() not in PICTURES  # on which people hover and choose
    figure = draw(is_page)
    script = SHARED if path.with_name(SHARED).is_file() else True
    replace_file(path, page(figure, name, script) if is_page else _drawn(figure, path))


def page(figure: go.Figure, title: str, plotly: str | bool = True) -> str:
    """Return a page with a figure that fills its width and follows the reader's light or dark mode.

    Parameters
    ----------
    figure : Figure
        The figure, with a frame for a page.
    title : str
        Title of the page.
    plotly : str or bool
        Address of the script that draws; by default the page contains it, which takes 4.8 MB.
    """
    looks = json.dumps([each.to_plotly_json() for each in (light(), _dark())], sort_keys=True)
    config, script = {"displaylogo": False, "responsive": True}, _DARK_SCREEN.format(looks=looks, id=_ID)
    parts = {"include_plotlyjs": plotly, "full_html": True, "config": config, "div_id": _ID, "post_script": script}
    text = str(figure.to_html(**parts))
    head = f'<head><title>{escape(title)}</title><meta name="viewport" content="width=device-width">'
    text = text.replace("<head>", f"{head}<style>{_STYLE}</style>", 1)
    return text.replace("<body>", f"<body>{heading(figure)}", 1)


def heading(figure: go.Figure) -> str:
    """Return title and text of a figure for a page as HTML."""
    its = figure.layout.meta
    text = re.sub("`([^`]+)`", r"<code>\1</code>", "".join(f"<p>{escape(each)}</p>" for each in its["text"]))
    return f"<h1>{escape(its['title'])}</h1>{text}"


def _drawn(figure: go.Figure, path: Path) -> bytes:
    import kaleido  # slow to import
    from choreographer.errors import BrowserClosedError, BrowserFailedError, ChromeNotFoundError

    options: dict[str, Any] = {"format": path.suffix.lower()[1:], "width": WIDTH, "height": figure.layout.height}
    if options["format"] == "png":
        options["scale"] = SHARP
    named = go.Figure(figure)
    for place, trace in enumerate(named.data):
        trace.uid = str(place)  # otherwise plotly writes a random one into the picture
    try:
        found: bytes = kaleido.calc_fig_sync(named, opts=options, kopts={"mathjax": False})
    except (BrowserClosedError, BrowserFailedError, ChromeNotFoundError) as error:
        words = " ".join(map(str, error.args)).strip() or type(error).__name__
        first = words.splitlines()[0]
        raise InputError(f"{path} cannot be drawn by Chrome or Chromium ({first}): write .html") from None
    return _with_same_names(found) if options["format"] == "svg" else found


def _with_same_names(svg: bytes) -> bytes:
    """Return an SVG without the random part of plotly's names, so that the same figure gives the same bytes."""
    text = svg.decode()
    names = re.search(r'<defs id="defs-([0-9a-f]{6})"', text)
    return (text if names is None else re.sub(rf"(?<=[a-z-]){names[1]}", "", text)).encode()
