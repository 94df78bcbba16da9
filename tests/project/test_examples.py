"""The page about the example files says what they answer today."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from capplan.models.language.document import read_network
from capplan.simulator.engine import simulate

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "generate" / "examples.py"))
UNITS: list[tuple[str, str]] = list(SCRIPT["generated"]())
rendered: Callable[[str], str] = SCRIPT["rendered"]
LONG = ("without-one", "without-two", "sh-cache-above-its-test", "repository-of-six")


@pytest.mark.parametrize(
    ("template", "page"),
    [
        pytest.param(*each, id=str(place), marks=[pytest.mark.slow] if any(n in each[0] for n in LONG) else [])
        for place, each in enumerate(UNITS)
    ],
)
def test_the_page_has_the_figures_of_today(template: str, page: str) -> None:
    assert page == rendered(template), "stale: uv run python docs/generate/examples.py"


def test_every_example_is_on_the_page() -> None:
    files = {path.name for path in EXAMPLES.glob("*.toml")}
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")

    assert files
    assert all(name in page for name in files)


def test_the_example_with_a_timeline_has_all_kinds_of_events() -> None:
    run = simulate(read_network(EXAMPLES / "pauses-and-a-lost-node.toml"), 60.0, seed=1, warmup_s=6.0)
    assert {mark.kind for mark in run.marks} == {"pause", "background", "down", "up"}
