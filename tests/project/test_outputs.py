"""What commands print in README and how-to pages is what they print today."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "generate" / "outputs.py"))
BLOCKS: list[tuple[Path, str, str]] = SCRIPT["blocks"]()
printed: Callable[[str], str] = SCRIPT["printed"]


COMMANDS = dict.fromkeys(command for _, command, _ in BLOCKS)
QUICK = [each for each in COMMANDS if each == "capplan predict --dcs 3 --cass-nodes 6" or "vcider" in each]


@pytest.mark.parametrize(
    "command", [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in COMMANDS]
)
def test_a_command_prints_what_its_pages_show(command: str) -> None:
    shown = {output for _, its, output in BLOCKS if its == command}

    assert shown == {printed(command)}, "stale: uv run python docs/generate/outputs.py"


@pytest.mark.slow
@pytest.mark.parametrize("page", SCRIPT["TUTORIALS"], ids=lambda page: page.stem)
def test_a_tutorial_prints_what_it_shows(page: Path) -> None:
    shown = tuple(found["output"] for found in SCRIPT["BLOCK"].finditer(page.read_text("utf-8")))

    assert shown == SCRIPT["printed_in_turn"](page), "stale: uv run python docs/generate/outputs.py"


def test_every_page_has_a_block() -> None:
    assert {page for page, _, _ in BLOCKS} == set(SCRIPT["PAGES"])
