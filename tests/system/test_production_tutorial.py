"""The tutorial on production metrics, command by command, against Debian's Prometheus with a simulated day."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.system

FOLDER = Path(__file__).parents[2] / "docs" / "generate"


def test_its_commands_print_what_it_shows_and_it_says_where_the_true_ceiling_lies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    script: dict[str, Any] = runpy.run_path(str(FOLDER / "production.py"))
    text, true = script["PAGE"].read_text(encoding="utf-8"), script["ceiling_per_s"]()
    for block, now in zip(script["BLOCK"].finditer(text), script["printed_in_turn"](), strict=True):
        assert script["agrees"](block["output"], now, fits=True), f"stale: docs/generate/production.py\n{now}"

    capacity = re.search(
        r"^Capacity +(?P<middle>[\d,]+) TPS \((?P<low>[\d,]+) to (?P<high>[\d,]+)\)", text, re.MULTILINE
    )
    assert capacity is not None
    middle, low, high = (float(each.replace(",", "")) for each in capacity.groups())
    assert middle == pytest.approx(true, rel=0.2)
    assert ("lies just below it" in text) is not (low < true < high)
    assert f"{round(true, -2):,.0f} requests per second" in " ".join(text.split())
