"""Write docs/validation.md and its figures from the packaged fitted files (seconds; figures need Chromium).

Run from anywhere: `uv run python docs/generate/validation.py`. A figure is only drawn if its content has changed: its
SVG carries the content, compressed. Numbers may differ by 0.1 %, because sums differ in their last bits from machine to
machine. With `--check` the script writes nothing, and exits with 1 if something is out of date.
"""

from __future__ import annotations

import base64
import json
import math
import re
import shutil
import sys
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.utils import PlotlyJSONEncoder

from capplan.answers.number_words import share, significant
from capplan.calibration.validation.validation import Validation, report
from capplan.reports.validation import close_of, figures, page
from capplan.systems.registry import documented_names, system

DOCS = Path(__file__).resolve().parents[1]
PAGE, FIGURES = DOCS / "validation.md", DOCS / "figures"
WIDTH = 480  # pixels of a figure; a phone shows it at three quarters of its size
CONTENT = re.compile(r"<!-- content ([0-9A-Za-z+/=]+) -->")
SAME = 1e-3  # relative difference of two numbers that are one figure; near none, a tenth of it counts
MADE_BY = (
    "`uv run just docs` generates this page from the packaged fitted files. `capplan validate all --report FOLDER` "
    "writes it with interactive figures, and exits with 1 while a target is missed. How well the "
    "generic systems predict tables of load tests is on [the page of backtests](backtest.md)."
)
DRAW = """async ([figure, width]) => {
  const url = await Plotly.toImage(figure, {format: "svg", width: width, height: figure.layout.height});
  return decodeURIComponent(url.slice(url.indexOf(",") + 1));
}"""


@cache
def reports() -> tuple[Validation, ...]:
    """Return the validation of each system from its packaged fitted file."""
    return tuple(report(system(name), system(name).fitted()) for name in documented_names())


def figure_path(name: str) -> Path:
    """Return the path of a figure."""
    return FIGURES / f"validation-{name}.svg"


def page_text() -> str:
    """Return the text of the page."""
    made_by = f"{summary(reports())}\n\n{MADE_BY}"
    return page(reports(), lambda name, about: f"![{about}](figures/{figure_path(name).name})", _records(), made_by)


def summary(validations: Sequence[Validation]) -> str:
    """Return the summary of the page: what it says of all systems together."""
    scored = [(each, left) for each in validations for left in each.left_out if left.counts]
    signed = np.array([left.errors["capplan"] for _, left in scored])
    sizes = np.abs(signed)
    worst_system, worst = scored[int(np.argmax(np.abs(np.log1p(signed))))]
    factor = max(1 + worst.errors["capplan"], 1 / (1 + worst.errors["capplan"]))
    half_widths = np.array([left.estimates["capplan"].half_width() for _, left in scored])
    close = [figure for each in validations for figure in close_of(each)]
    held, figures = (sum(getattr(each.coverage, name) for each in validations) for name in ("held", "figures"))
    ranked = [each for each in validations if each.scores]
    better = [each for each in ranked if min(each.scores, key=lambda name, of=each: of.scores[name].error) == "capplan"]
    by_error = sorted((each.own.error, each.system) for each in validations if each.own)
    answers = {
        "How near are the load tests that it was fitted to?": f"{sum(close)} of {len(close)} measured figures are "
        "within 10 % or their own rounding.",
        "How near are load tests that it has not seen?": f"Half of {len(scored)} figures are within "
        f"{share(float(np.median(sizes)))}, and nine of ten within {share(float(np.quantile(sizes, 0.9)))}. The worst "
        f"is `{worst.id}` of {worst_system.system}: off by a factor of {significant(factor)}.",
        "Is it too high or too low?": f"{int(np.sum(signed > 0))} of the {len(scored)} figures are predicted too high, "
        f"and the median error with its sign is {100 * float(np.median(signed)):+.1f} %.",
        "Do the 90 % bands hold?": f"{held} of {figures} figures lie inside ({share(held / figures)}). Half of the "
        f"bands reach {share(float(np.nanmedian(half_widths)))} or less to each side.",
        "Is it better than a simple rule?": f"On figures that every rule predicts, it has the smallest median error in "
        f"{len(better)} of {len(ranked)} systems.",
        "Where is it best and worst?": f"Its median error is {share(by_error[0][0])} for {by_error[0][1]} and "
        f"{share(by_error[-1][0])} for {by_error[-1][1]}.",
    }
    rows = "\n".join(f"| {question} | {answer} |" for question, answer in answers.items())
    return (
        f"## Summary\n\n| how accurate is capplan? | |\n| :--- | :--- |\n{rows}\n\nThese figures come from "
        "published documents. [The live validation](live-validation.md) predicts real nodes before it measures them."
    )


def _records() -> dict[str, str]:
    """Return a sentence per system that links to the decision record about its model, if there is one."""
    records = {each.name[:-3].split("-", 1)[1]: each for each in sorted((DOCS / "decisions").glob("*.md"))}
    named = {name: records.get(f"how-{name}-is-modelled") for name in documented_names()}
    return {
        name: f"Why the model is as it is, and what was tried: [decision record](decisions/{path.name})."
        for name, path in named.items()
        if path is not None
    }


def contents() -> dict[Path, Any]:
    """Return the content that each figure must have, as JSON types."""
    return {figure_path(name): content(drawn) for name, drawn in figures(reports()).items()}


def plain(figure: go.Figure) -> Any:
    """Return a figure as JSON types, its columns as lists."""
    return json.loads(json.dumps(figure.to_plotly_json(), cls=PlotlyJSONEncoder), object_hook=_column)


def _column(found: dict[str, Any]) -> Any:
    """Return a column that plotly has packed as a list; anything else as it is."""
    if "bdata" not in found:
        return found
    values = np.frombuffer(base64.b64decode(found["bdata"]), found["dtype"])
    shape = [int(each) for each in found.get("shape", str(len(values))).split(",")]
    return values.reshape(shape).tolist()


def content(figure: go.Figure) -> Any:
    """Return what a figure shows, whatever the version of plotly that draws it."""
    whole: dict[str, Any] = plain(figure)
    whole["layout"].pop("template", None)
    return whole


def stale_figures() -> list[Path]:
    """Return the figures that are missing or out of date, and the files of figures that no longer exist."""
    wanted = contents()
    stale = [path for path, each in wanted.items() if not path.is_file() or not same(content_of(path), each)]
    return stale + [path for path in sorted(FIGURES.glob("validation-*.svg")) if path not in wanted]


def content_of(path: Path) -> Any:
    """Return the content that a figure carries; None if it has none."""
    found = CONTENT.search(path.read_text(encoding="utf-8"))
    return json.loads(zlib.decompress(base64.b64decode(found[1]))) if found else None


def same(one: Any, other: Any) -> bool:
    """Whether two contents agree: numbers nearly, everything else exactly."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(each, other[key]) for key, each in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=SAME, abs_tol=SAME / 10)
    return bool(one == other)


def draw(drawn: list[str]) -> None:
    """Draw figures with plotly in Chromium and write them."""
    from playwright.sync_api import sync_playwright
    from plotly.offline import get_plotlyjs

    chromium, made = shutil.which("chromium"), figures(reports())
    if chromium is None:
        raise SystemExit(f"figures {', '.join(drawn)} are out of date, and the Debian package chromium is missing")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.set_content("<!doctype html><html><body></body></html>")
        tab.add_script_tag(content=get_plotlyjs())
        for name in drawn:
            svg = tab.evaluate(DRAW, [plain(made[name]), WIDTH])
            carried = base64.b64encode(zlib.compress(json.dumps(content(made[name])).encode(), 9)).decode()
            text = svg.replace(">", f"><!-- content {carried} -->", 1)
            figure_path(name).write_text(text + "\n", encoding="utf-8", newline="\n")
        browser.close()


def main() -> int:
    """Write or check what is out of date."""
    check, text, wanted = "--check" in sys.argv[1:], page_text(), contents()
    stale = stale_figures() + ([PAGE] if not PAGE.exists() or PAGE.read_text("utf-8") != text else [])
    for path in stale:
        sys.stderr.write(f"{path.relative_to(DOCS.parent)} was out of date\n")
    if check or not stale:
        return 1 if stale else 0
    for path in stale:
        if path.suffix == ".svg" and path not in wanted:
            path.unlink()
    if drawn := [path.stem.removeprefix("validation-") for path in stale if path in wanted]:
        draw(drawn)
    PAGE.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
