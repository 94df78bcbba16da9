"""The tutorial on production metrics, command by command, against Debian's Prometheus with a simulated day."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "generate"))

from outputs import BLOCK, agrees  # noqa: E402  # scripts beside the documentation
from production import PAGE, ceiling_per_s, printed_in_turn  # noqa: E402  # the same

pytestmark = pytest.mark.system


def test_its_commands_print_what_it_shows_and_hold_the_true_ceiling() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for block, now in zip(BLOCK.finditer(text), printed_in_turn(), strict=True):
        assert agrees(block["output"], now, fits=True), f"stale: uv run python docs/generate/production.py\n{now}"
    low, high = (
        float(each.replace(",", ""))
        for each in text.partition("Capacity     ")[2].split("(")[1].split(")")[0].split("-")
    )
    assert low < ceiling_per_s() < high
    assert f"{ceiling_per_s():,.0f}"[:4] in text
