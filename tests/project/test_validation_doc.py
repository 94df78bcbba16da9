"""docs/validation.md and its figures agree with the packaged fitted files."""

import copy
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
AGAIN = "uv run python docs/generate/validation.py"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "generate" / "validation.py"))


def test_the_page_is_up_to_date(script: dict[str, Any]) -> None:
    assert script["PAGE"].read_text(encoding="utf-8") == script["page_text"](), f"docs/validation.md is stale: {AGAIN}"


def test_the_figures_are_up_to_date(script: dict[str, Any]) -> None:
    assert [path.name for path in script["stale_figures"]()] == [], f"figures are stale: {AGAIN}"


def test_a_figure_is_stale_if_a_number_moves_by_more_than_sums_differ_in(script: dict[str, Any]) -> None:
    same, drawn = script["same"], next(iter(script["contents"]().values()))
    moved, machine = copy.deepcopy(drawn), copy.deepcopy(drawn)
    place = next(n for n, each in enumerate(drawn["data"]) if each["x"] and isinstance(each["x"][0], float))
    moved["data"][place]["x"][0] *= 1.01
    machine["data"][place]["x"][0] *= 1.0002

    assert same(machine, drawn)
    assert not same(moved, drawn)
    assert not same(None, drawn)


def test_figures_are_small_and_show_in_any_browser(script: dict[str, Any]) -> None:
    for path in script["contents"]():
        text = path.read_text(encoding="utf-8")

        assert len(text) < 200_000
        assert set(re.findall(r"font-family: ?([^;\"]+)", text)) == {"sans-serif"}
        assert set(re.findall(r"https?://[^\s\"']+", text)) <= {
            "http://www.w3.org/2000/svg",
            "http://www.w3.org/1999/xlink",
        }


def test_the_page_shows_every_figure_and_its_links_lead_somewhere(script: dict[str, Any]) -> None:
    text = script["PAGE"].read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)]+)\)", text)

    assert all((ROOT / "docs" / target).is_file() for target in targets)
    assert {f"figures/{path.name}" for path in script["contents"]()} <= set(targets)
