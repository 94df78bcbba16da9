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
agrees: Callable[..., bool] = SCRIPT["agrees"]


COMMANDS = dict.fromkeys(command for _, command, _ in BLOCKS)
QUICK = {"capplan predict --dcs 3 --cass-nodes 6", *(each for each in COMMANDS if "vcider" in each)}


@pytest.mark.parametrize(
    "command", [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in COMMANDS]
)
def test_a_command_prints_what_its_pages_show(command: str) -> None:
    now, fits = printed(command), bool(SCRIPT["FITS"].search(command))

    for shown in {output for _, its, output in BLOCKS if its == command}:
        assert agrees(shown, now, fits=fits), f"stale: uv run python docs/generate/outputs.py\n{now}"


@pytest.mark.slow
@pytest.mark.parametrize("page", SCRIPT["TUTORIALS"], ids=lambda page: page.stem)
def test_a_tutorial_prints_what_it_shows(page: Path) -> None:
    shown = tuple(found["output"] for found in SCRIPT["BLOCK"].finditer(page.read_text("utf-8")))

    for one, now in zip(shown, SCRIPT["printed_in_turn"](page), strict=True):
        assert agrees(one, now, fits=True), f"stale: uv run python docs/generate/outputs.py\n{now}"


def test_words_and_most_numbers_of_a_fit_must_be_those_of_the_page() -> None:
    shown = "read_s  0.344 ms  0.0718 ms to 1.6 ms  14%\nerror 20.7% against 25,400\n"
    other_draws = "read_s   0.33 ms  0.07 ms to 1.5 ms  17%\nerror 20.7% against\n25,100\n"
    assert agrees(shown, other_draws, fits=True)
    assert not agrees(shown, other_draws, fits=False)
    assert not agrees(shown, "read_s failed: no fit explains these rows", fits=True)
    assert not agrees(shown, "read_s  0.6 ms  0.2 ms to 3 ms  14%\nerror 30.7% against 35,400\n", fits=True)


def test_every_page_has_a_block() -> None:
    assert {page for page, _, _ in BLOCKS} == set(SCRIPT["PAGES"])
