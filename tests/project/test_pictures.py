"""The pictures of the pages show what capplan computes today, and each has a text alternative."""

import re
import runpy
from pathlib import Path
from statistics import median
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT: dict[str, Any] = runpy.run_path(str(DOCS / "generate" / "pictures.py"))
QUICK = ("way-of-a-request", "lost-data-centre")
NUMBER, MOST_PIXELS = re.compile(r"\d+\.?\d*"), 3
SHOWN = re.compile(r"!\[([^\]]+)\]\([^)]*figures/picture-([\w-]+)\.svg\)")


@pytest.mark.parametrize(
    "name", [each if each in QUICK else pytest.param(each, marks=pytest.mark.trust) for each in SCRIPT["PICTURES"]]
)
def test_a_picture_is_that_of_today(name: str) -> None:
    """Words agree; a simulation on another machine may differ by some pixels, as the last digits of its inputs do."""
    stored = (DOCS / "figures" / f"picture-{name}.svg").read_text("utf-8")
    now, stale = SCRIPT["PICTURES"][name](), f"stale: uv run python docs/generate/pictures.py {name}"

    assert NUMBER.sub("", stored) == NUMBER.sub("", now), stale
    pairs = zip(NUMBER.findall(stored), NUMBER.findall(now), strict=True)
    assert median(abs(float(one) - float(other)) for one, other in pairs) <= MOST_PIXELS, stale


def test_every_picture_is_on_a_page_with_a_text_alternative() -> None:
    shown = [found[2] for page in DOCS.rglob("*.md") for found in SHOWN.finditer(page.read_text("utf-8"))]

    assert sorted(shown) == sorted(SCRIPT["PICTURES"])
